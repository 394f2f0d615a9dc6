"""Counts of character n-grams within words: products of sparse matrices, stacked by rows."""

from collections.abc import Iterator, Mapping
from itertools import compress, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._ngrams import stack_rows
from ._symbols import Alphabet, distinct_runs, padded, ranges
from ._tokens import Tokens

Integers = NDArray[np.int64]

# Occurrences of words that are multiplied together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17


def frequent_characters(
    tokens: Tokens, ngram_range: tuple[int, int], low: float
) -> tuple[sp.csr_matrix, list[str]]:
    """Return how often words between spaces have each character n-gram, and the n-grams' names.

    The matrix is (n_words, n_ngrams), of n-grams in at least `low` documents, alphabetically.
    """
    n_words = len(tokens.words)
    ones = np.ones(len(tokens.ids), dtype=np.int32)
    by_word = _by_word(tokens.ids, tokens.indptr, n_words, ones)
    document_frequencies = np.diff(by_word.indptr)
    words, numbers, names = [], [], list[str]()
    for word, number, ngrams, *_ in _ngrams(tokens.words, ngram_range):
        # One word of an n-gram may already be in enough documents. Only for the few other n-grams
        # are the documents of all words counted.
        frequent = np.zeros(len(ngrams), dtype=bool)
        frequent[number[document_frequencies[word] >= low]] = True
        rest = ~frequent[number]
        of_rest = _occurrence_counts(number[rest], word[rest], (len(ngrams), n_words)) @ by_word
        frequent |= np.diff(of_rest.indptr) >= low
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
) -> sp.csr_matrix:
    """Return how often words have a vocabulary's character n-grams, (n_words, n_columns)."""
    known = list(_known(words, ngram_range, vocabulary))
    rows, columns = (np.concatenate([one[k] for one in known]) for k in (0, 1))
    return _occurrence_counts(rows, columns, (len(words), len(vocabulary)))


def located_characters(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> NDArray[np.int64]:
    """Return word, column, start and stop in it of a vocabulary's n-grams, (4, n_occurrences)."""
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    at = np.cumsum(sizes + 2) - sizes - 1
    found = []
    for word, column, starts, n in _known(words, ngram_range, vocabulary):
        first, size = starts - at[word], sizes[word]
        # A space alone has the edges of the character beside it.
        edges = first.clip(0, size - 1), (first + n).clip(1, size)
        found.append(np.stack([word, column, *edges]))
    return np.concatenate(found, axis=1)


def _known(
    words: list[str], ngram_range: tuple[int, int], vocabulary: Mapping[str, int]
) -> Iterator[tuple[Integers, Integers, Integers, int]]:
    """Yield word, column, start and length of occurrences, as `_ngrams`, of a vocabulary's."""
    for word, number, ngrams, starts, n in _ngrams(words, ngram_range):
        columns = map(vocabulary.get, ngrams, repeat(-1))
        column = np.fromiter(columns, np.int64, len(ngrams))[number]
        known = column >= 0
        yield word[known], column[known], starts[known], n


def count_spelled(tokens: Tokens, spelling: sp.csr_matrix, dtype: Any) -> sp.csr_matrix:
    """Return how often documents have what words have, `spelling`, (n_documents, n_columns)."""

    def counted(here: slice, indptr: Integers) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        ones = np.ones(here.stop - here.start, dtype=np.int32)
        part = sum_spelled(tokens.ids[here], indptr, ones, spelling)
        return part.data, part.indices, part.indptr[1:]

    parts = (counted(here, indptr) for _, here, indptr in tokens.blocks(_CHUNK))
    return stack_rows(parts, (tokens.n_documents, spelling.shape[1]), dtype)


def sum_spelled(
    ids: NDArray[Any], indptr: Integers, values: NDArray[Any], spelling: sp.csr_matrix
) -> sp.csr_matrix:
    """Return the sums over documents' words of a value times the counts of its n-grams."""
    used = np.zeros(spelling.shape[0], dtype=bool)
    used[ids] = True
    position = np.cumsum(used, dtype=np.int32) - 1
    by_word = _by_word(position[ids], indptr, int(used.sum()), values)
    # By n-gram; changing to documents is one pass, which leaves their columns in order.
    return (spelling[used].astype(values.dtype).T.tocsr() @ by_word).T.tocsr()


def _ngrams(
    words: list[str], ngram_range: tuple[int, int]
) -> Iterator[tuple[Integers, Integers, list[str], Integers, int]]:
    """Yield word, n-gram and start of each occurrence, the n-grams' texts, and their length.

    One length at a time. Words get a space at each end; a shorter word is an n-gram itself. Starts
    are in the text of all words in turn.
    """
    text = f" {'  '.join(words)} "
    symbols = padded([Alphabet("(?s:.)").encode(text)])
    sizes = np.fromiter(map(len, words), np.int64, len(words)) + 2
    at = np.cumsum(sizes) - sizes
    short = np.flatnonzero(sizes < ngram_range[0])
    ngrams = [f" {words[i]} " for i in short.tolist()]
    yield short, np.arange(len(short)), ngrams, at[short], ngram_range[0]
    for n in range(ngram_range[0], ngram_range[1] + 1):
        counts = np.maximum(sizes - n + 1, 0)
        starts = ranges(at, counts)
        numbers, examples = distinct_runs(symbols, starts, np.full(len(starts), n))
        firsts = starts[examples].tolist()
        rows = np.repeat(np.arange(len(words)), counts)
        yield rows, numbers, [text[first : first + n] for first in firsts], starts, n


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
