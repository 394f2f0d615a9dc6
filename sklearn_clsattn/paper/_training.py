"""What the trainings of this folder share: held-out documents, the loss, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from .._core.result import Callback, FitResult, Progress

if TYPE_CHECKING:
    from .._core.fitted import FittedModel

Indices = NDArray[np.intp]


def hold_out(
    codes: Indices, sample_weight: NDArray[np.float64], fraction: float, seed: int
) -> tuple[Indices, Indices]:
    """Split documents at random into those trained on and those held out, class by class.

    Of every class with documents of positive weight the same `fraction` is held out, rounded, but
    at least one is and at least one stays: a class of one is a ValueError. Rows are ascending.
    """
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero((codes == code) & (sample_weight > 0))
        if len(rows) == 1:
            raise ValueError(
                "Early stopping holds out documents of every class, but class number "
                f"{code} has one document only (of positive weight). Give it more, or set "
                "early_stopping=False."
            )
        if len(rows):
            size = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
            held_out[rng.choice(rows, size, replace=False)] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def weighted_loss(
    outputs: torch.Tensor, targets: torch.Tensor, sample_weight: torch.Tensor
) -> torch.Tensor:
    """Return the sum of the documents' weighted losses, of outputs (n_documents, n_outputs)."""
    if outputs.shape[1] == 1:
        losses = -F.logsigmoid(targets * outputs[:, 0])
    else:
        losses = F.cross_entropy(outputs, targets, reduction="none")
    return torch.dot(losses, sample_weight)


def epochs(
    step_on: Callable[[Indices, float], float],
    rows: Indices,
    sample_weight: NDArray[np.float64],
    batch_size: int,
    seed: int,
) -> Callable[[], float]:
    """Return a function that makes a step for each mini-batch of the shuffled rows.

    `step_on` takes rows and the weight to divide their loss by, and returns the loss before the
    step; the function returned returns the mean of these losses.
    """
    order = np.random.default_rng(seed)
    mean_weight = float(sample_weight[rows].sum()) / len(rows)

    def epoch() -> float:
        shuffled, total = order.permutation(rows), 0.0
        for first in range(0, len(rows), batch_size):
            batch = shuffled[first : first + batch_size]
            total += len(batch) * step_on(batch, mean_weight * len(batch))
        return total / len(rows)

    return epoch


def run_training(
    classifier: Any,
    parameters: Sequence[torch.Tensor],
    first_loss: float,
    advance: Callable[[], float],
    validation_loss: Callable[[], float] | None,
    model: Callable[[], FittedModel],
    *,
    learning_rate: float,
    unit: str,
    callback: Callback,
) -> FitResult:
    """Train until a loss no longer falls, by the classifier's max_iter, n_iter_no_change and tol.

    `advance` changes the parameters in place and returns the training loss; `unit` names what it
    does. Training stops after `n_iter_no_change` calls without a new lowest validation loss, whose
    parameters are restored; without validation, once as many calls together have not lowered the
    training loss by more than `tol`.
    """
    losses, validation_losses = [first_loss], []
    best: list[torch.Tensor] = []
    best_iter, lowest, n_iter = 0, math.inf, 0
    while True:
        watched, least = losses[-1], classifier.tol
        if validation_loss is not None:
            watched, least = validation_loss(), 0.0
            validation_losses.append(watched)
        if not (math.isfinite(losses[-1]) and math.isfinite(watched)):
            raise ValueError(
                f"The loss is not finite after {n_iter} {unit}(s) of training: lower the learning "
                f"rate (it was {learning_rate:g})."
            )
        if watched < lowest - least:
            lowest, best_iter = watched, n_iter
            if validation_loss is not None:
                best = [parameter.detach().clone() for parameter in parameters]
        criterion = math.nan if validation_loss is None else watched
        if callback(Progress(n_iter, losses[-1], criterion, model)):
            status = "stopped"
            break
        if n_iter - best_iter >= classifier.n_iter_no_change:
            status = "converged"
            break
        if n_iter >= classifier.max_iter:
            status = "max_iter"
            break
        losses.append(advance())
        n_iter += 1
    with torch.no_grad():
        for parameter, value in zip(parameters, best, strict=False):
            parameter.copy_(value)
    attributes: dict[str, Any] = {}
    if validation_loss is not None:
        attributes["validation_loss_curve_"] = np.array(validation_losses)
    not_converged = ""
    if status == "max_iter":
        measure = "training" if validation_loss is None else "validation"
        not_converged = (
            f"Training stopped at max_iter={n_iter} {unit}s while the {measure} loss was still "
            "improving. Increase max_iter or learning_rate"
            + (", or raise tol, or set early_stopping=True." if validation_loss is None else ".")
        )
    return FitResult(model(), losses, n_iter, status, attributes, not_converged)
