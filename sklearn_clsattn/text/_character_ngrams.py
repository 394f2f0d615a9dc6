"""Counting character n-grams within words, as products of sparse matrices."""

import math
from collections.abc import Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._matrices import index_type
from .._threads import map_in_threads
from .._types import Integers
from ._characters import Alphabet, distinct_runs, padded, ranges
from ._ngrams import RowsPart, stack_rows
from ._tokens import Tokens, count_words, look_up

CHARACTER_PREFIX = "char:  "
"""Of the names of character n-grams. Word n-grams never have two spaces in a row."""

# Occurrences of words that are multiplied together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17


def frequent_characters(
    words: list[str],
    word_counts: sp.csc_array,
    ngram_range: tuple[int, int],
    low: float,
    high: float = math.inf,
    weights: NDArray[np.float64] | None = None,
) -> tuple[sp.csr_array, list[str]]:
    """Return the counts of character n-grams in words between spaces, and the n-grams' names.

    `word_counts` are those of the words in documents, (n_documents, n_words). The matrix is
    (n_words, n_ngrams), in alphabetical order, of n-grams that are in at least `low` documents and
    occur at most `high` times in different words of documents, where documents count by their
    `weights`, (n_documents,), if there are any.
    """
    n_words = len(words)
    by_word = word_counts.T
    document_frequencies = np.diff(by_word.indptr)
    weighted_frequencies = document_frequencies
    if weights is not None:
        present = by_word.astype(np.float64)
        present.data[:] = 1.0
        weighted_frequencies = present @ weights
    # 1) frequent n-grams of each length
    words_of_pairs = []
    numbers = []
    names: list[str] = []
    for word, ngram, texts in _ngrams_in_words(words, ngram_range):
        n_ngrams = len(texts)
        # One word of an n-gram may already be in enough documents. The documents of all words are
        # counted only for the few other n-grams.
        is_frequent = np.zeros(n_ngrams, dtype=bool)
        has_frequent_word = document_frequencies[word] >= low
        is_frequent[ngram[has_frequent_word]] = True
        is_open = ~is_frequent[ngram]
        words_of_open = _pair_counts(ngram[is_open], word[is_open], (n_ngrams, n_words))
        documents_of_open = words_of_open @ by_word
        is_frequent |= np.diff(documents_of_open.indptr) >= low
        if high < math.inf:
            occurrences = np.bincount(ngram, weighted_frequencies[word])
            is_frequent &= occurrences <= high
        number = np.cumsum(is_frequent) - 1 + len(names)
        is_kept = is_frequent[ngram]
        words_of_pairs.append(word[is_kept])
        numbers.append(number[ngram[is_kept]])
        names += compress(texts, is_frequent)
    # 2) columns in alphabetical order
    order = sorted(range(len(names)), key=names.__getitem__)
    column_of_number = np.empty(len(order), dtype=np.int64)
    column_of_number[order] = np.arange(len(order))
    rows = np.concatenate(words_of_pairs)
    columns = column_of_number[np.concatenate(numbers)]
    spelling = _pair_counts(rows, columns, (n_words, len(names)))
    return spelling, [names[i] for i in order]


def spelling_matrix(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> sp.csr_array:
    """Return the counts of a vocabulary's character n-grams in words, (n_words, n_columns)."""
    rows = []
    columns = []
    for word, ngram, texts in _ngrams_in_words(words, ngram_range):
        column = look_up(texts, vocabulary)[ngram]
        is_term = column >= 0
        rows.append(word[is_term])
        columns.append(column[is_term])
    shape = len(words), len(vocabulary)
    return _pair_counts(np.concatenate(rows), np.concatenate(columns), shape)


def count_spelled(tokens: Tokens, spelling: sp.csr_array, dtype: Any) -> sp.csr_array:
    """Return counts in documents, (n_documents, n_columns), from counts in words, `spelling`."""

    def part(block: tuple[slice, slice, Integers]) -> RowsPart:
        _, here, indptr = block
        return _count_block(tokens.ids[here], indptr, spelling)

    parts = map_in_threads(part, tokens.blocks(_CHUNK))
    arrays = stack_rows(parts, tokens.n_documents, dtype)
    shape = tokens.n_documents, spelling.shape[1]
    return sp.csr_array(arrays, shape=shape)


def _count_block(ids: NDArray[Any], indptr: Integers, spelling: sp.csr_array) -> RowsPart:
    """Return the counts of n-grams in documents with these words, (n_tokens,)."""
    is_used = np.zeros(spelling.shape[0], dtype=bool)
    is_used[ids] = True
    position = np.cumsum(is_used, dtype=np.int32) - 1
    words = count_words(position[ids], indptr, int(is_used.sum()))
    # By n-gram; conversion to documents is one pass, which leaves their columns in order.
    spelling_by_ngram = spelling[is_used].T.tocsr()
    by_ngram = spelling_by_ngram @ words.T
    by_document = by_ngram.T.tocsr()
    return by_document.data, by_document.indices, by_document.indptr[1:]


def _ngrams_in_words(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str]]]:
    """Yield word and n-gram of each occurrence, and the n-grams' texts, one length at a time.

    Words get a space at each end; a shorter word is an n-gram itself.
    """
    min_n, max_n = ngram_range
    n_words = len(words)
    text = f" {'  '.join(words)} "
    symbols = padded([Alphabet("(?s:.)").encode(text)])
    lengths = np.fromiter(map(len, words), np.int64, n_words) + 2  # with both spaces
    word_starts = np.cumsum(lengths) - lengths
    # 1) words that are shorter than any n-gram
    short = np.flatnonzero(lengths < min_n)
    short_texts = [f" {words[i]} " for i in short.tolist()]
    yield short, np.arange(len(short)), short_texts
    # 2) n-grams of each length
    for n in range(min_n, max_n + 1):
        n_ngrams = np.maximum(lengths - n + 1, 0)  # in each word
        starts = ranges(word_starts, n_ngrams)
        sizes = np.full(len(starts), n)
        numbers, examples = distinct_runs(symbols, starts, sizes)
        texts = [text[start : start + n] for start in starts[examples].tolist()]
        word = np.repeat(np.arange(n_words), n_ngrams)
        yield word, numbers, texts


def _pair_counts(rows: Integers, columns: Integers, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix of the counts of pairs of a row and a column."""
    ones = np.ones(len(rows), dtype=np.int32)
    kind = index_type(max(len(rows), *shape))
    places = rows.astype(kind), columns.astype(kind)
    return sp.csr_array((ones, places), shape=shape)
