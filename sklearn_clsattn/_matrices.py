"""Document-term matrices: conversions, blocks of rows, and damping of counts."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config

from ._bags import Bags

_PLAIN_DTYPES = frozenset(map(np.dtype, (np.float64, np.float32, np.int64, np.int32)))
_LARGEST_EXACT_FLOAT64 = 2**53
_BITS_PER_NAT = 1.0 / np.log(2.0)
_FIRST_FEW = 1024  # entries, by which nearly all matrices of counts are known not to be binary
_FEW_VALUES = 8  # with more columns than so many times the values, only those in use are numbered
BLOCK_ENTRIES = 250_000  # small arrays stay in the processor's caches
_EMPTY = sp.csr_array((0, 0))


def native(X: Any) -> Any:
    """Return an ndarray or sparse matrix with its numbers in the machine's byte order."""
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def is_plain(X: Any, n_features: int) -> bool:
    """Return whether X needs neither validation by scikit-learn, names aside, nor :func:`as_csr`.

    For a single document validation takes three times as long as prediction.
    """
    if isinstance(X, Bags):
        n_units = X.left.shape[1]
        return is_plain(X.left, n_units) and is_plain(X.right, n_features)
    # 1) the format, the sizes and the sign of the entries
    has_form = (
        type(X) in (sp.csr_matrix, sp.csr_array)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == n_features
        and X.dtype in _PLAIN_DTYPES
        and len(X.data) == X.nnz
        and X.data.min(initial=1) > 0
    )
    if not has_form:
        return False
    # 2) the entries: integers each stored once, other numbers finite
    if X.dtype.kind == "i":
        return bool(X.has_canonical_format)
    with np.errstate(over="ignore"):
        return bool(np.isfinite(X.data.sum(dtype=np.float64)))


def as_csr(X: Any) -> Any:
    """Return an ndarray or sparse matrix as CSR, with native numbers and without explicit zeros.

    It copies only if necessary. Integers whose sums do not fit into float64 become float64. Bags
    stay as they are.
    """
    if isinstance(X, Bags):
        return X
    # 1) the format
    X = native(X)
    if not sp.issparse(X):
        if X.dtype == np.float16:  # SciPy has no sparse arrays of this type
            X = X.astype(np.float32)
        X = sp.csr_array(X)
    X = X.tocsr()
    # 2) the entries, whose arrays may be longer than what is in use
    has_zeros = not X.data.min(initial=1) > 0
    if has_zeros or len(X.data) > X.nnz:
        X = X.copy()
        X.eliminate_zeros()
    # 3) their type
    if X.dtype.kind in "iu" and X.data.sum(dtype=np.float64) > _LARGEST_EXACT_FLOAT64:
        X = X.astype(np.float64)
    return X


def canonical(X: Any) -> Any:
    """Return the result of :func:`as_csr`, or a copy, with sorted entries, each stored once."""
    if isinstance(X, Bags) or X.has_canonical_format:
        return X
    # Sums of duplicates could overflow small integers.
    X = X.copy() if X.dtype.kind == "f" else X.astype(np.int64)
    X.sum_duplicates()
    return X


def with_columns(X: Any) -> tuple[Any, Any]:
    """Return a CSR matrix with each entry stored once, and its transpose as CSR if computed.

    CountVectorizer does not sort the entries of a row. Sorting them takes twice as long as the
    transpose, which is needed anyway and shows whether an entry is stored in several parts.
    """
    if isinstance(X, Bags) or X.has_canonical_format:
        return X, None
    columns = X.tocsc().T
    if columns.has_canonical_format:
        return X, columns
    return canonical(X), None


def row_blocks(X: Any, n_entries: int = BLOCK_ENTRIES) -> Iterator[tuple[slice, Any]]:
    """Yield slices of the rows of a CSR matrix and CSR arrays of these rows, which share memory.

    A block has about `n_entries` entries, and at least one row. Blocks of bags are multiplied one
    at a time.
    """
    if isinstance(X, Bags):
        for rows, left in left_blocks(X, n_entries):
            yield rows, left @ X.right
        return
    # 1) the rows in which blocks begin
    indptr = X.indptr
    targets = range(n_entries, indptr[-1], n_entries)
    bounds = sorted({0, *np.searchsorted(indptr, targets).tolist(), X.shape[0]})
    # 2) the blocks
    for start, stop in pairwise(bounds):
        entries = slice(int(indptr[start]), int(indptr[stop]))
        starts = indptr[start : stop + 1] - indptr[start]
        part = csr_of(X.data[entries], X.indices[entries], starts, X.shape[1])
        yield slice(start, stop), part


def left_blocks(bags: Bags, n_entries: int) -> Iterator[tuple[slice, Any]]:
    """Yield slices of rows and the left matrix's rows, whose products have some `n_entries`."""
    left = bags.left
    # Each entry of the left matrix becomes as many entries as its unit has.
    unit_lengths = np.diff(bags.right.indptr)
    n_occurrences = np.bincount(left.indices, minlength=len(unit_lengths))
    n_products = int(n_occurrences @ unit_lengths)
    n_left_entries = int(n_entries * left.nnz / max(n_products, 1))
    yield from row_blocks(left, max(1, n_left_entries))


def as_configured(X: Any) -> Any:
    """Return an ndarray as it is, and a sparse matrix in scikit-learn's configured container.

    That is a sparse array with ``sparse_interface="sparray"``, else, and before scikit-learn 1.9, a
    sparse matrix.
    """
    if not sp.issparse(X):
        return X
    interface = get_config().get("sparse_interface", "spmatrix")
    kind = "array" if interface == "sparray" else "matrix"
    container = getattr(sp, f"{X.format}_{kind}")
    return X if isinstance(X, container) else container(X)


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return the type of the indices of a sparse matrix: sparse arrays keep any that they get."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def csr_of(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_columns: int
) -> sp.csr_array:
    """Return a CSR array of three arrays without checks or copies, even if they are views."""
    X = copy(_EMPTY)  # constructing one takes ten times as long
    X._shape = (len(indptr) - 1, n_columns)
    X.data = data
    X.indices = indices
    X.indptr = indptr
    return X


def sums_by_entry(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """Return the sums of values with the same row and column, as canonical CSR of this shape."""
    n_rows, n_columns = shape
    if _FEW_VALUES * len(values) >= n_columns:
        return _sums_in_order(values, rows, columns, shape)
    # Where few columns are in use, they are numbered anew: the others would take time as well.
    used, numbers = np.unique(columns, return_inverse=True)
    sums = _sums_in_order(values, rows, numbers, (n_rows, len(used)))
    return csr_of(sums.data, used[sums.indices], sums.indptr, n_columns)


def _sums_in_order(
    values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]
) -> sp.csr_array:
    """Return the sums by row and column; conversions to columns and back are faster than a sort."""
    return sp.coo_array((values, (rows, columns)), shape=shape).tocsc().tocsr()


def row_sums(entries: NDArray[Any], indptr: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sums of rows of entries, (n_entries,) or (n_entries, m), 0 for an empty row."""
    return reduced_rows(np.add, entries, indptr, 0.0)


def reduced_rows(
    reduce: np.ufunc, entries: NDArray[Any], indptr: NDArray[Any], empty: Any
) -> NDArray[Any]:
    """Reduce the entries of each row with a ufunc; the result has the type of `empty`."""
    results = np.full((len(indptr) - 1, *entries.shape[1:]), empty)
    filled = np.flatnonzero(np.diff(indptr))  # reduceat gives an empty row an entry of the next
    if len(filled):
        results[filled] = reduce.reduceat(entries, indptr[filled], axis=0)
    return results


def safe_divide(numerator: Any, denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Return the quotient of numbers or arrays, 0 where the denominator is not positive."""
    out = np.zeros(np.broadcast_shapes(np.shape(numerator), denominator.shape))
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def row_totals(X: Any) -> NDArray[np.float64]:
    """Return the sum of each row of a CSR matrix, computed in float64."""
    if isinstance(X, Bags):
        return np.asarray(X @ np.ones(X.shape[1]))
    sums = [np.zeros(0)]  # of a matrix without rows
    for _, part in row_blocks(X):
        entries = part.data.astype(np.float64, copy=False)
        sums.append(row_sums(entries, part.indptr))
    return np.concatenate(sums)


def log_damp(X: Any, scale: float, dtype: type[np.floating[Any]] = np.float64) -> Any:
    """Return ``scale * log1p(c / scale) / log(2)`` for each entry c of an ndarray or CSR matrix.

    An entry equal to `scale` stays as it is, and so does a matrix of 0 and `scale`. Index arrays
    are shared.
    """
    if not sp.issparse(X):
        return log_damp_entries(X, scale, dtype)
    return csr_of(log_damp_entries(X.data, scale, dtype), X.indices, X.indptr, X.shape[1])


def log_damp_entries(
    entries: NDArray[Any],
    scale: float,
    dtype: type[np.floating[Any]] = np.float64,
    out: NDArray[Any] | None = None,
) -> NDArray[np.floating[Any]]:
    """Return :func:`log_damp` of an array of any shape, in `out` if given.

    Few different integers are looked up in a table.
    """
    if out is None:
        out = np.empty(entries.shape, dtype)
    # 1) integers, first those that are all 1
    if entries.dtype.kind in "iu":
        are_ones = (entries[:_FIRST_FEW] == 1).all() and (entries == 1).all()
        if len(entries) and are_ones:
            of_zero_and_one = log_damp_entries(np.arange(2.0), scale)
            out.fill(of_zero_and_one[1])
            return out
        largest = int(entries.max(initial=0))
        if largest < entries.size:
            table = log_damp_entries(np.arange(largest + 1.0), scale)
            # "clip" skips the check of bounds.
            return np.take(table.astype(out.dtype), entries, out=out, mode="clip")
    # 2) other numbers, in double precision
    logs = out if out.dtype == np.float64 else np.empty(entries.shape)
    with np.errstate(over="ignore"):
        np.divide(entries, scale, out=logs, dtype=np.float64)
    np.log1p(logs, out=logs)
    if scale < 1.0:  # quotients may overflow
        infinite = np.flatnonzero(np.isinf(logs))
        logs.flat[infinite] = np.log(entries.flat[infinite]) - np.log(scale)
    logs *= _BITS_PER_NAT
    return np.multiply(scale, logs, out=out, casting="same_kind")
