"""Whether data satisfies Assumption 1 of the paper: one relevant token a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..importance import class_totals, signed_frequency
from ._documents import coded_documents, entry_rows, listed, select_entries


@dataclass(frozen=True, eq=False)
class SingleRelevantTokenCheck:
    r"""Whether Assumption 1 holds, and what breaks it. True as a condition if it holds.

    ``print`` shows a summary.

    Attributes
    ----------
    holds : bool
        Whether every document has exactly one completely relevant token and all other tokens
        are irrelevant.
    token_kind : ndarray of str of shape (n_tokens,)
        ``"relevant"``: completely relevant, that is in documents of one class only;
        ``"irrelevant"``: importance 0 within the tolerance; ``"partial"``: neither, which the
        assumption does not allow; ``"unseen"``: in no document.
    relevant_tokens : boolean CSR array of shape (n_documents, n_tokens)
        Which completely relevant tokens each document has: by the theorem the selected tokens
        (:func:`selected_tokens`), where the assumption holds.
    documents_without : ndarray of int
        Rows of X that have no completely relevant token, those without any tokens among them.
    documents_with_several : ndarray of int
        Rows of X that have more than one completely relevant token.
    partial_tokens : ndarray of int
        Columns of X of these tokens, those of the largest importance first.
    document_distances : ndarray of shape (n_documents,)
        How far each document is from the assumption, from 0 to 1.
    distance : float
        Their mean, weighted as the documents are.
    """

    holds: bool
    token_kind: NDArray[np.str_]
    relevant_tokens: sp.csr_array
    documents_without: NDArray[np.int64]
    documents_with_several: NDArray[np.int64]
    partial_tokens: NDArray[np.int64]
    document_distances: NDArray[np.float64]
    distance: float

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        counts = {kind: int((self.token_kind == kind).sum()) for kind in _KINDS.tolist()}
        lines = [
            "Assumption 1 holds." if self.holds else "Assumption 1 does not hold.",
            f"  Tokens: {counts['relevant']} completely relevant, {counts['irrelevant']} "
            f"irrelevant, {counts['partial']} neither, {counts['unseen']} never seen.",
        ]
        if self.holds:
            lines.append("  Every document has exactly one completely relevant token.")
            return "\n".join(lines)
        for what, rows in (
            ("without a completely relevant token", self.documents_without),
            ("with several of them", self.documents_with_several),
        ):
            if len(rows):
                lines.append(f"  Documents {what}: {len(rows)} (rows {listed(rows)}).")
        if n := len(self.partial_tokens):
            tokens = listed(self.partial_tokens)
            lines.append(f"  Tokens neither irrelevant nor completely relevant: {n} ({tokens}).")
        farthest = listed(np.argsort(-self.document_distances, kind="stable")[:3])
        lines.append(
            f"  Distance from it: {self.distance:.3f} (0 to 1); farthest: rows {farthest}."
        )
        return "\n".join(lines)


_KINDS = np.array(["unseen", "irrelevant", "partial", "relevant"])


def check_single_relevant_token(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-12,
) -> SingleRelevantTokenCheck:
    r"""Check whether every document has one relevant token, as Theorem 4.3 assumes.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. Never altered.
    y : array-like of shape (n_documents,)
        Class labels, of any type, two classes or more.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights of the documents; a weight of 2 is the document twice, and one of 0
        leaves it out.
    tol : float, default=1e-12
        A token is irrelevant if the sums of its shares in any two classes differ by at most
        `tol` times its sum over all of them, that is if its importance is 0 but for rounding.

    Returns
    -------
    check : SingleRelevantTokenCheck
        True as a condition if the assumption holds. Otherwise, its attributes list the
        documents and tokens that break it, and ``print(check)`` sums them up.

    Notes
    -----
    Assumption 1 of Wu et al. (2025), arXiv:2505.17282: each document has a single completely
    relevant token, which occurs in documents of its class only, and all its other tokens are
    irrelevant, :math:`\alpha_{sk} = 0` for all classes k. A relevant token that occurs twice in its
    document is still a single one; a document without tokens breaks the assumption.

    The distance of a document is the least share of its tokens' relevance that would have to be
    another one, over the token r that is to be the relevant one,

    .. math:: \min_{r} \Big( q_r (1 - D_r) + \sum_{s \ne r} q_s D_s \Big), \qquad
              D_s = (K \max_k r_{sk} - 1) / (K - 1),

    where :math:`q_s` are its tokens' shares, and :math:`r_{sk}` is the share of class k in the sum
    of the token's shares of documents.

    Examples
    --------
    >>> from sklearn_clsattn.paper import check_single_relevant_token
    >>> bool(check_single_relevant_token([[1, 0, 2], [0, 1, 2]], [0, 1]))
    True
    >>> print(check_single_relevant_token([[1, 0, 2], [0, 0, 1]], [0, 1]))
    Assumption 1 does not hold.
      Tokens: 1 completely relevant, 0 irrelevant, 1 neither, 1 never seen.
      Documents without a completely relevant token: 1 (rows 1).
      Tokens neither irrelevant nor completely relevant: 1 (2).
      Distance from it: 0.467 (0 to 1); farthest: rows 1, 0.
    """
    if not tol >= 0:
        raise ValueError(f"tol must be 0 or more, got {tol!r}.")
    documents = coded_documents(X, y, sample_weight)
    presence, codes, weights = documents.presence, documents.codes, documents.weights
    n_classes, n_tokens = len(documents.classes), presence.shape[1]
    counted = weights > 0
    seen = class_totals(presence, codes, n_classes, counted.astype(float)) > 0
    shares = class_totals(documents.X, codes, n_classes, weights, kind="shares")
    importance = signed_frequency(shares, documents.class_weights)
    kind = np.full(n_tokens, 2)
    kind[np.ptp(shares, axis=0) <= tol * shares.sum(axis=0)] = 1
    n_seen = seen.sum(axis=0)
    kind[n_seen == 1] = 3
    kind[n_seen == 0] = 0

    relevant_counts = presence.astype(np.int64) @ (kind == 3).astype(np.int64)
    partial = np.flatnonzero(kind == 2)
    largest = np.abs(np.atleast_2d(importance)).max(axis=0)
    without = np.flatnonzero(counted & (relevant_counts == 0))
    several = np.flatnonzero(counted & (relevant_counts > 1))
    distances = _distances(documents.X, shares)
    return SingleRelevantTokenCheck(
        holds=not (len(without) or len(several) or len(partial)),
        token_kind=_KINDS[kind],
        relevant_tokens=select_entries(presence, kind[presence.indices] == 3),
        documents_without=without,
        documents_with_several=several,
        partial_tokens=partial[np.argsort(-largest[partial], kind="stable")],
        document_distances=distances,
        distance=float(np.average(distances, weights=weights)),
    )


def _distances(X: sp.csr_array, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the documents' distances, (n_documents,)."""
    if not X.has_canonical_format:  # a token stored in two entries counts with their sum
        X = X.copy()
        X.sum_duplicates()
    n_classes, totals = len(shares), shares.sum(axis=0)
    largest = np.divide(
        shares.max(axis=0), totals, out=np.full(len(totals), 1 / n_classes), where=totals > 0
    )
    relevance = np.maximum((n_classes * largest - 1) / (n_classes - 1), 0.0)
    rows = entry_rows(X)
    lengths = np.bincount(rows, X.data, X.shape[0])
    positive = np.flatnonzero(X.data > 0)
    rows, of_entries = rows[positive], relevance[X.indices[positive]]
    q = X.data[positive] / lengths[rows]
    best = np.full(X.shape[0], np.inf)
    np.minimum.at(best, rows, q * (1 - 2 * of_entries))
    distances = np.bincount(rows, q * of_entries, X.shape[0]) + best
    return np.clip(np.where(lengths > 0, distances, 1.0), 0.0, 1.0)
