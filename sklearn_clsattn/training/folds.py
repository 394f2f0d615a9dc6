"""The documents that C is chosen on, and their folds.

Documents with the same bags are copies, and stay together; so do near-copies, such as messages of
one template that differ by a number, and documents of one group. What is chosen does not depend on
the order of the documents, nor on the names of the classes: documents are put in an order by
content, then in a random one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from .._bags import Bags
from .._matrices import BLOCK_ENTRIES, row_blocks, row_sums
from .._targets import Targets, group_sums
from .._types import Array, Numbers
from .evidence import group_duplicates, projections

SAMPLE_SIZE = 8_000
"""The approximate maximum number of different documents in a sample."""

LEAST_SHARED = 10
LEAST_SHARE = 0.75
"""A document's near-copies have at least this number, and more than this share, of its units."""

LEAST_OF_A_CLASS = 8
"""The minimum number of documents of each class in a sample, if available."""


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


def near_copies(bags: Bags, groups: Numbers, weights: Array) -> Numbers:
    """Return a number per document, the same for copies and near-copies, (n_documents,).

    `groups` are those of copies. Near-copies have the same bags but for units that no other
    document of positive weight has, if those are less than a quarter and :data:`LEAST_SHARED`
    others are left.
    """
    units = bags.units
    # 1) the units that documents share which are not copies
    present = np.flatnonzero(weights)
    _, first = np.unique(groups[present], return_index=True)
    is_first = np.zeros(len(groups))
    is_first[present[first]] = 1.0
    n_different = np.zeros(units.shape[1])
    for rows, part in row_blocks(units, max(BLOCK_ENTRIES, units.shape[1])):
        of_entries = np.repeat(is_first[rows], np.diff(part.indptr))
        n_different += np.bincount(part.indices, of_entries, units.shape[1])
    is_shared = n_different > 1
    counts = []
    for _, part in row_blocks(units):
        counts.append(row_sums(is_shared[part.indices].astype(np.float64), part.indptr))
    n_shared = np.concatenate([np.zeros(0), *counts])
    tells = (n_shared >= LEAST_SHARED) & (n_shared > LEAST_SHARE * np.diff(units.indptr))
    # 2) documents with the same shared units, and those that are copies of one of these
    numbers = group_duplicates(*projections(Bags(units), is_shared))
    numbers[~tells] = len(groups) + groups[~tells]
    _, first, of_groups = np.unique(groups, return_index=True, return_inverse=True)
    return numbers[first][of_groups]


def joined_groups(first: Numbers, second: Numbers) -> Numbers:
    """Return a number per document, the same for those that either numbering holds together."""
    different, numbers = np.unique(first, return_inverse=True)
    others = len(different) + np.unique(second, return_inverse=True)[1]
    n_groups = int(others.max()) + 1
    edges = sp.coo_array((np.ones(len(first)), (numbers, others)), shape=(n_groups, n_groups))
    _, components = connected_components(edges, directed=False)
    return np.asarray(components[numbers])


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
