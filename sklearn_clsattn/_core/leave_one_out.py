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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._bags import Bags
from .._documents import BLOCK_ENTRIES, divided, row_blocks, row_sums, row_totals
from .._types import Array, Numbers
from .statistics import TokenTotals

_SMALLEST_TOTAL = 1e-9  # differences of totals are not exact
_ROUNDING = 1e-12  # of sums that are added up in another order


def same_documents(X: Any) -> Numbers:
    """Return a number per row of a canonical CSR matrix, the same for rows with equal entries."""
    return numbered(*projections(X, random_directions(X.shape[1])))


def projections(X: Any, directions: Array) -> tuple[Array, Array]:
    """Return the products of the rows of a CSR matrix with two directions, (2, n_tokens)."""
    from .backend import in_threads

    def of_block(block: tuple[slice, Any]) -> Array:
        return np.stack([block[1] @ direction for direction in directions])

    if isinstance(X, Bags):
        X, directions = X.left, (X.right @ directions.T).T
    first, second = np.hstack([np.empty((2, 0)), *in_threads(of_block, row_blocks(X))])
    return first, second


def numbered(first: Array, second: Array) -> Numbers:
    """Return a number per document, the same for those of equal :func:`projections`.

    Numbers run from 0 in the order of the first, which depends on a document's contents alone, not
    on the order of documents and their scale. Projections that differ by less than rounding count
    as equal.
    """
    return _numbers(second, _numbers(first, np.zeros(len(first), dtype=np.intp)))


def _numbers(projections: Array, groups: Numbers) -> Numbers:
    """Number documents by their projections within groups; all are (n_documents,)."""
    order = np.lexsort((projections, groups)) if groups.any() else np.argsort(projections)
    ascending = projections[order]
    new = np.abs(np.diff(ascending)) > _ROUNDING * ascending[1:]
    new |= np.diff(groups[order]) != 0
    numbers = np.empty(len(order), dtype=np.intp)
    numbers[order] = np.concatenate([[0], np.cumsum(new)])[: len(order)]
    return numbers


def random_directions(n_tokens: int) -> Array:
    """Return two directions that rows are projected on, (2, n_tokens)."""
    return np.ascontiguousarray(np.random.default_rng(0).uniform(1, 2, (n_tokens, 2)).T)


def directions_by_content(shares: Array) -> Array:
    """Return :func:`random_directions` of which the first does not depend on the tokens' order.

    Nor on that of the classes: it is made of each token's `shares`, (n_classes, n_tokens).
    """
    directions = random_directions(shares.shape[1])
    # 1) a number for each token, by how often it is in any classes
    content = shares.sum(axis=0) + np.sqrt(np.square(shares).sum(axis=0))
    # 2) a number for each class, by its tokens, which stands for its name
    class_numbers = _scattered(shares @ _scattered(content))
    # 3) a number for each token, by the classes it is in
    directions[0] = _scattered(content + class_numbers @ shares)
    return directions


def _scattered(values: Array) -> Array:
    """Return numbers from 1 to 2 that differ where positive values do, of the same shape."""
    return np.asarray(1.5 + 0.5 * np.cos(100.0 * np.log(np.maximum(values, 1e-300))))


def evidence_without(X: Any, own: Array, totals: TokenTotals) -> Array:
    """Return every document's sum of weight times leave-one-out log-odds, (n_documents, n_outputs).

    `X` is a canonical CSR matrix; `own`, (n_documents, n_classes), is what each document and its
    copies weigh in every class; of several labels, (n_documents, n_labels + 1), what all of them
    weigh is last. The totals may be those of more documents than these.
    """
    from .backend import blocks_in_threads

    weights = _all_together(own, totals)
    mixed = ((own > 0) & (own < weights[:, None])).any(axis=1)
    own_weight = np.where(mixed, 0.0, weights)
    dtype, n_tokens, n_outputs = _precision(X, totals), X.shape[1], totals.n_outputs
    first = totals.n_classes - n_outputs
    # Of every output: the tokens' totals in the other classes, then in its own.
    both = totals.rest[:, first:].T, totals.smoothed[:, first:].T
    tables = np.hstack(both, dtype=dtype, casting="same_kind")
    log_odds = np.ascontiguousarray(totals.log_odds().T)
    sums = np.empty((n_outputs, X.shape[0]))

    def of_block(block: tuple[slice, Any]) -> None:
        # All copies of a document are of its classes: so every output's log-odds lose something in
        # the numerator or in the denominator, never in both, and one logarithm is enough.
        rows, part = block
        lengths = np.diff(part.indptr)
        left_out = own_weight[rows] * _unit_per_document(part, totals)
        shares = np.repeat(left_out.astype(dtype), lengths)
        shares *= part.data
        for k in range(n_outputs):
            of_class = own[rows, first + k] > 0
            places = np.repeat(np.where(of_class, n_tokens, 0), lengths)
            places += part.indices
            kept = np.take(tables[k], places, mode="clip")  # checks no bounds
            np.divide(shares, kept, out=kept)
            np.subtract(1.0, kept, out=kept)
            np.maximum(kept, _SMALLEST_TOTAL, out=kept)
            np.log(kept, out=kept)
            kept *= part.data
            changes = row_sums(kept, part.indptr)
            sums[k, rows] = part @ log_odds[k] + np.where(of_class, changes, -changes)

    # Beside the tables of several outputs half as much room to work in is as much memory.
    blocks_in_threads(of_block, X, BLOCK_ENTRIES // min(n_outputs, 2) + 1)
    if len(copies := np.flatnonzero(mixed)):
        for rows, part, odds in _log_odds_without(X[copies], own[copies], totals):
            odds *= part.data[:, None]
            sums[:, copies[rows]] = row_sums(odds, part.indptr).T
    return np.ascontiguousarray(sums.T)


def leave_one_out_log_odds(
    X: Any, codes: Numbers, weights: Array, totals: TokenTotals, groups: Numbers
) -> Array:
    """Return the leave-one-out log-odds of all entries, (n_entries, n_outputs).

    `codes` and `weights` are the documents' classes and weights, `groups` their
    :func:`same_documents`.
    """
    own = own_weights(codes, weights, totals.n_classes, groups)[groups] * (weights > 0)[:, None]
    odds = np.empty((X.nnz, totals.n_outputs))
    for rows, _, block in _log_odds_without(X, own, totals):
        odds[X.indptr[rows.start] : X.indptr[rows.stop]] = block
    return odds


def _log_odds_without(
    X: Any, own: Array, totals: TokenTotals
) -> Iterator[tuple[slice, Any, Array]]:
    """Yield rows, CSR arrays of these, and their log-odds; `own` as in `evidence_without`."""
    dtype = _precision(X, totals)
    smoothed = totals.smoothed.astype(dtype, order="C")
    rest = totals.rest.astype(dtype, order="C")
    first = totals.n_classes - totals.n_outputs
    units = _unit_per_document(X, totals)[:, None]
    every = (_all_together(own, totals)[:, None] * units).astype(dtype)
    own = (own[:, : totals.n_classes] * units).astype(dtype)
    for rows, part in row_blocks(X, BLOCK_ENTRIES // totals.n_classes + 1):
        left_out = np.repeat(own[rows], np.diff(part.indptr), axis=0)
        left_out *= part.data[:, None]
        of_class = smoothed[part.indices]
        of_class -= left_out
        np.maximum(of_class, _SMALLEST_TOTAL, out=of_class)
        left_out -= np.repeat(every[rows], np.diff(part.indptr), axis=0) * part.data[:, None]
        left_out += rest[part.indices]
        np.maximum(left_out, _SMALLEST_TOTAL, out=left_out)
        of_class /= left_out
        odds = np.log(of_class[:, first:])
        odds -= totals.prior_odds[first:].astype(dtype)
        yield rows, part, odds


def own_weights(
    codes: Numbers,
    weights: Array,
    n_classes: int,
    groups: Numbers,
    members: NDArray[Any] | None = None,
) -> Array:
    """Return the weight of every group's documents of every class, (n_groups, n_classes).

    `members`, (n_documents, n_classes), are in place of codes where these have several labels.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    if members is not None:
        of_groups = np.zeros((n_groups, n_classes))
        np.add.at(of_groups, groups, members * weights[:, None])
        return of_groups
    sums = np.bincount(groups * n_classes + codes, weights, n_groups * n_classes)
    return np.asarray(sums, dtype=np.float64).reshape(n_groups, n_classes)


def _all_together(own: Array, totals: TokenTotals) -> Array:
    """Return what every document and its copies weigh, (n_documents,), in all classes."""
    n_classes = totals.n_classes
    return np.asarray(own[:, n_classes] if own.shape[1] > n_classes else own.sum(axis=1))


def _precision(X: Any, totals: TokenTotals) -> type[np.floating[Any]]:
    """Return that of X: what a document adds to a total is small where precision is short."""
    within = totals.rest.max(initial=0.0) < 1e30 and totals.smoothed.max(initial=0.0) < 1e30
    return np.float32 if X.dtype == np.float32 and within else np.float64


def _unit_per_document(X: Any, totals: TokenTotals) -> Array:
    """Return what an entry of 1 adds to the totals for a document of weight 1, (n_documents,)."""
    return divided(totals.unit, row_totals(X))
