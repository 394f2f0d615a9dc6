"""The concentration of attention: its entropy, and the shares of the most attended tokens."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def concentration(
    weights: sp.csr_array, n_top: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each row's entropy in nats and its largest entries' cumulative shares, (n, n_top)."""
    n_documents = weights.shape[0]
    documents = np.repeat(np.arange(n_documents), np.diff(weights.indptr))
    data = weights.data.astype(np.float64)
    totals = np.bincount(documents, data, n_documents)
    shares = np.divide(data, totals[documents], out=np.zeros_like(data), where=data > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    # Without entries, bincount returns integers.
    entropy = np.abs(np.bincount(documents, -shares * logs, n_documents)).astype(np.float64)
    order = np.lexsort((-shares, documents))
    # Rows are in order, so that an entry's rank is its distance from the start of its row.
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
    """Return the number of rows (n_columns,) in which a non-negative csr_array is positive."""
    return np.bincount(rows.indices[rows.data > 0], minlength=rows.shape[1])
