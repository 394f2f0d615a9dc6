r"""What a decision would be without one token of its document, exactly.

Removing token s takes its share :math:`q_s` of the attention away, and the others' shares grow
to sum to 1 again. With one layer of attention nothing else changes, so that

.. math::

    F_k^{(-s)} = \beta_k + \frac{\sum_{j \ne s} q_j b_{jk}}{\sum_{j \ne s} q_j},

where j goes over the other tokens and ``<cls>`` (of value 0). A document that loses its only
token is an empty one, whose decision is the intercept.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A smaller share than this has lost digits to underflow.
_SMALLEST_SHARE = 1e-200
_BLOCK_ENTRIES = 2_000_000


def decisions_without_in_closed_form(
    attention: Array,
    contributions: Array,
    cls_attention: Array,
    intercept: Array,
    indptr: NDArray[np.intp],
) -> tuple[Array, NDArray[np.intp]]:
    """Return the decisions without each token, for one layer of attention, in one pass.

    Parameters
    ----------
    attention : ndarray of shape (n_entries,)
        Attention shares of the documents' tokens, one document after the other.
    contributions : ndarray of shape (n_entries, n_outputs)
        Attention shares times values.
    cls_attention : ndarray of shape (n_documents,)
        Attention share of ``<cls>``.
    intercept : ndarray of shape (n_outputs,)
        The intercepts.
    indptr : ndarray of shape (n_documents + 1,)
        Where each document's entries start.

    Returns
    -------
    decisions : ndarray of shape (n_entries, n_outputs)
        Decision values of the entry's document without the entry's token.
    unresolved : ndarray of shape (n_unresolved,)
        Entries next to which all other shares underflow, so that their ratio is lost.
    """
    documents = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    # At most one token a document has more than half. For it, subtraction would cancel: the
    # others are summed instead.
    dominant = attention > 0.5
    remaining = np.where(dominant, 0.0, attention)
    share = row_sums(remaining, documents, len(cls_attention)) + cls_attention
    term = row_sums(np.where(dominant[:, None], 0.0, contributions), documents, len(cls_attention))
    full_share = share + row_sums(np.where(dominant, attention, 0.0), documents, len(share))
    full_term = term + row_sums(
        np.where(dominant[:, None], contributions, 0.0), documents, len(share)
    )
    others_share = np.where(dominant, share[documents], full_share[documents] - attention)
    others_term = np.where(dominant[:, None], term[documents], full_term[documents] - contributions)
    alone = np.repeat(np.diff(indptr) == 1, np.diff(indptr))
    unresolved = np.flatnonzero((others_share < _SMALLEST_SHARE) & ~alone)
    others_share[others_share < _SMALLEST_SHARE] = 1.0
    without = others_term / others_share[:, None]
    without[alone] = 0.0
    return without + intercept, unresolved


def decisions_without_by_removing(
    classifier: Any, X: sp.csr_array, entries: NDArray[np.intp]
) -> Array:
    """Return the decisions without each of some tokens, by predicting without it.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        A fitted classifier, of any number of layers.
    X : csr_array of shape (n_documents, n_tokens)
        Token counts, every one stored once.
    entries : ndarray of shape (n_entries,)
        Places in ``X.data`` of the tokens to remove, one at a time.

    Returns
    -------
    decisions : ndarray of shape (n_entries, n_outputs)
        Decision values of the entry's document without the entry's token.
    """
    n_outputs = len(classifier.intercept_)
    decisions = np.empty((len(entries), n_outputs))
    documents = np.searchsorted(X.indptr, entries, side="right") - 1
    lengths = np.diff(X.indptr)[documents]
    blocks = np.cumsum(lengths) // _BLOCK_ENTRIES
    for block in np.unique(blocks):
        chosen = np.flatnonzero(blocks == block)
        changed = X[documents[chosen]]
        places = changed.indptr[:-1] + entries[chosen] - X.indptr[documents[chosen]]
        changed.data[places] = 0.0
        with warnings.catch_warnings():
            # The columns are right: they are those of the documents that were given.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            decisions[chosen] = classifier.decision_function(changed).reshape(-1, n_outputs)
    return decisions


def row_sums(entries: Array, documents: NDArray[np.intp], n_documents: int) -> Array:
    """Return the sums over each document's entries.

    Parameters
    ----------
    entries : ndarray of shape (n_entries,) or (n_entries, n_outputs)
        What to add up.
    documents : ndarray of shape (n_entries,)
        The document of each entry.
    n_documents : int
        How many documents there are.

    Returns
    -------
    sums : ndarray of shape (n_documents,) or (n_documents, n_outputs)
        The sums, 0 for a document without entries.
    """
    if entries.ndim == 1:
        return np.bincount(documents, entries, n_documents).astype(np.float64)
    sums = [np.bincount(documents, column, n_documents) for column in entries.T]
    return np.column_stack(sums) if sums else np.zeros((n_documents, 0))
