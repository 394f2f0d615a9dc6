"""What a solver minimises, what training returns, and the loop between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch

from .solvers.base import Iterate, Multiply, Solver
from .solvers.lbfgs import minimize_lbfgs

if TYPE_CHECKING:
    from .fitted import FittedModel


class Problem(Protocol):
    """A function to minimise, with its stopping criterion and curvature."""

    @property
    def start(self) -> torch.Tensor:
        """Where to start."""
        ...

    def __call__(self, x: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the value and a new gradient tensor."""
        ...

    def gap(self, gradient: torch.Tensor) -> float:
        """Return how far, in nats per document, the value is above a stationary one."""
        ...

    def inverse_curvature(self, x: torch.Tensor) -> Multiply:
        """Return the product with an approximate inverse Hessian at x."""
        ...

    @property
    def refresh(self) -> int | None:
        """Steps after which the inverse curvature is recomputed; None keeps that of the start."""
        ...

    def model(self, x: torch.Tensor) -> FittedModel:
        """Return the model at a point."""
        ...


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
    model: Callable[[], FittedModel]


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

    model: FittedModel
    loss_curve: list[float]
    n_iter: int
    status: str
    attributes: dict[str, Any] = field(default_factory=dict)
    not_converged: str = ""
    warning: str = ""


def solve(
    problem: Problem,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    solver: Solver = minimize_lbfgs,
) -> FitResult:
    """Minimise until the optimality gap, in nats per document, is at most `tol`.

    At most `max_iter` steps are made; the criterion of `callback` is the gap. The result has
    `optimality_gap_` among its attributes.
    """
    x, done = problem.start, 0
    curve: list[float] = []
    gap, stopped = math.inf, False

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap, stopped
        gap = problem.gap(iterate.gradient)
        if not (curve and iterate.n_iter == 0):  # a restart begins at a recorded point
            curve.append(iterate.value)
            if callback is not None:
                point = iterate.x
                stopped = callback(
                    Progress(
                        done + iterate.n_iter, iterate.value, gap, lambda: problem.model(point)
                    )
                )
        return stopped or gap <= tol

    while True:
        left = max_iter - done
        leg = solver(
            problem,
            x,
            is_converged=is_converged,
            max_iter=min(problem.refresh or left, left),
            inverse_curvature=problem.inverse_curvature(x),
        )
        x, status = leg.x, leg.status
        done += leg.n_iter
        if status == "converged" or done >= max_iter or not (problem.refresh and leg.n_iter):
            break
    if stopped and gap > tol:
        status = "stopped"
    return FitResult(
        model=problem.model(x),
        loss_curve=curve,
        n_iter=done,
        status=status,
        attributes={"optimality_gap_": gap},
        not_converged=_not_converged(status, done, gap, tol),
    )


def _not_converged(status: str, n_iter: int, gap: float, tol: float) -> str:
    """Return the warning about a minimisation that ended in this way; "" if none."""
    if status == "max_iter":
        return (
            f"Training stopped at max_iter={n_iter} with an optimality gap of {gap:.1e} > "
            f"tol={tol:.1e}: values, and perhaps scores, could still lower the penalised mean log "
            "loss by about that much. Increase max_iter, or lower C or attention_C (stronger "
            "penalties converge sooner), or raise tol."
        )
    if status == "no_progress":
        return (
            "Training cannot lower the loss any further in this precision, with an optimality gap "
            f"of {gap:.1e} > tol={tol:.1e}. Raise tol, or pass X as float64 if it is float32 or "
            "integer."
        )
    return ""
