r"""Scores of occurrences by their positions, learned on leave-one-out evidence.

An occurrence o of n-gram s in document i has weight :math:`v_o = (1 + \ln c_{is}) / c_{is}`. Its
evidence for class k is :math:`v_o r_{sk}^{(-i)}`, with the n-gram's log-odds in all other
documents, and it adds :math:`v_o e^{\pi_s}` to the attention mass. With the scores :math:`e_o`
(``docs/texts.md``) the model is naive Bayes with attention,

.. math::

    d_i = S_0 + \sum_o e^{e_o} v_o e^{\pi_s}, \qquad
    F_{ik} = \beta_k + \frac{\alpha}{d_i} \sum_o e^{e_o}\, 2 S_0 v_o r_{sk}^{(-i)}.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, minimize

from .._bags import Bags
from .._matrices import index_type
from .._targets import Targets
from .._threads import in_threads, map_in_threads
from .._types import Array, Integers, Numbers
from ..training.documents import Documents
from ..training.leave_one_out import log_odds_without_groups
from ..training.output_loss import OutputLoss, output_loss
from ..training.statistics import scaling_of
from ._gate_positions import MAX_SCORE, N_CELLS, PlacedTokens

POSITION_PENALTY = 1.0
PREVIOUS_PENALTY = 5.0
# Penalties double at this number of documents and grow with fewer, to prevent overfitting.
PENALTY_DOCUMENTS = 200.0
_MAX_ITER = 10  # 40 are no better
_MOST_START_SCALE = 0.3
_LEAST_START_SCALE = 1e-6
_BLOCK = 1 << 18  # tokens whose positions are gathered together


@dataclass(frozen=True)
class GateEvidence:
    """Sums over occurrences by document and position, and data of the documents."""

    numerators: list[Any]  # by output, CSR (n_documents, n_positions), times 2 x the <cls> weight
    masses: Any  # CSR (n_documents, n_positions)
    # CSR (n_positions, n_scores): ones for the scores that add up to a position's score: by start,
    # by end and by the word before.
    parts: Any
    output_loss: OutputLoss
    weights: Array  # of the documents
    intercepts: Array  # (n_outputs,), which depend on the classes' shares alone
    cls_weight: float  # attention mass of <cls>


def gather_evidence(
    counts: Any,
    placed: PlacedTokens,
    targets: Targets,
    weights: Array,
    n_previous: int,
    limit: float,
    given_groups: Numbers | None = None,
) -> GateEvidence:
    """Return the evidence of documents with positive weight, about as many as `limit` allows.

    `counts` is canonical CSR (n_documents, n_columns), `n_previous` the number of words that can be
    the word before. Documents that are left out together are used together or not at all, in an
    order that depends only on their counts, until entries (those of copies once) times outputs
    reach `limit`. These are near-copies, and documents of one of the groups.
    """
    # 1) statistics of all documents
    bag = sparse.csr_array(counts)
    bag.data = np.log(counts.data, dtype=np.float64)
    bag.data += 1.0
    documents = Documents(Bags(bag), targets, weights, given_groups=given_groups)
    statistics = documents.statistics
    scaling = scaling_of(statistics, token_scaling="log_odds", attend_cls=True)
    assert scaling.totals is not None
    n_outputs = scaling.totals.n_outputs

    # 2) the documents in use, and those that are left out together
    groups = documents.held_together
    lengths = np.diff(bag.indptr)
    is_used = _within_limit(documents.copies, groups, lengths, weights, limit / n_outputs)
    rows = np.flatnonzero(is_used)
    bag = bag[rows]
    del documents  # frees the entries of the others
    is_used_entry = np.repeat(is_used, lengths)
    occurrences_of_entries = counts.data[is_used_entry]
    targets = targets[rows]
    weights = weights[rows]

    # 3) evidence and mass of an occurrence of each of their entries
    factors = bag.data / occurrences_of_entries
    own = targets.shares() * weights[:, None], weights
    odds = log_odds_without_groups(bag, groups[rows], *own, scaling.totals)
    evidence_factors = 2.0 * scaling.cls_weight * factors
    odds *= evidence_factors[:, None]
    attention = np.exp(scaling.starting_scores)
    masses = factors * attention[bag.indices]

    # 4) sums by position
    shape = len(placed.columns), N_CELLS, N_CELLS, n_previous + 1
    code, indptr = _positions_by_entry(placed, is_used, shape, bag.shape[1])
    code, distinct_codes = pd.factorize(code)
    code = code.astype(np.int32)
    repeats = occurrences_of_entries.astype(np.intp)

    def by_position(values: Array) -> Any:
        arrays = np.repeat(values, repeats), code, indptr
        return sparse.csr_array(arrays, shape=(len(rows), len(distinct_codes)))

    return GateEvidence(
        numerators=[by_position(odds[:, k]) for k in range(n_outputs)],
        masses=by_position(masses),
        parts=_scores_of_positions(distinct_codes, shape),
        output_loss=output_loss(targets, weights),
        weights=weights,
        intercepts=statistics.class_log_odds,
        cls_weight=scaling.cls_weight,
    )


def _within_limit(
    copies: Numbers, groups: Numbers, sizes: NDArray[Any], weights: Array, limit: float
) -> NDArray[np.bool_]:
    """Return which documents (n_documents,) to use: groups in a random order up to `limit`."""
    # 1) groups in the order of their contents, so that that of the documents has no influence
    present = np.flatnonzero(weights > 0)
    _, first = np.unique(copies[present], return_index=True)
    different = present[first]
    numbers, names = pd.factorize(groups[different])
    number_of = np.zeros(groups.max(initial=-1) + 1, dtype=np.intp)
    number_of[names] = np.arange(len(names))
    # 2) the first ones of a random order
    entries = np.bincount(numbers, sizes[different])
    order = np.random.default_rng(0).permutation(len(entries))
    in_order = entries[order]
    before = np.empty_like(entries)
    before[order] = np.cumsum(in_order) - in_order
    is_within = before < limit
    return np.asarray((weights > 0) & is_within[number_of[groups]])


def _positions_by_entry(
    placed: PlacedTokens,
    is_used: NDArray[np.bool_],
    shape: tuple[int, int, int, int],
    n_columns: int,
) -> tuple[Integers, NDArray[np.int32]]:
    """Return the positions of all n-grams in the documents in use, and their `indptr` by document.

    Positions, (n_occurrences,), are in the order of the documents' entries, those of an entry one
    after another; `indptr` is (n_used + 1,). A position is the index, in an array of a `shape`, of
    the n-gram's order, the cells of its distances from the start and from the end, and the word
    before, the last for none.
    """
    code_type = index_type(math.prod(shape))

    def part(block: tuple[slice, slice, Integers]) -> tuple[Integers, Numbers]:
        documents, here, indptr = block
        is_used_here = is_used[documents]
        # 1) n-grams at the tokens of documents in use
        lengths = np.diff(indptr)
        is_used_token = np.repeat(is_used_here, lengths)
        tokens = here.start + np.flatnonzero(is_used_token)
        columns = np.stack([column[tokens] for column in placed.columns], axis=1)
        at, order = np.nonzero(columns >= 0)
        # 2) their positions
        positions = placed.positions[tokens[at]]
        previous = np.where(positions.previous < 0, shape[-1] - 1, positions.previous)
        cells = positions.from_start, positions.from_end
        code = np.ravel_multi_index((order, *cells, previous), shape).astype(code_type)
        # 3) in the order of the documents' entries
        token_ends = np.append(0, np.cumsum(lengths[is_used_here]))
        ends = np.searchsorted(at, token_ends).astype(np.int32)
        arrays = code, columns[at, order], ends
        in_text_order = sparse.csr_array(arrays, shape=(len(ends) - 1, n_columns))
        in_column_order = in_text_order.tocsc().tocsr()
        return in_column_order.data, np.diff(ends)

    parts = list(map_in_threads(part, placed.tokens.blocks(_BLOCK)))
    sizes = np.concatenate([sizes for _, sizes in parts])
    codes = np.concatenate([codes for codes, _ in parts])
    indptr = np.append(0, np.cumsum(sizes))
    return codes, indptr.astype(np.int32)


def _scores_of_positions(codes: Integers, shape: tuple[int, int, int, int]) -> Any:
    """Return ones for the scores of each position, CSR (n_positions, n_scores)."""
    n_orders, _, _, n_previous = shape
    n_per_side = n_orders * N_CELLS
    order, start, end, previous = np.unravel_index(codes, shape)
    # Scores are numbered by starts, by ends and by words before; the last is no word before.
    scores = np.empty((len(codes), 3), dtype=np.int32)
    scores[:, 0] = order * N_CELLS + start
    scores[:, 1] = n_per_side + order * N_CELLS + end
    scores[:, 2] = 2 * n_per_side + previous
    n_scores = 2 * n_per_side + n_previous - 1
    has_score = scores < n_scores
    n_parts = has_score.sum(axis=1)
    indptr = np.append(0, np.cumsum(n_parts)).astype(np.int32)
    numbers = scores[has_score]
    ones = np.ones(len(numbers))
    return sparse.csr_array((ones, numbers, indptr), shape=(len(codes), n_scores))


def learn_scores(evidence: GateEvidence, n_cells: int) -> Array:
    """Return the scores, first those of `n_cells` cells, then of words before."""
    n_scores = evidence.parts.shape[1]
    penalties = np.full(n_scores, PREVIOUS_PENALTY)
    penalties[:n_cells] = POSITION_PENALTY
    penalties *= 1.0 + PENALTY_DOCUMENTS / evidence.weights.sum()
    start_scale = _start_scale(evidence)
    start = np.concatenate([np.zeros(n_scores), [start_scale], evidence.intercepts])
    # Minimised with steps of a size for which all curvatures are about 1.
    lower = np.full(len(start), -np.inf)
    lower[n_scores] = 0.0  # of alpha
    step_sizes = 1.0 / np.sqrt(_curvature(evidence, start_scale, penalties))

    def of_steps(x: Array) -> tuple[float, Array]:
        loss, gradient = loss_and_gradient(step_sizes * x, evidence, penalties)
        return loss, step_sizes * gradient

    result = minimize(
        of_steps,
        start / step_sizes,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(lower),
        options={"maxiter": _MAX_ITER},
    )
    return (step_sizes * result.x)[:n_scores]


def _start_scale(evidence: GateEvidence) -> float:
    """Return the multiple of the evidence to start from: one that is better than none."""
    ones = np.ones(evidence.masses.shape[1])
    masses = evidence.cls_weight + evidence.masses @ ones
    outputs = np.stack([table @ ones for table in evidence.numerators], axis=1) / masses[:, None]

    def loss(scale: float) -> float:
        fitted = evidence.intercepts + scale * outputs
        return float(evidence.output_loss(torch.from_numpy(fitted))[0])

    scale = _MOST_START_SCALE
    without = loss(0.0)
    while loss(scale) > without and scale > _LEAST_START_SCALE:
        scale /= 2.0
    return scale


def _curvature(evidence: GateEvidence, start_scale: float, penalties: Array) -> Array:
    """Return approximate second derivatives at the start, (n_scores + 1 + n_outputs,)."""
    n_outputs = len(evidence.intercepts)
    variance = evidence.weights / max(n_outputs, 4)
    ones = np.ones(evidence.masses.shape[1])
    masses = evidence.cls_weight + evidence.masses @ ones
    slopes = start_scale / masses
    by_square = variance * slopes**2
    by_position = np.zeros(len(ones))
    by_scale = 0.0
    for table in evidence.numerators:
        # Not table.power(2), which would sort the indices that all tables share.
        arrays = table.data**2, table.indices, table.indptr
        squares = sparse.csr_array(arrays, table.shape)
        by_position += squares.T @ by_square
        outputs = table @ ones / masses
        by_scale += float(variance @ outputs**2)
    by_score = penalties + evidence.parts.T @ by_position
    by_intercept = np.full(n_outputs, variance.sum())
    return np.concatenate([by_score, [by_scale or 1.0], by_intercept])


def loss_and_gradient(x: Array, evidence: GateEvidence, penalties: Array) -> tuple[float, Array]:
    """Return the penalised loss and its gradient at x = [scores, alpha, beta]."""
    n_scores = evidence.parts.shape[1]
    scores = x[:n_scores]
    scale = x[n_scores]
    intercepts = x[n_scores + 1 :]
    # 1) outputs of the model
    position_scores = evidence.parts @ scores
    factors = np.exp(position_scores.clip(-MAX_SCORE, MAX_SCORE))
    tables = [evidence.masses, *evidence.numerators]
    sums = in_threads(lambda table: table @ factors, tables)
    masses = evidence.cls_weight + sums[0]
    numerators = np.stack(sums[1:], axis=1)
    outputs = numerators / masses[:, None]
    # 2) loss, and its gradient by the fitted values
    fitted = intercepts + scale * outputs
    loss, by_fitted = evidence.output_loss(torch.from_numpy(fitted))
    residuals = by_fitted.numpy()
    # 3) gradient by the scores of positions, then by scores
    by_output = scale * residuals / masses[:, None]
    by_mass = -(by_output * outputs).sum(axis=1)
    slopes = [by_mass, *np.ascontiguousarray(by_output.T)]
    pairs = zip(tables, slopes, strict=True)
    terms = in_threads(lambda pair: pair[0].T @ pair[1], pairs)
    by_position = np.sum(terms, axis=0)
    is_free = np.abs(position_scores) < MAX_SCORE
    by_position *= factors * is_free
    by_score = penalties * scores + evidence.parts.T @ by_position
    by_scale = (residuals * outputs).sum()
    by_intercept = residuals.sum(axis=0)
    # 4) penalty
    loss += 0.5 * float(penalties @ scores**2)
    return loss, np.concatenate([by_score, [by_scale], by_intercept])
