"""Checks of documents and labels for the functions on plain arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from .._matrices import as_csr, canonical
from .._targets import Targets
from .._types import Array
from .._validation import check_two_classes
from ..importance import class_totals, signed_frequency


@dataclass(frozen=True)
class EncodedDocuments:
    """Checked documents with encoded labels.

    X : canonical CSR (n_documents, n_tokens) without stored zeros
    shares : (n_classes, n_tokens), each token's shares of documents, summed over each class
    importance : signed frequency alpha, (n_tokens,) or (n_classes, n_tokens)
    """

    X: sp.csr_array
    targets: Targets
    shares: Array
    importance: Array


def encoded_documents(X: Any, y: ArrayLike) -> EncodedDocuments:
    """Check documents and labels, and encode the labels."""
    X = checked_counts(X)
    labels = np.asarray(y)
    check_consistent_length(X, labels)
    check_classification_targets(labels)
    targets = Targets.from_labels(labels)
    sizes = targets.class_sums(np.ones(len(targets)))
    check_two_classes(targets.classes, sizes)
    shares = class_totals(X, targets.values, targets.n_classes, kind="shares")
    return EncodedDocuments(X, targets, shares, signed_frequency(shares, sizes))


def checked_counts(X: Any, name: str = "X") -> sp.csr_array:
    """Return a checked non-negative matrix as a canonical CSR array without stored zeros."""
    X = check_array(X, accept_sparse=True, ensure_non_negative=True, input_name=name)
    return sp.csr_array(canonical(as_csr(X)))


def listed(items: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """Join the first items with commas and count the others."""
    shown = ", ".join(map(str, items[:most]))
    return shown if len(items) <= most else f"{shown}, and {len(items) - most} more"
