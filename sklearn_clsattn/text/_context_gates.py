r"""Bags of gated occurrences: each counts its share of :math:`1 + \ln c` times its gate g.

An occurrence is summed as the complex number 1 + g i: the real part of a sum is the number of
occurrences, the imaginary part the sum of their gates.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._gate_scores import MAX_SCORE
from ._token_positions import TokenPositions
from ._tokens import Tokens

Array = NDArray[np.float64]

POWER = 0.5  # half of each score: the classifier learns a part of them again


def context_gates(
    positions: TokenPositions, start_scores: Array, end_scores: Array, previous_scores: Array
) -> Array:
    """Return the gates of the n-grams that begin at each token, (n_orders, n_tokens)."""
    scores = start_scores[:, positions.from_start] + end_scores[:, positions.from_end]
    scores += np.append(previous_scores, 0.0)[positions.previous]
    return np.exp(POWER * scores.clip(-MAX_SCORE, MAX_SCORE), out=scores)


def word_sums(
    columns: Sequence[NDArray[Any]], gates: Array, indptr: NDArray[Any], shape: Any, dtype: Any
) -> Any:
    """Return the complex sums of documents' n-grams of words, CSR (n_documents, n_columns)."""
    column = np.stack(columns, axis=1)
    present = column >= 0
    values = 1.0 + 1j * gates.T[present]
    ends = np.append(0, np.cumsum(present.sum(axis=1)))[indptr]
    sums = sparse.csr_matrix((values.astype(dtype), column[present], ends), shape=shape)
    sums.sum_duplicates()
    return sums


def first_tokens(spaced: Tokens, tokens: Tokens) -> NDArray[np.intp]:
    """Return the first token in each word between spaces, -1 where there is none, (n_spaced,)."""
    far = int(max(spaced.stops.max(initial=0), tokens.starts.max(initial=0))) + 1
    begins = tokens.documents * np.int64(far) + tokens.starts
    starts = spaced.documents * np.int64(far) + spaced.starts
    first = np.searchsorted(begins, starts)
    stops = starts + (spaced.stops - spaced.starts)
    inside = np.append(begins, np.iinfo(np.int64).max)[first] < stops
    return np.where(inside, first, -1)


def gated_bag(sums: Any) -> Any:
    """Return the bag of complex sums, CSR (n_documents, n_columns), in their precision."""
    counts = sums.data.real
    damped = 1.0 + np.log(counts)
    values = damped / counts * sums.data.imag
    filled = np.diff(sums.indptr) > 0
    starts = sums.indptr[:-1][filled]
    whole, gated = (np.add.reduceat(one, starts, dtype=np.float64) for one in (damped, values))
    scale = (whole / gated).astype(values.dtype)
    values *= np.repeat(scale, np.diff(sums.indptr)[filled])
    return sparse.csr_matrix((values, sums.indices, sums.indptr), shape=sums.shape)
