r"""The penalised mean loss that training minimises, its curvature, its gap and its minimum.

With the loss of :mod:`.loss`, what is trained are numbers x = [u | t] of the token matrix's
shape, from which M(x) has :math:`a_s = \pi_s + u_s` and :math:`b_{sk} = \sigma_{sk} t_{sk}`, with
starting scores :math:`\pi` and value scales :math:`\sigma` that put t on the scale of logistic
regression's coefficients, and M's last row is that of x. Where tokens have vectors, x has a row for
each of their components before its last (:mod:`.vector_values`). Blocks of x are penalised by the
terms of ``docs/mathematics.md``.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .earlier_batches import Memory
from .fitted_model import FitResult, FittedAttention, OnIteration
from .lbfgs import Iterate, Multiply, Pairs, minimize_lbfgs
from .loss import FEW_COLUMNS, AttentionLoss
from .prior_mean import PriorMean
from .products import floats, to_array
from .statistics import CorpusStatistics, Scaling
from .vector_values import VectorValues

CLS_PENALTY = 1.0
"""Strength of the penalty on the score of ``<cls>``, which keeps it near its start."""

SCORES = slice(None, -1), 0
VALUES = slice(None, -1), slice(1, None)
CLS_SCORE = -1, 0
INTERCEPTS = -1, slice(1, None)

_LEAST_CURVATURE = 1e-3


@dataclass
class Block:
    """Some of the trained numbers, with a penalty of their own.

    index : selects them
    penalty : strength lambda of their penalty ``lambda / 2 * ||x||^2``
    curvature : of the objective along them, for the optimality gap; broadcastable to the numbers
    """

    index: Any
    penalty: float
    curvature: float | torch.Tensor


class RememberedLoss:
    """The expansion of the losses of earlier documents, as a function of the token matrix.

    Of `loss`, that of the new documents, only the weight of ``<cls>`` and the device are used.
    `center` and `curvature`, (n_tokens + 1, 1 + n_outputs), are the token matrix expanded around
    and the diagonal curvature there.
    """

    def __init__(self, memory: Memory, loss: AttentionLoss) -> None:
        self.center = torch.from_numpy(memory.center).to(loss.device, copy=True)
        if loss.cls_weight:
            self.center[-1, 0] -= float(np.log(loss.cls_weight))
        self._loss = memory.loss
        self._gradient = torch.from_numpy(memory.gradient).to(loss.device)
        self.curvature = torch.from_numpy(memory.curvature).to(loss.device)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the expanded losses and its gradient."""
        step = matrix - self.center
        change = self.curvature * step
        terms = (self._gradient + 0.5 * change) * step
        loss = self._loss + float(terms.sum())
        return loss, change.add_(self._gradient)


class AttentionObjective:
    """The penalised mean loss that training minimises, as a function of x (see the module).

    `loss` is that of the documents, whose `statistics` give the intercepts' start and curvature;
    `C` and `attention_C` are those of :func:`~.fit.fit_attention`. The values' prior mean `mean`,
    None for 0, is no part of the token matrix, but of `loss` and of the model. `remembered` is the
    expanded loss of earlier documents, if there were any. Losses are averaged over `total_weight`;
    None is that of `loss`. `vector_values` is what values get from vectors of tokens, None without.
    """

    refresh: int | None = 10  # steps after which the inverse curvature is computed again

    def __init__(
        self,
        loss: AttentionLoss,
        statistics: CorpusStatistics,
        scaling: Scaling,
        *,
        C: float,
        attention_C: float,
        mean: PriorMean | None = None,
        remembered: RememberedLoss | None = None,
        total_weight: float | None = None,
        vector_values: VectorValues | None = None,
    ) -> None:
        device = loss.device
        dtype = loss.dtype
        # 1) the loss and its units
        self.loss = loss
        self.remembered = remembered
        self.mean = mean
        self.vector_values = vector_values
        self.total_weight = loss.total_weight if total_weight is None else total_weight
        self.starting_scores = torch.from_numpy(scaling.starting_scores).to(device, dtype)
        self.value_scales = torch.from_numpy(scaling.value_scales).to(device, dtype)
        self._C_unit = scaling.C_unit
        n_tokens, n_outputs = scaling.value_scales.shape
        # Fresh memory would cost a tenth of an evaluation.
        self._matrix = torch.zeros((n_tokens + 1, 1 + n_outputs), dtype=dtype, device=device)
        log_odds = statistics.class_log_odds
        self._class_log_odds = torch.from_numpy(log_odds).to(device, dtype)
        # 2) the blocks of x; an intercept has the curvature before training
        priors = statistics.priors[-len(log_odds) :]
        variance = np.maximum(priors * (1 - priors), _LEAST_CURVATURE)
        variance *= loss.total_weight / self.total_weight
        self.scores = Block(SCORES, 0.0, 0.0)
        self.values = Block(VALUES, 0.0, 0.0)
        self.cls_score = Block(CLS_SCORE, CLS_PENALTY, CLS_PENALTY)
        self.intercepts = Block(INTERCEPTS, 0.0, torch.from_numpy(variance).to(device))
        self.blocks = [self.scores, self.values, self.cls_score, self.intercepts]
        self.set_C(C)
        self.set_attention_C(attention_C)
        self.start = self.cold_start()
        # 3) the start and the curvature that earlier documents give
        self._remembered_curvature: torch.Tensor | None = None
        if remembered is not None:
            self.start = self.inverse(remembered.center)
            curvature = remembered.curvature / self.total_weight
            curvature[VALUES] *= self.value_scales.square()
            self._remembered_curvature = curvature
            for block in self.blocks:
                block.curvature = curvature[block.index] + block.curvature

    def cold_start(self) -> torch.Tensor:
        """Return the default start: 0, but for the intercepts, which are the classes' log-odds."""
        start = self._numbers()
        start[INTERCEPTS] = self._class_log_odds
        return start

    def _numbers(self) -> torch.Tensor:
        """Return zeros in the shape of x."""
        n_rows, n_columns = self._matrix.shape
        if self.vector_values is not None:
            n_rows += self.vector_values.dimension
        return self._matrix.new_zeros((n_rows, n_columns))

    def set_C(self, C: float) -> None:
        """Change the penalty on the values."""
        self.values.penalty = 1.0 / (self.total_weight * C * self._C_unit)
        self.values.curvature = self.values.penalty

    def set_attention_C(self, attention_C: float) -> None:
        """Change the penalty on the scores."""
        self.scores.penalty = 1.0 / (self.total_weight * attention_C)
        self.scores.curvature = self.scores.penalty

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """Return the token matrix M(x), valid until the next call."""
        matrix = self._matrix
        n_tokens = len(matrix) - 1
        torch.add(self.starting_scores, x[:n_tokens, 0], out=matrix[SCORES])
        torch.mul(self.value_scales, x[:n_tokens, 1:], out=matrix[VALUES])
        if self.vector_values is not None:
            self.vector_values.add_to(matrix[VALUES], x[n_tokens:-1, 1:])
        matrix[-1] = x[-1]
        return matrix

    def inverse(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the x that makes a token matrix; 0 for values whose scale is 0, and for w."""
        x = self._numbers()
        n_tokens = len(matrix) - 1
        torch.sub(matrix[SCORES], self.starting_scores, out=x[:n_tokens, 0])
        quotients = matrix[VALUES] / self.value_scales
        x[:n_tokens, 1:] = torch.where(self.value_scales > 0, quotients, 0.0)
        x[-1] = matrix[-1]
        return x

    def __call__(self, x: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the penalised mean loss and its gradient, shaped as x."""
        # 1) the mean loss of earlier and new documents, by the token matrix
        matrix = self.matrix(x)
        loss, by_matrix = self.loss(matrix)
        if self.remembered is not None:
            earlier_loss, earlier_gradient = self.remembered(matrix)
            loss += earlier_loss
            by_matrix += earlier_gradient
        by_matrix /= self.total_weight
        # 2) its gradient by x
        gradient = self._by_numbers(by_matrix)
        # 3) the penalties
        for block in self.blocks:
            if block.penalty:
                gradient[block.index].add_(x[block.index], alpha=block.penalty)
        mean_loss = loss / self.total_weight
        return mean_loss + self.penalty(x), gradient

    def _by_numbers(self, by_matrix: torch.Tensor) -> torch.Tensor:
        """Return the gradient by x, given that by the token matrix, whose memory is used again."""
        if self.vector_values is None:
            by_matrix[VALUES] *= self.value_scales
            return by_matrix
        gradient = self._numbers()
        n_tokens = len(by_matrix) - 1
        gradient[n_tokens:-1, 1:] = self.vector_values.gradient(by_matrix[VALUES])
        by_matrix[VALUES] *= self.value_scales
        gradient[:n_tokens] = by_matrix[:-1]
        gradient[-1] = by_matrix[-1]
        return gradient

    def penalty(self, x: torch.Tensor) -> float:
        """Return the sum of the penalties."""
        blocks = [block for block in self.blocks if block.penalty]
        squares = floats(*[_square(x[block.index]) for block in blocks])
        penalties = []
        for block, square in zip(blocks, squares, strict=True):
            penalties.append(block.penalty * square)
        return 0.5 * math.fsum(penalties)

    def gap(self, gradient: torch.Tensor) -> float:
        r"""Estimate how far the objective is above a stationary one, in nats per document.

        The sum over blocks of ``|gradient|^2 / (2 curvature)``. For values with a penalty
        :math:`\frac{\lambda}{2} \|t\|^2` and the attention held fixed it is a duality gap:
        with the dual variables :math:`-\partial \ell / \partial F`, primal minus dual of the
        convex problem that remains is :math:`\|\nabla_t L\|^2 / (2 \lambda)`, so that at the
        attention reached no values give an objective lower by more than that. For the other
        blocks it estimates what one more step could gain.
        """
        squares = [_square(gradient[block.index], block.curvature) for block in self.blocks]
        return 0.5 * math.fsum(floats(*squares))

    def curvature(self, x: torch.Tensor) -> torch.Tensor:
        """Return the Hessian's diagonal by t and intercepts, and the penalties by scores."""
        by_matrix = self.loss.curvature(self.matrix(x)).div_(self.total_weight)
        by_value = by_matrix[:-1]
        by_intercept = by_matrix[-1]
        n_tokens = len(by_value)
        curvature = torch.empty_like(x)
        # 1) the mean loss
        by_value *= self.value_scales.square()
        curvature[:n_tokens, 1:] = by_value
        if self.vector_values is not None:
            curvature[n_tokens:-1, 1:] = self.vector_values.curvature(by_intercept)
        curvature[INTERCEPTS] = by_intercept
        # 2) the penalties
        curvature[VALUES] += self.values.penalty
        curvature[SCORES] = self.scores.penalty
        curvature[CLS_SCORE] = self.cls_score.penalty
        # 3) the losses of earlier documents
        if self._remembered_curvature is not None:
            curvature += self._remembered_curvature
        return curvature

    def inverse_curvature(self, x: torch.Tensor) -> Multiply:
        """Return the product with the inverse of :meth:`curvature` at x."""
        inverse = self.curvature(x).reciprocal_()
        return lambda tensor: tensor * inverse

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model at a point."""
        matrix = self.matrix(x)
        cls_weight = self.loss.cls_weight
        model = FittedAttention(
            scores=to_array(matrix[SCORES]),
            values=to_array(matrix[VALUES]),
            intercept=to_array(matrix[INTERCEPTS]),
            cls_weight=cls_weight,
            cls_score=float(matrix[CLS_SCORE]) if cls_weight else -np.inf,
        )
        return model if self.mean is None else self.mean.added_to(model)


def _square(part: torch.Tensor, divisor: float | torch.Tensor = 1.0) -> torch.Tensor:
    """Return ``(part^2 / divisor).sum()``, as a float64 tensor of one number."""
    if isinstance(divisor, torch.Tensor):
        quotients = part.to(torch.float64).square() / divisor
        return quotients.sum()
    if part.ndim == 2 and part.shape[1] > FEW_COLUMNS:
        # Sums over a row are short enough for single precision.
        norms = torch.linalg.vector_norm(part, dim=1).to(torch.float64)
    else:
        # Column by column: the norm of a whole matrix would copy it to float64.
        columns = [part] if part.ndim < 2 else part.unbind(dim=1)
        norms = torch.stack([torch.linalg.vector_norm(c, dtype=torch.float64) for c in columns])
    return norms.square().sum() / divisor


def solve(
    objective: AttentionObjective,
    *,
    max_iter: int,
    tol: float,
    on_iteration: OnIteration | None = None,
    pairs: Pairs | None = None,
    reached: Iterate | None = None,
) -> tuple[FitResult, Iterate]:
    """Minimise until the optimality gap, in nats per document, is at most `tol`.

    At most `max_iter` steps are made; `on_iteration` gets the gap. `pairs` are the curvature pairs
    to start with; `reached` is the last iterate of an earlier call, whose value and gradient are
    the start's.
    """
    if reached is None:
        x = objective.start
        reached = Iterate(x, *objective(x))
    n_done = 0
    curve: list[float] = []
    gap = math.inf

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap
        gap = objective.gap(iterate.gradient)
        if not (curve and iterate.n_iter == 0):  # a restart begins at a recorded point
            curve.append(iterate.value)
            if on_iteration is not None:
                on_iteration(n_done + iterate.n_iter, iterate.value, gap)
        return gap <= tol

    while True:
        # 1) some steps with the curvature where they begin
        n_left = max_iter - n_done
        leg = minimize_lbfgs(
            objective,
            reached,
            is_converged=is_converged,
            max_iter=min(objective.refresh or n_left, n_left),
            inverse_curvature=objective.inverse_curvature(reached.x),
            pairs=pairs,
        )
        # 2) the end, or the start of the next ones
        reached = leg
        n_done += leg.n_iter
        is_refreshed = objective.refresh is not None and leg.n_iter > 0
        if leg.status == "converged" or n_done >= max_iter or not is_refreshed:
            break
    result = FitResult(
        model=objective.model(leg.x),
        loss_curve=curve,
        n_iter=n_done,
        attributes={"optimality_gap_": gap},
        convergence_message=_not_converged(leg.status, n_done, gap, tol),
    )
    return result, leg


def _not_converged(status: str, n_iter: int, gap: float, tol: float) -> str:
    """Return the warning about the result of a minimisation, "" if none."""
    if status == "max_iter":
        return (
            f"Training stopped at max_iter={n_iter} with an optimality gap of {gap:.1e} > "
            f"tol={tol:.1e}: values, and perhaps scores, could still lower the penalised mean log "
            "loss by about that much. Increase max_iter, or lower C or attention_C (stronger "
            "penalties converge sooner), or raise tol."
        )
    if status == "no_progress":
        return (
            "Training cannot lower the loss any further in this precision, with an optimality gap "
            f"of {gap:.1e} > tol={tol:.1e}. Raise tol, or pass X as float64 if it is float32 or "
            "integer."
        )
    return ""
