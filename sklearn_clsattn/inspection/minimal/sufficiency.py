"""The fewest tokens that guarantee a document's prediction whatever becomes of the others."""

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import of_class, present_class
from .programme import fewest, without_needless
from .removal_of_tokens import Found

Chosen = NDArray[np.bool_]


def fewest_sufficient(
    one: DecisionTerms, log_odds: float, *, smallest: bool, time_limit: float
) -> Found:
    """Return the fewest tokens that keep the present class ahead, the most effective first.

    For several rivals without `smallest`: tokens of which none can be left out.
    """
    lead = of_class(one, present_class(one, log_odds), log_odds)
    constant, terms = lead.linear(side=-1)
    helpful, worst = terms.clip(min=0.0), constant + terms.clip(max=0.0).sum(axis=0)

    def holds(fixed: Chosen) -> bool:
        if lead.cls_log == -np.inf and not fixed.any():  # nothing may be left
            return bool((lead.base > 0).all() and (lead.net[:-1] > 0).all())
        return bool((worst + helpful[fixed].sum(axis=0) > 0).all())

    fixed = np.zeros(len(terms), dtype=bool)
    if holds(fixed):
        return Found(np.array([], dtype=np.intp), 0)
    if not holds(~fixed):
        return Found(None, None)
    usefulness = helpful.sum(axis=1)
    if len(lead.base) == 1:
        order = np.argsort(-usefulness, kind="stable")
        sums = np.cumsum(usefulness[order])
        n_fixed = 1 + int((worst[0] + sums > 0).argmax())
        return Found(order[:n_fixed], n_fixed)
    bound: int | None = 1
    found: Chosen | None = None
    if smallest:
        # What is more than needed does not help; at a worst of 0 any token does.
        needs = np.where(worst == 0, 1.0, -worst)
        found, bound = fewest(np.minimum(helpful, needs.clip(min=0.0)), needs, holds, time_limit)
        bound = max(1, bound or 1)
    if found is None:
        everything = ~fixed
        slack = worst + helpful.sum(axis=0)
        usefulness_for_hardest = (helpful / slack.clip(min=np.finfo(float).tiny)).max(axis=1)
        found = without_needless(everything, usefulness_for_hardest, holds)
    numbers = np.flatnonzero(found)
    return Found(numbers[np.argsort(-usefulness[numbers], kind="stable")], bound)
