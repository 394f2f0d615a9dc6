"""Margin maximisation by the method of multipliers with semismooth Newton steps.

Minimise ||p||^2 / 2 subject to z_i.p >= 1. With multipliers lambda >= 0 and a penalty sigma, the
subproblem

    phi(p) = ||p||^2 / 2 + ||r||^2 / (2 sigma),   r = max(0, lambda + sigma (1 - Z p))

is strongly convex with gradient p - Z'r and generalised Hessian I + sigma Z_J' Z_J, J the pairs
with r > 0. Newton steps with conjugate gradients solve it in a few passes over J, which soon
is small; then lambda <- r, and sigma grows (Rockafellar 1976; the semismooth Newton subproblem as
in Li, Sun & Toh 2018).
"""

from __future__ import annotations

import torch

from ._ascent import Ascent, PairMaps

_MAX_OUTER = 60
_MAX_NEWTON = 60
_MAX_CG = 500
_CG_REDUCTION = 1e-3
_SUFFICIENT_DECREASE = 1e-4
_MAX_HALVINGS = 30

# The penalty grows by the larger factor where the last subproblem was easy.
_EASY = 6
_GROWTH_IF_EASY, _GROWTH = 10.0, 3.0

# In units of 1 / mean ||z_i||^2. Beyond the largest penalty rounding takes over.
_FIRST_PENALTY, _LARGEST_PENALTY = 2.0, 1e9


def augmented_lagrangian(ascent: Ascent, start: torch.Tensor) -> None:
    """Run the method from `start` until the ascent ends."""
    maps = ascent.maps
    p = start
    differences = maps.differences(p)
    smallest = float(differences.min())
    if smallest > 0:  # start on the scale of the solution
        p, differences = p / smallest, differences / smallest
    penalty = _FIRST_PENALTY / ascent.squared_length
    multipliers = torch.zeros_like(differences)
    for outer in range(_MAX_OUTER):
        accuracy = 1e-2 / (1 + outer) ** 2
        for newton in range(_MAX_NEWTON):
            r = (multipliers + penalty * (1.0 - differences)).clamp_(min=0.0)
            combined = maps.combine(r)
            gradient = p - combined
            ascent.n_iter += 1
            ascent.offer_direction(p, float(differences.min()))
            ascent.offer_weights(r, combined)
            if ascent.ends():
                return
            size = float(torch.linalg.vector_norm(gradient))
            length = float(torch.linalg.vector_norm(p))
            if newton and size <= max(accuracy, 1e-13) * length:
                break
            step = _newton_step(ascent, maps.subset(torch.nonzero(r)[:, 0]), penalty, gradient)
            change = maps.differences(step)
            ascent.n_iter += 1
            fraction = _line_search(p, step, multipliers, differences, change, penalty, gradient)
            if fraction == 0.0:
                break
            p = p + fraction * step
            differences = differences + fraction * change
        # Sums of changes drift from what they stand for.
        differences = maps.differences(p)
        multipliers = (multipliers + penalty * (1.0 - differences)).clamp_(min=0.0)
        growth = _GROWTH_IF_EASY if newton <= _EASY else _GROWTH
        penalty = min(penalty * growth, _LARGEST_PENALTY / ascent.squared_length)
    ascent.status = "no_progress"


def _newton_step(
    ascent: Ascent, active: PairMaps, penalty: float, gradient: torch.Tensor
) -> torch.Tensor:
    """Return -(I + penalty Z_J'Z_J)^-1 gradient, up to a thousandth, by conjugate gradients."""
    step = torch.zeros_like(gradient)
    residual = -gradient
    direction = residual
    squared = float(residual @ residual)
    target = squared * _CG_REDUCTION**2
    share = len(active) / len(ascent.maps)
    passes = 0
    while passes < _MAX_CG and squared > target:
        passes += 1
        product = direction + penalty * active.combine(active.differences(direction))
        length = squared / float(direction @ product)
        step = step + length * direction
        residual = residual - length * product
        previous, squared = squared, float(residual @ residual)
        direction = residual + (squared / previous) * direction
    # Passes over few pairs count as what they are, rounded up to whole ones.
    ascent.n_iter += max(1, round(passes * share)) if passes else 0
    return step


def _line_search(
    p: torch.Tensor,
    step: torch.Tensor,
    multipliers: torch.Tensor,
    differences: torch.Tensor,
    change: torch.Tensor,
    penalty: float,
    gradient: torch.Tensor,
) -> float:
    """Return the largest power of 1/2 that lowers phi enough, 0 where none does."""

    def phi(fraction: float) -> float:
        r = (multipliers + penalty * (1.0 - differences - fraction * change)).clamp_(min=0.0)
        moved = p + fraction * step
        return 0.5 * float(moved @ moved) + 0.5 / penalty * float(r @ r)

    value, slope = phi(0.0), float(gradient @ step)
    rounding = 1e-14 * abs(value)
    fraction = 1.0
    for _ in range(_MAX_HALVINGS):
        if phi(fraction) <= value + _SUFFICIENT_DECREASE * fraction * slope + rounding:
            return fraction
        fraction /= 2.0
    return 0.0
