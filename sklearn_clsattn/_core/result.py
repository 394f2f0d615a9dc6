"""What every training reports and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .fitted import FittedAttention


@dataclass(frozen=True)
class Progress:
    """What a callback of training receives at the start and after each iteration.

    n_iter : iterations so far
    loss : the training loss
    criterion : what the stopping rule compares: the optimality gap, the validation loss or the
        largest unselected attention; NaN where there is none
    model : makes the present model
    """

    n_iter: int
    loss: float
    criterion: float
    model: Callable[[], FittedAttention]


Callback = Callable[[Progress], bool]
"""Called at the start and after each iteration; True stops training."""


@dataclass(frozen=True)
class FitResult:
    """What every training returns.

    model : NumPy arrays
    loss_curve : training loss, in nats per document, at the start and after each iteration
    n_iter : number of iterations
    status : "converged", "max_iter", "no_progress" or "stopped" (by the callback); a regime may
        have more
    attributes : fitted attributes beyond those of every estimator, by name
    not_converged : the warning if it did not converge, else ""
    warning : any other warning, or ""
    """

    model: FittedAttention
    loss_curve: list[float]
    n_iter: int
    status: str
    attributes: dict[str, Any] = field(default_factory=dict)
    not_converged: str = ""
    warning: str = ""
