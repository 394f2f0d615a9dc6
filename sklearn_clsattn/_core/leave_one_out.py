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
from .._matrices import BLOCK_ENTRIES, csr_of, row_blocks, row_sums, row_totals, safe_divide
from .._targets import Targets, group_sums
from .._types import Array, Numbers
from .statistics import TokenTotals

_SMALLEST_SHARE = 1e-9  # of a total that is left without a document
_SMALLEST_TOTAL = 1e-9  # differences of totals are not exact: they may be 0 or negative
_LARGEST_TOTAL = 1e30  # in single precision
_ROUNDING = 1e-12  # of sums that are added up in another order


def same_documents(X: Any) -> Numbers:
    """Return a number per row of a canonical CSR matrix, the same for rows with equal entries."""
    return group_duplicates(*projections(X, random_directions(X.shape[1])))


def projections(X: Any, directions: Array) -> tuple[Array, Array]:
    """Return the products of the rows of a CSR matrix with two directions, (2, n_tokens)."""
    from .threads import in_threads

    def multiply_block(block: tuple[slice, Any]) -> Array:
        _, part = block
        return np.stack([part @ direction for direction in directions])

    if isinstance(X, Bags):
        directions = (X.right @ directions.T).T
        X = X.left
    products = in_threads(multiply_block, row_blocks(X))
    first, second = np.hstack([np.empty((2, 0)), *products])
    return first, second


def group_duplicates(first: Array, second: Array) -> Numbers:
    """Return a number per document, the same for those of equal :func:`projections`.

    Numbers run from 0 in the order of the first, which depends on a document's contents alone, not
    on the order of documents and their scale. Projections that differ by less than rounding count
    as equal.
    """
    one_group = np.zeros(len(first), dtype=np.intp)
    by_first = _group_within(first, one_group)
    return _group_within(second, by_first)


def _group_within(projections: Array, groups: Numbers) -> Numbers:
    """Number documents by their projections within groups; all are (n_documents,)."""
    n_documents = len(groups)
    # One group needs no second key, which takes longer.
    order = np.lexsort((projections, groups)) if groups.any() else np.argsort(projections)
    ascending = projections[order]
    differs = np.abs(np.diff(ascending)) > _ROUNDING * ascending[1:]
    differs |= np.diff(groups[order]) != 0
    ascending_numbers = np.concatenate([[0], np.cumsum(differs)])
    numbers = np.empty(n_documents, dtype=np.intp)
    numbers[order] = ascending_numbers[:n_documents]
    return numbers


def random_directions(n_tokens: int) -> Array:
    """Return two directions that rows are projected on, (2, n_tokens)."""
    numbers = np.random.default_rng(0).uniform(1, 2, (n_tokens, 2))
    return np.ascontiguousarray(numbers.T)


def directions_by_content(shares: Array) -> Array:
    """Return :func:`random_directions` of which the first does not depend on the tokens' order.

    Nor on that of the classes: it is made of each token's `shares`, (n_classes, n_tokens).
    """
    directions = random_directions(shares.shape[1])
    # 1) a number for each token, by how often it is in any classes
    squares = np.square(shares).sum(axis=0)
    content = shares.sum(axis=0) + np.sqrt(squares)
    # 2) a number for each class, by its tokens, which stands for its name
    class_numbers = _scattered(shares @ _scattered(content))
    # 3) a number for each token, by the classes it is in
    directions[0] = _scattered(content + class_numbers @ shares)
    return directions


def _scattered(values: Array) -> Array:
    """Return numbers from 1 to 2 that differ where positive values do, of the same shape."""
    logarithms = np.log(np.maximum(values, 1e-300))
    return np.asarray(1.5 + 0.5 * np.cos(100.0 * logarithms))


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
        total = np.bincount(groups, weights, n_groups).astype(np.float64)
        return cls(by_class, total)

    def __getitem__(self, rows: Any) -> LeftOut:
        """Return the weights that are left out with some documents."""
        return LeftOut(self.by_class[rows], self.total[rows])


def evidence_without(X: Any, left_out: LeftOut, totals: TokenTotals) -> Array:
    """Return the sums of entries times leave-one-out log-odds, (n_documents, n_outputs).

    `X` is a canonical CSR matrix, or bags. The totals may be those of more documents than these.
    """
    from .threads import blocks_in_threads, in_threads

    n_tokens = X.shape[1]
    n_outputs = totals.n_outputs
    first = totals.n_classes - n_outputs  # the class of the first output
    dtype = _precision(X, totals)
    # 1) documents whose copies are of several classes: they are computed entry by entry
    by_class = left_out.by_class
    whole = (1.0 - _ROUNDING) * left_out.total[:, None]
    is_mixed = ((by_class > 0) & (by_class < whole)).any(axis=1)
    weights = np.where(is_mixed, 0.0, left_out.total)
    left_out_units = (weights * _unit_per_document(X, totals)).astype(dtype)
    # 2) of every output: the tokens' totals in the other classes, then in its own
    totals_of_others = totals.rest[:, first:].T
    totals_of_class = totals.smoothed[:, first:].T
    tables = np.hstack([totals_of_others, totals_of_class], dtype=dtype, casting="same_kind")
    log_odds = np.ascontiguousarray(totals.log_odds().T)
    sums = np.stack([X @ log_odds[k] for k in range(n_outputs)])

    def add_changes(block: tuple[slice, Any]) -> None:
        # The copies of a document that is not mixed are all of a class, or none is: so every
        # output's log-odds lose something above or below the fraction, and one logarithm is enough.
        rows, part = block
        lengths = np.diff(part.indptr)
        left_out_of_totals = np.repeat(left_out_units[rows], lengths)
        left_out_of_totals *= part.data
        for k in range(n_outputs):
            # 3) the share of each total that is left without the document
            is_of_class = by_class[rows, first + k] > 0
            columns = np.repeat(np.where(is_of_class, n_tokens, 0), lengths)
            columns += part.indices
            kept = np.take(tables[k], columns, mode="clip")  # checks no bounds
            np.divide(left_out_of_totals, kept, out=kept)
            np.subtract(1.0, kept, out=kept)
            np.maximum(kept, _SMALLEST_SHARE, out=kept)
            # 4) the changes of the sums of log-odds
            np.log(kept, out=kept)
            kept *= part.data
            changes = row_sums(kept, part.indptr)
            sums[k, rows] += np.where(is_of_class, changes, -changes)

    # The tables of several outputs take memory too, so blocks are half as large.
    n_entries = BLOCK_ENTRIES // min(n_outputs, 2) + 1
    products = X
    if isinstance(X, Bags):
        # A column of a single unit has one term in the product: its entries are those of the left
        # matrix, scaled. A unit without such a column gets the factor 0, which changes nothing.
        columns, factors, products = X.split_single_columns()

        def multiply_and_add(block: tuple[slice, Any]) -> None:
            rows, left = block
            entries = left.data * factors[left.indices]
            add_changes((rows, csr_of(entries, columns[left.indices], left.indptr, n_tokens)))

        in_threads(multiply_and_add, row_blocks(X.left, n_entries))
    blocks_in_threads(add_changes, products, n_entries)
    # 5) the sums of documents whose copies are of several classes
    mixed = np.flatnonzero(is_mixed)
    if len(mixed):
        for rows, part, odds in _log_odds_without(X[mixed], left_out[mixed], totals):
            odds *= part.data[:, None]
            sums[:, mixed[rows]] = row_sums(odds, part.indptr).T
    return np.ascontiguousarray(sums.T)


def leave_one_out_log_odds(
    X: Any, targets: Targets, weights: Array, totals: TokenTotals, groups: Numbers
) -> Array:
    """Return the leave-one-out log-odds of all entries, (n_entries, n_outputs).

    `groups` are the documents' :func:`same_documents`.
    """
    # 1) the weights of each document and its copies, 0 for one of weight 0, which is in no total
    is_present = weights > 0
    copies = LeftOut.with_copies(targets, weights, groups)[groups]
    left_out = LeftOut(copies.by_class * is_present[:, None], copies.total * is_present)
    # 2) the log-odds without them
    odds = np.empty((X.nnz, totals.n_outputs))
    for rows, _, odds_of_block in _log_odds_without(X, left_out, totals):
        entries = slice(X.indptr[rows.start], X.indptr[rows.stop])
        odds[entries] = odds_of_block
    return odds


def _log_odds_without(
    X: Any, left_out: LeftOut, totals: TokenTotals
) -> Iterator[tuple[slice, Any, Array]]:
    """Yield rows, CSR arrays of these, and their entries' log-odds, (n_entries, n_outputs)."""
    from .threads import stream_in_threads

    dtype = _precision(X, totals)
    first = totals.n_classes - totals.n_outputs  # the class of the first output
    totals_of_class = totals.smoothed[:, first:].astype(dtype, order="C")
    totals_of_others = totals.rest[:, first:].astype(dtype, order="C")
    prior_odds = totals.prior_odds[first:].astype(dtype)
    # What an entry of 1 adds to the totals.
    units = _unit_per_document(X, totals)[:, None]
    left_out_of_class = left_out.by_class[:, first:]
    added_to_class = (left_out_of_class * units).astype(dtype)
    added_to_others = ((left_out.total[:, None] - left_out_of_class) * units).astype(dtype)

    def log_odds(block: tuple[slice, Any]) -> tuple[slice, Any, Array]:
        rows, part = block
        lengths = np.diff(part.indptr)
        entries = part.data[:, None]
        # 1) the totals of each output's class without the document
        of_class = totals_of_class[part.indices]
        of_class -= np.repeat(added_to_class[rows], lengths, axis=0) * entries
        np.maximum(of_class, _SMALLEST_TOTAL, out=of_class)
        # 2) those of all other classes
        of_others = totals_of_others[part.indices]
        of_others -= np.repeat(added_to_others[rows], lengths, axis=0) * entries
        np.maximum(of_others, _SMALLEST_TOTAL, out=of_others)
        # 3) their log-odds
        of_class /= of_others
        odds = np.log(of_class, out=of_class)
        odds -= prior_odds
        return rows, part, odds

    yield from stream_in_threads(log_odds, row_blocks(X, BLOCK_ENTRIES // totals.n_outputs + 1))


def _precision(X: Any, totals: TokenTotals) -> type[np.floating[Any]]:
    """Return X's precision; single only where totals are not too large for a document's share."""
    largest = max(totals.rest.max(initial=0.0), totals.smoothed.max(initial=0.0))
    if X.dtype == np.float32 and largest < _LARGEST_TOTAL:
        return np.float32
    return np.float64


def _unit_per_document(X: Any, totals: TokenTotals) -> Array:
    """Return the addition to the totals of an entry of 1 with weight 1, (n_documents,)."""
    return safe_divide(totals.unit, row_totals(X))
