r"""What the tokens of a document say about its class, by the statistics of all other documents.

With totals :math:`p_{sk}` of token s in class k, smoothed, the token's log-odds for class k are
:math:`r_{sk} = \log p_{sk} - \log \sum_{j \ne k} p_{sj} - \text{const}_k`
(:func:`~sklearn_clsattn.importance.log_odds`). The document itself is in these totals, so that a
rare token always speaks for the classes of the documents it stands in. Without document i, which
weighs :math:`\omega_i` and is of class :math:`y_i`,

.. math::

    r^{(-i)}_{sk} = \log (p_{sk} - \delta_{isk})
        - \log \sum_{j \ne k} (p_{sj} - \delta_{isj}) - \text{const}_k, \qquad
    \delta_{isk} = \nu\, \omega_i [y_i = k]\, c_{is} / T_i

with the unit :math:`\nu` of the totals; the constants are those of all documents.

Documents with the same tokens and weights are left out together: a copy of a document tells its
class as well as the document itself does, and a weight of 2 stays the same as the document twice.
A document of weight 0 is in no total, and nothing is left out for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..importance import row_totals
from .statistics import TokenTotals

Array = NDArray[np.float64]

_BLOCK_NUMBERS = 500_000
_SMALLEST_TOTAL = 1e-9  # differences of totals are not exact


def same_documents(X: Any) -> NDArray[np.intp]:
    """Return a number per row of a canonical CSR matrix, the same for rows with equal entries.

    Numbers run from 0 in an order that depends on the rows' contents alone, not on their order and
    scale: that of two random projections, which no two different rows share but by a chance of
    about 2^-100.
    """
    random = np.random.default_rng(0)
    first, second = (X @ random.uniform(1.0, 2.0, (X.shape[1], 2))).T
    order = np.lexsort((second, first))
    new = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    groups = np.empty(X.shape[0], dtype=np.intp)
    groups[order] = np.concatenate([[0], np.cumsum(new)])[: X.shape[0]]
    return groups


def evidence(
    X: Any, codes: NDArray[np.intp], weights: Array, totals: TokenTotals, groups: NDArray[np.intp]
) -> Array:
    """Return every document's sum of weight times leave-one-out log-odds, (n_documents, n_outputs).

    `X` is a canonical CSR matrix, `codes` and `weights`, (n_documents,), are class codes and
    document weights, and `groups` those of :func:`same_documents`. The totals may be those of more
    documents than these, of which none is the same.
    """
    own = _own_weights(codes, weights, totals, groups)[groups] * (weights > 0)[:, None]
    if totals.n_outputs > 1:
        return _sums_of_blocks(X, own, totals)
    odds = totals.log_odds()
    sums = X @ odds
    # Where all copies are of one class, only its totals change: one logarithm an entry, not two.
    one_class = ~own.all(axis=1)
    sums[:, 0] += _change_of_own_class(X, own.argmax(axis=1), own.max(axis=1) * one_class, totals)
    mixed = np.flatnonzero(~one_class)
    sums[mixed] = _sums_of_blocks(X[mixed], own[mixed], totals)
    return np.asarray(sums, dtype=np.float64)


def _change_of_own_class(
    X: Any, codes: NDArray[np.intp], own_weights: Array, totals: TokenTotals
) -> Array:
    """Return how evidence of two classes changes without a document, (n_documents,).

    `own_weights`, (n_documents,), is what the document and its copies weigh, all of its class.
    """
    dtype = _precision(X, totals)
    of_class = totals.smoothed.T.astype(dtype, order="C")
    left_out = (own_weights * _unit_per_document(X, totals)).astype(dtype)
    changes = np.empty(X.shape[0])
    for rows, entries in _blocks(X, 1):
        lengths, tokens = np.diff(X.indptr[rows.start : rows.stop + 1]), X.indices[entries]
        kept = np.repeat(left_out[rows], lengths)
        kept *= X.data[entries]
        kept /= of_class[np.repeat(codes[rows], lengths), tokens]
        np.subtract(1.0, kept, out=kept)
        np.maximum(kept, _SMALLEST_TOTAL, out=kept)
        np.log(kept, out=kept)
        kept *= X.data[entries]
        changes[rows] = _row_sums(kept[:, None], X.indptr, rows)[:, 0]
    return np.where(codes == 1, changes, -changes)


def _sums_of_blocks(X: Any, own: Array, totals: TokenTotals) -> Array:
    sums = np.empty((X.shape[0], totals.n_outputs))
    for rows, entries, odds in _log_odds_without(X, own, totals):
        odds *= X.data[entries, None]
        sums[rows] = _row_sums(odds, X.indptr, rows)
    return sums


def leave_one_out_log_odds(
    X: Any, codes: NDArray[np.intp], weights: Array, totals: TokenTotals, groups: NDArray[np.intp]
) -> Iterator[tuple[slice, slice, Array]]:
    """Yield the rows, the entries and their leave-one-out log-odds, block after block.

    For the parameters of :func:`evidence`; the log-odds are (n_entries, n_outputs), an array of its
    own in every block.
    """
    own = _own_weights(codes, weights, totals, groups)[groups] * (weights > 0)[:, None]
    yield from _log_odds_without(X, own, totals)


def _log_odds_without(
    X: Any, own: Array, totals: TokenTotals
) -> Iterator[tuple[slice, slice, Array]]:
    """Yield blocks of :func:`leave_one_out_log_odds`.

    `own`, (n_documents, n_classes), is what each document and its copies weigh in every class.
    """
    dtype = _precision(X, totals)
    smoothed, rest = totals.smoothed.astype(dtype), totals.rest.astype(dtype)
    first = totals.n_classes - totals.n_outputs
    own = (own * _unit_per_document(X, totals)[:, None]).astype(dtype)
    for rows, entries in _blocks(X, totals.n_classes):
        tokens, lengths = X.indices[entries], np.diff(X.indptr[rows.start : rows.stop + 1])
        left_out = np.repeat(own[rows], lengths, axis=0)
        left_out *= X.data[entries, None]
        of_class = smoothed[tokens]
        of_class -= left_out
        np.maximum(of_class, _SMALLEST_TOTAL, out=of_class)
        left_out -= left_out.sum(axis=1, keepdims=True)
        left_out += rest[tokens]
        np.maximum(left_out, _SMALLEST_TOTAL, out=left_out)
        of_class /= left_out
        odds = np.log(of_class[:, first:])
        odds -= totals.prior_odds[first:].astype(dtype)
        yield rows, entries, odds


def _own_weights(
    codes: NDArray[np.intp], weights: Array, totals: TokenTotals, groups: NDArray[np.intp]
) -> Array:
    """Return the weight of every group's documents of every class, (n_groups, n_classes)."""
    n_classes, n_groups = totals.n_classes, int(groups.max(initial=-1)) + 1
    sums = np.bincount(groups * n_classes + codes, weights, n_groups * n_classes)
    return np.asarray(sums, dtype=np.float64).reshape(n_groups, n_classes)


def _precision(X: Any, totals: TokenTotals) -> type[np.floating[Any]]:
    """Return that of X: what a document adds to a total is small where precision is short."""
    within = totals.rest.max(initial=0.0) < 1e30 and totals.smoothed.max(initial=0.0) < 1e30
    return np.float32 if X.dtype == np.float32 and within else np.float64


def _unit_per_document(X: Any, totals: TokenTotals) -> Array:
    """Return what an entry of 1 adds to the totals for a document of weight 1, (n_documents,)."""
    sums = row_totals(X)
    return np.divide(totals.unit, sums, out=np.zeros(len(sums)), where=sums > 0)


def _blocks(X: Any, numbers_per_entry: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows and the entries of blocks of documents."""
    size = max(_BLOCK_NUMBERS // numbers_per_entry, 1)
    bounds = np.searchsorted(X.indptr, np.arange(0, X.indptr[-1] + size, size))
    for start, stop in pairwise(np.unique([0, *bounds.clip(max=X.shape[0]), X.shape[0]]).tolist()):
        yield slice(start, stop), slice(int(X.indptr[start]), int(X.indptr[stop]))


def _row_sums(entries: NDArray[Any], indptr: NDArray[Any], rows: slice) -> NDArray[Any]:
    """Return the sums of the rows of a block of entries, (n_entries, m), 0 for an empty row."""
    starts = indptr[rows.start : rows.stop + 1] - indptr[rows.start]
    sums = np.zeros((rows.stop - rows.start, entries.shape[1]))
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        sums[filled] = np.add.reduceat(entries, starts[filled], axis=0)
    return sums
