"""Counting word n-grams from token numbers, and looking up the columns of a vocabulary.

The key of an n-gram is the number of its first n - 1 words, times the number of words, plus the
number of its last word. Packed with the document into one integer, keys are sorted and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import repeat
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from .._documents import index_type
from .._types import Integers
from ._symbols import ranges
from ._tokens import Ids, Tokens

# Occurrences that are processed together: few enough to stay in a processor's caches.
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
) -> tuple[sp.csr_array, list[str], NgramColumns]:
    """Count the n-grams, of words without spaces, that occur in `low` to `high` documents.

    Return the counts, (n_documents, n_features), the names in alphabetical order, and the lookup
    of their columns for other documents.
    """
    spelled = sorted(tokens.words)
    rank = {word: number for number, word in enumerate(spelled)}
    ids = np.array([rank[word] for word in tokens.words], dtype=np.int32)[tokens.ids]
    spelled_out = np.array(spelled, dtype=object)
    walk = _NgramWalk(ids, tokens.documents, len(spelled))
    grams = np.zeros((ngram_range[1], 0), dtype=np.int32)  # the words of each n-gram, or -1
    tables, names, levels = [], list[str](), []
    for n in range(1, ngram_range[1] + 1):
        ngrams, common, entries = _tally(walk, tokens.n_documents, low, high)
        beginnings, last = np.divmod(ngrams, max(len(spelled), 1))
        grams = grams[:, beginnings] if n > 1 else np.full((len(grams), len(last)), -1, np.int32)
        grams[n - 1] = last
        if n >= ngram_range[0]:
            tables.append(grams[:, common])
            names += map(" ".join, zip(*(spelled_out[row] for row in tables[-1][:n]), strict=True))
            levels.append(entries)
        if n < ngram_range[1]:
            walk.advance(_lookup(ngrams, walk.bound), len(ngrams))
    table, by_column = np.concatenate(tables, axis=1), sp.hstack(levels, format="csc")
    del walk, entries, levels  # their memory is reused below: new memory is slow
    # By the words' ranks, and then exactly: a word can contain a character lower than a space.
    order = np.array(sorted(np.lexsort(table[::-1]).tolist(), key=names.__getitem__), np.int64)
    # Conversion to rows is one pass, which leaves the columns of each row in order.
    by_row = by_column[:, order].tocsr()
    del by_column
    by_row.data = by_row.data.astype(dtype)
    return by_row, [names[i] for i in order.tolist()], NgramColumns(rank, table[:, order])


class NgramColumns:
    """The columns of word n-grams in a vocabulary.

    Column j is the n-gram of the words with the numbers ``table[:, j]`` up to the first -1. The
    lookup follows a tree whose level n contains the prefixes of n words.
    """

    def __init__(self, numbers: dict[str, int], table: Ids) -> None:
        self.n_columns = table.shape[1]
        self._numbers, self._table = numbers, table

    @classmethod
    def of_vocabulary(cls, vocabulary: Mapping[str, int]) -> NgramColumns:
        """Return the columns of a vocabulary of terms, whose words are separated by one space."""
        terms = [term for term in vocabulary if isinstance(term, str)]  # others cannot occur
        numbers: dict[str, int] = {}
        words = " ".join(terms).split(" ")
        ids = np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int32)
        sizes = np.array([term.count(" ") for term in terms], dtype=np.int64) + 1
        columns = np.repeat(np.array([vocabulary[term] for term in terms], dtype=np.int64), sizes)
        table = np.full((sizes.max(initial=1), len(vocabulary)), -1, dtype=np.int32)
        table[ranges(np.zeros_like(sizes), sizes), columns] = ids[: len(columns)]
        return cls(numbers, table)

    @cached_property
    def _levels(self) -> list[tuple[Callable[[Any], Any], int, Ids]]:
        levels = []
        at = np.arange(self.n_columns)
        node = np.zeros(self.n_columns, dtype=np.int64)
        bound = len(self._numbers)
        for n, words in enumerate(self._table):
            some = words[at] >= 0
            at, node = at[some], node[some]
            node, keys = pd.factorize(node * len(self._numbers) + words[at])
            last = self._table[n + 1, at] < 0 if n + 1 < len(self._table) else slice(None)
            column = np.full(len(keys) + 1, -1, dtype=np.int32)
            column[node[last]] = at[last]
            levels.append((_lookup(keys, bound), len(keys), column))
            bound = len(keys) * len(self._numbers)
        return levels

    def of(self, tokens: Tokens, max_n: int) -> Iterator[Ids]:
        """Yield, for n from 1 to `max_n`, the column of the n-gram that starts at each token."""
        yield from self._of(self._ids(tokens), tokens.documents, max_n)

    def count(self, tokens: Tokens, ngram_range: tuple[int, int], dtype: Any) -> sp.csr_array:
        """Return the counts of each term in documents, of shape (n_documents, n_columns)."""
        ids, documents = self._ids(tokens), tokens.documents
        bits = self.n_columns.bit_length()

        def counted(rows: slice, here: slice) -> tuple[Integers, Integers, Integers]:
            row = (documents[here].astype(np.int64) - rows.start) << bits
            levels = list(self._of(ids[here], documents[here], ngram_range[1]))
            keys = np.concatenate(
                [(row | column)[column >= 0] for column in levels[ngram_range[0] - 1 :]]
            )
            keys.sort()
            entry = np.flatnonzero(_changes(keys))
            distinct = keys[entry]
            sizes = np.bincount(distinct >> bits, minlength=rows.stop - rows.start)
            columns = distinct & ((1 << bits) - 1)
            return np.diff(entry, append=len(keys)), columns, np.cumsum(sizes)

        parts = (counted(rows, here) for rows, here, _ in tokens.blocks(_CHUNK))
        shape = tokens.n_documents, self.n_columns
        return sp.csr_array(stack_rows(parts, tokens.n_documents, dtype), shape=shape)

    def _ids(self, tokens: Tokens) -> Ids:
        """Return the tree's number of each token's word, -1 for others, (n_occurrences,)."""
        numbers = map(self._numbers.get, tokens.words, repeat(-1))
        return np.fromiter(numbers, np.int32, len(tokens.words))[tokens.ids]

    def _of(self, ids: Ids, documents: Ids, max_n: int) -> Iterator[Ids]:
        walk = _NgramWalk(ids, documents, len(self._numbers))
        for lookup, n_keys, column in self._levels[:max_n]:
            walk.advance(lookup, n_keys)
            yield column[walk.beginnings]
        for _ in range(len(self._levels), max_n):
            yield np.full(len(ids), -1, dtype=np.int32)


# The vocabulary of each vectorizer at its last use, and the lookup; not pickled.
_COLUMNS: WeakKeyDictionary[Any, tuple[Any, NgramColumns | None]] = WeakKeyDictionary()


def remember_columns(vectorizer: Any, vocabulary: Any, columns: NgramColumns | None) -> None:
    """Keep the lookup of the columns of a vectorizer's vocabulary for later calls."""
    _COLUMNS[vectorizer] = vocabulary, columns


def is_remembered(vectorizer: Any, vocabulary: Any) -> bool:
    """Return whether a vocabulary is unchanged since the last use of a vectorizer."""
    return _COLUMNS.get(vectorizer, (None, None))[0] is vocabulary


def ngram_columns(vectorizer: Any) -> NgramColumns:
    """Return the lookup of a vectorizer's columns, built on first use."""
    vocabulary = vectorizer.vocabulary_
    columns = _COLUMNS[vectorizer][1] if is_remembered(vectorizer, vocabulary) else None
    if columns is None or columns.n_columns != len(vocabulary):
        columns = NgramColumns.of_vocabulary(vocabulary)
        remember_columns(vectorizer, vocabulary, columns)
    return columns


def _lookup(keys: Integers, bound: int) -> Callable[[Any], Any]:
    """Return a function from numbers, -1 to `bound` - 1, to their positions in `keys` or -1."""
    if bound > _MAX_TABLE:
        return pd.Index(keys).get_indexer
    table = np.full(bound + 1, -1, dtype=np.int32)
    table[keys] = np.arange(len(keys))
    return table.__getitem__


class _NgramWalk:
    """The n-grams that start at each token, for n = 1, 2, ... in turn."""

    def __init__(self, ids: Ids, documents: Ids, n_words: int) -> None:
        self.ids, self.documents, self.n_words = ids, documents, n_words
        self.n = 1
        self.bound = n_words  # of keys
        self.beginnings: Ids = np.zeros(len(ids), dtype=np.int32)
        self.buffer = np.empty(len(ids), dtype=np.int64)  # reused, because new memory is slow

    def chunks(self) -> Iterator[tuple[slice, Integers]]:
        """Yield the keys of the n-grams that start at each occurrence, in blocks; -1 for none."""
        end = len(self.ids) - self.n + 1
        for start in range(0, end, _CHUNK):
            here = slice(start, min(start + _CHUNK, end))
            there = slice(here.start + self.n - 1, here.stop + self.n - 1)
            keys = self.beginnings[here].astype(np.int64)
            keys *= self.n_words
            keys += self.ids[there]
            none = (self.beginnings[here] < 0) | (self.ids[there] < 0)
            none |= self.documents[here] != self.documents[there]
            keys[none] = -1
            yield here, keys

    def advance(self, lookup: Callable[[Any], Any], n_keys: int) -> None:
        """Advance to n-grams of one more word, whose prefixes are the `n_keys` of a lookup."""
        beginnings = np.full(len(self.ids), -1, dtype=np.int32)
        for here, keys in self.chunks():
            beginnings[here] = lookup(keys)
        self.beginnings, self.bound = beginnings, n_keys * self.n_words
        self.n += 1


def _tally(
    walk: _NgramWalk, n_documents: int, low: float, high: float
) -> tuple[Integers, NDArray[np.bool_], sp.csc_array]:
    """Return the keys of a walk's n-grams in `low` or more documents, and which are rare enough.

    Also return the counts of the latter, (n_documents, n_common), in the smallest sufficient type.
    """
    bits = n_documents.bit_length()
    chunks = walk.chunks()
    distinct = None
    if walk.bound.bit_length() + bits > _MAX_BITS:
        distinct = np.unique(np.concatenate([[-1], *(keys for _, keys in chunks)]))[1:]
        lookup = _lookup(distinct, walk.bound)
        chunks = ((here, lookup(keys).astype(np.int64)) for here, keys in walk.chunks())
    n = 0
    for here, keys in chunks:
        present = ((keys << bits) | walk.documents[here])[keys >= 0]
        walk.buffer[n : n + len(present)] = present
        n += len(present)
    packed = walk.buffer[:n]
    packed.sort()
    entry = np.flatnonzero(_changes(packed))
    key = packed[entry] >> bits
    ngram = np.flatnonzero(_changes(key))
    frequency = np.diff(ngram, append=len(key))
    taken = np.repeat((frequency >= low) & (frequency <= high), frequency)
    counts = np.diff(entry, append=n)[taken]
    counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
    documents = (packed[entry[taken]] & ((1 << bits) - 1)).astype(np.int32)
    keys, frequency = key[ngram[frequency >= low]], frequency[frequency >= low]
    keys, common = keys if distinct is None else distinct[keys], frequency <= high
    ends = np.append(0, np.cumsum(frequency[common])).astype(index_type(len(counts)))
    shape = n_documents, len(ends) - 1
    return keys, common, sp.csc_array((counts, documents, ends), shape=shape)


def _changes(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a value differs from the previous one, including the first value."""
    changes = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def stack_rows(
    parts: Iterable[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], n_documents: int, dtype: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the arrays of a CSR matrix: entries, their columns and the ends of rows in parts.

    The arrays grow, because concatenating a list of parts would need twice the memory.
    """
    entries, columns = np.empty(0, dtype=dtype), np.empty(0, dtype=np.int32)
    indptr, n_rows = np.zeros(n_documents + 1, dtype=np.int64), 0
    for data, indices, ends in parts:
        start = int(indptr[n_rows])
        here = slice(start, start + len(data))
        indptr[n_rows + 1 : n_rows + 1 + len(ends)] = start + ends.astype(np.int64)
        n_rows += len(ends)
        if here.stop > len(entries):  # room for as many in the remaining rows, and some more
            for array in (entries, columns):
                array.resize(int(1.05 * here.stop * n_documents / n_rows), refcheck=False)
        entries[here], columns[here] = data, indices
    for array in (entries, columns):
        array.resize(int(indptr[-1]), refcheck=False)
    return entries, columns, indptr.astype(index_type(len(entries)))
