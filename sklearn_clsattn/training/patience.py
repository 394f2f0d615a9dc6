"""When a training that no longer improves stops."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Patience:
    """Watches a loss that is to fall.

    Parameters
    ----------
    n_iter_no_change : int
        After how many iterations without improvement training stops.

    max_iter : int
        After how many iterations it stops in any case.

    Attributes
    ----------
    best_iter : int
        The iteration of the last improvement.
    """

    n_iter_no_change: int
    max_iter: int
    best_iter: int = field(default=0, init=False)
    _reference: float = field(default=math.inf, init=False)

    def improved(self, loss: float, n_iter: int, least: float) -> bool:
        """Note the loss after an iteration; return whether it is lower by more than `least`."""
        if not loss < self._reference - least:
            return False
        self._reference, self.best_iter = loss, n_iter
        return True

    def status(self, n_iter: int) -> str | None:
        """Return why training stops after this iteration, "converged" or "max_iter", or None."""
        if n_iter - self.best_iter >= self.n_iter_no_change:
            return "converged"
        return "max_iter" if n_iter >= self.max_iter else None
