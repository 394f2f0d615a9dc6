r"""The prior mean of the token values: half of what a naive Bayes says without each document.

``docs/mathematics.md`` has the formula: the log-odds r of a naive Bayes, times the
:attr:`~.statistics.Scaling.unit` and one number :math:`\alpha` for all tokens. The mean adds
:math:`N_{ik} = \alpha \nu \sum_s c_{is} r_{sk}` to the numerator of a document's output.

Log-odds that have seen a document tell too much about its class: the values trained beside them
would only learn to take that back. So training uses the leave-one-out log-odds of every document
(:mod:`.leave_one_out`), and prediction those of all documents. :math:`\hat\alpha` minimises the
mean loss of :math:`\beta + \alpha N^{(-i)}_i / d_i` before training, and is halved, because values
that are trained find again, document by document, a part of what naive Bayes knows.

Where the evidence separates the classes, no multiple has the least loss. So the multiple has a
normal prior with mean 0, in the manner of a unit-information prior (Kass and Wasserman): its
precision is the Fisher information about the multiple, at 0, of :data:`PRIOR_DOCUMENTS` documents
of average evidence, divided by C where C is less than 1. So few documents do not make it large,
many outweigh the prior, it follows the scale of the evidence, and goes to 0 with C.

What people state of words (:mod:`.trusted_words`) has a multiple of its own, whose prior has the
mean 1 and is worth more documents, whatever C is.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .documents import Documents
from .fitted_model import FittedAttention
from .leave_one_out import Evidence
from .loss import AttentionLoss
from .statistics import CorpusStatistics, Scaling

MEAN_SHARE = 0.5
"""What of the best multiples of naive Bayes, and of what people state, is the prior mean."""

PRIOR_MULTIPLES = 0.0, 1.0
"""The means of the multiples' priors."""

PRIOR_DOCUMENTS = 0.3, 10.0
"""How many documents these priors are worth; the first at C = 1 and above."""

_STATIONARY = 1e-8
_ROUNDING = 1e-15
_MAX_STEPS = 100
_LESS_DAMPING = 0.1
_LEAST_DAMPING = 1e-3  # relative to the curvature at the start
_MOST_DAMPING = 1e6


class _Sums(NamedTuple):
    """The loss of multiples with intercepts x, (n_kinds + n_outputs,), to second order."""

    x: Array
    value: float
    gradient: Array
    hessian: Array


class _Prior(NamedTuple):
    """Normal priors of the multiples: means and precisions, (n_kinds,)."""

    means: Array
    precisions: Array

    def penalty(self, x: Array) -> float:
        """Return the penalty on multiples with intercepts."""
        distances = x[: len(self.means)] - self.means
        return 0.5 * float(self.precisions @ distances**2)

    def added_to(self, sums: _Sums) -> _Sums:
        """Return a loss with the penalty."""
        n_kinds = len(self.means)
        gradient = sums.gradient.copy()
        gradient[:n_kinds] += self.precisions * (sums.x[:n_kinds] - self.means)
        hessian = sums.hessian.copy()
        hessian[np.arange(n_kinds), np.arange(n_kinds)] += self.precisions
        return _Sums(sums.x, sums.value + self.penalty(sums.x), gradient, hessian)


class PriorMean:
    """The prior mean of the token values, and the multiples of the evidence that it is half of.

    `log_odds`, (n_tokens, n_outputs), are unit times log-odds, in training's precision: those of
    naive Bayes and, if there are any, those that people state. `evidence` is what they say of
    documents of this total weight. `intercepts`, (n_outputs,), are those at the start, and
    `earlier` mean and precision of a prior of alpha; precision 0 stands for the module's.

    :meth:`fit` sets, for one C after another, `multiples`, (n_kinds,), alpha-hat and zeta-hat;
    `precision`, the second derivative by alpha of the penalised sum of losses there; `mean_loss`,
    in nats per document, with these multiples and no values; and `loss`, that of the documents with
    half of the evidence.
    """

    def __init__(
        self,
        log_odds: list[NDArray[np.floating[Any]]],
        evidence: Evidence,
        total_weight: float,
        intercepts: Array,
        earlier: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self._log_odds = log_odds
        self._evidence = evidence
        self._total_weight = total_weight
        self._earlier = earlier
        self._n_kinds = len(log_odds)
        multiples = PRIOR_MULTIPLES[: self._n_kinds]
        self._start = np.array([*multiples, *intercepts])
        self._at_start = self._evaluate(self._start)
        self._reached = self._at_start
        self.fit(1.0)

    def added_to(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean added to its values."""
        return replace(model, values=self._values(model) + model.values)

    def subtracted_from(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean taken out of its values."""
        return replace(model, values=model.values - self._values(model))

    def _values(self, model: FittedAttention) -> Array:
        """Return the mean of the values, (n_tokens, n_outputs), at a model's scores."""
        values = np.zeros((len(model.scores), len(self._start) - self._n_kinds))
        for log_odds, multiple in zip(self._log_odds, self.multiples, strict=True):
            factors = MEAN_SHARE * multiple / np.exp(model.scores)
            values += log_odds * factors[:, None]
        return values

    def fit(self, C: float) -> None:
        """Find the best multiples for a C, and the documents' loss with half of their evidence."""
        n_kinds = self._n_kinds
        # 1) the priors of the multiples
        information = self._at_start.hessian.diagonal()[:n_kinds] / self._total_weight
        precisions = np.array(PRIOR_DOCUMENTS[:n_kinds]) * information
        precisions[0] /= min(C, 1.0)
        means = np.array(PRIOR_MULTIPLES[:n_kinds])
        if self._earlier[1]:
            means[0], precisions[0] = self._earlier
        prior = _Prior(means, precisions)
        # 2) the best multiples, and the loss there without the penalty
        best = self._minimise(prior)
        self.multiples = best.x[:n_kinds]
        self.precision = float(best.hessian[0, 0] + precisions[0])
        self.mean_loss = float(best.value / self._total_weight)
        # 3) half of their evidence, for training
        self.loss = self._evidence.loss_with(MEAN_SHARE * self.multiples)

    def _evaluate(self, x: Array) -> _Sums:
        """Return the loss of multiples of the evidence plus intercepts."""
        return _Sums(x, *self._evidence.sums(x))

    def _minimise(self, prior: _Prior) -> _Sums:
        """Return the loss where it is least with the penalty.

        A negative multiple would turn the evidence around: where one is, one kind of evidence at
        most has a multiple, and the others have 0.
        """
        n_kinds = self._n_kinds
        is_free = np.ones(len(self._start), dtype=bool)
        reached = self._reach(self._reached, is_free, prior)
        if (reached.x[:n_kinds] >= 0).all():
            self._reached = reached
            return reached
        candidates = []
        each_kind = range(n_kinds) if n_kinds > 1 else ()
        for kind in (*each_kind, -1):  # -1: none
            is_free[:n_kinds] = np.arange(n_kinds) == kind
            start = self._evaluate(np.where(is_free, self._start, 0.0))
            reached = self._reach(start, is_free, prior)
            if (reached.x[:n_kinds] >= 0).all():
                candidates.append(reached)
        return min(candidates, key=lambda sums: sums.value + prior.penalty(sums.x))

    def _reach(self, reached: _Sums, is_free: NDArray[np.bool_], prior: _Prior) -> _Sums:
        """Return the loss where Newton's method, with the penalty, ends from where one was reached.

        It is damped where a step would raise the loss, and changes the numbers that are free.
        """
        # 1) the start
        current = prior.added_to(reached)
        curvature = np.diag(self._at_start.hessian.diagonal())
        damping = 0.0
        for _ in range(_MAX_STEPS):
            gradient = np.where(is_free, current.gradient, 0.0)
            if np.abs(gradient).max() <= _STATIONARY * self._total_weight:
                break
            # 2) Newton's step, by least squares: the Hessian of softmax is singular
            hessian = current.hessian + damping * curvature
            hessian *= np.outer(is_free, is_free)
            step = np.linalg.lstsq(hessian, -gradient, rcond=1e-12)[0]
            candidate = self._evaluate(reached.x + np.where(is_free, step, 0.0))
            trial = prior.added_to(candidate)
            # 3) taken if the loss falls, else a shorter one is tried
            if trial.value < (1 + _ROUNDING) * current.value:
                reached = candidate
                current = trial
                damping *= _LESS_DAMPING
            elif damping < _MOST_DAMPING:
                damping = max(damping / _LESS_DAMPING, _LEAST_DAMPING)
            else:  # the value is the least that rounding allows
                break
        return reached


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
    dtype = scaling.value_scales.dtype
    of_documents = scaling.totals.log_odds()
    of_documents *= scaling.unit
    log_odds = [of_documents.astype(dtype)]
    if scaling.totals.stated is not None:
        stated = scaling.totals.stated * scaling.unit
        log_odds.append(stated.astype(dtype))
    intercepts = statistics.class_log_odds
    return PriorMean(log_odds, evidence, loss.total_weight, intercepts, earlier)
