"""Check of Assumption 1 of the paper: one relevant token per document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from .._bags import Bags
from .._matrices import row_sums, safe_divide
from .._types import Array, Numbers
from .._validation import checked_documents
from ..training.fitted_model import in_the_layout_of
from ..training.statistics import CorpusStatistics

_KINDS = np.array(["unseen", "irrelevant", "partial", "relevant"])
_UNSEEN, _IRRELEVANT, _PARTIAL, _RELEVANT = range(4)
# A token is irrelevant if its shares in all classes are equal up to this, relative to their sum.
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class SingleRelevantTokenCheck:
    """The result of :func:`check_single_relevant_token`, true if the assumption holds."""

    holds: bool
    token_kind: NDArray[np.str_]
    relevant_tokens: sp.csr_array
    distance: float

    def __bool__(self) -> bool:
        return self.holds


def check_single_relevant_token(X: Any, y: ArrayLike) -> SingleRelevantTokenCheck:
    r"""Check whether each document has one relevant token, as Theorem 4.3 assumes.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. Never altered.
    y : array-like of shape (n_documents,)
        Class labels, of any type, two classes or more.

    Returns
    -------
    check : object
        True in an ``if`` statement if the assumption holds. It has these attributes:

        holds : bool
            Whether each document has exactly one completely relevant token and all other tokens
            are irrelevant.
        token_kind : ndarray of str of shape (n_tokens,)
            ``"relevant"``: completely relevant, that is, in documents of only one class;
            ``"irrelevant"``: importance 0 up to rounding; ``"partial"``: neither, which violates
            the assumption; ``"unseen"``: in no document.
        relevant_tokens : boolean CSR array of shape (n_documents, n_tokens)
            The completely relevant tokens of each document. If the assumption holds, these are
            the selected tokens (:func:`selected_tokens`) by the theorem.
        distance : float
            Mean distance of the documents from the assumption, from 0 to 1.

    Notes
    -----
    Assumption 1 of Wu et al. (2025), arXiv:2505.17282: each document has a single completely
    relevant token, which occurs only in documents of its class, and all its other tokens are
    irrelevant, :math:`\alpha_{sk} = 0` for all classes k. A relevant token that occurs twice in its
    document still counts as one; a document without tokens violates the assumption.

    The distance of a document is the smallest share of its tokens' relevance that would have to
    change, over all choices of the relevant token r,

    .. math:: \min_{r} \Big( q_r (1 - D_r) + \sum_{s \ne r} q_s D_s \Big), \qquad
              D_s = (K \max_k r_{sk} - 1) / (K - 1),

    where :math:`q_s` are its tokens' shares, and :math:`r_{sk}` is the fraction of the sum of the
    token's shares of documents that belongs to class k.

    Examples
    --------
    >>> from sklearn_clsattn.paper import check_single_relevant_token
    >>> bool(check_single_relevant_token([[1, 0, 2], [0, 1, 2]], [0, 1]))
    True
    >>> check = check_single_relevant_token([[1, 0, 2], [0, 0, 1]], [0, 1])
    >>> check.holds, check.token_kind.tolist(), round(check.distance, 3)
    (False, ['relevant', 'unseen', 'partial'], 0.467)
    """
    counts, targets = checked_documents(X, y)
    weights = np.ones(len(targets))
    shares = CorpusStatistics.from_documents(Bags(counts), targets, weights).shares
    kind = _kinds(shares)
    relevant = in_the_layout_of(counts, kind[counts.indices] == _RELEVANT)
    relevant.eliminate_zeros()
    has_one_each = bool((np.diff(relevant.indptr) == 1).all())
    return SingleRelevantTokenCheck(
        holds=has_one_each and _PARTIAL not in kind,
        token_kind=_KINDS[kind],
        relevant_tokens=relevant,
        distance=float(_distances(counts, shares).mean()),
    )


def _kinds(shares: Array) -> Numbers:
    """Return each token's position in `_KINDS`, (n_tokens,), by its shares in the classes."""
    is_in_class = shares > 0
    is_irrelevant = np.ptp(shares, axis=0) <= _TOLERANCE * shares.sum(axis=0)
    kind = np.where(is_irrelevant, _IRRELEVANT, _PARTIAL)
    kind[is_in_class.sum(axis=0) == 1] = _RELEVANT
    kind[~is_in_class.any(axis=0)] = _UNSEEN
    return kind


def _distances(X: sp.csr_array, shares: Array) -> Array:
    """Return the distances of documents from the assumption, (n_documents,)."""
    # 1) D of tokens: 1 in documents of one class only, 0 if irrelevant
    n_classes = len(shares)
    totals = shares.sum(axis=0)
    largest = n_classes * shares.max(axis=0) - totals
    relevance = safe_divide(largest, (n_classes - 1) * totals).clip(min=0)
    # 2) sum over tokens of q D
    rows = X.nonzero()[0]
    q = X.data / row_sums(X.data, X.indptr)[rows]
    D = relevance[X.indices]
    sums = np.bincount(rows, q * D, X.shape[0])
    # 3) with the best relevant token r, for which q (1 - D) takes the place of q D
    best_change = np.full(X.shape[0], 1.0)
    np.minimum.at(best_change, rows, q * (1 - 2 * D))
    return np.clip(sums + best_change, 0.0, 1.0)
