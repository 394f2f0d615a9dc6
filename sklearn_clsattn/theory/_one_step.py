"""The paper's one gradient step on random embeddings, exactly and in its limit."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, check_scalar

from ..importance import class_totals, signed_frequency
from ._documents import CodedDocuments, coded_documents, listed

if TYPE_CHECKING:
    from ._token_embeddings import LimitEmbeddings


@dataclass(frozen=True, eq=False)
class OneStepEmbeddings:
    r"""Embeddings after one full-batch gradient step, with the prediction of Lemma 4.1.

    In the limit of infinitely many dimensions, vectors are in the basis of
    :class:`~sklearn_clsattn.theory._token_embeddings.LimitEmbeddings`, with a coordinate for each
    token followed by one for each output, so that d is n_tokens + n_outputs there. `n_outputs`
    is 1 for two classes and K for K > 2.

    Attributes
    ----------
    embeddings : ndarray of shape (n_tokens, d) or None
        :math:`E^1`. None in the limit, where it is [I | S] and never stored.
    initial_embeddings : ndarray of shape (n_tokens, d) or None
        :math:`E^0`. None in the limit.
    cls_embedding : ndarray of shape (d,)
        :math:`p^0`. In the limit its products with all embeddings and output vectors vanish, so
        that it is 0.
    output_vectors : ndarray of shape (n_outputs, d)
        The :math:`v_k`, orthonormal.
    importance : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency alpha.
    shifts : ndarray of shape (n_tokens, n_outputs)
        S, what the step writes along the output vectors by Lemma 4.1:
        :math:`\tfrac{\eta_0}{2} \alpha_s` for two classes, :math:`\eta_0 \alpha_{sk}` for K.
    step_size : float
        :math:`\eta_0`.
    classes : ndarray of shape (n_classes,)
        The labels found in y, sorted. For two, positive importance is evidence for the second.

    See Also
    --------
    one_step_embeddings : The function that returns it.
    """

    embeddings: NDArray[np.float64] | None
    initial_embeddings: NDArray[np.float64] | None
    cls_embedding: NDArray[np.float64]
    output_vectors: NDArray[np.float64]
    importance: NDArray[np.float64]
    shifts: NDArray[np.float64]
    step_size: float
    classes: NDArray[Any]

    @property
    def limit(self) -> LimitEmbeddings:
        """The embeddings that these tend to as d grows, [I | S], as maps that are never stored."""
        import torch

        from ._token_embeddings import LimitEmbeddings

        return LimitEmbeddings(torch.from_numpy(self.shifts))

    def limit_kernel(self) -> NDArray[np.float64]:
        r"""Return :math:`I + S S^\top`, what :math:`E^1 {E^1}^\top` tends to as d grows.

        Returns
        -------
        kernel : ndarray of shape (n_tokens, n_tokens)
            Dense: 8 bytes for each pair of tokens. `limit` offers products without it.
        """
        kernel = self.shifts @ self.shifts.T
        kernel[np.diag_indices_from(kernel)] += 1.0
        return kernel

    def lemma_error(self) -> NDArray[np.float64]:
        r"""Return how far each token's step is from that of Lemma 4.1, in units of the step.

        Returns
        -------
        error : ndarray of shape (n_tokens,)
            The norm of :math:`E^1_s - E^0_s - \sum_k S_{sk} v_k`, divided by :math:`\eta_0`: of
            the order :math:`d^{-1/2}`, and 0 in the limit.
        """
        if self.embeddings is None or self.initial_embeddings is None:
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
    sample_weight: ArrayLike | None = None,
    centred: bool = False,
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
        d, at least 2, or 1 + K for K > 2 classes. None is the limit of infinitely many
        dimensions: nothing is drawn, and nothing of the size n_tokens times d is stored.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights; a weight of 2 is the document twice.
    centred : bool, default=False
        Whether all classes have the same total weight in the loss, n / K: each document is
        weighted by :math:`n / (K n_k)`, :math:`n_k` being the weight of its class, which is the
        step of a model whose intercepts are the classes' log-odds. False is the paper's step,
        in which importance is biased by the class prior.
    random_state : int, RandomState instance or None, default=None
        Draws :math:`E^0, p^0` and v. Pass an int for the same ones each time.

    Returns
    -------
    result : OneStepEmbeddings
        :math:`E^1` with :math:`E^0`, :math:`p^0`, v, and what Lemma 4.1 predicts.

    Raises
    ------
    ValueError
        If `step_size` is not positive, `embedding_dim` is too small, a document has no tokens
        (the paper's model does not define its output), `X` is negative, not finite or not
        two-dimensional, lengths disagree, there are fewer than two classes, or a class has no
        weight.
    TypeError
        If `step_size` is not a number or `embedding_dim` not an integer.

    See Also
    --------
    signed_frequency : The importance alpha that the step learns.
    check_single_relevant_token : Whether the theorem about training on from here applies.

    Notes
    -----
    Rows of :math:`E^0` and :math:`p^0` are drawn from N(0, I / d); v is a uniformly random unit
    vector, or K orthonormal ones. With the loss L of the paper's model (no self-attention of
    ``<cls>``, no intercept), logistic for two classes and cross entropy for K,

    .. math:: E^1 = E^0 - \eta_0 \frac{\partial L}{\partial E}(E^0, p^0, v)

    is computed exactly, in double precision, by two sparse products. By Lemma 4.1 of [1]_,

    .. math:: E^1_s = E^0_s + \frac{\eta_0}{2} \alpha_s v + O(\eta_0 d^{-1/2}),

    on any data. For K classes the rebuttal's extension is
    :math:`E^1_s = E^0_s + \eta_0 \sum_k \alpha_{sk} v_k + O(\eta_0 d^{-1/2})` with the
    importance of :func:`signed_frequency`. As d grows,
    :math:`E^1 {E^1}^\top` tends to :math:`I + S S^\top`, entry by entry, S being `shifts`.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.theory import one_step_embeddings
    >>> X, y = [[1, 0, 2], [0, 1, 2]], ["bad", "good"]
    >>> step = one_step_embeddings(X, y, step_size=6, embedding_dim=4096, random_state=0)
    >>> step.importance.round(3)
    array([-0.167,  0.167,  0.   ])
    >>> bool(step.lemma_error().max() < 0.02)
    True
    >>> one_step_embeddings(X, y, step_size=6).limit_kernel()
    array([[ 1.25, -0.25,  0.  ],
           [-0.25,  1.25,  0.  ],
           [ 0.  ,  0.  ,  1.  ]])
    """
    check_scalar(step_size, "step_size", Real, min_val=0, include_boundaries="neither")
    if not np.isfinite(step_size):
        raise ValueError(f"step_size must be finite, got {step_size!r}.")
    if embedding_dim is not None:
        check_scalar(embedding_dim, "embedding_dim", Integral, min_val=2)
    documents = coded_documents(X, y, sample_weight)
    _refuse_empty(documents)
    n_classes, n_tokens = len(documents.classes), documents.X.shape[1]
    n_outputs = 1 if n_classes == 2 else n_classes

    shares = class_totals(documents.X, documents.codes, n_classes, documents.weights, kind="shares")
    importance = signed_frequency(shares, documents.class_weights, centred=centred)
    step_size = float(step_size)
    if n_classes == 2:
        shifts = (step_size / 2 * importance)[:, None]
    else:
        shifts = np.ascontiguousarray(step_size * importance.T)
    embeddings = initial = None
    p, v = np.zeros(n_tokens + n_outputs), np.eye(n_outputs, n_tokens + n_outputs, k=n_tokens)
    if embedding_dim is not None:
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        initial, p, v, embeddings = _initial_and_gradient(
            documents, n_outputs, int(embedding_dim), centred, seed
        )
        embeddings *= -step_size
        embeddings += initial
    return OneStepEmbeddings(
        embeddings=embeddings,
        initial_embeddings=initial,
        cls_embedding=p,
        output_vectors=v,
        importance=importance,
        shifts=shifts,
        step_size=step_size,
        classes=documents.classes,
    )


def _refuse_empty(documents: CodedDocuments) -> None:
    """Raise ValueError where a document that counts has no tokens."""
    empty = np.flatnonzero((np.diff(documents.presence.indptr) == 0) & (documents.weights > 0))
    if len(empty):
        raise ValueError(
            f"Every document must have a token, but {len(empty)} have none (rows "
            f"{listed(empty)}): the paper's model does not define their output. Remove these "
            "rows, or give them weight 0."
        )


def _initial_and_gradient(
    documents: CodedDocuments, n_outputs: int, embedding_dim: int, centred: bool, seed: int
) -> tuple[NDArray[np.float64], ...]:
    """Return E^0, p^0 and v as drawn, and dL/dE there."""
    import torch  # here, because the rest of the folder does not need it

    from .._core.bag import TokenBag
    from .._core.objective import AttentionLoss, encode_targets
    from ._gradient_step import draw_embeddings, embedding_gradient

    weights, codes = documents.weights, documents.codes
    n_classes = len(documents.classes)
    if centred:
        balance = weights.sum() / (n_classes * documents.class_weights)
        weights = weights * balance[codes]
    loss = AttentionLoss(
        TokenBag(sp.csr_array(documents.X), dtype=np.float64),
        encode_targets(codes, n_classes),
        torch.from_numpy(weights),
        n_outputs,
    )
    drawn = draw_embeddings(documents.X.shape[1], n_outputs, embedding_dim, seed=seed)
    initial, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    factors = embedding_gradient(loss, initial, p, v)[1][:-1]
    gradient = factors @ torch.cat([p[None], v])
    return initial.numpy(), p.numpy(), v.numpy(), gradient.numpy()
