"""Ours at a C that was tuned as the baselines' is: what the fit itself takes."""

from __future__ import annotations

from typing import Any

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    from sklearn_clsattn import ClsAttentionClassifier

    assert value is not None
    return ClsAttentionClassifier(C=value)


COMPETITOR = Competitor(
    "ours_given_c",
    "ClsAttentionClassifier, C given",
    make,
    parameter="C",
    grid=(0.3, 1.0, 3.0, 10.0),
    untuned=1.0,
)
