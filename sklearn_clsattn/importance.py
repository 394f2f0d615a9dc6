"""Token statistics: the importance of each token for each class.

:func:`class_totals` sums a document-term matrix by class; the other functions are formulas on
such totals. Sample weights act as repetition: a document of weight 2 counts as two documents.

Sources: D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025), arXiv:2505.17282, and S. Wang,
C. D. Manning (2012), Baselines and Bigrams, ACL.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ._bags import Bags, is_sparse
from ._docstrings import documented
from ._matrices import as_csr, row_blocks, row_totals, safe_divide
from ._types import Array

__all__ = [
    "class_totals",
    "log_odds",
    "overall_importance",
    "posterior_difference",
    "signed_frequency",
]

_BLOCK_ENTRIES = 1_000_000  # or as many as there are totals, which are added up for each block
_FEW_CLASSES = 6  # up to here, multiplying by zeros costs less than adding entry by entry


def class_totals(
    X: Any,
    y: ArrayLike,
    n_classes: int,
    sample_weight: ArrayLike | None = None,
    *,
    kind: Literal["counts", "shares"] = "counts",
) -> Array:
    """Sum a document-term matrix over the documents of each class.

    Parameters
    ----------
    X : {ndarray, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights c_is.
    y : array-like of shape (n_documents,) or (n_documents, n_classes)
        Class codes, integers from 0 to ``n_classes - 1``; or, if a document can have several
        classes, a matrix with 1 for each class of a document and 0 otherwise.
    n_classes : int
        Number of classes K.
    sample_weight : array-like of shape (n_documents,), default=None
        Weight of each document; ``None`` means 1 for all.
    kind : {"counts", "shares"}, default="counts"
        What is summed: c_is itself, or the share c_is / T_i of the token in its document,
        T_i = sum_s c_is. An empty document has no shares.

    Returns
    -------
    totals : ndarray of shape (n_classes, n_tokens)
        Weighted sums in float64, for any type of `X`.

    Examples
    --------
    >>> from sklearn_clsattn.importance import class_totals
    >>> import numpy as np
    >>> X = np.array([[3, 1], [0, 2], [0, 0]])
    >>> class_totals(X, [0, 1, 1], 2)
    array([[3., 1.],
           [0., 2.]])
    >>> class_totals(X, [0, 1, 1], 2, kind="shares")
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """
    if kind not in ("counts", "shares"):
        raise ValueError(f"kind must be 'counts' or 'shares', got {kind!r}.")
    # 1) checked input; divided by the document's total, a weight turns counts into shares
    if not (sparse.issparse(X) and X.format == "csr"):
        X = as_csr(X if is_sparse(X) else np.asarray(X))
    codes, weights = _checked_codes(y, sample_weight, X.shape[0], n_classes)
    if kind == "shares":
        weights = safe_divide(weights, row_totals(X))
    # 2) the sums
    if isinstance(X, Bags):
        unit_totals = class_totals(X.left, codes, n_classes, weights)
        return np.ascontiguousarray((X.right.T @ unit_totals.T).T)
    if codes.ndim == 2:
        by_class = sparse.csr_array(codes * weights[:, None])
        return np.ascontiguousarray((by_class.T @ X).toarray())
    if n_classes <= _FEW_CLASSES:
        return _totals_by_products(X, codes, n_classes, weights)
    return _totals_by_entries(X, codes, n_classes, weights)


def _checked_codes(
    y: ArrayLike, sample_weight: ArrayLike | None, n_documents: int, n_classes: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return codes, or a row for each document, and weights, (n_documents,)."""
    codes = np.asarray(y)
    weights = np.ones(n_documents) if sample_weight is None else np.asarray(sample_weight, float)
    has_shares = codes.shape == (n_documents, n_classes)
    has_codes = codes.shape == (n_documents,) and codes.dtype.kind in "biu"
    if not ((has_shares or has_codes) and weights.shape == (n_documents,)):
        raise ValueError(
            f"Expected {n_documents} integer class codes and as many weights, got codes of "
            f"shape {codes.shape} and type {codes.dtype} and weights of shape {weights.shape}."
        )
    if n_documents and not (codes.min() >= 0 and (has_shares or codes.max() < n_classes)):
        raise ValueError(
            f"y must contain class codes from 0 to {n_classes - 1}, "
            f"got {codes.min()} to {codes.max()}."
        )
    return codes, weights


def _totals_by_products(X: Any, codes: NDArray[Any], n_classes: int, weights: Array) -> Array:
    """Return the sums of a CSR matrix by class, (n_classes, n_tokens), as matrix products."""
    n_documents, n_tokens = X.shape
    by_class = np.zeros((n_documents, n_classes))
    by_class[np.arange(n_documents), codes] = weights
    sums = np.zeros((n_tokens, n_classes))
    for rows, part in row_blocks(X, max(_BLOCK_ENTRIES, n_classes * n_tokens)):
        sums += part.T @ by_class[rows]
    return np.ascontiguousarray(sums.T)


def _totals_by_entries(X: Any, codes: NDArray[Any], n_classes: int, weights: Array) -> Array:
    """Return the same sums entry by entry, for many classes.

    A product would cost n_classes additions for every entry.
    """
    n_tokens = X.shape[1]
    totals = np.zeros(n_classes * n_tokens)
    for rows, part in row_blocks(X, max(_BLOCK_ENTRIES, n_classes * n_tokens)):
        lengths = np.diff(part.indptr)
        # 1) the cell of the result that each entry belongs to
        cells = np.repeat(codes[rows].astype(np.intp) * n_tokens, lengths)
        cells += part.indices
        # 2) what it adds there
        amounts = np.repeat(weights[rows], lengths)
        amounts *= part.data
        totals += np.bincount(cells, amounts, len(totals))
    return totals.reshape(n_classes, n_tokens)


@documented
def signed_frequency(
    totals_of_shares: ArrayLike, class_weight_totals: ArrayLike, *, centred: bool = False
) -> Array:
    r"""Signed frequency, the importance that one gradient step on the embeddings learns.

    Parameters
    ----------
    totals_of_shares : array-like of shape (n_classes, n_tokens)
        :func:`class_totals` of kind ``"shares"``.
    class_weight_totals : array-like of shape (n_classes,)
        Sum of the sample weights of each class; without weights, its number of documents, including
        empty ones.
    centred : bool, default=False
        Give all classes the same total weight, which removes the bias of the class prior.

    Returns
    -------
    {importance}

    Notes
    -----
    For two classes, with :math:`y_i = \pm 1` and n the sum of sample weights, the definition of
    Wu et al. (2025) is

    .. math:: \alpha_s = \frac 1 n \sum_i y_i \frac{c_{is}}{T_i},

    and for K > 2

    .. math:: \alpha_{sk} = \frac 1 n \sum_i \frac{c_{is}}{T_i}
              \Bigl(\frac{K-1}{K} [y_i = k] - \frac 1 K [y_i \ne k]\Bigr).

    A token that is equally frequent in all classes gets the sign of the larger class. The centred
    form avoids this: it weights each document by n / (K n_k), where n_k is the weight of its class.

    Examples
    --------
    >>> from sklearn_clsattn.importance import signed_frequency
    >>> signed_frequency([[0.5, 1.5], [1.5, 0.5]], [2.0, 2.0])
    array([ 0.25, -0.25])
    """
    totals = _checked_totals(totals_of_shares)
    class_weights = np.asarray(class_weight_totals, dtype=np.float64)
    n_classes = len(totals)
    if class_weights.shape != (n_classes,):
        raise ValueError(
            f"class_weight_totals must have shape ({n_classes},), got {class_weights.shape}."
        )
    total = class_weights.sum()
    divisors = n_classes * class_weights if centred else np.full(n_classes, total)
    shares = safe_divide(totals, divisors[:, None])
    if n_classes == 2:
        return shares[1] - shares[0]
    # Subtract the first class, so that equal shares give exactly 0: their mean may be rounded.
    shares -= shares[0].copy()
    shares -= shares.mean(axis=0)
    return shares


@documented
def posterior_difference(totals: ArrayLike) -> Array:
    r"""Difference of the classes' posterior probabilities, given the token.

    Parameters
    ----------
    totals : array-like of shape (n_classes, n_tokens)
        :func:`class_totals` of kind ``"counts"``.

    Returns
    -------
    {importance}

    Notes
    -----
    For two classes, :math:`P(1|s) - P(0|s) = (n^+_s - n^-_s) / (n^+_s + n^-_s)`, as in
    Wu et al. (2025); for K > 2, the posterior of class k minus the mean posterior of the others,
    :math:`(K P(k|s) - 1) / (K - 1)`. It is 0 for a token that is equally frequent in all classes or
    was never seen, and 1 for a token that only occurs in class k. It favours larger classes.

    Examples
    --------
    >>> from sklearn_clsattn.importance import posterior_difference
    >>> posterior_difference([[1, 0, 2, 0], [3, 5, 2, 0]])
    array([0.5, 1. , 0. , 0. ])
    """
    totals = _checked_totals(totals)
    n_classes = len(totals)
    seen = totals.sum(axis=0)
    if n_classes == 2:
        return safe_divide(totals[1] - totals[0], seen)
    difference = n_classes * totals  # changed in place: it may be large
    difference -= seen
    return safe_divide(difference, (n_classes - 1) * seen)


@documented
def log_odds(totals: ArrayLike, *, smoothing: float = 1.0) -> Array:
    r"""Log-count ratio of each token between the classes, as in NB-SVM.

    Parameters
    ----------
    totals : array-like of shape (n_classes, n_tokens)
        :func:`class_totals` of kind ``"counts"``.
    smoothing : float, default=1.0
        Added to the total of each token in each class. Must be positive.

    Returns
    -------
    {importance}

    Notes
    -----
    With the smoothed totals :math:`p_k = n_k + \beta`, the definition for two classes is that of
    Wang and Manning (2012),

    .. math:: r_s = \log \frac{p_{1s}}{\lVert p_1 \rVert_1}
              - \log \frac{p_{0s}}{\lVert p_0 \rVert_1}.

    For K > 2, the :math:`p_k` of each class is compared with the sum of the others. The size of a
    class has no influence.

    Examples
    --------
    >>> from sklearn_clsattn.importance import log_odds
    >>> log_odds([[3, 0, 1], [0, 3, 1]]).round(3)
    array([-1.386,  1.386,  0.   ])
    """
    totals = _checked_totals(totals)
    if not smoothing > 0:
        raise ValueError(f"smoothing must be a positive number, got {smoothing!r}.")
    smoothed, rest, prior_odds = smoothed_totals(totals, np.full(len(totals), float(smoothing)))
    if len(totals) == 2:
        return np.asarray(np.log(smoothed[1]) - np.log(smoothed[0]) - prior_odds[1])
    smoothed /= rest
    return np.asarray(np.log(smoothed, out=smoothed) - prior_odds[:, None])


def smoothed_totals(
    totals: Array, smoothing: Array, unit: float = 1.0, seen: NDArray[np.bool_] | bool = True
) -> tuple[Array, Array, Array]:
    """Return each class's smoothed totals, its rivals' totals, and the log-odds of their sums.

    The first two are (n_classes, n_tokens), in the unit of `totals`; the last is (n_classes,). With
    two classes, the second is a view of the first.
    """
    # 1) the totals of each class, and of all others
    smoothed = totals * unit
    smoothed += smoothing[:, None]
    if len(totals) == 2:
        rest = smoothed[::-1]
    else:
        rest = smoothed.sum(axis=0) - smoothed
        # By rounding, the difference may be smaller than the smoothing.
        np.maximum(rest, (smoothing.sum() - smoothing)[:, None], out=rest)
    # 2) the log-odds of their sums
    sums = smoothed.sum(axis=1, where=seen)
    other_sums = rest.sum(axis=1, where=seen)
    return smoothed, rest, np.log(sums) - np.log(other_sums)


def overall_importance(importance: ArrayLike) -> Array:
    """Return one non-negative importance per token, over all classes.

    Parameters
    ----------
    importance : array-like of shape (n_tokens,) or (n_classes, n_tokens)
        The result of one of the other importance functions.

    Returns
    -------
    overall : ndarray of shape (n_tokens,)
        Absolute values for two classes, the root mean square over the classes for more. (The
        maximum of many noisy numbers would rank rare tokens first.)

    Examples
    --------
    >>> from sklearn_clsattn.importance import overall_importance
    >>> overall_importance([0.5, -2.0])
    array([0.5, 2. ])
    """
    values = np.asarray(importance, dtype=np.float64)
    if values.ndim == 1:
        return np.abs(values)
    if values.ndim != 2:
        raise ValueError(
            f"importance must have shape (n_tokens,) or (n_classes, n_tokens), got {values.shape}."
        )
    return np.asarray(np.sqrt(np.einsum("ks,ks->s", values, values) / len(values)))


def _checked_totals(totals: ArrayLike) -> Array:
    """Return totals (n_classes, n_tokens) of at least two classes as float64."""
    checked = np.asarray(totals, dtype=np.float64)
    if checked.ndim != 2 or len(checked) < 2:
        raise ValueError(
            "totals must have shape (n_classes, n_tokens) with at least 2 classes, "
            f"got {checked.shape}."
        )
    return checked
