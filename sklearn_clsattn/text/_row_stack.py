"""A sparse matrix that grows by rows, in place."""

from typing import Any

import numpy as np
import scipy.sparse as sp


class RowStack:
    """A CSR matrix that grows by rows: a list of all parts would take as much memory again."""

    def __init__(self, shape: tuple[int, int], dtype: Any) -> None:
        self.shape = shape
        self._indices, self._data = np.empty(0, dtype=np.int32), np.empty(0, dtype=dtype)
        self._indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        self._n_rows = 0

    def append(self, rows: Any) -> None:
        """Add the rows of a CSR matrix."""
        start = int(self._indptr[self._n_rows])
        here = slice(start, start + rows.nnz)
        n_rows = self._n_rows + rows.shape[0]
        if here.stop > len(self._indices):  # room for as many in what is left, and some more
            self._resize(int(1.05 * here.stop * self.shape[0] / n_rows))
        self._indices[here], self._data[here] = rows.indices, rows.data
        self._indptr[self._n_rows + 1 : n_rows + 1] = start + rows.indptr[1:].astype(np.int64)
        self._n_rows = n_rows

    def matrix(self) -> sp.csr_matrix:
        """Return the matrix, once all rows are added."""
        self._resize(int(self._indptr[-1]))
        return sp.csr_matrix((self._data, self._indices, self._indptr), shape=self.shape)

    def _resize(self, n_entries: int) -> None:
        self._indices.resize(n_entries, refcheck=False)
        self._data.resize(n_entries, refcheck=False)
