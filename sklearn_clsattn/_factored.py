"""A CSR matrix that is stored as a product of two, until its entries are accessed.

A document's character n-grams are those of its words. Counted document by document, they would be
nine tenths of all entries. Instead, one factor has the documents' words (and pairs of words), and
the other the n-grams of each word. Multiplying by the matrix is multiplying by both factors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


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
    def of_rows(cls, vectors: NDArray[Any]) -> Self:
        """Return the vectors in rows, (n_tokens, d), of any length; a row of 0 means no vector."""
        lengths = np.linalg.norm(vectors, axis=1)
        tokens = np.flatnonzero(lengths)
        matrix = (vectors[tokens] / lengths[tokens, None]).astype(np.float32)
        return cls(tokens, matrix, len(vectors))

    def __getitem__(self, columns: NDArray[np.intp]) -> Self:
        """Return the vectors of some columns, which become 0, 1, 2, ..."""
        place = np.searchsorted(self.tokens, columns)
        known = place < len(self.tokens)
        known[known] = self.tokens[place[known]] == columns[known]
        return type(self)(np.flatnonzero(known), self.matrix[place[known]], len(columns))


class Factors(NamedTuple):
    """Two CSR matrices whose product is the matrix of documents.

    left : (n_documents, n_units), weights of units, such as words, in documents
    right : (n_units, n_columns), weights of columns, such as n-grams, in units
    units : (n_units,), names of the units
    """

    left: Any
    right: Any
    units: NDArray[np.object_]

    def __matmul__(self, matrix: NDArray[Any]) -> NDArray[Any]:
        return self.left @ (self.right @ matrix)


class FactoredMatrix(sp.csr_matrix):
    """A CSR matrix (n_documents, n_columns) that is a product of two, computed on demand.

    It has `factors` until its arrays are accessed, as scikit-learn's own estimators do. From then
    on it is an ordinary CSR matrix, because the arrays may be changed.
    """

    factors: Factors | None = None
    row_lengths: NDArray[np.intp] | None = None  # numbers of the rows' entries, once known
    token_vectors: TokenVectors | None = None

    @classmethod
    def of(
        cls,
        factors: Factors,
        row_lengths: NDArray[np.intp] | None = None,
        token_vectors: TokenVectors | None = None,
    ) -> Self:
        """Return the product of factors, with the numbers of its rows' entries if known."""
        made = cls((factors.left.shape[0], factors.right.shape[1]))
        del made.data, made.indices, made.indptr
        made.factors, made.row_lengths = factors, row_lengths
        made.token_vectors = token_vectors
        return made

    def __getattr__(self, name: str) -> Any:
        factors = self.__dict__.get("factors")
        if factors is None or name not in ("data", "indices", "indptr"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        product = factors.left @ factors.right
        product.sort_indices()
        self.data, self.indices, self.indptr = product.data, product.indices, product.indptr
        self.factors = None
        return self.__dict__[name]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the entries."""
        if self.factors is None:
            return self.data.dtype
        return np.result_type(self.factors.left.dtype, self.factors.right.dtype)

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        # Two sequences would select single entries.
        is_block = isinstance(rows, slice) or isinstance(columns, slice)
        if not (is_block and all(map(_is_selection, (rows, columns)))):
            return super().__getitem__(key)
        vectors = self.token_vectors
        if vectors is not None and not _is_everything(columns):
            vectors = vectors[np.arange(self.shape[1])[columns]]
        if self.factors is None:
            made = super().__getitem__(key)
            made.token_vectors = vectors
            return made
        factors, lengths = self.factors, self.row_lengths
        if not _is_everything(rows):
            lengths = None if lengths is None else lengths[rows]
            factors = factors._replace(left=factors.left[rows])
        if not _is_everything(columns):
            factors, lengths = factors._replace(right=factors.right[:, columns]), None
        return self.of(factors, lengths, vectors)

    def copy(self) -> Any:
        """Return a copy that shares the factors, which nothing changes."""
        if self.factors is None:
            return super().copy()
        return self.of(self.factors, self.row_lengths, self.token_vectors)

    def __repr__(self) -> str:
        return f"<FactoredMatrix of shape {self.shape} and dtype {str(self.dtype)!r}>"


def factors_of(X: Any) -> Factors | None:
    """Return the factors of a matrix, None for one without."""
    return X.factors if isinstance(X, FactoredMatrix) else None


def _is_selection(key: Any) -> bool:
    return isinstance(key, slice | list) or (isinstance(key, np.ndarray) and key.ndim == 1)


def _is_everything(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def n_stored(X: Any) -> int:
    """Return the number of stored entries of a sparse matrix, or of its two factors."""
    factors = factors_of(X)
    return int(X.nnz if factors is None else factors.left.nnz + factors.right.nnz)


def without_unused_columns(X: Any) -> tuple[Any, NDArray[np.intp]]:
    """Return a CSR matrix without its empty columns, and the columns kept.

    If all columns are empty, the first stays. A matrix with factors also loses the units that occur
    in no document.
    """
    if (factors := factors_of(X)) is None:
        used = np.bincount(X.indices, minlength=X.shape[1]) > 0
        if not used.any():
            used[:1] = True  # a matrix needs a column
        numbers = np.cumsum(used, dtype=X.indices.dtype) - 1
        columns = np.flatnonzero(used)
        shape = X.shape[0], len(columns)
        return sp.csr_array((X.data, numbers[X.indices], X.indptr), shape=shape), columns
    left, units = without_unused_columns(factors.left)
    right, columns = without_unused_columns(factors.right[units])
    used_factors = Factors(left, right, factors.units[units])
    return FactoredMatrix.of(used_factors, X.row_lengths), columns
