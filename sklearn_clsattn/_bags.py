"""Bags of documents whose words have character n-grams, stored as a product of two matrices.

A document's character n-grams are those of its words. Counted document by document, they would be
nine tenths of all entries. Instead, one matrix has the documents' units (words and word n-grams),
and the other the columns of each unit. Multiplying by the bags is multiplying by both.

Bags go from the vectorizer of a :class:`~sklearn_clsattn.TextClassifier` to its classifier and
never leave the package: a vectorizer's public methods return ordinary sparse matrices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_FEW_ENTRIES = 8  # with more columns than so many times the entries, entries are sorted


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of some of the tokens, which are columns of a matrix.

    tokens : (n_vectors,), numbers of the columns, ascending
    matrix : (n_vectors, d), of length 1
    n_tokens : number of columns, with and without vectors
    """

    tokens: NDArray[np.intp]
    matrix: NDArray[np.float32]
    n_tokens: int

    @classmethod
    def from_rows(cls, vectors: NDArray[Any]) -> Self:
        """Return the vectors in rows, (n_tokens, d), of any length; a row of 0 means no vector."""
        lengths = np.linalg.norm(vectors, axis=1)
        tokens = np.flatnonzero(lengths)
        directions = vectors[tokens] / lengths[tokens, None]
        return cls(tokens, directions.astype(np.float32), len(vectors))

    def rows(self) -> NDArray[np.float32]:
        """Return the vectors of all tokens, (n_tokens, d), 0 for a token without one."""
        rows = np.zeros((self.n_tokens, self.matrix.shape[1]), dtype=np.float32)
        rows[self.tokens] = self.matrix
        return rows

    def __getitem__(self, columns: NDArray[np.intp]) -> Self:
        """Return the vectors of some columns, which become 0, 1, 2, ..."""
        has_vector = np.isin(columns, self.tokens)
        rows = np.searchsorted(self.tokens, columns[has_vector])
        return type(self)(np.flatnonzero(has_vector), self.matrix[rows], len(columns))


@dataclass(eq=False)
class Bags:
    """Bags of documents: the product of two CSR matrices, and the vectors of its columns.

    left : (n_documents, n_units), weights of units, such as words, in documents
    right : (n_units, n_columns), weights of columns, such as n-grams, in units
    units : (n_units,), names of the units
    vectors : of the columns, if there are any
    row_lengths : (n_documents,), numbers of entries of the product's rows, once known, or estimates
    """

    left: sp.csr_array
    right: sp.csr_array
    units: NDArray[np.object_]
    vectors: TokenVectors | None = None
    row_lengths: NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the product, (n_documents, n_columns)."""
        return self.left.shape[0], self.right.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the product's entries."""
        return np.result_type(self.left.dtype, self.right.dtype)

    def __matmul__(self, matrix: NDArray[Any]) -> NDArray[Any]:
        return self.left @ (self.right @ matrix)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Bags:
        """Return the bags of some documents."""
        selected = replace(self, left=self.left[rows])
        if self.row_lengths is not None:
            selected.row_lengths = self.row_lengths[rows]
        return selected

    def split_single_columns(self) -> tuple[NDArray[Any], NDArray[Any], Bags]:
        """Return a column of each unit that no other has, its weight, and the bags without these.

        Columns and weights are (n_units,), both 0 for a unit without such a column.
        """
        right = self.right
        n_units, n_columns = right.shape
        n_units_of_columns = np.bincount(right.indices, minlength=n_columns)
        is_single = n_units_of_columns[right.indices] == 1
        # 1) the first such entry of each unit
        singles = np.flatnonzero(is_single)
        units = np.repeat(np.arange(n_units), np.diff(right.indptr))[singles]
        is_first = np.diff(units, prepend=-1) > 0
        units = units[is_first]
        entries = singles[is_first]
        columns = np.zeros(n_units, dtype=right.indices.dtype)
        columns[units] = right.indices[entries]
        weights = np.zeros(n_units, dtype=right.dtype)
        weights[units] = right.data[entries]
        # 2) all other entries
        is_other = np.ones(right.nnz, dtype=bool)
        is_other[entries] = False
        n_others_before = np.append(0, np.cumsum(is_other))
        indptr = n_others_before[right.indptr].astype(right.indptr.dtype)
        arrays = right.data[is_other], right.indices[is_other], indptr
        others = sp.csr_array(arrays, shape=right.shape)
        return columns, weights, Bags(self.left, others, self.units)

    def multiplied(self) -> sp.csr_array:
        """Return the product, with the entries of each row sorted by column."""
        product = sp.csr_array(self.left @ self.right)
        product.sort_indices()
        return product


def multiplied(X: Any) -> Any:
    """Return bags as a CSR array, and an ndarray or a sparse matrix as it is."""
    return X.multiplied() if isinstance(X, Bags) else X


def is_sparse(X: Any) -> bool:
    """Return whether documents are bags or a sparse matrix, and no ndarray."""
    return isinstance(X, Bags) or sp.issparse(X)


def n_stored(X: Any) -> int:
    """Return the number of stored entries of a sparse matrix, or of the two matrices of bags."""
    if isinstance(X, Bags):
        return int(X.left.nnz + X.right.nnz)
    return int(X.nnz)


def with_columns_of(X: Any, columns: NDArray[np.intp]) -> Any:
    """Return some of the columns of bags or a CSR matrix, in this order."""
    if not isinstance(X, Bags):
        return X[:, columns]
    # Vectors and row lengths would be those of all columns.
    return Bags(X.left, X.right[:, columns], X.units)


def without_unused_columns(X: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return bags or a CSR matrix without its empty columns, and the columns kept.

    If all columns are empty, the first stays. Bags also lose the units that occur in no document.
    """
    if isinstance(X, Bags):
        left, units = without_unused_columns(X.left)
        right, columns = without_unused_columns(X.right[units])
        return Bags(left, right, X.units[units], row_lengths=X.row_lengths), columns
    # 1) the columns to keep
    columns = _used_columns(X)
    # 2) the same entries, in columns numbered anew
    new_numbers = np.empty(X.shape[1], dtype=X.indices.dtype)
    new_numbers[columns] = np.arange(len(columns))
    arrays = (X.data, new_numbers[X.indices], X.indptr)
    kept = sp.csr_array(arrays, shape=(X.shape[0], len(columns)))
    return kept, columns


def _used_columns(X: Any) -> NDArray[np.intp]:
    """Return the columns of a CSR matrix that have entries, (n_used,), ascending; at least one."""
    if not X.nnz:
        return np.arange(min(1, X.shape[1]))
    if _FEW_ENTRIES * X.nnz < X.shape[1]:  # a sort takes less time than a pass over all columns
        return np.unique(X.indices).astype(np.intp)
    return np.flatnonzero(np.bincount(X.indices))
