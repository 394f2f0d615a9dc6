"""Counts of character n-grams within words: products of sparse matrices, stacked by rows."""

from collections.abc import Iterator, Mapping
from itertools import compress, repeat
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
    low: float,
    high: float,
    dtype: Any,
) -> tuple[sp.csr_matrix, list[str]]:
    """Count the character n-grams of words between spaces that `low` to `high` documents have."""
    spelling, names = frequent_characters(tokens, ngram_range, low=low)
    counts = count_spelled(tokens, spelling, dtype)
    if high < tokens.n_documents:
        common = np.bincount(counts.indices, minlength=len(names)) <= high
        if not common.all():
            counts, names = counts[:, common], list(compress(names, common))
    return counts, names


def frequent_characters(
    tokens: Tokens, ngram_range: tuple[int, int], *, low: float
) -> tuple[sp.csr_matrix, list[str]]:
    """Return how often words between spaces have each character n-gram, and the n-grams' names.

    The matrix is (n_words, n_ngrams), of n-grams in at least `low` documents, alphabetically.
    """
    n_words = len(tokens.words)
    ones = np.ones(len(tokens.ids), dtype=np.int32)
    by_word = _by_word(tokens.ids, tokens.indptr, n_words, ones)
    document_frequencies = np.diff(by_word.indptr)
    rows, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    names: list[str] = []
    for row, number, ngrams in _ngrams(tokens.words, ngram_range):
        # One word of an n-gram may already be in enough documents. Only for the few other n-grams
        # are the documents of all words counted.
        frequent = np.zeros(len(ngrams), dtype=bool)
        frequent[number[document_frequencies[row] >= low]] = True
        rest = ~frequent[number]
        of_rest = _occurrence_counts(number[rest], row[rest], (len(ngrams), n_words)) @ by_word
        frequent |= np.diff(of_rest.indptr) >= low
        taken = frequent[number]
        rows.append(row[taken])
        numbers.append((np.cumsum(frequent) - 1 + len(names))[number[taken]])
        names += compress(ngrams, frequent)
    order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    columns = rank[np.concatenate(numbers)]
    spelling = _occurrence_counts(np.concatenate(rows), columns, (n_words, len(order)))
    return spelling, [names[i] for i in order.tolist()]


def spelling_matrix(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> sp.csr_matrix:
    """Return how often words have a vocabulary's character n-grams, (n_words, n_columns)."""
    rows, columns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for row, number, ngrams in _ngrams(words, ngram_range):
        known = map(vocabulary.get, ngrams, repeat(-1))
        column = np.fromiter(known, np.int64, len(ngrams))[number]
        rows.append(row[column >= 0])
        columns.append(column[column >= 0])
    shape = len(words), len(vocabulary)
    return _occurrence_counts(np.concatenate(rows), np.concatenate(columns), shape)


def count_spelled(tokens: Tokens, spelling: sp.csr_matrix, dtype: Any) -> sp.csr_matrix:
    """Return how often documents have what words have, `spelling`, (n_documents, n_columns)."""
    counts = RowStack((tokens.n_documents, spelling.shape[1]), dtype)
    for first, last in tokens.blocks(_CHUNK):
        indptr = tokens.indptr[first : last + 1]
        ids = tokens.ids[indptr[0] : indptr[-1]]
        ones = np.ones(len(ids), dtype=np.int32)
        counts.append(sum_spelled(ids, indptr - indptr[0], ones, spelling))
    return counts.matrix()


def sum_spelled(
    ids: NDArray[Any], indptr: Integers, values: NDArray[Any], spelling: sp.csr_matrix
) -> sp.csr_matrix:
    """Return the sums over documents' words of a value times the counts of its n-grams."""
    used = np.zeros(spelling.shape[0], dtype=bool)
    used[ids] = True
    words = np.flatnonzero(used)
    position = np.empty(len(used), dtype=np.int32)
    position[words] = np.arange(len(words))
    by_word = _by_word(position[ids], indptr, len(words), values)
    # By n-gram; changing to documents is one pass, which leaves their columns in order.
    return (spelling[words].astype(values.dtype).T.tocsr() @ by_word).T.tocsr()


def _ngrams(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str]]]:
    """Yield the word and the n-gram of each occurrence, (n_occurrences,), and the n-grams' texts.

    One length at a time. Words get a space at each end; a shorter word is an n-gram itself.
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


def located_ngrams(word: str, ngram_range: tuple[int, int]) -> Iterator[tuple[str, int, int]]:
    """Yield the n-grams of a word between spaces, with their first and last + 1 character in it."""
    length, spaced = len(word), f" {word} "
    for n in range(ngram_range[0], ngram_range[1] + 1):
        for first in range(max(len(spaced) - n, 0) + 1):
            # A space alone has the position of the character beside it.
            start, stop = min(max(first - 1, 0), length - 1), max(min(first - 1 + n, length), 1)
            yield spaced[first : first + n], start, stop
        if len(spaced) <= n:  # a short word counts once
            break


def _occurrence_counts(rows: Integers, columns: Integers, shape: tuple[int, int]) -> sp.csr_matrix:
    """Return a matrix of how often each pair of a row and a column is given."""
    return sp.csr_matrix((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)


def _by_word(
    ids: NDArray[Any], indptr: Integers, n_words: int, values: NDArray[Any]
) -> sp.csr_matrix:
    """Return the sums of values, (n_occurrences,), by word and document, (n_words, n_documents)."""
    sums = sp.csr_matrix((values, ids, indptr), shape=(len(indptr) - 1, n_words)).tocsc()
    sums.sum_duplicates()
    return sums.T


class RowStack:
    """A CSR matrix that grows by rows: stacking a list of parts would take twice the memory."""

    def __init__(self, shape: tuple[int, int], dtype: Any) -> None:
        self.shape = shape
        self._indices, self._data = np.empty(0, dtype=np.int32), np.empty(0, dtype=dtype)
        self._indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        self._n_rows = 0

    def append(self, rows: Any) -> None:
        """Add the rows of a CSR matrix."""
        start = int(self._indptr[self._n_rows])
        here = slice(start, start + rows.nnz)
        n_rows = self._n_rows + rows.shape[0]
        if here.stop > len(self._indices):  # room for as many in the rows to come, and some more
            self._resize(int(1.05 * here.stop * self.shape[0] / n_rows))
        self._indices[here], self._data[here] = rows.indices, rows.data
        self._indptr[self._n_rows + 1 : n_rows + 1] = start + rows.indptr[1:].astype(np.int64)
        self._n_rows = n_rows

    def matrix(self) -> sp.csr_matrix:
        """Return the matrix, once all rows are added."""
        self._resize(int(self._indptr[-1]))
        return sp.csr_matrix((self._data, self._indices, self._indptr), shape=self.shape)

    def _resize(self, n_entries: int) -> None:
        self._indices.resize(n_entries, refcheck=False)
        self._data.resize(n_entries, refcheck=False)
