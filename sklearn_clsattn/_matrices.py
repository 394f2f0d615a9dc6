"""Document-term matrices: conversions, blocks of rows, and damping of counts."""

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import get_config

from ._threads import in_threads
from ._types import Array, Numbers

_BITS_PER_NAT = 1.0 / np.log(2.0)
_FEW_VALUES = 8  # with more columns than this many times the values, only those in use are numbered
BLOCK_ENTRIES = 250_000  # small arrays stay in the processor's caches
_PATTERN_ENTRIES = 1_000_000  # of a block that is sorted by column, or as many as columns
_FEW_ENTRIES = 8  # with more columns than this many times the entries, entries are sorted
_FEW_CLASSES = 6  # up to here, multiplying by zeros costs less than adding entry by entry
_TOTALS_ENTRIES = 500_000  # or as many as there are totals, which are added up for each block
_EMPTY = sp.csr_array((0, 0))


def native(X: Any) -> Any:
    """Return an ndarray or sparse matrix with its numbers in the machine's byte order."""
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def as_csr(X: Any) -> Any:
    """Return an ndarray or sparse matrix as CSR, each entry stored once and not 0, in any order.

    Numbers are in the machine's byte order; it copies only if necessary.
    """
    X = native(X)
    if not sp.issparse(X):
        if X.dtype == np.float16:  # SciPy has no sparse arrays of this type
            X = X.astype(np.float32)
        X = sp.csr_array(X)
    X = X.tocsr()
    if not X.has_canonical_format and _may_have_duplicates(X):
        # Sums of duplicates could overflow small integers.
        X = X.copy() if X.dtype.kind == "f" else X.astype(np.int64)
        X.sum_duplicates()
    has_zeros = not X.data.min(initial=1) > 0
    if has_zeros or len(X.data) > X.nnz:  # arrays may be longer than what is in use
        X = X.copy()
        X.eliminate_zeros()
    return X


def _may_have_duplicates(X: Any) -> bool:
    """Return whether an entry of a CSR matrix may be stored several times."""
    n_columns = X.shape[1]
    if X.indptr[-1] < n_columns:  # a sort takes less time than a pass over all columns
        return True

    def has_duplicates(block: tuple[slice, Any]) -> bool:
        # Duplicates are neighbours by column, a conversion that is faster than a sort of rows.
        _, part = block
        ones = np.ones(len(part.indices), dtype=np.int8)
        pattern = csr_of(ones, part.indices, part.indptr, n_columns)
        return not pattern.tocsc().has_canonical_format

    n_entries = max(_PATTERN_ENTRIES, n_columns)
    return any(in_threads(has_duplicates, row_blocks(X, n_entries)))


def row_blocks(X: Any, n_entries: int = BLOCK_ENTRIES) -> Iterator[tuple[slice, Any]]:
    """Yield slices of the rows of a CSR matrix and CSR arrays of these rows, which share memory.

    A block has about `n_entries` entries, and at least one row.
    """
    # 1) the rows in which blocks begin
    indptr = X.indptr
    targets = range(n_entries, indptr[-1], n_entries)
    inner_bounds = np.searchsorted(indptr, targets).tolist()
    bounds = sorted({0, *inner_bounds, X.shape[0]})
    # 2) the blocks
    for start, stop in pairwise(bounds):
        entries = slice(int(indptr[start]), int(indptr[stop]))
        starts = indptr[start : stop + 1] - indptr[start]
        part = csr_of(X.data[entries], X.indices[entries], starts, X.shape[1])
        yield slice(start, stop), part


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
    by_place = sp.coo_array((values, (rows, columns)), shape=shape)
    return by_place.tocsc().tocsr()


def row_sums(entries: NDArray[Any], indptr: NDArray[Any]) -> Array:
    """Return the sums of rows of entries, (n_entries,) or (n_entries, m), 0 for an empty row."""
    return reduced_rows(np.add, entries, indptr, 0.0)


def reduced_rows(
    reduce: np.ufunc, entries: NDArray[Any], indptr: NDArray[Any], empty: Any
) -> NDArray[Any]:
    """Reduce the entries of each row with a ufunc; the result has the type of `empty`."""
    n_rows = len(indptr) - 1
    results = np.full((n_rows, *entries.shape[1:]), empty)
    filled = np.flatnonzero(np.diff(indptr))  # reduceat gives an empty row an entry of the next
    if len(filled):
        results[filled] = reduce.reduceat(entries, indptr[filled], axis=0)
    return results


def safe_divide(numerator: Any, denominator: NDArray[Any]) -> Array:
    """Return the quotient of numbers or arrays, 0 where the denominator is not positive."""
    shape = np.broadcast_shapes(np.shape(numerator), denominator.shape)
    out = np.zeros(shape)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)


def log_damp(
    entries: NDArray[Any],
    scale: float,
    dtype: type[np.floating[Any]] = np.float64,
) -> NDArray[np.floating[Any]]:
    """Return ``scale * log1p(c / scale) / log(2)`` for each entry c, in a precision.

    Entries of 0 and of `scale` stay as they are. Few different integers are looked up in a table.
    """
    out = np.empty(entries.shape, dtype)
    # 1) integers
    if entries.dtype.kind in "iu":
        largest = int(entries.max(initial=0))
        if largest < entries.size:
            integers = np.arange(largest + 1.0)
            table = log_damp(integers, scale).astype(out.dtype)
            # "clip" skips the check of bounds.
            return np.take(table, entries, out=out, mode="clip")
    # 2) other numbers, in double precision
    logs = out if out.dtype == np.float64 else np.empty(entries.shape)
    np.divide(entries, scale, out=logs, dtype=np.float64)
    np.log1p(logs, out=logs)
    logs *= _BITS_PER_NAT
    return np.multiply(scale, logs, out=out, casting="same_kind")


def sums_by_class(X: Any, by_class: NDArray[Any], n_classes: int, weights: Array) -> Array:
    """Return the weighted sums of a CSR matrix by class, (n_classes, n_columns), in float64.

    `by_class` are class codes, (n_rows,), or shares, (n_rows, n_classes).
    """
    n_rows, n_columns = X.shape
    # 1) of shares: a product of sparse matrices
    if by_class.ndim == 2:
        weighted_shares = sp.csr_array(by_class * weights[:, None])
        sums_of_shares = (weighted_shares.T @ X).toarray()
        return np.ascontiguousarray(sums_of_shares)
    # 2) of codes of few classes: a product with a column of weights for each class
    n_entries = max(_TOTALS_ENTRIES, n_classes * n_columns)
    blocks = row_blocks(X, n_entries)
    if n_classes <= _FEW_CLASSES:
        one_hot = np.zeros((n_rows, n_classes))
        one_hot[np.arange(n_rows), by_class] = weights
        sums = np.zeros((n_columns, n_classes))
        for rows, part in blocks:
            sums += part.T @ one_hot[rows]
        return np.ascontiguousarray(sums.T)
    # 3) of many classes, entry by entry: a product would cost n_classes additions for each
    totals = np.zeros(n_classes * n_columns)
    for rows, part in blocks:
        lengths = np.diff(part.indptr)
        first_cells = by_class[rows].astype(np.intp) * n_columns
        cells = np.repeat(first_cells, lengths)
        cells += part.indices
        amounts = np.repeat(weights[rows], lengths)
        amounts *= part.data
        totals += np.bincount(cells, amounts, len(totals))
    return totals.reshape(n_classes, n_columns)


def document_frequencies(X: Any) -> Numbers:
    """Return the number of rows of a CSR matrix with an entry in each column, (n_columns,)."""
    n_columns = X.shape[1]
    frequencies = np.zeros(n_columns, dtype=np.intp)
    for _, part in row_blocks(X, max(BLOCK_ENTRIES, n_columns)):
        frequencies += np.bincount(part.indices, minlength=n_columns)
    return frequencies


def drop_empty_columns(X: Any, others: Numbers | None = None) -> tuple[Any, Numbers]:
    """Return a CSR matrix without its empty columns, and the columns kept, at least one.

    Some `others` are kept, too.
    """
    columns = _used_columns(X)
    if others is not None:
        columns = np.union1d(columns, others)
    indices = X.indices
    if len(columns) < X.shape[1]:
        new_numbers = np.empty(X.shape[1], dtype=indices.dtype)
        new_numbers[columns] = np.arange(len(columns))
        indices = new_numbers[indices]
    kept = csr_of(X.data, indices, X.indptr, len(columns))
    return kept, columns


def _used_columns(X: Any) -> Numbers:
    """Return the columns of a CSR matrix that have entries, (n_used,), ascending; at least one."""
    if not X.nnz:
        return np.arange(min(1, X.shape[1]))
    if _FEW_ENTRIES * X.nnz < X.shape[1]:  # a sort takes less time than a pass over all columns
        return np.unique(X.indices).astype(np.intp)
    return np.flatnonzero(document_frequencies(X))
