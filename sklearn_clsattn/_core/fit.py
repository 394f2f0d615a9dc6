"""The default training: scores and values to convergence, in place of all embeddings.

Minimising the penalised loss over the embeddings E with p and v fixed and orthogonal is the
same problem as minimising it over the scores E.p and the values E.v (representer fact,
``docs/model.md``), so E never appears here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .bag import TokenBag
from .fitted import FittedAttention
from .objective import AttentionLoss, Block, Objective, Reduce, Units, encode_targets
from .problem import Callback, FitResult, solve
from .solvers.base import Evaluation, Multiply, Solver
from .solvers.lbfgs import minimize_lbfgs
from .statistics import (
    CorpusStatistics,
    Scaling,
    TokenScaling,
    class_log_odds,
    class_priors,
    token_scaling,
)

Array = NDArray[np.float64]

VALUE_C_UNIT = 16.0
"""C = 1 is this over the documents' scale, in units of logistic regression's C."""

MULTICLASS_C_UNIT = 4.0
"""The same for more than two classes, where softmax trains one vector per class."""

CLS_PENALTY = 1.0
"""Strength of the penalty on the score of ``<cls>``, which keeps it near its start."""

_LEAST_CURVATURE = 1e-3


@dataclass(frozen=True)
class Documents:
    """The documents of a fit.

    X : CSR (n_documents, n_tokens), token weights in canonical format
    codes : (n_documents,), class codes 0..K-1
    weights : (n_documents,), document weights, class weights included
    statistics : of all documents, of which these may be a part
    """

    X: Any
    codes: NDArray[np.intp]
    weights: Array
    statistics: CorpusStatistics

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.statistics.class_weights)

    @property
    def n_outputs(self) -> int:
        """1 for two classes, K for K > 2."""
        return 1 if self.n_classes == 2 else self.n_classes

    def rows(self, rows: NDArray[np.intp]) -> Documents:
        """Return some of the documents; the statistics stay those of all."""
        return replace(self, X=self.X[rows], codes=self.codes[rows], weights=self.weights[rows])

    def bag(self, dtype: type[np.floating[Any]], device: torch.device | str) -> TokenBag:
        """Return the documents as a :class:`TokenBag` in some precision on a device."""
        return TokenBag(self.X, dtype=dtype, device=device)

    def loss(
        self, bag: TokenBag, *, cls_weight: float = 0.0, reduce: Reduce | None = None
    ) -> AttentionLoss:
        """Return the sum of the documents' losses as a function of the token matrix."""
        weights = torch.from_numpy(np.array(self.weights, dtype=np.float64))
        return AttentionLoss(
            bag,
            encode_targets(self.codes, self.n_classes, bag.device),
            weights.to(bag.device),
            self.n_outputs,
            cls_weight=cls_weight,
            reduce=reduce,
        )


def fit_attention(
    documents: Documents,
    *,
    C: float,
    attention_C: float,
    attend_cls: bool = True,
    scaling: TokenScaling = "log_odds",
    max_iter: int,
    tol: float,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    start: FittedAttention | None = None,
    callback: Callback | None = None,
    solver: Solver = minimize_lbfgs,
    reduce: Reduce | None = None,
) -> FitResult:
    """Train scores, values, intercepts and the score of ``<cls>`` together.

    `C` and `attention_C` are the inverse strengths of the penalties on values, in units of
    `VALUE_C_UNIT` over the documents' scale, and on what is added to the starting scores. Training
    stops after `max_iter` steps, when the optimality gap, in nats per document, is at most `tol`,
    or when `callback`, whose criterion is the gap, returns True. `start` is a model of the same
    tokens and outputs to start from; `reduce` sums over all parts of a corpus of which these
    documents are one; settings, `dtype` and what `callback` returns must then be the same in all.
    """
    units = token_scaling(documents.statistics, scaling=scaling, attend_cls=attend_cls, dtype=dtype)
    loss = documents.loss(documents.bag(dtype, device), cls_weight=units.cls_weight, reduce=reduce)
    problem = AttentionProblem(
        loss, documents.statistics.class_weights, units, C=C, attention_C=attention_C
    )
    if start is not None:
        problem.start_from(start)
    return solve(problem, max_iter=max_iter, tol=tol, callback=callback, solver=solver)


class AttentionProblem(Objective):
    """The default training's problem: x is [u | t] over a last row (see `_core.objective`).

    `class_weights`, (n_classes,), are the summed document weights, for the intercepts' start and
    curvature; `C` and `attention_C` are those of :func:`fit_attention`. `more` are further
    functions of the token matrix that are added to `loss`. Losses are averaged over `total_weight`;
    None is that of the documents of `loss`.
    """

    refresh = None

    def __init__(
        self,
        loss: AttentionLoss,
        class_weights: Array,
        scaling: Scaling,
        *,
        C: float,
        attention_C: float,
        more: Sequence[Evaluation] = (),
        total_weight: float | None = None,
    ) -> None:
        device, dtype = loss.bag.device, loss.bag.dtype
        two_classes = len(class_weights) == 2
        total = loss.total_weight if total_weight is None else total_weight
        unit = VALUE_C_UNIT if two_classes else MULTICLASS_C_UNIT
        score_penalty = 1.0 / (total * attention_C)
        value_penalty = scaling.document_scale / (total * C * unit)
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
                Block(values, value_penalty, value_penalty),
                Block((-1, 0), CLS_PENALTY, CLS_PENALTY),
                Block((-1, slice(1, None)), 0.0, self._label_variance),
            ],
            total,
        )
        self.loss = loss
        self.start = loss.zeros()
        self.start[-1, 1:] = torch.from_numpy(class_log_odds(class_weights)).to(device, dtype)

    def start_from(self, model: FittedAttention) -> None:
        """Start from a model of the same tokens and outputs."""
        matrix = torch.from_numpy(model.token_matrix()).to(self.start)
        if self.loss.cls_weight and model.cls_weight:
            matrix[-1, 0] += float(np.log(model.cls_weight / self.loss.cls_weight))
        self.start = self.units.inverse(matrix)

    def curvature(self) -> torch.Tensor:
        """Return the diagonal of the Hessian by u, t and the last row where these are 0."""
        squares = self.loss.squared_attention(self.units.starting_scores).div_(self.total_weight)
        scores, values, cls, intercepts = self.blocks
        curvature = self.loss.zeros()
        by_value = curvature[values.index]
        torch.mul(self.units.value_scales.square(), squares[:, None], out=by_value)
        by_value *= self._label_variance.to(curvature.dtype)
        by_value += values.penalty
        curvature[scores.index] = scores.penalty
        curvature[cls.index] = cls.penalty
        curvature[intercepts.index] = self._label_variance.to(curvature.dtype)
        return curvature

    def inverse_curvature(self, x: torch.Tensor) -> Multiply:
        """Return the product with the inverse of :meth:`curvature`, the same for all x."""
        inverse = self.curvature().reciprocal_()
        return lambda tensor: tensor * inverse

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model at a point."""
        return fitted_attention(self.token_map.matrix(x), self.loss.cls_weight)


def fitted_attention(
    matrix: torch.Tensor, cls_weight: float, embeddings: Any = None
) -> FittedAttention:
    """Return the model of a token matrix as NumPy arrays in float64."""
    array = np.array(matrix.to("cpu", torch.float64).numpy())
    return FittedAttention(
        scores=array[:-1, 0].copy(),
        values=array[:-1, 1:].copy(),
        intercept=array[-1, 1:].copy(),
        cls_weight=cls_weight,
        cls_score=float(array[-1, 0]) if cls_weight else -np.inf,
        embeddings=embeddings,
    )
