"""Sufficiency, comprehensiveness and deletion curves."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from ._perturbation import RankedDocuments

Array = NDArray[np.float64]

ERASER_FRACTIONS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of a document's tokens at which ERASER measures, for `fractions`."""

_DEFAULT_K = 10


def comprehensiveness(
    estimator: Any,
    X: Any,
    scores: Any,
    *,
    k: int | None = None,
    fractions: ArrayLike | None = None,
    target: Any = None,
) -> Array:
    r"""Return how far a prediction falls when the tokens that explain it are removed.

    High where the explanation names the tokens that the model needs.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier with `predict_proba`, or a pipeline that ends in one and starts from
        the token matrix.
    X : {sparse matrix, array-like, data frame} of shape (n_documents, n_tokens)
        Documents, as the estimator takes them. Raw texts have to be vectorized first.
    scores : {sparse matrix, array-like} of shape (n_documents, n_tokens), or a list of them
        Evidence of each token of each document for the explained class. A list has one matrix
        for each class, in the order of ``estimator.classes_``, of which that of the explained
        class is taken; for two classes and scores z of the second, it is ``[-z, z]``.
    k : int, default=None
        How many tokens are removed; 10 where neither `k` nor `fractions` is given.
    fractions : array-like of shape (n_fractions,), default=None
        Shares of the document's tokens, over 0 and up to 1, each rounded up to whole tokens. The
        result is the mean over them, which with `ERASER_FRACTIONS` is ERASER's area over the
        perturbation curve (AOPC).
    target : label or array-like of shape (n_documents,), default=None
        The explained class, of all documents or of each. By default the most probable one.

    Returns
    -------
    drops : ndarray of shape (n_documents,)
        In units of probability, from -1 (removing makes the class certain) to 1; 0 for a
        document without tokens. The mean over documents is what ERASER reports.

    Raises
    ------
    TypeError
        If the estimator has no `predict_proba`, if `X` holds texts, or if `k` is no integer.
    ValueError
        If `scores` has another shape than `X` or holds NaN, if `k` or `fractions` are out of
        range or both given, or if `target` is not a class of the estimator.

    See Also
    --------
    sufficiency : The same for keeping these tokens alone.
    deletion_curve : The probability after each token.

    Notes
    -----
    With m the probability of the explained class, x the document and r the tokens taken
    [1]_ (section 4.3),

    .. math::

        \text{comprehensiveness} = m(x) - m(x \setminus r) .

    The AOPC is the mean of this over the fractions, as in ERASER's published code (their formula
    also counts an empty bin, which divides by 6 instead of 5). The perturbed documents are unlike
    those the model was trained on, and its probabilities for them are part of the measurement:
    values of different models are not on the same scale.

    References
    ----------
    .. [1] J. DeYoung, S. Jain, N. F. Rajani, E. Lehman, C. Xiong, R. Socher, B. C. Wallace (2020).
       ERASER: A Benchmark to Evaluate Rationalized NLP Models. Proceedings of ACL 2020.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.metrics import comprehensiveness
    >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
    >>> model = ClsAttentionClassifier().fit(X, ["good", "good", "bad", "bad"])
    >>> z = model.contributions(X)  # for classes_[1], which is "good"
    >>> drops = comprehensiveness(model, X, [-z, z], k=1)
    >>> bool((drops > 0).all())
    True
    """
    return _drops(estimator, X, scores, k, fractions, target, keep=False)


def sufficiency(
    estimator: Any,
    X: Any,
    scores: Any,
    *,
    k: int | None = None,
    fractions: ArrayLike | None = None,
    target: Any = None,
) -> Array:
    r"""Return how far a prediction falls when only the tokens that explain it are kept.

    Low, or negative, where these tokens are enough for the model to predict as it does.

    Parameters
    ----------
    estimator, X, scores, target
        As in :func:`comprehensiveness`.
    k : int, default=None
        How many tokens are kept; 10 where neither `k` nor `fractions` is given.
    fractions : array-like of shape (n_fractions,), default=None
        Shares of the document's tokens, over 0 and up to 1, each rounded up to whole tokens. The
        result is the mean over them, with `ERASER_FRACTIONS` the AOPC.

    Returns
    -------
    drops : ndarray of shape (n_documents,)
        In units of probability, from -1 to 1; 0 for a document without tokens.

    Raises
    ------
    TypeError
        If the estimator has no `predict_proba`, if `X` holds texts, or if `k` is no integer.
    ValueError
        If `scores` has another shape than `X` or holds NaN, if `k` or `fractions` are out of
        range or both given, or if `target` is not a class of the estimator.

    See Also
    --------
    comprehensiveness : The same for removing these tokens.

    Notes
    -----
    With m the probability of the explained class, x the document and r the tokens taken
    [1]_ (section 4.3),

    .. math::

        \text{sufficiency} = m(x) - m(r) .

    References
    ----------
    .. [1] J. DeYoung, S. Jain, N. F. Rajani, E. Lehman, C. Xiong, R. Socher, B. C. Wallace (2020).
       ERASER: A Benchmark to Evaluate Rationalized NLP Models. Proceedings of ACL 2020.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_clsattn.metrics import sufficiency
    >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
    >>> model = LogisticRegression().fit(X, ["good", "good", "bad", "bad"])
    >>> z = X * model.coef_
    >>> sufficiency(model, X, [-z, z], k=1).round(3)
    array([-0.016,  0.021,  0.021, -0.016])
    """
    return _drops(estimator, X, scores, k, fractions, target, keep=True)


def deletion_curve(
    estimator: Any, X: Any, scores: Any, *, k: int = _DEFAULT_K, target: Any = None
) -> Array:
    """Return the probability of the explained class as its tokens are removed one by one.

    The faster it falls, the better the explanation.

    Parameters
    ----------
    estimator, X, scores, target
        As in :func:`comprehensiveness`.
    k : int, default=10
        How many tokens are removed at most.

    Returns
    -------
    curves : ndarray of shape (n_documents, k + 1)
        Probability after removing 0, 1, ... k tokens. A document that has no more tokens to
        remove stays where it is.

    Raises
    ------
    TypeError
        If the estimator has no `predict_proba`, if `X` holds texts, or if `k` is no integer.
    ValueError
        If `scores` has another shape than `X` or holds NaN, if `k` is out of range, or if
        `target` is not a class of the estimator.

    See Also
    --------
    comprehensiveness : Where the curve starts less where it is after k tokens.

    Notes
    -----
    The deletion metric of [1]_, for tokens in place of pixels. They summarise a curve by the area
    under it, which is about ``curves.mean(axis=1)``, and delete until nothing is left.

    References
    ----------
    .. [1] V. Petsiuk, A. Das, K. Saenko (2018). RISE: Randomized Input Sampling for Explanation
       of Black-box Models. Proceedings of BMVC 2018.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_clsattn.metrics import deletion_curve
    >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
    >>> model = LogisticRegression().fit(X, ["good", "good", "bad", "bad"])
    >>> z = X * model.coef_
    >>> deletion_curve(model, X, [-z, z], k=2).shape
    (4, 3)
    """
    check_scalar(k, "k", Integral, min_val=1)
    documents = RankedDocuments(estimator, X, scores, target)
    removed = np.minimum(np.arange(k + 1), documents.n_positive[:, None])
    return documents.probabilities(removed, keep=False)


def _drops(
    estimator: Any,
    X: Any,
    scores: Any,
    k: int | None,
    fractions: ArrayLike | None,
    target: Any,
    *,
    keep: bool,
) -> Array:
    """Return the mean drop in probability (n_documents,) when tokens are kept or removed."""
    if k is not None and fractions is not None:
        raise ValueError("Pass k or fractions, not both: each is a number of tokens.")
    k = check_scalar(_DEFAULT_K if k is None else k, "k", Integral, min_val=1)
    shares = None if fractions is None else _checked_fractions(fractions)
    documents = RankedDocuments(estimator, X, scores, target)
    taken = np.full((len(documents.base), 1), k)
    if shares is not None:
        # A share such as 0.07 of 100 tokens is computed as 7.000000000000001.
        taken = np.ceil(shares * documents.n_tokens[:, None] - 1e-9).astype(np.int64)
    taken = np.minimum(taken, documents.n_positive[:, None])
    left = documents.probabilities(taken, keep=keep)
    return np.asarray((documents.base[:, None] - left).mean(axis=1))


def _checked_fractions(fractions: Any) -> Array:
    """Return fractions as an array (n_fractions,)."""
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.ndim != 1 or not len(shares) or not ((shares > 0) & (shares <= 1)).all():
        raise ValueError(
            "fractions must be one or more shares of a document's tokens, over 0 and up to 1, got "
            f"{fractions!r}."
        )
    return shares
