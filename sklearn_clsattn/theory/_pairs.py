"""The distinct pairs of a selected and an unselected token that share a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._documents import as_presence, entries_kept, entry_rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TokenPairs:
    """Pairs of tokens of which the first must have the higher attention score.

    Attributes
    ----------
    better, worse : ndarray of shape (n_pairs,)
        Columns of s, selected, and of s', in the same document but not selected. Distinct, in
        ascending order of s, then s'.
    n_tokens : int
        Number of columns of X.
    """

    better: NDArray[np.intp]
    worse: NDArray[np.intp]
    n_tokens: int

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.better)

    def subset(self, which: Any) -> TokenPairs:
        """Return the pairs at an index array, a mask or a slice."""
        return TokenPairs(self.better[which], self.worse[which], self.n_tokens)

    def differences(self, per_token: Array) -> Array:
        """Return first less second of each pair: A @ per_token, the rows of A being e_s - e_s'."""
        return np.asarray(per_token[self.better] - per_token[self.worse])

    def totals(self, per_pair: Array) -> Array:
        """Return A.T @ per_pair: the signed sum over the pairs of each token."""
        return np.asarray(
            np.bincount(self.better, per_pair, self.n_tokens)
            - np.bincount(self.worse, per_pair, self.n_tokens)
        )

    def matrix(self) -> sp.csr_array:
        """Return A, (n_pairs, n_tokens), one row e_s - e_s' a pair."""
        n = len(self)
        columns = np.column_stack([self.better, self.worse]).ravel()
        signs = np.tile([1.0, -1.0], n)
        return sp.csr_array((signs, columns, np.arange(0, 2 * n + 1, 2)), shape=(n, self.n_tokens))

    def graph(self) -> sp.csr_array:
        """Return the directed graph s -> s' as an adjacency matrix over all tokens."""
        indptr = np.searchsorted(self.better, np.arange(self.n_tokens + 1)).astype(np.int32)
        ones = np.ones(len(self), dtype=np.int8)
        shape = (self.n_tokens, self.n_tokens)
        return sp.csr_array((ones, self.worse.astype(np.int32), indptr), shape=shape)


@dataclass(frozen=True)
class Selection:
    """The tokens of documents as boolean CSR arrays (n_documents, n_tokens), rows sorted."""

    selected: sp.csr_array
    unselected: sp.csr_array


def token_pairs(X: Any, selected: Any) -> TokenPairs:
    r"""Return the distinct token pairs that a selection orders.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.
    selected : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        True (or positive) where the document selects the token, as :func:`selected_tokens`
        returns it. Every document that has tokens selects one of them at least.

    Returns
    -------
    pairs : TokenPairs
        Every pair (s, s') with s selected and s' unselected in some document, once.

    Raises
    ------
    ValueError
        If the shapes differ, if an entry is negative or NaN, if a document selects a token
        that it does not have, or if a document has tokens but selects none.

    Notes
    -----
    The constraints of Theorem 4.3 in [1]_, :math:`p^\top (E_s - E_{s'}) \ge 1` for every
    document X, every :math:`s \in S_X` and every :math:`s' \in X \setminus S_X`: documents
    enter them through these pairs alone. Empty documents, and documents that select all their
    tokens, contribute none.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn.theory import selected_tokens, token_pairs
    >>> X = [[1, 1, 0], [2, 5, 0], [0, 1, 1]]
    >>> pairs = token_pairs(X, selected_tokens([3.0, 1.0, 2.0], X))
    >>> list(zip(pairs.better.tolist(), pairs.worse.tolist()))
    [(0, 1), (2, 1)]
    """
    return distinct_pairs(divide(X, selected))


def divide(X: Any, selected: Any) -> Selection:
    """Check a selection against the documents and divide their tokens by it."""
    present, chosen = as_presence(X), as_presence(selected, "selected")
    if present.shape != chosen.shape:
        raise ValueError(f"selected must have the shape of X, {present.shape}, got {chosen.shape}.")
    n_tokens = present.shape[1]
    keys, chosen_keys = _keys(present), _keys(chosen)
    places = np.searchsorted(keys, chosen_keys)
    places[places == len(keys)] = 0
    absent = np.flatnonzero(keys[places] != chosen_keys) if len(keys) else np.arange(chosen.nnz)
    if len(absent):
        document, token = divmod(int(chosen_keys[absent[0]]), n_tokens)
        raise ValueError(
            f"selected has {len(absent)} entries where X has no token, the first in document "
            f"{document}, token {token}: a document can only select tokens that it has."
        )
    undecided = np.flatnonzero((np.diff(present.indptr) > 0) & (np.diff(chosen.indptr) == 0))
    if len(undecided):
        raise ValueError(
            f"{len(undecided)} documents have tokens but select none, the first is document "
            f"{int(undecided[0])}: mark at least one token in each, or leave them out."
        )
    rest = np.ones(len(keys), dtype=bool)
    rest[places] = False
    return Selection(chosen, entries_kept(present, rest))


def distinct_pairs(selection: Selection) -> TokenPairs:
    """Return the distinct pairs of selected and unselected tokens that share a document."""
    # One sparse product forms the pairs of all documents and merges equal ones; sums of bool
    # saturate, so nothing overflows.
    product = sp.csr_array(selection.selected.T) @ selection.unselected
    product.sort_indices()
    n_tokens = product.shape[1]
    better = np.repeat(np.arange(n_tokens, dtype=np.intp), np.diff(product.indptr))
    return TokenPairs(better, product.indices.astype(np.intp), n_tokens)


def _keys(rows: sp.csr_array) -> NDArray[np.int64]:
    """Return document * n_tokens + token of every entry, ascending."""
    return np.asarray(entry_rows(rows) * rows.shape[1] + rows.indices)
