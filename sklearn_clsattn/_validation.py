"""Checks of input that several estimators and functions need, beyond scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator


def check_non_negative(X: Any, estimator: BaseEstimator) -> None:
    """Raise ValueError for negative values in X (n_documents, n_tokens), dense or sparse."""
    values = X.data if sparse.issparse(X) else X
    if values.size and (minimum := values.min()) < 0:
        raise ValueError(
            f"Negative values in data passed to {type(estimator).__name__}: expected "
            f"non-negative token counts, got a minimum of {minimum}: use counts or TF-IDF."
        )


def codes_of(labels: Any, classes: Any) -> NDArray[np.intp]:
    """Return the position of each label (n_labels,) among the classes, -1 where it has none."""
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([position.get(label, -1) for label in np.asarray(labels).tolist()], np.intp)


def code_labels(
    y: NDArray[Any], classes: ArrayLike | None, known: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return all classes (n_classes,) and the codes (n_documents,) of the labels of one batch.

    `classes` are those passed to `partial_fit`, by default the labels of the batch; `known` are
    those of earlier batches, None for the first one.
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
    positions = codes_of(labels, known)
    if (positions < 0).any():
        unknown = labels[positions < 0].tolist()
        raise ValueError(
            f"y has labels that are not among the classes {known.tolist()}: {unknown}. Pass "
            "all labels to the first call to partial_fit as classes=[...]."
        )
    return known, positions[codes]
