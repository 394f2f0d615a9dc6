"""The max-margin direction of a selection: the limit of gradient flow in Theorem 4.3."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from ._selection import (
    Array,
    InfeasibleSelectionError,
    TokenPairs,
    check_acyclic,
    divide,
    token_pairs,
)

Matrix = Any  # embeddings, (n_tokens, d): an ndarray, or a CSR array where they are sparse

MAX_DUALITY_GAP = 1e-7  # an answer that is not proven optimal up to this is rejected
SATISFIED = 1e-9  # a pair is satisfied where its score difference is not below 1 by more
TIGHT = 1e-6  # a pair is tight where its score difference is not above 1 by more
# A largest margin below this, in units of the typical length of E_s - E_s', counts as 0.
_NO_MARGIN = 1e-6
_ROUNDING_MARGIN = 1e-11  # the same where the solver returned a direction

# The units of length tried, relative to the typical length of E_s - E_s': with solutions of norm
# 1,000 and more (deep chains of many tokens) PIQP reports feasible pairs as infeasible.
_UNITS = (1.0, 1e-2, 1e-4)

# Tolerance and infeasibility threshold of the first and, where that fails, the second attempt.
# PIQP reaches the tighter tolerance almost always. The second never reports "infeasible": a linear
# program decides that.
_ATTEMPTS = ((1e-12, 0.9), (1e-9, 1e20))


@dataclass(frozen=True)
class MaxMargin:
    r"""The direction of least norm that makes a selection with margin 1, and the proof of it.

    Attributes
    ----------
    direction : ndarray of shape (d,)
        The solution p, with score differences of 1 at least.
    scores : ndarray of shape (n_tokens,)
        Attention scores E p.
    margin : float
        The geometric margin 1 / ||p||, the largest that any unit vector has; inf where there
        are no pairs.
    support_pairs : ndarray of shape (n_support, 2)
        The tight pairs (s, s'), columns of X: their score difference is 1 up to 1e-6.
    multipliers : ndarray of shape (n_support,)
        Non-negative, with p the sum of multiplier times :math:`E_s - E_{s'}` over
        `support_pairs`.
    n_pairs : int
        Number of distinct pairs (s, s') that were required.
    duality_gap : float
        An upper bound on 1 less the cosine between `direction` and the exact solution.
    """

    direction: Array
    scores: Array
    margin: float
    support_pairs: NDArray[np.intp]
    multipliers: Array
    n_pairs: int
    duality_gap: float


def max_margin_direction(embeddings: Any, X: Any, selected: Any) -> MaxMargin:
    r"""Return the direction to which gradient flow on the embedding of ``<cls>`` tends.

    Parameters
    ----------
    embeddings : {array-like, sparse matrix or array} of shape (n_tokens, d)
        The frozen token embeddings E. Those of infinite width are the sparse matrix that
        :func:`one_step_embeddings` returns without a dimension.
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.
    selected : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        True where the document selects the token, as :func:`selected_tokens` returns it. Every
        document that has tokens selects one of them at least.

    Returns
    -------
    result : MaxMargin
        The direction, the scores, the margin and the tight pairs. Where no pair is required
        (each document selects all its tokens), p is 0 and its margin infinite.

    Raises
    ------
    InfeasibleSelectionError
        If no direction makes the selection: a ``ValueError`` that names the tokens and the
        documents of a cycle, or reports that the embeddings' dimension is too low.
    RuntimeError
        If the solver's answer fails the checks: every pair satisfied, and optimal up to 1e-7.
    ImportError
        If PIQP is not installed: ``pip install 'sklearn-clsattn[theory]'``.

    Notes
    -----
    By Theorem 4.3 of Wu et al. (2025), arXiv:2505.17282, if the direction of p converges under
    gradient flow, with E frozen and documents of one relevant token, it is that of

    .. math:: \arg\min \|p\|^2 \quad \text{subject to} \quad p^\top (E_s - E_{s'}) \ge 1
              \quad \forall X,\ s \in S_X,\ s' \in X \setminus S_X.

    PIQP solves this quadratic program, and its answer is checked without it: p is made of the
    multipliers :math:`\lambda \ge 0`, as :math:`p = \sum \lambda_{ss'} (E_s - E_{s'})`, and scaled
    until the smallest score difference over all pairs is 1. Then the cosine between p and the
    solution is at least :math:`\sum \lambda / \|p\|^2`; 1 less that is the `duality_gap`.

    With dense embeddings the cost grows with the cube of min(d, n_tokens); in the limit of
    infinite width everything is sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.paper import max_margin_direction
    >>> X = [[1, 1, 0], [0, 1, 1]]
    >>> selected = [[True, False, False], [False, False, True]]
    >>> result = max_margin_direction(np.eye(3), X, selected)
    >>> result.direction.round(6)
    array([ 0.333333, -0.666667,  0.333333])
    >>> result.support_pairs
    array([[0, 1],
           [2, 1]])
    """
    piqp = import_piqp()
    selected, unselected = divide(X, selected)
    n_tokens = selected.shape[1]
    matrix = check_array(embeddings, accept_sparse="csr", dtype=np.float64, input_name="embeddings")
    if matrix.shape[0] != n_tokens:
        raise ValueError(
            f"embeddings must have one row for each of the {n_tokens} columns of X, "
            f"got shape {matrix.shape}."
        )
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
    pairs = token_pairs(selected, unselected)
    check_acyclic(selected, unselected, pairs)
    return _checked(matrix, pairs, _multipliers(piqp, matrix, pairs))


def import_piqp() -> Any:
    """Return the module piqp, or raise an ImportError that says how to install it."""
    try:
        return importlib.import_module("piqp")
    except ImportError as error:
        raise ImportError(
            "The max-margin direction needs PIQP, which solves quadratic programs: "
            "pip install 'sklearn-clsattn[theory]'."
        ) from error


def _multipliers(piqp: Any, embeddings: Matrix, pairs: TokenPairs) -> Array:
    """Return the multipliers of all pairs, or raise if no direction satisfies them."""
    if not len(pairs):
        return np.empty(0)
    used, positions = np.unique(np.concatenate([pairs.better, pairs.worse]), return_inverse=True)
    better, worse = np.split(positions, 2)
    local = TokenPairs(better, worse, len(used))
    matrix = _reduced(embeddings, used)
    scale = _typical_length(matrix, local)
    # Differences of equal embeddings are rounding, of this order.
    rounding = 1e-13 * float(abs(matrix).max())
    if not scale > rounding:  # no pair differs at all
        raise _low_dimension(0.0, 0.0, len(pairs), matrix.shape)
    rows = local.differences(matrix)
    for unit in _UNITS:
        status, multipliers = _piqp_solve(piqp, rows, unit * scale)
        if status == "PIQP_SOLVED":
            break
    bound = _margin_bound(matrix, local, multipliers)
    if status == "PIQP_SOLVED":
        if bound <= max(_ROUNDING_MARGIN * scale, rounding):
            raise _low_dimension(bound, scale, len(pairs), matrix.shape)
        return multipliers
    if bound > _NO_MARGIN * scale:
        # On infeasible pairs an interior point method may end with a weak bound or undecided.
        proof = _proof_of_infeasibility(rows / scale)
        bound = min(bound, _margin_bound(matrix, local, proof))
    if bound <= max(_NO_MARGIN * scale, rounding):
        raise _low_dimension(bound, scale, len(pairs), matrix.shape)
    raise RuntimeError(
        f"The quadratic program over {len(pairs)} pairs was not solved: PIQP ends with {status}."
    )


def _reduced(matrix: Matrix, used: NDArray[np.intp]) -> Matrix:
    """Return embeddings of the used tokens with the same inner products, in few dimensions."""
    if sp.issparse(matrix):
        matrix = matrix[used]
        return matrix[:, np.unique(matrix.indices)]
    matrix = matrix[used]
    if matrix.shape[1] > len(used):
        # p lies in the span of the rows: coordinates in a basis of it are enough.
        return np.ascontiguousarray(scipy.linalg.qr(matrix.T, mode="r")[0][: len(used)].T)
    return matrix


def _typical_length(matrix: Matrix, pairs: TokenPairs) -> float:
    """Return the root mean square of ||E_s - E_s'|| over some of the pairs."""
    some = pairs.subset(np.unique(np.linspace(0, len(pairs) - 1, 1000).astype(np.intp)))
    rows = some.differences(matrix)
    return float(np.sqrt((rows * rows).sum() / len(some)))


def _piqp_solve(piqp: Any, rows: Matrix, unit: float) -> tuple[str, Array]:
    """Return how PIQP ends minimising ||p||^2 with p.z >= 1 for all rows z, and its multipliers."""
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
    # An interior point method leaves small multipliers on pairs where they are 0 at the solution.
    slack = scaled @ np.array(solver.result.x) - 1.0
    return str(status.name), np.where(slack > TIGHT, 0.0, duals) / unit**2


def _margin_bound(matrix: Matrix, pairs: TokenPairs, multipliers: Array) -> float:
    """Return an upper bound on the margin of unit vectors, from weights of the pairs.

    For q >= 0 of sum 1 it is at most sum q p.(E_s - E_s') <= ||sum q (E_s - E_s')||.
    """
    total = float(multipliers.sum())
    if not total > 0:
        return np.inf
    return float(np.linalg.norm(matrix.T @ pairs.totals(multipliers / total)))


def _proof_of_infeasibility(rows: Matrix) -> Array:
    """Return q >= 0 of sum 1 with sum q z = 0 over the rows z, or 0 if there is none."""
    equations = sp.vstack([sp.csr_array(rows.T), np.ones((1, rows.shape[0]))], format="csc")
    values = np.append(np.zeros(rows.shape[1]), 1.0)
    answer = scipy.optimize.linprog(np.zeros(rows.shape[0]), A_eq=equations, b_eq=values)
    return np.maximum(answer.x, 0.0) if answer.status == 0 else np.zeros(rows.shape[0])


def _low_dimension(
    bound: float, scale: float, n_pairs: int, shape: tuple[int, int]
) -> InfeasibleSelectionError:
    """Return the error that no direction of these embeddings makes the selection."""
    return InfeasibleSelectionError(
        "Some attention scores make this selection (it has no cycles), but none that these "
        f"embeddings have: no unit vector p has a margin above {bound:.2g} on its {n_pairs} "
        f"pairs, where embeddings are about {scale:.2g} apart. With {shape[1]} independent "
        f"dimensions for {shape[0]} tokens, use more dimensions (from the number of tokens on, "
        "generic embeddings make every selection without cycles), or the limit of infinite width."
    )


def _checked(embeddings: Matrix, pairs: TokenPairs, multipliers: Array) -> MaxMargin:
    """Make the direction of the multipliers, and check it on every pair without the solver."""
    direction = embeddings.T @ pairs.totals(multipliers)
    scores = embeddings @ direction
    if not len(pairs):
        return MaxMargin(
            direction, scores, np.inf, np.empty((0, 2), dtype=np.intp), multipliers, 0, 0.0
        )
    smallest = float(pairs.differences(scores).min())
    if not smallest > 0.5:
        raise RuntimeError(
            "The solver's answer is not feasible: its smallest score difference is "
            f"{smallest:.3g} instead of 1 over {len(pairs)} pairs."
        )
    direction, scores, multipliers = (part / smallest for part in (direction, scores, multipliers))
    norm = float(np.linalg.norm(direction))
    gap = max(0.0, 1.0 - float(multipliers.sum()) / norm**2)
    if not gap <= MAX_DUALITY_GAP:
        raise RuntimeError(
            f"The solver's answer fails the checks: over {len(pairs)} pairs, 1 less its cosine to "
            f"the solution is only known to be below {gap:.3g} (at most {MAX_DUALITY_GAP})."
        )
    tight = np.flatnonzero((pairs.differences(scores) <= 1.0 + TIGHT) | (multipliers > 0))
    return MaxMargin(
        direction=direction,
        scores=scores,
        margin=1.0 / norm,
        support_pairs=np.column_stack([pairs.better[tight], pairs.worse[tight]]),
        multipliers=multipliers[tight],
        n_pairs=len(pairs),
        duality_gap=gap,
    )
