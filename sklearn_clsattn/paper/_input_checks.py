"""Documents and labels of the functions on plain arrays."""

from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length

from .._matrices import as_csr
from .._targets import Targets
from .._validation import targets_of_labels


def checked_documents(X: Any, y: ArrayLike) -> tuple[sp.csr_array, Targets]:
    """Return documents as :func:`checked_counts` does, and the targets of their labels."""
    counts = checked_counts(X)
    targets = targets_of_labels(y)
    check_consistent_length(counts, targets.values)
    return counts, targets


def checked_counts(X: Any) -> sp.csr_array:
    """Return a non-negative matrix as a canonical CSR array without stored zeros."""
    X = check_array(X, accept_sparse=True, ensure_non_negative=True, input_name="X")
    return sp.csr_array(as_csr(X))
