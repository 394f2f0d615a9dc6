r"""The fewest of m choices that together fulfil several linear conditions.

.. math:: \min \sum_s x_s \quad \text{with} \quad G^\top x \ge n, \quad x \in \{0, 1\}^m

This is an integer program (HiGHS, by :func:`scipy.optimize.milp`), whose bound holds whatever its
outcome.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Choice = NDArray[np.bool_]

# The solver's tolerance of conditions, in units of a condition's largest coefficient, and what it
# takes for 0.
_FEASIBILITY = 1e-6
_SMALLEST = 1e-9
_IMPOSSIBLE = 2
_MAX_EXCLUDED = 100  # solutions that do not hold


def fewest(
    gains: Array,
    needs: Array,
    holds: Callable[[Choice], bool],
    time_limit: float,
    shared: sp.csr_array | None = None,
    at_most: int | None = None,
) -> tuple[Choice | None, int | None]:
    """Return the smallest choice (m,) for which `holds`, and a lower bound of its size.

    Every such choice fulfils the conditions `gains` (m + f, R) and `needs` (R,); the last f gains
    are those of `shared` (f, m), sets of choices that count as soon as one of theirs is made. None
    is for no choice found, and for no bound where there is none of `at_most` a size.
    """
    stop, scale = monotonic() + time_limit, np.abs(gains).max(axis=0, initial=0.0)
    slack = _FEASIBILITY + _SMALLEST * len(gains)
    useful = scale > 0
    if not len(gains) or (needs[~useful] > 0).any():
        return None, None
    gains, needs = sp.csr_array((gains[:, useful] / scale[useful]).T), needs[useful] / scale[useful]
    n_shared = 0 if shared is None else shared.shape[0]
    n_choices = gains.shape[1] - n_shared
    cost = np.repeat([1.0, 0.0], [n_choices, n_shared])
    conditions = _of_shared(shared) if shared is not None and n_shared else []

    def require(row: Array, at_least: float) -> None:
        """Add a condition on the choices."""
        conditions.append((np.append(row, np.zeros(n_shared))[None], float(at_least)))

    if at_most is not None:
        require(np.full(n_choices, -1.0), -at_most)
    bound = 0
    # First with all that the solver's tolerance may let through, so that its bound is one.
    for _ in range(_MAX_EXCLUDED):
        choice, least = _solve(cost, [(gains, needs - slack), *conditions], stop)
        if least is None:
            return None, None
        bound = max(bound, least)
        if choice is None:
            break
        choice = choice[:n_choices]
        if holds(choice):
            return choice, bound
        require(np.where(choice, -1.0, 1.0), 1 - choice.sum())  # to differ somewhere
    choice, _ = _solve(cost, [(gains, needs + 10 * slack), *conditions], stop)
    if choice is None or not holds(choice[:n_choices]):
        return None, bound
    return choice[:n_choices], bound


def _of_shared(sets: sp.csr_array) -> list[tuple[Any, Any]]:
    """Return that a set counts no more than the sum of its choices, and no less than each."""
    n_sets, each = sets.shape[0], np.arange(sets.nnz)
    of_set = np.repeat(np.arange(n_sets), np.diff(sets.indptr))
    choice = sp.csr_array((-np.ones(sets.nnz), (each, sets.indices)), (sets.nnz, sets.shape[1]))
    set_ = sp.csr_array((np.ones(sets.nnz), (each, of_set)), (sets.nnz, n_sets))
    rows = [[sets, -sp.eye_array(n_sets)], [choice, set_]]
    return [(sp.block_array(rows, format="csr"), 0.0)]


def _solve(
    cost: Array, conditions: list[tuple[Any, Any]], stop: float
) -> tuple[Choice | None, int | None]:
    """Return a smallest choice and a bound, both None where there is none.

    `conditions` are rows and their lower bounds.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    left = stop - monotonic()
    if left <= 0:
        return None, 0
    result = milp(
        cost,
        integrality=cost,
        bounds=Bounds(0, 1),
        constraints=[LinearConstraint(A, lb=lb) for A, lb in conditions if A.shape[0]],
        options={"time_limit": left, "mip_rel_gap": 0.0},
    )
    if result.status == _IMPOSSIBLE:
        return None, None
    bound = result.mip_dual_bound
    known = bound is not None and np.isfinite(bound)
    least = max(0, int(np.ceil(bound - 1e-6))) if known else 0
    return (None if result.x is None else result.x > 0.5), least


def greedy(gains: Array, needs: Array, holds: Callable[[Choice], bool]) -> Choice | None:
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


def without_needless(chosen: Choice, usefulness: Array, holds: Callable[[Choice], bool]) -> Choice:
    """Return a part of a choice for which `holds` still, and for no part with one less."""
    for at in np.flatnonzero(chosen)[np.argsort(usefulness[chosen], kind="stable")]:
        chosen[at] = False
        if not holds(chosen):
            chosen[at] = True
    return chosen
