"""The max-margin quadratic programme, by PIQP with constraint generation.

Few of the pairs are tight at the solution. So a programme over some of them is solved, the
most violated of the others join, those with slack leave, until all are satisfied. Every round
costs one small programme and one look at every pair.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._pairs import Array, TokenPairs

KEPT_SLACK = 1e-3
"""Rows with less slack than this stay for the next round."""

SATISFIED = 1e-9
"""A row is satisfied where its slack is not below minus this; the right-hand side is 1."""

TIGHT = 1e-6
"""A row is tight where its slack is not above this."""

_SEED = 0
_WORST_OVERALL = 50
_MAX_ROUNDS = 200
_ROUNDS_THAT_DROP = 100

# The programme's unit of length, as the norm that its solution should have. With solutions of
# norm 1,000 and more (deep chains of many tokens) PIQP took feasible rows for infeasible.
_SOLUTION_NORM = 30.0

# Tolerance and infeasibility threshold of the first and, where that fails, the second attempt.
# PIQP reaches the tighter tolerance almost always, in one iteration more. The second never says
# "infeasible": a linear programme decides that (see the caller).
_ATTEMPTS = ((1e-12, 0.9), (1e-9, 1e20))


class Rows(Protocol):
    """Embeddings of tokens, in NumPy: what the programme needs to know of them."""

    dimension: int

    def scores(self, direction: Array) -> Array:
        """Return E @ direction."""
        ...

    def pull_back(self, per_token: Array) -> Array:
        """Return E.T @ per_token."""
        ...

    def differences(self, pairs: TokenPairs) -> Any:
        """Return E_s - E_s' of every pair: an ndarray, or a CSC matrix where it is sparse."""
        ...


class DenseRows:
    """Embeddings as an ndarray of shape (n_tokens, d)."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.dimension = matrix.shape[1]

    def scores(self, direction: Array) -> Array:
        """Return E @ direction."""
        return np.asarray(self.matrix @ direction)

    def pull_back(self, per_token: Array) -> Array:
        """Return E.T @ per_token."""
        return np.asarray(self.matrix.T @ per_token)

    def differences(self, pairs: TokenPairs) -> Array:
        """Return E_s - E_s' of every pair as an ndarray."""
        return np.asarray(self.matrix[pairs.better] - self.matrix[pairs.worse])


class LimitRows:
    """The embeddings [I | S] of infinite width: sparse rows."""

    def __init__(self, shifts: Array) -> None:
        self.shifts = shifts
        self.dimension = sum(shifts.shape)

    def scores(self, direction: Array) -> Array:
        """Return [I | S] @ direction."""
        n_tokens = len(self.shifts)
        return np.asarray(direction[:n_tokens] + self.shifts @ direction[n_tokens:])

    def pull_back(self, per_token: Array) -> Array:
        """Return [I | S].T @ per_token."""
        return np.concatenate([per_token, self.shifts.T @ per_token])

    def differences(self, pairs: TokenPairs) -> Any:
        """Return E_s - E_s' of every pair as a CSC matrix."""
        steps = self.shifts[pairs.better] - self.shifts[pairs.worse]
        return sp.hstack([pairs.matrix(), sp.csr_array(steps)], format="csc")


@dataclass(frozen=True)
class Solution:
    """What the programme's solver says.

    Attributes
    ----------
    status : {"solved", "failed"}
        "failed": the rows are infeasible, or the solver did not cope.

    multipliers : ndarray of shape (n_pairs,)
        Non-negative, one for each pair. Of infeasible rows they may be weights for which the
        weighted sum of the rows is all but 0.

    active : ndarray of int
        The pairs that were in the last programme.

    n_rounds : int
        How many programmes were solved.

    detail : str
        The solver's own word for how the last one ended.
    """

    status: str
    multipliers: Array
    active: NDArray[np.intp]
    n_rounds: int
    detail: str


def solve_max_margin(rows: Rows, pairs: TokenPairs, scale: float) -> Solution:
    """Minimise ||p||^2 subject to p.(E_s - E_s') >= 1 for all pairs.

    Parameters
    ----------
    rows : Rows
        The embeddings E.

    pairs : TokenPairs
        One at least.

    scale : float
        The typical length of E_s - E_s'. The first programme is solved in its units, so that
        the solver's tolerances mean the same whatever the embeddings' scale.

    Returns
    -------
    Solution
    """
    piqp = _piqp()
    active = _starting_rows(pairs)

    def solve(which: NDArray[np.bool_], unit: float) -> tuple[str, Array, Array, float]:
        """Solve with these rows alone; return slack on all pairs, multipliers and a good unit."""
        detail, direction, duals = _solve(piqp, rows.differences(pairs.subset(which)), unit)
        multipliers = np.zeros(len(pairs))
        multipliers[which] = duals
        if detail != "PIQP_SOLVED":  # what it leaves behind need not be finite
            return detail, np.empty(0), multipliers, unit
        norm = float(np.linalg.norm(direction))
        slack = pairs.differences(rows.scores(direction)) - 1.0
        return detail, slack, multipliers, _SOLUTION_NORM / norm

    unit = scale
    for n_rounds in range(1, _MAX_ROUNDS + 1):
        detail, slack, multipliers, unit = solve(active, unit)
        if detail != "PIQP_SOLVED":
            return Solution("failed", multipliers, np.flatnonzero(active), n_rounds, detail)
        # A row that was in the programme is as good as the solver makes it.
        violated = np.flatnonzero((slack < -SATISFIED) & ~active)
        if not len(violated):
            break
        if n_rounds <= _ROUNDS_THAT_DROP:
            active &= slack < KEPT_SLACK
        active[_worst(pairs, violated, slack)] = True
    else:
        detail = "too many rounds of constraint generation"
        return Solution("failed", multipliers, np.flatnonzero(active), _MAX_ROUNDS, detail)
    # An interior point method leaves traces of multipliers on rows with slack, where they are 0
    # at the solution. With the tight rows alone there is nowhere to leave them.
    detail, slack, purer, _ = solve(active & (slack <= TIGHT), unit)
    if detail == "PIQP_SOLVED" and slack.min() >= -SATISFIED:
        multipliers = purer
    return Solution("solved", multipliers, np.flatnonzero(active), n_rounds + 1, "PIQP_SOLVED")


def _piqp() -> Any:
    try:
        return importlib.import_module("piqp")
    except ImportError as error:
        raise ImportError(
            "max_margin_direction needs the quadratic programme solver PIQP: "
            "pip install 'sklearn-clsattn[theory]'. (maximise_margin needs no solver.)"
        ) from error


def _starting_rows(pairs: TokenPairs) -> NDArray[np.bool_]:
    """Return a mask: the first row of each selected token, and half as many as tokens at random."""
    active = np.zeros(len(pairs), dtype=bool)
    active[np.unique(pairs.better, return_index=True)[1]] = True
    random = np.random.default_rng(_SEED)
    active[random.integers(0, len(pairs), pairs.n_tokens // 2)] = True
    return active


def _worst(pairs: TokenPairs, violated: NDArray[np.intp], slack: Array) -> NDArray[np.intp]:
    """Return the most violated row of each selected and each unselected token, and overall."""
    ordered = violated[np.argsort(slack[violated], kind="stable")]
    of_better = np.unique(pairs.better[ordered], return_index=True)[1]
    of_worse = np.unique(pairs.worse[ordered], return_index=True)[1]
    return np.concatenate([ordered[of_better], ordered[of_worse], ordered[:_WORST_OVERALL]])


def _solve(piqp: Any, differences: Any, unit: float) -> tuple[str, Array, Array]:
    """Return how PIQP ended on the rows given, its direction and its multipliers."""
    n_rows, dimension = differences.shape
    sparse = sp.issparse(differences)
    identity = sp.csc_matrix(sp.eye(dimension)) if sparse else np.eye(dimension)
    scaled = sp.csc_matrix(differences / unit) if sparse else np.asfortranarray(differences) / unit
    for tolerance, threshold in _ATTEMPTS:
        solver = piqp.SparseSolver() if sparse else piqp.DenseSolver()
        settings = solver.settings
        settings.eps_abs = settings.eps_rel = tolerance
        settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tolerance
        settings.infeasibility_threshold = threshold
        solver.setup(P=identity, c=np.zeros(dimension), G=scaled, h_l=np.ones(n_rows))
        status = solver.solve()
        if status.name == "PIQP_SOLVED":
            break
    duals = np.maximum(np.nan_to_num(np.array(solver.result.z_l), posinf=0.0), 0.0)
    return str(status.name), np.array(solver.result.x) / unit, duals / unit**2
