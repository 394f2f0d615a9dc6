"""Checked documents, and helpers that several functions share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets


def as_presence(X: Any, name: str = "X") -> sp.csr_array:
    """Return as a boolean CSR array where `X` is positive, rows sorted, without duplicates."""
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got {X.ndim}.")
        rows = sp.csr_array(X)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
    else:
        dense = np.asarray(X)
        if dense.ndim != 2:
            raise ValueError(
                f"{name} must have shape (n_documents, n_tokens), got {dense.ndim} dimension(s)."
            )
        if dense.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold numbers, got dtype {dense.dtype}.")
        rows = sp.csr_array(dense)
    # NaN fails this comparison too.
    if rows.data.size and not rows.data.min() >= 0:
        raise ValueError(
            f"{name} must hold non-negative numbers (counts or weights), got a minimum of "
            f"{rows.data.min()}."
        )
    return entries_kept(rows, rows.data > 0)


def entries_kept(rows: Any, kept: NDArray[np.bool_]) -> sp.csr_array:
    """Return the stored entries of a CSR array that a mask keeps, as a boolean CSR array."""
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(rows.indptr.dtype)
    indices = rows.indices[kept]
    return sp.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=rows.shape)


def entry_rows(rows: Any) -> NDArray[np.int64]:
    """Return the row of every stored entry of a CSR array."""
    return np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))


def listed(items: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """Join the first items with commas and count the others."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"


@dataclass(frozen=True)
class CodedDocuments:
    """Checked documents with class codes 0..K-1 and weights; X as CSR, not copied if it was."""

    X: sp.csr_array
    presence: sp.csr_array
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]
    class_weights: NDArray[np.float64]


def coded_documents(X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> CodedDocuments:
    """Check documents, labels and weights, which every class needs, and code the labels."""
    presence = as_presence(X)
    rows = sp.csr_array(X if sp.issparse(X) else np.asarray(X))
    if not np.isfinite(rows.data).all():
        raise ValueError("X must be finite, but it has infinite entries.")
    labels = np.asarray(y)
    weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, float)
    for name, values in (("y", labels), ("sample_weight", weights)):
        if values.shape != (rows.shape[0],):
            raise ValueError(
                f"{name} must have shape ({rows.shape[0]},), one entry for each row of X, "
                f"got {values.shape}."
            )
    if not (np.isfinite(weights).all() and np.all(weights >= 0)):
        raise ValueError("sample_weight must be finite and not negative.")
    if not len(labels):
        raise ValueError("X has no rows: at least one document of each of two classes is needed.")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least 2 classes, got only {classes.tolist()}.")
    class_weights = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    if not class_weights.all():
        missing = classes[class_weights == 0].tolist()
        raise ValueError(
            f"Every class needs documents of positive weight, but {missing} has none: remove the "
            "documents of that class, or give them weight."
        )
    return CodedDocuments(rows, presence, classes, codes, weights, class_weights)
