"""Fits of the same documents for several C, each from the last one's result."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from .attention_problem import VALUES, AttentionProblem
from .bag import TokenBag
from .documents import Documents
from .fitted import FittedAttention
from .prior_mean import PriorMean, prior_mean
from .problem import Callback, FitResult, solve
from .solvers.base import Solver, SolverResult
from .solvers.lbfgs import Pairs, add_curvature, minimize_lbfgs
from .statistics import TokenScaling, token_scaling


class AttentionPath:
    """The default training's problem of some documents, for one C after another.

    `bag` holds all of `documents`, of which those of weight 0 are neither in statistics nor in
    losses. The other parameters are those of :func:`~.fit.fit_attention`. `mean` is the prior mean
    of the values, before the first fit that for C = 1. With the package's solver (None), what a fit
    learns of the curvature, and the gradient it ends with, serve the next as well.
    """

    def __init__(
        self,
        documents: Documents,
        bag: TokenBag,
        *,
        attention_C: float,
        attend_cls: bool = True,
        scaling: TokenScaling = "log_odds",
        solver: Solver | None = None,
    ) -> None:
        dtype = np.float32 if bag.dtype == torch.float32 else np.float64
        units = token_scaling(
            documents.statistics, scaling=scaling, attend_cls=attend_cls, dtype=dtype
        )
        loss = documents.loss(bag, cls_weight=units.cls_weight)
        self.mean: PriorMean | None = prior_mean(documents, loss, units)
        self._make_problem = partial(
            AttentionProblem,
            loss,
            documents.statistics.class_weights,
            replace(units, totals=None),
            C=1.0,
            attention_C=attention_C,
            mean=self.mean,
        )
        self._problem: AttentionProblem | None = None
        self._mean_C = 1.0
        self._last_C = np.inf
        self._solver = solver
        self._pairs = Pairs()
        self._reached: SolverResult | None = None

    @property
    def problem(self) -> AttentionProblem:
        """The problem, made when first needed: until then others may need the memory."""
        if self._problem is None:
            self._problem = self._make_problem()
        return self._problem

    def start_from(self, model: FittedAttention, C: float) -> None:
        """Start the next fit, for this C, from a model of the same tokens and outputs."""
        self.set_C(C).start_from(model)
        self._last_C = 0.0

    @property
    def point(self) -> torch.Tensor:
        """Where the next fit starts: the trained numbers of the last."""
        return self.problem.start

    def start_at(self, point: torch.Tensor) -> None:
        """Start the next fit from trained numbers."""
        self.problem.start = point
        self._last_C = 0.0

    def set_C(self, C: float) -> AttentionProblem:
        """Return the problem with the penalty on the values, and their prior mean, for this C."""
        problem = self.problem
        weakness = min(C, 1.0)
        if problem.mean is not None and weakness != self._mean_C:
            problem.mean = self.mean = problem.mean.at(C)
            self._mean_C, self._reached = weakness, None
        problem.set_C(C)
        return problem

    def fit(
        self, C: float, *, max_iter: int, tol: float, callback: Callback | None = None
    ) -> FitResult:
        """Fit for a C, from the last result if that had a smaller one.

        From a larger one training would stop too soon: stronger penalties make for smaller gaps.
        """
        before = self.problem.blocks[VALUES].penalty
        problem = self.set_C(C)
        if self._last_C > C:
            problem.start = problem.cold_start()
            self._pairs.clear()
        values = problem.blocks[VALUES]
        stiffer = values.penalty - before
        add_curvature(self._pairs, values.index, stiffer)
        minimize = self._solver or partial(minimize_lbfgs, pairs=self._pairs)

        if self._reached is not None and self._reached.gradient is not None:
            # Where the last fit ended, C changes the penalty alone.
            trained = self._reached.x[values.index]
            self._reached.gradient[values.index].add_(trained, alpha=stiffer)
            square = float(trained.square().sum(dtype=torch.float64))
            self._reached.values.append(self._reached.value + 0.5 * stiffer * square)

        def evaluate(x: torch.Tensor) -> tuple[float, torch.Tensor]:
            last, self._reached = self._reached, None
            if last is None or last.x is not x or last.gradient is None:
                return problem(x)
            return last.value, last.gradient

        def solver(*arguments: Any, **options: Any) -> SolverResult:
            self._reached = found = minimize(evaluate, *arguments[1:], **options)
            problem.start = found.x
            return found

        result = solve(problem, max_iter=max_iter, tol=tol, callback=callback, solver=solver)
        self._last_C = C
        return result
