"""The fewest tokens of a document whose removal changes its prediction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import TOLERANCE, Lead, of_class, present_class
from .programme import fewest, greedy

Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Found:
    """A choice of tokens (or words), the most effective first."""

    chosen: Integers | None  # (n_chosen,); None where none was found
    at_least: int | None  # a proven lower bound of their number; None where no number will do

    @property
    def numbers(self) -> Integers:
        """The choice, empty where none was found."""
        return np.array([], dtype=np.intp) if self.chosen is None else self.chosen


def fewest_removed(one: DecisionTerms, to: int | None, log_odds: float, time_limit: float) -> Found:
    """Return the fewest tokens of one document without which another class, or `to`, is ahead."""
    present = present_class(one, log_odds)
    if to == present:
        return Found(np.array([], dtype=np.intp), 0)
    lead = of_class(one, present, log_odds)
    if to is None or len(one.classes) == 2:
        return _of_any(Lead(lead.shares, lead.cls_share, -lead.base, -lead.gaps))
    return _of_all(of_class(one, to), time_limit)


def removed_for_one(lead: Lead) -> Integers | None:
    """Return the fewest tokens, of the lowest terms, to remove for a lead over a single class."""
    terms = lead.terms[:, 0]
    order = np.argsort(terms, kind="stable")
    # Sums of what is kept, from the last one removed to the first: sums[r] without r tokens.
    kept = np.concatenate([lead.constant, terms[order[::-1]]])
    sums, sizes = np.cumsum(kept)[::-1], np.cumsum(np.abs(kept))[::-1]
    ahead = sums > TOLERANCE * sizes
    if lead.cls_share == 0:
        ahead[-1] = lead.base[0] > 0
    return order[: int(ahead.argmax())] if ahead.any() else None


def _of_any(leads: Lead) -> Found:
    """Return the fewest over all single rivals; `leads` are theirs over the present class."""
    best: tuple[int, float, Integers] | None = None
    for rival in range(len(leads.base)):
        removed = removed_for_one(leads.over(rival))
        if removed is None or (best is not None and len(removed) > best[0]):
            continue
        kept = np.ones(len(leads.shares))
        kept[removed] = 0.0
        candidate = (len(removed), -float(leads.at(kept)[rival]), removed)
        if best is None or candidate[:2] < best[:2]:
            best = candidate
    return Found(None, None) if best is None else Found(best[2], best[0])


def _of_all(lead: Lead, time_limit: float) -> Found:
    """Return the fewest tokens to remove for a lead over several classes at once."""

    def holds(removed: NDArray[np.bool_]) -> bool:
        return lead.is_ahead((~removed).astype(np.float64))

    terms = lead.terms
    singles: list[Any] = [removed_for_one(lead.over(rival)) for rival in range(len(lead.base))]
    if any(single is None for single in singles):
        return Found(None, None)
    hardest: Integers = max(singles, key=len)
    chosen = np.zeros(len(terms), dtype=bool)
    chosen[hardest] = True
    bound: int | None = len(hardest)
    if not holds(chosen):
        needs = -(lead.constant + terms.sum(axis=0))
        found, bound = fewest(-terms, needs, holds, time_limit)
        if bound is None:
            return Found(None, None)
        bound = max(bound, len(hardest))
        if found is None:
            found = greedy(-terms, needs, holds)
        if found is None:
            everything = np.ones(len(terms), dtype=bool)
            found = everything if holds(everything) else None
        if found is None:
            return Found(None, bound)
        chosen = found
    numbers = np.flatnonzero(chosen)
    return Found(numbers[np.argsort(terms[numbers].sum(axis=1), kind="stable")], bound)
