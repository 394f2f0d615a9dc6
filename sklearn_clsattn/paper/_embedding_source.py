"""The token embeddings of a fitted model, made on demand.

Predictions need scores and values, not embeddings: E is stored only where it cannot be made again.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StoredEmbeddings:
    """Embeddings of which every coordinate was trained."""

    cls_embedding: Array  # (d,)
    output_vectors: Array  # (n_outputs, d)
    matrix: NDArray[np.floating[Any]]  # (n_tokens, d)

    def token_embeddings(self) -> NDArray[np.floating[Any]]:
        """Return E."""
        return self.matrix


@dataclass(frozen=True)
class RedrawnEmbeddings:
    """Random embeddings, and what one gradient step added to them."""

    cls_embedding: Array  # (d,)
    output_vectors: Array  # (n_outputs, d)
    n_tokens: int
    seed: int
    single_precision: bool  # whether they were drawn in float32
    # (n_tokens, 1 + n_outputs): minus the step size times the gradient's factors, if there was one.
    step: NDArray[np.floating[Any]] | None = None

    def token_embeddings(self) -> NDArray[np.floating[Any]]:
        """Return E^0, or E^1 where a step was made. Imports PyTorch, which drew them."""
        import torch

        from ..theory._gradient_step import draw_embeddings

        n_outputs, dimension = self.output_vectors.shape
        drawn = draw_embeddings(
            self.n_tokens,
            n_outputs,
            dimension,
            seed=self.seed,
            dtype=torch.float32 if self.single_precision else torch.float64,
        )
        if self.step is not None:
            directions = torch.cat([drawn.cls_embedding[None], drawn.output_vectors])
            # Copied: PyTorch warns of read-only arrays, such as joblib's memory maps.
            drawn.embeddings.addmm_(torch.from_numpy(self.step.copy()), directions)
        return drawn.embeddings.numpy()
