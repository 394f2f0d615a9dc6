"""Copies and near-copies of documents, which are held out together.

Documents with the same bags are copies; messages of one template that differ by a number are
near-copies. Documents are numbered by their contents, so that their order has no influence.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, row_blocks
from .._types import Array, Numbers

LEAST_SHARED = 10
LEAST_SHARE = 0.75
"""A document's near-copies have at least this number, and more than this share, of its units."""

_ROUNDING = 1e-12  # of sums that are added up in another order


def projections(bags: Bags, counted: NDArray[np.bool_] | None = None) -> Array:
    """Return the products of bags with two directions, (2, n_documents), by which copies are found.

    The directions are random, the same for all bags of as many tokens; tokens that are not
    `counted`, (n_tokens,), are left out.
    """
    rng = np.random.default_rng(0)
    directions = rng.uniform(1, 2, (bags.shape[1], 2))
    if counted is not None:
        directions *= counted[:, None]
    return np.stack([bags.dot(direction) for direction in directions.T])


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


def near_copies(bags: Bags, projected: Array, copies: Numbers, weights: Array) -> Numbers:
    """Return a number per document, the same for copies and near-copies, (n_documents,).

    `projected`, (2, n_documents), are the bags' :func:`projections`, and `copies` the numbers of
    copies alone. Near-copies have the same bags but for units that no other document of positive
    weight has, if those are less than a quarter and :data:`LEAST_SHARED` others are left.
    """
    units = bags.units
    # 1) the units that documents share which are not copies: one of all copies counts
    present = np.flatnonzero(weights)
    _, first = np.unique(copies[present], return_index=True)
    left_out = np.delete(np.arange(len(copies)), present[first])
    n_different = _document_frequencies(units) - _document_frequencies(units[left_out])
    is_shared = n_different > 1
    # 2) the documents of which these units are enough, and most
    n_others = _count_entries(units, ~is_shared)
    lengths = np.diff(units.indptr)
    n_shared = lengths - n_others
    is_near = (n_shared >= LEAST_SHARED) & (n_shared > LEAST_SHARE * lengths)
    # 3) the projections of these units, which are those of the bags where a document has no others
    with_others = np.flatnonzero(n_others)
    if bags.tokens is None and len(with_others) < len(bags) // 2:
        first, second = projected.copy()
        first[with_others], second[with_others] = projections(Bags(units[with_others]), is_shared)
    else:
        first, second = projections(Bags(units), is_shared)
    # 4) one number for those with the same of these units; all others keep that of their copies
    numbers = group_duplicates(first, second)
    numbers[~is_near] = len(copies) + copies[~is_near]
    # 5) copies, of which some may differ by rounding, have the number of the first
    _, first, of_copies = np.unique(copies, return_index=True, return_inverse=True)
    return numbers[first][of_copies]


def _document_frequencies(units: Any) -> Numbers:
    """Return the number of documents with each unit, (n_units,)."""
    n_units = units.shape[1]
    frequencies = np.zeros(n_units, dtype=np.intp)
    for _, part in row_blocks(units, max(BLOCK_ENTRIES, n_units)):
        frequencies += np.bincount(part.indices, minlength=n_units)
    return frequencies


def _count_entries(units: Any, is_counted: NDArray[np.bool_]) -> Numbers:
    """Return the number of each document's entries in some columns, (n_documents,)."""
    numbers = np.zeros(units.shape[0], dtype=np.intp)
    if not is_counted.any():
        return numbers
    for rows, part in row_blocks(units):
        entries = np.flatnonzero(is_counted[part.indices])
        of_entries = np.searchsorted(part.indptr, entries, side="right") - 1
        numbers[rows] = np.bincount(of_entries, minlength=len(part.indptr) - 1)
    return numbers


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
