"""Folds and samples of documents, without randomness: see :mod:`.choose_c`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_SIZE = 8_000
"""About how many different documents a sample has at most."""

LEAST_OF_A_CLASS = 8
"""How many of every class a sample has at least, if there are."""

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]


def deal(groups: Numbers, codes: Numbers, n_folds: int) -> Numbers:
    """Return the fold of every document, (n_documents,): that of its group, class by class.

    `groups`, 0..n-1, are numbered by content. A group with documents of several classes counts as
    of the first of these; classes are taken in the order of their first groups.
    """
    order, _ = _class_by_class(groups, codes)
    folds = np.empty(len(order), dtype=np.intp)
    folds[order] = np.arange(len(order)) % n_folds
    return folds[groups]


def sample(groups: Numbers, codes: Numbers, weights: Array) -> tuple[Numbers, Array]:
    """Return some of the documents, (n,), in their order, and weights of these, (n,).

    `groups` and `codes` are those of :func:`deal`. The sample is spread evenly over classes and
    contents; a document stands for its copies of the same class, and has their weights.
    """
    order, sizes = _class_by_class(groups, codes)
    share = min(SAMPLE_SIZE / max(len(order), 1), 1.0)
    wanted = np.minimum(sizes, np.maximum((sizes * share).astype(np.intp), LEAST_OF_A_CLASS))
    place = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size, want = np.repeat(sizes, sizes), np.repeat(wanted, sizes)
    taken = np.zeros(len(order), dtype=bool)
    taken[order] = (place + 1) * want // size > place * want // size
    rows = np.flatnonzero(taken[groups])
    keys = (groups * (codes.max(initial=0) + 1) + codes)[rows]
    _, first, copy_of = np.unique(keys, return_index=True, return_inverse=True)
    by_row = np.argsort(first)
    sums = np.bincount(copy_of, weights[rows], len(first)).astype(np.float64)
    return rows[first[by_row]], sums[by_row]


def _class_by_class(groups: Numbers, codes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the groups, class by class, (n_groups,), and how many there are of each class."""
    n_groups = int(groups.max(initial=-1)) + 1
    group_codes = np.full(n_groups, codes.max(initial=0))
    np.minimum.at(group_codes, groups, codes)
    _, first_group, of_class = np.unique(group_codes, return_index=True, return_inverse=True)
    first_of_class = first_group[of_class]
    order = np.lexsort((np.arange(n_groups), first_of_class))
    return order, np.unique(first_of_class, return_counts=True)[1]
