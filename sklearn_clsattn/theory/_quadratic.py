"""The max-margin quadratic programme, by PIQP over the pairs that matter, added in rounds."""

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._pairs import Array, TokenPairs

Matrix = Any  # embeddings, (n_tokens, dimension): an ndarray, or a CSR array where they are sparse
KEPT_SLACK = 1e-3  # rows with less slack than this stay for the next round
SATISFIED = 1e-9  # a row is satisfied where its slack is not below minus this
TIGHT = 1e-6  # a row is tight where its slack is not above this

_SEED = 0
_WORST_OVERALL = 50
_MAX_ROUNDS = 200
_ROUNDS_THAT_DROP = 100

# The programme's unit of length, as the norm that its solution should have. With solutions of
# norm 1,000 and more (deep chains of many tokens) PIQP reports feasible rows as infeasible.
_SOLUTION_NORM = 30.0

# Tolerance and infeasibility threshold of the first and, where that fails, the second attempt.
# PIQP reaches the tighter tolerance almost always, in one iteration more. The second never
# reports "infeasible": a linear programme decides that (see the caller).
_ATTEMPTS = ((1e-12, 0.9), (1e-9, 1e20))


@dataclass(frozen=True)
class Solution:
    """What the solver of the programme returned."""

    solved: bool  # False where the rows are infeasible, or the solver failed
    multipliers: Array  # (n_pairs,), not negative; of infeasible rows, of a sum of rows of almost 0
    active: NDArray[np.intp]  # pairs in the last programme
    detail: str  # the solver's status


def differences(matrix: Matrix, pairs: TokenPairs) -> Matrix:
    """Return E_s - E_s' of every pair, (n_pairs, dimension)."""
    return matrix[pairs.better] - matrix[pairs.worse]


def solve_max_margin(matrix: Matrix, pairs: TokenPairs, scale: float) -> Solution:
    """Minimise ||p||^2 subject to p.(E_s - E_s') >= 1 for all pairs, one at least."""
    piqp = _piqp()
    active = _starting_rows(pairs)

    def solve(which: NDArray[np.bool_], unit: float) -> tuple[str, Array, Array, float]:
        """Solve with these rows alone; return slack on all pairs, multipliers and a good unit."""
        detail, direction, duals = _solve(piqp, differences(matrix, pairs.subset(which)), unit)
        multipliers = np.zeros(len(pairs))
        multipliers[which] = duals
        if detail != "PIQP_SOLVED":  # its last direction need not be finite
            return detail, np.empty(0), multipliers, unit
        norm = float(np.linalg.norm(direction))
        slack = pairs.differences(matrix @ direction) - 1.0
        return detail, slack, multipliers, _SOLUTION_NORM / norm

    unit = scale
    for n_rounds in range(_MAX_ROUNDS):
        detail, slack, multipliers, unit = solve(active, unit)
        if detail != "PIQP_SOLVED":
            return Solution(False, multipliers, np.flatnonzero(active), detail)
        # A row in the programme already is satisfied up to the solver's accuracy.
        violated = np.flatnonzero((slack < -SATISFIED) & ~active)
        if not len(violated):
            break
        if n_rounds < _ROUNDS_THAT_DROP:
            active &= slack < KEPT_SLACK
        active[_worst(pairs, violated, slack)] = True
    else:
        detail = "too many rounds of constraint generation"
        return Solution(False, multipliers, np.flatnonzero(active), detail)
    # An interior point method leaves small multipliers on rows with slack, where they are 0 at
    # the solution; so the programme is solved again with the tight rows alone.
    detail, slack, purer, _ = solve(active & (slack <= TIGHT), unit)
    if detail == "PIQP_SOLVED" and slack.min() >= -SATISFIED:
        multipliers = purer
    return Solution(True, multipliers, np.flatnonzero(active), "PIQP_SOLVED")


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


def _solve(piqp: Any, rows: Any, unit: float) -> tuple[str, Array, Array]:
    """Return how PIQP ended on the rows given, its direction and its multipliers."""
    n_rows, dimension = rows.shape
    sparse = sp.issparse(rows)
    identity = sp.csc_matrix(sp.eye(dimension)) if sparse else np.eye(dimension)
    scaled = sp.csc_matrix(rows / unit) if sparse else np.asfortranarray(rows) / unit
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
