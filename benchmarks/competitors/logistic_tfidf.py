"""Logistic regression on TF-IDF: lbfgs with its default tolerance."""

from __future__ import annotations

from .base import Competitor
from .logistic_counts import make

COMPETITOR = Competitor(
    "logistic_tfidf",
    "LogisticRegression, TF-IDF",
    make,
    parameter="C",
    grid=(0.3, 1.0, 3.0, 10.0, 30.0),
    untuned=3.0,
    tfidf=True,
)
