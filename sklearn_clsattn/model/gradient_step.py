r"""Random embeddings, and one exact full-batch gradient step on them.

The loss depends on the embeddings through the scores :math:`a = E p` and the values
:math:`b_k = E v_k` alone, so that its gradient is of rank 1 + K, whatever d:

.. math::

    \frac{\partial L}{\partial E}
        = \frac{\partial L}{\partial a} p^\top + \sum_k \frac{\partial L}{\partial b_k} v_k^\top .

The two factors come from the closed form of :mod:`sklearn_clsattn.model.objective`: two sparse
products with 1 + K columns. No document is ever looked up position by position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .bag import TokenBag
from .objective import AttentionObjective, Units


@dataclass(frozen=True)
class RandomEmbeddings:
    r"""The paper's random start.

    Attributes
    ----------
    embeddings : torch.Tensor of shape (n_tokens, d)
        :math:`E^0`, rows drawn from N(0, I / d).

    cls_embedding : torch.Tensor of shape (d,)
        :math:`p^0`, drawn from N(0, I / d).

    output_vectors : torch.Tensor of shape (n_outputs, d)
        The v_k, orthonormal, uniformly random.
    """

    embeddings: torch.Tensor
    cls_embedding: torch.Tensor
    output_vectors: torch.Tensor


def draw_embeddings(
    n_tokens: int,
    n_outputs: int,
    embedding_dim: int,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> RandomEmbeddings:
    """Draw E^0, p^0 and the output vectors.

    They are drawn on the CPU: a seed gives the same numbers on every device.

    Parameters
    ----------
    n_tokens, n_outputs : int
        Size of the vocabulary, and 1 for two classes or K for K > 2.

    embedding_dim : int
        d, at least 1 + n_outputs.

    seed : int
        Of PyTorch's generator.

    dtype, device
        Of the tensors returned.

    Returns
    -------
    RandomEmbeddings

    Raises
    ------
    ValueError
        If `embedding_dim` leaves no room for p beside the output vectors.
    """
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) are to be independent), got {embedding_dim}."
        )
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


def unscaled_objective(
    bag: TokenBag,
    targets: torch.Tensor,
    sample_weight: torch.Tensor,
    n_outputs: int,
    *,
    cls_weight: float = 0.0,
    cls_penalty: float = 0.0,
) -> AttentionObjective:
    """Return the objective without penalties, whose parameters are scores and values themselves.

    Rows ``[a_s, b_s1, .., b_sK]`` and a last row ``[a_0, beta_1, .., beta_K]``.

    Parameters
    ----------
    bag : TokenBag of shape (n_documents, n_tokens)

    targets : torch.Tensor of shape (n_documents,)
        :func:`sklearn_clsattn.model.targets.encode_targets`.

    sample_weight : torch.Tensor of shape (n_documents,)
        Document weights.

    n_outputs : int
        1 for two classes, K for K > 2.

    cls_weight : float, default=0
        Weight of ``<cls>`` in every document; 0 leaves it out, as the paper does.

    cls_penalty : float, default=0
        Strength of the penalty on the score of ``<cls>``.

    Returns
    -------
    AttentionObjective
    """
    zeros = torch.zeros(bag.shape[1], dtype=bag.dtype, device=bag.device)
    ones = torch.ones((bag.shape[1], n_outputs), dtype=bag.dtype, device=bag.device)
    return AttentionObjective(
        bag,
        targets,
        sample_weight,
        Units(zeros, ones, cls_weight),
        value_C=np.inf,
        score_C=np.inf,
        cls_penalty=cls_penalty,
    )


def embedding_gradient(
    objective: AttentionObjective,
    embeddings: torch.Tensor,
    cls_embedding: torch.Tensor,
    output_vectors: torch.Tensor,
    last_row: torch.Tensor | None = None,
) -> tuple[float, torch.Tensor]:
    """Return the mean loss and the two factors of its gradient by the embeddings.

    Parameters
    ----------
    objective : AttentionObjective
        From :func:`unscaled_objective`.

    embeddings : torch.Tensor of shape (n_tokens, d)
        E.

    cls_embedding : torch.Tensor of shape (d,)
        p.

    output_vectors : torch.Tensor of shape (n_outputs, d)
        The v_k.

    last_row : torch.Tensor of shape (1 + n_outputs,), default=None
        Score of ``<cls>`` and intercepts; None is 0.

    Returns
    -------
    loss : float
        Mean loss.

    gradient : torch.Tensor of shape (n_tokens + 1, 1 + n_outputs)
        dL/da and dL/db of every token, and the derivatives by `last_row`. With
        ``D = gradient[:-1]``, dL/dE is ``D @ vstack([p, v])``, dL/dp is ``E.T @ D[:, 0]`` and
        dL/dv_k is ``E.T @ D[:, k]``.
    """
    parameters = objective.start()
    torch.mv(embeddings, cls_embedding, out=parameters[:-1, 0])
    parameters[:-1, 1:] = embeddings @ output_vectors.T
    if last_row is not None:
        parameters[-1] = last_row
    return objective(parameters)
