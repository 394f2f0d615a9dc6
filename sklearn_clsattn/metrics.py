"""Measures beyond those of scikit-learn: faithfulness of explanations, and calibration."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    column_or_1d,
)

from ._documents import as_csr, canonical
from ._types import Array, Numbers
from ._validation import codes_of

__all__ = ["ERASER_FRACTIONS", "comprehensiveness", "expected_calibration_error", "sufficiency"]

ERASER_FRACTIONS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The fractions of a document's tokens at which ERASER measures."""


def comprehensiveness(
    estimator: Any,
    X: Any,
    scores: Any,
    *,
    k: int | None = None,
    fractions: ArrayLike | None = None,
    target: Any = None,
) -> Array:
    r"""Return how far a probability falls when the tokens that explain it are removed.

    The value is high if the explanation names the tokens that the model needs. It works with any
    classifier of a document-term matrix and any token scores.

    Parameters
    ----------
    estimator : estimator
        A fitted classifier with `predict_proba`, or a pipeline that ends in one and takes a
        document-term matrix.
    X : {sparse matrix, array-like, data frame} of shape (n_documents, n_tokens)
        The input of the estimator. Vectorize raw texts first.
    scores : {sparse matrix, array-like} of shape (n_documents, n_tokens), or a list of them
        Evidence of each token of each document for the explained class, or a list of such
        matrices, one per class. For two classes with scores z for the second, pass ``[-z, z]``.
    k : int, default=None
        Number of tokens to remove; 10 if neither `k` nor `fractions` is given.
    fractions : array-like of shape (n_fractions,), default=None
        Fractions of the document's tokens, above 0 and up to 1, each rounded up to whole tokens.
        The result is the mean over them; with `ERASER_FRACTIONS` it is ERASER's area over the
        perturbation curve.
    target : label or array-like of shape (n_documents,), default=None
        The explained class, for all documents or for each. By default the most probable class.

    Returns
    -------
    drops : ndarray of shape (n_documents,)
        Probabilities, from -1 (removal makes the class certain) to 1; 0 for a document without
        tokens. ERASER reports the mean over documents.

    Notes
    -----
    With m the probability of the explained class, x the document and r the removed tokens, it is
    :math:`m(x) - m(x \setminus r)` [1]_ (section 4.3). Tokens are removed from the highest score
    down, in column order for equal scores, and only if their score is above 0. The perturbed
    documents differ from training documents, so values of different models are not comparable.

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
    r"""Return how far a probability falls when only the tokens that explain it are kept.

    The value is low or negative if these tokens are enough for the model's prediction.

    Parameters
    ----------
    estimator, X, scores, k, fractions, target
        As in :func:`comprehensiveness`, except that `k` tokens, or these fractions, are kept.

    Returns
    -------
    drops : ndarray of shape (n_documents,)
        :math:`m(x) - m(r)`, from -1 to 1; 0 for a document without tokens.

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


def expected_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Return the mean gap between the confidence and the accuracy of predictions.

    The confidence is the probability of the most probable class.

    Parameters
    ----------
    y_true : array-like of shape (n_documents,)
        The true labels. A label that is not in `labels` counts as predicted wrong.
    y_proba : array-like of shape (n_documents, n_classes) or (n_documents,)
        Probabilities of the classes, as from ``predict_proba``, or of the second of two classes.
    labels : array-like of shape (n_classes,), default=None
        The classes in the order of the columns, ``estimator.classes_``. By default the sorted
        labels in `y_true`.
    n_bins : int, default=15
        Number of bins of equal width, including empty ones.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights, not all 0.

    Returns
    -------
    error : float
        From 0 (confidence equals accuracy in each bin) to 1.

    Notes
    -----
    With n documents, and bins B with accuracy acc and mean confidence conf [1]_, it is

    .. math:: \sum_B \frac{|B|}{n} \, |\mathrm{acc}(B) - \mathrm{conf}(B)| .

    Small bins have large gaps by chance, so compare models on the same bins and documents.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On Calibration of Modern Neural
       Networks. Proceedings of ICML 2017, arXiv:1706.04599.

    Examples
    --------
    >>> from sklearn_clsattn.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.9, 0.9, 0.1]), 2)
    0.15
    >>> expected_calibration_error(["a", "b"], [[1, 0], [0, 1]])
    0.0
    """
    check_scalar(n_bins, "n_bins", Integral, min_val=1)
    y = column_or_1d(y_true)
    proba = check_array(y_proba, ensure_2d=False, dtype=np.float64, input_name="y_proba")
    check_consistent_length(y, proba)
    if proba.ndim == 1:
        proba = np.column_stack([1.0 - proba, proba])
    if proba.min() < 0 or not np.allclose(proba.sum(axis=1), 1, atol=1e-4):
        raise ValueError("y_proba must be probabilities from 0 to 1, in rows that sum to 1.")
    classes = np.unique(y) if labels is None else np.asarray(labels)
    if classes.shape != (proba.shape[1],):
        raise ValueError(
            f"y_proba has {proba.shape[1]} columns, but there are {classes.size} labels: pass "
            "labels=estimator.classes_."
        )
    weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    confidence = proba.max(axis=1)
    right = proba.argmax(axis=1) == codes_of(y, classes)
    edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    gaps = np.bincount(np.searchsorted(edges, confidence), weights * (right - confidence))
    return float(np.abs(gaps).sum() / weights.sum())


def _drops(
    estimator: Any, X: Any, scores: Any, k: Any, fractions: Any, target: Any, *, keep: bool
) -> Array:
    """Return the mean drop in probability (n_documents,) when tokens are kept or removed."""
    if k is not None and fractions is not None:
        raise ValueError("Pass either k or fractions, not both.")
    k = check_scalar(10 if k is None else k, "k", Integral, min_val=1)
    shares = np.asarray([1.0] if fractions is None else fractions, dtype=np.float64)
    if shares.ndim != 1 or not len(shares) or not ((shares > 0) & (shares <= 1)).all():
        raise ValueError(
            f"fractions must be one or more numbers above 0 and up to 1, got {fractions!r}."
        )
    rows = _token_rows(X)
    n_tokens, documents = np.diff(rows.indptr), np.arange(rows.shape[0])
    row_of = np.repeat(documents, n_tokens)
    probabilities = estimator.predict_proba(_in_the_form_of(X, rows))
    codes = _target_codes(estimator, target, probabilities)
    values = _explained_scores(scores, rows, codes[row_of], probabilities.shape[1])
    n_positive = np.bincount(row_of[values > 0], minlength=len(documents))
    ranks = np.empty(len(row_of), dtype=np.int64)
    # Stable: equal scores stay in column order.
    ranks[np.lexsort((-values, row_of))] = np.arange(len(row_of)) - rows.indptr[row_of]
    base, drops = probabilities[documents, codes], np.zeros(len(documents))
    for share in shares:
        # A fraction such as 0.07 of 100 tokens is computed as 7.000000000000001.
        taken = np.ceil(share * n_tokens - 1e-9).clip(max=n_positive)
        if fractions is None:
            taken = taken.clip(max=k)
        changed = rows.copy()
        changed.data[(ranks < taken[row_of]) != keep] = 0
        changed.eliminate_zeros()
        left = estimator.predict_proba(_in_the_form_of(X, changed))[documents, codes]
        drops += np.where(np.diff(changed.indptr) < n_tokens, base - left, 0.0)
    return drops / len(shares)


def _in_the_form_of(X: Any, block: sp.csr_array) -> Any:
    """Return rows in the type of `X`."""
    if sp.issparse(X):
        return sp.csr_matrix(block) if isinstance(X, sp.spmatrix) else block
    dense = block.toarray()
    # A data frame is for an estimator fitted on named columns.
    return type(X)(dense, columns=X.columns) if hasattr(X, "columns") else dense


def _token_rows(X: Any) -> sp.csr_array:
    """Return `X` as canonical CSR without explicit zeros; `X` itself is not changed."""
    X = X if sp.issparse(X) else np.asarray(X)
    if X.dtype.kind not in "biuf" or X.ndim != 2 or not X.shape[0]:
        raise ValueError(
            "X must be a matrix of token counts or weights, (n_documents, n_tokens), with at least "
            f"one document, got shape {X.shape} and dtype {X.dtype}. For texts, pass the "
            "vectorizer's output, and the pipeline without the vectorizer."
        )
    return canonical(sp.csr_array(as_csr(X)))


def _target_codes(estimator: Any, target: Any, probabilities: Array) -> Numbers:
    """Return the columns (n_documents,) of `predict_proba` that are explained."""
    if target is None:
        return probabilities.argmax(axis=1)
    if np.ndim(target):
        check_consistent_length(target, probabilities)
    labels = np.broadcast_to(target, len(probabilities))
    codes = codes_of(labels, estimator.classes_)
    if (codes < 0).any():
        raise ValueError(
            f"target {labels[codes < 0].tolist()[0]!r} is not a class of the estimator, which has "
            f"{np.asarray(estimator.classes_).tolist()}."
        )
    return codes


def _explained_scores(scores: Any, rows: sp.csr_array, codes: Numbers, n_classes: int) -> Array:
    """Return the scores (n_entries,) at the entries of `rows`, whose classes are `codes`."""
    if not (isinstance(scores, list | tuple) and all(np.ndim(one) == 2 for one in scores)):
        return _at_entries(scores, rows)
    if len(scores) != n_classes:
        raise ValueError(
            f"scores must be one matrix, or a list of one for each of the {n_classes} classes, got "
            f"a list of {len(scores)}. For two classes with scores z for the second, pass [-z, z]."
        )
    of_classes = np.array([_at_entries(one, rows) for one in scores])
    return np.asarray(of_classes[codes, np.arange(len(codes))])


def _at_entries(scores: Any, rows: sp.csr_array) -> Array:
    """Return the scores (n_entries,) at the entries of `rows`, 0 where none is stored."""
    sparse = sp.issparse(scores)
    # Indexing of csr_array returns other types from one release of SciPy to another.
    matrix = sp.csr_matrix(scores) if sparse else np.asarray(scores)
    if matrix.shape != rows.shape:
        raise ValueError(
            f"scores must have the shape of X, {rows.shape}, got {matrix.shape}: pass one score "
            "for each token of each document."
        )
    if matrix.dtype.kind not in "biuf" or np.isnan(matrix.data if sparse else matrix).any():
        raise ValueError(f"scores must be numbers without NaN, got dtype {matrix.dtype}.")
    if not rows.nnz:
        return np.empty(0)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.asarray(matrix[row_of, rows.indices], dtype=np.float64).ravel()
