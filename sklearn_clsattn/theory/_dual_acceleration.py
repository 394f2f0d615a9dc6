"""Margin maximisation by dual acceleration (Ji, Srebro & Telgarsky 2021), with restarts."""

from __future__ import annotations

import torch

from ._ascent import Ascent

# Step size times the mean of ||z_i||^2. The theory asks for 1 over the largest ||z_i||^2; longer
# steps were faster by far, and a step that fails is taken again half as long.
_FIRST_STEP = 4.0

# A rise of the dual objective by less than this is rounding.
_ROUNDING = 1e-15

# Every so many steps the dual combination is tried as a direction, which costs a product.
_STEPS_BETWEEN_TRIALS = 10


def dual_acceleration(ascent: Ascent, start: torch.Tensor) -> None:
    """Run the method from `start` until the ascent ends.

    With q the softmax of -z.w and g the momentum, a step is g <- beta (g + Z'q),
    w <- w + theta (g + Z'q), beta = t / (t + 1). The momentum starts afresh, t = 0, where the
    dual objective ||Z'q|| rises (O'Donoghue & Candes 2015; ours here): without that it rises
    and falls, and ||Z'q|| converges no faster than the margin of w.
    """
    maps = ascent.maps
    step = _FIRST_STEP / ascent.squared_length
    w, momentum, t = start, torch.zeros_like(start), 0
    differences = maps.differences(w)
    combined, value = _dual_point(ascent, differences)
    ascent.n_iter += 1
    ascent.offer_direction(w, float(differences.min()))
    while not ascent.ends():
        trial_momentum = (momentum + combined) * (t / (t + 1))
        trial = w + step * (trial_momentum + combined)
        differences = maps.differences(trial)
        ascent.offer_direction(trial, float(differences.min()))
        trial_combined, trial_value = _dual_point(ascent, differences)
        ascent.n_iter += 1
        if trial_value <= value * (1.0 + _ROUNDING):
            w, momentum, t = trial, trial_momentum, t + 1
            combined, value = trial_combined, trial_value
        elif t > 0:
            momentum, t = torch.zeros_like(momentum), 0
        else:
            step /= 2.0
            if step * ascent.squared_length < 1e-12:
                ascent.status = "no_progress"
                return
        if ascent.n_iter % _STEPS_BETWEEN_TRIALS == 0:
            ascent.offer_direction(combined, float(maps.differences(combined).min()))


def _dual_point(ascent: Ascent, differences: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the rows combined by the softmax of -differences, and the norm of that."""
    weights = torch.softmax(-differences, dim=0)
    combined = ascent.maps.combine(weights)
    ascent.offer_weights(weights, combined)
    return combined, float(torch.linalg.vector_norm(combined))
