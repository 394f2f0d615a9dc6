r"""The fewest units of a document whose removal, addition or keeping puts a class ahead of others.

The margin over a class is positive where a sum of the units' terms is, :math:`G^\top x > n` with
:math:`x_u` for whether unit u is chosen. For one condition, the units of the largest gains are the
fewest. Several conditions, and words, as n-grams share them, are an integer program (HiGHS), with
:math:`y_U = \max_{u \in U} x_u` for what goes with any unit of the set U. Every choice that will do
fulfils its conditions, so that its bound holds.
"""

from operator import itemgetter
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from .units import Array, Choice, Integers, Margin, Units, mask

# The numbers of the units, the most effective first, None where none were found; and a proven lower
# bound of how many it takes, None where no number will do.
Found = tuple[Integers | None, int | None]

# The solver's tolerance of conditions, in units of a condition's largest coefficient, and what it
# takes for 0.
_FEASIBILITY = 1e-6
_SMALLEST = 1e-9
_IMPOSSIBLE = 2
_MAX_EXCLUDED = 100  # solutions that do not hold
_CANDIDATES = 200  # tokens of the vocabulary that are added for several conditions


def fewest(units: Units, margin: Margin, time_limit: float, *, over_any: bool = False) -> Found:
    """Return the fewest units with which the class is ahead of all others, or of one of them."""
    if len(margin.base) > 1 and not over_any:
        return _for_all(units, margin, time_limit)
    reached = []
    for rival in map(margin.over, range(len(margin.base))):
        first = _by_sorting(units, rival)
        if first is not None:
            after = units.changed(rival, mask(first, units.n)).now()[0]
            reached.append((len(first), 0.0 if units.change == "add" else -after, rival, first))
    best, least = None, list[int]()
    for bound, _, rival, numbers in sorted(reached, key=itemgetter(0, 1)):
        if best is not None and bound >= len(best):
            break
        found: Found = numbers, bound
        if units.change == "words":
            found = _for_all(units, rival, time_limit, None if best is None else len(best) - 1)
        best = best if found[0] is None else found[0]
        least += [] if found[1] is None else [found[1]]
    return best, min(least, default=None)


def _by_sorting(units: Units, rival: Margin) -> Integers | None:
    """Return the first units by gain that reach a single condition: of words, a lower bound."""
    constant, off, on = (part[..., 0] for part in units.conditions(rival))
    if units.change == "words":  # as if they shared nothing
        on = on[: units.n] + units.shared.T @ on[units.n :].clip(min=0.0)
        off = np.zeros(units.n)
    order = np.argsort(off - on, kind="stable")
    rest = np.append(np.cumsum(off[order][::-1])[::-1], 0.0)
    ahead = constant + np.append(0.0, np.cumsum(on[order])) + rest > 0
    for at in (0, -1):  # where nothing may be left
        ahead[at] = units.changed(rival, np.full(units.n, at != 0)).is_ahead()
    return order[: int(ahead.argmax())] if ahead.any() else None


def _for_all(units: Units, margin: Margin, time_limit: float, at_most: int | None = None) -> Found:
    """Return the fewest units, `at_most` so many, for a margin over all classes."""
    singles = [_by_sorting(units, margin.over(rival)) for rival in range(len(margin.base))]
    able = [single for single in singles if single is not None]
    if len(able) < len(singles):
        return None, None
    hardest, n = max(able, key=len), units.n
    bound, needs, gains = len(hardest), *_linear(units, margin)
    if units.change == "tokens" or bound == n:
        if units.changed(margin, mask(hardest, n)).is_ahead():
            return _ordered(units, margin, gains, np.sort(hardest)), bound
        if bound == n:
            return None, None
    if units.change == "add":
        return _added(units, margin, needs, gains, max(bound, 2))
    forced = _forced(units, margin)
    found: Choice | None = forced
    least: int | None = bound
    if not units.changed(margin, forced).is_ahead():
        of_others = needs, gains
        if forced.any():
            of_others = _linear(units, units.changed(margin, forced))
        found, least = _program(units, margin, *of_others, forced, time_limit, at_most)
        if least is None or forced.all():
            return None, None
        if found is None and at_most is None:
            found = _greedy(units, margin, *of_others, forced)
    bound = max(bound, least or 0, int(forced.sum()))
    if found is None:
        return None, bound
    return _ordered(units, margin, gains, np.flatnonzero(found)), bound


def _added(units: Units, margin: Margin, needs: Array, gains: Array, bound: int) -> Found:
    """Return the best single token to add, or a few of the most useful ones, found greedily."""
    best = int((gains - needs).min(axis=1).argmax())
    if units.changed(margin, mask(best, units.n)).is_ahead():
        return np.array([best]), 1
    useful = np.minimum(gains, needs.clip(min=0.0)).sum(axis=1)
    pool = np.argsort(-useful, kind="stable")[:_CANDIDATES]
    nothing = np.zeros(len(pool), dtype=bool)
    chosen = _greedy(units, units.with_some(margin, pool), needs, gains[pool], nothing)
    found = None if chosen is None else _ordered(units, margin, gains, pool[chosen])
    return found, bound


def _linear(units: Units, margin: Margin) -> tuple[Array, Array]:
    """Return what a margin lacks (R,), and what units add to it (n + n_shared, R)."""
    constant, off, on = units.conditions(margin)
    return -(constant + off.sum(axis=0)), on - off


def _forced(units: Units, margin: Margin) -> Choice:
    """Return the tokens that cannot stay, as one of them outweighs all that is for the class."""
    forced = np.zeros(units.n, dtype=bool)
    while units.change == "tokens":
        constant, terms, _ = units.conditions(units.changed(margin, forced))
        most = constant.clip(min=0.0) + terms.clip(min=0.0).sum(axis=0)
        new = (terms < -most * (1 + 1e-9)).any(axis=1) & ~forced
        if not new.any():
            break
        forced |= new
    return forced


def _ordered(units: Units, margin: Margin, gains: Array, numbers: Integers) -> Integers:
    """Return units in the order of their gains, or of words of what removing each does alone."""
    effects = gains[numbers].sum(axis=1)
    if units.change == "words":
        alone = (units.changed(margin, mask(number, units.n)) for number in numbers)
        effects = np.array([after.now().min() for after in alone])
    return numbers[np.argsort(-effects, kind="stable")]


def _greedy(
    units: Units, margin: Margin, needs: Array, gains: Array, forced: Choice
) -> Choice | None:
    """Return units found one by one, by their gains or of words by the margin after each.

    None of those that are not forced is needless.
    """
    useful = np.minimum(gains, needs.clip(min=0.0)).sum(axis=1)[: units.n]
    ranked = np.argsort(-useful, kind="stable")
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    chosen, order = forced.copy(), list[int]()
    while not units.changed(margin, chosen).is_ahead():
        free = ranked[~chosen[ranked]]
        if units.change == "words":
            more = (units.changed(margin, chosen | mask(at, units.n)) for at in free)
            after = np.array([one.now().min() for one in more])
        else:
            missing = (needs - gains[chosen].sum(axis=0)) / scale
            after = np.minimum(gains[free] / scale, missing.clip(min=_FEASIBILITY)).sum(axis=1)
            free, after = free[after > 0], after[after > 0]
        if not len(free):
            return None
        order.append(int(free[after.argmax()]))
        chosen[order[-1]] = True
    for at in reversed(order):
        chosen[at] = False
        chosen[at] = not units.changed(margin, chosen).is_ahead()
    return chosen


def _program(
    units: Units,
    margin: Margin,
    needs: Array,
    gains: Array,
    forced: Choice,
    time_limit: float,
    at_most: int | None,
) -> tuple[Choice | None, int | None]:
    """Return the smallest choice (n,), of `at_most` a size, and a lower bound of its size.

    None is for no choice found, and for no bound where there is none.
    """
    stop, n, n_shared = monotonic() + time_limit, units.n, len(gains) - units.n
    if units.change == "keep":  # what is more than needed does not help
        gains = np.minimum(gains, np.where(needs == 0, np.inf, needs.clip(min=0.0)))
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    rows, needs = sp.csr_array((gains / scale).T), needs / scale
    slack = _FEASIBILITY + _SMALLEST * len(gains)
    cost = np.repeat([1.0, 0.0], [n, n_shared])
    conditions = [LinearConstraint(cost[None], ub=np.inf if at_most is None else at_most)]
    if n_shared:  # a set counts no more than the sum of its units, and no less than each
        of_set, in_set = units.shared.nonzero()
        each = np.arange(len(of_set))
        ends = np.repeat([1.0, -1.0], len(each)), (np.tile(each, 2), np.append(n + of_set, in_set))
        no_more = sp.hstack([units.shared, -sp.eye_array(n_shared)])
        both = sp.vstack([no_more, sp.csr_array(ends, shape=(len(each), n + n_shared))])
        conditions.append(LinearConstraint(both, lb=0.0))

    def solve(slack: float) -> tuple[Choice | None, int | None]:
        left = stop - monotonic()
        if left <= 0:
            return None, 0
        result: Any = milp(
            cost,
            integrality=cost,
            bounds=Bounds(np.append(forced, np.zeros(n_shared)), 1),
            constraints=[LinearConstraint(rows, lb=needs - slack), *conditions],
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )
        if result.status == _IMPOSSIBLE:
            return None, None
        bound = result.mip_dual_bound
        least = int(np.ceil(bound - 1e-6)) if bound is not None and np.isfinite(bound) else 0
        return (None if result.x is None else result.x[:n] > 0.5), max(0, least)

    def holds(choice: Choice | None) -> bool:
        return choice is not None and units.changed(margin, choice).is_ahead()

    bound = 0
    # First with all that the solver's tolerance may let through, so that its bound is one.
    for _ in range(_MAX_EXCLUDED):
        choice, least = solve(slack)
        if least is None:
            return None, None
        bound = max(bound, least)
        if choice is None or holds(choice):
            break
        differ = np.append(np.where(choice, -1.0, 1.0), np.zeros(n_shared))
        conditions.append(LinearConstraint(differ[None], lb=1.0 - choice.sum()))
    if not holds(choice):
        choice, _ = solve(-10 * slack)
    return (choice if holds(choice) else None), bound
