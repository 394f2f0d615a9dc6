r"""How p moves with the embeddings frozen: along gradient flow, or by normalised descent.

The flow :math:`\dot p = -E^\top g`, with :math:`g = \partial L / \partial a`, keeps
:math:`p = p^0 + E^\top c`: its path is found in the space of scores :math:`a = a^0 + E E^\top c`.
The speed is g over the sum of the sizes of its terms (``docs/theory.md`` says why).
"""

import sys

import torch

from ..theory._token_embeddings import TokenEmbeddings, kernel
from ._chebyshev import ChebyshevIntegrator
from ._selective_gradient import SelectiveObjective

SCORE_STEP = 2.0  # largest change of a score in one step of descent
# About the largest change of a score in one step along the flow, whose errors are seen to.
LARGEST_CHANGE = 10.0

BALANCED = 1e-5  # speed of the fastest score at which gradient flow has all but come to rest


class GradientFlow:
    """Gradient flow by adaptive stiff integration: see the module's docstring."""

    def __init__(
        self,
        objective: SelectiveObjective,
        embeddings: TokenEmbeddings,
        scores: torch.Tensor,
        *,
        tol: float,
        rounding: float = sys.float_info.epsilon,
    ) -> None:
        self._objective, self._kernel = objective, kernel(embeddings)
        self._integrator = ChebyshevIntegrator(
            self._velocity,
            torch.stack([scores, torch.zeros_like(scores)]),
            tol=tol,
            largest_change=LARGEST_CHANGE,
            rounding=rounding,
        )
        self._arrive()

    def step(self) -> float:
        """Advance by one step of the integration."""
        change = self._integrator.step()
        self._arrive()
        return change

    def _arrive(self) -> None:
        self.scores, self.coefficients = self._integrator.y
        self.point = self._objective(self.scores)
        self.balanced = self._integrator.speed <= BALANCED

    def _velocity(self, y: torch.Tensor) -> torch.Tensor:
        """Return the derivatives of scores and coefficients, (2, n_tokens)."""
        point = self._objective(y[0])
        if not point.magnitude > 0:
            return torch.zeros_like(y)
        change = point.by_score / -point.magnitude
        return torch.stack([self._kernel(change), change])


class NormalisedDescent:
    """Descent by steps that change the largest score by `SCORE_STEP`: not gradient flow."""

    balanced = False

    def __init__(
        self, objective: SelectiveObjective, embeddings: TokenEmbeddings, scores: torch.Tensor
    ) -> None:
        self._objective, self._kernel = objective, kernel(embeddings)
        self.scores, self.coefficients = scores, torch.zeros_like(scores)
        self.point = objective(scores)

    def step(self) -> float:
        """Take one step against the gradient."""
        change = self._kernel(self.point.by_score)
        largest = float(change.abs().max())
        if not largest > 0:  # the rest is lost to rounding
            return 0.0
        self.scores = self.scores - change * (SCORE_STEP / largest)
        self.coefficients = self.coefficients - self.point.by_score * (SCORE_STEP / largest)
        self.point = self._objective(self.scores)
        return SCORE_STEP
