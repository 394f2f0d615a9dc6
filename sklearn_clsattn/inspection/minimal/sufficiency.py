"""The fewest tokens that guarantee a document's prediction whatever becomes of the others."""

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import TOLERANCE, Lead, of_class, present_class
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
    terms = lead.terms
    helpful, worst = terms.clip(min=0.0), lead.constant + terms.clip(max=0.0).sum(axis=0)
    size = np.abs(lead.constant) - terms.clip(max=0.0).sum(axis=0)

    def holds(fixed: Chosen) -> bool:
        if lead.cls_share == 0 and not fixed.any():  # nothing may be left
            return bool((lead.base > 0).all() and (terms > 0).all())
        sums = helpful[fixed].sum(axis=0)
        return bool((worst + sums > TOLERANCE * (size + sums)).all())

    fixed = np.zeros(len(terms), dtype=bool)
    if holds(fixed):
        return Found(np.array([], dtype=np.intp), 0)
    if not holds(~fixed):
        return Found(None, None)
    usefulness = helpful.sum(axis=1)
    if len(lead.base) == 1:
        order = np.argsort(-usefulness, kind="stable")
        sums = np.cumsum(usefulness[order])
        n_fixed = 1 + int((worst[0] + sums > TOLERANCE * (size[0] + sums)).argmax())
        return Found(order[:n_fixed], n_fixed)
    bound: int | None = 1
    found: Chosen | None = None
    if smallest:
        found, bound = fewest(helpful, -worst, holds, time_limit)
        bound = max(1, bound or 1)
    if found is None:
        everything = ~fixed
        found = without_needless(everything, _share_of_need(lead), holds)
    numbers = np.flatnonzero(found)
    return Found(numbers[np.argsort(-usefulness[numbers], kind="stable")], bound)


def _share_of_need(lead: Lead) -> NDArray[np.float64]:
    """Return how much each token does for the class hardest to keep behind, (m,)."""
    terms = lead.terms
    worst = lead.constant + terms.clip(max=0.0).sum(axis=0)
    slack = worst + terms.clip(min=0.0).sum(axis=0)
    return (terms.clip(min=0.0) / slack.clip(min=np.finfo(float).tiny)).max(axis=1)
