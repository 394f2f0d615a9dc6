"""Counting character n-grams within words, as products of sparse matrices."""

import math
from collections.abc import Iterator, Mapping
from itertools import compress, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._documents import index_type
from .._types import Integers
from ._ngrams import stack_rows
from ._symbols import Alphabet, distinct_runs, padded, ranges
from ._tokens import Tokens

# Occurrences of words that are multiplied together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17


def frequent_characters(
    tokens: Tokens,
    ngram_range: tuple[int, int],
    low: float,
    high: float = math.inf,
    weights: NDArray[np.float64] | None = None,
) -> tuple[sp.csr_array, list[str]]:
    """Return the counts of character n-grams in words between spaces, and the n-grams' names.

    The matrix is (n_words, n_ngrams), in alphabetical order, of n-grams that are in at least `low`
    documents and occur at most `high` times in different words of documents, where documents count
    by their `weights`, (n_documents,), if there are any.
    """
    n_words = len(tokens.words)
    by_word = _by_word(tokens.ids, tokens.indptr, n_words)
    document_frequencies = np.diff(by_word.indptr)
    weighted_frequencies = document_frequencies
    if weights is not None:
        ones = np.ones(by_word.nnz)
        present = sp.csr_array((ones, by_word.indices, by_word.indptr), shape=by_word.shape)
        weighted_frequencies = present @ weights
    words, numbers, names = [], [], list[str]()
    for word, number, ngrams in _ngrams(tokens.words, ngram_range):
        # One word of an n-gram may already be in enough documents. The documents of all words are
        # counted only for the few other n-grams.
        frequent = np.zeros(len(ngrams), dtype=bool)
        frequent[number[document_frequencies[word] >= low]] = True
        rest = ~frequent[number]
        of_rest = _occurrence_counts(number[rest], word[rest], (len(ngrams), n_words)) @ by_word
        frequent |= np.diff(of_rest.indptr) >= low
        if high < math.inf:
            frequent &= np.bincount(number, weighted_frequencies[word], len(ngrams)) <= high
        taken = frequent[number]
        words.append(word[taken])
        numbers.append((np.cumsum(frequent) - 1 + len(names))[number[taken]])
        names += compress(ngrams, frequent)
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    columns = rank[np.concatenate(numbers)]
    spelling = _occurrence_counts(np.concatenate(words), columns, (n_words, len(names)))
    return spelling, [names[i] for i in order.tolist()]


def spelling_matrix(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> sp.csr_array:
    """Return the counts of a vocabulary's character n-grams in words, (n_words, n_columns)."""
    rows, columns = [], []
    for word, number, ngrams in _ngrams(words, ngram_range):
        of_ngrams = np.fromiter(map(vocabulary.get, ngrams, repeat(-1)), np.int64, len(ngrams))
        column = of_ngrams[number]
        rows.append(word[column >= 0])
        columns.append(column[column >= 0])
    shape = len(words), len(vocabulary)
    return _occurrence_counts(np.concatenate(rows), np.concatenate(columns), shape)


def count_spelled(tokens: Tokens, spelling: sp.csr_array, dtype: Any) -> sp.csr_array:
    """Return counts in documents, (n_documents, n_columns), from counts in words, `spelling`."""

    def counted(here: slice, indptr: Integers) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        ids = tokens.ids[here]
        used = np.zeros(spelling.shape[0], dtype=bool)
        used[ids] = True
        position = np.cumsum(used, dtype=np.int32) - 1
        by_word = _by_word(position[ids], indptr, int(used.sum()))
        # By n-gram; conversion to documents is one pass, which leaves their columns in order.
        part = (spelling[used].T.tocsr() @ by_word).T.tocsr()
        return part.data, part.indices, part.indptr[1:]

    parts = (counted(here, indptr) for _, here, indptr in tokens.blocks(_CHUNK))
    shape = tokens.n_documents, spelling.shape[1]
    return sp.csr_array(stack_rows(parts, tokens.n_documents, dtype), shape=shape)


def _ngrams(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str]]]:
    """Yield word and n-gram of each occurrence, and the n-grams' texts, one length at a time.

    Words get a space at each end; a shorter word is an n-gram itself.
    """
    text = f" {'  '.join(words)} "
    symbols = padded([Alphabet("(?s:.)").encode(text)])
    sizes = np.fromiter(map(len, words), np.int64, len(words)) + 2
    at = np.cumsum(sizes) - sizes
    short = np.flatnonzero(sizes < ngram_range[0])
    yield short, np.arange(len(short)), [f" {words[i]} " for i in short.tolist()]
    for n in range(ngram_range[0], ngram_range[1] + 1):
        counts = np.maximum(sizes - n + 1, 0)
        starts = ranges(at, counts)
        numbers, examples = distinct_runs(symbols, starts, np.full(len(starts), n))
        firsts = starts[examples].tolist()
        rows = np.repeat(np.arange(len(words)), counts)
        yield rows, numbers, [text[first : first + n] for first in firsts]


def _occurrence_counts(rows: Integers, columns: Integers, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix of the counts of pairs of a row and a column."""
    kind = index_type(max(len(rows), *shape))
    ends = rows.astype(kind), columns.astype(kind)
    return sp.csr_array((np.ones(len(rows), dtype=np.int32), ends), shape=shape)


def _by_word(ids: NDArray[Any], indptr: Integers, n_words: int) -> sp.csr_array:
    """Return the counts of words in documents, (n_words, n_documents)."""
    ones = np.ones(len(ids), dtype=np.int32)
    kind = index_type(len(ids))
    arrays = ones, ids.astype(kind, copy=False), indptr.astype(kind, copy=False)
    sums = sp.csr_array(arrays, shape=(len(indptr) - 1, n_words)).tocsc()
    sums.sum_duplicates()
    return sums.T
