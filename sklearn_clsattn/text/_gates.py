r"""Bags of gated occurrences.

Occurrence o of feature s in document i gets the weight :math:`v_o g_o h_i`: its part
:math:`v_o = (1 + \ln c_{is}) / c_{is}` of the entry :math:`1 + \ln c_{is}` of all, times its gate
:math:`g_o`, the exponential of half its score, times what keeps the document's total weight.

While they are added up, an occurrence is a complex number, 1 + g i: one sum has the count of
occurrences in its real part and the sum of their gates in its imaginary part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._context import MAX_SCORE
from ._places import Places, distinct_words
from ._tokens import Tokens

Array = NDArray[np.float64]

POWER = 0.5
"""Scores count half in the bag: the classifier learns again a part of what they say."""

_BLOCK = 1000  # documents whose occurrences are added up together


def multipliers(
    places: Places, start_scores: Array, end_scores: Array, previous_scores: Array
) -> Array:
    """Return the gates of the n-grams that begin at each token, (n_orders, n_tokens).

    Scores of the start and of the end are (n_orders, n_cells), of the word before (n_previous,).
    """
    scores = start_scores[:, places.from_start] + end_scores[:, places.from_end]
    scores += np.append(previous_scores, 0.0)[places.previous]
    return np.exp(POWER * scores.clip(-MAX_SCORE, MAX_SCORE), out=scores)


def word_bag(tokens: Tokens, columns: Sequence[NDArray[Any]], gates: Array, n_columns: int) -> Any:
    """Return the bag of the n-grams of words of documents, CSR (n_documents, n_columns).

    `columns`, one array for every number of words, and the rows of `gates` are (n_tokens,).
    """
    bags = []
    for start in range(0, max(tokens.n_documents, 1), _BLOCK):
        indptr = tokens.indptr[start : start + _BLOCK + 1]
        here = slice(int(indptr[0]), int(indptr[-1]))
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        parts = []
        for column, gate in zip(columns, gates, strict=True):
            at = np.flatnonzero(column[here] >= 0)
            parts.append((rows[at], column[here][at], 1.0 + 1j * gate[here][at]))
        row, column, value = (np.concatenate(one) for one in zip(*parts, strict=True))
        shape = (len(indptr) - 1, n_columns)
        bags.append(gated_bag(sparse.coo_array((value, (row, column)), shape=shape).tocsr()))
    return sparse.vstack(bags, format="csr")


def spaced_gates(spaced: Tokens, tokens: Tokens, gates: Array) -> Array:
    """Return the gates of words between spaces: of the first token in each, 1 without; (n_spaced,).

    `gates`, (n_tokens,), are those of single words.
    """
    far = int(max(spaced.stops.max(initial=0), tokens.starts.max(initial=0))) + 1
    begins = tokens.documents * np.int64(far) + tokens.starts
    starts = spaced.documents * np.int64(far) + spaced.starts
    first = np.searchsorted(begins, starts)
    inside = np.append(begins, np.iinfo(np.int64).max)[first] < starts + (
        spaced.stops - spaced.starts
    )
    return np.where(inside, np.append(gates, 1.0)[first], 1.0)


def character_bag(spaced: Tokens, gates: Array, parts: Any) -> Any:
    """Return the bag of the character n-grams of documents, CSR (n_documents, n_columns).

    `parts`, CSR (n_distinct_words, n_columns), counts every distinct word's n-grams; `gates`,
    (n_spaced,), are those of the words' occurrences.
    """
    words = distinct_words(spaced, 1.0 + 1j * gates)
    bags = [gated_bag(sums) for sums in products(words, parts)]
    return sparse.vstack(bags, format="csr")


def products(words: Any, parts: Any) -> Iterator[Any]:
    """Yield ``words @ parts``, block of documents after block; columns are in order."""
    parts = sparse.csr_array(parts, dtype=np.float64)
    for start in range(0, words.shape[0], _BLOCK) if words.shape[0] else [0]:
        sums = words[start : start + _BLOCK] @ parts
        sums.sort_indices()
        yield sums


def gated_bag(sums: Any) -> Any:
    """Return the bag of complex sums, CSR (n_documents, n_columns) in float64."""
    counts = sums.data.real
    damped = 1.0 + np.log(counts)
    values = damped / counts * sums.data.imag
    scale = np.divide(
        _row_sums(damped, sums.indptr),
        wanted := _row_sums(values, sums.indptr),
        out=np.ones(sums.shape[0]),
        where=wanted > 0,
    )
    values *= np.repeat(scale, np.diff(sums.indptr))
    return sparse.csr_matrix((values, sums.indices, sums.indptr), shape=sums.shape)


def _row_sums(values: Array, indptr: NDArray[Any]) -> Array:
    """Return the sums of a CSR matrix's values (n_entries,) by row, (n_rows,)."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.asarray(np.bincount(rows, values, len(indptr) - 1), dtype=np.float64)
