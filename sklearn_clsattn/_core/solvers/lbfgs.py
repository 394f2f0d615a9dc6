"""Preconditioned L-BFGS on PyTorch tensors. It does not depend on the model.

The two-loop recursion (Nocedal & Wright, *Numerical Optimization*, algorithm 7.4) starts from
an approximate inverse Hessian that the caller gives, rescaled at every step by the newest
curvature pair. Steps satisfy the weak Wolfe conditions, so every pair has positive curvature.
Nothing is random: the same function and start give the same iterates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .base import Evaluation, Iterate, Multiply, SolverResult

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25
_PAIR_ENTRIES = 4_000_000


def minimize_lbfgs(
    function: Evaluation,
    start: torch.Tensor,
    *,
    is_converged: Callable[[Iterate], bool],
    max_iter: int,
    inverse_curvature: Multiply | None = None,
    memory: int | None = None,
) -> SolverResult:
    """Minimise a smooth function by preconditioned L-BFGS.

    A :class:`~sklearn_clsattn._core.solvers.base.Solver`. `memory` is the number of curvature
    pairs, each two tensors of the size of `start`. None is 10, and down to 3 where there are many
    parameters: with many classes and rare tokens more pairs would need more memory than the
    documents, and hardly save iterations.
    """
    if memory is None:
        memory = min(10, max(3, _PAIR_ENTRIES // max(start.numel(), 1)))
    result = SolverResult(start, [])
    precondition = inverse_curvature or torch.clone

    def evaluate(point: torch.Tensor) -> tuple[float, torch.Tensor]:
        result.n_evaluations += 1
        return function(point)

    x = start
    value, gradient = evaluate(x)
    result.values.append(value)
    pairs: deque[tuple[torch.Tensor, torch.Tensor, float]] = deque()
    scale = 1.0
    while True:
        result.x = x
        if is_converged(Iterate(result.n_iter, x, value, gradient)):
            result.status = "converged"
            return result
        if result.n_iter >= max_iter:
            result.status = "max_iter"
            return result
        direction = _direction(gradient, pairs, precondition, scale)
        slope = _dot(gradient, direction)
        if len(pairs) == memory:
            pairs.popleft()  # frees memory for the next pair
        step = _weak_wolfe_step(evaluate, x, value, direction, slope) if slope < 0 else None
        if step is None and pairs:
            # Rounding can spoil the curvature pairs: drop them before giving up.
            pairs.clear()
            direction = _direction(gradient, pairs, precondition, scale)
            slope = _dot(gradient, direction)
            step = _weak_wolfe_step(evaluate, x, value, direction, slope) if slope < 0 else None
        if step is None:
            result.status = "no_progress"
            return result
        change = direction.mul_(step.length)
        gradient_change = torch.sub(step.gradient, gradient, out=gradient)  # in its memory
        curvature = _dot(change, gradient_change)
        norm = _dot(gradient_change, precondition(gradient_change))
        if curvature > 0 and norm > 0 and math.isfinite(norm):
            pairs.append((change, gradient_change, curvature))
            scale = curvature / norm
        x, value, gradient = step.x, step.value, step.gradient
        result.n_iter += 1
        result.values.append(value)


def _direction(
    gradient: torch.Tensor,
    pairs: deque[tuple[torch.Tensor, torch.Tensor, float]],
    precondition: Multiply,
    scale: float,
) -> torch.Tensor:
    """Return minus the approximate inverse Hessian times the gradient (two-loop recursion)."""
    direction = gradient.neg()
    coefficients = []
    for change, gradient_change, curvature in reversed(pairs):
        coefficient = _dot(change, direction) / curvature
        direction.sub_(gradient_change, alpha=coefficient)
        coefficients.append(coefficient)
    direction = precondition(direction).mul_(scale)
    for (change, gradient_change, curvature), coefficient in zip(
        pairs, reversed(coefficients), strict=True
    ):
        correction = coefficient - _dot(gradient_change, direction) / curvature
        direction.add_(change, alpha=correction)
    return direction


@dataclass
class _Step:
    length: float
    x: torch.Tensor
    value: float
    gradient: torch.Tensor


def _weak_wolfe_step(
    function: Evaluation,
    x: torch.Tensor,
    value: float,
    direction: torch.Tensor,
    slope: float,
) -> _Step | None:
    """Return a step that satisfies the weak Wolfe conditions, the full one where it does.

    Brackets by steps of four times the last and shrinks by safeguarded quadratic
    interpolation (Lewis & Overton, 2013). None where no step lowers the value.
    """
    low, high, length = 0.0, math.inf, 1.0
    best: _Step | None = None
    for _ in range(_MAX_TRIALS):
        point = torch.add(x, direction, alpha=length)
        new_value, gradient = function(point)
        enough = value + _SUFFICIENT_DECREASE * length * slope
        if not (new_value <= enough and new_value < value):  # NaN counts as too far
            high = length
            length = _interpolate(low, high, value, slope, new_value, length)
        else:
            new_slope = _dot(gradient, direction)
            best = _Step(length, point, new_value, gradient)
            if new_slope >= _CURVATURE * slope:
                return best
            low = length
            length = 0.5 * (low + high) if math.isfinite(high) else 4.0 * length
    return best


def _interpolate(
    low: float, high: float, value: float, slope: float, new_value: float, length: float
) -> float:
    """Return the minimiser of the parabola through the start and the failed trial, kept inside."""
    drop = new_value - value - slope * length
    guess = -0.5 * slope * length**2 / drop if math.isfinite(drop) and drop > 0 else -math.inf
    width = high - low
    return min(max(guess, low + 0.1 * width), low + 0.5 * width)


def _dot(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.dot(a.reshape(-1), b.reshape(-1)))
