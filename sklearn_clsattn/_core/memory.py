r"""What is kept of documents that have been trained on: their losses, to second order.

It needs no PyTorch and pickles without it.

With attention shares q, outputs :math:`F_{ik} = \beta_k + f_{ik}`, class probabilities and
document weights :math:`\omega_i`, every output depends on the parameters by

.. math::

    \frac{\partial F_{ik}}{\partial b_{sk}} = q_{is}, \quad
    \frac{\partial F_{ik}}{\partial a_s} = q_{is} (b_{sk} - f_{ik}), \quad
    \frac{\partial F_{ik}}{\partial \log m} = -q_{i0} f_{ik}, \quad
    \frac{\partial F_{ik}}{\partial \beta_k} = 1,

with ``<cls>``'s attention mass :math:`m = S_0 e^{a_0}` and share :math:`q_{i0}`. The gradient sums
:math:`g_{ik} = \omega_i\, \partial \ell / \partial F_{ik}` times these, the curvature
:math:`h_{ik} = \omega_i \tanh(|\mu_{ik}| / 2) / (2 |\mu_{ik}|)` times their squares, with the
log-odds :math:`\mu_{ik}` of class k in document i.

The latter is the curvature of the parabola that is tangent to the loss and nowhere below it, as
a function of one output (Jaakkola and Jordan [1]_). The loss's own, p (1 - p), is almost 0 in
documents with a confident prediction: expanded with that, they would have no influence.

.. [1] T. S. Jaakkola, M. I. Jordan (2000). Bayesian parameter estimation via variational methods.
   Statistics and Computing 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from .fitted import FittedAttention, probabilities
from .statistics import CorpusStatistics

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """The losses of documents that have been trained on, expanded around the model reached.

    center : (n_tokens + 1, 1 + n_outputs), that model's parameters (:func:`parameters_of`), values
        without their prior mean
    loss : the sum of the losses there
    gradient, curvature : (n_tokens + 1, 1 + n_outputs), its derivatives
    attend_cls : whether ``<cls>`` attends to itself
    """

    center: Array
    loss: float
    gradient: Array
    curvature: Array
    attend_cls: bool


@dataclass(frozen=True)
class Stream:
    """What is kept of all documents seen so far.

    memory : their losses; None before the first batch
    statistics : their sums
    selection_counts : (n_tokens,), how often each token was selected, by the model trained with the
        document
    C : as it was chosen, if it was
    evidence : scale and precision of the prior mean (:class:`.prior_mean.PriorMean`)
    entry_scale : unit of the counts where they are damped: that of the first batch
    """

    memory: Memory | None
    statistics: CorpusStatistics
    selection_counts: NDArray[np.intp]
    C: float | None = None
    evidence: tuple[float, float] = (0.0, 0.0)
    entry_scale: float | None = None

    @classmethod
    def empty(cls, n_classes: int, n_tokens: int) -> Stream:
        """Return a stream without documents."""
        statistics = CorpusStatistics.empty(n_classes, n_tokens)
        return cls(None, statistics, np.zeros(n_tokens, dtype=np.intp))


def add_batch(
    memory: Memory | None, model: FittedAttention, derivatives: tuple[float, Array, Array]
) -> Memory:
    """Return the memory of the earlier documents and new ones, around a new model.

    `memory` is that of the earlier documents, None if there are none; `model` was trained on all of
    them, its values without their prior mean. `derivatives` are the new documents'
    :func:`loss_derivatives` there; their arrays are changed.
    """
    center = parameters_of(model)
    loss, gradient, curvature = derivatives
    if memory is not None:
        step = center - memory.center
        change = memory.curvature * step
        loss += memory.loss + float(((memory.gradient + 0.5 * change) * step).sum())
        gradient += memory.gradient + change
        curvature += memory.curvature
    return Memory(center, loss, gradient, curvature, bool(model.cls_weight))


def parameters_of(model: FittedAttention) -> Array:
    """Return the token matrix with the logarithm of the mass of ``<cls>`` for its score."""
    matrix = model.token_matrix()
    matrix[-1, 0] += np.log(model.cls_weight) if model.cls_weight else 0.0
    return matrix


def loss_derivatives(
    fitted: FittedAttention,
    X: Any,
    codes: NDArray[np.intp],
    weights: Array,
    evidence: Array | None = None,
) -> tuple[float, Array, Array]:
    """Return the weighted sum of the documents' losses, its gradient and its curvature.

    `X` is the CSR matrix of the documents, `codes` and `weights`, (n_documents,), are their class
    codes and weights, and `evidence`, (n_documents, n_outputs), what the prior mean adds to the
    sums over their tokens, None for 0. Both derivatives are (n_tokens + 1, 1 + n_outputs): by
    score and values, a row per token; in the last row by the logarithm of the mass of ``<cls>`` (0
    without) and the intercepts. No curvature is negative.
    """
    n_tokens, n_outputs = fitted.values.shape
    q = fitted.attention(X).data
    documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    own_values = fitted.values[X.indices]
    attended: Array = np.column_stack(
        [np.bincount(documents, q * column, X.shape[0]) for column in own_values.T]
    )
    if evidence is not None:
        mass = X @ np.exp(fitted.scores)
        if fitted.cls_weight:
            mass += fitted.cls_weight * np.exp(fitted.cls_score)
        attended = attended + evidence / np.where(mass > 0, mass, 1.0)[:, None]
    outputs = attended + fitted.intercept
    p = probabilities(outputs[:, 0] if n_outputs == 1 else outputs)
    log_odds = _log_odds(outputs)
    of_class = np.arange(p.shape[1]) == codes[:, None]
    slope = ((p - of_class) * weights[:, None])[:, -n_outputs:]
    bound = _bound_curvature(log_odds) * weights[:, None]
    if n_outputs == 1:
        margins = np.where(codes == 1, log_odds[:, 0], -log_odds[:, 0])
    else:
        margins = log_odds[np.arange(len(codes)), codes]
    loss = float(np.logaddexp(0.0, -margins) @ weights)

    gradient, curvature = np.zeros((2, n_tokens + 1, 1 + n_outputs))
    for k in range(n_outputs):
        g, h = q * slope[documents, k], q**2 * bound[documents, k]
        lever = own_values[:, k] - attended[documents, k]
        gradient[:-1, 1 + k] = np.bincount(X.indices, g, n_tokens)
        curvature[:-1, 1 + k] = np.bincount(X.indices, h, n_tokens)
        gradient[:-1, 0] += np.bincount(X.indices, g * lever, n_tokens)
        curvature[:-1, 0] += np.bincount(X.indices, h * lever**2, n_tokens)
    if fitted.cls_weight:
        q_cls = (1.0 - np.bincount(documents, q, X.shape[0])).clip(min=0.0)
        lever_cls = -q_cls[:, None] * attended
        gradient[-1, 0] = (slope * lever_cls).sum()
        curvature[-1, 0] = (bound * lever_cls**2).sum()
    gradient[-1, 1:] = slope.sum(axis=0)
    curvature[-1, 1:] = bound.sum(axis=0)
    return loss, gradient, curvature


def _log_odds(outputs: Array) -> Array:
    """Return every output's log-odds against the other classes, (n_documents, n_outputs)."""
    n_outputs = outputs.shape[1]
    if n_outputs == 1:
        return outputs
    others = [logsumexp(np.delete(outputs, k, axis=1), axis=1) for k in range(n_outputs)]
    return outputs - np.column_stack(others)


def _bound_curvature(log_odds: Array) -> Array:
    """Return ``tanh(|x| / 2) / (2 |x|)``, which is 1/4 at 0."""
    size = np.maximum(np.abs(log_odds), 1e-6)
    return np.asarray(np.tanh(0.5 * size) / (2.0 * size))
