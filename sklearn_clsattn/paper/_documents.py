"""Checked documents, as the functions on plain arrays take them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from .._documents import as_csr, canonical, check_two_classes
from ..importance import class_totals, signed_frequency

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CodedDocuments:
    """Checked documents with class codes 0..K-1, and the shares and importance of their tokens."""

    X: sp.csr_array
    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: Array
    shares: Array
    importance: Array


def coded_documents(X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> CodedDocuments:
    """Check documents, labels and weights, and encode the labels."""
    X, labels = checked_counts(X), np.asarray(y)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    classes, codes = np.unique(labels, return_inverse=True)
    class_weights = np.bincount(codes, weights, minlength=len(classes)).astype(np.float64)
    check_two_classes(classes, class_weights)
    shares = class_totals(X, codes, len(classes), weights, kind="shares")
    importance = signed_frequency(shares, class_weights)
    return CodedDocuments(X, classes, codes, weights, shares, importance)


def checked_counts(X: Any, name: str = "X") -> sp.csr_array:
    """Return a checked non-negative matrix as a canonical CSR array without stored zeros."""
    X = check_array(X, accept_sparse=True, ensure_non_negative=True, input_name=name)
    return sp.csr_array(canonical(as_csr(X)))


def listed(items: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """Join the first items with commas and count the others."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"
