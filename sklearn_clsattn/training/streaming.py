r"""Training from batches: the losses of earlier documents are remembered as a quadratic.

The losses of all documents seen so far are replaced by their second-order expansion around the
model that was reached with them,

.. math::

    \sum_{i\,\text{seen}} \omega_i\, \ell_i(\theta) \approx \text{const}
      + g^\top (\theta - \bar\theta)
      + \tfrac12 \sum_j H_j (\theta_j - \bar\theta_j)^2,

with the gradient g and the diagonal curvature H of :mod:`.earlier_batches`, added
up batch by batch. A new batch is trained on together with that, under the penalties and the token
scaling of all documents so far; then it becomes part of the memory. After the first batch the
minimum is that of the default training. ``docs/mathematics.md`` has the sources.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .choose_c import ATTENTION_CS, choose_C
from .documents import Documents
from .earlier_batches import Memory, Stream
from .fit import default_tol
from .fitted_model import FitResult, FittedAttention, OnIteration
from .loss import AttentionLoss
from .objective import CLS_SCORE, AttentionObjective, RememberedLoss, solve
from .prior_mean import prior_mean
from .statistics import CorpusStatistics, TokenScaling, scaling_of

_UNSEEN_SHARE = 0.01
"""Share of the documents that a class without any yet is assumed to have at the start."""


def learn_batch(
    stream: Stream,
    batch: Documents,
    *,
    C: float | None,
    attention_C: float | None,
    attend_cls: bool,
    token_scaling: TokenScaling,
    max_iter: int,
    tol: float | None,
    device: torch.device | str,
    on_iteration: OnIteration | None = None,
) -> tuple[FitResult, Stream]:
    """Learn a batch of documents, in double precision.

    `stream` is what is kept of the documents before; `batch` has at least one document of positive
    weight, and the statistics of the batch alone. The other parameters are those of
    :func:`.fit.fit_attention`. Losses of the result are means over all
    documents, by the expansion for the earlier ones, with penalties; its gap estimates how far that
    is from stationary. C None is chosen on the first batch with two classes, and again on one
    that is larger than all before it. The stream returned includes the batch. A change of
    `attend_cls` is a ValueError.
    """
    earlier = stream.memory
    if earlier is not None and earlier.attend_cls != attend_cls:
        raise ValueError(
            f"attend_cls={attend_cls}, but earlier batches were learnt with "
            f"attend_cls={earlier.attend_cls}: change it back, or begin again on a clone()."
        )
    # 1) the scaling and prior mean of all documents so far
    statistics = stream.statistics + batch.statistics
    scaling = scaling_of(statistics, token_scaling=token_scaling, attend_cls=attend_cls)
    loss = batch.attention_loss(np.float64, device, scaling.cls_weight)
    mean = prior_mean(batch, loss, scaling, statistics, earlier=stream.mean_prior)
    # 2) C and attention_C
    start = None
    if C is None and _should_choose_C(stream, batch):
        model_params: Any = {"attend_cls": attend_cls, "token_scaling": token_scaling}
        choice = choose_C(batch, mean, np.float64, device, attention_C=attention_C, **model_params)
        stream = replace(stream, C=choice.C, attention_C=choice.attention_C)
        start = choice.point
    C = C or stream.C or 1.0
    attention_C = attention_C or stream.attention_C or ATTENTION_CS[0]
    if mean is not None:
        mean.fit(C)
        loss = mean.loss
    # 3) training on the batch and the memory
    remembered = None if earlier is None else RememberedLoss(earlier, loss)
    objective = AttentionObjective(
        loss,
        _with_unseen_classes(statistics),
        scaling,
        C=C,
        attention_C=attention_C,
        mean=mean,
        remembered=remembered,
        total_weight=statistics.total_weight,
    )
    objective.refresh = None
    if earlier is None and start is not None:
        objective.start = start
    tol = default_tol(batch) if tol is None else tol
    result, _ = solve(objective, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    # 4) the memory of all documents so far
    trained = result.model if mean is None else mean.subtracted_from(result.model)
    kept = Stream(
        memory=_expand(loss, trained, remembered),
        statistics=statistics,
        selection_counts=stream.selection_counts + batch.count_selected(result.model.scores),
        C=stream.C,
        attention_C=stream.attention_C,
        mean_prior=(0.0, 0.0) if mean is None else (float(mean.multiples[0]), mean.precision),
        entry_scale=batch.entry_scale,
    )
    attributes = result.attributes | {"C_": C, "attention_C_": attention_C}
    return replace(result, attributes=attributes), kept


def _should_choose_C(stream: Stream, batch: Documents) -> bool:
    """Return whether a batch of several classes is the first, or larger than all before it."""
    is_larger = batch.statistics.total_weight > stream.statistics.total_weight
    n_classes = np.count_nonzero(batch.statistics.class_sizes)
    return bool(n_classes > 1 and (stream.C is None or is_larger))


def _with_unseen_classes(statistics: CorpusStatistics) -> CorpusStatistics:
    """Return statistics in which classes without documents have some weight.

    Intercepts are not penalised: those of such classes must not start at -inf.
    """
    class_sizes = statistics.class_sizes
    assumed = _UNSEEN_SHARE * statistics.total_weight
    return replace(statistics, class_sizes=np.where(class_sizes > 0, class_sizes, assumed))


def _expand(
    loss: AttentionLoss, model: FittedAttention, remembered: RememberedLoss | None
) -> Memory:
    """Return the losses of all documents, expanded around a model without its prior mean."""
    # 1) the losses of the batch
    matrix = torch.from_numpy(model.token_matrix()).to(loss.device)
    value, gradient = loss(matrix)
    curvature = loss.bound(matrix)
    # 2) those of earlier documents
    if remembered is not None:
        earlier_value, earlier_gradient = remembered(matrix)
        value += earlier_value
        gradient += earlier_gradient
        curvature += remembered.curvature
    # 3) the mass of <cls> for its score: its weight follows the documents seen so far
    if loss.cls_weight:
        matrix[CLS_SCORE] += float(np.log(loss.cls_weight))
    return Memory(
        center=matrix.cpu().numpy(),
        loss=value,
        gradient=gradient.cpu().numpy(),
        curvature=curvature.cpu().numpy(),
        attend_cls=bool(loss.cls_weight),
    )
