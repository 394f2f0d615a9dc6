r"""What is kept of documents that have been trained on: their losses, to second order.

It needs no PyTorch and pickles without it. With attention shares q, outputs
:math:`F_{ik} = \beta_k + f_{ik}` and document weights :math:`\omega_i`, the outputs depend on the
parameters by

.. math::

    \frac{\partial F_{ik}}{\partial b_{sk}} = q_{is}, \quad
    \frac{\partial F_{ik}}{\partial a_s} = q_{is} (b_{sk} - f_{ik}), \quad
    \frac{\partial F_{ik}}{\partial a_0} = -q_{i0} f_{ik}, \quad
    \frac{\partial F_{ik}}{\partial \beta_k} = 1,

with the share :math:`q_{i0}` of ``<cls>``. The curvature sums
:math:`h_{ik} = \omega_i \tanh(|\mu_{ik}| / 2) / (2 |\mu_{ik}|)` times their squares, with the
log-odds :math:`\mu_{ik}` of class k in document i: the curvature of the parabola that is tangent
to the loss and nowhere below it, as a function of one output [1]_. The loss's own, p (1 - p), is
almost 0 where a prediction is confident: such documents would have no influence.

.. [1] T. S. Jaakkola, M. I. Jordan (2000). Bayesian parameter estimation via variational methods.
   Statistics and Computing 10.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._types import Array, Numbers
from .statistics import CorpusStatistics


@dataclass(frozen=True)
class Memory:
    """The losses of documents that have been trained on, expanded around the model reached.

    center : (n_tokens + 1, 1 + n_outputs), that model's token matrix, values without their prior
        mean, with the logarithm of the mass of ``<cls>`` for its score
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
    C, attention_C : as they were chosen, if they were
    mean_prior : scale and precision of the prior mean (:class:`.prior_mean.PriorMean`)
    entry_scale : unit of the counts where they are damped: that of the first batch
    """

    memory: Memory | None
    statistics: CorpusStatistics
    selection_counts: Numbers
    C: float | None = None
    attention_C: float | None = None
    mean_prior: tuple[float, float] = (0.0, 0.0)
    entry_scale: float | None = None
