"""Multinomial naive Bayes on the counts."""

from __future__ import annotations

from typing import Any

from sklearn.naive_bayes import MultinomialNB

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    return MultinomialNB(alpha=value)


COMPETITOR = Competitor(
    "multinomial_nb",
    "MultinomialNB, counts",
    make,
    parameter="alpha",
    grid=(0.03, 0.1, 0.3, 1.0),
    untuned=0.3,
)
