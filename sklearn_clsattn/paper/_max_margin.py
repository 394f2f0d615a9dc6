"""Selected tokens, and their max-margin direction: the limit of gradient flow in Theorem 4.3."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from .._types import Array
from .._validation import checked_counts
from ..training.fitted_model import selection

Matrix = Any  # an ndarray, or a CSR array where the embeddings are sparse

# An answer that is not proven optimal up to this is rejected. Where the multiplier of a tight pair
# is 0, an interior point method leaves some 1e-6.
MAX_DUALITY_GAP = 1e-5
TIGHT = 1e-6  # a pair is tight where its score difference is not above 1 by more
_TOLERANCE = 1e-12  # of PIQP


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
    return selection(checked, X)


@dataclass(frozen=True)
class MaxMargin:
    """The result of :func:`max_margin_direction`."""

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
        True if the document selects the token, as returned by :func:`selected_tokens`. A document
        that selects none of its tokens requires nothing.

    Returns
    -------
    result : object
        It has these attributes. If no pair is required (each document selects all its tokens),
        the direction is 0 and its margin is infinite.

        direction : ndarray of shape (d,)
            The solution p, with score differences of at least 1.
        scores : ndarray of shape (n_tokens,)
            Attention scores E p.
        margin : float
            The geometric margin 1 / ||p||, the largest of any unit vector.
        support_pairs : ndarray of shape (n_support, 2)
            The tight pairs (s, s'), columns of X: their score difference is 1 up to 1e-6.
        multipliers : ndarray of shape (n_support,)
            Non-negative: p is the sum of multiplier times :math:`E_s - E_{s'}` over
            `support_pairs`.
        duality_gap : float
            An upper bound on 1 minus the cosine between `direction` and the exact solution.

    Raises
    ------
    ValueError
        If no direction is found that makes the selection and is optimal up to 1e-5: tokens select
        each other in a cycle, or the dimension is too low.
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
    # 1) the pairs (s, s')
    graph = pair_graph(X, selected)
    matrix = check_array(embeddings, accept_sparse="csr", dtype=np.float64, input_name="embeddings")
    matrix = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
    pairs = np.column_stack(graph.nonzero()).astype(np.intp)
    n_pairs = len(pairs)
    if not n_pairs:
        direction = np.zeros(matrix.shape[1])
        return MaxMargin(direction, matrix @ direction, np.inf, pairs, np.empty(0), 0.0)
    # Times numbers or rows per token, this is the first less the second of every pair.
    differences = sp.csr_array(
        (np.tile([1.0, -1.0], n_pairs), pairs.ravel(), np.arange(0, 2 * n_pairs + 1, 2)),
        shape=(n_pairs, len(graph.indptr) - 1),
    )
    # 2) p from the multipliers of the quadratic program
    status, multipliers = _solve(matrix, differences)
    direction = matrix.T @ (differences.T @ multipliers)
    scores = matrix @ direction
    # 3) the scale at which the smallest score difference is 1
    smallest = float((differences @ scores).min())
    scale = max(smallest, 0.5)
    direction /= scale
    scores /= scale
    multipliers /= scale
    # 4) the certificate
    norm = float(np.linalg.norm(direction))
    gap = max(0.0, 1.0 - float(multipliers.sum()) / norm**2) if norm else np.inf
    if not (smallest > 0.5 and gap <= MAX_DUALITY_GAP):
        raise ValueError(
            f"No direction was found that makes this selection (PIQP ends with {status}). There is "
            "none if tokens select each other in a cycle; else use more dimensions."
        )
    tight = np.flatnonzero((differences @ scores <= 1.0 + TIGHT) | (multipliers > 0))
    return MaxMargin(direction, scores, 1.0 / norm, pairs[tight], multipliers[tight], gap)


def pair_graph(X: Any, selected: Any) -> sp.csr_array:
    """Return the graph from selected tokens to others of a document, (n_tokens, n_tokens)."""
    present = checked_counts(X).astype(bool)
    chosen = checked_counts(selected).astype(bool)
    others = sp.csr_array(present > chosen)
    # One sparse product forms the pairs of all documents and merges equal ones; sums of bool
    # saturate, so nothing overflows.
    graph = sp.csr_array(chosen.T) @ others
    graph.sort_indices()
    return graph


def _solve(matrix: Matrix, differences: sp.csr_array) -> tuple[str, Array]:
    """Return PIQP's status and the multipliers of all pairs, (n_pairs,)."""
    # 1) the rows z = E_s - E_s' of all pairs, in units of their typical length
    rows = differences @ _reduced(matrix)
    typical_length = float(np.sqrt((rows * rows).sum() / rows.shape[0])) or 1.0
    rows = rows / typical_length
    # 2) the solver of the least ||p||^2 with p.z >= 1
    n_pairs, dimension = rows.shape
    piqp = importlib.import_module("piqp")  # which has no type hints
    if sp.issparse(rows):
        solver = piqp.SparseSolver()
        identity = sp.eye_array(dimension, format="csc")
        rows = sp.csc_array(rows)
    else:
        solver = piqp.DenseSolver()
        identity = np.eye(dimension)
        rows = np.asfortranarray(rows)
    settings = solver.settings
    settings.eps_abs = _TOLERANCE
    settings.eps_rel = _TOLERANCE
    settings.eps_duality_gap_abs = _TOLERANCE
    settings.eps_duality_gap_rel = _TOLERANCE
    settings.infeasibility_threshold = 1e20  # the certificate decides, also of long directions
    # 3) the multipliers
    solver.setup(P=identity, c=np.zeros(dimension), G=rows, h_l=np.ones(n_pairs))
    status = solver.solve()
    multipliers = np.nan_to_num(np.array(solver.result.z_l), posinf=0.0)
    multipliers = np.maximum(multipliers, 0.0)
    # 4) an interior point method leaves small ones on pairs where they are 0 at the solution
    slack = rows @ np.array(solver.result.x) - 1.0
    multipliers[slack > TIGHT] = 0.0
    return str(status.name), multipliers / typical_length**2


def _reduced(matrix: Matrix) -> Matrix:
    """Return embeddings with the same inner products, in no more dimensions than tokens."""
    if sp.issparse(matrix) or matrix.shape[1] <= len(matrix):
        return matrix
    # p lies in the span of the rows: coordinates in a basis of it are enough.
    (triangular,) = scipy.linalg.qr(matrix.T, mode="r")
    return np.ascontiguousarray(triangular[: len(matrix)].T)
