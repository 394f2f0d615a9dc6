"""Random embeddings, and one exact full-batch gradient step on them, of rank 1 + K whatever d."""

from dataclasses import dataclass

import torch

from .._core.objective import AttentionLoss
from .._machine import check_memory


@dataclass(frozen=True)
class RandomEmbeddings:
    """The paper's random start."""

    embeddings: torch.Tensor  # (n_tokens, d), E^0, rows drawn from N(0, I / d)
    cls_embedding: torch.Tensor  # (d,), p^0, drawn alike
    output_vectors: torch.Tensor  # (n_outputs, d), the v_k, orthonormal, uniformly random


def draw_embeddings(
    n_tokens: int,
    n_outputs: int,
    embedding_dim: int,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> RandomEmbeddings:
    """Draw E^0, p^0 and the output vectors; `n_outputs` is 1 for two classes, K for K > 2."""
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) are to be independent), got {embedding_dim}."
        )
    least = embedding_dim * (dtype.itemsize * n_tokens + 8 * (1 + 2 * n_outputs))
    check_memory(least, f"embedding_dim={embedding_dim} for {n_tokens} tokens")
    generator = torch.Generator().manual_seed(seed)
    scale = embedding_dim**-0.5
    p = torch.randn(embedding_dim, generator=generator, dtype=torch.float64) * scale
    gaussian = torch.randn(embedding_dim, n_outputs, generator=generator, dtype=torch.float64)
    # Gram-Schmidt with positive diagonal, so that the directions are uniformly random.
    q, r = torch.linalg.qr(gaussian)
    output_vectors = (q * torch.sign(torch.diagonal(r))).T.contiguous()
    # Large, so drawn in the precision wanted and scaled in place.
    embeddings = torch.randn(n_tokens, embedding_dim, generator=generator, dtype=dtype).mul_(scale)
    return RandomEmbeddings(
        embeddings.to(device), p.to(device, dtype), output_vectors.to(device, dtype)
    )


def embedding_gradient(
    loss: AttentionLoss,
    embeddings: torch.Tensor,
    cls_embedding: torch.Tensor,
    output_vectors: torch.Tensor,
    last_row: torch.Tensor | None = None,
) -> tuple[float, torch.Tensor]:
    """Return the mean loss and the two factors of its gradient by the embeddings.

    `last_row` has the score of ``<cls>`` and the intercepts, None for 0. The second result,
    (n_tokens + 1, 1 + n_outputs), has dL/da and dL/db of every token over the derivatives by
    `last_row`. With its first rows D, dL/dE is ``D @ vstack([p, v])``, dL/dp ``E.T @ D[:, 0]``.
    """
    matrix = loss.zeros()
    torch.mv(embeddings, cls_embedding, out=matrix[:-1, 0])
    matrix[:-1, 1:] = embeddings @ output_vectors.T
    if last_row is not None:
        matrix[-1] = last_row
    return loss.mean(matrix)
