"""Checks and conversions of document-token matrices, for training and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._blocks import csr_of
from .importance import row_totals

_PLAIN_DTYPES = frozenset(map(np.dtype, (np.float64, np.float32, np.int64, np.int32)))
_LARGEST_EXACT_FLOAT32 = 2**24
_LARGEST_FLOAT32 = 1e8
_LARGEST_TOTAL_FLOAT32 = 1e10


def is_plain(X: Any, n_features: int) -> bool:
    """Return whether X needs no validation by scikit-learn, feature names aside.

    For a single document that takes three times as long as the prediction.
    """
    return (
        type(X) in (sp.csr_matrix, sp.csr_array)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == n_features
        and X.dtype in _PLAIN_DTYPES
        and X.data.min(initial=0) >= 0
        and (X.dtype.kind == "i" or bool(np.isfinite(X.data.sum(dtype=np.float64))))
    )


def as_csr(X: Any) -> Any:
    """Return an ndarray or sparse matrix as sparse, with no more memory than entries."""
    if sp.issparse(X):
        if len(X.data) > X.nnz:
            X = X.copy()
            X.prune()
        return X
    half = X.dtype == np.float16  # SciPy has no sparse arrays of it
    return sp.csr_array(X.astype(np.float32) if half else X)


def canonical(X: Any) -> Any:
    """Return `X` with sorted indices and every entry stored once: itself, or else a copy."""
    if X.has_canonical_format:
        return X
    # In small integers, sums of duplicates could overflow.
    X = X.copy() if X.dtype.kind == "f" else X.astype(np.int64)
    X.sum_duplicates()
    return X


def damped(X: Any, scale: float, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return ``scale * log2(1 + c / scale)`` for every entry c of an ndarray or CSR matrix.

    An entry as large as `scale` stays as it is, and so do all of a matrix of 0 and `scale`. Index
    arrays are shared.
    """
    if not sp.issparse(X):
        return _damped_entries(X, scale, dtype)
    return csr_of(_damped_entries(X.data, scale, dtype), X.indices, X.indptr, X.shape[1])


def _damped_entries(
    entries: NDArray[Any], scale: float, dtype: type[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Return :func:`damped` of an array of any shape; of few different integers, by a table."""
    if entries.dtype.kind in "iu" and 0 <= (largest := entries.max(initial=0)) < entries.size:
        table = scale * np.log2(1.0 + np.arange(largest + 1) / scale)
        return np.asarray(table.astype(dtype)[entries])
    return np.asarray(scale * np.log2(1.0 + np.divide(entries, scale, dtype=np.float64)), dtype)


def mean_entry(X: Any, weights: NDArray[np.float64]) -> float:
    """Return the mean positive entry of a CSR matrix by document weights, (n_documents,).

    1 if there is none.
    """
    if len(weights) and (weights == weights[0]).all():
        total = X.data.sum(dtype=np.float64)
        number = X.data.size if X.data.min(initial=1) > 0 else np.count_nonzero(X.data)
        return float(total / number) if number and weights[0] > 0 else 1.0
    total = weights @ row_totals(X)
    positive = X.data > 0
    rows = np.repeat(weights, np.diff(X.indptr))
    number = rows.sum() if positive.all() else rows[positive].sum()
    return float(total / number) if number > 0 else 1.0


def training_dtype(X: Any, total: float, smallest_C: float) -> type[np.floating[Any]]:
    """Return float32 where it represents X exactly, which halves memory, else float64.

    Also float64 where penalties, the total weight of the documents or the largest entry are
    outside the range of float32.
    """
    exact = X.dtype == np.float32 or X.dtype.kind in "biu"
    largest = X.data.max(initial=0)
    limit = _LARGEST_EXACT_FLOAT32 if X.dtype.kind in "biu" else _LARGEST_FLOAT32
    within = min(total, smallest_C) > 1e-20 and total <= _LARGEST_TOTAL_FLOAT32
    return np.float32 if exact and largest <= limit and within else np.float64


def check_total_weight(class_weights: NDArray[np.float64]) -> None:
    """Raise ValueError for class weights (n_classes,) whose sum is infinite."""
    if not np.isfinite(class_weights.sum()):
        raise ValueError(
            "Document weights add up to infinity, so that there is no mean: divide sample_weight "
            "(or class_weight) by a constant."
        )


def check_two_classes(classes: NDArray[Any], class_weights: NDArray[np.float64]) -> None:
    """Raise ValueError unless two classes have positive weight (n_classes,)."""
    present = np.flatnonzero(class_weights > 0)
    if len(present) >= 2:
        check_total_weight(class_weights)
        return
    if len(classes) >= 2:
        found = classes[present].tolist()
        raise ValueError(
            "Training needs documents of positive weight in at least two classes, but only "
            f"the class(es) {found} have any: check sample_weight and class_weight."
        )
    raise ValueError(
        "Training needs documents of at least two classes, but y holds one class only: "
        f"{classes.tolist()[0]!r}."
    )
