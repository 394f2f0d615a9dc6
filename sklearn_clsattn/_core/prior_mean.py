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
(:mod:`.leave_one_out`), and prediction those of all documents. :math:`\hat\alpha` minimises the
mean loss of :math:`\beta + \alpha N^{(-i)}_i / d_i` before training, and is halved, because values
that are trained find again, document by document, a part of what naive Bayes knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .documents import Documents
from .evidence import EvidenceSums
from .fitted import FittedAttention
from .objective import AttentionLoss
from .statistics import Scaling, class_log_odds

Array = NDArray[np.float64]

MEAN_SHARE = 0.5
"""What of the best multiple of naive Bayes is the prior mean."""

_STATIONARY, _ROUNDING = 1e-8, 1e-15
_MAX_STEPS = 50


@dataclass(frozen=True)
class PriorMean:
    """The prior mean of the token values, before the division by exp(a).

    numerators : (n_tokens, n_outputs), alpha times unit times log-odds, in training's precision
    scale : alpha-hat, the best multiple of the leave-one-out evidence
    precision : second derivative of the sum of losses by alpha, where the multiple is best
    loss : mean loss in nats per document with that multiple and no values
    """

    numerators: NDArray[np.floating[Any]]
    scale: float
    precision: float
    loss: float

    def added_to(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean added to its values."""
        mean = self.numerators / np.exp(model.scores)[:, None]
        mean += model.values
        return replace(model, values=mean)

    def subtracted_from(self, model: FittedAttention) -> FittedAttention:
        """Return a model with the mean taken out of its values."""
        mean = self.numerators / np.exp(model.scores)[:, None]
        return replace(model, values=model.values - mean)


def prior_mean(
    documents: Documents,
    loss: AttentionLoss,
    scaling: Scaling,
    earlier: tuple[float, float] = (0.0, 0.0),
) -> PriorMean | None:
    """Fit the multiple of the evidence, give `loss` its half, and return the mean.

    None, and no evidence, where the scaling knows no log-odds. `earlier` are scale and precision
    from documents seen before these: the scale is the mean of both, by precision.
    """
    if scaling.totals is None:
        return None
    naive_bayes = documents.naive_bayes(loss, scaling)
    scale, precision, value = _best_multiple(
        naive_bayes, loss.total_weight, documents.statistics.class_weights
    )
    both = precision + earlier[1]
    scale = (scale * precision + earlier[0] * earlier[1]) / both if both > 0 else 0.0
    naive_bayes.keep(MEAN_SHARE * scale)
    numerators = scaling.totals.log_odds()
    numerators *= MEAN_SHARE * scale * scaling.unit
    return PriorMean(numerators.astype(scaling.value_scales.dtype), scale, both, value)


def _best_multiple(
    sums: EvidenceSums, total_weight: float, class_weights: Array
) -> tuple[float, float, float]:
    """Return the multiple of the evidence's outputs of least loss, not below 0.

    Intercepts are fitted beside it, by Newton's method. Also returned are the second derivative of
    the sum of losses by the multiple, and their mean.
    """
    start = np.array([0.0, *class_log_odds(class_weights)])
    x, found = start, sums(start)
    at_start = found
    for _ in range(_MAX_STEPS):
        value, gradient, hessian = found
        if np.abs(gradient).max() <= _STATIONARY * total_weight:
            break
        step = np.linalg.lstsq(hessian, -gradient, rcond=1e-12)[0]
        for halving in range(_MAX_STEPS):
            candidate = x + 0.5**halving * step
            found = sums(candidate)
            if found[0] < (1 + _ROUNDING) * value:
                break
        else:  # the value is the least that rounding allows
            found = value, gradient, hessian
            break
        x = candidate
    if not x[0] > 0:
        x, found = start, at_start
    return float(x[0]), float(found[2][0, 0]), found[0] / total_weight
