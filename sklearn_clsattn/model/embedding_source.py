"""Where the token embeddings of a fitted model come from, when somebody asks for them.

Predictions need scores and values, not embeddings: a matrix of shape (n_tokens, d) is made when
asked for, and stored only where it cannot be made again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class EmbeddingSource(Protocol):
    """What makes embeddings."""

    def embeddings(self) -> NDArray[np.floating[Any]]:
        """Return E, shape (n_tokens, d)."""
        ...


@dataclass(frozen=True)
class StoredEmbeddings:
    """Embeddings that every coordinate of was trained.

    Attributes
    ----------
    matrix : ndarray of shape (n_tokens, d)
    """

    matrix: NDArray[np.floating[Any]]

    def embeddings(self) -> NDArray[np.floating[Any]]:
        """Return E."""
        return self.matrix


@dataclass(frozen=True)
class SpannedEmbeddings:
    """The embeddings of least norm that have given scores and values.

    Attributes
    ----------
    scores_and_values : ndarray of shape (n_tokens, 1 + n_outputs)

    directions : ndarray of shape (1 + n_outputs, d)
        p and the v_k, linearly independent.
    """

    scores_and_values: Array
    directions: Array

    def embeddings(self) -> Array:
        """Return E = [a, B] G^-1 [p, v_1, ..], G being the directions' Gram matrix."""
        gram = self.directions @ self.directions.T
        return np.asarray(self.scores_and_values @ np.linalg.solve(gram, self.directions))


@dataclass(frozen=True)
class RedrawnEmbeddings:
    """Random embeddings, and what one gradient step added to them.

    Attributes
    ----------
    n_tokens, n_outputs, embedding_dim, seed : int
        Of :func:`sklearn_clsattn.model.gradient_step.draw_embeddings`.

    single_precision : bool
        Whether they were drawn in float32.

    step : ndarray of shape (n_tokens, 1 + n_outputs) or None
        Minus the step size times the two factors of the gradient; None where no step was made.
    """

    n_tokens: int
    n_outputs: int
    embedding_dim: int
    seed: int
    single_precision: bool
    step: NDArray[np.floating[Any]] | None

    def embeddings(self) -> NDArray[np.floating[Any]]:
        """Return E^0, or E^1 where a step was made. Imports PyTorch, which drew them."""
        import torch

        from .gradient_step import draw_embeddings

        drawn = draw_embeddings(
            self.n_tokens,
            self.n_outputs,
            self.embedding_dim,
            seed=self.seed,
            dtype=torch.float32 if self.single_precision else torch.float64,
        )
        if self.step is not None:
            directions = torch.cat([drawn.cls_embedding[None], drawn.output_vectors])
            # Copied: PyTorch warns of read-only arrays, such as joblib's memory maps.
            drawn.embeddings.addmm_(torch.from_numpy(self.step.copy()), directions)
        return drawn.embeddings.numpy()


@dataclass(frozen=True)
class Geometry:
    """Where p, the output vectors and the embeddings lie in d dimensions.

    Attributes
    ----------
    cls_embedding : ndarray of shape (d,)

    output_vectors : ndarray of shape (n_outputs, d)

    source : EmbeddingSource
        Makes the embeddings.
    """

    cls_embedding: Array
    output_vectors: Array
    source: EmbeddingSource


def random_frame(count: int, embedding_dim: int, seed: int) -> Array:
    """Return orthonormal vectors in a uniformly random position, shape (count, embedding_dim)."""
    gaussian = np.random.default_rng(seed).standard_normal((embedding_dim, count))
    q, r = np.linalg.qr(gaussian)
    return np.ascontiguousarray((q * np.sign(np.diagonal(r))).T)
