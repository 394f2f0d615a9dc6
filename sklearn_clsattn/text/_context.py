r"""Scores of occurrences from where they stand, learned on leave-one-out evidence.

With the evidence of :mod:`._evidence` and the scores :math:`e_o` (``docs/texts.md``) the model is

.. math::

    d_i = S_0 + \sum_o e^{e_o} v_o e^{\pi_s}, \qquad
    F_{ik} = \beta_k + \frac{\alpha}{d_i} \sum_o e^{e_o}\, 2 S_0 v_o r_{sk}^{(-i)},

naive Bayes with attention. Evidence that has seen its own document would make the scores learn
where words stand that stand nowhere else.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, minimize
from scipy.special import expit, log_softmax

from ._evidence import Evidence

Array = NDArray[np.float64]

POSITION_PENALTY = 1.0
PREVIOUS_PENALTY = 5.0
PENALTY_DOCUMENTS = 200.0
"""Penalties are doubled for so many documents, more for fewer: scores have seen their labels."""
MAX_SCORE = 6.0
_MAX_ITER = 10  # 40 gain nothing
_START_SCALE = 0.3


@dataclass(frozen=True)
class Learned:
    """scores : (n_scores,), of cells and words before; scale : alpha."""

    scores: Array
    scale: float


def learn_scores(evidence: Evidence, n_positions: int) -> Learned:
    """Return the scores, of which the first `n_positions` are those of cells."""
    from .._core.backend import ThreadShare

    n_scores = evidence.n_scores
    penalties = np.full(n_scores, PREVIOUS_PENALTY)
    penalties[:n_positions] = POSITION_PENALTY
    penalties *= 1.0 + PENALTY_DOCUMENTS / evidence.weights.sum()
    start = np.concatenate([np.zeros(n_scores), [_START_SCALE], evidence.intercepts])
    units = 1.0 / np.sqrt(_curvature(evidence, penalties))
    lowest = np.full(len(start), -np.inf)
    lowest[n_scores] = 0.0

    def function(x: Array) -> tuple[float, Array]:
        loss, gradient = loss_and_gradient(units * x, evidence, penalties)
        return loss, units * gradient

    options = {"maxiter": _MAX_ITER}
    bounds = Bounds(lowest)
    with ThreadShare():
        found = minimize(
            function, start / units, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
    x = units * found.x
    return Learned(x[:n_scores], float(x[n_scores]))


def _curvature(evidence: Evidence, penalties: Array) -> Array:
    """Return about the loss's second derivatives at the start, (n_scores + 1 + n_outputs,)."""
    n_outputs = len(evidence.intercepts)
    variance = evidence.weights / max(n_outputs, 4)
    ones = np.ones(evidence.masses.shape[1])
    masses = evidence.cls_weight + evidence.masses @ ones
    by_place, by_scale = np.zeros(len(ones)), 0.0
    for table in evidence.numerators:
        # Not table.power(2), which would sort the indices that all tables share.
        squares = sparse.csr_array((table.data**2, table.indices, table.indptr), table.shape)
        by_place += squares.T @ (variance * (_START_SCALE / masses) ** 2)
        by_scale += float(variance @ (table @ ones / masses) ** 2)
    by_score = penalties.copy()
    for part in evidence.parts.T:
        by_score += np.bincount(part, by_place, len(penalties) + 1)[:-1]
    by_intercept = np.full(n_outputs, variance.sum())
    return np.concatenate([by_score, [by_scale or 1.0], by_intercept])


def loss_and_gradient(x: Array, evidence: Evidence, penalties: Array) -> tuple[float, Array]:
    """Return the penalised loss and its gradient at x = [scores, alpha, beta]."""
    n_scores, weights = evidence.n_scores, evidence.weights
    scores, scale, intercepts = x[:n_scores], x[n_scores], x[n_scores + 1 :]
    summed = np.append(scores, 0.0)[evidence.parts].sum(axis=1)
    factors = np.exp(summed.clip(-MAX_SCORE, MAX_SCORE))
    masses = evidence.cls_weight + evidence.masses @ factors
    outputs = np.stack([table @ factors for table in evidence.numerators], axis=1)
    outputs /= masses[:, None]
    losses, residuals = _log_loss(intercepts + scale * outputs, evidence.codes)
    residuals *= weights[:, None]

    by_output = scale * residuals / masses[:, None]
    by_place = evidence.masses.T @ -(by_output * outputs).sum(axis=1)
    for table, slope in zip(evidence.numerators, by_output.T, strict=True):
        by_place += table.T @ np.ascontiguousarray(slope)
    by_place *= factors * (np.abs(summed) < MAX_SCORE)
    by_score = penalties * scores
    for part in evidence.parts.T:
        by_score += np.bincount(part, by_place, n_scores + 1)[:n_scores]
    loss = float(weights @ losses + 0.5 * penalties @ scores**2)
    by_scale = (residuals * outputs).sum()
    return loss, np.concatenate([by_score, [by_scale], residuals.sum(axis=0)])


def _log_loss(outputs: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return losses (n_documents,) and their derivatives (n_documents, n_outputs)."""
    if outputs.shape[1] == 1:
        signs = 2.0 * codes - 1.0
        margins = signs * outputs[:, 0]
        return np.logaddexp(0.0, -margins), -(signs * expit(-margins))[:, None]
    logs = log_softmax(outputs, axis=1)
    rows = np.arange(len(codes))
    losses = -logs[rows, codes]
    residuals = np.exp(logs)
    residuals[rows, codes] -= 1.0
    return losses, residuals
