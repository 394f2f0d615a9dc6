r"""One gradient step on random embeddings, then the embedding of ``<cls>``: the paper's regime.

:func:`take_step` draws the embeddings, makes one exact full-batch gradient step and freezes them.
With infinitely many dimensions (``embedding_dim=None``) nothing is drawn: Lemma 4.1 of the paper
is exact there. Then p is trained: without penalties, as in the paper
(:mod:`sklearn_clsattn.paper._gradient_flow`), or, for prediction, with penalties
(:mod:`sklearn_clsattn.paper._cls_regression`).

**The step size.** By default :math:`\eta_0` makes the most important token's value 1
(measured in ``docs/paper.md``): as the step writes :math:`\tfrac{\eta_0}{2} \alpha_s` (two classes)
or :math:`\eta_0 \alpha_{sk}` along the output vectors, it is :math:`2 / \max_s |\alpha_s|` or
:math:`1 / \max_{sk} |\alpha_{sk}|`. For more than two classes it is also at most the one at which
the spectral norm of what is written is 2, a bound of ours: many important tokens add up to a large
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.objective import AttentionLoss
from ..theory._gradient_step import RandomEmbeddings, draw_embeddings, embedding_gradient
from ..theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings, TokenEmbeddings
from ._embedding_source import RedrawnEmbeddings

Array = NDArray[np.float64]

LARGEST_SPECTRAL_NORM = 2.0
"""Of what the default step writes, for more than two classes."""

FLOW_SPECTRAL_NORM = 1.4
"""The same where p alone is trained afterwards in finite dimensions, for two classes too.

A small step, below the gap in which the flow selects one class's relevant tokens only."""

LARGEST_VALUE = 5.0
"""Above this the logistic loss saturates, and training of p takes longer."""


@dataclass(frozen=True)
class FrozenEmbeddings:
    r"""Embeddings after the step, on the device of training.

    embeddings : :math:`E^1`
    values : (n_tokens, n_outputs), :math:`E^1 v_k`
    cls_embedding : (dimension,), :math:`p^0` in the coordinates of `embeddings`; 0 in the limit
    output_vectors : (n_outputs, dimension), the v_k
    step_size : :math:`\eta_0`
    warning : why the step size is outside the range that works, or ""
    seed : of the random start
    step : (n_tokens, 1 + n_outputs), minus the step size times the two factors of the gradient;
        None in the limit
    """

    embeddings: TokenEmbeddings
    values: torch.Tensor
    cls_embedding: torch.Tensor
    output_vectors: torch.Tensor
    step_size: float
    warning: str
    seed: int
    step: torch.Tensor | None

    def located(self, cls_embedding: Array, scales: Array) -> RedrawnEmbeddings | None:
        """Return p, the v_k times their scales, and E^1 for a fitted model; None in the limit."""
        if self.step is None:
            return None
        return RedrawnEmbeddings(
            cls_embedding,
            scales[:, None] * self.output_vectors.to("cpu", torch.float64).numpy(),
            len(self.values),
            self.seed,
            self.values.dtype == torch.float32,
            self.step.cpu().numpy(),
        )


def take_step(
    loss: AttentionLoss,
    importance: Array,
    *,
    step_size: float | None,
    embedding_dim: int | None,
    seed: int,
    for_flow: bool = False,
) -> FrozenEmbeddings:
    """Draw random embeddings, make one full-batch gradient step on them, and freeze them.

    `loss` is without ``<cls>``; a document without tokens has no part in its gradient.
    `importance`, (n_tokens,) or (n_classes, n_tokens), is the signed frequency under the same
    weights. `step_size` None is the default rule, which is smaller in finite dimensions if p alone
    is trained afterwards (`for_flow`); `embedding_dim` None is the limit.
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
    warning = _step_size_warning(step_size, default, largest, embedding_dim, len(per_step))
    n_tokens, n_outputs = per_step.shape

    if embedding_dim is None:
        shifts = torch.from_numpy(step_size * per_step).to(loss.bag.device, loss.bag.dtype)
        limit = LimitEmbeddings(shifts)
        return FrozenEmbeddings(
            embeddings=limit,
            values=_finite(shifts, step_size),
            cls_embedding=shifts.new_zeros(limit.dimension),
            output_vectors=_last_unit_vectors(limit.dimension, n_outputs, shifts),
            step_size=step_size,
            warning=warning,
            seed=seed,
            step=None,
        )

    bag = loss.bag
    drawn = draw_embeddings(
        n_tokens, n_outputs, embedding_dim, seed=seed, dtype=bag.dtype, device=bag.device
    )
    matrix, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    step = embedding_gradient(loss, matrix, p, v)[1][:-1].mul_(-step_size)
    matrix.addmm_(step, torch.cat([p[None], v]))  # in place: E is large
    return FrozenEmbeddings(
        embeddings=ExplicitEmbeddings(matrix),
        values=_finite(matrix @ v.T, step_size),
        cls_embedding=p,
        output_vectors=v,
        step_size=step_size,
        warning=warning,
        seed=seed,
        step=step,
    )


def write_step(
    loss: AttentionLoss, drawn: RandomEmbeddings, importance: Array, step_size: float | None
) -> None:
    """Make one full-batch gradient step on drawn embeddings, in place, with all else as drawn.

    `importance` and the default step size are those of :func:`take_step` without a flow.
    """
    if step_size is None:
        per_step = 0.5 * importance[:, None] if importance.ndim == 1 else importance.T
        norm = LARGEST_SPECTRAL_NORM if per_step.shape[1] > 1 else np.inf
        step_size = default_step_size(per_step, norm)
    matrix, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    step = embedding_gradient(loss, matrix, p, v)[1][:-1].mul_(-step_size)
    matrix.addmm_(step, torch.cat([p[None], v]))  # in place: E is large
    _finite(matrix, step_size)


def _finite(values: torch.Tensor, step_size: float) -> torch.Tensor:
    """Return token values that are finite, or raise a ValueError that names the step size."""
    if bool(torch.isfinite(values).all()):
        return values
    raise ValueError(
        f"step_size={step_size:.3g} makes token values that are no longer finite: "
        "choose a smaller one, or leave step_size=None, the default rule."
    )


def default_step_size(per_step: Array, largest_norm: float) -> float:
    """Return the step size of the default rule: the largest value is 1, or less.

    `per_step`, (n_tokens, n_outputs), is what a step of size 1 writes along the output vectors;
    `largest_norm` bounds the spectral norm of what the step writes. 1 where nothing is important.
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
    """Return the warning about a step size, "" if none; `largest` is per unit of it."""
    value = step_size * largest
    if value > LARGEST_VALUE:
        return (
            f"step_size={step_size:.3g} makes token values of up to {value:.2g}: above "
            f"{LARGEST_VALUE:g} the logistic loss saturates, and training takes longer. "
            f"Use at most {LARGEST_VALUE / largest:.3g}, or leave step_size=None, "
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
