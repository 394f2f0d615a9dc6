"""Preconditioned L-BFGS on PyTorch tensors. It knows nothing of attention.

The two-loop recursion (Nocedal & Wright, *Numerical Optimization*, algorithm 7.4) starts from
a diagonal inverse Hessian that the caller gives, rescaled at every step by the newest
curvature pair. Steps satisfy the weak Wolfe conditions, so every pair has positive curvature.
Nothing is random: the same function and start give the same iterates.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

Function = Callable[[torch.Tensor], tuple[float, torch.Tensor]]
"""Maps parameters to the value and a new gradient tensor."""

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25


@dataclass
class Iterate:
    """One accepted point of the minimisation.

    Attributes
    ----------
    n_iter : int
        Number of accepted steps so far, 0 at the start.

    x, gradient : torch.Tensor of the same shape
        The point and the gradient there. Read them at once: their memory is used again.

    value : float
        The function's value there.
    """

    n_iter: int
    x: torch.Tensor
    value: float
    gradient: torch.Tensor


@dataclass
class Result:
    """How a minimisation ended.

    Attributes
    ----------
    x : torch.Tensor
        The last accepted point.

    value : float
        The function's value there.

    values : list of float
        The values at the start and after each accepted step.

    n_iter, n_evaluations : int
        Accepted steps; evaluations of the function, line searches included.

    status : {"converged", "max_iter", "no_progress"}
        "converged": the caller's test was met. "no_progress": no step along the steepest
        preconditioned descent direction lowers the value, as when rounding is reached.
    """

    x: torch.Tensor
    value: float
    values: list[float] = field(default_factory=list)
    n_iter: int = 0
    n_evaluations: int = 0
    status: str = "max_iter"


def minimize_lbfgs(
    function: Function,
    start: torch.Tensor,
    *,
    is_converged: Callable[[Iterate], bool],
    max_iter: int,
    memory: int = 10,
    inverse_hessian_diagonal: torch.Tensor | None = None,
    precondition: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> Result:
    """Minimise a smooth function by preconditioned L-BFGS.

    Parameters
    ----------
    function : callable
        ``function(x)`` returns the value (float) and a new gradient tensor shaped as `x`.

    start : torch.Tensor
        Where to start, of any shape. It is not changed.

    is_converged : callable
        Called with every :class:`Iterate`, the start included; True ends the minimisation.

    max_iter : int
        At most this many accepted steps.

    memory : int, default=10
        How many curvature pairs are kept; each costs two tensors of the size of `start`.

    inverse_hessian_diagonal : torch.Tensor, default=None
        Positive, broadcastable to the shape of `start`: where the inverse Hessian starts from.

    precondition : callable, default=None
        In place of a diagonal: multiplies a tensor shaped as `start` by the symmetric positive
        definite matrix that the inverse Hessian starts from, and returns a new tensor.

    Returns
    -------
    Result
    """
    result = Result(start, math.nan)

    def evaluate(point: torch.Tensor) -> tuple[float, torch.Tensor]:
        result.n_evaluations += 1
        return function(point)

    x = start
    value, gradient = evaluate(x)
    result.values.append(value)
    pairs: deque[tuple[torch.Tensor, torch.Tensor, float]] = deque()
    precondition = precondition or _Preconditioner(inverse_hessian_diagonal)
    scale = 1.0
    while True:
        result.x, result.value = x, value
        if is_converged(Iterate(result.n_iter, x, value, gradient)):
            result.status = "converged"
            return result
        if result.n_iter >= max_iter:
            result.status = "max_iter"
            return result
        direction = _direction(gradient, pairs, precondition, scale)
        slope = _dot(gradient, direction)
        if len(pairs) == memory:
            pairs.popleft()  # the pair to come needs its place
        step = _weak_wolfe_step(evaluate, x, value, direction, slope) if slope < 0 else None
        if step is None and pairs:
            # Rounding can spoil the memory: start it afresh before giving up.
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


class _Preconditioner:
    """Multiplies by the inverse Hessian's starting diagonal; always returns a new tensor."""

    def __init__(self, diagonal: torch.Tensor | None) -> None:
        self._diagonal = diagonal

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone() if self._diagonal is None else tensor * self._diagonal


def _direction(
    gradient: torch.Tensor,
    pairs: deque[tuple[torch.Tensor, torch.Tensor, float]],
    precondition: Callable[[torch.Tensor], torch.Tensor],
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
    function: Function,
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
