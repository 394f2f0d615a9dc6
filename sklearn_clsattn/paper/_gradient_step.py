"""Random embeddings, and one exact full-batch gradient step on them, of rank 1 + K whatever d."""

from dataclasses import dataclass

import torch

from .._core.loss import AttentionLoss
from .._training import check_memory


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
    copies: int = 1,
) -> RandomEmbeddings:
    """Draw E^0, p^0 and the output vectors; `copies` is how many E training has in memory."""
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) are to be independent), got {embedding_dim}."
        )
    least = embedding_dim * (copies * dtype.itemsize * n_tokens + 8 * (1 + 2 * n_outputs))
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


def gradient_factors(
    loss: AttentionLoss,
    embeddings: torch.Tensor,
    cls_embedding: torch.Tensor,
    output_vectors: torch.Tensor,
) -> torch.Tensor:
    """Return D, (n_tokens, 1 + n_outputs): the mean loss's gradient by scores and values.

    The gradient by the embeddings is ``D @ vstack([p, v])``, that by p is ``E.T @ D[:, 0]``.
    """
    directions = torch.cat([cls_embedding[None], output_vectors])
    matrix = torch.cat([embeddings @ directions.T, directions.new_zeros(1, len(directions))])
    return loss(matrix)[1][:-1].div_(loss.total_weight)


def add_step(loss: AttentionLoss, drawn: RandomEmbeddings, step_size: float) -> None:
    """Make one gradient step on drawn embeddings, in place as they are large."""
    p, v = drawn.cls_embedding, drawn.output_vectors
    factors = gradient_factors(loss, drawn.embeddings, p, v)
    drawn.embeddings.addmm_(factors.mul_(-step_size), torch.cat([p[None], v]))
    if not bool(torch.isfinite(drawn.embeddings).all()):
        raise ValueError(
            f"step_size={step_size:.3g} makes embeddings that are not finite: choose a smaller "
            "one, or leave step_size=None, the default rule."
        )
