r"""Frozen token embeddings E, as the two maps that training the embedding of ``<cls>`` needs.

:class:`ExplicitEmbeddings` is a dense matrix. :class:`LimitEmbeddings` is what one gradient step
makes of random embeddings as d grows without bound: in the basis of the rows of :math:`E^0`,
followed by the output vectors,

.. math:: E^1 = [\, I \mid S \,], \qquad E^1 {E^1}^\top = I + S S^\top .
"""

from collections.abc import Callable
from typing import Protocol

import torch


class TokenEmbeddings(Protocol):
    """The embeddings as training of p uses them."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of p."""
        ...

    def scores(self, directions: torch.Tensor) -> torch.Tensor:
        """Return ``E @ directions``: (dimension,) or (dimension, m) -> one row per token."""
        ...

    def pull_back(self, per_token: torch.Tensor) -> torch.Tensor:
        """Return ``E.T @ per_token``: (n_tokens,) or (n_tokens, m) -> one row per dimension."""
        ...


class ExplicitEmbeddings:
    """Embeddings of finite dimension: `matrix` is E, (n_tokens, d)."""

    def __init__(self, matrix: torch.Tensor) -> None:
        self.matrix = matrix

    @property
    def dimension(self) -> int:
        """Number of coordinates of p, d."""
        return int(self.matrix.shape[1])

    def scores(self, directions: torch.Tensor) -> torch.Tensor:
        """Return ``E @ directions``."""
        return self.matrix @ directions

    def pull_back(self, per_token: torch.Tensor) -> torch.Tensor:
        """Return ``E.T @ per_token``."""
        return self.matrix.T @ per_token


class LimitEmbeddings:
    """The embeddings after one step in the limit: `shifts` is S, (n_tokens, n_outputs)."""

    def __init__(self, shifts: torch.Tensor) -> None:
        self.shifts = shifts

    @property
    def dimension(self) -> int:
        """Number of coordinates of p: n_tokens + n_outputs."""
        return int(sum(self.shifts.shape))

    def scores(self, directions: torch.Tensor) -> torch.Tensor:
        """Return ``[I | S] @ directions``."""
        n_tokens = len(self.shifts)
        return directions[:n_tokens] + self.shifts @ directions[n_tokens:]

    def pull_back(self, per_token: torch.Tensor) -> torch.Tensor:
        """Return ``[I | S].T @ per_token``."""
        return torch.cat([per_token, self.shifts.T @ per_token])


def kernel(embeddings: TokenEmbeddings) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return ``c -> E @ E.T @ c``, in float64, by the Gram matrix where that is small."""
    if isinstance(embeddings, ExplicitEmbeddings):
        matrix = embeddings.matrix
        if matrix.shape[0] <= matrix.shape[1]:
            rows = matrix.to(torch.float64)
            gram = rows @ rows.T
            return lambda per_token: gram @ per_token
        return lambda c: (matrix @ (matrix.T @ c.to(matrix.dtype))).to(torch.float64)
    if isinstance(embeddings, LimitEmbeddings):
        shifts = embeddings.shifts.to(torch.float64)
        return lambda per_token: per_token + shifts @ (shifts.T @ per_token)
    return lambda per_token: embeddings.scores(embeddings.pull_back(per_token))
