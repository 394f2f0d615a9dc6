"""The paper's one gradient step on random embeddings, exactly and in its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from .._bags import Bags
from .._targets import Targets
from .._types import Array
from .._validation import checked_documents
from ..training.statistics import CorpusStatistics

# Largest spectral norm of the shifts that the default step makes, for more than two classes and in
# finite dimensions: below the gap in which the flow selects one class's relevant tokens only.
LARGEST_SPECTRAL_NORM = 2.0
FINITE_SPECTRAL_NORM = 1.4


@dataclass(frozen=True, eq=False)
class OneStepEmbeddings:
    """The result of :func:`one_step_embeddings`."""

    embeddings: Any
    initial_embeddings: Any
    cls_embedding: Array
    output_vectors: Array
    shifts: Array
    step_size: float

    def lemma_error(self) -> Array:
        """Return the distance of each token's step from Lemma 4.1, (n_tokens,)."""
        if sp.issparse(self.embeddings):
            return np.zeros(len(self.shifts))
        rest = self.embeddings - self.initial_embeddings
        rest -= self.shifts @ self.output_vectors
        return np.asarray(np.linalg.norm(rest, axis=1) / self.step_size)


def one_step_embeddings(
    X: Any,
    y: ArrayLike,
    *,
    step_size: float,
    embedding_dim: int | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> OneStepEmbeddings:
    r"""Make one full-batch gradient step on random token embeddings.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. Never altered.
    y : array-like of shape (n_documents,)
        Class labels, of any type, two classes or more.
    step_size : float
        :math:`\eta_0`, positive.
    embedding_dim : int, default=None
        d: at least 2, and at least 1 + K for K > 2 classes. None is the limit of infinitely many
        dimensions, which needs no random numbers and stores no matrix of size n_tokens times d.
    random_state : int, RandomState instance or None, default=None
        Draws :math:`E^0, p^0` and v. Pass an int for reproducible results.

    Returns
    -------
    result : object
        It has these attributes, where `n_outputs` is 1 for two classes and K for K > 2. In the
        limit d is n_tokens + n_outputs: the basis is the rows of :math:`E^0` and the output
        vectors.

        embeddings : {ndarray, csr_array} of shape (n_tokens, d)
            :math:`E^1`; in the limit the sparse matrix [I | S].
        initial_embeddings : {ndarray, csr_array} of shape (n_tokens, d)
            :math:`E^0`; in the limit the sparse matrix [I | 0].
        cls_embedding : ndarray of shape (d,)
            :math:`p^0`. In the limit its products with embeddings and output vectors vanish: it
            is 0.
        output_vectors : ndarray of shape (n_outputs, d)
            The :math:`v_k`, orthonormal.
        shifts : ndarray of shape (n_tokens, n_outputs)
            S, the change along the output vectors according to Lemma 4.1:
            :math:`\tfrac{\eta_0}{2} \alpha_s` for two classes, :math:`\eta_0 \alpha_{sk}` for K,
            with the signed frequency alpha.
        step_size : float
            :math:`\eta_0`.
        lemma_error() : ndarray of shape (n_tokens,)
            The distance of each token's step from the lemma, in units of the step: the norm of
            :math:`E^1_s - E^0_s - \sum_k S_{sk} v_k`, divided by :math:`\eta_0`. It is of the order
            :math:`d^{-1/2}`, and 0 in the limit.

    Notes
    -----
    Rows of :math:`E^0` and :math:`p^0` are drawn from N(0, I / d); v is a uniformly random unit
    vector, or K orthonormal ones. The step on the mean loss, without self-attention of ``<cls>``
    and intercept, is computed exactly by two sparse products. By Lemma 4.1 of Wu et al. (2025),
    arXiv:2505.17282, on any data,

    .. math:: E^1_s = E^0_s + \frac{\eta_0}{2} \alpha_s v + O(\eta_0 d^{-1/2}),

    and for K classes :math:`E^1_s = E^0_s + \eta_0 \sum_k \alpha_{sk} v_k + O(\eta_0 d^{-1/2})`.
    As d grows, :math:`E^1 {E^1}^\top` tends to :math:`I + S S^\top`, S being `shifts`.

    Examples
    --------
    >>> from sklearn_clsattn.paper import one_step_embeddings
    >>> X, y = [[1, 0, 2], [0, 1, 2]], ["bad", "good"]
    >>> step = one_step_embeddings(X, y, step_size=6, embedding_dim=4096, random_state=0)
    >>> step.shifts.round(3)
    array([[-0.5],
           [ 0.5],
           [ 0. ]])
    >>> bool(step.lemma_error().max() < 0.02)
    True
    >>> one_step_embeddings(X, y, step_size=6).embeddings.toarray()
    array([[ 1. ,  0. ,  0. , -0.5],
           [ 0. ,  1. ,  0. ,  0.5],
           [ 0. ,  0. ,  1. ,  0. ]])
    """
    counts, targets = checked_documents(X, y)
    bags = Bags(counts)
    statistics = CorpusStatistics.from_documents(bags, targets, np.ones(len(targets)))
    shifts = step_size * shifts_per_step(statistics.importance)
    if embedding_dim is None:
        return _limit_of_one_step(shifts, step_size)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return _one_step(bags, targets, shifts, step_size, embedding_dim, seed)


def _limit_of_one_step(shifts: Array, step_size: float) -> OneStepEmbeddings:
    """Return the embeddings after one step in infinitely many dimensions."""
    n_tokens, n_outputs = shifts.shape
    width = n_tokens + n_outputs
    return OneStepEmbeddings(
        embeddings=limit_embeddings(shifts),
        initial_embeddings=sp.eye_array(n_tokens, width, format="csr"),
        cls_embedding=np.zeros(width),
        output_vectors=np.eye(n_outputs, width, k=n_tokens),
        shifts=shifts,
        step_size=step_size,
    )


def _one_step(
    bags: Bags, targets: Targets, shifts: Array, step_size: float, embedding_dim: int, seed: int
) -> OneStepEmbeddings:
    """Return the embeddings after one step from a random start."""
    from ..training.loss import AttentionLoss  # needs PyTorch, which nothing else here does
    from ._trainer import draw_embeddings, take_one_step

    n_tokens, n_outputs = shifts.shape
    E, p, v = draw_embeddings(n_tokens, n_outputs, embedding_dim, seed=seed)
    initial_embeddings = E.numpy().copy()
    take_one_step(AttentionLoss(bags, targets, np.ones(len(targets))), E, p, v, step_size)
    return OneStepEmbeddings(
        embeddings=E.numpy(),
        initial_embeddings=initial_embeddings,
        cls_embedding=p.numpy().copy(),
        output_vectors=v.numpy().copy(),
        shifts=shifts,
        step_size=step_size,
    )


def shifts_per_step(importance: Array) -> Array:
    """Return S of a step of size 1, (n_tokens, n_outputs), by Lemma 4.1."""
    if importance.ndim == 1:
        return 0.5 * importance[:, None]
    return np.ascontiguousarray(importance.T)


def limit_embeddings(shifts: Array) -> sp.csr_array:
    """Return [I | S] as a sparse array, (n_tokens, n_tokens + n_outputs)."""
    return sp.csr_array(sp.hstack([sp.eye_array(len(shifts)), sp.csr_array(shifts)]))


def default_step_size(importance: Array, embedding_dim: int | None) -> float:
    """Return the step size after which the largest value is 1, or less."""
    per_step = shifts_per_step(importance)
    largest = float(np.abs(per_step).max(initial=0.0))
    if not largest > 0:
        return 1.0
    if embedding_dim is not None:
        largest_norm = FINITE_SPECTRAL_NORM
    elif per_step.shape[1] > 1:
        largest_norm = LARGEST_SPECTRAL_NORM
    else:
        largest_norm = np.inf
    spectral_norm = float(np.sqrt(np.linalg.eigvalsh(per_step.T @ per_step)[-1]))
    return min(1.0 / largest, largest_norm / spectral_norm)
