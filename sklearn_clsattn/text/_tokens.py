"""The tokens of texts as integers: which word, in which document, at which characters."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._symbols import SKIPPED, Alphabet, Symbols, distinct_runs, padded, ranges

WORDS = r"(?u)\b\w\w+\b"  # scikit-learn's default
WORDS_AND_PUNCTUATION = r"\w+(?:['’]\w+)*|[^\w\s]"
WORDS_AND_CONTRACTIONS = r"(?u)\b\w+(?:'\w+)?\b"
BETWEEN_SPACES = r"\S+"
PATTERNS = (WORDS, WORDS_AND_PUNCTUATION, WORDS_AND_CONTRACTIONS, BETWEEN_SPACES)

# Characters that are looked at together: few enough to stay in a processor's caches.
BLOCK = 1 << 18
_SEPARATOR = "\n"  # in no token

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Tokens:
    """All occurrences of tokens in texts, in their order.

    Occurrence j is the word ``words[ids[j]]`` at the characters ``starts[j]:stops[j]`` of its
    document; document i has the occurrences ``indptr[i]:indptr[i + 1]``.
    """

    ids: Numbers  # (n_occurrences,)
    indptr: NDArray[np.int64]  # (n_documents + 1,)
    starts: Numbers  # (n_occurrences,); none if they were not asked for
    stops: Numbers
    words: list[str]  # distinct

    @property
    def n_documents(self) -> int:
        """How many documents there are, those without tokens included."""
        return len(self.indptr) - 1

    @property
    def documents(self) -> Numbers:
        """The document of each occurrence, of shape (n_occurrences,)."""
        return np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(self.indptr))

    def spans(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield first and last + 1 of consecutive documents of some `size` tokens together."""
        first = 0
        while first < self.n_documents:
            after = np.searchsorted(self.indptr, self.indptr[first] + size, side="right")
            last = max(int(after) - 1, first + 1)
            yield first, last
            first = last

    def without(self, words: Iterable[str]) -> Tokens:
        """Return the tokens less all occurrences of some words; the list of words stays."""
        gone = frozenset(words)
        if not gone:
            return self
        kept = np.array([word not in gone for word in self.words], dtype=bool)[self.ids]
        indptr = np.append(0, np.cumsum(kept))[self.indptr]
        starts, stops = (at[kept[: len(at)]] for at in (self.starts, self.stops))
        return Tokens(self.ids[kept], indptr, starts, stops, self.words)


def stretches(tokens: Tokens, texts: Sequence[str]) -> tuple[Tokens, NDArray[np.int64]]:
    """Return the words between white space, and the number of each one's first token, (n_words,).

    `tokens` must be those of `WORDS_AND_PUNCTUATION` in texts: nothing else is between them.
    """
    begins = np.ones(len(tokens.ids), dtype=bool)
    begins[1:] = tokens.starts[1:] != tokens.stops[:-1]
    begins[tokens.indptr[:-1][np.diff(tokens.indptr) > 0]] = True
    firsts = np.flatnonzero(begins)
    sizes = np.diff(firsts, append=len(begins))
    ids, examples = distinct_runs(padded([tokens.ids.astype(np.uint32) + 1]), firsts, sizes)
    starts, stops = tokens.starts[firsts], tokens.stops[firsts + sizes - 1]
    places = (tokens.documents[firsts[examples]], starts[examples], stops[examples])
    words = [
        texts[document][start:stop]
        for document, start, stop in zip(*(one.tolist() for one in places), strict=True)
    ]
    indptr = np.searchsorted(firsts, tokens.indptr)
    return Tokens(ids.astype(np.int32), indptr, starts, stops, words), firsts


def tokenize(texts: Iterable[str], pattern: str = WORDS, *, positions: bool = True) -> Tokens:
    """Return the tokens that one of the `PATTERNS` finds in preprocessed texts, read once."""
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    wanted = {WORDS: r"\w", WORDS_AND_CONTRACTIONS: r"[\w']"}.get(pattern, r"\S")
    alphabet = Alphabet(wanted)
    # Words are numbered block by block; of each block, the symbols of its distinct words are kept.
    words: list[Symbols] = [np.zeros(0, np.uint8)]
    lengths = [np.zeros(0, np.int64)]
    counts = [np.zeros(1, np.int64)]  # of tokens, in each document
    numbers = [np.zeros(0, np.int32)]
    edges = [np.zeros((2, 0), np.int32)]
    n_words = 0
    for block in batches(texts, BLOCK):
        symbols = padded([alphabet.encode(_SEPARATOR.join(["", *block, ""]))])
        starts, stops = _runs(symbols, pattern, alphabet)
        sizes = np.fromiter(map(len, block), np.int64, len(block)) + 1
        origins = np.cumsum(sizes) - sizes + 1
        counts.append(np.diff(np.searchsorted(starts, np.append(origins, len(symbols)))))
        ids, examples = distinct_runs(symbols, starts, stops - starts)
        lengths.append((stops - starts)[examples])
        words.append(symbols[ranges(starts[examples], lengths[-1])])
        numbers.append((ids + n_words).astype(np.int32))
        if positions:
            shift = np.repeat(origins, counts[-1])
            edges.append(np.stack([starts - shift, stops - shift]).astype(np.int32))
        n_words += len(examples)
    symbols, length = padded(words), np.concatenate(lengths)
    at = np.cumsum(length) - length
    merged, examples = distinct_runs(symbols, at, length)
    merged = merged.astype(np.int32)
    starts, stops = np.concatenate(edges, axis=1)
    return Tokens(
        ids=np.concatenate([merged[one] for one in numbers]),
        indptr=np.cumsum(np.concatenate(counts)),
        starts=starts,
        stops=stops,
        words=alphabet.decode(symbols, at[examples], length[examples]),
    )


def number_tokens(texts: Iterable[str], find: Callable[[str], Iterable[str]]) -> Tokens:
    """Return the tokens that a function finds in texts, without starts and stops."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    ids, ends = array("i"), [0]
    for text in texts:
        ids.extend(map(numbers.__getitem__, find(text)))
        ends.append(len(ids))
    nowhere = np.zeros(0, np.int32)
    return Tokens(np.array(ids, np.int32), np.array(ends), nowhere, nowhere, list(numbers))


def batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Yield lists of consecutive texts, each of some `characters` characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _runs(symbols: Symbols, pattern: str, alphabet: Alphabet) -> tuple[Any, Any]:
    """Return where a block's tokens start and stop, two arrays of shape (n_occurrences,)."""
    inside = symbols > SKIPPED
    word = inside
    if pattern in (WORDS_AND_PUNCTUATION, WORDS_AND_CONTRACTIONS):
        word = np.array([re.match(r"\w", one) is not None for one in alphabet.characters])[symbols]
    if pattern != WORDS_AND_PUNCTUATION:
        edges = np.flatnonzero(word[1:] != word[:-1]) + 1
        starts, stops = edges[::2], edges[1::2]
        if pattern == WORDS:
            long = stops - starts > 1
            starts, stops = starts[long], stops[long]
        elif pattern == WORDS_AND_CONTRACTIONS:
            joined = inside[stops[:-1]] & (starts[1:] - stops[:-1] == 1)
            # Of several apostrophes in a row of words, every other one is in a token.
            at = np.arange(len(joined))
            joined &= (at - np.maximum.accumulate(np.where(joined, -1, at))) % 2 == 1
            firsts, lasts = (np.insert(~joined, k, True)[: len(starts)] for k in (0, len(joined)))
            starts, stops = starts[firsts], stops[lasts]
        return starts, stops
    joint = np.array([one in ("'", "’") for one in alphabet.characters])[symbols]
    between = joint[1:-1] & word[:-2] & word[2:]
    word[1:-1] |= between
    mark = inside & ~word
    starts = np.flatnonzero((word[1:] & ~word[:-1]) | mark[1:]) + 1
    stops = np.flatnonzero((word[:-1] & ~word[1:]) | mark[:-1]) + 1
    return starts, stops
