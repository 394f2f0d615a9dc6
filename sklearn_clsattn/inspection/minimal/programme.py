r"""The fewest of m choices that together fulfil several linear conditions.

.. math:: \min \sum_s x_s \quad \text{with} \quad G^\top x \ge n, \quad x \in \{0, 1\}^m

A single condition is solved by sorting; several are an integer programme (HiGHS, by
:func:`scipy.optimize.milp`), whose bound holds whatever its outcome.
"""

from collections.abc import Callable
from time import monotonic

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Chosen = NDArray[np.bool_]

# The solver's tolerance of conditions, in units of a condition's largest coefficient, and what it
# takes for 0.
_FEASIBILITY = 1e-6
_SMALLEST = 1e-9
_IMPOSSIBLE = 2
# How often a solution that does not hold is excluded.
_MAX_EXCLUDED = 100


def fewest(
    gains: Array,
    needs: Array,
    holds: Callable[[Chosen], bool],
    time_limit: float,
    following: sp.csr_array | None = None,
    n_following: int = 0,
    at_most: int | None = None,
) -> tuple[Chosen | None, int | None]:
    """Return the smallest choice (m,) for which `holds`, and a lower bound of its size.

    Every such choice fulfils the conditions `gains` (m + f, R) and `needs` (R,); the last f
    (`n_following`) variables follow from it, by sums (n, m + f) that must not be negative. None is
    for no choice found, and for no bound where there is none of `at_most` a size.
    """
    stop, scale = monotonic() + time_limit, np.abs(gains).max(axis=0, initial=0.0)
    slack = _FEASIBILITY + _SMALLEST * len(gains)
    kept = scale > 0
    if not len(gains) or (needs[~kept] > 0).any():
        return None, None
    programme = _Programme(gains[:, kept] / scale[kept], following, n_following)
    if at_most is not None:
        programme.limit(at_most)
    needs, bound = needs[kept] / scale[kept], 0
    # First with all that the solver's tolerance may let through, so that its bound is one.
    for _ in range(_MAX_EXCLUDED):
        chosen, least = programme.solve(needs - slack, stop)
        if least is None:
            return None, None
        bound = max(bound, least)
        if chosen is None:
            break
        if holds(chosen):
            return chosen, bound
        programme.exclude(chosen)
    chosen, _ = programme.solve(needs + 10 * slack, stop)
    return (chosen if chosen is not None and holds(chosen) else None), bound


class _Programme:
    """The programme of :func:`fewest`, less the choices that were excluded."""

    def __init__(self, gains: Array, following: sp.csr_array | None, n_following: int) -> None:
        self._n_choices = len(gains) - n_following
        self._cost = np.repeat([1.0, 0.0], [self._n_choices, n_following])
        self._gains, self._following = sp.csr_array(gains.T), following
        self._cuts: list[tuple[Array, float]] = []  # rows and their lower bounds

    def solve(self, needs: Array, stop: float) -> tuple[Chosen | None, int | None]:
        """Return a smallest choice and a bound, both None where there is none."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        left = stop - monotonic()
        if left <= 0:
            return None, 0
        constraints = [LinearConstraint(self._gains, lb=needs)] if len(needs) else []
        if self._following is not None:
            constraints.append(LinearConstraint(self._following, lb=0.0))
        if self._cuts:
            cuts = np.zeros((len(self._cuts), len(self._cost)))
            cuts[:, : self._n_choices] = [row for row, _ in self._cuts]
            constraints.append(LinearConstraint(cuts, lb=[least for _, least in self._cuts]))
        result = milp(
            self._cost,
            integrality=self._cost,
            bounds=Bounds(0, 1),
            constraints=constraints,
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )
        if result.status == _IMPOSSIBLE:
            return None, None
        bound = result.mip_dual_bound
        known = bound is not None and np.isfinite(bound)
        least = max(0, int(np.ceil(bound - 1e-6))) if known else 0
        return (None if result.x is None else result.x[: self._n_choices] > 0.5), least

    def exclude(self, chosen: Chosen) -> None:
        """Leave out a choice: another differs from it somewhere."""
        self._cuts.append((np.where(chosen, -1.0, 1.0), 1.0 - float(chosen.sum())))

    def limit(self, at_most: int) -> None:
        """Leave out choices of more than this size."""
        self._cuts.append((np.full(self._n_choices, -1.0), -float(at_most)))


def greedy(gains: Array, needs: Array, holds: Callable[[Chosen], bool]) -> Chosen | None:
    """Return a choice (m,) for which `holds` and of which none can be left out, step by step."""
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    gains, missing = gains / scale, needs / scale
    chosen = np.zeros(len(gains), dtype=bool)
    while not holds(chosen):
        useful = np.minimum(gains, missing.clip(min=_FEASIBILITY)).sum(axis=1)
        useful[chosen] = -np.inf
        best = int(useful.argmax()) if len(useful) else -1
        if best < 0 or useful[best] <= 0:
            return None
        chosen[best] = True
        missing = missing - gains[best]
    return without_needless(chosen, gains.sum(axis=1), holds)


def without_needless(chosen: Chosen, usefulness: Array, holds: Callable[[Chosen], bool]) -> Chosen:
    """Return a part of a choice for which `holds` still, and for no part with one less."""
    for at in np.flatnonzero(chosen)[np.argsort(usefulness[chosen], kind="stable")]:
        chosen[at] = False
        if not holds(chosen):
            chosen[at] = True
    return chosen
