"""The order of removal that looks one step ahead, with the exact probability after each."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._base import BaseAttentionClassifier
from .._core.fitted import FittedModel, log_losses, probabilities
from .._documents import canonical
from ._checks import target_codes

Array = NDArray[np.float64]


def greedy_scores(
    classifier: Any, X: Any, *, k: int | None = None, target: Any = None, keep: bool = False
) -> sp.csr_array:
    r"""Return scores that rank tokens by what removing them one after another changes, exactly.

    Each step takes the token whose removal lowers the probability of the class most, given those
    that are gone already, for as long as one lowers it. At every number of tokens the measures of
    this module are as good as those of any order that looks one step ahead.

    Parameters
    ----------
    classifier : classifier of this package
        Fitted, of one layer of attention.
    X : {sparse matrix, array-like, data frame} of shape (n_documents, n_tokens)
        Documents, as the classifier takes them.
    k : int, default=None
        How many tokens of each document are ranked at most; None ranks all.
    target : label or array-like of shape (n_documents,), default=None
        The class, of all documents or of each. By default the most probable one.
    keep : bool, default=False
        Whether to rank for `sufficiency` instead: each step keeps the token that raises the
        probability most, from the empty document on.

    Returns
    -------
    scores : csr_array of shape (n_documents, n_tokens)
        To be passed to `comprehensiveness`, `deletion_curve` or, with `keep`, `sufficiency`: the
        number of tokens for the first token, 1 less for the second, and so on; 0 where no token
        is left that helps.

    Raises
    ------
    TypeError
        If the classifier is another, or `k` is no integer.
    ValueError
        If it has two layers of attention, if `k` is too small, or if `target` is not a class.

    See Also
    --------
    comprehensiveness : How far the probability falls without the top tokens.

    Notes
    -----
    With the sums N of attention times value and D of attention, ``<cls>`` included, the decision
    without token s is :math:`\beta + (N - q_s b_s) / (D - q_s)`: all of a step's candidates take
    one pass over the document, and a document of m tokens m passes.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.metrics import comprehensiveness, greedy_scores
    >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
    >>> model = ClsAttentionClassifier().fit(X, ["good", "good", "bad", "bad"])
    >>> scores = greedy_scores(model, X)
    >>> scores.toarray()[0]
    array([2., 0., 0., 0.])
    >>> bool((comprehensiveness(model, X, scores, k=1) > 0).all())
    True
    """
    if not isinstance(classifier, BaseAttentionClassifier):
        raise TypeError(
            "classifier must be one of this package, whose decisions without a token have a "
            f"closed form, got {type(classifier).__name__}"
        )
    if k is not None:
        check_scalar(k, "k", Integral, min_val=1)
    fitted, X = classifier._checked(X)
    if fitted.n_layers > 1 or fitted.mlp:
        raise ValueError("classifier must have one layer of attention and no MLP")
    X = canonical(X)
    outputs = fitted.outputs(X)
    of_classes = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    codes = target_codes(classifier, target, probabilities(of_classes))
    attention = fitted.attention(X)
    scores = np.zeros(X.nnz)
    for i, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        shares, values = attention.data[start:stop], fitted.values[X.indices[start:stop]]
        cls_share = _cls_share(fitted, shares, X.data[start:stop], X.indices[start:stop])
        order = _order(shares, values, fitted.intercept, cls_share, int(codes[i]), k, keep=keep)
        scores[start + order] = len(shares) - np.arange(len(order))
    return sp.csr_array((scores, X.indices.copy(), X.indptr.copy()), shape=X.shape)


def _cls_share(
    fitted: FittedModel, shares: Array, entries: NDArray[Any], columns: NDArray[Any]
) -> float:
    """Return the attention of ``<cls>`` in one document, however small."""
    if not fitted.cls_weight or not len(shares):
        return float(fitted.cls_weight > 0)
    most = int(shares.argmax())
    weigh = getattr(fitted, "token_weights", np.asarray)
    log_odds = np.log(fitted.cls_weight / weigh(entries)[most]) + fitted.cls_score
    return float(shares[most] * np.exp(log_odds - fitted.scores[columns[most]]))


def _order(
    shares: Array,
    values: Array,
    intercept: Array,
    cls_share: float,
    code: int,
    k: int | None,
    *,
    keep: bool,
) -> NDArray[np.intp]:
    """Return the numbers of one document's tokens in the order in which they are taken."""
    products = shares[:, None] * values
    left = np.arange(len(shares))
    gone: list[int] = []
    present = np.zeros(len(shares), dtype=bool) if keep else np.ones(len(shares), dtype=bool)
    sign = 1.0 if keep else -1.0
    mass, sums = np.array([cls_share + shares[present].sum()]), products[present].sum(axis=0)
    loss = _losses(mass, sums[None], intercept, code)[0]
    while len(left) and (k is None or len(gone) < k):
        # Summed anew in every step: differences of sums would cancel.
        mass = cls_share + shares[present].sum() + sign * shares[left]
        sums = products[present].sum(axis=0) + sign * products[left]
        if not keep:
            most = int(shares[left].argmax())  # what is left without it may be small
            others = present.copy()
            others[left[most]] = False
            mass[most] = cls_share + shares[others].sum()
            sums[most] = products[others].sum(axis=0)
        losses = _losses(mass, sums, intercept, code)
        best = int(losses.argmin() if keep else losses.argmax())
        if not sign * (loss - losses[best]) > 0:
            break
        loss = losses[best]
        gone.append(int(left[best]))
        present[left[best]] = keep
        left = np.delete(left, best)
    return np.array(gone, dtype=np.intp)


def _losses(mass: Array, sums: Array, intercept: Array, code: int) -> Array:
    """Return the log loss of a class, (n,), for masses (n,) and sums (n, n_outputs)."""
    mass = mass[:, None]
    means = np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)
    return log_losses(intercept + means, np.full(len(mass), code))
