"""Which documents are held out together, those that C is chosen on, and their folds.

Documents with the same bags are copies; messages of one template that differ by a number are
near-copies. They stay together, and so do documents of one group. What is chosen does not depend on
the order of the documents, nor on the names of the classes: documents are numbered by their
contents, and put in an order by them, then in a random one.
"""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from .._bags import Bags
from .._matrices import document_frequencies, row_blocks
from .._targets import Targets, group_sums
from .._types import Array, Numbers

LEAST_SHARED = 10
LEAST_SHARE = 0.75
"""A document's near-copies have at least this number, and more than this share, of its units."""

_ROUNDING = 1e-12  # of sums that are added up in another order

SAMPLE_SIZE = 8_000
"""The approximate maximum number of different documents in a sample."""

LEAST_OF_A_CLASS = 8
"""The minimum number of documents of each class in a sample, if available."""


def projections(bags: Bags, counted: NDArray[np.bool_] | None = None) -> Array:
    """Return the products of bags with two directions, (2, n_documents), by which copies are found.

    The directions are random, the same for all bags of as many tokens; tokens that are not
    `counted`, (n_tokens,), are left out.
    """
    rng = np.random.default_rng(0)
    directions = np.ascontiguousarray(rng.uniform(1, 2, (bags.shape[1], 2)).T)
    if counted is not None:
        directions *= counted
    return np.stack([bags.dot(direction) for direction in directions])


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
    n_different = document_frequencies(units) - document_frequencies(units[left_out])
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


def _count_entries(units: Any, is_counted: NDArray[np.bool_]) -> Numbers:
    """Return the number of each document's entries in some columns, (n_documents,)."""
    numbers = np.zeros(units.shape[0], dtype=np.intp)
    if not is_counted.any():
        return numbers
    for rows, part in row_blocks(units):
        entries = np.flatnonzero(is_counted.take(part.indices, mode="clip"))  # checks no bounds
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


def sampled_rows(groups: Numbers, targets: Targets, weights: Array) -> tuple[int, Numbers]:
    """Return the number of different documents, and the rows of some, with all their copies.

    `groups`, (n_documents,), are numbered by content; documents of weight 0 are left out. Classes
    have their shares of :data:`SAMPLE_SIZE`, and at least :data:`LEAST_OF_A_CLASS` documents.
    """
    # 1) the groups at random, class by class
    present = np.flatnonzero(weights)
    group_of, shuffled, classes = _shuffled_by_class(
        groups[present], targets[present], weights[present]
    )
    # 2) the first ones of each class
    n_different = len(shuffled)
    by_class = pd.Series(classes).groupby(classes)
    share = min(SAMPLE_SIZE / max(n_different, 1), 1.0)
    n_sampled = np.maximum(by_class.transform("size") * share, LEAST_OF_A_CLASS)
    is_sampled = np.zeros(n_different, dtype=bool)
    is_sampled[shuffled] = by_class.cumcount() < n_sampled
    # 3) all of their documents
    is_sampled_row = is_sampled[group_of]
    return n_different, present[is_sampled_row]


def assign_folds(groups: Numbers, targets: Targets, weights: Array, n_folds: int) -> Numbers:
    """Return the fold of each document, (n_documents,): that of its group.

    Groups are dealt out class by class.
    """
    group_of, shuffled, _ = _shuffled_by_class(groups, targets, weights)
    folds = np.empty(len(shuffled), dtype=np.intp)
    folds[shuffled] = np.arange(len(shuffled)) % n_folds
    return folds[group_of]


def _shuffled_by_class(
    groups: Numbers, targets: Targets, weights: Array
) -> tuple[Numbers, Numbers, Numbers]:
    """Return each document's group, 0, 1, ..., the groups in an order, and their classes in it.

    The order is at random within the classes, which are in the order in which they come first.
    """
    # 1) a class for each group, by the weights of its documents
    different, group_of = np.unique(groups, return_inverse=True)
    weights_by_class = targets.shares() * weights[:, None]
    shares = group_sums(weights_by_class, group_of, len(different))
    of_groups = Targets(targets.classes, shares, targets.multilabel)
    strata = of_groups.strata(np.ones(len(different)))
    # 2) the groups at random, class by class
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(len(different))
    classes, _ = pd.factorize(strata[shuffled])
    by_class = np.argsort(classes, kind="stable")
    return group_of, shuffled[by_class], classes[by_class]
