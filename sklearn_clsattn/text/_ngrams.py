"""Counting word n-grams from token numbers, and looking up the columns of a vocabulary.

The key of an n-gram is the number of its prefix, the first n - 1 words, times the number of words,
plus the number of its last word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from .._matrices import index_type, sums_by_entry
from .._threads import map_in_threads
from .._types import Integers
from ._characters import ranges
from ._tokens import Ids, Tokens, look_up

# Occurrences that are processed together: few enough to stay in a processor's caches.
_CHUNK = 1 << 17
_MAX_TABLE = 1 << 22  # keys below this are looked up in a table

# Entries, their columns, and the ends of the rows of a part of a CSR matrix.
RowsPart = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
# A function from keys, or -1, to the numbers of n-grams, -1 for unknown ones.
Lookup = Callable[[Any], Any]


@dataclass(frozen=True)
class NgramCounts:
    """N-grams of some texts, and their counts in documents.

    counts : CSR (n_documents, n_columns)
    names : of the columns, in alphabetical order
    columns : their lookup, for other documents
    numbers_at_tokens : (n_occurrences,) for each length, the number of the n-gram that starts at
        each token, -1 for none
    columns_of_numbers : (n_ngrams + 1,) for each length, the column of each n-gram, -1 if it has
        none; the last entry, -1, is that of the number -1
    """

    counts: sp.csr_array
    names: list[str]
    columns: NgramColumns
    numbers_at_tokens: list[Ids]
    columns_of_numbers: list[Ids]

    def columns_at_tokens(self) -> list[Ids]:
        """Return, for each length, the columns of the n-grams that start at tokens."""
        columns_at_tokens = []
        for numbers, columns in zip(self.numbers_at_tokens, self.columns_of_numbers, strict=True):
            columns_at_tokens.append(columns[numbers])
        return columns_at_tokens


class _Ngrams(NamedTuple):
    """The n-grams of one length in enough documents, sorted by prefix and last word.

    prefixes, last_words : (n_ngrams,), their numbers
    numbers_at_tokens : (n_occurrences,), the number of the n-gram that starts at each token, -1 for
        none
    is_kept : (n_ngrams,), whether each is in at most `high` documents
    counts : CSC (n_documents, n_kept), of those, in the smallest sufficient type
    """

    prefixes: Ids
    last_words: Ids
    numbers_at_tokens: Ids
    is_kept: NDArray[np.bool_]
    counts: sp.csc_array


def count_ngrams(
    tokens: Tokens,
    ngram_range: tuple[int, int],
    *,
    low: float = 1,
    high: float = math.inf,
    dtype: Any = np.int64,
) -> NgramCounts:
    """Count the n-grams, of words without spaces, that occur in `low` to `high` documents."""
    # 1) words, numbered in alphabetical order
    words = sorted(tokens.words)
    numbers = {word: number for number, word in enumerate(words)}
    # 2) n-grams of each length
    by_length = _ngrams_by_length(tokens, look_up(tokens.words, numbers), ngram_range[1], low, high)
    min_n = ngram_range[0]
    table = _words_of_ngrams(by_length, min_n)
    by_length = by_length[min_n - 1 :]
    # 3) columns in alphabetical order. The words' numbers almost give it, but not always: a word
    # can contain a character lower than a space.
    names = _ngram_names(table, words)
    nearly_sorted = np.lexsort(table[::-1]).tolist()
    order = np.array(sorted(nearly_sorted, key=names.__getitem__), dtype=np.int64)
    sorted_names = [names[i] for i in order.tolist()]
    by_column = sp.hstack([ngrams.counts for ngrams in by_length], format="csc")[:, order]
    # Conversion to rows is one pass, which leaves the columns of each row in order.
    by_row = by_column.tocsr()
    by_row.data = by_row.data.astype(dtype)
    return NgramCounts(
        counts=by_row,
        names=sorted_names,
        columns=NgramColumns(numbers, table[:, order]),
        numbers_at_tokens=[ngrams.numbers_at_tokens for ngrams in by_length],
        columns_of_numbers=_columns_of_numbers(by_length, order),
    )


def _ngrams_by_length(
    tokens: Tokens, number_of_id: Ids, max_n: int, low: float, high: float
) -> list[_Ngrams]:
    """Return the n-grams of 1 to `max_n` words, each length from those that are shorter by a word.

    `number_of_id`, (n_words,), are the numbers of words in alphabetical order.
    """
    walk = _NgramWalk(number_of_id[tokens.ids], tokens.documents, len(number_of_id))
    by_length = [_select_words(walk, tokens.word_counts, np.argsort(number_of_id), low, high)]
    for _ in range(1, max_n):
        shorter = by_length[-1]
        walk.advance(shorter.numbers_at_tokens, len(shorter.prefixes))
        by_length.append(_count_longer(walk, tokens.n_documents, low, high))
    return by_length


def _columns_of_numbers(by_length: list[_Ngrams], order: Integers) -> list[Ids]:
    """Return, for each length, the column of each n-gram, and -1 at the end, (n_ngrams + 1,).

    `order`, (n_columns,), are the kept n-grams of all lengths in the order of their columns.
    """
    columns_in_order = np.empty(len(order), dtype=np.int32)
    columns_in_order[order] = np.arange(len(order))
    columns_of_numbers = []
    start = 0
    for ngrams in by_length:
        kept = np.flatnonzero(ngrams.is_kept)
        columns = np.full(len(ngrams.is_kept) + 1, -1, dtype=np.int32)
        columns[kept] = columns_in_order[start : start + len(kept)]
        columns_of_numbers.append(columns)
        start += len(kept)
    return columns_of_numbers


def _words_of_ngrams(by_length: list[_Ngrams], min_n: int) -> Ids:
    """Return the numbers of the words of kept n-grams, then -1, (max_n, n_kept)."""
    tables = []
    # Each n-gram of n - 1 words; at first the empty one.
    table = np.full((len(by_length), 1), -1, dtype=np.int32)
    for n, ngrams in enumerate(by_length, start=1):
        table = table[:, ngrams.prefixes]
        table[n - 1] = ngrams.last_words
        if n >= min_n:
            tables.append(table[:, ngrams.is_kept])
    return np.concatenate(tables, axis=1)


def _ngram_names(table: Ids, words: list[str]) -> list[str]:
    """Return the names of n-grams, whose columns in a table have the numbers of their words."""
    spelled = np.array(words, dtype=object)
    lengths = np.count_nonzero(table >= 0, axis=0)
    names: list[str] = []
    for n in np.unique(lengths).tolist():  # n-grams are sorted by length
        rows = spelled[table[:n, lengths == n]]
        names += map(" ".join, zip(*rows, strict=True))
    return names


class _Level(NamedTuple):
    """The n-grams of one length n, as a level of a tree.

    lookup : of the keys of n-grams that are terms or their first words
    n_ngrams : number of these
    columns : (n_ngrams + 1,), of each n-gram, -1 for one that is no term, and for no n-gram
    """

    lookup: Lookup
    n_ngrams: int
    columns: Ids


class NgramColumns:
    """The columns of word n-grams in a vocabulary.

    Column j is the n-gram of the words with the numbers ``table[:, j]`` up to the first -1. The
    lookup follows a tree whose level n contains the prefixes of n words.
    """

    def __init__(self, numbers: dict[str, int], table: Ids) -> None:
        self.n_columns = table.shape[1]
        self._numbers = numbers
        self._table = table

    @classmethod
    def from_vocabulary(cls, vocabulary: Mapping[str, int]) -> NgramColumns:
        """Return the columns of a vocabulary of terms, whose words are separated by one space."""
        # 1) numbers of the words, in order
        words = " ".join(vocabulary).split(" ")
        distinct_words = dict.fromkeys(words)
        numbers = {word: number for number, word in enumerate(distinct_words)}
        ids = look_up(words, numbers)
        # 2) their places in the table
        lengths = np.array([term.count(" ") for term in vocabulary], dtype=np.int64) + 1
        columns = np.array(list(vocabulary.values()), dtype=np.int64)
        max_n = lengths.max(initial=1)
        table = np.full((max_n, len(vocabulary)), -1, dtype=np.int32)
        places = ranges(np.zeros_like(lengths), lengths)  # of words in their terms
        table[places, np.repeat(columns, lengths)] = ids[: len(places)]
        return cls(numbers, table)

    @cached_property
    def _levels(self) -> list[_Level]:
        """The levels of the tree, from the first words on."""
        n_words = len(self._numbers)
        lengths = np.count_nonzero(self._table >= 0, axis=0)
        columns = np.arange(self.n_columns)
        prefixes = np.zeros(self.n_columns, dtype=np.int64)  # the number of each column's prefix
        bound = n_words
        levels = []
        for n, words in enumerate(self._table, start=1):
            # 1) the first n words of each n-gram that has so many
            is_long = lengths[columns] >= n
            columns = columns[is_long]
            keys_of_columns = prefixes[is_long] * n_words + words[columns]
            prefixes, keys = pd.factorize(keys_of_columns)
            # 2) the columns of those that have no more
            is_whole = lengths[columns] == n
            column_of = np.full(len(keys) + 1, -1, dtype=np.int32)
            column_of[prefixes[is_whole]] = columns[is_whole]
            levels.append(_Level(_lookup(keys, bound), len(keys), column_of))
            bound = len(keys) * n_words
        return levels

    def at_tokens(self, tokens: Tokens, max_n: int) -> Iterator[Ids]:
        """Yield, for n from 1 to `max_n`, the column of the n-gram that starts at each token."""
        yield from self._starting_at(self._word_numbers(tokens), tokens.documents, max_n)

    def count(self, tokens: Tokens, ngram_range: tuple[int, int], dtype: Any) -> sp.csr_array:
        """Return the counts of each term in documents, of shape (n_documents, n_columns)."""
        ids = self._word_numbers(tokens)
        documents = tokens.documents

        def part(block: tuple[slice, slice, Integers]) -> RowsPart:
            rows, here, _ = block
            return self._count_block(ids[here], documents[here], rows, ngram_range)

        parts = map_in_threads(part, tokens.blocks(_CHUNK))
        arrays = stack_rows(parts, tokens.n_documents, dtype)
        shape = tokens.n_documents, self.n_columns
        return sp.csr_array(arrays, shape=shape)

    def _count_block(
        self, ids: Ids, documents: Ids, rows: slice, ngram_range: tuple[int, int]
    ) -> RowsPart:
        """Return the counts of terms in the documents `rows`, with these words, (n_tokens,)."""
        # 1) row and column of each occurrence of a term
        min_n, max_n = ngram_range
        documents = documents - rows.start
        rows_of_terms = []
        columns_of_terms = []
        for n, columns in enumerate(self._starting_at(ids, documents, max_n), start=1):
            if n >= min_n:
                is_term = columns >= 0
                rows_of_terms.append(documents[is_term])
                columns_of_terms.append(columns[is_term])
        # 2) their counts
        row = np.concatenate(rows_of_terms)
        column = np.concatenate(columns_of_terms)
        ones = np.ones(len(row), dtype=np.int32)
        shape = rows.stop - rows.start, self.n_columns
        counts = sums_by_entry(ones, row, column, shape)
        return counts.data, counts.indices, counts.indptr[1:]

    def _word_numbers(self, tokens: Tokens) -> Ids:
        """Return the tree's number of each token's word, -1 for others, (n_occurrences,)."""
        return look_up(tokens.words, self._numbers)[tokens.ids]

    def _starting_at(self, ids: Ids, documents: Ids, max_n: int) -> Iterator[Ids]:
        """Yield, for n from 1 to `max_n`, the columns of n-grams of words with these numbers."""
        walk = _NgramWalk(ids, documents, len(self._numbers))
        for level in self._levels[:max_n]:
            numbers = walk.look_up(level.lookup)
            yield level.columns[numbers]
            walk.advance(numbers, level.n_ngrams)
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
    if columns is None or columns.n_columns != len(vocabulary):  # scikit-learn has dropped terms
        columns = NgramColumns.from_vocabulary(vocabulary)
        remember_columns(vectorizer, vocabulary, columns)
    return columns


def _lookup(keys: Integers, bound: int) -> Lookup:
    """Return a function from numbers, -1 to `bound` - 1, to their positions in `keys` or -1."""
    if bound > _MAX_TABLE:
        index = pd.Index(keys)
        index.get_indexer(index[:1])  # makes its table, before threads ask for it
        return index.get_indexer
    table = np.full(bound + 1, -1, dtype=np.int32)
    table[keys] = np.arange(len(keys))
    return table.__getitem__


class _NgramWalk:
    """The keys of the n-grams that start at each token, for n = 1, 2, ... in turn.

    ids : (n_occurrences,), the numbers of words, -1 for unknown ones
    documents : (n_occurrences,), the document of each token
    prefixes : (n_occurrences,), the number of the n - 1 words from each token on, -1 for none
    n_prefixes : the number of distinct prefixes
    """

    def __init__(self, ids: Ids, documents: Ids, n_words: int) -> None:
        self.ids = ids
        self.documents = documents
        self.n_words = n_words
        self.n = 1
        self.n_prefixes = 1
        self.prefixes: Ids = np.zeros(len(ids), dtype=np.int32)

    def blocks(self) -> Iterator[slice]:
        """Yield blocks of the tokens where n-grams can start."""
        end = len(self.ids) - self.n + 1
        for start in range(0, end, _CHUNK):
            yield slice(start, min(start + _CHUNK, end))

    def keys(self, first: slice) -> Integers:
        """Return the keys of the n-grams that start at a block of tokens, -1 for none."""
        last = slice(first.start + self.n - 1, first.stop + self.n - 1)
        keys = self.prefixes[first].astype(np.int64)
        keys *= self.n_words
        keys += self.ids[last]
        is_none = (self.prefixes[first] < 0) | (self.ids[last] < 0)
        is_none |= self.documents[first] != self.documents[last]
        keys[is_none] = -1
        return keys

    def sorted_ngrams(self) -> tuple[Ids, Ids, Ids]:
        """Return prefix, last word and first token of all n-grams, sorted by them, (n_ngrams,)."""
        # A conversion from rows to columns sorts by column, and keeps the order of rows: the first
        # one sorts tokens by the last words of their n-grams, the second one by prefixes.
        by_word = self._sorted_by_last_word()
        # Rows are last words now, columns prefixes, and entries tokens.
        arrays = by_word.indices, by_word.data, by_word.indptr
        by_prefix = sp.csr_array(arrays, shape=(self.n_words, self.n_prefixes)).tocsc()
        numbers = np.arange(self.n_prefixes, dtype=np.int32)
        sorted_prefixes = np.repeat(numbers, np.diff(by_prefix.indptr))
        return sorted_prefixes, by_prefix.indices, by_prefix.data

    def _sorted_by_last_word(self) -> sp.csc_array:
        """Return the prefixes of n-grams by first token and last word, CSC (n_starts, n_words)."""
        n_starts = max(len(self.ids) - self.n + 1, 0)
        first = slice(n_starts)
        last = slice(len(self.ids) - n_starts, None)
        is_ngram = (self.prefixes[first] >= 0) & (self.ids[last] >= 0)
        is_ngram &= self.documents[first] == self.documents[last]
        indptr = np.zeros(n_starts + 1, dtype=index_type(n_starts))
        np.cumsum(is_ngram, out=indptr[1:])
        prefixes = self.prefixes[first].compress(is_ngram)  # faster than by index
        last_words = self.ids[last].compress(is_ngram)
        arrays = prefixes, last_words, indptr
        return sp.csr_array(arrays, shape=(n_starts, self.n_words)).tocsc()

    def look_up(self, lookup: Lookup) -> Ids:
        """Return the number of the n-gram that starts at each token, -1 for none."""
        numbers = np.full(len(self.ids), -1, dtype=np.int32)

        def look_up_block(block: slice) -> None:
            numbers[block] = lookup(self.keys(block))

        for _ in map_in_threads(look_up_block, self.blocks()):
            pass
        return numbers

    def advance(self, prefixes: Ids, n_prefixes: int) -> None:
        """Advance to n-grams of one more word, given the numbers of the present ones at tokens."""
        self.prefixes = prefixes
        self.n_prefixes = n_prefixes
        self.n += 1


def _select_words(
    walk: _NgramWalk, word_counts: sp.csc_array, order: Integers, low: float, high: float
) -> _Ngrams:
    """Return the words in at least `low` documents.

    `word_counts` are those of all words, and `order`, (n_words,), their columns in the order of the
    walk's numbers.
    """
    # 1) the counts of words that are frequent, and not too frequent, in small types
    frequencies = np.diff(word_counts.indptr)[order]
    is_frequent = frequencies >= low
    is_low_enough = frequencies <= high
    counts = word_counts[:, order[is_frequent & is_low_enough]]
    smallest_type = np.min_scalar_type(counts.data.max(initial=0))
    counts.data = counts.data.astype(smallest_type)
    # 2) the numbers of all frequent words, with which longer n-grams may begin
    words = np.flatnonzero(is_frequent).astype(np.int32)
    number_of_word = np.full(walk.n_words, -1, dtype=np.int32)
    number_of_word[words] = np.arange(len(words))
    return _Ngrams(
        prefixes=np.zeros_like(words),
        last_words=words,
        numbers_at_tokens=number_of_word[walk.ids],
        is_kept=is_low_enough[is_frequent],
        counts=counts,
    )


def _count_longer(walk: _NgramWalk, n_documents: int, low: float, high: float) -> _Ngrams:
    """Return the n-grams of a walk's length in at least `low` documents."""
    # 1) entries of the matrix, which are runs of the same n-gram in the same document
    prefixes, last_words, tokens = walk.sorted_ngrams()
    documents = walk.documents[tokens]
    is_new_ngram = _differs(prefixes) | _differs(last_words)
    entry_bounds = _bounds(is_new_ngram | _differs(documents))
    entry_starts = entry_bounds[:-1]
    # 2) n-grams, which are runs of entries
    ngram_bounds = _bounds(is_new_ngram[entry_starts])
    frequencies = np.diff(ngram_bounds)
    is_frequent = frequencies >= low
    is_low_enough = frequencies <= high
    bounds = entry_bounds[ngram_bounds]
    examples = bounds[:-1][is_frequent]
    prefixes = prefixes[examples]
    last_words = last_words[examples]
    # 3) the n-grams' numbers, at the tokens where they start
    number_of_ngram = np.where(is_frequent, np.cumsum(is_frequent) - 1, -1).astype(np.int32)
    numbers_at_tokens = np.full(len(walk.ids), -1, dtype=np.int32)
    numbers_at_tokens[tokens] = np.repeat(number_of_ngram, np.diff(bounds))
    del tokens  # frees memory for the next step
    # 4) the entries of the n-grams that are counted, in small types
    is_counted = is_frequent & is_low_enough
    is_kept_entry = np.repeat(is_counted, frequencies)
    counts = np.diff(entry_bounds)[is_kept_entry]
    counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))
    ends = np.cumsum(frequencies[is_counted])
    indptr = np.append(0, ends).astype(index_type(len(counts)))
    arrays = counts, documents[entry_starts[is_kept_entry]], indptr
    return _Ngrams(
        prefixes=prefixes,
        last_words=last_words,
        numbers_at_tokens=numbers_at_tokens,
        is_kept=is_low_enough[is_frequent],
        counts=sp.csc_array(arrays, shape=(n_documents, len(ends))),
    )


def _bounds(is_first: NDArray[np.bool_]) -> Integers:
    """Return the starts of runs, whose first values are given, and the last end, (n_runs + 1,).

    Small integers save time.
    """
    is_bound = np.append(is_first, True)
    return np.flatnonzero(is_bound).astype(index_type(len(is_first)))


def _differs(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before, (n_values,); the first one does."""
    differs = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=differs[1:])
    return differs


def stack_rows(parts: Iterable[RowsPart], n_documents: int, dtype: Any) -> RowsPart:
    """Return the arrays of a CSR matrix of `n_documents` rows, given some rows at a time.

    The arrays grow, because concatenating a list of parts would need twice the memory.
    """
    entries = np.empty(0, dtype=dtype)
    columns = np.empty(0, dtype=np.int32)
    indptr = np.zeros(n_documents + 1, dtype=np.int64)
    n_rows = 0
    for part_entries, part_columns, part_ends in parts:
        start = int(indptr[n_rows])
        stop = start + len(part_entries)
        indptr[n_rows + 1 : n_rows + 1 + len(part_ends)] = start + part_ends.astype(np.int64)
        n_rows += len(part_ends)
        if stop > len(entries):
            # Room for as many in each of the remaining rows, and some more.
            size = int(1.05 * stop * n_documents / n_rows)
            entries.resize(size, refcheck=False)
            columns.resize(size, refcheck=False)
        entries[start:stop] = part_entries
        columns[start:stop] = part_columns
    # What was too much room is given back.
    n_entries = int(indptr[-1])
    entries.resize(n_entries, refcheck=False)
    columns.resize(n_entries, refcheck=False)
    return entries, columns, indptr.astype(index_type(n_entries))
