"""Whether data satisfies Assumption 1 of the paper: one relevant token a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..importance import class_totals, signed_frequency
from ._documents import coded_documents, entries_kept, listed


@dataclass(frozen=True, eq=False)
class SingleRelevantTokenCheck:
    r"""Whether Assumption 1 holds, and what breaks it. True as a condition if it holds.

    ``print`` shows a summary.

    Attributes
    ----------
    holds : bool
        Whether every document has exactly one completely relevant token and all other tokens
        are irrelevant.
    classes : ndarray of shape (n_classes,)
        The labels found in y, sorted.
    token_kind : ndarray of str of shape (n_tokens,)
        ``"relevant"``: completely relevant, that is in documents of one class only;
        ``"irrelevant"``: importance 0 within the tolerance; ``"partial"``: neither, which the
        assumption does not allow; ``"unseen"``: in no document.
    token_class : ndarray of shape (n_tokens,)
        Index in `classes` of the class that a completely relevant token is relevant to; -1 for
        all other tokens.
    importance : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        Signed frequency alpha, a row for each class if there are more than two.
    relevant_tokens : boolean CSR array of shape (n_documents, n_tokens)
        Which completely relevant tokens each document has, in the form of
        :func:`selected_tokens`: by the theorem the selected tokens, where the assumption holds.
    relevant_counts : ndarray of shape (n_documents,)
        How many different completely relevant tokens each document has; all should be 1.
    documents_without : ndarray of int
        Rows of X that have no completely relevant token, those without any tokens among them.
    documents_with_several : ndarray of int
        Rows of X that have more than one completely relevant token.
    partial_tokens : ndarray of int
        Columns of X whose tokens are neither irrelevant nor completely relevant, those of the
        largest importance first.
    documents_with_partial : ndarray of int
        Rows of X that have at least one of `partial_tokens`.
    token_relevance : ndarray of shape (n_tokens,)
        From 0 for an irrelevant token to 1 for a completely relevant one:
        :math:`D_s = (K \max_k r_{sk} - 1) / (K - 1)`, with :math:`r_{sk}` the share of class k in
        the sum of the token's shares of documents. For two classes
        :math:`|\alpha_s|` over that sum. 0 for tokens never seen.
    document_distances : ndarray of shape (n_documents,)
        How far each document is from the assumption, from 0 to 1.
    distance : float
        Their mean, weighted as the documents are.
    feature_names : ndarray of str of shape (n_tokens,) or None
        Names of the tokens, for the summary.

    See Also
    --------
    check_single_relevant_token : The function that returns it.
    """

    holds: bool
    classes: NDArray[Any]
    token_kind: NDArray[np.str_]
    token_class: NDArray[np.int64]
    importance: NDArray[np.float64]
    relevant_tokens: sp.csr_array
    relevant_counts: NDArray[np.int64]
    documents_without: NDArray[np.int64]
    documents_with_several: NDArray[np.int64]
    partial_tokens: NDArray[np.int64]
    documents_with_partial: NDArray[np.int64]
    token_relevance: NDArray[np.float64]
    document_distances: NDArray[np.float64]
    distance: float
    feature_names: NDArray[Any] | None = None

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        kinds = {kind: int((self.token_kind == kind).sum()) for kind in _KINDS.tolist()}
        lines = [
            "Assumption 1 holds." if self.holds else "Assumption 1 does not hold.",
            f"  Tokens: {kinds['relevant']} completely relevant, {kinds['irrelevant']} irrelevant, "
            f"{kinds['partial']} neither, {kinds['unseen']} never seen.",
        ]
        if self.holds:
            lines.append("  Every document has exactly one completely relevant token.")
        if n := len(self.documents_without):
            rows = listed(self.documents_without)
            lines.append(f"  Documents without a completely relevant token: {n} (rows {rows}).")
        if n := len(self.documents_with_several):
            rows = listed([self._with_tokens(i) for i in self.documents_with_several])
            lines.append(f"  Documents with several of them: {n} (rows {rows}).")
        if n := len(self.partial_tokens):
            tokens = listed([self._with_importance(s) for s in self.partial_tokens])
            lines.append(
                f"  Tokens neither irrelevant nor completely relevant: {n}, in "
                f"{len(self.documents_with_partial)} documents ({tokens})."
            )
        if not self.holds:
            rows = listed(np.argsort(-self.document_distances, kind="stable")[:3])
            lines.append(
                f"  Distance from it: {self.distance:.3f} (0 to 1); farthest: rows {rows}."
            )
        return "\n".join(lines)

    def _name(self, token: int) -> str:
        if self.feature_names is None:
            return f"token {token}"
        return repr(str(self.feature_names[token]))

    def _with_tokens(self, document: int) -> str:
        start, stop = self.relevant_tokens.indptr[document : document + 2]
        names = [self._name(token) for token in self.relevant_tokens.indices[start:stop]]
        return f"{document}: {listed(names)}"

    def _with_importance(self, token: int) -> str:
        values = np.atleast_2d(self.importance)[:, token]
        largest = int(np.abs(values).argmax())
        of_class = f" for class {self.classes[largest]}" if len(values) > 1 else ""
        return f"{self._name(token)} alpha = {values[largest]:.3g}{of_class}"


_KINDS = np.array(["unseen", "irrelevant", "partial", "relevant"])


def check_single_relevant_token(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-12,
    feature_names: Sequence[str] | NDArray[Any] | None = None,
) -> SingleRelevantTokenCheck:
    r"""Check whether every document has one relevant token, as Theorem 4.3 assumes.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights, of any sparse format or dense. Never altered.
    y : array-like of shape (n_documents,)
        Class labels, of any type, two classes or more.
    sample_weight : array-like of shape (n_documents,), default=None
        Non-negative weights of the documents; a weight of 2 is the document twice, and one of 0
        leaves it out, so that it breaks nothing.
    tol : float, default=1e-12
        A token is irrelevant if the sums of its shares in any two classes differ by at most
        `tol` times its sum over all of them, that is if its importance is 0 but for rounding.
        With 0, they have to agree to the last bit, as they do in data of
        :func:`~sklearn_clsattn.datasets.make_token_classification` with `single_relevant`.
    feature_names : sequence of str of shape (n_tokens,), default=None
        Names of the tokens, for the summary; without, they are numbered.

    Returns
    -------
    check : SingleRelevantTokenCheck
        True as a condition if the assumption holds. Otherwise, its attributes list the
        documents and tokens that break it, and ``print(check)`` sums them up.

    Raises
    ------
    ValueError
        If `X` is negative, not finite or not two-dimensional, lengths disagree, there are fewer
        than two classes, a class has no weight, or `tol` is negative.

    See Also
    --------
    sklearn_clsattn.datasets.make_token_classification : Makes such data.
    max_margin_direction : The direction of the theorem.

    Notes
    -----
    Assumption 1 of [1]_: each document has either a single completely positive or a single
    completely negative token, which occurs in documents of its class only, and all its other
    tokens are irrelevant, :math:`\alpha_s = 0`. It is read here as follows:

    - K classes: a completely relevant token occurs in documents of one class only, an
      irrelevant one has :math:`\alpha_{sk} = 0` for all of them;
    - a relevant token that occurs twice in its document is still a single one;
    - a document without tokens has no relevant one, and so breaks the assumption.

    The distance of a document is the least share of its tokens' relevance that would have to be
    another one: with its tokens' shares :math:`q_s` and relevances :math:`D_s`,

    .. math:: \min_{r} \Big( q_r (1 - D_r) + \sum_{s \ne r} q_s D_s \Big),

    the minimum being over the token that is to be the relevant one. It is 0 if and only if the
    document satisfies the assumption, and 1 for a document without tokens.

    Data of real documents does not satisfy it: no token of the IMDB or Yelp reviews has
    :math:`\alpha_s` = 0.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.theory import check_single_relevant_token
    >>> names = ["boring", "terrific", "film"]
    >>> bool(check_single_relevant_token([[1, 0, 2], [0, 1, 2]], [0, 1], feature_names=names))
    True
    >>> print(check_single_relevant_token([[1, 0, 2], [0, 0, 1]], [0, 1], feature_names=names))
    Assumption 1 does not hold.
      Tokens: 1 completely relevant, 0 irrelevant, 1 neither, 1 never seen.
      Documents without a completely relevant token: 1 (rows 1).
      Tokens neither irrelevant nor completely relevant: 1, in 2 documents ('film' alpha = 0.167).
      Distance from it: 0.467 (0 to 1); farthest: rows 1, 0.
    """
    if not tol >= 0:
        raise ValueError(f"tol must be 0 or more, got {tol!r}.")
    documents = coded_documents(X, y, sample_weight)
    presence, codes, weights = documents.presence, documents.codes, documents.weights
    n_classes, n_tokens = len(documents.classes), presence.shape[1]
    names = None
    if feature_names is not None:
        names = np.asarray(feature_names, dtype=object)
        if names.shape != (n_tokens,):
            raise ValueError(
                f"feature_names must have shape ({n_tokens},), one name for each column of X, "
                f"got {names.shape}."
            )

    counted = weights > 0
    seen = class_totals(presence, codes, n_classes, counted.astype(float)) > 0
    shares = class_totals(documents.X, codes, n_classes, weights, kind="shares")
    importance = signed_frequency(shares, documents.class_weights)
    kind = np.full(n_tokens, 2)
    kind[np.ptp(shares, axis=0) <= tol * shares.sum(axis=0)] = 1
    n_seen = seen.sum(axis=0)
    kind[n_seen == 1] = 3
    kind[n_seen == 0] = 0
    relevant = kind == 3

    relevant_counts = presence.astype(np.int64) @ relevant.astype(np.int64)
    partial = np.flatnonzero(kind == 2)
    largest = np.abs(np.atleast_2d(importance)).max(axis=0)
    partial = partial[np.argsort(-largest[partial], kind="stable")]
    has_partial = presence.astype(np.int64) @ (kind == 2).astype(np.int64) > 0
    relevance, distances = _distances(documents.X, shares)
    without = np.flatnonzero(counted & (relevant_counts == 0))
    several = np.flatnonzero(counted & (relevant_counts > 1))
    return SingleRelevantTokenCheck(
        holds=not (len(without) or len(several) or len(partial)),
        classes=documents.classes,
        token_kind=_KINDS[kind],
        token_class=np.where(relevant, seen.argmax(axis=0), -1),
        importance=importance,
        relevant_tokens=entries_kept(presence, relevant[presence.indices]),
        relevant_counts=relevant_counts,
        documents_without=without,
        documents_with_several=several,
        partial_tokens=partial,
        documents_with_partial=np.flatnonzero(counted & has_partial),
        token_relevance=relevance,
        document_distances=distances,
        distance=float(np.average(distances, weights=weights)),
        feature_names=names,
    )


def _distances(
    X: sp.csr_array, shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the tokens' relevance D, (n_tokens,), and the documents' distance, (n_documents,)."""
    if not X.has_canonical_format:  # a token's parts count together
        X = X.copy()
        X.sum_duplicates()
    n_classes, totals = len(shares), shares.sum(axis=0)
    largest = np.divide(
        shares.max(axis=0), totals, out=np.full(len(totals), 1 / n_classes), where=totals > 0
    )
    relevance = np.maximum((n_classes * largest - 1) / (n_classes - 1), 0.0)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    lengths = np.bincount(rows, X.data, X.shape[0])
    kept = np.flatnonzero(X.data > 0)
    rows, of_entries = rows[kept], relevance[X.indices[kept]]
    q = X.data[kept] / lengths[rows]
    best = np.full(X.shape[0], np.inf)
    np.minimum.at(best, rows, q * (1 - 2 * of_entries))
    distances = np.bincount(rows, q * of_entries, X.shape[0]) + best
    return relevance, np.clip(np.where(lengths > 0, distances, 1.0), 0.0, 1.0)
