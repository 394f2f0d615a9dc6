"""Documents and labels of the functions on plain arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from .._bags import Bags
from .._matrices import as_csr, safe_divide
from .._targets import Targets
from .._types import Array


@dataclass(frozen=True)
class EncodedDocuments:
    """Documents with encoded labels.

    X : canonical CSR (n_documents, n_tokens) without stored zeros
    shares : (n_classes, n_tokens), each token's shares of documents, summed over each class
    """

    X: sp.csr_array
    targets: Targets
    shares: Array


def encoded_documents(X: Any, y: ArrayLike) -> EncodedDocuments:
    """Return documents with encoded labels."""
    counts = checked_counts(X)
    labels = np.asarray(y)
    check_consistent_length(counts, labels)
    check_classification_targets(labels)
    targets = Targets.from_labels(labels)
    bags = Bags(counts)
    per_token = safe_divide(1.0, bags.totals())
    shares = bags.class_totals(targets.values, targets.n_classes, per_token)
    return EncodedDocuments(counts, targets, shares)


def checked_counts(X: Any) -> sp.csr_array:
    """Return a non-negative matrix as a canonical CSR array without stored zeros."""
    X = check_array(X, accept_sparse=True, ensure_non_negative=True, input_name="X")
    return sp.csr_array(as_csr(X))
