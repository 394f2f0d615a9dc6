"""The problem of the default training: scores, values and intercepts with their penalties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .fitted import FittedAttention
from .objective import AttentionLoss, Block, Objective, Units
from .prior_mean import PriorMean
from .solvers.base import Evaluation, Multiply
from .statistics import Scaling, class_log_odds, class_priors

Array = NDArray[np.float64]

CLS_PENALTY = 1.0
"""Strength of the penalty on the score of ``<cls>``, which keeps it near its start."""

VALUES = 1
"""The place of the values among the blocks."""

_LEAST_CURVATURE = 1e-3


class AttentionProblem(Objective):
    """The default training's problem: x is [u | t] over a last row (see `_core.objective`).

    `class_weights`, (n_classes,), are the summed document weights, for the intercepts' start and
    curvature; `C` and `attention_C` are those of :func:`fit_attention`; the values' prior mean
    `mean`, None for 0, is no part of the token matrix, but of `loss` and of the model. `more` are
    further functions of the token matrix that are added to `loss`. Losses are averaged over
    `total_weight`; None is that of the documents of `loss`.
    """

    refresh: int | None = 10

    def __init__(
        self,
        loss: AttentionLoss,
        class_weights: Array,
        scaling: Scaling,
        *,
        C: float,
        attention_C: float,
        mean: PriorMean | None = None,
        more: Sequence[Evaluation] = (),
        total_weight: float | None = None,
    ) -> None:
        device, dtype = loss.bag.device, loss.bag.dtype
        two_classes = len(class_weights) == 2
        total = loss.total_weight if total_weight is None else total_weight
        score_penalty = 1.0 / (total * attention_C)
        self._C_unit = scaling.C_unit
        priors = class_priors(class_weights)[1 if two_classes else 0 :]
        variance = np.maximum(priors * (1 - priors), _LEAST_CURVATURE)
        self._label_variance = torch.from_numpy(variance).to(device)
        self.units = Units(
            torch.from_numpy(scaling.starting_scores).to(device, dtype),
            torch.from_numpy(scaling.value_scales).to(device, dtype),
        )
        scores, values = (slice(None, -1), 0), (slice(None, -1), slice(1, None))
        super().__init__(
            [loss, *more],
            self.units,
            [
                Block(scores, score_penalty, score_penalty),
                Block(values, 0.0, 0.0),
                Block((-1, 0), CLS_PENALTY, CLS_PENALTY),
                Block((-1, slice(1, None)), 0.0, self._label_variance),
            ],
            total,
        )
        self.loss, self.mean = loss, mean
        self.set_C(C)
        self._class_log_odds = torch.from_numpy(class_log_odds(class_weights)).to(device, dtype)
        self.start = self.cold_start()

    def cold_start(self) -> torch.Tensor:
        """Return where training starts that knows no other: at 0, but for the intercepts."""
        start = self.loss.zeros()
        start[-1, 1:] = self._class_log_odds
        return start

    def set_C(self, C: float) -> None:
        """Change the penalty on the values."""
        penalty = 1.0 / (self.total_weight * C * self._C_unit)
        self.blocks[VALUES] = Block(self.blocks[VALUES].index, penalty, penalty)

    def start_from(self, model: FittedAttention) -> None:
        """Start from a model of the same tokens and outputs."""
        if self.mean is not None:
            model = self.mean.subtracted_from(model)
        matrix = torch.from_numpy(model.token_matrix()).to(self.start)
        if self.loss.cls_weight and model.cls_weight:
            matrix[-1, 0] += float(np.log(model.cls_weight / self.loss.cls_weight))
        self.start = self.units.inverse(matrix)

    def token_curvature(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean loss's curvature by t and intercepts, (n_tokens + 1, n_outputs)."""
        curvature = self.loss.curvature(self.token_map.matrix(x)).div_(self.total_weight)
        curvature[:-1] *= self.units.value_scales.square()
        return curvature

    def curvature(self, x: torch.Tensor) -> torch.Tensor:
        """Return the Hessian's diagonal by t and intercepts, and the penalties by scores."""
        scores, values, cls, intercepts = self.blocks
        by_output = self.token_curvature(x)
        curvature = torch.empty_like(x)
        curvature[values.index] = by_output[:-1]
        curvature[values.index] += values.penalty
        curvature[scores.index] = scores.penalty
        curvature[cls.index] = cls.penalty
        curvature[intercepts.index] = by_output[-1]
        return curvature

    def inverse_curvature(self, x: torch.Tensor) -> Multiply:
        """Return the product with the inverse of :meth:`curvature` at x."""
        inverse = self.curvature(x).reciprocal_()
        return lambda tensor: tensor * inverse

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model at a point."""
        model = fitted_attention(self.token_map.matrix(x), self.loss.cls_weight)
        return model if self.mean is None else self.mean.added_to(model)


def fitted_attention(
    matrix: torch.Tensor, cls_weight: float, embeddings: Any = None
) -> FittedAttention:
    """Return the model of a token matrix as NumPy arrays in float64."""

    def array(part: torch.Tensor) -> Array:
        return np.array(part.cpu().numpy(), dtype=np.float64, order="C")

    return FittedAttention(
        scores=array(matrix[:-1, 0]),
        values=array(matrix[:-1, 1:]),
        intercept=array(matrix[-1, 1:]),
        cls_weight=cls_weight,
        cls_score=float(matrix[-1, 0]) if cls_weight else -np.inf,
        embeddings=embeddings,
    )
