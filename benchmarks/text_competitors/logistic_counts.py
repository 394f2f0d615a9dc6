"""CountVectorizer and LogisticRegression, whose limit on iterations is the default one too."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.competitors.base import Competitor


def competitor(vectorizer: dict[str, Any]) -> Competitor:
    def make(value: float | None, n_classes: int) -> Any:
        return make_pipeline(CountVectorizer(**vectorizer), LogisticRegression())

    return Competitor("logistic_counts", "CountVectorizer, LogisticRegression", make)
