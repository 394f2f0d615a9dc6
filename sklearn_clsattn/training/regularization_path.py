"""Fits of the same documents for several C, each from the last one's result."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._bags import TokenVectors
from .documents import Documents
from .fitted_model import FitResult, OnIteration
from .lbfgs import Iterate, Pairs, add_curvature
from .objective import VALUES, AttentionObjective, solve
from .prior_mean import PriorMean, prior_mean
from .statistics import TokenScaling, scaling_of
from .vector_values import VectorValues


class AttentionPath:
    """The default training's objective of some documents, for one C after another.

    Bags are in the precision `dtype` on a device. The other parameters are those of
    :func:`~.fit.fit_attention`. `mean` is the prior mean of the values, before the first fit that
    for C = 1. What a fit learns of the curvature, and the gradient it ends with, serve the next.
    `vectors` of tokens have the scale 0 until :meth:`set_vector_scale` gives them another.
    """

    def __init__(
        self,
        documents: Documents,
        dtype: type[np.floating[Any]],
        device: torch.device | str,
        *,
        attention_C: float,
        attend_cls: bool = True,
        token_scaling: TokenScaling = "log_odds",
        vectors: TokenVectors | None = None,
    ) -> None:
        # 1) the units of training, the loss and the prior mean of the values
        scaling = scaling_of(
            documents.statistics,
            token_scaling=token_scaling,
            attend_cls=attend_cls,
            dtype=dtype,
            trust=documents.trust,
        )
        self._loss = documents.attention_loss(dtype, device, scaling.cls_weight)
        self.mean: PriorMean | None = prior_mean(
            documents, self._loss, scaling, documents.statistics
        )
        self._statistics = documents.statistics.of_tokens(np.empty(0, np.intp))
        self._scaling = replace(scaling, totals=None)
        self._attention_C = attention_C
        # 2) what values get from vectors
        self.vector_values: VectorValues | None = None
        if vectors is not None:
            _, some = documents.sample()
            self.vector_values = VectorValues(
                vectors, scaling, some.bags, some.weights, self._loss.device, self._loss.dtype
            )
        # 3) what one fit leaves to the next: a point with its gradient and curvature, all forgotten
        # where C falls or the objective changes otherwise, and the point alone after `start_at`
        self._objective: AttentionObjective | None = None
        self._mean_C = 1.0
        self._last_C = np.inf
        self._pairs = Pairs()
        self._reached: Iterate | None = None

    @property
    def objective(self) -> AttentionObjective:
        """The objective, made when first needed: until then others may need the memory."""
        if self._objective is None:
            self._objective = AttentionObjective(
                self._loss if self.mean is None else self.mean.loss,
                self._statistics,
                self._scaling,
                C=1.0,
                attention_C=self._attention_C,
                mean=self.mean,
                vector_values=self.vector_values,
            )
        return self._objective

    def set_vector_scale(self, scale: float) -> None:
        """Give what values get from vectors this scale, gamma, and start from the last values."""
        vector_values = self.vector_values
        if vector_values is None or vector_values.scale == scale:
            return
        start = self.objective.start.clone()
        ratio = vector_values.scale / scale if scale else 0.0  # with which values stay the same
        start[-1 - vector_values.dimension : -1] *= ratio
        vector_values.scale = scale
        self._forget(start)

    def set_attention_C(self, attention_C: float) -> None:
        """Change the penalty on the scores, and start from the last values."""
        if attention_C == self._attention_C:
            return
        self._attention_C = attention_C
        self.objective.set_attention_C(attention_C)
        self._forget(self.objective.start)

    def _forget(self, start: torch.Tensor) -> None:
        """Start from trained numbers, without what was learned of the curvature."""
        self.objective.start = start
        self._reached = None
        self._pairs.clear()

    def start_at(self, point: torch.Tensor) -> None:
        """Start the next fit from trained numbers."""
        self.objective.start = point
        self._reached = None
        self._last_C = 0.0  # below every C: none starts afresh

    def start_with(self, choice: Any) -> None:
        """Take the `attention_C` of a choice, and start where its search was, if anywhere."""
        self.set_attention_C(choice.attention_C)
        if choice.point is not None:  # nearer than the default start; it has a gamma of its own
            self.set_vector_scale(choice.point_scale)
            self.start_at(choice.point.to(self.objective.start.dtype))

    def set_C(self, C: float) -> AttentionObjective:
        """Return the objective with the values' penalty and prior mean for this C."""
        objective = self.objective
        mean_C = min(C, 1.0)  # the prior mean is the same for every larger C
        if objective.mean is not None and mean_C != self._mean_C:
            objective.mean.fit(C)
            objective.loss = objective.mean.loss
            self._mean_C = mean_C
            self._reached = None
        objective.set_C(C)
        return objective

    def fit(
        self, C: float, *, max_iter: int, tol: float, on_iteration: OnIteration | None = None
    ) -> FitResult:
        """Fit for a C, from the last result if that had a smaller one.

        From a larger one training would stop too soon: stronger penalties make for smaller gaps.
        """
        # 1) the objective for this C
        penalty_before = self.objective.values.penalty
        objective = self.set_C(C)
        # 2) the start: what the last fit ended with, for another penalty, or nothing
        if self._last_C > C:
            self._forget(objective.cold_start())
        else:
            self._add_penalty(objective.values.penalty - penalty_before)
        # 3) the fit
        result, self._reached = solve(
            objective,
            max_iter=max_iter,
            tol=tol,
            on_iteration=on_iteration,
            pairs=self._pairs,
            reached=self._reached,
        )
        objective.start = self._reached.x
        self._last_C = C
        return result

    def _add_penalty(self, added: float) -> None:
        """Change what is known of curvature and gradient to those with a larger penalty on values.

        Where the last fit ended, C changes the penalty alone.
        """
        add_curvature(self._pairs, VALUES, added)
        if self._reached is not None:
            trained = self._reached.x[VALUES]
            self._reached.gradient[VALUES].add_(trained, alpha=added)
            square = float(trained.square().sum(dtype=torch.float64))
            self._reached.value += 0.5 * added * square
