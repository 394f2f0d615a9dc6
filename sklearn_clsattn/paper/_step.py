r"""One gradient step on random embeddings, then the embedding of ``<cls>``: the paper's regime.

:func:`take_step` draws the embeddings, makes one exact full-batch gradient step and freezes them.
With infinitely many dimensions (``embedding_dim=None``) nothing is drawn: Lemma 4.1 is exact there.
``docs/theory.md`` says how the default step size is chosen.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.objective import AttentionLoss
from ..theory._gradient_step import RandomEmbeddings, draw_embeddings, embedding_gradient
from ..theory._token_embeddings import ExplicitEmbeddings, LimitEmbeddings, TokenEmbeddings
from ._embedding_source import RedrawnEmbeddings

Array = NDArray[np.float64]

LARGEST_SPECTRAL_NORM = 2.0  # of what the default step writes, for more than two classes
# The same where p alone is trained afterwards in finite dimensions, for two classes too. A small
# step, below the gap in which the flow selects one class's relevant tokens only.
FLOW_SPECTRAL_NORM = 1.4

LARGEST_VALUE = 5.0  # above this the logistic loss saturates, and training of p takes longer


@dataclass(frozen=True)
class FrozenEmbeddings:
    r"""Embeddings after the step, on the device of training."""

    embeddings: TokenEmbeddings  # E^1
    values: torch.Tensor  # (n_tokens, n_outputs), E^1 v_k
    cls_embedding: torch.Tensor  # (dimension,), p^0; 0 in the limit
    output_vectors: torch.Tensor  # (n_outputs, dimension), the v_k
    step_size: float
    warning: str  # why the step size is outside the range that works, or ""
    seed: int  # of the random start
    step: torch.Tensor | None  # as in `RedrawnEmbeddings`; None in the limit

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

    `importance`, (n_tokens,) or (n_classes, n_tokens), is the signed frequency under the weights of
    `loss`. `step_size` None is the default rule, with a bound of its own `for_flow`.
    """
    per_step = _per_step(importance)
    largest = float(np.abs(per_step).max(initial=0.0))
    default = default_step_size(per_step, flow_dim=embedding_dim if for_flow else None)
    if step_size is None:
        step_size = default
    warning = _step_size_warning(step_size, default, largest, embedding_dim, len(per_step))
    n_tokens, n_outputs = per_step.shape

    embeddings: TokenEmbeddings
    if embedding_dim is None:
        values = torch.from_numpy(step_size * per_step).to(loss.bag.device, loss.bag.dtype)
        embeddings, step = LimitEmbeddings(values), None
        p = values.new_zeros(embeddings.dimension)
        v = torch.hstack([values.new_zeros(n_outputs, n_tokens), torch.eye(n_outputs).to(values)])
    else:
        bag = loss.bag
        drawn = draw_embeddings(
            n_tokens, n_outputs, embedding_dim, seed=seed, dtype=bag.dtype, device=bag.device
        )
        step = _added(loss, drawn, step_size)
        embeddings = ExplicitEmbeddings(drawn.embeddings)
        p, v = drawn.cls_embedding, drawn.output_vectors
        values = embeddings.scores(v.T)
    return FrozenEmbeddings(
        embeddings, _finite(values, step_size), p, v, step_size, warning, seed, step
    )


def write_step(
    loss: AttentionLoss, drawn: RandomEmbeddings, importance: Array, step_size: float | None
) -> None:
    """Make the step of :func:`take_step` on drawn embeddings, in place, with all else as drawn."""
    if step_size is None:
        step_size = default_step_size(_per_step(importance))
    _added(loss, drawn, step_size)
    _finite(drawn.embeddings, step_size)


def _per_step(importance: Array) -> Array:
    """Return what a step of size 1 writes along the output vectors, (n_tokens, n_outputs)."""
    return 0.5 * importance[:, None] if importance.ndim == 1 else importance.T


def _added(loss: AttentionLoss, drawn: RandomEmbeddings, step_size: float) -> torch.Tensor:
    """Add a step to drawn embeddings, in place as they are large; return its first factor."""
    matrix, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    step = embedding_gradient(loss, matrix, p, v)[1][:-1].mul_(-step_size)
    matrix.addmm_(step, torch.cat([p[None], v]))
    return step


def _finite(values: torch.Tensor, step_size: float) -> torch.Tensor:
    """Return token values that are finite, or raise a ValueError that names the step size."""
    if bool(torch.isfinite(values).all()):
        return values
    raise ValueError(
        f"step_size={step_size:.3g} makes token values that are no longer finite: "
        "choose a smaller one, or leave step_size=None, the default rule."
    )


def default_step_size(per_step: Array, *, flow_dim: int | None = None) -> float:
    """Return the step size of the default rule: the largest value is 1, or less."""
    largest = float(np.abs(per_step).max(initial=0.0))
    if not largest > 0:
        return 1.0
    norm = LARGEST_SPECTRAL_NORM if per_step.shape[1] > 1 else np.inf
    if flow_dim is not None:
        norm = FLOW_SPECTRAL_NORM
    spectral = float(np.sqrt(np.linalg.eigvalsh(per_step.T @ per_step)[-1]))
    return min(1.0 / largest, norm / spectral)


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
