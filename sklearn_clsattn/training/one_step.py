r"""One gradient step on random embeddings, then the embedding of ``<cls>``: the paper's regime.

:func:`take_step` draws the embeddings, makes one exact full-batch gradient step and freezes them.
With infinitely many dimensions (``embedding_dim=None``) nothing is drawn: Lemma 4.1 of the paper
is exact there. From then on p is trained, in one of two readings:

- the paper's letter, :mod:`sklearn_clsattn.training.gradient_flow`;
- the practical form, :mod:`sklearn_clsattn.training.cls_regression` (ours).

**The step size.** By default :math:`\eta_0` makes the most important token's value 1 (ours,
measured in ``docs/paper.md``): as the step writes :math:`\tfrac{\eta_0}{2} \alpha_s` (two classes)
or :math:`\eta_0 \alpha_{sk}` along the output vectors, it is :math:`2 / \max_s |\alpha_s|` or
:math:`1 / \max_{sk} |\alpha_{sk}|`. For more than two classes it is also at most the one at which
the spectral norm of what is written is 2: with many important tokens, and above that, the shared
direction of a class outruns its tokens, and another class's documents select irrelevant ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.embedding_source import RedrawnEmbeddings
from ..model.gradient_step import draw_embeddings, embedding_gradient, unscaled_objective
from ..model.token_embeddings import ExplicitEmbeddings, LimitEmbeddings, TokenEmbeddings

Array = NDArray[np.float64]

LARGEST_SPECTRAL_NORM = 2.0
"""Of what the default step writes, for more than two classes (ours)."""

FLOW_SPECTRAL_NORM = 1.4
"""The same where gradient flow follows in finite dimensions, for two classes too (ours).

All relevant tokens lie along v. What chance gives p along v raises one class's scores and lowers
the other's, by the sum of their values: beyond about this, one class may lose its selection."""

LARGEST_VALUE = 5.0
"""Above this the logistic loss saturates: selection becomes slow, and then wrong."""


@dataclass(frozen=True)
class FrozenEmbeddings:
    r"""Embeddings after the step, on the device of training.

    Attributes
    ----------
    embeddings : TokenEmbeddings
        :math:`E^1`.

    values : torch.Tensor of shape (n_tokens, n_outputs)
        :math:`E^1 v_k`.

    cls_embedding : torch.Tensor of shape (dimension,)
        :math:`p^0`, in the coordinates of `embeddings`; 0 in the limit.

    output_vectors : torch.Tensor of shape (n_outputs, dimension)
        The v_k.

    step_size : float
        :math:`\eta_0`.

    warning : str
        Why the step size is outside the range that works, or "".

    source : RedrawnEmbeddings or None
        Makes :math:`E^1` again; None in the limit.
    """

    embeddings: TokenEmbeddings
    values: torch.Tensor
    cls_embedding: torch.Tensor
    output_vectors: torch.Tensor
    step_size: float
    warning: str
    source: RedrawnEmbeddings | None


def take_step(
    bag: TokenBag,
    targets: torch.Tensor,
    sample_weight: torch.Tensor,
    importance: Array,
    *,
    step_size: float | None,
    embedding_dim: int | None,
    seed: int,
    for_flow: bool = False,
) -> FrozenEmbeddings:
    """Draw random embeddings, make one full-batch gradient step on them, and freeze them.

    Parameters
    ----------
    bag : TokenBag of shape (n_documents, n_tokens)
        The documents. One without tokens has no part in the gradient.

    targets : torch.Tensor of shape (n_documents,)
        :func:`sklearn_clsattn.model.targets.encode_targets`.

    sample_weight : torch.Tensor of shape (n_documents,)
        Document weights.

    importance : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency under the same weights.

    step_size : float or None
        eta_0; None is the default rule.

    embedding_dim : int or None
        d; None is the limit.

    seed : int
        Of the random start.

    for_flow : bool, default=False
        Whether gradient flow on p follows, which in finite dimensions asks for a smaller default.

    Returns
    -------
    FrozenEmbeddings
    """
    binary = importance.ndim == 1
    per_step = 0.5 * importance[:, None] if binary else importance.T
    largest = float(np.abs(per_step).max(initial=0.0))
    norm = LARGEST_SPECTRAL_NORM if per_step.shape[1] > 1 else np.inf
    if for_flow and embedding_dim is not None:
        norm = FLOW_SPECTRAL_NORM
    default = default_step_size(per_step, norm)
    if step_size is None:
        step_size = default
    warning = _step_size_warning(step_size, default, largest, embedding_dim, bag.shape[1])
    n_tokens, n_outputs = per_step.shape

    if embedding_dim is None:
        shifts = torch.from_numpy(step_size * per_step).to(bag.device, bag.dtype)
        limit = LimitEmbeddings(shifts)
        return FrozenEmbeddings(
            embeddings=limit,
            values=shifts,
            cls_embedding=shifts.new_zeros(limit.dimension),
            output_vectors=_last_unit_vectors(limit.dimension, n_outputs, shifts),
            step_size=step_size,
            warning=warning,
            source=None,
        )

    drawn = draw_embeddings(
        n_tokens, n_outputs, embedding_dim, seed=seed, dtype=bag.dtype, device=bag.device
    )
    matrix, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    objective = unscaled_objective(bag, targets, sample_weight, n_outputs)
    step = embedding_gradient(objective, matrix, p, v)[1][:-1].mul_(-step_size)
    matrix.addmm_(step, torch.cat([p[None], v]))  # in place: E is large
    return FrozenEmbeddings(
        embeddings=ExplicitEmbeddings(matrix),
        values=matrix @ v.T,
        cls_embedding=p,
        output_vectors=v,
        step_size=step_size,
        warning=warning,
        source=RedrawnEmbeddings(
            n_tokens,
            n_outputs,
            embedding_dim,
            seed,
            bag.dtype == torch.float32,
            step.cpu().numpy(),
        ),
    )


def default_step_size(per_step: Array, largest_norm: float) -> float:
    """Return the step size of the default rule: the largest value is 1, or less.

    Parameters
    ----------
    per_step : ndarray of shape (n_tokens, n_outputs)
        What a step of size 1 writes along the output vectors.

    largest_norm : float
        Spectral norm at most of what the step writes.

    Returns
    -------
    step_size : float
        1 where nothing is important.
    """
    largest = float(np.abs(per_step).max(initial=0.0))
    if not largest > 0:
        return 1.0
    spectral = float(np.sqrt(np.linalg.eigvalsh(per_step.T @ per_step)[-1]))
    return min(1.0 / largest, largest_norm / spectral)


def _last_unit_vectors(dimension: int, count: int, like: torch.Tensor) -> torch.Tensor:
    vectors = like.new_zeros((count, dimension))
    vectors[torch.arange(count), torch.arange(dimension - count, dimension)] = 1.0
    return vectors


def _step_size_warning(
    step_size: float, default: float, largest: float, embedding_dim: int | None, n_tokens: int
) -> str:
    """Say what is wrong with a step size, if anything; `largest` is per unit of it."""
    value = step_size * largest
    if value > LARGEST_VALUE:
        return (
            f"step_size={step_size:.3g} makes token values of up to {value:.2g}: above "
            f"{LARGEST_VALUE:g} the logistic loss saturates, so that selection becomes slow, and "
            f"then wrong. Use at most {LARGEST_VALUE / largest:.3g}, or leave step_size=None, "
            f"which is {default:.3g} here."
        )
    if embedding_dim is not None and largest > 0:
        noise = float(np.sqrt(2 * np.log(max(n_tokens, 2)) / embedding_dim))
        if value < noise:
            named = f"step_size={step_size:.3g}"
            if step_size == default:
                named = f"The default step_size, {step_size:.3g} here,"
            return (
                f"{named} makes token values of up to {value:.2g}, less than the {noise:.2g} that "
                f"random embeddings of {embedding_dim} dimensions have for noise: importance is "
                f"drowned by it. Use at least {noise / largest:.3g}, or more dimensions."
            )
    return ""
