r"""The prior mean of the token values: half of what a naive Bayes says without each document.

A penalty pulls the values towards a mean. With 0 for a mean, rare tokens say nothing. Here the mean
of token s for output k is

.. math:: \bar b_{sk} = \alpha\, \nu\, r_{sk}\, e^{-a_s}

with the log-odds r of a naive Bayes, :math:`\nu` the :attr:`~.statistics.Scaling.unit`, and one
number :math:`\alpha` for all tokens. In the numerator of a document's output the scores cancel: the
mean adds :math:`N_{ik} = \alpha \nu \sum_s c_{is} r_{sk}`, a naive Bayes on the counts, divided by
the document's attention mass.

Log-odds that have seen a document tell too much about its class: the values trained beside them
would only learn to take that back. So training uses the leave-one-out log-odds of every document
(:mod:`.evidence`), and prediction those of all documents. :math:`\hat\alpha` minimises the
mean loss of :math:`\beta + \alpha N^{(-i)}_i / d_i` before training, and is halved, because values
that are trained find again, document by document, a part of what naive Bayes knows.

Where the evidence separates the classes, no multiple has the least loss. So the multiple has a
normal prior with mean 0, in the manner of a unit-information prior [1]_: its precision is the
Fisher information about the multiple, at 0, of :data:`PRIOR_DOCUMENTS` documents of average
evidence, divided by C where C is less than 1. So few documents do not make it large, many outweigh
the prior, it follows the scale of the evidence, and goes to 0 with C.

.. [1] R. E. Kass, L. Wasserman (1995). A Reference Bayesian Test for Nested Hypotheses and its
   Relationship to the Schwarz Criterion. JASA 90.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .documents import Documents
from .evidence import Evidence
from .forward import FittedAttention
from .loss import AttentionLoss
from .statistics import CorpusStatistics, Scaling

MEAN_SHARE = 0.5
"""What of the best multiple of naive Bayes is the prior mean."""

PRIOR_DOCUMENTS = 0.3
"""How many documents the prior of the multiple is worth at C = 1 and above."""

_STATIONARY = 1e-8
_ROUNDING = 1e-15
_MAX_STEPS = 100
_LESS_DAMPING = 0.1
_LEAST_DAMPING = 1e-3  # relative to the curvature at the start
_MOST_DAMPING = 1e6


class _Sums(NamedTuple):
    """The loss of a multiple of naive Bayes with intercepts, (1 + n_outputs,), to second order."""

    value: float
    gradient: Array
    hessian: Array


class PriorMean:
    """The prior mean of the token values, and the multiple of the evidence that it is half of.

    `log_odds`, (n_tokens, n_outputs), are unit times log-odds, in training's precision; `evidence`
    is what naive Bayes says of documents of this total weight. `intercepts`, (n_outputs,), are
    those at the start, and `earlier` mean and precision of a prior of the multiple; precision 0
    stands for the module's.

    :meth:`fit` sets, for one C after another, `scale`, alpha-hat; `precision`, the second
    derivative by alpha of the penalised sum of losses there; `mean_loss`, in nats per document,
    with that multiple and no values; and `loss`, that of the documents with half of the evidence.
    """

    scale: float
    precision: float
    mean_loss: float
    loss: AttentionLoss

    def __init__(
        self,
        log_odds: NDArray[np.floating[Any]],
        evidence: Evidence,
        total_weight: float,
        intercepts: Array,
        earlier: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._log_odds = log_odds
        self._evidence = evidence
        self._total_weight = total_weight
        self._earlier = earlier
        self._start = np.array([0.0, *intercepts])
        self._reached = self._start
        self._at_start = self._evaluate(self._start)
        self.fit(1.0)

    def added_to(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean added to its values."""
        return replace(model, values=self._values(model) + model.values)

    def subtracted_from(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean taken out of its values."""
        return replace(model, values=model.values - self._values(model))

    def _values(self, model: FittedAttention) -> Array:
        """Return the mean of the values, (n_tokens, n_outputs), at a model's scores."""
        factors = MEAN_SHARE * self.scale / np.exp(model.scores)
        return np.asarray(self._log_odds * factors[:, None])

    def fit(self, C: float) -> None:
        """Find the best multiple for a C, and the documents' loss with half of its evidence."""
        # 1) the prior of the multiple
        centre, strength = self._earlier
        if not strength:
            information = self._at_start.hessian[0, 0] / self._total_weight
            strength = PRIOR_DOCUMENTS * information / min(C, 1.0)
        # 2) the best multiple, and the loss there without the penalty
        x, penalised = self._minimise(centre, strength)
        self.scale = float(x[0])
        self.precision = float(penalised.hessian[0, 0])
        loss = penalised.value - 0.5 * strength * (x[0] - centre) ** 2
        self.mean_loss = float(loss / self._total_weight)
        # 3) half of its evidence, for training
        self.loss = self._evidence.loss_with(MEAN_SHARE * self.scale)

    def _evaluate(self, x: Array) -> _Sums:
        """Return the loss of naive Bayes times x[0] plus intercepts x[1:]."""
        return _Sums(*self._evidence.sums(x))

    def _minimise(self, centre: float, strength: float) -> tuple[Array, _Sums]:
        """Return multiple and intercepts of least penalised loss, and its derivatives there.

        The multiple is not below 0. By Newton's method, damped where a step would raise the loss.
        """
        # 1) the start: the least value for the last C, if there was one
        x = self._reached
        current = _penalised(self._evaluate(x), x, centre, strength)
        curvature = np.diag(self._at_start.hessian.diagonal())
        damping = 0.0
        for _ in range(_MAX_STEPS):
            if np.abs(current.gradient).max() <= _STATIONARY * self._total_weight:
                break
            # 2) Newton's step, by least squares: the Hessian of softmax is singular
            hessian = current.hessian + damping * curvature
            step = np.linalg.lstsq(hessian, -current.gradient, rcond=1e-12)[0]
            candidate = x + step
            trial = _penalised(self._evaluate(candidate), candidate, centre, strength)
            # 3) taken if the loss falls, else a shorter one is tried
            if trial.value < (1 + _ROUNDING) * current.value:
                x = candidate
                current = trial
                damping *= _LESS_DAMPING
            elif damping < _MOST_DAMPING:
                damping = max(damping / _LESS_DAMPING, _LEAST_DAMPING)
            else:  # the value is the least that rounding allows
                break
        # A negative multiple would turn the evidence around.
        if x[0] > 0:
            self._reached = x
            return x, current
        x = self._start
        return x, _penalised(self._at_start, x, centre, strength)


def _penalised(sums: _Sums, x: Array, centre: float, strength: float) -> _Sums:
    """Return the loss with the prior of the multiple, which is x[0]."""
    distance = x[0] - centre
    gradient = sums.gradient.copy()
    gradient[0] += strength * distance
    hessian = sums.hessian.copy()
    hessian[0, 0] += strength
    return _Sums(sums.value + 0.5 * strength * distance**2, gradient, hessian)


def prior_mean(
    documents: Documents,
    loss: AttentionLoss,
    scaling: Scaling,
    statistics: CorpusStatistics,
    *,
    earlier: tuple[float, float] = (0.0, 0.0),
) -> PriorMean | None:
    """Return the prior mean for C = 1, None where the scaling knows no log-odds.

    `loss` is that of the documents, without evidence, and `statistics` give the intercepts at the
    start. `earlier` are scale and precision from documents seen before these, which become the
    prior of the multiple.
    """
    if scaling.totals is None:
        return None
    evidence = documents.evidence(loss, scaling)
    log_odds = scaling.totals.log_odds()
    log_odds *= scaling.unit
    log_odds = log_odds.astype(scaling.value_scales.dtype)
    intercepts = statistics.class_log_odds
    return PriorMean(log_odds, evidence, loss.total_weight, intercepts, earlier)
