"""Checks and conversions of document-token matrices, for training and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._blocks import csr_of

_PLAIN_DTYPES = frozenset(map(np.dtype, (np.float64, np.float32, np.int64, np.int32)))
_LARGEST_EXACT_FLOAT32, _LARGEST_EXACT_FLOAT64 = 2**24, 2**53
_LARGEST_FLOAT32 = 1e8
_LARGEST_TOTAL_FLOAT32 = 1e10
_BITS_PER_NAT = 1.0 / np.log(2.0)
_LEAST_ENTRY, _LARGEST_ENTRY = 1e-19, 1e19  # all positive integers are within
_LEAST_TOTAL, _LARGEST_TOTAL = 1e-100, 1e100


class NegativeEntriesError(ValueError):
    """Entries are negative, as whoever damps them finds out."""


def native(X: Any) -> Any:
    """Return an ndarray or sparse matrix with its numbers in the machine's byte order."""
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def is_plain(X: Any, n_features: int) -> bool:
    """Return whether X needs neither validation by scikit-learn, names aside, nor :func:`as_csr`.

    For a single document validation takes three times as long as the prediction.
    """
    if not (is_plain_csr(X, n_features) and len(X.data) == X.nnz and X.data.min(initial=1) > 0):
        return False
    if X.dtype.kind == "i":
        return bool(X.has_canonical_format)
    with np.errstate(over="ignore"):
        return bool(np.isfinite(X.data.sum(dtype=np.float64)))


def is_plain_csr(X: Any, n_features: int) -> bool:
    """Return the same, whatever the entries."""
    return (
        type(X) in (sp.csr_matrix, sp.csr_array)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == n_features
        and X.dtype in _PLAIN_DTYPES
    )


def as_csr(X: Any) -> Any:
    """Return an ndarray or sparse matrix as CSR: native numbers, and no zeros among its entries.

    A copy only where it has to be one. Integers whose sums float64 does not hold become float64.
    """
    X = native(X)
    if not sp.issparse(X):
        half = X.dtype == np.float16  # SciPy has no sparse arrays of it
        X = sp.csr_array(X.astype(np.float32) if half else X)
    X = X.tocsr()
    if len(X.data) > X.nnz or not X.data.min(initial=1) > 0:
        X = X.copy()
        X.eliminate_zeros()
    if X.dtype.kind in "iu" and X.data.sum(dtype=np.float64) > _LARGEST_EXACT_FLOAT64:
        X = X.astype(np.float64)
    return X


def canonical(X: Any) -> Any:
    """Return what :func:`as_csr` returned with sorted indices and every entry stored once.

    Itself, or else a copy.
    """
    if X.has_canonical_format:
        return X
    # In small integers, sums of duplicates could overflow.
    X = X.copy() if X.dtype.kind == "f" else X.astype(np.int64)
    X.sum_duplicates()
    return X


def with_columns(X: Any) -> tuple[Any, Any]:
    """Return a CSR matrix with every entry stored once, and its transpose as CSR if known by then.

    CountVectorizer does not sort the entries of a row. To sort them, and copy them for that, takes
    twice as long as the transpose, which tells whether an entry is stored in several parts and is
    needed anyway.
    """
    if X.has_canonical_format:
        return X, None
    columns = X.tocsc().T
    return (X, columns) if columns.has_canonical_format else (canonical(X), None)


def check_entries(least: float, largest: float) -> None:
    """Raise ValueError for positive entries of X that training cannot bear."""
    if largest > _LARGEST_ENTRY or least < _LEAST_ENTRY:
        raise ValueError(
            f"Training leaves the range of floating-point numbers: expected positive entries of X "
            f"from {_LEAST_ENTRY:.0e} to {_LARGEST_ENTRY:.0e}, got {least:.2g} to {largest:.2g}. "
            "Multiply X, or its columns, by constants, and set what is as good as 0 to 0."
        )


def damped(X: Any, scale: float, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return ``scale * log1p(c / scale) / log(2)`` for every entry c of an ndarray or CSR matrix.

    An entry as large as `scale` stays as it is, and so do all of a matrix of 0 and `scale`. Index
    arrays are shared.
    """
    if not sp.issparse(X):
        return damped_entries(X, scale, dtype)
    return csr_of(damped_entries(X.data, scale, dtype), X.indices, X.indptr, X.shape[1])


def damped_entries(
    entries: NDArray[Any],
    scale: float,
    dtype: type[np.floating[Any]] = np.float64,
    out: NDArray[Any] | None = None,
) -> NDArray[np.floating[Any]]:
    """Return :func:`damped` of an array of any shape, in `out` if that is given.

    Of few different integers by a table. Negative integers are a NegativeEntriesError.
    """
    out = np.empty(entries.shape, dtype) if out is None else out
    if entries.dtype.kind in "iu":
        # As unsigned numbers negative ones are the largest: one look at all entries is enough.
        largest = int(entries.view(f"u{entries.itemsize}").max(initial=0))
        if largest < entries.size:
            table = damped_entries(np.arange(largest + 1.0), scale)
            if largest == 1 and entries.min() == 1:
                out.fill(table[1])
                return out
            # "clip" checks no bounds.
            return np.take(table.astype(out.dtype), entries, out=out, mode="clip")
        if entries.min(initial=0) < 0:
            raise NegativeEntriesError
    logs = out if out.dtype == np.float64 else np.empty(entries.shape)
    with np.errstate(over="ignore"):
        np.divide(entries, scale, out=logs, dtype=np.float64)
    np.log1p(logs, out=logs)
    if scale < 1.0 and len(infinite := np.flatnonzero(np.isinf(logs))):
        logs.flat[infinite] = np.log(entries.flat[infinite]) - np.log(scale)
    logs *= _BITS_PER_NAT
    return np.multiply(scale, logs, out=out, casting="same_kind")


def training_dtype(
    dtype: np.dtype[Any], largest: float, total: float, smallest_C: float
) -> type[np.floating[Any]]:
    """Return float32 where it is exact for entries of a type, which halves memory, else float64.

    Also float64 where penalties, the total weight of the documents or the largest entry are
    outside the range of float32.
    """
    exact = dtype == np.float32 or dtype.kind in "biu"
    limit = _LARGEST_EXACT_FLOAT32 if dtype.kind in "biu" else _LARGEST_FLOAT32
    within = min(total, smallest_C) > 1e-20 and total <= _LARGEST_TOTAL_FLOAT32
    return np.float32 if exact and largest <= limit and within else np.float64


def check_total_weight(class_weights: NDArray[np.float64]) -> None:
    """Raise ValueError for class weights (n_classes,) whose sum training cannot bear."""
    with np.errstate(over="ignore"):
        total = float(class_weights.sum())
    if not _LEAST_TOTAL <= total <= _LARGEST_TOTAL:
        sizes = f"to {total:.2g}" if np.isfinite(total) else "to infinity"
        raise ValueError(
            f"Document weights add up {sizes}, outside the range of training, {_LEAST_TOTAL:.0e} "
            f"to {_LARGEST_TOTAL:.0e}: divide sample_weight (or class_weight) by a constant."
        )


def check_batch(seen: NDArray[np.float64], class_weights: NDArray[np.float64]) -> None:
    """Raise ValueError for a batch without weight, or with too much beside that already seen.

    Both are weights of the classes, (n_classes,).
    """
    if not class_weights.any():
        raise ValueError(
            "The batch has no document of positive weight: check sample_weight and class_weight, "
            "or leave it out."
        )
    check_total_weight(seen + class_weights)


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
        f"{classes.tolist()[0]!r}. Add documents of another class."
    )
