"""Ours on the tokens that the others count."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import make_pipeline

from benchmarks.competitors.base import Competitor


def competitor(vectorizer: dict[str, Any]) -> Competitor:
    def make(value: float | None, n_classes: int) -> Any:
        from sklearn_clsattn import ClsAttentionClassifier
        from sklearn_clsattn.text import TokenVectorizer

        return make_pipeline(TokenVectorizer(**vectorizer), ClsAttentionClassifier())

    return Competitor("ours", "ours, the same tokens", make)
