"""The documents that C is chosen on, and their folds.

Copies, near-copies and documents of one group (:mod:`.duplicates`) stay together. What is chosen
does not depend on the order of the documents, nor on the names of the classes: documents are put in
an order by content, then in a random one.
"""

import numpy as np
import pandas as pd

from .._targets import Targets, group_sums
from .._types import Array, Numbers

SAMPLE_SIZE = 8_000
"""The approximate maximum number of different documents in a sample."""

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
