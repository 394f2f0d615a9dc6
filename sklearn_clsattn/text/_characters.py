"""Counts of character n-grams inside words, as sparse matrices of documents, words and n-grams."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import compress, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._row_stack import RowStack
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
    """Count the character n-grams of words between spaces that `low` to `high` documents have."""
    spelling, names = frequent_characters(tokens, ngram_range, low=low)
    counts = count_parts(tokens, spelling, dtype)
    if high < tokens.n_documents:
        common = np.bincount(counts.indices, minlength=len(names)) <= high
        if not common.all():
            counts = counts[:, common]
            names = list(compress(names, common))
    return counts, names


def frequent_characters(
    tokens: Tokens, ngram_range: tuple[int, int], *, low: float
) -> tuple[sp.csr_matrix, list[str]]:
    """Return the character n-grams that at least `low` documents have, in alphabetical order.

    How often the words, those between spaces, have each, (n_words, n_ngrams), and their names.
    """
    ones = np.ones(len(tokens.ids), dtype=np.int32)
    by_word = _by_word(tokens.ids, tokens.indptr, len(tokens.words), ones)
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
    spelling = spelled(len(tokens.words), rows, numbers, order)
    return spelling, [names[i] for i in order.tolist()]


def spelled(n_words: int, rows: Integers, numbers: Integers, order: Integers) -> sp.csr_matrix:
    """Return how often words have n-grams, (n_words, n_ngrams), with columns in an order."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _matrix(rows, rank[numbers], (n_words, len(order)))


def character_ngrams(
    words: list[str],
    ngram_range: tuple[int, int],
    chosen: Callable[[Integers, Integers, int], NDArray[np.bool_]] | None = None,
) -> tuple[Integers, Integers, list[str]]:
    """Return the n-grams of words: each occurrence's word and n-gram, and the n-grams' texts."""
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
        found = map(vocabulary.get, ngrams, repeat(-1))
        column = np.fromiter(found, np.int64, len(ngrams))[number]
        rows.append(row[column >= 0])
        columns.append(column[column >= 0])
    shape = len(words), len(vocabulary)
    return _matrix(np.concatenate(rows), np.concatenate(columns), shape)


def count_parts(tokens: Tokens, spelling: sp.csr_matrix, dtype: Any) -> sp.csr_matrix:
    """Return how often documents have what words have, `spelling`, (n_documents, n_columns)."""
    counts = RowStack((tokens.n_documents, spelling.shape[1]), dtype)
    for first, last in tokens.spans(_CHUNK):
        indptr = tokens.indptr[first : last + 1]
        ids = tokens.ids[indptr[0] : indptr[-1]]
        sums = sum_parts(ids, indptr - indptr[0], np.ones(len(ids), dtype=np.int32), spelling)
        counts.append(sums)
    return counts.matrix()


def sum_parts(
    ids: NDArray[Any], indptr: Integers, values: NDArray[Any], spelling: sp.csr_matrix
) -> sp.csr_matrix:
    """Return sums over the words of documents of a value times their n-grams' counts."""
    used = np.zeros(spelling.shape[0], dtype=bool)
    used[ids] = True
    words = np.flatnonzero(used)
    place = np.empty(len(used), dtype=np.int32)
    place[words] = np.arange(len(words))
    by_word = _by_word(place[ids], indptr, len(words), values)
    # By n-gram; changing to documents is one pass, which leaves their columns in order.
    return (spelling[words].astype(values.dtype).T.tocsr() @ by_word).T.tocsr()


def _ngrams(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str]]]:
    """Yield each occurrence's word and n-gram, (n_occurrences,), and the texts, length by length.

    A word is put between two spaces; one that is shorter than any n-gram is one itself.
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


def _by_word(
    ids: NDArray[Any], indptr: Integers, n_words: int, values: NDArray[Any]
) -> sp.csr_matrix:
    """Return the sums of values, (n_occurrences,), by word and document, (n_words, n_documents)."""
    sums = sp.csr_matrix((values, ids, indptr), shape=(len(indptr) - 1, n_words)).tocsc()
    sums.sum_duplicates()
    return sums.T
