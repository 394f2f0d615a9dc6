r"""Scores of occurrences by their positions, learned on leave-one-out evidence.

An occurrence o of n-gram s in document i has weight :math:`v_o = (1 + \ln c_{is}) / c_{is}`. Its
evidence for class k is :math:`v_o r_{sk}^{(-i)}`, with the n-gram's log-odds in all other
documents, and it adds :math:`v_o e^{\pi_s}` to the attention mass. With the scores :math:`e_o`
(``docs/texts.md``) the model is naive Bayes with attention,

.. math::

    d_i = S_0 + \sum_o e^{e_o} v_o e^{\pi_s}, \qquad
    F_{ik} = \beta_k + \frac{\alpha}{d_i} \sum_o e^{e_o}\, 2 S_0 v_o r_{sk}^{(-i)}.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, minimize

from .._core.leave_one_out import leave_one_out_log_odds, same_documents
from .._core.output_loss import OutputLoss, output_loss
from .._core.statistics import CorpusStatistics, token_scaling
from .._targets import Targets
from .._types import Array, Numbers
from ._token_positions import MAX_SCORE, N_CELLS, Words

POSITION_PENALTY = 1.0
PREVIOUS_PENALTY = 5.0
# Penalties double at this number of documents and grow with fewer, to prevent overfitting.
PENALTY_DOCUMENTS = 200.0
_MAX_ITER = 10  # 40 are no better
_START_SCALE = 0.3


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
    intercepts: Array  # (n_outputs,), those that depend on the class weights alone
    cls_weight: float  # attention mass of <cls>


def gather_evidence(
    counts: Any, words: Words, targets: Targets, weights: Array, n_previous: int, limit: float
) -> GateEvidence:
    """Return the evidence of documents with positive weight, as many as `limit` allows.

    `counts` is canonical CSR (n_documents, n_columns), `n_previous` the number of words that can be
    the word before. Documents with equal counts are used together or not at all, in an order that
    depends only on their counts, until entries times outputs reach `limit`.
    """
    bag = sparse.csr_array(counts, dtype=np.float64)
    bag.data = 1.0 + np.log(bag.data)
    statistics = CorpusStatistics.from_documents(bag, targets, weights)
    scaling = token_scaling(statistics, scaling="log_odds", attend_cls=True)
    assert scaling.totals is not None
    n_outputs = scaling.totals.n_outputs

    groups = same_documents(bag)
    chosen = _within_limit(groups, np.diff(bag.indptr), weights, limit / n_outputs)
    rows = np.flatnonzero(chosen)
    bag, repeats = bag[rows], counts[rows].data
    factors = bag.data / repeats
    targets, weights = targets[rows], weights[rows]
    odds = leave_one_out_log_odds(bag, targets, weights, scaling.totals, groups[rows])
    odds *= (2.0 * scaling.cls_weight * factors)[:, None]
    mass = factors * np.exp(scaling.starting_scores)[bag.indices]

    # All occurrences in these documents: their rows and columns, and a code of their positions.
    tokens = np.flatnonzero(chosen[words.tokens.documents])
    columns = np.stack([column[tokens] for column in words.columns], axis=1)
    positions = words.positions[tokens]
    cells = positions.from_start.astype(np.intp) * N_CELLS + positions.from_end
    previous = np.where(positions.previous < 0, n_previous, positions.previous)
    order = np.arange(columns.shape[1]) * N_CELLS**2
    position = (cells[:, None] + order) * (n_previous + 1) + previous[:, None]
    present = columns >= 0
    row = (np.cumsum(chosen) - 1)[words.tokens.documents[tokens]]
    row = np.repeat(row, present.sum(axis=1))
    keys = np.repeat(np.arange(len(rows)), np.diff(bag.indptr)) * np.int64(bag.shape[1])
    entry = np.searchsorted(keys + bag.indices, row * np.int64(bag.shape[1]) + columns[present])
    code, distinct = pd.factorize(position[present])
    code = code.astype(np.int32)
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=len(rows)))).astype(np.int32)

    def by_position(values: Array) -> Any:
        return sparse.csr_array((values[entry], code, indptr), shape=(len(rows), len(distinct)))

    # The scores are numbered by starts, ends and words before; the last is no word before.
    n_cells = len(words.columns) * N_CELLS
    rest, previous = np.divmod(distinct, n_previous + 1)
    start, end = np.divmod(rest, N_CELLS)
    end += start // N_CELLS * N_CELLS
    numbers = np.stack([start, n_cells + end, 2 * n_cells + previous], axis=1)
    ends, ones = 3 * np.arange(len(numbers) + 1), np.ones(numbers.size)
    shape = len(numbers), 2 * n_cells + n_previous + 1
    return GateEvidence(
        numerators=[by_position(odds[:, k]) for k in range(n_outputs)],
        masses=by_position(mass),
        parts=sparse.csr_array((ones, numbers.ravel(), ends), shape=shape)[:, :-1],
        output_loss=output_loss(targets, weights),
        weights=weights,
        intercepts=statistics.class_log_odds,
        cls_weight=scaling.cls_weight,
    )


def _within_limit(
    groups: Numbers, sizes: NDArray[Any], weights: Array, limit: float
) -> NDArray[np.bool_]:
    """Return which documents (n_documents,) to use: groups in a random order up to `limit`."""
    positive = weights > 0
    entries = np.zeros(groups.max(initial=-1) + 1)
    entries[groups[positive]] = sizes[positive]
    # Groups are numbered by their contents, so that the order of the documents has no influence.
    order = np.random.default_rng(0).permutation(len(entries))
    before = np.empty_like(entries)
    before[order] = np.cumsum(entries[order]) - entries[order]
    return np.asarray(positive & (before < limit)[groups])


def learn_scores(evidence: GateEvidence, n_cells: int) -> Array:
    """Return the scores, first those of `n_cells` cells, then of words before."""
    from .._core.threads import ThreadLimit

    n_scores = evidence.parts.shape[1]
    penalties = np.full(n_scores, PREVIOUS_PENALTY)
    penalties[:n_cells] = POSITION_PENALTY
    penalties *= 1.0 + PENALTY_DOCUMENTS / evidence.weights.sum()
    start = np.concatenate([np.zeros(n_scores), [_START_SCALE], evidence.intercepts])
    units = 1.0 / np.sqrt(_curvature(evidence, penalties))
    bounds = Bounds(np.where(np.arange(len(start)) == n_scores, 0.0, -np.inf))  # of alpha

    def function(x: Array) -> tuple[float, Array]:
        loss, gradient = loss_and_gradient(units * x, evidence, penalties)
        return loss, units * gradient

    options = {"maxiter": _MAX_ITER}
    with ThreadLimit():
        result = minimize(
            function, start / units, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
    return (units * result.x)[:n_scores]


def _curvature(evidence: GateEvidence, penalties: Array) -> Array:
    """Return approximate second derivatives at the start, (n_scores + 1 + n_outputs,)."""
    n_outputs = len(evidence.intercepts)
    variance = evidence.weights / max(n_outputs, 4)
    ones = np.ones(evidence.masses.shape[1])
    masses = evidence.cls_weight + evidence.masses @ ones
    by_position, by_scale = np.zeros(len(ones)), 0.0
    for table in evidence.numerators:
        # Not table.power(2), which would sort the indices that all tables share.
        squares = sparse.csr_array((table.data**2, table.indices, table.indptr), table.shape)
        by_position += squares.T @ (variance * (_START_SCALE / masses) ** 2)
        by_scale += float(variance @ (table @ ones / masses) ** 2)
    by_score = penalties + evidence.parts.T @ by_position
    by_intercept = np.full(n_outputs, variance.sum())
    return np.concatenate([by_score, [by_scale or 1.0], by_intercept])


def loss_and_gradient(x: Array, evidence: GateEvidence, penalties: Array) -> tuple[float, Array]:
    """Return the penalised loss and its gradient at x = [scores, alpha, beta]."""
    n_scores = evidence.parts.shape[1]
    scores, scale, intercepts = x[:n_scores], x[n_scores], x[n_scores + 1 :]
    summed = evidence.parts @ scores
    factors = np.exp(summed.clip(-MAX_SCORE, MAX_SCORE))
    masses = evidence.cls_weight + evidence.masses @ factors
    outputs = np.stack([table @ factors for table in evidence.numerators], axis=1)
    outputs /= masses[:, None]
    loss, by_fitted = evidence.output_loss(torch.from_numpy(intercepts + scale * outputs))
    residuals = by_fitted.numpy()

    by_output = scale * residuals / masses[:, None]
    by_position = evidence.masses.T @ -(by_output * outputs).sum(axis=1)
    for table, slope in zip(evidence.numerators, by_output.T, strict=True):
        by_position += table.T @ np.ascontiguousarray(slope)
    by_position *= factors * (np.abs(summed) < MAX_SCORE)
    by_score = penalties * scores + evidence.parts.T @ by_position
    loss += 0.5 * float(penalties @ scores**2)
    by_scale = (residuals * outputs).sum()
    return loss, np.concatenate([by_score, [by_scale], residuals.sum(axis=0)])
