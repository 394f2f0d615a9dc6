"""What a solver takes and returns. No solver depends on the model.

A solver is one function in one file of this folder that implements :class:`Solver`, passed to
:func:`sklearn_clsattn._core.problem.solve`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch

Evaluation = Callable[[torch.Tensor], tuple[float, torch.Tensor]]
"""Maps a point to the function's value and a new gradient tensor of its shape."""

Multiply = Callable[[torch.Tensor], torch.Tensor]
"""Multiplies a tensor by a symmetric positive definite matrix; returns a new tensor."""


@dataclass
class Iterate:
    """One accepted point of a minimisation.

    n_iter : number of accepted steps so far, 0 at the start
    x : the point, a tensor of its own
    gradient : the gradient there, of the same shape; its memory is used again
    value : the function's value there
    """

    n_iter: int
    x: torch.Tensor
    value: float
    gradient: torch.Tensor


@dataclass
class SolverResult:
    """How a minimisation ended.

    x : the last accepted point
    values : the function's values at the start and after each accepted step
    n_iter, n_evaluations : accepted steps; evaluations of the function, line searches included
    status : "converged" (`is_converged` returned True), "max_iter", or "no_progress": no step
        lowers the value, as at the limit of precision
    gradient : the gradient at `x`; None where the solver does not tell
    """

    x: torch.Tensor
    values: list[float]
    n_iter: int = 0
    n_evaluations: int = 0
    status: str = "max_iter"
    gradient: torch.Tensor | None = None

    @property
    def value(self) -> float:
        """The function's value at `x`."""
        return self.values[-1]


class Solver(Protocol):
    """Minimises a smooth function."""

    def __call__(
        self,
        function: Evaluation,
        start: torch.Tensor,
        *,
        is_converged: Callable[[Iterate], bool],
        max_iter: int,
        inverse_curvature: Multiply | None = None,
    ) -> SolverResult:
        """Minimise `function` from `start`, which is not changed, in at most `max_iter` steps.

        `is_converged` is called with every iterate, the start included; True ends the
        minimisation. `inverse_curvature` multiplies by an approximate inverse Hessian.
        """
        ...
