"""Preconditioned L-BFGS on PyTorch tensors.

It is not SciPy's, which takes no curvature to start from and no stopping rule such as a duality
gap, keeps no pairs from one fit for the next, and works on NumPy arrays alone.

The two-loop recursion (Nocedal & Wright, *Numerical Optimization*, algorithm 7.4) starts from
an approximate inverse Hessian that the caller gives, rescaled at every step by the newest
curvature pair. Steps satisfy the weak Wolfe conditions, so every pair has positive curvature.
Nothing is random: the same function and start give the same iterates.
"""

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
    """An accepted point of a minimisation.

    x, value, gradient : the point, the function's value there and its gradient, in memory that the
        next iterate uses again
    n_iter : accepted steps so far
    status : how the minimisation ended: "converged" (`is_converged` returned True), "max_iter", or
        "no_progress": no step lowers the value, as at the limit of precision
    """

    x: torch.Tensor
    value: float
    gradient: torch.Tensor
    n_iter: int = 0
    status: str = "max_iter"


def minimize_lbfgs(
    function: Evaluation,
    start: Iterate,
    *,
    is_converged: Callable[[Iterate], bool],
    max_iter: int,
    inverse_curvature: Multiply | None = None,
    pairs: Pairs | None = None,
) -> Iterate:
    """Minimise a smooth function in at most `max_iter` steps from `start`, whose point stays.

    `is_converged` is called with every iterate, the start included; True ends the minimisation.
    `inverse_curvature` multiplies by an approximate inverse Hessian. `pairs` are the curvature
    pairs to start with, and end as the last ones: 10, or down to 3 where there are many parameters,
    as a pair takes twice the memory of a point and more of them hardly save iterations.
    """
    memory = min(10, max(3, _PAIR_ENTRIES // max(start.x.numel(), 1)))
    precondition = inverse_curvature or torch.clone
    now = Iterate(start.x, start.value, start.gradient)
    gradient = now.gradient
    pairs = deque() if pairs is None else pairs
    scale = _scale(pairs[-1], precondition) if pairs else 1.0
    while not is_converged(now):
        if now.n_iter >= max_iter:
            return now
        # 1) a step along the quasi-Newton direction
        direction = _direction(gradient, pairs, precondition, scale)
        if len(pairs) == memory:
            pairs.popleft()  # frees memory for the next pair
        step = _weak_wolfe_step(function, now, direction)
        if step is None and pairs:
            # Rounding can spoil the curvature pairs: drop them before giving up.
            pairs.clear()
            direction = _direction(gradient, pairs, precondition, scale)
            step = _weak_wolfe_step(function, now, direction)
        if step is None:
            now.status = "no_progress"
            return now
        # 2) its curvature pair
        length, x, value, new_gradient = step
        change = direction.mul_(length)
        gradient_change = torch.sub(new_gradient, gradient, out=gradient)  # in its memory
        pair = change, gradient_change, _dot(change, gradient_change)
        gradient = new_gradient
        del step, new_gradient  # and with them the gradient, before the next one is made
        new_scale = _scale(pair, precondition)
        if new_scale > 0:  # else the pair has no positive curvature
            pairs.append(pair)
            scale = new_scale
        now = Iterate(x, value, gradient, now.n_iter + 1)
    now.status = "converged"
    return now


def add_curvature(pairs: Pairs, index: Any, curvature: float) -> None:
    """Change pairs to those of the function with ``curvature / 2 * |x[index]|^2`` added."""
    for change, gradient_change, _ in list(pairs):
        pairs.popleft()
        gradient_change[index].add_(change[index], alpha=curvature)
        product = _dot(change, gradient_change)
        if product > 0:  # a smaller penalty can make it negative
            pairs.append((change, gradient_change, product))


def _scale(pair: Pair, precondition: Multiply) -> float:
    """Return the factor that gives a preconditioner the curvature of a pair, 0 if there is none."""
    _, gradient_change, curvature = pair
    norm = _dot(gradient_change, precondition(gradient_change))
    has_scale = curvature > 0 and norm > 0 and math.isfinite(norm)
    return curvature / norm if has_scale else 0.0


def _direction(
    gradient: torch.Tensor, pairs: Pairs, precondition: Multiply, scale: float
) -> torch.Tensor:
    """Return minus the approximate inverse Hessian times the gradient (two-loop recursion)."""
    # 1) from the newest pair to the oldest
    direction = gradient.neg()
    coefficients = []
    for change, gradient_change, curvature in reversed(pairs):
        coefficient = _scalar(_product(change, direction)) / curvature
        _add(direction, gradient_change, -coefficient)
        coefficients.append(coefficient)
    direction = precondition(direction).mul_(scale)
    # 2) and back
    coefficients.reverse()
    for pair, coefficient in zip(pairs, coefficients, strict=True):
        change, gradient_change, curvature = pair
        correction = coefficient - _scalar(_product(gradient_change, direction)) / curvature
        _add(direction, change, correction)
    return direction


def _weak_wolfe_step(
    function: Evaluation, now: Iterate, direction: torch.Tensor
) -> tuple[float, torch.Tensor, float, torch.Tensor] | None:
    """Return length, point, value and gradient of a step that satisfies the weak Wolfe conditions.

    The full step where it does; else brackets by steps of four times the last and shrinks by
    safeguarded quadratic interpolation (Lewis & Overton, 2013). None where no step lowers the
    value.
    """
    slope = _dot(now.gradient, direction)
    if not slope < 0:
        return None
    low = 0.0  # the longest step that was too short
    high = math.inf  # the shortest one that was too long
    length = 1.0
    best = None
    for _ in range(_MAX_TRIALS):
        x = torch.add(now.x, direction, alpha=length)
        value, gradient = function(x)
        enough = now.value + _SUFFICIENT_DECREASE * length * slope
        if not (value <= enough and value < now.value):  # too far; so is NaN
            del gradient  # frees memory for the next trial's
            high = length
            length = _interpolate(low, high, now.value, slope, value, length)
        else:  # far enough only where the descent has become flatter
            best = length, x, value, gradient
            if _dot(gradient, direction) >= _CURVATURE * slope:
                return best
            low = length
            length = 0.5 * (low + high) if math.isfinite(high) else 4.0 * length
    return best


def _interpolate(
    low: float, high: float, value: float, slope: float, new_value: float, length: float
) -> float:
    """Return the minimiser of the parabola through the start and the failed trial, kept inside."""
    excess = new_value - value - slope * length  # above the tangent at the start
    guess = -math.inf
    if math.isfinite(excess) and excess > 0:
        guess = -0.5 * slope * length**2 / excess
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
