"""The fewest tokens of a document whose removal changes its prediction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import Lead, of_class, present_class
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
        return _of_any(lead.of_rivals())
    return _of_all(of_class(one, to), time_limit)


def removed_for_one(lead: Lead) -> Integers | None:
    """Return the fewest tokens, of the lowest terms, to remove for a lead over a single class."""
    constant, terms = lead.linear(side=1)
    order = np.argsort(terms[:, 0], kind="stable")
    # Sums of what is kept, from the last one removed to the first: sums[r] without r tokens.
    ahead = np.cumsum(np.concatenate([constant, terms[order[::-1], 0]]))[::-1] > 0
    if lead.cls_log == -np.inf:
        ahead[-1] = lead.base[0] > 0
    return order[: int(ahead.argmax())] if ahead.any() else None


def _of_any(leads: Lead) -> Found:
    """Return the fewest over all single rivals; `leads` are theirs over the present class."""
    best: tuple[int, float, Integers] | None = None
    for rival in range(len(leads.base)):
        removed = removed_for_one(leads.over(rival))
        if removed is None or (best is not None and len(removed) > best[0]):
            continue
        left = leads.over(rival).of(np.delete(np.arange(len(leads.logs)), removed))
        candidate = (len(removed), -float(left.now()[0]), removed)
        if best is None or candidate[:2] < best[:2]:
            best = candidate
    return Found(None, None) if best is None else Found(best[2], best[0])


def _of_all(lead: Lead, time_limit: float) -> Found:
    """Return the fewest tokens to remove for a lead over several classes at once."""
    singles: list[Any] = [removed_for_one(lead.over(rival)) for rival in range(len(lead.base))]
    if any(single is None for single in singles):
        return Found(None, None)
    hardest: Integers = max(singles, key=len)
    chosen = np.zeros(len(lead.logs), dtype=bool)
    chosen[hardest] = True
    bound: int | None = len(hardest)
    if not lead.of(~chosen).is_ahead():
        if chosen.all():
            return Found(None, None)
        forced = _forced(lead)
        rest = lead.of(~forced)
        constant, terms = rest.linear(side=1)
        needs = -(constant + terms.sum(axis=0))

        def holds(removed: NDArray[np.bool_]) -> bool:
            return rest.of(~removed).is_ahead()

        found: NDArray[np.bool_] | None = np.zeros(len(terms), dtype=bool)
        bound = 0
        if not rest.is_ahead():
            found, bound = fewest(-terms, needs, holds, time_limit)
        if bound is None:
            return Found(None, None)
        bound = max(bound + int(forced.sum()), len(hardest))
        if found is None:
            found = greedy(-terms, needs, holds)
        if found is None:
            everything = np.ones(len(terms), dtype=bool)
            found = everything if holds(everything) else None
        if found is None:
            return Found(None, bound)
        chosen = forced.copy()
        chosen[~forced] = found
    numbers = np.flatnonzero(chosen)
    usefulness = lead.linear()[1][numbers].sum(axis=1)
    return Found(numbers[np.argsort(usefulness, kind="stable")], bound)


def _forced(lead: Lead) -> NDArray[np.bool_]:
    """Return the tokens that cannot stay, as one of them outweighs all that is for the class."""
    forced = np.zeros(len(lead.logs), dtype=bool)
    while True:
        free = np.flatnonzero(~forced)
        constant, terms = lead.of(free).linear(side=1)
        most = constant.clip(min=0.0) + terms.clip(min=0.0).sum(axis=0)
        new = (terms < -most * (1 + 1e-9)).any(axis=1)
        if not new.any():
            return forced
        forced[free[new]] = True
