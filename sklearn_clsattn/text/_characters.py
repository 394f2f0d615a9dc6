"""Counts of character n-grams inside words: those of distinct words, times the words' counts.

With ``analyzer="char_wb"`` an n-gram is part of one word between spaces, so the counts are a
product of sparse matrices, (documents x distinct words) by (distinct words x n-grams).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._symbols import Alphabet, distinct_runs, padded, ranges
from ._tokens import Tokens

Integers = NDArray[np.int64]

# Occurrences of words that are multiplied together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17


def count_characters(
    tokens: Tokens,
    ngram_range: tuple[int, int],
    *,
    low: float = 1,
    high: float = math.inf,
    dtype: Any = np.int64,
) -> tuple[sp.csr_matrix, list[str]]:
    """Count the character n-grams of words that `low` to `high` documents have.

    `tokens` are the words between spaces. Returns the counts, of shape (n_documents, n_features),
    and the features' names in alphabetical order.
    """
    by_word = _by_word(tokens.ids, tokens.indptr, len(tokens.words))
    frequencies = np.diff(by_word.indptr)

    def frequent(rows: Integers, numbers: Integers, n_ngrams: int) -> NDArray[np.bool_]:
        # An n-gram has the documents of every word that it is in: enough of one, perhaps. Where
        # not, those of all its words are counted, and they are few.
        enough = np.zeros(n_ngrams, dtype=bool)
        enough[numbers[frequencies[rows] >= low]] = True
        rest = ~enough[numbers]
        of_rest = _matrix(numbers[rest], rows[rest], (n_ngrams, len(frequencies))) @ by_word
        return enough | (np.diff(of_rest.indptr) >= low)

    rows, numbers, names = character_ngrams(tokens.words, ngram_range, frequent)
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    names = [names[i] for i in order.tolist()]
    counts, of_names = count_in_order(tokens, rows, numbers, order, dtype)
    if of_names.max(initial=0) > high:
        counts = counts[:, of_names <= high]
        names = list(compress(names, of_names <= high))
    return counts, names


def count_in_order(
    tokens: Tokens, rows: Integers, numbers: Integers, order: Integers, dtype: Any
) -> tuple[sp.csr_matrix, Integers]:
    """Return the counts of n-grams, with columns in an order of them, and document frequencies.

    `rows` and `numbers` are those that `character_ngrams` returns.
    """
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _multiply(tokens, _matrix(rows, rank[numbers], (len(tokens.words), len(order))), dtype)


def character_ngrams(
    words: list[str],
    ngram_range: tuple[int, int],
    chosen: Callable[[Integers, Integers, int], NDArray[np.bool_]] | None = None,
) -> tuple[Integers, Integers, list[str]]:
    """Return the n-grams of words: each occurrence's word and n-gram, and the n-grams' texts.

    Two arrays of numbers, (n_occurrences,), and a list. `chosen`, given such arrays and how many
    n-grams there are, says which of them to return.
    """
    rows, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    names: list[str] = []
    for row, number, ngrams in _ngrams(words, ngram_range):
        wanted = np.ones(len(ngrams), bool) if chosen is None else chosen(row, number, len(ngrams))
        kept = wanted[number]
        rows.append(row[kept])
        numbers.append((np.cumsum(wanted) - 1 + len(names))[number[kept]])
        names += compress(ngrams, wanted)
    return np.concatenate(rows), np.concatenate(numbers), names


def spelling_matrix(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> sp.csr_matrix:
    """Return how often words have a vocabulary's character n-grams, (n_words, n_columns)."""
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for row, number, ngrams in _ngrams(words, ngram_range):
        column = np.array([vocabulary.get(ngram, -1) for ngram in ngrams], dtype=np.int64)[number]
        rows.append(row[column >= 0])
        columns.append(column[column >= 0])
    shape = len(words), len(vocabulary)
    return _matrix(np.concatenate(rows), np.concatenate(columns), shape)


def look_up_characters(
    tokens: Tokens, ngram_range: tuple[int, int], vocabulary: Mapping[str, int], dtype: Any
) -> sp.csr_matrix:
    """Return how often documents have each n-gram of a vocabulary, (n_documents, n_columns)."""
    spelling = spelling_matrix(tokens.words, ngram_range, vocabulary)
    return _multiply(tokens, spelling, dtype)[0]


def _ngrams(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str]]]:
    """Yield the n-grams of words, one length after another.

    For every occurrence, the word that it is in and its number among the distinct n-grams,
    (n_occurrences,), and the latter's texts. A word is put between two spaces; one that is
    shorter than any n-gram is one itself.
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


def _matrix(rows: Integers, columns: Integers, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return a matrix of how often each pair of a row and a column is given."""
    return sp.csr_matrix((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)


def _by_word(ids: NDArray[Any], indptr: Integers, n_words: int) -> sp.csr_matrix:
    """Return how often words are in documents, (n_words, n_documents)."""
    ones = np.ones(len(ids), dtype=np.int32)
    counts = sp.csr_matrix((ones, ids, indptr), shape=(len(indptr) - 1, n_words)).tocsc()
    counts.sum_duplicates()
    return counts.T


def _multiply(
    tokens: Tokens, spelling: sp.csr_matrix, dtype: Any
) -> tuple[sp.csr_matrix, Integers]:
    """Return the counts of n-grams, (n_documents, n_columns), and their document frequencies.

    Some documents at a time, with their own words alone, into arrays that grow in place: a list
    of all parts would take as much memory again.
    """
    n_words, n_columns = spelling.shape
    frequencies = np.zeros(n_columns, dtype=np.int64)
    indices, data = np.empty(0, dtype=np.int32), np.empty(0, dtype=dtype)
    sizes = [np.zeros(1, dtype=np.int64)]
    used, place = np.zeros(n_words, dtype=bool), np.zeros(n_words, dtype=np.int32)
    n_entries = 0
    for first, last in tokens.spans(_CHUNK):
        start, stop = tokens.indptr[first], tokens.indptr[last]
        ids = tokens.ids[start:stop]
        used[:] = False
        used[ids] = True
        words = np.flatnonzero(used)
        place[words] = np.arange(len(words))
        by_word = _by_word(place[ids], tokens.indptr[first : last + 1] - start, len(words))
        # By n-gram; changing to documents is one pass, which leaves their columns in order.
        counts = spelling[words].T.tocsr() @ by_word
        frequencies += np.diff(counts.indptr)
        counts = counts.T.tocsr()
        here = slice(n_entries, n_entries + counts.nnz)
        if here.stop > len(indices):  # room for as many in what is left, and some more
            room = here.stop + int(1.05 * here.stop * (len(tokens.ids) - stop) / max(stop, 1))
            indices.resize(room, refcheck=False)
            data.resize(room, refcheck=False)
        indices[here], data[here] = counts.indices, counts.data
        sizes.append(np.diff(counts.indptr))
        n_entries = here.stop
    indices.resize(n_entries, refcheck=False)
    data.resize(n_entries, refcheck=False)
    indptr = np.cumsum(np.concatenate(sizes))
    shape = tokens.n_documents, n_columns
    return sp.csr_matrix((data, indices, indptr), shape=shape), frequencies
