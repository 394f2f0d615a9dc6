"""Folds of documents, without randomness: see :mod:`.choose_c`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_FOLDS = 4


def deal(groups: NDArray[np.intp], codes: NDArray[np.intp], n_folds: int) -> NDArray[np.intp]:
    """Return the fold of every document, (n_documents,): that of its group, class by class.

    `groups`, 0..n-1, are numbered by content. A group with documents of several classes counts as
    of the first of these; classes are taken in the order of their first groups.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    group_codes = np.full(n_groups, codes.max(initial=0))
    np.minimum.at(group_codes, groups, codes)
    _, first_group, of_class = np.unique(group_codes, return_index=True, return_inverse=True)
    order = np.lexsort((np.arange(n_groups), first_group[of_class]))
    folds = np.empty(n_groups, dtype=np.intp)
    folds[order] = np.arange(n_groups) % n_folds
    return folds[groups]
