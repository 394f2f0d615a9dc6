"""Copies and near-copies of documents, which are held out together.

Documents with the same bags are copies; messages of one template that differ by a number are
near-copies. Documents are numbered by their contents, so that their order has no influence.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, row_blocks, row_sums
from .._types import Array, Numbers

LEAST_SHARED = 10
LEAST_SHARE = 0.75
"""A document's near-copies have at least this number, and more than this share, of its units."""

_ROUNDING = 1e-12  # of sums that are added up in another order


def projections(bags: Bags, counted: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
    """Return the products of bags with two directions, (n_documents,), by which copies are found.

    The directions are random, the same for all bags of as many tokens; tokens that are not
    `counted`, (n_tokens,), are left out.
    """
    rng = np.random.default_rng(0)
    directions = rng.uniform(1, 2, (bags.shape[1], 2))
    if counted is not None:
        directions *= counted[:, None]
    first, second = (bags.dot(direction) for direction in directions.T)
    return first, second


def group_duplicates(first: Array, second: Array) -> Numbers:
    """Return a number per document, the same for those of equal :func:`projections`.

    Numbers run from 0 in the order of the first, whatever the order of the documents. Projections
    that differ by less than rounding count as equal.
    """
    one_group = np.zeros(len(first), dtype=np.intp)
    by_first = _group_within(first, one_group)
    return _group_within(second, by_first)


def _group_within(projections: Array, groups: Numbers) -> Numbers:
    """Number documents by their projections within groups; all are (n_documents,)."""
    order = np.lexsort((projections, groups))
    ascending = projections[order]
    rounding = _ROUNDING * ascending[1:]
    differs = np.abs(np.diff(ascending)) > rounding
    differs |= np.diff(groups[order]) != 0
    ascending_numbers = np.append(0, np.cumsum(differs))
    numbers = np.empty(len(groups), dtype=np.intp)
    numbers[order] = ascending_numbers[: len(groups)]
    return numbers


def near_copies(bags: Bags, copies: Numbers, weights: Array) -> Numbers:
    """Return a number per document, the same for copies and near-copies, (n_documents,).

    `copies` are those of copies alone. Near-copies have the same bags but for units that no other
    document of positive weight has, if those are less than a quarter and :data:`LEAST_SHARED`
    others are left.
    """
    units = bags.units
    n_units = units.shape[1]
    # 1) the units that documents share which are not copies: one of all copies counts
    present = np.flatnonzero(weights)
    _, first = np.unique(copies[present], return_index=True)
    is_counted = np.zeros(len(copies))
    is_counted[present[first]] = 1.0
    n_different = np.zeros(n_units)
    for rows, part in row_blocks(units, max(BLOCK_ENTRIES, n_units)):
        counted_entries = np.repeat(is_counted[rows], np.diff(part.indptr))
        n_different += np.bincount(part.indices, counted_entries, n_units)
    is_shared = n_different > 1
    if is_shared.all():  # as with min_df=2, unless there are copies
        return copies
    # 2) the documents of which these units are enough, and most
    counts = [np.zeros(0)]
    for _, part in row_blocks(units):
        shared_entries = is_shared[part.indices].astype(np.float64)
        counts.append(row_sums(shared_entries, part.indptr))
    n_shared = np.concatenate(counts)
    are_enough = n_shared >= LEAST_SHARED
    are_most = n_shared > LEAST_SHARE * np.diff(units.indptr)
    # 3) one number for those with the same of these units; all others keep that of their copies
    numbers = group_duplicates(*projections(Bags(units), is_shared))
    others = ~(are_enough & are_most)
    numbers[others] = len(copies) + copies[others]
    # 4) copies, of which some may differ by rounding, have the number of the first
    _, first, of_copies = np.unique(copies, return_index=True, return_inverse=True)
    return numbers[first][of_copies]


def joined_groups(first: Numbers, second: Numbers) -> Numbers:
    """Return a number per document, the same for those that either numbering holds together."""
    # Both numberings are nodes of a graph, which a document joins by an edge.
    different, of_first = np.unique(first, return_inverse=True)
    _, of_second = np.unique(second, return_inverse=True)
    nodes = of_first, len(different) + of_second
    n_nodes = int(nodes[1].max()) + 1
    edges = sp.coo_array((np.ones(len(first)), nodes), shape=(n_nodes, n_nodes))
    _, components = connected_components(edges, directed=False)
    return np.asarray(components[of_first])
