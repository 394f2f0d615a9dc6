r"""Training from batches: what earlier documents said is remembered as a quadratic.

The losses of all documents seen so far are replaced by their second-order expansion around the
model that was reached with them,

.. math::

    \sum_{i\,\text{seen}} \omega_i\, \ell_i(\theta) \approx \text{const}
      + g^\top (\theta - \bar\theta)
      + \tfrac12 \sum_j H_j (\theta_j - \bar\theta_j)^2,

with the gradient g and the diagonal curvature H of :mod:`sklearn_clsattn.model.derivatives`, added
up batch by batch (:mod:`sklearn_clsattn.training.memory`). A new batch is trained on together with
that, under the penalties and the token scaling of all documents so far; then it becomes part of the
memory. The first batch is joint training, exactly. Updating a Gaussian of diagonal covariance batch
by batch is old for logistic regression [1]_ [2]_; the linear term, without which the penalties
would be counted once a batch, and its use for attention are ours.

.. [1] D. J. Spiegelhalter, S. L. Lauritzen (1990). Sequential updating of conditional
   probabilities on directed graphical structures. Networks 20.
.. [2] O. Chapelle, L. Li (2011). An Empirical Evaluation of Thompson Sampling, Algorithm 3.
   NeurIPS 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import count_selected
from ..model.objective import AttentionObjective
from .joint import (
    JointFit,
    JointProgress,
    curvature_at_start,
    descend_to_gap,
    fitted_model,
    joint_problem,
)
from .memory import Memory, Stream, add_batch
from .regimes import Documents, Settings, Trained, joint_training
from .scaling import Scaling, token_scaling

Array = NDArray[np.float64]

_UNSEEN_SHARE = 0.01
"""Of the documents, as which a class counts at the start of training before it has come (ours)."""


def learn_batch(
    stream: Stream,
    batch: Documents,
    settings: Settings,
    *,
    device: torch.device,
    seed: int = 0,
    on_step: Callable[[JointProgress], bool] | None = None,
) -> tuple[Trained, Stream]:
    """Learn a batch of documents.

    Parameters
    ----------
    stream : Stream
        What is kept of the documents before.

    batch : Documents
        At least one of positive weight.

    settings : Settings
        Of joint training by L-BFGS.

    device : torch.device

    seed : int, default=0
        Of the embeddings' frame, where they have a dimension.

    on_step : callable, default=None
        Told of every step; True stops.

    Returns
    -------
    trained : Trained

    stream : Stream
        What is kept of all documents.
    """
    if stream.memory is not None and stream.memory.attend_cls != settings.attend_cls:
        raise ValueError(
            f"attend_cls={settings.attend_cls}, but earlier batches were learnt with "
            f"attend_cls={stream.memory.attend_cls}: change it back, or begin again on a clone()."
        )
    total = float(batch.weights.sum())
    token_weight = stream.token_weight + batch.mean_weight() * total
    n_entries = stream.n_entries + batch.mean_entries() * total
    class_weights = stream.class_weights + batch.class_weights
    shares = stream.shares + batch.shares
    scaling = token_scaling(
        shares,
        class_weights,
        token_weight / class_weights.sum(),
        token_weight / (n_entries or 1.0),
        scaling=settings.token_scaling,
        attend_cls=settings.attend_cls,
    )
    fit = fit_batch(
        stream.memory,
        batch.X,
        batch.codes,
        batch.weights,
        class_weights,
        scaling,
        value_C=settings.C,
        attention_C=settings.attention_C,
        max_iter=settings.max_iter,
        tol=settings.tol,
        device=device,
        on_step=on_step,
    )
    kept = Stream(
        add_batch(stream.memory, fit.fitted, batch.X, batch.codes, batch.weights),
        shares,
        class_weights,
        token_weight,
        n_entries,
        stream.selection_counts + count_selected(fit.fitted.scores, batch.X[batch.weights > 0]),
    )
    return joint_training(fit, settings, seed), kept


def fit_batch(
    memory: Memory | None,
    X: Any,
    codes: NDArray[np.intp],
    weights: Array,
    class_weights: Array,
    scaling: Scaling,
    *,
    value_C: float,
    attention_C: float,
    max_iter: int,
    tol: float,
    device: torch.device | str = "cpu",
    on_step: Callable[[JointProgress], bool] | None = None,
) -> JointFit:
    """Train on a batch of documents, and on what is remembered of those before.

    Parameters
    ----------
    memory : Memory or None
        Of earlier documents; None for the first batch, which is then all there is.

    X : CSR matrix of shape (n_documents, n_tokens)
        The batch, in canonical format.

    codes, weights : ndarray of shape (n_documents,)
        Class codes and document weights of the batch.

    class_weights : ndarray of shape (n_classes,)
        Summed weights of all documents, earlier ones included.

    scaling : Scaling
        Of all documents.

    value_C, attention_C, max_iter, tol, on_step
        As :func:`sklearn_clsattn.training.joint.fit_joint` has them.

    device : torch.device or str, default="cpu"
        Where training computes, in double precision.

    Returns
    -------
    JointFit
        Its losses are means over all documents, by the expansion for the earlier ones, with
        penalties; its gap is an estimate of how far that is from stationary.
    """
    total = float(class_weights.sum())
    # Intercepts are not penalised: a class that has not come yet must not start at no chance.
    started = np.where(class_weights > 0, class_weights, _UNSEEN_SHARE * total)
    problem = joint_problem(
        TokenBag(X, dtype=np.float64, device=device),
        codes,
        weights,
        started,
        scaling,
        value_C=value_C,
        attention_C=attention_C,
        total_weight=total,
    )
    objective, start = problem.objective, problem.start
    curvature = curvature_at_start(problem)
    stiffness = torch.empty_like(start)
    stiffness[:-1, 0] = objective.score_penalty
    stiffness[:-1, 1:] = objective.value_penalty
    stiffness[-1, 0] = objective.cls_penalty
    stiffness[-1, 1:] = problem.label_variance * (weights.sum() / objective.total_weight)
    function: Callable[[torch.Tensor], tuple[float, torch.Tensor]] = objective
    if memory is not None:
        function = _Remembering(objective, memory)
        start = function.center()
        curvature += function.curvature
        stiffness += function.curvature
    descent = descend_to_gap(
        function,
        start,
        gap_of=lambda gradient: 0.5 * float((gradient.square() / stiffness).sum()),
        model_of=lambda parameters: fitted_model(objective, parameters),
        inverse_curvature=curvature.reciprocal_(),
        max_iter=max_iter,
        tol=tol,
        on_step=on_step,
    )
    return JointFit(
        fitted=fitted_model(objective, descent.x),
        loss_curve=descent.values,
        gap=descent.gap,
        n_iter=descent.n_iter,
        status=descent.status,
    )


class _Remembering:
    """The objective of a batch, and the expansion of the losses of earlier documents."""

    def __init__(self, objective: AttentionObjective, memory: Memory) -> None:
        def tensor(array: Array) -> torch.Tensor:
            # Writable: a model that was read by memory map is not, of which PyTorch would warn.
            return torch.from_numpy(np.require(array, requirements="W")).to(objective.bag.device)

        units = objective.units
        self._objective = objective
        # Parameters times these, plus the start, are what the memory is in terms of.
        scale = torch.ones_like(objective.start())
        scale[:-1, 1:] = units.value_scales
        center = tensor(memory.center).clone()
        center[:-1, 0] -= units.starting_scores
        center[-1, 0] -= float(np.log(units.cls_weight)) if units.cls_weight else 0.0
        self._scale, self._center = scale, center
        self._loss = memory.loss / objective.total_weight
        self._slope = tensor(memory.gradient) / objective.total_weight
        self._bend = tensor(memory.curvature) / objective.total_weight
        self.curvature = self._bend * scale.square()

    def center(self) -> torch.Tensor:
        """Return the parameters around which the losses are expanded, in the objective's units."""
        return torch.where(self._scale > 0, self._center / self._scale, 0.0)

    def __call__(self, parameters: torch.Tensor) -> tuple[float, torch.Tensor]:
        value, gradient = self._objective(parameters)
        moved = self._scale * parameters - self._center
        pull = self._slope + 0.5 * self._bend * moved
        value += self._loss + float((pull * moved).sum())
        pull.add_(moved * self._bend, alpha=0.5)
        return value, gradient.add_(pull * self._scale)
