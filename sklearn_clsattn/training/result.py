"""What every training reports and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from .._types import Array
from .fitted_model import FittedAttention

OnIteration = Callable[[int, float, float], None]
"""Called at the start and after each iteration with the number of iterations, the loss and what the
stopping rule compares: the optimality gap, the validation loss or the largest unselected attention;
NaN where there is none."""


@dataclass(frozen=True)
class FitResult:
    """What every training returns.

    model : NumPy arrays
    loss_curve : training loss, in nats per document, at the start and after each iteration
    n_iter : number of iterations
    attributes : fitted attributes beyond those of every estimator, by name
    convergence_message : the text of the warning if it did not converge, else ""
    """

    model: FittedAttention
    loss_curve: list[float]
    n_iter: int
    attributes: dict[str, Any] = field(default_factory=dict)
    convergence_message: str = ""

    def with_offsets(self, offsets: Array) -> FitResult:
        """Return the result with offsets, (n_outputs,), added to the intercepts."""
        model = replace(self.model, intercept=self.model.intercept + offsets)
        return replace(self, model=model)
