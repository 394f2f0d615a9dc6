"""Which documents are held out to decide when training stops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


def hold_out(
    codes: NDArray[np.intp], sample_weight: NDArray[np.float64], fraction: float, seed: int
) -> tuple[Indices, Indices]:
    """Split documents at random into those trained on and those held out, class by class.

    Of every class with documents of positive weight the same `fraction` is held out, rounded, but
    at least one is and at least one stays: a class of one is a ValueError. Rows are ascending.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must be between 0 and 1, got {fraction}.")
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        documents = np.flatnonzero((codes == code) & (sample_weight > 0))
        if len(documents) == 1:
            raise ValueError(
                "Early stopping holds out documents of every class, but class number "
                f"{code} has one document only (of positive weight). Give it more, or set "
                "early_stopping=False."
            )
        if len(documents):
            size = min(max(round(fraction * len(documents)), 1), len(documents) - 1)
            held_out[rng.choice(documents, size, replace=False)] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
