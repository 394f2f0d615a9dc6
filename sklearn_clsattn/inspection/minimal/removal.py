r"""The fewest units of a document, tokens or words, whose removal changes its prediction.

What remains keeps its weight. For a margin over a single class the fewest tokens are those with the
lowest terms. Several conditions, and words, as n-grams share them, are an integer program:
:math:`x_u` says whether unit u is removed, and :math:`y_U = \max_{u \in U} x_u` whether an
occurrence in the set U is lost. Every choice that changes the prediction fulfils its linear
conditions, so that its bound holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .integer_program import Choice, fewest, greedy, without_needless
from .margin import Margin, margin_of, present_class
from .units import Units

Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Found:
    """A choice of units, or of tokens to add, the most effective first."""

    chosen: Integers | None  # (n_chosen,); None where none was found
    at_least: int | None  # a proven lower bound of their number; None where no number will do

    @property
    def numbers(self) -> Integers:
        """The choice, empty where none was found."""
        return np.array([], dtype=np.intp) if self.chosen is None else self.chosen


def fewest_removed(units: Units, to: int | None, log_odds: float, time_limit: float) -> Found:
    """Return the fewest units without which another class, or `to`, is ahead."""
    one = units.document
    present = present_class(one, log_odds)
    if to == present:
        return Found(np.array([], dtype=np.intp), 0)
    if not len(one.tokens):
        return Found(None, None)
    if to is not None and len(one.classes) > 2:
        return _fewest_for_all(units, margin_of(one, to), time_limit)
    margin = margin_of(one, present, log_odds).of_rivals()
    rivals = [margin.over(at) for at in range(len(margin.base))]
    bounded = [(_bounded(units, rival), at) for at, rival in enumerate(rivals)]
    best, least = Found(None, None), list[int]()
    for (bound, _, chosen), at in sorted(
        ((quick, at) for quick, at in bounded if quick is not None),
        key=lambda one: one[0][:2],
    ):
        n_best = None if best.chosen is None else len(best.chosen)
        if n_best is not None and bound >= n_best:
            break
        found = Found(chosen, bound)
        if chosen is None:
            at_most = None if n_best is None else n_best - 1
            found = _fewest_for_all(units, rivals[at], time_limit, at_most)
        if found.at_least is not None:
            least.append(max(bound, found.at_least))
        if found.chosen is not None:
            best = found
    if best.chosen is not None:
        least.append(len(best.chosen))
    return Found(best.chosen, min(least, default=None))


def _bounded(units: Units, rival: Margin) -> tuple[int, float, Integers | None] | None:
    """Return a bound for a rival, what decides between equal bounds, and the answer for tokens.

    None where no removal puts the rival ahead.
    """
    if units.are_tokens:
        chosen = _by_sorting(rival)
        if chosen is None:
            return None
        left = rival.weighted(~_mask(chosen, len(units.names)))
        return len(chosen), -float(left.now()[0]), chosen
    # As if units shared no sets.
    needs, gains = (array[..., 0] for array in units.linear(rival))
    several = np.diff(units.sets.indptr) > 1
    sums = units.sets.T @ np.where(several, gains.clip(min=0.0), gains)
    reached = np.cumsum(np.sort(sums)[::-1].clip(min=0.0)) >= needs * (1 - 1e-9)
    return (int(reached.argmax()) + 1, -float(rival.now()[0]), None) if reached.any() else None


def _by_sorting(margin: Margin) -> Integers | None:
    """Return the fewest tokens, of the lowest terms, to remove for a margin over one class."""
    constant, terms = margin.linear(side=1)
    order = np.argsort(terms[:, 0], kind="stable")
    # Sums of what is left, from the last one removed to the first: sums[r] without r tokens.
    ahead = np.cumsum(np.concatenate([constant, terms[order[::-1], 0]]))[::-1] > 0
    if margin.logs[-1] == -np.inf:
        ahead[-1] = margin.base[0] > 0
    return order[: int(ahead.argmax())] if ahead.any() else None


def _fewest_for_all(
    units: Units, margin: Margin, time_limit: float, at_most: int | None = None
) -> Found:
    """Return the fewest units, `at_most` so many, to remove for a margin over all classes."""
    n_units = len(units.names)
    forced, bound = np.zeros(n_units, dtype=bool), 0
    if units.are_tokens:
        singles = [_by_sorting(margin.over(rival)) for rival in range(len(margin.base))]
        if any(single is None for single in singles):
            return Found(None, None)
        bound = max(len(single) for single in singles if single is not None)
        hardest = next(single for single in singles if single is not None and len(single) == bound)
        if margin.weighted(~_mask(hardest, n_units)).is_ahead():
            return Found(_most_effective_first(units, margin, np.sort(hardest)), bound)
        if bound == n_units:
            return Found(None, None)
        forced = _forced(margin)
    found, least = _by_program(units, margin, forced, time_limit, at_most)
    if least is None:
        return Found(None, None)
    bound = max(bound, least)
    chosen = None if found is None else _most_effective_first(units, margin, np.flatnonzero(found))
    return Found(chosen, bound)


def _by_program(
    units: Units, margin: Margin, forced: Choice, time_limit: float, at_most: int | None
) -> tuple[Choice | None, int | None]:
    """Return the smallest choice with the units that are `forced`, and a bound of its size."""

    def whole(some: Choice) -> Choice:
        removed = forced.copy()
        removed[~forced] = some
        return removed

    def holds(some: Choice) -> bool:
        return margin.weighted(units.weights(whole(some))).is_ahead()

    free = ~forced
    if holds(np.zeros(free.sum(), dtype=bool)):
        return forced, int(forced.sum())
    needs, gains = units.linear(margin.weighted(units.weights(forced)))
    shared = np.diff(units.sets.indptr) > 1
    of_units, sets = (units.sets[~shared].T @ gains[~shared])[free], units.sets[shared]
    rows = np.vstack([of_units, gains[shared]])
    some, bound = fewest(rows, needs, holds, time_limit, sets, at_most)
    if bound is None:
        return None, None
    if some is None and at_most is None:
        some = greedy(of_units, needs, holds) if units.are_tokens else _greedy(units, margin, holds)
    everything = np.ones(free.sum(), dtype=bool)
    if some is None and at_most is None and holds(everything):
        some = everything
    return None if some is None else whole(some), bound + int(forced.sum())


def _greedy(units: Units, margin: Margin, holds: Callable[[Choice], bool]) -> Choice | None:
    """Return words found one by one with the exact margin after each, none of which is needless."""
    removed, n_before = np.zeros(len(units.names), dtype=bool), np.zeros(len(units.names))
    while not holds(removed):
        if removed.all():
            return None
        after = np.full(len(removed), -np.inf)
        for at in np.flatnonzero(~removed):
            removed[at] = True
            after[at] = _least_margin(units, margin, removed)
            removed[at] = False
        best = int(after.argmax())
        n_before[best] = removed.sum()
        removed[best] = True
    return without_needless(removed, -n_before, holds)


def _least_margin(units: Units, margin: Margin, removed: Choice) -> float:
    """Return the margin over the nearest of the other classes without some units."""
    return float(margin.weighted(units.weights(removed)).now().min())


def _most_effective_first(units: Units, margin: Margin, numbers: Integers) -> Integers:
    """Return units in the order of what removing them does: alone, or of tokens their terms."""
    if units.are_tokens:
        effects = -margin.linear()[1][numbers].sum(axis=1)
    else:
        alone = (_mask(number, len(units.names)) for number in numbers)
        effects = np.array([_least_margin(units, margin, removed) for removed in alone])
    return numbers[np.argsort(-effects, kind="stable")]


def _forced(margin: Margin) -> Choice:
    """Return the tokens that cannot stay, as one of them outweighs all that is for the class."""
    forced = np.zeros(len(margin.logs) - 1, dtype=bool)
    while True:
        constant, terms = margin.weighted(~forced).linear(side=1)
        most = constant.clip(min=0.0) + terms.clip(min=0.0).sum(axis=0)
        new = (terms < -most * (1 + 1e-9)).any(axis=1) & ~forced
        if not new.any():
            return forced
        forced |= new


def _mask(numbers: Any, n: int) -> Choice:
    mask = np.zeros(n, dtype=bool)
    mask[numbers] = True
    return mask
