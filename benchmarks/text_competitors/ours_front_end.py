"""Ours with the recommended front end, which has tokens of its own."""

from __future__ import annotations

from typing import Any

from benchmarks.competitors.base import Competitor


def competitor(vectorizer: dict[str, Any]) -> Competitor:
    def make(value: float | None, n_classes: int) -> Any:
        from sklearn_clsattn.text import make_text_classifier

        return make_text_classifier()

    return Competitor("front_end", "ours, make_text_classifier()", make)
