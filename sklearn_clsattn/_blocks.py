"""Blocks of a matrix's rows: small arrays are made and read within the processor's caches."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

BLOCK_ENTRIES = 250_000
_EMPTY = sparse.csr_array((0, 0))


def row_blocks(X: Any, n_entries: int = BLOCK_ENTRIES) -> Iterator[tuple[slice, Any]]:
    """Yield slices of the rows of a CSR matrix and CSR arrays of these rows, which share memory.

    A block has about `n_entries` entries, or else one row. Without rows there is no block.
    """
    indptr = X.indptr
    bounds = np.searchsorted(indptr, range(n_entries, indptr[-1], n_entries)).tolist()
    for start, stop in pairwise(sorted({0, *bounds, X.shape[0]})):
        entries = slice(int(indptr[start]), int(indptr[stop]))
        starts = indptr[start : stop + 1] - indptr[start]
        part = csr_of(X.data[entries], X.indices[entries], starts, X.shape[1])
        yield slice(start, stop), part


def csr_of(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_columns: int
) -> sparse.csr_array:
    """Return the CSR array of these arrays, unchecked, and no copies even if they are views."""
    X = copy(_EMPTY)  # to construct one takes ten times as long
    X._shape = len(indptr) - 1, n_columns
    X.data, X.indices, X.indptr = data, indices, indptr
    return X


def row_sums(entries: NDArray[Any], indptr: NDArray[Any]) -> NDArray[np.float64]:
    """Return the sums of rows of entries, (n_entries,) or (n_entries, m), 0 for an empty row."""
    sums = np.zeros((len(indptr) - 1, *entries.shape[1:]))
    filled = np.flatnonzero(np.diff(indptr))
    if len(filled):
        sums[filled] = np.add.reduceat(entries, indptr[filled], axis=0)
    return sums
