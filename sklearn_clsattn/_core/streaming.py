r"""Training from batches: the losses of earlier documents are remembered as a quadratic.

The losses of all documents seen so far are replaced by their second-order expansion around the
model that was reached with them,

.. math::

    \sum_{i\,\text{seen}} \omega_i\, \ell_i(\theta) \approx \text{const}
      + g^\top (\theta - \bar\theta)
      + \tfrac12 \sum_j H_j (\theta_j - \bar\theta_j)^2,

with the gradient g and the diagonal curvature H of :mod:`sklearn_clsattn._core.memory`, added
up batch by batch. A new batch is trained on together with that, under the penalties and the token
scaling of all documents so far; then it becomes part of the memory. The first batch is the
default training, exactly. Updating a Gaussian of diagonal covariance batch by batch is known from
logistic regression [1]_ [2]_; ``docs/model.md`` has the differences.

.. [1] D. J. Spiegelhalter, S. L. Lauritzen (1990). Sequential updating of conditional
   probabilities on directed graphical structures. Networks 20.
.. [2] O. Chapelle, L. Li (2011). An Empirical Evaluation of Thompson Sampling, Algorithm 3.
   NeurIPS 2011.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from .attention_problem import AttentionProblem
from .choose_c import choose_C
from .documents import Documents
from .fit import default_tol
from .fitted import FittedAttention
from .memory import Memory, Stream, add_batch
from .objective import AttentionLoss, Block
from .prior_mean import PriorMean, prior_mean
from .problem import Callback, FitResult, solve
from .statistics import Scaling, TokenScaling, token_scaling

Array = NDArray[np.float64]

_UNSEEN_SHARE = 0.01
"""Share of the documents that a class without any yet is assumed to have at the start."""


def learn_batch(
    stream: Stream,
    batch: Documents,
    *,
    C: float | None,
    attention_C: float,
    attend_cls: bool = True,
    scaling: TokenScaling = "log_odds",
    max_iter: int,
    tol: float | None,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
) -> tuple[FitResult, Stream]:
    """Learn a batch of documents, in double precision.

    `stream` is what is kept of the documents before; `batch` has at least one document of positive
    weight, and the statistics of the batch alone. The other parameters are those of
    :func:`~sklearn_clsattn._core.fit.fit_attention`. Losses of the result are means over all
    documents, by the expansion for the earlier ones, with penalties; its gap estimates how far that
    is from stationary. C None is chosen on the first batch with two classes, and kept. The stream
    returned includes the batch. A change of `attend_cls` is a ValueError.
    """
    memory = stream.memory
    if memory is not None and memory.attend_cls != attend_cls:
        raise ValueError(
            f"attend_cls={attend_cls}, but earlier batches were learnt with "
            f"attend_cls={memory.attend_cls}: change it back, or begin again on a clone()."
        )
    statistics = stream.statistics + batch.statistics
    units = token_scaling(statistics, scaling=scaling, attend_cls=attend_cls)
    bag = batch.bag(np.float64, device)
    loss = batch.loss(bag, cls_weight=units.cls_weight)
    everything = replace(batch, statistics=statistics)
    mean = prior_mean(everything, loss, units, earlier=stream.evidence)
    choice = None
    if C is None and stream.C is None and np.count_nonzero(batch.statistics.class_weights) > 1:
        how = {"attention_C": attention_C, "attend_cls": attend_cls, "scaling": scaling}
        choice = choose_C(batch, mean, np.float64, device, **how)
        stream = replace(stream, C=choice.C)
    C = C or stream.C or 1.0
    mean = mean and mean.at(C)
    problem = StreamProblem(
        loss,
        statistics.class_weights,
        units,
        memory,
        C=C,
        attention_C=attention_C,
        mean=mean,
    )
    if memory is None and choice is not None and choice.point is not None:
        problem.start = choice.point
    tol = default_tol(batch) if tol is None else tol
    result = solve(problem, max_iter=max_iter, tol=tol, callback=callback)
    model = result.model
    assert isinstance(model, FittedAttention)
    counts = batch.count_selected(model.scores)
    trained = model if mean is None else mean.subtracted_from(model)
    kept = Stream(
        add_batch(memory, trained, batch.loss_derivatives(trained, loss)),
        statistics,
        stream.selection_counts + counts,
        stream.C,
        (0.0, 0.0) if mean is None else (mean.best.scale, mean.best.precision),
        batch.entry_scale,
    )
    attributes = result.attributes | {"C_": C}
    return replace(result, attributes=attributes), kept


class StreamProblem(AttentionProblem):
    """The default training's problem on a batch, with the expanded losses of earlier documents.

    `loss` is that of the batch; `class_weights`, (n_classes,), and `scaling` are those of all
    documents, earlier ones included; `memory` is that of the earlier ones, None if there are none.
    """

    refresh = None

    def __init__(
        self,
        loss: AttentionLoss,
        class_weights: Array,
        scaling: Scaling,
        memory: Memory | None,
        *,
        C: float,
        attention_C: float,
        mean: PriorMean | None = None,
    ) -> None:
        total = float(class_weights.sum())
        remembered = None if memory is None else RememberedLoss(memory, loss)
        super().__init__(
            loss,
            # Intercepts are not penalised: a class without documents must not start at -inf.
            np.where(class_weights > 0, class_weights, _UNSEEN_SHARE * total),
            scaling,
            C=C,
            attention_C=attention_C,
            mean=mean,
            more=[] if remembered is None else [remembered],
            total_weight=total,
        )
        # The batch's own curvature of intercepts is its documents' share of that of all.
        *penalised, intercepts = self.blocks
        share = loss.total_weight / total
        self.blocks = [*penalised, replace(intercepts, curvature=intercepts.curvature * share)]
        self._remembered_curvature: torch.Tensor | None = None
        if remembered is not None:
            self.start = self.units.inverse(remembered.center)
            curvature = remembered.curvature / total
            curvature[:-1, 1:] *= self.units.value_scales.square()
            self._remembered_curvature = curvature
            self.blocks = [_stiffened(block, curvature) for block in self.blocks]

    def curvature(self, x: torch.Tensor) -> torch.Tensor:
        """Return the batch's curvature and the remembered one."""
        curvature = super().curvature(x)
        if self._remembered_curvature is not None:
            curvature += self._remembered_curvature
        return curvature


class RememberedLoss:
    """The expansion of the losses of earlier documents, as a function of the token matrix.

    Of `loss`, that of the new documents, only the weight of ``<cls>`` and the device are used.
    `center` and `curvature`, (n_tokens + 1, 1 + n_outputs), are the token matrix expanded around
    and the diagonal curvature there.
    """

    def __init__(self, memory: Memory, loss: AttentionLoss) -> None:
        def tensor(array: Array) -> torch.Tensor:
            # Writable, as PyTorch warns of read-only arrays, such as memory maps of saved models.
            return torch.from_numpy(np.require(array, requirements="W")).to(loss.bag.device)

        self.center = tensor(memory.center).clone()
        self.center[-1, 0] -= float(np.log(loss.cls_weight)) if loss.cls_weight else 0.0
        self._loss, self._gradient = memory.loss, tensor(memory.gradient)
        self.curvature = tensor(memory.curvature)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the expanded losses and its gradient."""
        step = matrix - self.center
        change = self.curvature * step
        loss = self._loss + float(((self._gradient + 0.5 * change) * step).sum())
        return loss, change.add_(self._gradient)


def _stiffened(block: Block, curvature: torch.Tensor) -> Block:
    """Return a block whose curvature has the remembered one, shape (n_tokens + 1, ...), added."""
    return replace(block, curvature=curvature[block.index] + block.curvature)
