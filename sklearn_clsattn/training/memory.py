"""What is kept of documents that have been learnt. It needs no PyTorch, and pickles without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.derivatives import loss_derivatives
from ..model.fitted import FittedAttention

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Memory:
    """The losses of documents that have been trained on, expanded around the model reached.

    Attributes
    ----------
    center : ndarray of shape (n_tokens + 1, 1 + n_outputs)
        That model's parameters, laid out as :func:`loss_derivatives` lays out its derivatives.

    loss : float
        The sum of the losses there.

    gradient, curvature : ndarray of shape (n_tokens + 1, 1 + n_outputs)
        Its derivatives.

    attend_cls : bool
        Whether ``<cls>`` attends to itself.
    """

    center: Array
    loss: float
    gradient: Array
    curvature: Array
    attend_cls: bool


@dataclass(frozen=True)
class Stream:
    """What is kept of all documents seen so far.

    Attributes
    ----------
    memory : Memory or None
        What training needs of them.

    shares : ndarray of shape (n_classes, n_tokens)
        :func:`sklearn_clsattn.importance.class_totals` of kind "shares".

    class_weights : ndarray of shape (n_classes,)
        Summed document weights of each class.

    token_weight, n_entries : float
        Sums over documents of document weight times total token weight, and times number of
        tokens.

    selection_counts : ndarray of shape (n_tokens,)
        How often each token was selected, by the model that had just learnt the document.
    """

    memory: Memory | None
    shares: Array
    class_weights: Array
    token_weight: float
    n_entries: float
    selection_counts: NDArray[np.intp]

    @classmethod
    def empty(cls, n_classes: int, n_tokens: int) -> Stream:
        """Return what is kept of no documents."""
        shares, counts = np.zeros((n_classes, n_tokens)), np.zeros(n_tokens, dtype=np.intp)
        return cls(None, shares, np.zeros(n_classes), 0.0, 0.0, counts)


def add_batch(
    memory: Memory | None,
    model: FittedAttention,
    X: Any,
    codes: NDArray[np.intp],
    weights: Array,
) -> Memory:
    """Return the memory of the earlier documents and these, around a new model.

    Parameters
    ----------
    memory : Memory or None
        Of earlier documents, None if there are none.

    model : FittedAttention
        What was reached with all of them.

    X : CSR matrix of shape (n_documents, n_tokens)
        The new documents.

    codes, weights : ndarray of shape (n_documents,)
        Their class codes and weights.

    Returns
    -------
    Memory
    """
    center = parameters_of(model)
    loss, gradient, curvature = loss_derivatives(model, X, codes, weights)
    if memory is not None:
        moved = center - memory.center
        bent = memory.curvature * moved
        loss += memory.loss + float(((memory.gradient + 0.5 * bent) * moved).sum())
        gradient += memory.gradient + bent
        curvature += memory.curvature
    return Memory(center, loss, gradient, curvature, bool(model.cls_weight))


def parameters_of(model: FittedAttention) -> Array:
    """Return a model's parameters, a copy, laid out as the derivatives are."""
    mass = model.cls_score + np.log(model.cls_weight) if model.cls_weight else 0.0
    tokens = np.column_stack([model.scores, model.values])
    return np.vstack([tokens, [mass, *model.intercept]])
