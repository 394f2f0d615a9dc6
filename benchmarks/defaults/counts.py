"""How a count enters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sklearn_clsattn import ClsAttentionClassifier

from .question import Question, Row, fitted
from .sets import Split


def measure(split: Split) -> dict[str, Row]:
    as_it_is = partial(ClsAttentionClassifier, sublinear_counts=False)
    return {
        "raw": fitted(as_it_is, split),
        "binary": fitted(as_it_is, split, partial(_both, np.sign)),
        "logarithm": fitted(as_it_is, split, partial(_both, _one_plus_logarithm)),
        "damped": fitted(ClsAttentionClassifier, split),
    }


def _one_plus_logarithm(entries: Any) -> Any:
    return (1 + np.log(entries)).astype(np.float32)


def _both(function: Any, *matrices: Any) -> list[Any]:
    """Return matrices with a function of their entries."""
    changed = [matrix.copy() for matrix in matrices]
    for matrix in changed:
        matrix.data = function(matrix.data)
    return changed


QUESTION = Question(
    "counts",
    "How does a count enter?",
    "A token's count c in a document; m is the mean positive entry of the training data.",
    {
        "raw": "c",
        "binary": "1",
        "logarithm": "1 + ln c",
        "damped": "m log2(1 + c/m) (**the default**)",
    },
    "raw",
    measure,
    unit="damped",
)
