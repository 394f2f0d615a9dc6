"""Checks of input that both estimators make, beyond scikit-learn's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator


def check_non_negative(X: Any, estimator: BaseEstimator) -> None:
    """Refuse negative counts, naming the smallest; works on the stored values of sparse X."""
    values = X.data if sparse.issparse(X) else X
    if values.size and (minimum := values.min()) < 0:
        raise ValueError(
            f"Negative values in data passed to {type(estimator).__name__}: expected "
            f"non-negative token counts, got a minimum of {minimum}: use counts or TF-IDF."
        )


def code_labels(
    y: NDArray[Any], classes: ArrayLike | None, known: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return all the classes and, as positions among them, the labels of one batch.

    `classes` are what the call to `partial_fit` named, `known` those of earlier batches, None
    for the first one; what it does not name are the labels that it has.
    """
    labels, codes = np.unique(y, return_inverse=True)
    named = list(classes) if isinstance(classes, set | frozenset) else classes
    given = labels if named is None else np.unique(np.asarray(named))
    if known is None:
        known = given
    if len(known) < 2:
        raise ValueError(
            f"Expected at least 2 classes; got 1 class: {known.tolist()}. Where others come in "
            "later batches, pass all to partial_fit as classes=[...]."
        )
    if classes is not None and not np.array_equal(given, known):
        raise ValueError(f"classes={given.tolist()}, but at first they were {known.tolist()}.")
    position = {label: code for code, label in enumerate(known.tolist())}
    unknown = [label for label in labels.tolist() if label not in position]
    if unknown:
        raise ValueError(
            f"y has labels that are not among the classes {known.tolist()}: {unknown}. Pass "
            "all labels to the first call to partial_fit as classes=[...]."
        )
    return known, np.array([position[label] for label in labels.tolist()])[codes]
