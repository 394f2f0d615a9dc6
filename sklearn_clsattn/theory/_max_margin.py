"""The max-margin direction of a selection: the limit of gradient flow in Theorem 4.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ._feasibility import InfeasibleSelectionError, explain_cycles, strong_components
from ._pairs import Array, TokenPairs, distinct_pairs, divide
from ._quadratic import SATISFIED, TIGHT, Matrix, Solution, differences, solve_max_margin
from ._token_embeddings import ExplicitEmbeddings, LimitEmbeddings

MAX_DUALITY_GAP = 1e-7  # an answer that is not proven optimal up to this is rejected
# A largest margin below this, in units of the typical length of E_s - E_s', counts as 0.
_NO_MARGIN = 1e-6
_ROUNDING_MARGIN = 1e-11  # the same where the solver found a direction
_RANK_TOLERANCE = 1e-12  # eigenvalues of a kernel below this, relative to its largest, are rounding


@dataclass(frozen=True)
class MaxMargin:
    r"""The direction of least norm that makes a selection with margin 1, and the proof of it.

    Attributes
    ----------
    direction : ndarray of shape (dimension,) or (n_tokens,)
        The solution p itself, with score differences of 1 at least. Where a kernel was given,
        the coefficients w of :math:`p = \sum_s w_s E_s` instead.
    scores : ndarray of shape (n_tokens,)
        Attention scores E p.
    margin : float
        The geometric margin 1 / ||p||, the largest that any unit vector has; inf where there
        are no pairs.
    support_pairs : ndarray of shape (n_support, 2)
        The tight pairs (s, s'), columns of X: their score difference is 1 up to 1e-6.
    multipliers : ndarray of shape (n_support,)
        Non-negative, with p the sum of multiplier times :math:`E_s - E_{s'}` over
        `support_pairs`. 0 for a pair that is tight without being needed. Where the tight pairs'
        differences are linearly dependent, they are one choice of several.
    n_pairs : int
        Number of distinct pairs (s, s') that were required.
    dropped_pairs : ndarray of shape (n_dropped, 2)
        Distinct pairs that were left out because they lie on cycles: none, unless
        ``on_infeasible="across_components"``.
    max_violation : float
        By how much the worst of the required pairs falls short of 1.
    duality_gap : float
        An upper bound on 1 less the cosine between `direction` and the exact solution (see the
        notes of :func:`max_margin_direction`).
    """

    direction: Array
    scores: Array
    margin: float
    support_pairs: NDArray[np.intp]
    multipliers: Array
    n_pairs: int
    dropped_pairs: NDArray[np.intp]
    max_violation: float
    duality_gap: float


def max_margin_direction(
    embeddings: ArrayLike | LimitEmbeddings | ExplicitEmbeddings | None,
    X: Any,
    selected: Any,
    *,
    kernel: ArrayLike | None = None,
    feature_names: Any = None,
    on_infeasible: Literal["raise", "across_components"] = "raise",
) -> MaxMargin:
    r"""Return the direction to which gradient flow on the embedding of ``<cls>`` tends.

    Parameters
    ----------
    embeddings : array-like of shape (n_tokens, d), LimitEmbeddings, ExplicitEmbeddings or None
        The frozen token embeddings E. ``LimitEmbeddings`` stand for infinite width, where p has
        n_tokens + n_outputs coordinates. None where `kernel` is given.
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.
    selected : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        True where the document selects the token, as :func:`selected_tokens` returns it. Every
        document that has tokens selects one of them at least.
    kernel : array-like of shape (n_tokens, n_tokens), default=None
        Instead of the embeddings, their Gram matrix :math:`E E^\top`.
    feature_names : sequence of str, default=None
        The tokens' names, for error messages. None names them by their columns.
    on_infeasible : {"raise", "across_components"}, default="raise"
        What to do where the selection orders tokens in a cycle. "across_components"
        leaves out the pairs that lie on cycles, those within a strongly connected component,
        keeps those from one component to another, and lists in the result which it left out.

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
    ValueError
        If shapes disagree, entries are negative or not finite, a document selects a token that
        it does not have or none of those it has, the kernel is not symmetric and positive
        semi-definite, or not exactly one of `embeddings` and `kernel` is given.
    RuntimeError
        If the solver's answer fails the checks: every pair satisfied, and optimal up to 1e-7.
    ImportError
        If PIQP, of the extra ``theory``, is not installed.

    See Also
    --------
    maximise_margin : The same without PIQP, on any device, to a certified accuracy.
    selected_tokens : The selection that a direction makes.

    Notes
    -----
    Theorem 4.3 of [1]_: if the direction of p converges under gradient flow, with E frozen and
    documents of one relevant token, it is that of

    .. math:: \arg\min \|p\|^2 \quad \text{subject to} \quad p^\top (E_s - E_{s'}) \ge 1
              \quad \forall X,\ s \in S_X,\ s' \in X \setminus S_X.

    Only distinct pairs (s, s') matter. A cycle of pairs makes the problem infeasible, whatever
    E; without one it is feasible where the rows of E are linearly independent, as they are in
    the limit of infinite width.

    The programme is solved by PIQP over those pairs that matter, found by constraint generation,
    and the answer is then checked without it. p is made of the multipliers
    :math:`\lambda \ge 0`, as :math:`p = \sum \lambda_{ss'} (E_s - E_{s'})`, and scaled until
    the smallest score difference over *all* pairs is 1: it is feasible, so
    :math:`\|p\| \ge \|p_\infty\|`, and for the feasible :math:`p_\infty`,
    :math:`p^\top p_\infty \ge \sum \lambda`. So the cosine between them is at least
    :math:`\sum \lambda / \|p\|^2`; 1 less that is the `duality_gap`.

    With dense embeddings the cost grows with the cube of min(d, n_tokens); in the limit of
    infinite width everything is sparse (98,000 pairs of 5,000 tokens: under a second).

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.theory import max_margin_direction
    >>> X = [[1, 1, 0], [0, 1, 1]]
    >>> selected = [[True, False, False], [False, False, True]]
    >>> result = max_margin_direction(np.eye(3), X, selected)
    >>> result.direction.round(6)
    array([ 0.333333, -0.666667,  0.333333])
    >>> result.support_pairs
    array([[0, 1],
           [2, 1]])
    """
    if on_infeasible not in ("raise", "across_components"):
        raise ValueError(
            f"on_infeasible must be 'raise' or 'across_components', got {on_infeasible!r}."
        )
    selection = divide(X, selected)
    n_tokens = selection.selected.shape[1]
    if feature_names is not None and len(feature_names) != n_tokens:
        raise ValueError(
            f"feature_names must have one name for each of {n_tokens} tokens, "
            f"got {len(feature_names)}."
        )
    if (embeddings is None) == (kernel is None):
        raise ValueError(
            "Give either embeddings or kernel: max_margin_direction(embeddings, X, selected) or "
            "max_margin_direction(None, X, selected, kernel=kernel)."
        )
    if kernel is not None:
        matrix = _factor_of(kernel, n_tokens)
    else:
        matrix = _matrix_of(embeddings, n_tokens)

    pairs = distinct_pairs(selection)
    dropped = pairs.subset(slice(0))
    if len(pairs):
        labels, within = strong_components(pairs)
        if within.any():
            if on_infeasible == "raise":
                raise explain_cycles(selection, pairs, labels, within, feature_names)
            dropped, pairs = pairs.subset(within), pairs.subset(~within)
    solution = _solve(matrix, pairs)
    return _checked(matrix, pairs, dropped, solution, kernel=kernel is not None)


def _matrix_of(embeddings: Any, n_tokens: int) -> Matrix:
    """Check embeddings and return them; the limit [I | S] becomes a sparse array."""
    limit = isinstance(embeddings, LimitEmbeddings)
    if limit:
        matrix = embeddings.shifts.detach().cpu().numpy()
    elif isinstance(embeddings, ExplicitEmbeddings):
        matrix = embeddings.matrix.detach().cpu().numpy()
    else:
        matrix = np.asarray(embeddings)
    matrix = matrix.astype(np.float64, copy=False)
    if matrix.ndim != 2 or len(matrix) != n_tokens:
        raise ValueError(
            f"embeddings must have one row for each of the {n_tokens} columns of X, "
            f"got shape {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("embeddings must be finite, but some entries are NaN or infinite.")
    if limit:
        return sp.hstack([sp.eye_array(n_tokens), sp.csr_array(matrix)], format="csr")
    return matrix


def _factor_of(kernel: Any, n_tokens: int) -> Matrix:
    """Check a Gram matrix and return embeddings, (n_tokens, rank), that have it."""
    matrix = np.asarray(kernel, dtype=np.float64)
    if matrix.shape != (n_tokens, n_tokens):
        raise ValueError(
            f"kernel must have shape ({n_tokens}, {n_tokens}), a row and a column for each "
            f"column of X, got {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("kernel must be finite, but some entries are NaN or infinite.")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-8 * np.abs(matrix).max(initial=0.0)):
        raise ValueError("kernel must be symmetric, as a Gram matrix E @ E.T is.")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    largest = max(float(values[-1]), 0.0)
    if values[0] < -1e-8 * largest or not largest > 0:
        raise ValueError(
            "kernel must be positive semi-definite and not 0, as a Gram matrix E @ E.T is, "
            f"but its eigenvalues range from {values[0]:.3g} to {values[-1]:.3g}."
        )
    kept = values > _RANK_TOLERANCE * largest
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _reduced(matrix: Matrix, used: NDArray[np.intp]) -> Matrix:
    """Return embeddings of the used tokens with the same inner products, in few dimensions."""
    if sp.issparse(matrix):
        n_tokens, dimension = matrix.shape
        return matrix[used][:, np.append(used, np.arange(n_tokens, dimension))]
    matrix = matrix[used]
    if matrix.shape[1] > len(used):
        # p lies in the span of the rows: coordinates in a basis of it are enough.
        return np.ascontiguousarray(scipy.linalg.qr(matrix.T, mode="r")[0][: len(used)].T)
    return matrix


def _solve(embeddings: Matrix, pairs: TokenPairs) -> Solution:
    """Solve the programme on the tokens that occur in pairs; raise where it is infeasible."""
    if not len(pairs):
        return Solution(True, np.empty(0), np.empty(0, np.intp), "no pairs")
    used, positions = np.unique(np.concatenate([pairs.better, pairs.worse]), return_inverse=True)
    better, worse = np.split(positions, 2)
    local = TokenPairs(better, worse, len(used))
    matrix = _reduced(embeddings, used)
    scale = _typical_length(matrix, local)
    # Differences of equal embeddings are rounding, of this order.
    rounding = 1e-13 * float(abs(matrix).max())
    if not scale > rounding:  # no pair differs at all
        raise _low_dimension(0.0, 0.0, len(pairs), matrix.shape)
    solution = solve_max_margin(matrix, local, scale)
    bound = _margin_bound(matrix, local, solution.multipliers)
    if solution.solved:
        if bound <= max(_ROUNDING_MARGIN * scale, rounding):
            raise _low_dimension(bound, scale, len(pairs), matrix.shape)
        return solution
    if bound > _NO_MARGIN * scale:
        # On infeasible rows an interior point method may end with a weak bound or undecided. A
        # linear programme decides.
        proof = _proof_of_infeasibility(matrix, local, solution.active, scale)
        bound = min(bound, _margin_bound(matrix, local, proof))
    if bound <= max(_NO_MARGIN * scale, rounding):
        raise _low_dimension(bound, scale, len(pairs), matrix.shape)
    raise RuntimeError(
        f"The quadratic programme over {len(pairs)} pairs was not solved: {solution.detail}."
    )


def _margin_bound(matrix: Matrix, pairs: TokenPairs, multipliers: Array) -> float:
    """Return an upper bound on the margin of unit vectors, from weights of the pairs.

    For q >= 0 of sum 1 it is at most sum q p.(E_s - E_s') <= ||sum q (E_s - E_s')||.
    """
    total = float(multipliers.sum())
    if not total > 0:
        return np.inf
    return float(np.linalg.norm(matrix.T @ pairs.totals(multipliers / total)))


def _proof_of_infeasibility(
    matrix: Matrix, pairs: TokenPairs, active: NDArray[np.intp], scale: float
) -> Array:
    """Return q >= 0 of sum 1 with sum q (E_s - E_s') = 0 over the active pairs, 0 if none is."""
    rows = differences(matrix, pairs.subset(active)) / scale
    equations = sp.vstack([sp.csr_array(rows.T), np.ones((1, len(active)))], format="csc")
    values = np.append(np.zeros(rows.shape[1]), 1.0)
    answer = scipy.optimize.linprog(np.zeros(len(active)), A_eq=equations, b_eq=values)
    weights = np.zeros(len(pairs))
    if answer.status == 0:
        weights[active] = np.maximum(answer.x, 0.0)
    return weights


def _low_dimension(
    bound: float, scale: float, n_pairs: int, shape: tuple[int, int]
) -> InfeasibleSelectionError:
    """Return the error that no direction of these embeddings makes the selection."""
    return InfeasibleSelectionError(
        "Some attention scores make this selection (it has no cycles), but none that these "
        f"embeddings have: no unit vector p has a margin above {bound:.2g} on its {n_pairs} "
        f"pairs, where embeddings are about {scale:.2g} apart. With {shape[1]} independent "
        f"dimensions for {shape[0]} tokens, use more dimensions (from the number of tokens on, "
        "generic embeddings make every selection without cycles), or the limit of infinite width.",
        reason="dimension",
    )


def _typical_length(matrix: Matrix, pairs: TokenPairs) -> float:
    """Return the root mean square of ||E_s - E_s'|| over some of the pairs."""
    some = pairs.subset(np.unique(np.linspace(0, len(pairs) - 1, 1000).astype(np.intp)))
    rows = differences(matrix, some)
    return float(np.sqrt((rows * rows).sum() / len(some)))


def _checked(
    embeddings: Matrix, pairs: TokenPairs, dropped: TokenPairs, solution: Solution, *, kernel: bool
) -> MaxMargin:
    """Make the direction of the multipliers, and check it on every pair without the solver."""
    multipliers, gap, violation, norm = solution.multipliers, 0.0, 0.0, 0.0
    coefficients, direction, gained = _combined(embeddings, pairs, multipliers)
    if len(pairs):
        smallest = float(gained.min())
        if not smallest > 0.5:
            raise RuntimeError(
                "The solver's answer is not feasible: its smallest score difference is "
                f"{smallest:.3g} instead of 1 over {len(pairs)} pairs ({solution.detail})."
            )
        multipliers = multipliers / smallest
        coefficients, direction, gained = _combined(embeddings, pairs, multipliers)
        norm = float(np.linalg.norm(direction))
        violation = max(0.0, 1.0 - float(gained.min()))
        gap = max(0.0, 1.0 - float(multipliers.sum()) / norm**2)
    if not (violation <= SATISFIED and gap <= MAX_DUALITY_GAP):
        raise RuntimeError(
            f"The solver's answer fails the checks: over {len(pairs)} pairs it violates one by "
            f"{violation:.3g} (at most {SATISFIED} is accepted), and 1 less its cosine to the "
            f"solution is only known to be below {gap:.3g} (at most {MAX_DUALITY_GAP}; "
            f"{solution.detail})."
        )
    tight = np.flatnonzero((gained <= 1.0 + TIGHT) | (multipliers > 0))
    return MaxMargin(
        direction=coefficients if kernel else direction,
        scores=embeddings @ direction,
        margin=1.0 / norm if norm else np.inf,
        support_pairs=np.column_stack([pairs.better[tight], pairs.worse[tight]]),
        multipliers=multipliers[tight],
        n_pairs=len(pairs),
        dropped_pairs=np.column_stack([dropped.better, dropped.worse]),
        max_violation=violation,
        duality_gap=gap,
    )


def _combined(
    embeddings: Matrix, pairs: TokenPairs, multipliers: Array
) -> tuple[Array, Array, Array]:
    """Return c = A.T @ multipliers, p = E.T c, and the score differences of all pairs."""
    coefficients = pairs.totals(multipliers)
    direction = embeddings.T @ coefficients
    return coefficients, direction, pairs.differences(embeddings @ direction)
