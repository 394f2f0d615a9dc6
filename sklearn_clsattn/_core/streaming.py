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
logistic regression [1]_ [2]_; ``docs/mathematics.md`` has the differences.

.. [1] D. J. Spiegelhalter, S. L. Lauritzen (1990). Sequential updating of conditional
   probabilities on directed graphical structures. Networks 20.
.. [2] O. Chapelle, L. Li (2011). An Empirical Evaluation of Thompson Sampling, Algorithm 3.
   NeurIPS 2011.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .choose_c import ATTENTION_CS, choose_C
from .corpus import added
from .documents import CorpusLoss, Documents
from .fit import default_tol
from .memory import Memory, Stream
from .objective import CLS_SCORE, AttentionObjective, RememberedLoss
from .prior_mean import prior_mean
from .result import FitResult, OnIteration
from .shard import expansion
from .solve import solve
from .statistics import TokenScaling, token_scaling

_UNSEEN_SHARE = 0.01
"""Share of the documents that a class without any yet is assumed to have at the start."""


def learn_batch(
    stream: Stream,
    batch: Documents,
    *,
    C: float | None,
    attention_C: float | None,
    attend_cls: bool = True,
    scaling: TokenScaling = "log_odds",
    max_iter: int,
    tol: float | None,
    device: torch.device | str = "cpu",
    on_iteration: OnIteration | None = None,
) -> tuple[FitResult, Stream]:
    """Learn a batch of documents, in double precision.

    `stream` is what is kept of the documents before; `batch` has at least one document of positive
    weight, and the statistics of the batch alone. The other parameters are those of
    :func:`~sklearn_clsattn._core.fit.fit_attention`. Losses of the result are means over all
    documents, by the expansion for the earlier ones, with penalties; its gap estimates how far that
    is from stationary. C None is chosen on the first batch with two classes, and again on one
    that is larger than all before it. The stream returned includes the batch. A change of
    `attend_cls` is a ValueError.
    """
    memory = stream.memory
    if memory is not None and memory.attend_cls != attend_cls:
        raise ValueError(
            f"attend_cls={attend_cls}, but earlier batches were learnt with "
            f"attend_cls={memory.attend_cls}: change it back, or begin again on a clone()."
        )
    statistics = stream.statistics + batch.statistics
    units = token_scaling(statistics, scaling=scaling, attend_cls=attend_cls)
    loss = CorpusLoss(batch, np.float64, device, units.cls_weight)
    everything = replace(batch, statistics=statistics, _cache={})
    mean = prior_mean(everything, loss, units, earlier=stream.evidence)
    start = None
    is_larger = batch.statistics.total_weight > stream.statistics.total_weight
    wanted = C is None and (stream.C is None or is_larger)
    if wanted and np.count_nonzero(batch.statistics.class_weights) > 1:
        model_params: Any = {"attend_cls": attend_cls, "scaling": scaling}
        choice = choose_C(batch, mean, np.float64, device, attention_C=attention_C, **model_params)
        stream = replace(stream, C=choice.C, attention_C=choice.attention_C)
        start = choice.point
    C = C or stream.C or 1.0
    attention_C = attention_C or stream.attention_C or ATTENTION_CS[0]
    if mean is not None:
        mean.fit(C)
    total = statistics.total_weight
    # Intercepts are not penalised: a class without documents must not start at -inf.
    seen = statistics.class_weights > 0
    class_weights = np.where(seen, statistics.class_weights, _UNSEEN_SHARE * total)
    remembered = None if memory is None else RememberedLoss(memory, loss)
    objective = AttentionObjective(
        loss,
        replace(statistics, class_weights=class_weights),
        units,
        C=C,
        attention_C=attention_C,
        mean=mean,
        remembered=remembered,
        total_weight=total,
    )
    objective.refresh = None
    if memory is None and start is not None:
        objective.start = start
    tol = default_tol(batch) if tol is None else tol
    result, _ = solve(objective, max_iter=max_iter, tol=tol, on_iteration=on_iteration)
    model = result.model
    counts = batch.count_selected(model.scores)
    trained = model if mean is None else mean.subtracted_from(model)
    matrix = torch.from_numpy(trained.token_matrix()).to(loss.device)
    sums = loss.shards.sum(expansion, matrix)
    if remembered is not None:
        sums = added(sums, (*remembered(matrix), remembered.curvature))
    value, gradient, curvature = sums
    matrix[CLS_SCORE] += float(np.log(units.cls_weight)) if units.cls_weight else 0.0
    center, gradient, curvature = (one.cpu().numpy() for one in (matrix, gradient, curvature))
    kept = Stream(
        Memory(center, value, gradient, curvature, bool(units.cls_weight)),
        statistics,
        stream.selection_counts + counts,
        stream.C,
        stream.attention_C,
        (0.0, 0.0) if mean is None else (mean.scale, mean.precision),
        batch.entry_scale,
    )
    attributes = result.attributes | {"C_": C, "attention_C_": attention_C}
    return replace(result, attributes=attributes), kept
