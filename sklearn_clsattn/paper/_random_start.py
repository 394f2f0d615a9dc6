"""The paper's random start, and one exact gradient step on its embeddings."""

import torch

from ..training.loss import AttentionLoss

_ROWS_AT_ONCE = 1024


def draw_embeddings(
    n_tokens: int,
    n_outputs: int,
    embedding_dim: int,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw E^0, (n_tokens, d), and p^0 from N(0, I / d), and orthonormal v_k, (n_outputs, d).

    All are drawn in double precision and then converted, so that a seed stands for the same start
    in single precision.
    """
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) must be independent), got {embedding_dim}."
        )
    generator = torch.Generator().manual_seed(seed)
    scale = embedding_dim**-0.5
    # 1) p
    p = torch.randn(embedding_dim, generator=generator, dtype=torch.float64) * scale
    # 2) v by Gram-Schmidt with positive diagonal, so that the directions are uniformly random
    gaussian = torch.randn(embedding_dim, n_outputs, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(gaussian)
    v = (q * torch.sign(torch.diagonal(r))).T.contiguous()
    # 3) E, which is large: only a block of rows is ever held in double precision besides it
    E = torch.empty(n_tokens, embedding_dim, dtype=dtype)
    for block in E.split(_ROWS_AT_ONCE):
        drawn = torch.randn(block.shape, generator=generator, dtype=torch.float64)
        block.copy_(drawn.mul_(scale))
    return E.to(device), p.to(device, dtype), v.to(device, dtype)


def take_one_step(
    loss: AttentionLoss, E: torch.Tensor, p: torch.Tensor, v: torch.Tensor, step_size: float
) -> None:
    """Make one exact gradient step of the mean loss on E, in place as it is large.

    With D, (n_tokens, 1 + n_outputs), the gradient by scores and values, the gradient by E is
    D [p, v_1, ..].
    """
    directions = torch.cat([p[None], v])
    cls_row = directions.new_zeros(1, len(directions))
    matrix = torch.cat([E @ directions.T, cls_row])
    _, gradient = loss(matrix)
    factors = gradient[:-1].div_(loss.total_weight)
    E.addmm_(factors.mul_(-step_size), directions)
