"""TfidfVectorizer and LinearSVC."""

from __future__ import annotations

from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks.competitors.base import Competitor


def competitor(vectorizer: dict[str, Any]) -> Competitor:
    def make(value: float | None, n_classes: int) -> Any:
        return make_pipeline(TfidfVectorizer(**vectorizer), LinearSVC(random_state=0))

    return Competitor("linear_svc_tfidf", "TfidfVectorizer, LinearSVC", make)
