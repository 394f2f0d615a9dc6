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
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._bags import Bags
from .._documents import BLOCK_ENTRIES, row_blocks, row_sums, row_totals, safe_divide
from .._targets import Targets, group_sums
from .._types import Array, Numbers
from .statistics import TokenTotals

_SMALLEST_TOTAL = 1e-9  # differences of totals are not exact
_ROUNDING = 1e-12  # of sums that are added up in another order


def same_documents(X: Any) -> Numbers:
    """Return a number per row of a canonical CSR matrix, the same for rows with equal entries."""
    return group_duplicates(*projections(X, random_directions(X.shape[1])))


def projections(X: Any, directions: Array) -> tuple[Array, Array]:
    """Return the products of the rows of a CSR matrix with two directions, (2, n_tokens)."""
    from .threads import in_threads

    def of_block(block: tuple[slice, Any]) -> Array:
        return np.stack([block[1] @ direction for direction in directions])

    if isinstance(X, Bags):
        X, directions = X.left, (X.right @ directions.T).T
    first, second = np.hstack([np.empty((2, 0)), *in_threads(of_block, row_blocks(X))])
    return first, second


def group_duplicates(first: Array, second: Array) -> Numbers:
    """Return a number per document, the same for those of equal :func:`projections`.

    Numbers run from 0 in the order of the first, which depends on a document's contents alone, not
    on the order of documents and their scale. Projections that differ by less than rounding count
    as equal.
    """
    return _group_within(second, _group_within(first, np.zeros(len(first), dtype=np.intp)))


def _group_within(projections: Array, groups: Numbers) -> Numbers:
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


@dataclass(frozen=True)
class LeftOut:
    """The weights that are left out with each document: those of the document and its copies.

    by_class : (n_documents, n_classes), the weight in each class
    total : (n_documents,), the weight of all; the sum over classes, but of several labels
    """

    by_class: Array
    total: Array

    @classmethod
    def with_copies(cls, targets: Targets, weights: Array, groups: Numbers) -> LeftOut:
        """Return the weights that are left out with the documents of each group, (n_groups, ...).

        `groups`, (n_documents,), are numbers from 0, the same for copies.
        """
        n_groups = int(groups.max(initial=-1)) + 1
        by_class = group_sums(targets.by_class(weights), groups, n_groups)
        return cls(by_class, np.bincount(groups, weights, n_groups).astype(np.float64))

    def __getitem__(self, rows: Any) -> LeftOut:
        """Return the weights that are left out with some documents."""
        return LeftOut(self.by_class[rows], self.total[rows])


def evidence_without(X: Any, left_out: LeftOut, totals: TokenTotals) -> Array:
    """Return every document's sum of weight times leave-one-out log-odds, (n_documents, n_outputs).

    `X` is a canonical CSR matrix, or bags. The totals may be those of more documents than these.
    """
    from .threads import blocks_in_threads

    own, whole = left_out.by_class, (1.0 - _ROUNDING) * left_out.total[:, None]
    mixed = ((own > 0) & (own < whole)).any(axis=1)
    own_weight = np.where(mixed, 0.0, left_out.total)
    dtype, n_tokens, n_outputs = _precision(X, totals), X.shape[1], totals.n_outputs
    first = totals.n_classes - n_outputs
    # Of every output: the tokens' totals in the other classes, then in its own.
    both = totals.rest[:, first:].T, totals.smoothed[:, first:].T
    tables = np.hstack(both, dtype=dtype, casting="same_kind")
    log_odds = np.ascontiguousarray(totals.log_odds().T)
    sums = np.empty((n_outputs, X.shape[0]))

    def of_block(block: tuple[slice, Any]) -> None:
        # A document and its copies are of a class altogether or not at all: so every output's
        # log-odds lose something above or below the fraction, and one logarithm is enough.
        rows, part = block
        lengths = np.diff(part.indptr)
        units = own_weight[rows] * _unit_per_document(part, totals)
        shares = np.repeat(units.astype(dtype), lengths)
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
        for rows, part, odds in _log_odds_without(X[copies], left_out[copies], totals):
            odds *= part.data[:, None]
            sums[:, copies[rows]] = row_sums(odds, part.indptr).T
    return np.ascontiguousarray(sums.T)


def leave_one_out_log_odds(
    X: Any, targets: Targets, weights: Array, totals: TokenTotals, groups: Numbers
) -> Array:
    """Return the leave-one-out log-odds of all entries, (n_entries, n_outputs).

    `groups` are the documents' :func:`same_documents`.
    """
    left_out = LeftOut.with_copies(targets, weights, groups)[groups]
    present = weights > 0
    left_out = LeftOut(left_out.by_class * present[:, None], left_out.total * present)
    odds = np.empty((X.nnz, totals.n_outputs))
    for rows, _, block in _log_odds_without(X, left_out, totals):
        odds[X.indptr[rows.start] : X.indptr[rows.stop]] = block
    return odds


def _log_odds_without(
    X: Any, left_out: LeftOut, totals: TokenTotals
) -> Iterator[tuple[slice, Any, Array]]:
    """Yield rows, CSR arrays of these, and their entries' log-odds, (n_entries, n_outputs)."""
    dtype = _precision(X, totals)
    smoothed = totals.smoothed.astype(dtype, order="C")
    rest = totals.rest.astype(dtype, order="C")
    first = totals.n_classes - totals.n_outputs
    units = _unit_per_document(X, totals)
    by_class = (left_out.by_class * units[:, None]).astype(dtype)
    of_others = ((left_out.total[:, None] - left_out.by_class) * units[:, None]).astype(dtype)
    prior_odds = totals.prior_odds[first:].astype(dtype)
    for rows, part in row_blocks(X, BLOCK_ENTRIES // totals.n_classes + 1):
        lengths, entries = np.diff(part.indptr), part.data[:, None]
        # 1) the totals of each class without the document
        of_class = smoothed[part.indices]
        of_class -= np.repeat(by_class[rows], lengths, axis=0) * entries
        np.maximum(of_class, _SMALLEST_TOTAL, out=of_class)
        # 2) those of all other classes
        others = rest[part.indices]
        others -= np.repeat(of_others[rows], lengths, axis=0) * entries
        np.maximum(others, _SMALLEST_TOTAL, out=others)
        # 3) their log-odds
        of_class /= others
        odds = np.log(of_class[:, first:])
        odds -= prior_odds
        yield rows, part, odds


def _precision(X: Any, totals: TokenTotals) -> type[np.floating[Any]]:
    """Return X's precision; single only where totals are not too large for a document's share."""
    within = totals.rest.max(initial=0.0) < 1e30 and totals.smoothed.max(initial=0.0) < 1e30
    return np.float32 if X.dtype == np.float32 and within else np.float64


def _unit_per_document(X: Any, totals: TokenTotals) -> Array:
    """Return the addition to the totals of an entry of 1 with weight 1, (n_documents,)."""
    return safe_divide(totals.unit, row_totals(X))
