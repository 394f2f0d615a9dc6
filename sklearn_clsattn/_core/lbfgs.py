"""Preconditioned L-BFGS on PyTorch tensors.

It is not SciPy's, which takes no curvature to start from and no stopping rule such as a duality
gap, keeps no pairs from one fit for the next, and works on NumPy arrays alone.

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
from typing import Any

import torch

Evaluation = Callable[[torch.Tensor], tuple[float, torch.Tensor]]
"""Maps a point to the function's value and a new gradient tensor of its shape."""

Multiply = Callable[[torch.Tensor], torch.Tensor]
"""Multiplies a tensor by a symmetric positive definite matrix; returns a new tensor."""

Pair = tuple[torch.Tensor, torch.Tensor, float]
Pairs = deque[Pair]
"""Steps with the changes of the gradient along them and the products of both, the newest last."""

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_MAX_TRIALS = 25
_PAIR_ENTRIES = 4_000_000


@dataclass
class Iterate:
    """One accepted point: its number, 0 at the start, the point, the value and the gradient there.

    The gradient's memory is used again for the next iterate.
    """

    n_iter: int
    x: torch.Tensor
    value: float
    gradient: torch.Tensor


@dataclass
class Minimum:
    """How a minimisation ended.

    x, gradient : the last accepted point and the gradient there
    values : the function's values at the start and after each accepted step
    n_iter : accepted steps
    status : "converged" (`is_converged` returned True), "max_iter", or "no_progress": no step
        lowers the value, as at the limit of precision
    """

    x: torch.Tensor
    gradient: torch.Tensor
    values: list[float]
    n_iter: int = 0
    status: str = "max_iter"

    @property
    def value(self) -> float:
        """The function's value at `x`."""
        return self.values[-1]


def minimize_lbfgs(
    function: Evaluation,
    start: torch.Tensor,
    *,
    is_converged: Callable[[Iterate], bool],
    max_iter: int,
    inverse_curvature: Multiply | None = None,
    memory: int | None = None,
    pairs: Pairs | None = None,
) -> Minimum:
    """Minimise a smooth function from `start`, which is not changed, in at most `max_iter` steps.

    `is_converged` is called with every iterate, the start included; True ends the minimisation.
    `inverse_curvature` multiplies by an approximate inverse Hessian. `memory` is the number of
    curvature pairs, each two tensors of the size of `start`; None is 10, and down to 3 where there
    are many parameters: with many classes and rare tokens more pairs would need more memory than
    the documents, and hardly save iterations. `pairs` are those to start with, and end as the last
    ones.
    """
    if memory is None:
        memory = min(10, max(3, _PAIR_ENTRIES // max(start.numel(), 1)))
    precondition = inverse_curvature or torch.clone
    x = start
    value, gradient = function(x)
    result = Minimum(x, gradient, [value])
    pairs = deque() if pairs is None else pairs
    scale = _scale(pairs[-1], precondition) if pairs else 1.0
    while True:
        result.x, result.gradient = x, gradient
        if is_converged(Iterate(result.n_iter, x, value, gradient)):
            result.status = "converged"
            return result
        if result.n_iter >= max_iter:
            return result
        direction = _direction(gradient, pairs, precondition, scale)
        slope = _dot(gradient, direction)
        if len(pairs) == memory:
            pairs.popleft()  # frees memory for the next pair
        step = _weak_wolfe_step(function, x, value, direction, slope)
        if step is None and pairs:
            # Rounding can spoil the curvature pairs: drop them before giving up.
            pairs.clear()
            direction = _direction(gradient, pairs, precondition, scale)
            slope = _dot(gradient, direction)
            step = _weak_wolfe_step(function, x, value, direction, slope)
        if step is None:
            result.status = "no_progress"
            return result
        change = direction.mul_(step.length)
        gradient_change = torch.sub(step.gradient, gradient, out=gradient)  # in its memory
        curvature = _dot(change, gradient_change)
        new_scale = _scale((change, gradient_change, curvature), precondition)
        if new_scale > 0:
            pairs.append((change, gradient_change, curvature))
            scale = new_scale
        x, value, gradient = step.x, step.value, step.gradient
        del step  # and with it its gradient, before the next one is made
        result.n_iter += 1
        result.values.append(value)


def add_curvature(pairs: Pairs, index: Any, curvature: float) -> None:
    """Change pairs to those of the function with ``curvature / 2 * |x[index]|^2`` added."""
    for change, gradient_change, _ in list(pairs):
        pairs.popleft()
        gradient_change[index].add_(change[index], alpha=curvature)
        product = _dot(change, gradient_change)
        if product > 0:
            pairs.append((change, gradient_change, product))


def _scale(pair: Pair, precondition: Multiply) -> float:
    """Return the factor that gives a preconditioner the curvature of a pair, 0 if there is none."""
    _, gradient_change, curvature = pair
    norm = _dot(gradient_change, precondition(gradient_change))
    return curvature / norm if curvature > 0 and norm > 0 and math.isfinite(norm) else 0.0


def _direction(
    gradient: torch.Tensor,
    pairs: Pairs,
    precondition: Multiply,
    scale: float,
) -> torch.Tensor:
    """Return minus the approximate inverse Hessian times the gradient (two-loop recursion)."""
    direction = gradient.neg()
    coefficients = []
    for change, gradient_change, curvature in reversed(pairs):
        coefficient = _scalar(_product(change, direction)) / curvature
        _add(direction, gradient_change, -coefficient)
        coefficients.append(coefficient)
    direction = precondition(direction).mul_(scale)
    for (change, gradient_change, curvature), coefficient in zip(
        pairs, reversed(coefficients), strict=True
    ):
        correction = coefficient - _scalar(_product(gradient_change, direction)) / curvature
        _add(direction, change, correction)
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
    if not slope < 0:
        return None
    low, high, length = 0.0, math.inf, 1.0
    best: _Step | None = None
    for _ in range(_MAX_TRIALS):
        point = torch.add(x, direction, alpha=length)
        new_value, gradient = function(point)
        enough = value + _SUFFICIENT_DECREASE * length * slope
        if not (new_value <= enough and new_value < value):  # NaN counts as too far
            del gradient  # frees memory for the next trial's
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
    return float(_product(a, b))


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the dot product as a tensor of one number, on the device of both."""
    return torch.dot(a.reshape(-1), b.reshape(-1))


def _scalar(product: torch.Tensor) -> Any:
    """Return a float on the CPU; on another device the tensor, as fetching it would take longer."""
    return float(product) if product.device.type == "cpu" else product


def _add(vector: torch.Tensor, other: torch.Tensor, factor: Any) -> None:
    """Add a multiple, by a float or a tensor of one number, in place."""
    if isinstance(factor, float):
        vector.add_(other, alpha=factor)
    else:
        vector.addcmul_(other, factor)
