"""Logistic regression on the counts: lbfgs with its default tolerance."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    return LogisticRegression(C=value, max_iter=1000)


COMPETITOR = Competitor(
    "logistic_counts",
    "LogisticRegression, counts",
    make,
    parameter="C",
    grid=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    untuned=0.1,
)
