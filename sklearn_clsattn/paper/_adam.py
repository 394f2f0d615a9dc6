"""Full-batch Adam with early stopping, for any function: stopping rules around PyTorch's steps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

EPSILON = 1e-8  # PyTorch's default, and that of the paper on Adam
# Sets the gradients; returns the training loss and the validation loss, if there is one.
Evaluation = Callable[[], tuple[float, float | None]]


@dataclass(frozen=True)
class AdamResult:
    """How a minimisation ended."""

    losses: list[float]  # training losses at the start and after each step
    validation_losses: list[float] | None  # the same, if there are any
    best_iter: int  # the step of the parameters returned: the last, or of the best validation loss
    n_iter: int
    status: str  # "converged" (no improvement for long enough), "max_iter", "stopped" (callback)


def minimize_adam(
    parameters: Sequence[torch.Tensor],
    learning_rates: Sequence[float],
    evaluate: Evaluation,
    *,
    max_iter: int,
    n_iter_no_change: int,
    tol: float,
    epsilon: float = EPSILON,
    plain: bool = False,
    callback: Callable[[int, float, float | None], bool] | None = None,
) -> AdamResult:
    """Minimise a function by Adam, or `plain` gradient descent, changing parameters in place.

    Training stops after `n_iter_no_change` steps without a new lowest validation loss, whose
    parameters are restored; without validation, once as many steps together have not lowered the
    training loss by more than `tol`. A learning rate that is not positive, or a loss that is not
    finite, is a ValueError.
    """
    if not all(rate > 0 and math.isfinite(rate) for rate in learning_rates):
        raise ValueError(f"The learning rate must be positive, got {min(learning_rates)}.")
    groups: list[dict[str, Any]] = [
        {"params": [tensor], "lr": rate}
        for tensor, rate in zip(parameters, learning_rates, strict=True)
    ]
    optimizer: torch.optim.Optimizer = (
        torch.optim.SGD(groups) if plain else torch.optim.Adam(groups, eps=epsilon, fused=True)
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
                    f"{n_iter} step(s) of training: lower the learning rate (it was "
                    f"{max(learning_rates):g})."
                )
            if patience.improved(watched, n_iter, least) and validation_loss is not None:
                best = _copy(parameters, best)
            if callback is not None and callback(n_iter, loss, validation_loss):
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
    """Return copies of tensors, in the memory of `into` where that is not None."""
    if into is None:
        return [tensor.clone() for tensor in tensors]
    for tensor, place in zip(tensors, into, strict=True):
        place.copy_(tensor)
    return list(into)


@dataclass
class Patience:
    """Watches a loss that should fall."""

    n_iter_no_change: int  # iterations without improvement after which training stops
    max_iter: int
    best_iter: int = field(default=0, init=False)  # the iteration of the last improvement
    _reference: float = field(default=math.inf, init=False)

    def improved(self, loss: float, n_iter: int, least: float) -> bool:
        """Record the loss after an iteration; return whether it is lower by more than `least`."""
        if not loss < self._reference - least:
            return False
        self._reference, self.best_iter = loss, n_iter
        return True

    def status(self, n_iter: int) -> str | None:
        """Return why training stops after this iteration, "converged" or "max_iter", or None."""
        if n_iter - self.best_iter >= self.n_iter_no_change:
            return "converged"
        return "max_iter" if n_iter >= self.max_iter else None


def not_converged(
    status: str, n_iter: int, unit: str, *, early_stopping: bool, named: str = "Adam"
) -> str:
    """Return the warning about training, "" if none; `unit` names an iteration."""
    if status != "max_iter":
        return ""
    measure = "validation" if early_stopping else "training"
    return (
        f"{named} stopped at max_iter={n_iter} {unit}s while the {measure} loss was still "
        f"improving. Increase max_iter or learning_rate"
        + ("." if early_stopping else ", or raise tol, or set early_stopping=True.")
    )
