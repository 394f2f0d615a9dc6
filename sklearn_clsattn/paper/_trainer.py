"""Common parts of training: the random start, held-out documents, and stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.result import FitResult, OnIteration

if TYPE_CHECKING:
    from .._core.fitted import FittedAttention
    from .._core.loss import AttentionLoss

Indices = NDArray[np.intp]

_ROWS_AT_ONCE = 1024


def draw_embeddings(
    n_tokens: int,
    n_outputs: int,
    embedding_dim: int,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw E^0, (n_tokens, d), and p^0 from N(0, I / d), and orthonormal v_k, (n_outputs, d).

    All are drawn in double precision and then converted, so that a seed stands for the same start
    in single precision.
    """
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) must be independent), got {embedding_dim}."
        )
    generator = torch.Generator().manual_seed(seed)
    scale = embedding_dim**-0.5
    p = torch.randn(embedding_dim, generator=generator, dtype=torch.float64) * scale
    gaussian = torch.randn(embedding_dim, n_outputs, generator=generator, dtype=torch.float64)
    # Gram-Schmidt with positive diagonal, so that the directions are uniformly random.
    q, r = torch.linalg.qr(gaussian)
    v = (q * torch.sign(torch.diagonal(r))).T.contiguous()
    # E is large, so only a block of rows is ever held in double precision besides it.
    E = torch.empty(n_tokens, embedding_dim, dtype=dtype)
    for block in E.split(_ROWS_AT_ONCE):
        drawn = torch.randn(block.shape, generator=generator, dtype=torch.float64)
        block.copy_(drawn.mul_(scale))
    return E.to(device), p.to(device, dtype), v.to(device, dtype)


def add_step(
    loss: AttentionLoss, E: torch.Tensor, p: torch.Tensor, v: torch.Tensor, step_size: float
) -> None:
    """Make one exact gradient step of the mean loss on E, in place as it is large.

    The gradient is D [p, v_1, ..] with D, (n_tokens, 1 + n_outputs), that by scores and values.
    """
    directions = torch.cat([p[None], v])
    matrix = torch.cat([E @ directions.T, directions.new_zeros(1, len(directions))])
    factors = loss(matrix)[1][:-1].div_(loss.total_weight)
    E.addmm_(factors.mul_(-step_size), directions)
    if not bool(torch.isfinite(E).all()):
        raise ValueError(
            f"step_size={step_size:.3g} makes embeddings infinite: choose a smaller step_size, or "
            "use the default, None."
        )


def hold_out(
    codes: Indices, sample_weight: NDArray[np.float64], fraction: float, seed: int
) -> tuple[Indices, Indices]:
    """Split documents at random into those trained on and those held out, class by class.

    Of every class's documents of positive weight the same `fraction` is held out, but at least one
    is and at least one stays.
    """
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero((codes == code) & (sample_weight > 0))
        if len(rows) == 1:
            raise ValueError(
                f"Early stopping holds out documents of each class, but class number {code} has "
                "only one document of positive weight: add more, or set early_stopping=False."
            )
        if len(rows):
            size = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
            held_out[rng.choice(rows, size, replace=False)] = True
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


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
    model: Callable[[], FittedAttention],
    *,
    learning_rate: float,
    unit: str,
    on_iteration: OnIteration,
) -> FitResult:
    """Train until a loss no longer falls, by the classifier's max_iter, n_iter_no_change and tol.

    `advance` changes the parameters in place and returns the training loss; `unit` names what it
    does. Training stops after `n_iter_no_change` calls without a new lowest validation loss, whose
    parameters are restored; without validation, once as many calls together have not lowered the
    training loss by more than `tol`.
    """
    least = classifier.tol if validation_loss is None else 0.0
    losses: list[float] = [first_loss]
    watched: list[float] = []
    best: list[torch.Tensor] = []
    best_iter, lowest, status = 0, math.inf, ""
    while True:
        n_iter = len(watched)
        watched.append(losses[-1] if validation_loss is None else validation_loss())
        if not (math.isfinite(losses[-1]) and math.isfinite(watched[-1])):
            raise ValueError(
                f"The loss is not finite after {n_iter} {unit}(s) of training: lower the learning "
                f"rate (it was {learning_rate:g})."
            )
        if watched[-1] < lowest - least:
            lowest, best_iter = watched[-1], n_iter
            if validation_loss is not None:
                best = [parameter.detach().clone() for parameter in parameters]
        criterion = math.nan if validation_loss is None else watched[-1]
        on_iteration(n_iter, losses[-1], criterion)
        if n_iter - best_iter >= classifier.n_iter_no_change:
            status = "converged"
        elif n_iter >= classifier.max_iter:
            status = "max_iter"
        if status:
            break
        losses.append(advance())
    with torch.no_grad():
        for parameter, value in zip(parameters, best, strict=False):
            parameter.copy_(value)
    measure, remedy = "training", ", or raise tol, or set early_stopping=True."
    attributes: dict[str, Any] = {}
    if validation_loss is not None:
        measure, remedy = "validation", "."
        attributes["validation_loss_curve_"] = np.array(watched)
    not_converged = (
        f"Training stopped at max_iter={n_iter} {unit}s while the {measure} loss was still "
        f"improving. Increase max_iter or learning_rate{remedy}"
    )
    not_converged *= status == "max_iter"
    return FitResult(model(), losses, n_iter, attributes, not_converged)
