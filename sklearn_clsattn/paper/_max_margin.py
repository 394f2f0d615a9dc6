"""Selected tokens, and their max-margin direction: the limit of gradient flow in Theorem 4.3."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph
from sklearn.utils import check_array

from .._core.fitted import select_tokens
from .._types import Array
from ._input_checks import checked_counts, listed

Matrix = Any  # an ndarray, or a CSR array where the embeddings are sparse

# An answer that is not proven optimal up to this is rejected. Where the multiplier of a tight pair
# is 0, an interior point method leaves some 1e-6.
MAX_DUALITY_GAP = 1e-5
TIGHT = 1e-6  # a pair is tight where its score difference is not above 1 by more
_ROUNDING_MARGIN = 1e-11  # a smaller margin, in units of the typical |E_s - E_s'|, counts as 0

# The units of length tried, relative to the typical length of E_s - E_s': with solutions of norm
# 1,000 and more (deep chains of many tokens) PIQP reports feasible pairs as infeasible.
_UNITS = (1.0, 1e-2, 1e-4)
# Tolerance and infeasibility threshold of two attempts in each unit. The second never reports
# "infeasible": a linear program decides that.
_ATTEMPTS = ((1e-12, 0.9), (1e-9, 1e20))


def selected_tokens(scores: ArrayLike, X: Any) -> sp.csr_array:
    r"""Return the tokens with the highest attention score in each document.

    These are the selected tokens :math:`S_X(p)` of Wu et al. (2025), arXiv:2505.17282, section 4.

    Parameters
    ----------
    scores : array-like of shape (n_tokens,)
        Attention scores :math:`a_s = E_s^\top p`.
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.

    Returns
    -------
    selected : boolean CSR array of shape (n_documents, n_tokens)
        True if the token is selected, including ties within 1e-6; no False is stored. A document
        without tokens selects nothing.

    Examples
    --------
    >>> from sklearn_clsattn.paper import selected_tokens
    >>> X = [[1, 2, 0], [0, 1, 3], [0, 0, 0]]
    >>> selected_tokens([0.5, -1.0, 2.0], X).toarray()
    array([[ True, False, False],
           [False, False,  True],
           [False, False, False]])
    """
    X = checked_counts(X)
    checked = check_array(scores, ensure_2d=False, dtype=np.float64, input_name="scores")
    if checked.shape != (X.shape[1],):
        raise ValueError(
            f"scores must have shape ({X.shape[1]},), one score for each column of X, "
            f"got {checked.shape}."
        )
    documents, tokens = select_tokens(checked, X)
    flags = np.ones(len(tokens), dtype=bool)
    return sp.csr_array(sp.coo_array((flags, (documents, tokens)), shape=X.shape))


@dataclass(frozen=True)
class MaxMargin:
    r"""The direction of least norm that makes a selection with margin 1, with a certificate.

    Attributes
    ----------
    direction : ndarray of shape (d,)
        The solution p, with score differences of at least 1.
    scores : ndarray of shape (n_tokens,)
        Attention scores E p.
    margin : float
        The geometric margin 1 / ||p||, the largest of any unit vector; inf if there are no pairs.
    support_pairs : ndarray of shape (n_support, 2)
        The tight pairs (s, s'), columns of X: their score difference is 1 up to 1e-6.
    multipliers : ndarray of shape (n_support,)
        Non-negative: p is the sum of multiplier times :math:`E_s - E_{s'}` over `support_pairs`.
    duality_gap : float
        An upper bound on 1 minus the cosine between `direction` and the exact solution.
    """

    direction: Array
    scores: Array
    margin: float
    support_pairs: NDArray[np.intp]
    multipliers: Array
    duality_gap: float


def max_margin_direction(embeddings: Any, X: Any, selected: Any) -> MaxMargin:
    r"""Return the direction to which gradient flow on the embedding of ``<cls>`` tends.

    Parameters
    ----------
    embeddings : {array-like, sparse matrix or array} of shape (n_tokens, d)
        The frozen token embeddings E. For infinite width, the sparse matrix that
        :func:`one_step_embeddings` returns without a dimension.
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.
    selected : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        True if the document selects the token, as returned by :func:`selected_tokens`. Each
        document that has tokens must select at least one of them.

    Returns
    -------
    result : MaxMargin
        The direction, the scores, the margin and the tight pairs. If no pair is required (each
        document selects all its tokens), p is 0 and its margin is infinite.

    Raises
    ------
    ValueError
        If no direction makes the selection. The message names tokens of a cycle, each of which
        must score higher than the next, or reports that the dimension is too low.
    RuntimeError
        If the solution fails the checks: all pairs satisfied, and optimal up to 1e-5.
    ImportError
        If PIQP is not installed: ``pip install 'sklearn-clsattn[theory]'``.

    Notes
    -----
    By Theorem 4.3 of Wu et al. (2025), arXiv:2505.17282, if the direction of p converges under
    gradient flow, with E frozen and one relevant token per document, it is that of

    .. math:: \arg\min \|p\|^2 \quad \text{subject to} \quad p^\top (E_s - E_{s'}) \ge 1
              \quad \forall X,\ s \in S_X,\ s' \in X \setminus S_X.

    PIQP solves this quadratic program, and its solution is checked independently: p is computed
    from the multipliers :math:`\lambda \ge 0`, as :math:`p = \sum \lambda_{ss'} (E_s - E_{s'})`,
    and scaled so that the smallest score difference over all pairs is 1. Then the cosine between p
    and the solution is at least :math:`\sum \lambda / \|p\|^2`; 1 minus that is the `duality_gap`.
    With dense embeddings the cost grows with the cube of min(d, n_tokens).

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
    # 1) the pairs (s, s')
    graph = pair_graph(X, selected)
    matrix = check_array(embeddings, accept_sparse="csr", dtype=np.float64, input_name="embeddings")
    if matrix.shape[0] != graph.shape[0]:
        raise ValueError(
            f"embeddings must have one row for each of the {graph.shape[0]} columns of X, "
            f"got shape {matrix.shape}."
        )
    matrix = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
    pairs = np.column_stack(graph.nonzero()).astype(np.intp)
    _check_acyclic(graph, pairs)
    n_pairs = len(pairs)
    # Times numbers or rows per token, this is the first less the second of every pair.
    differences = sp.csr_array(
        (np.tile([1.0, -1.0], n_pairs), pairs.ravel(), np.arange(0, 2 * n_pairs + 1, 2)),
        shape=(n_pairs, graph.shape[0]),
    )
    # 2) p from the multipliers of the quadratic program
    multipliers = _multipliers(piqp, matrix, differences)
    direction = matrix.T @ (differences.T @ multipliers)
    scores = matrix @ direction
    if not n_pairs:
        return MaxMargin(direction, scores, np.inf, pairs, multipliers, 0.0)
    # 3) the scale at which the smallest score difference is 1
    smallest = float((differences @ scores).min())
    scale = max(smallest, 0.5)
    direction /= scale
    scores /= scale
    multipliers /= scale
    # 4) the certificate
    norm = float(np.linalg.norm(direction))
    gap = max(0.0, 1.0 - float(multipliers.sum()) / norm**2)
    if not (smallest > 0.5 and gap <= MAX_DUALITY_GAP):
        raise RuntimeError(
            f"The solver's answer fails the checks: over {n_pairs} pairs, its smallest score "
            f"difference is {smallest:.3g} instead of 1, and 1 minus its cosine to the solution is "
            f"only known to be below {gap:.3g} (expected at most {MAX_DUALITY_GAP})."
        )
    tight = np.flatnonzero((differences @ scores <= 1.0 + TIGHT) | (multipliers > 0))
    return MaxMargin(direction, scores, 1.0 / norm, pairs[tight], multipliers[tight], gap)


def import_piqp() -> Any:
    """Return the module piqp, or raise an ImportError that says how to install it."""
    try:
        return importlib.import_module("piqp")
    except ImportError as error:
        raise ImportError(
            "The max-margin direction needs PIQP, which solves quadratic programs: "
            "pip install 'sklearn-clsattn[theory]'."
        ) from error


def pair_graph(X: Any, selected: Any) -> sp.csr_array:
    """Return the graph from selected tokens to others of a document, (n_tokens, n_tokens)."""
    # 1) the tokens of documents, and those that they select
    present = checked_counts(X, "X").astype(bool)
    chosen = checked_counts(selected, "selected").astype(bool)
    if present.shape != chosen.shape:
        raise ValueError(f"selected must have the shape of X, {present.shape}, got {chosen.shape}.")
    if (absent := sp.coo_array(chosen > present)).nnz:
        raise ValueError(
            f"selected has {absent.nnz} entries where X has no token, the first in document "
            f"{absent.coords[0][0]}, token {absent.coords[1][0]}: a document can only select "
            "tokens that it has."
        )
    undecided = np.flatnonzero((np.diff(present.indptr) > 0) & (np.diff(chosen.indptr) == 0))
    if len(undecided):
        raise ValueError(
            f"{len(undecided)} documents have tokens but select none (rows {listed(undecided)}): "
            "mark at least one token in each, or remove them."
        )
    # 2) one sparse product, which forms the pairs of all documents and merges equal ones; sums of
    # bool saturate, so nothing overflows
    others = sp.csr_array(present > chosen)
    graph = sp.csr_array(chosen.T) @ others
    graph.sort_indices()
    return graph


def _check_acyclic(graph: sp.csr_array, pairs: NDArray[np.intp]) -> None:
    """Raise ValueError if the pairs, (n_pairs, 2), order tokens in a cycle."""
    # 1) the pairs on cycles: both tokens are in one strongly connected component
    _, components = csgraph.connected_components(graph, connection="strong")
    first_components, second_components = components[pairs.T]
    cyclic = pairs[first_components == second_components]
    if not len(cyclic):
        return
    # 2) a shortest path from the second token of a pair back to the first, from its end
    goal, start = cyclic[0]
    _, predecessors = csgraph.breadth_first_order(graph, start)
    cycle = [goal]
    while cycle[-1] != start:
        cycle.append(predecessors[cycle[-1]])
    named = " over ".join(map(str, [goal, *cycle[::-1]]))
    on_cycles = np.unique(cyclic)
    raise ValueError(
        f"No attention scores make this selection: it selects token {named}, which is a cycle. In "
        f"total, {len(on_cycles)} tokens lie on cycles ({listed(on_cycles)})."
    )


def _multipliers(piqp: Any, matrix: Matrix, differences: sp.csr_array) -> Array:
    """Return the multipliers of all pairs, or raise if no direction satisfies them."""
    n_pairs = differences.shape[0]
    if not n_pairs:
        return np.empty(0)
    # 1) the rows z = E_s - E_s' of all pairs, and their typical length
    used = np.unique(differences.indices)
    reduced = _reduced(matrix[used])
    rows = differences[:, used] @ reduced
    typical_length = float(np.sqrt((rows * rows).sum() / n_pairs))
    # 2) the solution, if some pair differs by more than the rounding that equal embeddings leave
    rounding = max(1e-13 * float(abs(reduced).max()), _ROUNDING_MARGIN * typical_length)
    if typical_length > rounding:
        multipliers = _solve_in_some_unit(piqp, rows, typical_length)
        if multipliers is not None and _has_margin(rows, multipliers, rounding):
            return multipliers
    raise ValueError(
        "Some attention scores make this selection (it has no cycles), but none that these "
        f"embeddings allow. With {reduced.shape[1]} independent dimensions for {len(used)} tokens, "
        "use more dimensions (for generic embeddings, as many as tokens are enough), or the limit "
        "of infinite width."
    )


def _reduced(matrix: Matrix) -> Matrix:
    """Return embeddings with the same inner products, in few dimensions."""
    if sp.issparse(matrix):
        return matrix[:, np.unique(matrix.indices)]
    if matrix.shape[1] > len(matrix):
        # p lies in the span of the rows: coordinates in a basis of it are enough.
        (triangular,) = scipy.linalg.qr(matrix.T, mode="r")
        return np.ascontiguousarray(triangular[: len(matrix)].T)
    return matrix


def _solve_in_some_unit(piqp: Any, rows: Matrix, typical_length: float) -> Array | None:
    """Return the multipliers of the rows z with p.z >= 1, or None if no p satisfies them all."""
    status = ""
    for unit, (tolerance, threshold) in product(_UNITS, _ATTEMPTS):
        length = unit * typical_length
        status, multipliers = _piqp_solve(piqp, rows / length, tolerance, threshold)
        if status == "PIQP_SOLVED":
            return multipliers / length**2
    if _is_infeasible(rows / typical_length):
        return None
    raise RuntimeError(
        f"The quadratic program over {rows.shape[0]} pairs was not solved: PIQP ends with {status}."
    )


def _has_margin(rows: Matrix, multipliers: Array, rounding: float) -> bool:
    """Return whether an average of the rows is longer than rounding: no margin is above that."""
    return bool(np.linalg.norm(rows.T @ multipliers) > rounding * multipliers.sum())


def _piqp_solve(piqp: Any, rows: Matrix, tolerance: float, threshold: float) -> tuple[str, Array]:
    """Return PIQP's status and multipliers for the least ||p||^2 with p.z >= 1 for all rows z."""
    n_rows, dimension = rows.shape
    # 1) the solver, and its settings
    if sp.issparse(rows):
        solver = piqp.SparseSolver()
        identity = sp.eye_array(dimension, format="csc")
        rows = sp.csc_array(rows)
    else:
        solver = piqp.DenseSolver()
        identity = np.eye(dimension)
        rows = np.asfortranarray(rows)
    settings = solver.settings
    settings.eps_abs = tolerance
    settings.eps_rel = tolerance
    settings.eps_duality_gap_abs = tolerance
    settings.eps_duality_gap_rel = tolerance
    settings.infeasibility_threshold = threshold
    # 2) the multipliers
    solver.setup(P=identity, c=np.zeros(dimension), G=rows, h_l=np.ones(n_rows))
    status = solver.solve()
    multipliers = np.nan_to_num(np.array(solver.result.z_l), posinf=0.0)
    multipliers = np.maximum(multipliers, 0.0)
    # 3) an interior point method leaves small ones on pairs where they are 0 at the solution
    slack = rows @ np.array(solver.result.x) - 1.0
    return str(status.name), np.where(slack > TIGHT, 0.0, multipliers)


def _is_infeasible(rows: Matrix) -> bool:
    """Return whether some average of the rows z is 0: then no p has p.z >= 1 for all of them."""
    n_rows, dimension = rows.shape
    # The factors of the average, which are not negative, add up to 1.
    sum_of_factors = np.ones((1, n_rows))
    equations = sp.vstack([sp.csr_array(rows.T), sum_of_factors], format="csc")
    values = np.append(np.zeros(dimension), 1.0)
    answer = scipy.optimize.linprog(np.zeros(n_rows), A_eq=equations, b_eq=values)
    return bool(answer.status == 0)
