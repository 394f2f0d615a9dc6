"""LinearSVC on TF-IDF. It gives no probabilities, so decision_function is timed instead."""

from __future__ import annotations

from typing import Any

from sklearn.svm import LinearSVC

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    return LinearSVC(C=value, random_state=0)


COMPETITOR = Competitor(
    "linear_svc",
    "LinearSVC, TF-IDF",
    make,
    parameter="C",
    grid=(0.03, 0.1, 0.3, 1.0),
    untuned=0.3,
    tfidf=True,
)
