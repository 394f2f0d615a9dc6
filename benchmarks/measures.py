"""How good predictions are: accuracy, macro F1, log loss and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score, log_loss

N_BINS = 15


def quality(
    classes: NDArray[Any], y: NDArray[Any], outputs: NDArray[Any], *, probabilities: bool
) -> dict[str, float | None]:
    """Return the measures of `outputs`: probabilities, or else decision values."""
    if outputs.ndim == 1:
        predicted = classes[(outputs > 0).astype(int)]
    else:
        predicted = classes[outputs.argmax(axis=1)]
    return {
        "accuracy": float(np.mean(predicted == y)),
        "macro_f1": float(f1_score(y, predicted, average="macro")),
        "log_loss": float(log_loss(y, outputs, labels=classes)) if probabilities else None,
        "ece": expected_calibration_error(classes, y, outputs) if probabilities else None,
    }


def expected_calibration_error(
    classes: NDArray[Any], y: NDArray[Any], probabilities: NDArray[np.float64]
) -> float:
    """Return the mean gap between confidence and accuracy of the predicted class.

    Confidences fall into 15 equal-width bins from 0 to 1, each weighted by its documents.
    """
    confidence = probabilities.max(axis=1)
    correct = classes[probabilities.argmax(axis=1)] == y
    edges = np.linspace(0, 1, N_BINS + 1)[1:-1]
    bins = np.searchsorted(edges, confidence, side="left")
    gaps = np.bincount(bins, weights=correct - confidence, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(y))
