"""Some documents of a corpus before training, and what is computed of them: functions of a chunk.

Functions called ``with_...`` return another chunk; the others return numbers. A corpus in memory is
one chunk, one on Dask has many (:mod:`.corpus`). In training, chunks become shards
(:mod:`.shard`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._matrices import csr_of, log_damp_entries, row_totals
from .._targets import Targets
from .._types import Array, Numbers
from .fitted import count_selected
from .leave_one_out import projections
from .statistics import CorpusStatistics, row_lengths


@dataclass(frozen=True)
class Chunk:
    """Some documents of a corpus.

    X : CSR (n_documents, n_tokens), positive token weights, every entry stored once; or bags
    targets : of the documents, among their own classes until all chunks' are known
    weights : (n_documents,), document weights, class weights included once these are known
    number : which chunk of the corpus this is, from 0
    transposed : the transpose of `X` as CSR, if there is one already
    """

    X: Any
    targets: Targets
    weights: Array
    number: int = 0
    transposed: Any = None


def with_classes(chunk: Chunk, classes: NDArray[Any]) -> Chunk:
    """Set the targets among the classes of all chunks."""
    return replace(chunk, targets=chunk.targets.among(classes))


def class_weights(chunk: Chunk) -> Array:
    """Return document weights by class, (n_classes,), and their total, (n_classes + 1,) in all."""
    by_class = chunk.targets.class_sums(chunk.weights)
    return np.append(by_class, chunk.weights.sum())


def with_class_factors(chunk: Chunk, factors: Array) -> Chunk:
    """Multiply the documents' weights by factors of their classes, (n_classes,)."""
    targets, weights = chunk.targets.weighted(factors, chunk.weights)
    return replace(chunk, targets=targets, weights=weights)


def entry_sums(chunk: Chunk) -> Array:
    """Return the weighted sums of the entries and of their numbers, (2,)."""
    sum_of_entries = row_totals(chunk.X) @ chunk.weights
    n_entries = row_lengths(chunk.X) @ chunk.weights
    return np.array([sum_of_entries, n_entries])


def with_damped_entries(
    chunk: Chunk, entry_scale: float, entry_type: type[np.floating[Any]]
) -> Chunk:
    """Damp the entries, whose unit is `entry_scale`, in a precision."""

    def damped(matrix: Any) -> Any:
        entries = log_damp_entries(matrix.data, entry_scale, entry_type)
        return with_entries(matrix, entries)

    transposed = None if chunk.transposed is None else damped(chunk.transposed)
    return replace(chunk, X=damped(chunk.X), transposed=transposed)


def statistics_of(chunk: Chunk) -> CorpusStatistics:
    """Return the sums over the documents before training."""
    return CorpusStatistics.from_documents(chunk.X, chunk.targets, chunk.weights)


def fingerprints(chunk: Chunk, directions: Array) -> tuple[Array, Array, Targets, Array]:
    """Return two numbers that identify equal documents, (n_documents,), targets and weights.

    They are projections on `directions`, (2, n_tokens).
    """
    first, second = projections(chunk.X, directions)
    return first, second, chunk.targets, chunk.weights


def rows_of(chunk: Chunk, starts: Numbers, rows: Numbers) -> Any:
    """Return the CSR matrix of some documents of the corpus that are in this chunk.

    `starts` are the numbers of the chunks' first documents, `rows` those of the documents, sorted.
    """
    here = rows[rows_within(chunk, starts, rows)]
    return chunk.X[here - starts[chunk.number]]


def rows_within(chunk: Chunk, starts: Numbers, rows: Numbers) -> slice:
    """Return the slice of the sorted numbers of documents that are in the chunk."""
    first = starts[chunk.number]
    last = first + chunk.X.shape[0]
    return slice(*np.searchsorted(rows, [first, last]))


def selections(chunk: Chunk, scores: Array) -> Numbers:
    """Return the number of documents of positive weight that select each token, (n_tokens,)."""
    is_present = chunk.weights > 0
    X = chunk.X if is_present.all() else chunk.X[is_present]
    return count_selected(scores, X)


def with_entries(X: Any, entries: NDArray[Any]) -> Any:
    """Return a CSR matrix with other entries in the same places."""
    return csr_of(entries, X.indices, X.indptr, X.shape[1])
