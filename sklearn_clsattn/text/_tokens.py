"""The tokens of texts as integers: word, document and character positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._matrices import index_type
from .._threads import map_in_threads
from .._types import Integers
from ._characters import (
    ALONE,
    CLUSTER,
    KEYCAP,
    LINK,
    MARK,
    SKIPPED,
    STACKER,
    Alphabet,
    Symbols,
    distinct_runs,
    padded,
    ranges,
)

WORDS = r"(?u)\b\w\w+\b"  # scikit-learn's default
WORDS_AND_PUNCTUATION = r"\w+(?:['’]\w+)*|[^\w\s]"
BETWEEN_SPACES = r"\S+"
PATTERNS = (WORDS, WORDS_AND_PUNCTUATION, BETWEEN_SPACES)

# Characters that are read together: few enough to stay in a processor's caches.
BLOCK = 1 << 18
_SEPARATOR = "\n"  # in no token
_FEW_DOCUMENTS = 5_000
# Longer words are not spelled: they are encoded files, whose n-grams would outnumber all others.
LONGEST_SPELLED = 40
_LETTER = re.compile(r"\w")
_APOSTROPHE = re.compile("['’]")

Ids = NDArray[np.int32]
NO_IDS: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Tokens:
    """All occurrences of tokens in texts, in order.

    Occurrence j is the word ``words[ids[j]]`` at the characters ``starts[j]:stops[j]`` of its
    document; document i has the occurrences ``indptr[i]:indptr[i + 1]``.
    """

    ids: Ids  # (n_occurrences,)
    indptr: NDArray[np.int64]  # (n_documents + 1,)
    starts: Ids  # (n_occurrences,), or empty if not requested
    stops: Ids
    words: list[str]  # distinct

    @property
    def n_documents(self) -> int:
        """The number of documents, including those without tokens."""
        return len(self.indptr) - 1

    @property
    def documents(self) -> Ids:
        """The document of each occurrence, of shape (n_occurrences,)."""
        return np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def word_counts(self) -> sparse.csc_array:
        """The counts of words in documents, CSC (n_documents, n_words)."""
        return count_words(self.ids, self.indptr, len(self.words))

    def blocks(self, size: int) -> Iterator[tuple[slice, slice, NDArray[np.int64]]]:
        """Yield blocks of consecutive documents with about `size` tokens together.

        A block is the slices of documents and of their tokens, and the documents' `indptr`.
        """
        first = 0
        while first < self.n_documents:
            after = np.searchsorted(self.indptr, self.indptr[first] + size, side="right")
            last = max(int(after) - 1, first + 1)
            indptr = self.indptr[first : last + 1]
            tokens = slice(int(indptr[0]), int(indptr[-1]))
            yield slice(first, last), tokens, indptr - indptr[0]
            first = last

    @property
    def spans(self) -> Ids:
        """The start and stop of each occurrence, (n_occurrences, 2)."""
        return np.stack([self.starts, self.stops], axis=1)

    def without(self, words: Container[str]) -> Tokens:
        """Return the tokens that are not among some words."""
        return self._where(np.array([word not in words for word in self.words], dtype=bool))

    def only(self, words: Container[str]) -> Tokens:
        """Return the tokens that are among some words."""
        return self._where(np.array([word in words for word in self.words], dtype=bool))

    def _where(self, is_kept: NDArray[np.bool_]) -> Tokens:
        """Return the tokens of some words, (n_words,)."""
        stays = is_kept[self.ids]
        n_before = np.append(0, np.cumsum(stays))  # that stay, before each occurrence
        has_positions = len(self.starts) == len(self.ids)
        return Tokens(
            self.ids[stays],
            n_before[self.indptr],
            self.starts[stays] if has_positions else NO_IDS,
            self.stops[stays] if has_positions else NO_IDS,
            self.words,
        )


def count_words(ids: Ids, indptr: Integers, n_words: int) -> sparse.csc_array:
    """Return the counts of words in documents, CSC (n_documents, n_words), int32."""
    ones = np.ones(len(ids), dtype=np.int32)
    kind = index_type(len(ids))
    arrays = ones, ids.astype(kind, copy=False), indptr.astype(kind, copy=False)
    # Conversion to columns puts the occurrences of a word in the order of their documents.
    counts = sparse.csr_array(arrays, shape=(len(indptr) - 1, n_words)).tocsc()
    counts.sum_duplicates()
    return counts


def look_up(words: Collection[str], numbers: Mapping[str, int]) -> Ids:
    """Return the number of each word, (n_words,), -1 for a word without one."""
    return np.fromiter(map(numbers.get, words, repeat(-1)), np.int32, len(words))


def has_letters(word: str) -> bool:
    """Return whether a word contains a letter, a digit or an underscore."""
    return _LETTER.search(word) is not None


def is_spelled(word: str) -> bool:
    """Return whether a word has character n-grams, unlike signs, emoji and Chinese characters."""
    if len(word) > LONGEST_SPELLED:
        return False
    if word.isascii() and word.isalnum():
        return True  # most words, without the expressions below
    may_be_sign = ALONE.match(word) or KEYCAP in word
    is_sign = may_be_sign and CLUSTER.fullmatch(word)
    return has_letters(word) and not is_sign


class _EncodedTexts(NamedTuple):
    """Some consecutive texts, one after the other, with a separator before and after each."""

    text: str
    symbols: Symbols  # (n_characters,)
    sizes: Integers  # (n_texts,), numbers of characters


class _Block(NamedTuple):
    """The tokens of some consecutive texts, whose distinct words are numbered in the block."""

    ids: Ids  # (n_occurrences,)
    counts: Integers  # (n_documents,), numbers of tokens
    starts: Ids  # (n_occurrences,), in their documents
    stops: Ids
    symbols: Symbols  # of the distinct words, one after the other
    lengths: Integers  # (n_words,)


def tokenize(
    texts: Iterable[str], pattern: str = WORDS, *, positions: bool = True, scripts: bool = False
) -> Tokens:
    """Return the tokens that one of the `PATTERNS` matches in preprocessed texts, read once.

    With `scripts`, which needs the pattern of words and punctuation, no grapheme cluster is divided
    (emoji, letters with marks), and each cluster of scripts such as Chinese and Thai is a token.
    """
    tokenizer = _Tokenizer(pattern, positions, scripts)
    # 1) tokens of each block of texts; its symbols, of which the alphabet learns, come first
    encoded = map(tokenizer.encode, batches(texts, BLOCK))
    blocks = list(map_in_threads(tokenizer.tokenize, encoded))
    if not blocks:
        blocks = [tokenizer.tokenize(tokenizer.encode([]))]
    # 2) distinct words of all blocks
    symbols = padded([block.symbols for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    starts = np.cumsum(lengths) - lengths
    numbers, examples = distinct_runs(symbols, starts, lengths)
    words = tokenizer.alphabet.decode(symbols, starts[examples], lengths[examples])
    # 3) numbers in a block become numbers in all blocks
    ids = []
    start = 0
    for block in blocks:
        stop = start + len(block.lengths)
        block_numbers = numbers[start:stop].astype(np.int32)
        ids.append(block_numbers[block.ids])
        start = stop
    counts = np.concatenate([block.counts for block in blocks])
    return Tokens(
        ids=np.concatenate(ids),
        indptr=np.append(0, np.cumsum(counts)),
        starts=np.concatenate([block.starts for block in blocks]),
        stops=np.concatenate([block.stops for block in blocks]),
        words=words,
    )


class _Tokenizer:
    """Finds the tokens of blocks of texts, whose characters are numbered as they come."""

    def __init__(self, pattern: str, positions: bool, scripts: bool) -> None:
        self._pattern = pattern
        self._positions = positions
        self._scripts = scripts
        self.alphabet = Alphabet(r"\w" if pattern == WORDS else r"\S")

    def encode(self, texts: list[str]) -> _EncodedTexts:
        """Return texts as symbols."""
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        text = _SEPARATOR.join(["", *texts, ""])
        return _EncodedTexts(text, self.alphabet.encode(text), sizes)

    def tokenize(self, texts: _EncodedTexts) -> _Block:
        """Return the tokens of some texts."""
        symbols = padded([texts.symbols])
        # 1) where tokens start and stop
        if self._pattern == WORDS_AND_PUNCTUATION:
            starts, stops = self._words_and_punctuation(texts.text, symbols)
        else:
            starts, stops = _true_runs(symbols > SKIPPED)
            if self._pattern == WORDS:
                is_long = stops - starts > 1
                starts = starts[is_long]
                stops = stops[is_long]
        # 2) their texts, which stand one after the other, after a separator each
        sizes = texts.sizes + 1
        origins = np.cumsum(sizes) - sizes + 1
        first_tokens = np.searchsorted(starts, np.append(origins, len(symbols)))
        counts = np.diff(first_tokens)
        # 3) their words
        lengths = stops - starts
        ids, examples = distinct_runs(symbols, starts, lengths)
        word_lengths = lengths[examples]
        words = symbols[ranges(starts[examples], word_lengths)]
        # 4) their positions in the texts
        starts_in_text = NO_IDS
        stops_in_text = NO_IDS
        if self._positions:
            origin = np.repeat(origins, counts)
            starts_in_text = (starts - origin).astype(np.int32)
            stops_in_text = (stops - origin).astype(np.int32)
        return _Block(
            ids.astype(np.int32), counts, starts_in_text, stops_in_text, words, word_lengths
        )

    def _words_and_punctuation(self, text: str, symbols: Symbols) -> tuple[Integers, Integers]:
        """Return the starts and stops of words and of single signs, each (n_tokens,)."""
        # 1) which characters are of words, and which are other signs
        is_letter = self.alphabet.matches(_LETTER)
        if self._scripts:
            is_letter &= ~self.alphabet.matches(ALONE)
        is_word = is_letter.take(symbols)
        is_seen = symbols > SKIPPED
        # 2) characters that belong to the one before them
        joins = self._joins(text, symbols) if self._scripts else np.zeros(len(symbols), dtype=bool)
        if joins.any():
            # A cluster is what its first character is, but a keycap is a sign.
            first = np.maximum.accumulate(np.where(joins, 0, np.arange(len(symbols))))
            is_keycap = self.alphabet.matches(re.compile(KEYCAP)).take(symbols)
            is_word[first[is_keycap]] = False
            is_word = is_word[first]
            is_seen = is_seen[first]
        # 3) apostrophes within words
        is_apostrophe = self.alphabet.matches(_APOSTROPHE).take(symbols)
        is_word[1:-1] |= is_apostrophe[1:-1] & is_word[:-2] & is_word[2:]
        # 4) runs of words' characters, and signs with what belongs to them
        is_sign = is_seen & ~is_word
        sign_starts = is_sign & ~joins
        sign_ends = is_sign & ~np.append(joins[1:], False)
        starts = np.flatnonzero((is_word[1:] & ~is_word[:-1]) | sign_starts[1:]) + 1
        stops = np.flatnonzero((is_word[:-1] & ~is_word[1:]) | sign_ends[:-1]) + 1
        return starts, stops

    def _joins(self, text: str, symbols: Symbols) -> NDArray[np.bool_]:
        """Return which characters belong to the cluster of the one before, (n_characters,)."""
        is_mark = self.alphabet.matches(MARK)
        is_link = self.alphabet.matches(LINK)
        if not (is_mark | is_link).any():
            return np.zeros(len(symbols), dtype=bool)
        # 1) marks, and consonants under others
        joins = is_mark.take(symbols)
        is_alone = self.alphabet.matches(ALONE)
        is_stacker = self.alphabet.matches(STACKER)
        joins[1:] |= is_stacker.take(symbols[:-1]) & is_alone.take(symbols[1:])
        # 2) what links join, in the runs of such characters that have a link
        links = np.flatnonzero(is_link.take(symbols))
        starts, stops = _true_runs((is_mark | is_link | is_alone).take(symbols))
        runs = np.unique(np.searchsorted(starts, links, side="right") - 1)
        for start, stop in zip(starts[runs].tolist(), stops[runs].tolist(), strict=True):
            # The first character of a cluster may stand before the run.
            for cluster in CLUSTER.finditer(text, start - 1, stop):
                joins[cluster.start() + 1 : cluster.end()] = True
        return joins


def _true_runs(is_inside: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the starts and stops of runs of True, each (n_runs,); both end entries are False."""
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1]) + 1
    return edges[::2], edges[1::2]


def tokens_of_tokenizer(texts: Iterable[str], tokenizer: Callable[[str], Iterable[Any]]) -> Tokens:
    """Return the tokens that a function finds in texts, without blank ones.

    Their positions are found in the texts, in order; a token that is not there has the stop -1.
    """
    return _from_spans(_spans_of_tokenizer(text, tokenizer) for text in texts)


def _spans_of_tokenizer(
    text: str, tokenizer: Callable[[str], Iterable[Any]]
) -> Iterator[tuple[str, int, int]]:
    """Yield the token, the start and the stop of each token that a function finds in a text."""
    end = 0  # of the last token that is in the text
    for token in tokenizer(text):
        word = str(token).strip()
        if len(word.split()) > 1:
            raise ValueError(
                f"tokenizer must return tokens without white space, got {word!r}: "
                "split them, or replace spaces by '_'."
            )
        if not word:
            continue
        start = text.find(word, end)
        if start < 0:
            yield word, end, -1
        else:
            end = start + len(word)
            yield word, start, end


def tokens_of_pattern(texts: Iterable[str], pattern: str) -> Tokens:
    """Return the tokens that any regular expression matches in texts, without empty matches."""
    compiled = re.compile(pattern)
    tokens = _from_spans(_spans_of_pattern(text, compiled) for text in texts)
    if compiled.groups or any(word.split() != [word] for word in tokens.words):
        raise ValueError(
            f"token_pattern must not match white space or have a capturing group, got {pattern!r}."
        )
    return tokens


def _spans_of_pattern(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    """Yield the token, the start and the stop of each match in a text."""
    for match in pattern.finditer(text):
        if match.group():
            yield match.group(), match.start(), match.end()


def _from_spans(spans_of_texts: Iterable[Iterable[tuple[str, int, int]]]) -> Tokens:
    """Return tokens, given the word, the start and the stop of each, text by text."""
    numbers: dict[str, int] = {}
    occurrences = []
    ends = [0]
    for spans in spans_of_texts:
        for word, start, stop in spans:
            occurrences.append((numbers.setdefault(word, len(numbers)), start, stop))
        ends.append(len(occurrences))
    ids, starts, stops = np.array(occurrences, dtype=np.int32).reshape(-1, 3).T
    return Tokens(ids, np.array(ends), starts, stops, list(numbers))


def batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Yield lists of consecutive texts, each of some `characters` characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= characters:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def checked_texts(raw_documents: Iterable[Any]) -> Iterator[str]:
    """Yield texts; raise ValueError for one text instead of several, and for anything else."""
    if isinstance(raw_documents, str):
        raise ValueError("Expected an iterable of texts, got one text: pass [text].")
    for at, document in enumerate(only_column(raw_documents)):
        if not isinstance(document, str):
            import pandas as pd

            is_missing = pd.api.types.is_scalar(document) and pd.isna(document)
            advice = ': fill empty cells with ""' if is_missing else ""
            raise ValueError(
                f"Documents must be texts, but the one at position {at} is {document!r:.60}, of "
                f"type {type(document).__name__}{advice}."
            )
        yield document


def only_column(documents: Any) -> Iterable[Any]:
    """Return the column of a table that has one, and anything else as it is.

    Iteration over a table would yield the names of its columns.
    """
    if isinstance(documents, Mapping):
        raise ValueError(
            f"Expected texts, got a {type(documents).__name__}: pass one of its values."
        )
    if hasattr(documents, "columns"):
        names = list(documents.columns)
        if len(names) != 1:
            raise ValueError(f"Expected one column of texts, got {names}: pass X[name].")
        return documents[names[0]]
    if getattr(documents, "ndim", 1) == 2:
        n_columns = documents.shape[1]
        if n_columns != 1:
            raise ValueError(
                f"Expected one column of texts, got {n_columns}; "
                "counts are for ClsAttentionClassifier."
            )
        return documents[:, 0]
    return documents


class TooFewWordsError(ValueError):
    """Texts have too few words to learn from."""


def check_any_texts(n_documents: int, n_tokens: int) -> None:
    """Raise ValueError if there is no document to learn from, or no token in any."""
    if not n_documents:
        raise ValueError("X has no documents: expected at least one text.")
    if not n_tokens:
        raise TooFewWordsError(
            f"The {n_documents:,} texts have no tokens: expected texts with words. Check that X is "
            "the column of the texts, and that the tokenizer or token_pattern finds words."
        )


def document_number(bound: Any, n_documents: int, auto: int = 1) -> float:
    """Return `min_df` or `max_df` as a number of documents.

    "auto" is 1 for few documents, else `auto`.
    """
    if bound == "auto":
        return 1 if n_documents < _FEW_DOCUMENTS else auto
    if isinstance(bound, Integral):
        return float(bound)
    return float(bound * n_documents)
