r"""How p moves with the embeddings frozen: along gradient flow, or by normalised descent.

With the scores :math:`a = E p` and :math:`g = \partial L / \partial a`, the flow
:math:`\dot p = -E^\top g` keeps :math:`p = p^0 + E^\top c`, :math:`a = a^0 + K c`, with
:math:`K = E E^\top` and :math:`\dot c = -g`: its path is found in the space of scores, at whatever
speed it is followed. The speed here is the gradient over the sum N of the sizes of its terms, those
of each token in each document,

.. math:: \frac{da}{d\tau} = -\frac{K g}{N}, \qquad \frac{dc}{d\tau} = -\frac{g}{N},

which does not vanish as the loss and with it the gradient vanish, but does where the terms cancel.
"""

from __future__ import annotations

import sys
from typing import Protocol

import torch

from ..theory._token_embeddings import TokenEmbeddings, kernel
from ._chebyshev import ChebyshevIntegrator
from ._selective_gradient import SelectiveGradient, SelectiveObjective

SCORE_STEP = 2.0
"""Largest change of a score in one step of descent."""

LARGEST_CHANGE = 10.0
"""About the largest change of a score in one step along the flow, whose errors are seen to."""

BALANCED = 1e-5
"""Speed of the fastest score at which gradient flow has all but come to rest."""


class ClsTraining(Protocol):
    """Training of p, one step after another, from scores a^0.

    scores : (n_tokens,), a
    coefficients : (n_tokens,), c, by which p is p^0 + E.T c
    point : the gradient and the selection there
    balanced : whether the terms of the gradient all but cancel
    """

    scores: torch.Tensor
    coefficients: torch.Tensor
    point: SelectiveGradient
    balanced: bool

    def step(self) -> float:
        """Take a step; return the largest change of a score, 0 where there is no gradient."""
        ...


class GradientFlow:
    """Gradient flow by adaptive stiff integration: see the module's docstring.

    The local error of a step is at most `tol` times one more than each score's size.
    """

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
