"""The selected tokens of documents, the pairs they order, and cycles that make one impossible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csgraph

from .._core.fitted import SELECTION_TOLERANCE, select_tokens
from ._documents import as_presence, entry_rows, listed, select_entries

_TOKENS_NAMED = 8

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


def selected_tokens(scores: ArrayLike, X: Any, tol: float = SELECTION_TOLERANCE) -> sp.csr_array:
    r"""Return which tokens of every document have its highest attention score.

    These are the selected tokens :math:`S_X(p)` of Wu et al. (2025), arXiv:2505.17282, section 4.

    Parameters
    ----------
    scores : array-like of shape (n_tokens,)
        Attention scores :math:`a_s = E_s^\top p`. Infinite scores are ordered as they are.
    X : {array-like, sparse matrix or array} of shape (n_documents, n_tokens)
        Non-negative token counts or weights. A document has the tokens that are positive.
    tol : float, default=1e-6
        Scores this close to a document's highest are selected with it. In exact arithmetic it
        would be 0.

    Returns
    -------
    selected : boolean CSR array of shape (n_documents, n_tokens)
        True where the token is selected; no False is stored. A document without tokens selects
        nothing.

    Examples
    --------
    >>> from sklearn_clsattn.paper import selected_tokens
    >>> X = [[1, 2, 0], [0, 1, 3], [0, 0, 0]]
    >>> selected_tokens([0.5, -1.0, 2.0], X).toarray()
    array([[ True, False, False],
           [False, False,  True],
           [False, False, False]])
    """
    presence = as_presence(X)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (presence.shape[1],):
        raise ValueError(
            f"scores must have shape ({presence.shape[1]},), one score for each column of X, "
            f"got {values.shape}."
        )
    if np.isnan(values).any():
        raise ValueError(
            f"scores must be numbers, but {int(np.isnan(values).sum())} are NaN, the first at "
            f"token {int(np.isnan(values).argmax())}."
        )
    if not tol >= 0:
        raise ValueError(f"tol must be 0 or more, got {tol!r}.")
    finite = np.isfinite(values)
    if not finite.all():  # only their order matters, and differences of them would be NaN
        reach = 1.0 + 2.0 * float(np.abs(values[finite]).max(initial=0.0)) + 2.0 * tol
        values = np.where(finite, values, np.sign(values) * reach)
    documents, tokens = select_tokens(values, presence, tol)
    flags = np.ones(len(tokens), dtype=bool)
    return sp.csr_array(sp.coo_array((flags, (documents, tokens)), shape=presence.shape))


class InfeasibleSelectionError(ValueError):
    """No direction of ``<cls>`` makes this selection.

    Parameters
    ----------
    message : str
        What is wrong.
    cycle : sequence of int, default=()
        Tokens that the selection orders in a cycle: each has to score higher than the next, the
        last higher than the first. Empty where some scores make the selection, but none of the
        form E p, because the embeddings are linearly dependent.
    tokens : ndarray, default=None
        All tokens that lie on cycles, ascending.
    documents : ndarray, default=None
        The documents whose selections take part in cycles.

    Attributes
    ----------
    cycle, tokens, documents
        As given.
    """

    def __init__(
        self,
        message: str,
        *,
        cycle: tuple[int, ...] = (),
        tokens: Integers | None = None,
        documents: Integers | None = None,
    ) -> None:
        super().__init__(message)
        self.cycle = list(cycle)
        self.tokens = np.empty(0, dtype=np.intp) if tokens is None else tokens
        self.documents = np.empty(0, dtype=np.intp) if documents is None else documents


@dataclass(frozen=True)
class TokenPairs:
    """Distinct pairs of tokens of which the first must have the higher attention score.

    better, worse : (n_pairs,), columns of s, selected, and of s', in the same document but not
        selected, in ascending order of s, then s'
    n_tokens : number of columns of X
    """

    better: Integers
    worse: Integers
    n_tokens: int

    def __len__(self) -> int:
        return len(self.better)

    def subset(self, which: Any) -> TokenPairs:
        """Return the pairs at an index array, a mask or a slice."""
        return TokenPairs(self.better[which], self.worse[which], self.n_tokens)

    def differences(self, per_token: Any) -> Any:
        """Return first less second of each pair, of numbers or rows per token."""
        return per_token[self.better] - per_token[self.worse]

    def totals(self, per_pair: Array) -> Array:
        """Return the signed sum over the pairs of each token, (n_tokens,)."""
        return np.asarray(
            np.bincount(self.better, per_pair, self.n_tokens)
            - np.bincount(self.worse, per_pair, self.n_tokens)
        )

    def graph(self) -> sp.csr_array:
        """Return the directed graph s -> s' as an adjacency matrix over all tokens."""
        indptr = np.searchsorted(self.better, np.arange(self.n_tokens + 1)).astype(np.int32)
        ones = np.ones(len(self), dtype=np.int8)
        shape = (self.n_tokens, self.n_tokens)
        return sp.csr_array((ones, self.worse.astype(np.int32), indptr), shape=shape)


def token_pairs(selected: sp.csr_array, unselected: sp.csr_array) -> TokenPairs:
    """Return the distinct pairs of selected and unselected tokens that share a document."""
    # One sparse product forms the pairs of all documents and merges equal ones; sums of bool
    # saturate, so nothing overflows.
    product = sp.csr_array(selected.T) @ unselected
    product.sort_indices()
    n_tokens = product.shape[1]
    better = np.repeat(np.arange(n_tokens, dtype=np.intp), np.diff(product.indptr))
    return TokenPairs(better, product.indices.astype(np.intp), n_tokens)


def divide(X: Any, selected: Any) -> tuple[sp.csr_array, sp.csr_array]:
    """Check a selection, and return the selected and the other tokens as boolean CSR arrays."""
    present, chosen = as_presence(X), as_presence(selected, "selected")
    if present.shape != chosen.shape:
        raise ValueError(f"selected must have the shape of X, {present.shape}, got {chosen.shape}.")
    n_tokens = present.shape[1]
    # Every entry as one number, document * n_tokens + token, in ascending order.
    keys, chosen_keys = (entry_rows(rows) * n_tokens + rows.indices for rows in (present, chosen))
    absent = np.setdiff1d(chosen_keys, keys, assume_unique=True)
    if len(absent):
        document, token = divmod(int(absent[0]), n_tokens)
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
    unselected = np.isin(keys, chosen_keys, assume_unique=True, invert=True)
    return chosen, select_entries(present, unselected)


def check_acyclic(selected: sp.csr_array, unselected: sp.csr_array, pairs: TokenPairs) -> None:
    """Raise InfeasibleSelectionError if the pairs order tokens in a cycle."""
    _, components = csgraph.connected_components(pairs.graph(), connection="strong")
    within = components[pairs.better] == components[pairs.worse]
    if not within.any():
        return
    cyclic = pairs.subset(within)
    tokens = np.unique(np.concatenate([cyclic.better, cyclic.worse]))
    on_cycle = cyclic.graph().astype(np.int64)
    per_document = (selected.astype(np.int64) @ on_cycle).multiply(unselected)
    documents = np.flatnonzero(per_document.sum(axis=1))
    cycle = _short_cycle(cyclic)

    links = []
    for better, worse in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        both = selected[:, [better]].multiply(unselected[:, [worse]])
        links.append(f"token {better} over {worse} (document {both.nonzero()[0].min()})")
    raise InfeasibleSelectionError(
        f"No attention scores make this selection: it selects {listed(links, _TOKENS_NAMED)}, "
        "which is a cycle. In all, "
        f"{len(tokens)} tokens lie on such cycles ({listed(tokens, _TOKENS_NAMED)}); "
        f"{len(documents)} documents take part ({listed(documents)}). Change what they select.",
        cycle=tuple(cycle),
        tokens=tokens,
        documents=documents,
    )


def _short_cycle(cyclic: TokenPairs) -> list[int]:
    """Return a shortest cycle through one of the pairs, which all lie on cycles."""
    # Two documents that order the same two tokens the other way round: the usual case.
    forth = cyclic.better.astype(np.int64) * cyclic.n_tokens + cyclic.worse
    back = cyclic.worse.astype(np.int64) * cyclic.n_tokens + cyclic.better
    both = np.flatnonzero(np.isin(back, forth))
    if len(both):
        return [int(cyclic.better[both[0]]), int(cyclic.worse[both[0]])]
    start, goal = int(cyclic.worse[0]), int(cyclic.better[0])
    _, before = csgraph.breadth_first_order(cyclic.graph(), start, directed=True)
    path = [goal]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    # goal -> start is the pair itself, then the path from start leads back to goal.
    return [goal, *path[:0:-1]]
