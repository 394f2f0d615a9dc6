"""Bags of documents: weights of tokens in documents, perhaps as a product of two matrices.

A document's character n-grams are those of its words. Counted document by document, they would be
nine tenths of all entries. Instead, one matrix has the documents' units (words and word n-grams),
and another the tokens of each unit. Multiplying by the bags is multiplying by both. Where units are
tokens, as in an ordinary document-term matrix, there is no second matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ._matrices import (
    BLOCK_ENTRIES,
    csr_of,
    document_frequencies,
    drop_empty_columns,
    log_damp,
    row_blocks,
    row_sums,
    sums_by_class,
)
from ._types import Array, Numbers

_ENOUGH_ROWS = 2_000  # that say how many entries the rows of a product have


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of some of the tokens, which are columns of a matrix.

    tokens : (n_vectors,), numbers of the columns, ascending
    matrix : (n_vectors, d), of length 1
    n_tokens : number of columns, with and without vectors
    """

    tokens: Numbers
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

    def __getitem__(self, columns: Numbers) -> Self:
        """Return the vectors of some columns, which become 0, 1, 2, ..."""
        has_vector = np.isin(columns, self.tokens)
        rows = np.searchsorted(self.tokens, columns[has_vector])
        new_numbers = np.flatnonzero(has_vector)
        return type(self)(new_numbers, self.matrix[rows], len(columns))


@dataclass(frozen=True)
class TrustedTokens:
    """What people say of the tokens.

    labels : those of classes that tokens speak for
    numbers : (n_tokens,), of each token's label, -1 without one
    factors : (n_tokens,), by which the evidence of the documents for a token is multiplied
    spelled : CSR (n_spoken_for, n_tokens), the weights of each token that has a label, and of its
        character n-grams, where it occurs
    """

    labels: list[Any]
    numbers: Numbers
    factors: Array
    spelled: Any

    @property
    def spoken_for(self) -> Numbers:
        """The tokens that have a label, ascending."""
        return np.flatnonzero(self.numbers >= 0)

    def __getitem__(self, columns: Numbers) -> Self:
        """Return the same for some columns, renumbered from 0, among them all with a label."""
        return replace(
            self,
            numbers=self.numbers[columns],
            factors=self.factors[columns],
            spelled=self.spelled[:, columns],
        )


@dataclass(eq=False)
class Bags:
    """Bags of documents, of shape (n_documents, n_tokens).

    units : CSR (n_documents, n_units), positive weights of units in documents
    tokens : CSR (n_units, n_tokens), weights of tokens in units; None where units are tokens
    names : (n_units,), of the units where these are not tokens
    vectors : of the tokens, if there are any
    trusted : what people say of the tokens, if they do
    is_damped : whether the vectorizer has damped the counts of repeated words
    known_lengths : (n_documents,), of :meth:`estimated_lengths`, once they are known
    """

    units: Any
    tokens: Any = None
    names: NDArray[np.object_] | None = None
    vectors: TokenVectors | None = None
    trusted: TrustedTokens | None = None
    is_damped: bool = False
    known_lengths: NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and of tokens."""
        last = self.units if self.tokens is None else self.tokens
        return self.units.shape[0], last.shape[1]

    def __len__(self) -> int:
        return int(self.units.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the entries."""
        if self.tokens is None:
            return np.dtype(self.units.dtype)
        return np.result_type(self.units.dtype, self.tokens.dtype)

    @property
    def n_stored(self) -> int:
        """The number of stored entries."""
        n_of_tokens = 0 if self.tokens is None else self.tokens.nnz
        return int(self.units.nnz + n_of_tokens)

    @property
    def largest_entry(self) -> float:
        """The largest entry, or an upper bound of it."""
        largest = float(self.units.data.max(initial=0))
        if self.tokens is None:
            return largest
        return largest * float(self.tokens.data.max(initial=0))

    def dot(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the sums over the tokens of each document, (n_documents, ...)."""
        by_unit = matrix if self.tokens is None else self.tokens @ matrix
        sums = [self.units[:0] @ by_unit]
        for _, part in row_blocks(self.units):  # whose entries are cast, if they are integers
            sums.append(part @ by_unit)
        return np.concatenate(sums)

    def totals(self) -> Array:
        """Return the total weight of each document, (n_documents,), in double precision."""
        if self.tokens is not None:
            return self.dot(np.ones(self.shape[1]))
        sums = [np.zeros(0)]  # without documents
        for _, part in row_blocks(self.units):
            entries = part.data.astype(np.float64, copy=False)
            sums.append(row_sums(entries, part.indptr))
        return np.concatenate(sums)

    def class_totals(self, by_class: NDArray[Any], n_classes: int, weights: Array) -> Array:
        """Return the weighted sums over the documents of each class, (n_classes, n_tokens).

        `by_class` are class codes, (n_documents,), or shares, (n_documents, n_classes).
        """
        totals = sums_by_class(self.units, by_class, n_classes, weights)
        if self.tokens is None:
            return totals
        by_token = self.tokens.T @ totals.T
        return np.ascontiguousarray(by_token.T)

    def __getitem__(self, rows: slice | Numbers) -> Bags:
        """Return the bags of some documents."""
        lengths = None if self.known_lengths is None else self.known_lengths[rows]
        return replace(self, units=self.units[rows], known_lengths=lengths)

    def columns(self, columns: Numbers) -> Bags:
        """Return some of the tokens, in this order, without vectors and what people say."""
        if self.tokens is None:
            return Bags(self.units[:, columns], is_damped=self.is_damped)
        tokens = self.tokens[:, columns]
        return replace(self, tokens=tokens, vectors=None, trusted=None, known_lengths=None)

    def without_unused_columns(self) -> tuple[Bags, Numbers]:
        """Return the bags of the tokens and units that any document has, and these tokens.

        Tokens that speak for a class are kept, too. If there are none at all, the first stays.
        """
        trusted = self.trusted
        spoken_for = None if trusted is None else trusted.spoken_for
        if self.tokens is None:
            units, columns = drop_empty_columns(self.units, spoken_for)
            some = replace(self, units=units, vectors=None)
        else:
            units, used = drop_empty_columns(self.units)
            tokens, columns = drop_empty_columns(self.tokens[used], spoken_for)
            names = None if self.names is None else self.names[used]
            some = replace(self, units=units, tokens=tokens, names=names, vectors=None)
        some.trusted = None if trusted is None else trusted[columns]
        return some, columns

    def matrix(self) -> Any:
        """Return the bags as one CSR matrix, whose rows are sorted by column."""
        matrix = self.block_matrix(self.units)
        return matrix if matrix.has_sorted_indices else matrix.sorted_indices()

    def unit_blocks(self, n_entries: int = BLOCK_ENTRIES) -> list[tuple[slice, Any]]:
        """Return slices of documents and their units, whose tokens have some `n_entries` entries.

        The tokens of a block are its units times `tokens`, if there are any.
        """
        if self.tokens is not None:
            # Each entry becomes as many as its unit has.
            n_occurrences = document_frequencies(self.units)
            unit_sizes = np.diff(self.tokens.indptr)
            n_products = int(n_occurrences @ unit_sizes)
            n_entries = int(n_entries * self.units.nnz / max(n_products, 1))
        return list(row_blocks(self.units, max(1, n_entries)))

    def block_matrix(self, units: Any) -> Any:
        """Return the tokens of a block of units, as CSR."""
        return units if self.tokens is None else units @ self.tokens

    def damped(self, scale: float, dtype: type[np.floating[Any]]) -> Bags:
        """Return the bags with damped entries, whose unit is `scale`, in a precision.

        Entries in several units cannot be damped one by one.
        """
        matrix = self.block_matrix(self.units)
        entries = log_damp(matrix.data, scale, dtype)
        units = csr_of(entries, matrix.indices, matrix.indptr, matrix.shape[1])
        return Bags(units, vectors=self.vectors, is_damped=True)

    def estimated_lengths(self) -> NDArray[Any]:
        """Return the number of tokens of each document, (n_documents,).

        Of a product with many documents they are estimates: the number of entries before equal
        tokens are added up, times the share of these that is left in some documents.
        """
        if self.known_lengths is None:
            self.known_lengths = self._lengths()
        return self.known_lengths

    def _lengths(self) -> NDArray[Any]:
        """Return :meth:`estimated_lengths` where they are not known."""
        if self.tokens is None:
            return np.diff(self.units.indptr)
        # 1) the number of tokens of all units of each document, before equal ones are added up
        unit_sizes = np.diff(self.tokens.indptr).astype(np.float64)
        bounds = row_sums(unit_sizes[self.units.indices], self.units.indptr)
        # 2) documents that stand for all, chosen by these numbers, so that their order is no matter
        one_in = max(1, len(self) // _ENOUGH_ROWS)
        sampled = np.flatnonzero(bounds % one_in == 0)
        # 3) the number of different tokens of these
        some = self[sampled]
        lengths = [np.zeros(0, np.intp)]
        for _, units in some.unit_blocks():
            different_tokens = some.block_matrix(units)
            lengths.append(np.diff(different_tokens.indptr))
        if one_in == 1:
            return np.concatenate(lengths)
        # 4) the same share of the bound for all
        total_bound = float(bounds[sampled].sum())
        n_different = sum(map(np.sum, lengths))
        share = n_different / total_bound if total_bound else 1.0
        return bounds * share
