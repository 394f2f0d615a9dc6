"""Positions of tokens in texts: distances from the start and the end, and the word before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._tokens import Tokens

MAX_SCORE = 6.0  # of an occurrence, in absolute value
N_CELLS = 10  # of distances, by powers of two: 1, 2-3, 4-7, ..., 512 and beyond

BREAK = re.compile(r"[.!?;:,\n]")
NEW_LINE = re.compile(r"\n")

Numbers = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class TokenPositions:
    """Positions of the occurrences of tokens, arrays of shape (n_occurrences,)."""

    from_start: Numbers  # cell, counted in tokens
    from_end: Numbers
    previous: Numbers  # number of the word before, -1 where it is unknown or beyond a break

    def __getitem__(self, here: slice | NDArray[Any]) -> TokenPositions:
        """Return the positions of some occurrences."""
        return TokenPositions(self.from_start[here], self.from_end[here], self.previous[here])


class Words(NamedTuple):
    """The words of preprocessed texts."""

    tokens: Tokens
    columns: list[NDArray[Any]]  # for each length, of the n-grams that begin at tokens, or -1
    positions: TokenPositions


def token_positions(
    tokens: Tokens,
    texts: Sequence[str],
    known: Mapping[str, int],
    *,
    with_punctuation: bool = False,
) -> TokenPositions:
    """Return the positions of the tokens of texts, after which `known` words, by number.

    A word has none before it where a break is in between, or the word before has one. In tokens
    `with_punctuation`, no break but a new line is between two.
    """
    between = NEW_LINE if with_punctuation else BREAK
    lengths = np.diff(tokens.indptr)
    position = np.arange(len(tokens.ids)) - np.repeat(tokens.indptr[:-1], lengths)
    remaining = np.repeat(lengths, lengths) - position
    numbers = np.array([known.get(word, -1) for word in tokens.words], dtype=np.int32)
    broken = np.array([BREAK.search(word) is not None for word in tokens.words], dtype=bool)
    numbers[broken] = -1
    previous = np.full(len(tokens.ids), -1, dtype=np.int32)
    previous[1:] = numbers[tokens.ids[:-1]]
    previous[position == 0] = -1
    # Where the texts stand one after the other.
    sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    origins = np.cumsum(sizes) - sizes
    breaks = [
        origin + match.start()
        for origin, text in zip(origins.tolist(), texts, strict=True)
        for match in between.finditer(text)
    ]
    starts = tokens.starts + np.repeat(origins, lengths)
    after = np.searchsorted(starts, np.array(breaks, dtype=np.int64), side="right")
    previous[after[after < len(previous)]] = -1
    from_start, from_end = (
        np.searchsorted(2 ** np.arange(1, N_CELLS), distance, side="right").astype(np.int8)
        for distance in (position + 1, remaining)
    )
    return TokenPositions(from_start, from_end, previous)


def frequent_words(tokens: Tokens, weights: NDArray[np.float64], least: float) -> list[str]:
    """Return the words in documents of a weight of at least `least`, in alphabetical order."""
    shape = (tokens.n_documents, len(tokens.words))
    ones = np.ones(len(tokens.ids))
    # Without a copy, sum_duplicates would sort the tokens themselves.
    present = sparse.csr_array((ones, tokens.ids, tokens.indptr), shape=shape, copy=True)
    present.sum_duplicates()
    per_entry = np.repeat(weights, np.diff(present.indptr))
    frequency = np.bincount(present.indices, per_entry, len(tokens.words))
    return sorted(tokens.words[word] for word in np.flatnonzero(frequency >= least))
