"""Ours, with its defaults: nothing is tuned."""

from __future__ import annotations

from typing import Any

from .base import Competitor


def make(value: float | None, n_classes: int) -> Any:
    from sklearn_clsattn import ClsAttentionClassifier

    return ClsAttentionClassifier()


COMPETITOR = Competitor("ours", "ClsAttentionClassifier (defaults)", make)
