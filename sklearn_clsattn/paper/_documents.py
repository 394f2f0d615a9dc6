"""Checked documents, and helpers that the functions on plain arrays share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight


@dataclass(frozen=True)
class CodedDocuments:
    """Checked documents with class codes 0..K-1; X as CSR, not copied if it was."""

    X: sp.csr_array
    presence: sp.csr_array
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]
    class_weights: NDArray[np.float64]


def coded_documents(X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> CodedDocuments:
    """Check documents, labels and weights, and encode the labels."""
    X = _as_csr(X, "X")
    labels = np.asarray(y)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
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
    return CodedDocuments(X, as_presence(X), classes, codes, weights, class_weights)


def as_presence(X: Any, name: str = "X") -> sp.csr_array:
    """Return a boolean CSR array, True where `X` is positive, with sorted rows."""
    rows = _as_csr(X, name)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return select_entries(rows, rows.data > 0)


def select_entries(rows: Any, mask: NDArray[np.bool_]) -> sp.csr_array:
    """Return the stored entries of a CSR array that a mask selects, as a boolean CSR array."""
    indptr = np.concatenate([[0], np.cumsum(mask)])[rows.indptr].astype(rows.indptr.dtype)
    indices = rows.indices[mask]
    return sp.csr_array((np.ones(len(indices), dtype=bool), indices, indptr), shape=rows.shape)


def entry_rows(rows: Any) -> NDArray[np.int64]:
    """Return the row of every stored entry of a CSR array."""
    return np.repeat(np.arange(rows.shape[0], dtype=np.int64), np.diff(rows.indptr))


def listed(items: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """Join the first items with commas and count the others."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"


def _as_csr(X: Any, name: str) -> sp.csr_array:
    """Return a checked non-negative matrix as a CSR array, not copied if it was CSR."""
    return sp.csr_array(
        check_array(X, accept_sparse="csr", ensure_non_negative=True, input_name=name)
    )
