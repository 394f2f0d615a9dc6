"""Full-batch Adam with early stopping. It knows nothing of attention.

The steps are those of :class:`torch.optim.Adam` with its default moments, in its fused form:
one pass over parameters, gradient and moments, and no temporary copies. What is added is when
to stop, and the return to the best point seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from .patience import Patience

EPSILON = 1e-8
"""PyTorch's default, the paper of Adam's as well."""

Evaluation = Callable[[], tuple[float, float | None]]
"""Sets the gradients; returns the training loss and the validation loss, if there is one."""


@dataclass(frozen=True)
class AdamResult:
    """How a minimisation ended.

    Attributes
    ----------
    losses : list of float
        Training losses at the start and after each step.

    validation_losses : list of float or None
        Validation losses there.

    best_iter : int
        The step after which the parameters are those handed back: that of the lowest
        validation loss, without validation the last.

    n_iter : int
        Number of steps taken.

    status : {"converged", "max_iter", "stopped"}
        "converged": no improvement for long enough. "stopped": `on_step` asked for it.
    """

    losses: list[float]
    validation_losses: list[float] | None
    best_iter: int
    n_iter: int
    status: str


def minimize_adam(
    parameters: Sequence[torch.Tensor],
    learning_rates: Sequence[float],
    evaluate: Evaluation,
    *,
    max_iter: int,
    n_iter_no_change: int,
    tol: float,
    epsilon: float = EPSILON,
    on_step: Callable[[int, float, float | None], bool] | None = None,
) -> AdamResult:
    """Minimise a function by Adam, in place.

    With a validation loss, training stops after `n_iter_no_change` steps without a new lowest
    one, and the parameters of the lowest are restored: a copy of all parameters is kept beside
    them, their gradients and Adam's two moments (five times their size in all). Without, it
    stops once `n_iter_no_change` steps together have not lowered the training loss by more than
    `tol`; no copy is kept (four times), and the parameters are those of the last step.

    Parameters
    ----------
    parameters : sequence of torch.Tensor
        Where to start. They are changed.

    learning_rates : sequence of float
        One for each tensor.

    evaluate : callable
        Sets ``.grad`` of every tensor at its present value and returns the training loss and
        the validation loss, or None for want of one.

    max_iter : int
        At most this many steps.

    n_iter_no_change : int
        For how many steps no improvement is waited out.

    tol : float
        The least improvement of the training loss. Validation losses need no least one.

    epsilon : float, default=1e-8
        Adam divides by the root of the second moment plus this: gradients much smaller than it
        hardly move a parameter.

    on_step : callable, default=None
        Called with the number of steps and the two losses at the start and after each step;
        True stops.

    Returns
    -------
    AdamResult

    Raises
    ------
    ValueError
        If a learning rate is not positive, or if a loss is infinite or NaN.
    """
    if not all(rate > 0 and math.isfinite(rate) for rate in learning_rates):
        raise ValueError(f"The learning rate must be positive, got {min(learning_rates)}.")
    optimizer = torch.optim.Adam(
        [
            {"params": [tensor], "lr": rate}
            for tensor, rate in zip(parameters, learning_rates, strict=True)
        ],
        eps=epsilon,
        fused=True,
    )
    losses: list[float] = []
    validation_losses: list[float] = []
    best: list[torch.Tensor] | None = None
    patience = Patience(n_iter_no_change, max_iter)
    n_iter = 0
    try:
        while True:
            loss, validation_loss = evaluate()
            losses.append(loss)
            watched, least = loss, tol
            if validation_loss is not None:
                validation_losses.append(validation_loss)
                watched, least = validation_loss, 0.0
            if not (math.isfinite(loss) and math.isfinite(watched)):
                raise ValueError(
                    f"The loss is {watched if math.isfinite(loss) else loss} after "
                    f"{n_iter} step(s) of Adam: lower the learning rate (it was "
                    f"{max(learning_rates):g})."
                )
            if patience.improved(watched, n_iter, least) and validation_loss is not None:
                best = _copy(parameters, best)
            if on_step is not None and on_step(n_iter, loss, validation_loss):
                status = "stopped"
                break
            if ended := patience.status(n_iter):
                status = ended
                break
            optimizer.step()
            n_iter += 1
        best_iter = n_iter
        if best is not None:
            best_iter = patience.best_iter
            if best_iter < n_iter:
                _copy(best, parameters)
    finally:
        for tensor in parameters:
            tensor.grad = None
    return AdamResult(losses, validation_losses or None, best_iter, n_iter, status)


def _copy(
    tensors: Sequence[torch.Tensor], into: Sequence[torch.Tensor] | None
) -> list[torch.Tensor]:
    """Return copies, in the memory of `into` where that is given."""
    if into is None:
        return [tensor.clone() for tensor in tensors]
    for tensor, place in zip(tensors, into, strict=True):
        place.copy_(tensor)
    return list(into)
