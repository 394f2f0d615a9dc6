"""Counts of word n-grams from the tokens' numbers, and the columns of a vocabulary's n-grams.

The key of an n-gram is the number of its first n - 1 words, times the number of words, plus the
number of its last word. Packed with the document into one integer, keys are sorted and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import repeat
from operator import lt
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from ._tokens import Numbers, Tokens

Integers = NDArray[np.int64]

# Occurrences that are read together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17
_MAX_TABLE = 1 << 22  # keys below this are looked up in a table
_MAX_BITS = 63  # of a packed integer


def count_ngrams(
    tokens: Tokens,
    ngram_range: tuple[int, int],
    *,
    low: float = 1,
    high: float = math.inf,
    dtype: Any = np.int64,
) -> tuple[sp.csr_matrix, list[str], NgramColumns]:
    """Count the n-grams, of words without spaces, that are in `low` to `high` documents.

    Returns the counts, (n_documents, n_features), the names in alphabetical order, and the lookup
    of their columns in other documents.
    """
    spelled = sorted(tokens.words)
    rank = {word: number for number, word in enumerate(spelled)}
    words = np.array([rank[word] for word in tokens.words], dtype=np.int32)[tokens.ids]
    spelled_out = np.array([*spelled, ""], dtype=object)[:-1]
    walk = _NgramWalk(words, tokens.documents, len(spelled))
    grams = np.zeros((0, 1), dtype=np.int64)  # the words of each n-gram, (n, n_ngrams)
    levels: list[Integers] = []
    names: list[str] = []
    frequencies = [np.zeros(1, dtype=np.int64)]
    documents, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.uint8)]
    for n in range(1, ngram_range[1] + 1):
        ngrams, frequency, *entries = _tally(walk, tokens.n_documents, low, high)
        grams = np.concatenate([grams[:, ngrams // len(spelled)], [ngrams % len(spelled)]])
        if n >= ngram_range[0]:
            common = frequency <= high
            levels.append(grams[:, common])
            frequencies.append(frequency[common])
            documents += entries[0]
            counts += entries[1]
            names += map(" ".join, zip(*(spelled_out[row] for row in levels[-1]), strict=True))
        if n < ngram_range[1]:
            walk.advance(_KeyIndex(ngrams, walk.bound), len(ngrams))
    longest = len(levels[-1])
    table = np.concatenate(
        [np.pad(one, ((0, longest - len(one)), (0, 0)), constant_values=-1) for one in levels],
        axis=1,
    )
    order, names = _alphabetical(table, names)
    ends = np.cumsum(np.concatenate(frequencies))
    by_column = sp.csc_matrix(
        (np.concatenate(counts), np.concatenate(documents), ends),
        shape=(tokens.n_documents, len(names)),
    )
    del walk, entries, documents, counts  # what follows reuses their memory: new memory is slow
    # Changing to rows is one pass, which leaves every row's columns in order.
    by_row = by_column[:, order].tocsr()
    del by_column
    by_row.data = by_row.data.astype(dtype)
    return by_row, names, NgramColumns(spelled, table[:, order].astype(np.int32))


class NgramColumns:
    """The columns of word n-grams in a vocabulary.

    Column j is the n-gram of the words ``words[k]``, k in ``table[:, j]`` up to the first -1. The
    lookup goes through a tree whose level n has the beginnings of n words.
    """

    def __init__(self, words: list[str], table: Numbers) -> None:
        self.n_columns = table.shape[1]
        used = np.zeros(len(words) + 1, dtype=bool)
        used[table] = True
        used[-1] = False
        self._spelled = [words[k] for k in np.flatnonzero(used).tolist()]
        self._table = np.where(table < 0, -1, (np.cumsum(used, dtype=np.int32) - 1)[table])

    @classmethod
    def of_vocabulary(cls, vocabulary: Mapping[str, int]) -> NgramColumns:
        """Return the columns of a vocabulary of terms, which are words with one space between."""
        terms = [term for term in vocabulary if isinstance(term, str)]  # no other can occur
        columns = np.array([vocabulary[term] for term in terms], dtype=np.int64)
        sizes = np.array([term.count(" ") for term in terms], dtype=np.int64) + 1
        numbers: dict[str, int] = {}
        parts = " ".join(terms).split(" ")
        words = np.array([numbers.setdefault(part, len(numbers)) for part in parts])
        table = np.full((sizes.max(initial=1), len(vocabulary)), -1, dtype=np.int32)
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        table[within, np.repeat(columns, sizes)] = words[: len(within)]
        return cls(list(numbers), table)

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self._spelled)}

    @cached_property
    def _levels(self) -> list[tuple[_KeyIndex, int, Numbers]]:
        levels = []
        at = np.arange(self.n_columns)
        node = np.zeros(self.n_columns, dtype=np.int64)
        bound = len(self._spelled)
        for n, words in enumerate(self._table):
            some = words[at] >= 0
            at, node = at[some], node[some]
            node, keys = pd.factorize(node * len(self._spelled) + words[at])
            last = self._table[n + 1, at] < 0 if n + 1 < len(self._table) else slice(None)
            column = np.full(len(keys) + 1, -1, dtype=np.int32)
            column[node[last]] = at[last]
            levels.append((_KeyIndex(keys, bound), len(keys), column))
            bound = len(keys) * len(self._spelled)
        return levels

    def of(self, tokens: Tokens, max_n: int) -> Iterator[Numbers]:
        """Yield, for n from 1 to `max_n`, the column of the n-gram that begins at each token."""
        yield from self._of(self._numbers(tokens), tokens.documents, max_n)

    def count(self, tokens: Tokens, ngram_range: tuple[int, int], dtype: Any) -> sp.csr_matrix:
        """Return how often documents have each term, of shape (n_documents, n_columns)."""
        words, documents = self._numbers(tokens), tokens.documents
        bits = self.n_columns.bit_length()
        sizes = [np.zeros(1, dtype=np.int64)]
        indices, counts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int32)]
        for first, last in tokens.blocks(_CHUNK):
            here = slice(tokens.indptr[first], tokens.indptr[last])
            rows = (documents[here].astype(np.int64) - first) << bits
            levels = list(self._of(words[here], documents[here], ngram_range[1]))
            keys = np.concatenate(
                [(rows | column)[column >= 0] for column in levels[ngram_range[0] - 1 :]]
            )
            keys.sort()
            entry = np.flatnonzero(_changes(keys))
            distinct = keys[entry]
            sizes.append(np.bincount(distinct >> bits, minlength=last - first))
            indices.append((distinct & ((1 << bits) - 1)).astype(np.int32))
            counts.append(np.diff(entry, append=len(keys)).astype(np.int32))
        indptr = np.cumsum(np.concatenate(sizes))
        data = np.concatenate(counts).astype(dtype)
        shape = tokens.n_documents, self.n_columns
        return sp.csr_matrix((data, np.concatenate(indices), indptr), shape=shape)

    def _numbers(self, tokens: Tokens) -> Numbers:
        """Return the tree's number of each token's word, -1 for others, (n_occurrences,)."""
        numbers = map(self._words.get, tokens.words, repeat(-1))
        return np.fromiter(numbers, np.int32, len(tokens.words))[tokens.ids]

    def _of(self, words: Numbers, documents: Numbers, max_n: int) -> Iterator[Numbers]:
        walk = _NgramWalk(words, documents, len(self._words))
        for n in range(max_n):
            if n < len(self._levels):
                index, n_keys, column = self._levels[n]
                walk.advance(index, n_keys)
                yield column[walk.beginnings]
            else:
                yield np.full(len(words), -1, dtype=np.int32)


# The lookup of the vocabulary that each vectorizer had when it was last used; not pickled.
_COLUMNS: WeakKeyDictionary[Any, tuple[Any, NgramColumns]] = WeakKeyDictionary()


def remember_columns(vectorizer: Any, columns: NgramColumns) -> None:
    """Keep the lookup of the columns of a vectorizer's vocabulary for later calls."""
    _COLUMNS[vectorizer] = vectorizer.vocabulary_, columns


def known_columns(vectorizer: Any) -> NgramColumns | None:
    """Return the lookup of a vectorizer's columns if there is one of its present vocabulary."""
    vocabulary, columns = _COLUMNS.get(vectorizer, (None, None))
    if columns is None or vocabulary is not vectorizer.vocabulary_:
        return None
    return columns if columns.n_columns == len(vocabulary) else None


def ngram_columns(vectorizer: Any) -> NgramColumns:
    """Return the lookup of a vectorizer's columns, made if there is none yet."""
    if known_columns(vectorizer) is None:
        remember_columns(vectorizer, NgramColumns.of_vocabulary(vectorizer.vocabulary_))
    return _COLUMNS[vectorizer][1]


class _KeyIndex:
    """The positions of distinct keys, below `bound`; that of any other number is -1."""

    def __init__(self, keys: Integers, bound: int) -> None:
        self._index: Any = None
        if bound > _MAX_TABLE:
            self._index = pd.Index(keys)
        else:
            self._table = np.full(bound + 1, -1, dtype=np.int32)
            self._table[keys] = np.arange(len(keys))

    def of(self, keys: Integers) -> NDArray[Any]:
        """Return the positions of keys from -1 to `bound` - 1."""
        return self._table[keys] if self._index is None else self._index.get_indexer(keys)


class _NgramWalk:
    """The n-grams that begin at each token, for n = 1, 2, ... in turn."""

    def __init__(self, words: Numbers, documents: Numbers, n_words: int) -> None:
        self.words, self.documents, self.n_words = words, documents, n_words
        self.n = 1
        self.bound = n_words  # of keys
        self.beginnings: Numbers = np.zeros(len(words), dtype=np.int32)
        self.buffer = np.empty(len(words), dtype=np.int64)  # used again: new memory is slow

    def chunks(self) -> Iterator[tuple[slice, Integers]]:
        """Yield the keys of the n-grams that begin at some occurrences; -1 where none does."""
        end = len(self.words) - self.n + 1
        for start in range(0, end, _CHUNK):
            here = slice(start, min(start + _CHUNK, end))
            there = slice(here.start + self.n - 1, here.stop + self.n - 1)
            keys = self.beginnings[here].astype(np.int64)
            keys *= self.n_words
            keys += self.words[there]
            none = (self.beginnings[here] < 0) | (self.words[there] < 0)
            none |= self.documents[here] != self.documents[there]
            keys[none] = -1
            yield here, keys

    def advance(self, index: _KeyIndex, n_keys: int) -> None:
        """Go on to n-grams of one more word, whose beginnings are the keys of `index`."""
        beginnings = np.full(len(self.words), -1, dtype=np.int32)
        for here, keys in self.chunks():
            beginnings[here] = index.of(keys)
        self.beginnings, self.bound = beginnings, n_keys * self.n_words
        self.n += 1


def _tally(
    walk: _NgramWalk, n_documents: int, low: float, high: float
) -> tuple[Integers, Integers, list[NDArray[Any]], list[NDArray[Any]]]:
    """Count the n-grams of a walk that at least `low` documents have.

    Returns their keys and document frequencies, (n_ngrams,), and, n-gram by n-gram, the documents
    and counts of those that at most `high` have, in several arrays of as few bytes as they need.
    """
    bits = n_documents.bit_length()
    chunks = walk.chunks()
    distinct = None
    if walk.bound.bit_length() + bits > _MAX_BITS:
        distinct = np.unique(np.concatenate([[-1], *(keys for _, keys in chunks)]))[1:]
        index = _KeyIndex(distinct, walk.bound)
        chunks = ((here, index.of(keys).astype(np.int64)) for here, keys in walk.chunks())
    packed = walk.buffer
    n = 0
    for here, keys in chunks:
        present = ((keys << bits) | walk.documents[here])[keys >= 0]
        packed[n : n + len(present)] = present
        n += len(present)
    packed = packed[:n]
    packed.sort()
    ngrams, frequencies = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    documents, counts = [], []
    start = 0
    while start < n:
        stop = start + _CHUNK
        if stop < n:  # to the end of an n-gram
            stop = int(np.searchsorted(packed, ((packed[stop] >> bits) + 1) << bits))
        part = packed[start:stop]
        entry = np.flatnonzero(_changes(part))
        key = part[entry] >> bits
        ngram = np.flatnonzero(_changes(key))
        frequency = np.diff(ngram, append=len(key))
        enough = frequency >= low
        taken = np.repeat(enough & (frequency <= high), frequency)
        ngrams.append(key[ngram[enough]])
        frequencies.append(frequency[enough])
        documents.append((part[entry[taken]] & ((1 << bits) - 1)).astype(np.int32))
        count = np.diff(entry, append=len(part))[taken]
        counts.append(count.astype(np.min_scalar_type(count.max(initial=0))))
        start = stop
    keys = np.concatenate(ngrams)
    keys = keys if distinct is None else distinct[keys]
    return keys, np.concatenate(frequencies), documents, counts


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the one before; the first one does."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _alphabetical(table: Integers, names: list[str]) -> tuple[Integers, list[str]]:
    """Return the order of n-grams, (n, n_ngrams) ranks of words, by their names, and these."""
    order = np.lexsort(table[::-1])
    ordered = [names[i] for i in order.tolist()]
    if not all(map(lt, ordered, ordered[1:])):
        # A word has a character that is lower than the space between words.
        order = np.array(sorted(range(len(names)), key=names.__getitem__))
        ordered = [names[i] for i in order.tolist()]
    return order, ordered
