"""How concentrated attention is: its entropy, and what the most attended tokens have of it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def concentration(
    weights: sp.csr_array, n_top: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the entropy of each row, divided by its sum, and the shares of its largest entries.

    Parameters
    ----------
    weights : csr_array of shape (n_documents, n_tokens)
        Non-negative, each entry stored once.
    n_top : int
        Up to how many of the largest entries are added up.

    Returns
    -------
    entropy : ndarray of shape (n_documents,)
        In nats; NaN for rows that sum to 0.
    top_shares : ndarray of shape (n_documents, n_top)
        Of the 1, 2, ..., n_top largest entries together; NaN for rows that sum to 0.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from sklearn_clsattn.inspection.concentration import concentration
    >>> entropy, top_shares = concentration(sp.csr_array([[2.0, 1.0, 1.0], [0.0, 0.5, 0.0]]), 2)
    >>> entropy.round(3).tolist()
    [1.04, 0.0]
    >>> top_shares.tolist()
    [[0.5, 0.75], [1.0, 1.0]]
    """
    n_documents = weights.shape[0]
    documents = np.repeat(np.arange(n_documents), np.diff(weights.indptr))
    data = weights.data.astype(np.float64)
    totals = np.bincount(documents, data, n_documents)
    shares = np.divide(data, totals[documents], out=np.zeros_like(data), where=data > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    # Of no entries at all, bincount returns integers.
    entropy = np.abs(np.bincount(documents, -shares * logs, n_documents)).astype(np.float64)
    order = np.lexsort((-shares, documents))
    # Rows are in order already, so that an entry's rank is its distance from its row's start.
    rank = np.arange(len(order)) - weights.indptr[documents]
    leading = rank < n_top
    top = np.zeros((n_documents, n_top))
    top[documents[leading], rank[leading]] = shares[order[leading]]
    top = np.minimum(np.cumsum(top, axis=1), 1.0)
    empty = totals == 0
    entropy[empty] = np.nan
    top[empty] = np.nan
    return entropy, top


def documents_with(rows: sp.csr_array) -> NDArray[np.intp]:
    """Return in how many rows each column is positive.

    Parameters
    ----------
    rows : csr_array of shape (n_documents, n_tokens)
        Non-negative, each entry stored once.

    Returns
    -------
    documents : ndarray of shape (n_tokens,)
        Numbers of rows.
    """
    return np.bincount(rows.indices[rows.data > 0], minlength=rows.shape[1])
