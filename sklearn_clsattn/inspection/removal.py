r"""The exact decision without one token of its document.

With one layer of attention only the other shares change, which are rescaled to sum to 1:

.. math:: F_k^{(-s)} = \beta_k + \frac{\sum_{j \ne s} q_j b_{jk}}{\sum_{j \ne s} q_j},

where j ranges over the other tokens and ``<cls>`` (of value 0); an empty document's decision is the
intercept.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Smaller shares have lost digits to underflow.
_SMALLEST_SHARE = 1e-200
_BLOCK_ENTRIES = 2_000_000


def decisions_without_in_closed_form(
    attention: Array,
    contributions: Array,
    cls_attention: Array,
    intercept: Array,
    indptr: NDArray[np.intp],
) -> tuple[Array, NDArray[np.intp]]:
    """Return the decisions (n_entries, n_outputs) without each token, for one attention layer.

    Also the entries whose document's other shares underflow, so that their ratio is unknown.
    """
    lengths = np.diff(indptr)
    documents, alone = np.repeat(np.arange(len(lengths)), lengths), np.repeat(lengths == 1, lengths)
    # Where one token of a document has more than half, the others are summed, as subtraction
    # would cancel.
    dominant = attention > 0.5

    def sums(of: Array, entries: NDArray[np.bool_]) -> Array:
        kept = np.where(entries[:, None] if of.ndim > 1 else entries, of, 0.0)
        return row_sums(kept, documents, len(lengths))

    share, term = sums(attention, ~dominant) + cls_attention, sums(contributions, ~dominant)
    full_share, full_term = share + sums(attention, dominant), term + sums(contributions, dominant)
    others_share = np.where(dominant, share[documents], full_share[documents] - attention)
    others_term = np.where(dominant[:, None], term[documents], full_term[documents] - contributions)
    unresolved = np.flatnonzero((others_share < _SMALLEST_SHARE) & ~alone)
    others_share[others_share < _SMALLEST_SHARE] = 1.0
    without = others_term / others_share[:, None]
    without[alone] = 0.0
    return without + intercept, unresolved


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Ignore that a matrix has no names: those of the documents have been checked."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def decisions_without_by_removing(
    classifier: Any, X: sp.csr_array, entries: NDArray[np.intp]
) -> Array:
    """Return the decisions (n_entries, n_outputs) without each of some tokens, by prediction."""
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
        with without_name_warnings():
            decisions[chosen] = classifier.decision_function(changed).reshape(-1, n_outputs)
    return decisions


def row_sums(entries: Array, documents: NDArray[np.intp], n_documents: int) -> Array:
    """Return the sums, of shape (n_documents, ...), over each document's entries."""
    if entries.ndim == 1:
        return np.bincount(documents, entries, n_documents).astype(np.float64)
    sums = [np.bincount(documents, column, n_documents) for column in entries.T]
    return np.column_stack(sums) if sums else np.zeros((n_documents, 0))
