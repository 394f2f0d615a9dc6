"""The fewest tokens that guarantee a document's prediction whatever becomes of the others."""

import numpy as np

from ..terms import DecisionTerms
from .integer_program import Choice, fewest, without_needless
from .margin import margin_of, present_class
from .removal import Found


def fewest_sufficient(
    one: DecisionTerms, log_odds: float, *, smallest: bool, time_limit: float
) -> Found:
    """Return the fewest tokens that keep the present class ahead, the most effective first.

    For several rivals without `smallest`: tokens of which none can be left out.
    """
    margin = margin_of(one, present_class(one, log_odds), log_odds)
    constant, terms = margin.linear(side=-1)
    helpful, worst = terms.clip(min=0.0), constant + terms.clip(max=0.0).sum(axis=0)

    def holds(fixed: Choice) -> bool:
        if margin.logs[-1] == -np.inf and not fixed.any():  # nothing may be left
            return bool((margin.base > 0).all() and (margin.net[:-1] > 0).all())
        return bool((worst + helpful[fixed].sum(axis=0) > 0).all())

    nothing, everything = np.zeros(len(terms), dtype=bool), np.ones(len(terms), dtype=bool)
    if holds(nothing):
        return Found(np.array([], dtype=np.intp), 0)
    if not holds(everything):
        return Found(None, None)
    usefulness = helpful.sum(axis=1)
    if len(worst) == 1:
        order = np.argsort(-usefulness, kind="stable")
        n_fixed = 1 + int((worst[0] + np.cumsum(usefulness[order]) > 0).argmax())
        return Found(order[:n_fixed], n_fixed)
    found, bound = None, 1
    if smallest:
        # What is more than needed does not help; at a worst of 0 any token does.
        needs = np.where(worst == 0, 1.0, -worst)
        gains = np.minimum(helpful, needs.clip(min=0.0))
        found, least = fewest(gains, needs, holds, time_limit)
        bound = max(1, least or 1)
    if found is None:
        surplus = (worst + helpful.sum(axis=0)).clip(min=np.finfo(float).tiny)
        found = without_needless(everything, (helpful / surplus).max(axis=1), holds)
    numbers = np.flatnonzero(found)
    return Found(numbers[np.argsort(-usefulness[numbers], kind="stable")], bound)
