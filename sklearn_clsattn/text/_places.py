"""Where the tokens of texts stand: how far from the start and the end, and after which word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._tokens import Tokens

N_CELLS = 10  # of positions, told apart by powers of two: 1, 2-3, 4-7, ..., 512 and beyond

BREAK = re.compile(r"[.!?;:,\n]")
NEW_LINE = re.compile(r"\n")

Numbers = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True)
class Places:
    """The places of all occurrences of tokens, arrays of shape (n_occurrences,)."""

    from_start: Numbers  # cell, counted in tokens
    from_end: Numbers
    previous: Numbers  # number of the word before, -1 where it is unknown or beyond a break

    @classmethod
    def of(
        cls,
        tokens: Tokens,
        texts: Sequence[str],
        known: Mapping[str, int],
        between: re.Pattern[str] = BREAK,
    ) -> Places:
        """Return the places of the tokens of texts; `between` finds breaks between tokens."""
        lengths = np.diff(tokens.indptr)
        position = np.arange(len(tokens.ids)) - np.repeat(tokens.indptr[:-1], lengths)
        remaining = np.repeat(lengths, lengths) - position
        numbers = np.array([known.get(word, -1) for word in tokens.words], dtype=np.int32)
        previous = np.full(len(tokens.ids), -1, dtype=np.int32)
        previous[1:] = numbers[tokens.ids[:-1]]
        previous[_follows_break(tokens, texts, between)] = -1
        return cls(_cells(position + 1), _cells(remaining), previous)

    def __getitem__(self, here: slice) -> Places:
        """Return the places of some occurrences."""
        return Places(self.from_start[here], self.from_end[here], self.previous[here])


def known_words(tokens: Tokens, weights: NDArray[np.float64], least: float) -> list[str]:
    """Return the words in documents of a weight of at least `least`, in alphabetical order."""
    shape = (tokens.n_documents, len(tokens.words))
    ones = np.ones(len(tokens.ids))
    # Without a copy, adding up would sort the tokens themselves.
    seen = sparse.csr_array((ones, tokens.ids, tokens.indptr), shape=shape, copy=True)
    seen.sum_duplicates()
    per_entry = np.repeat(weights, np.diff(seen.indptr))
    frequency = np.bincount(seen.indices, per_entry, len(tokens.words))
    return sorted(tokens.words[word] for word in np.flatnonzero(frequency >= least))


def _cells(distance: NDArray[np.int64]) -> Numbers:
    """Return the cells of distances (n,) from 1 on: the integer part of log2, at most the last."""
    return np.searchsorted(2 ** np.arange(1, N_CELLS), distance, side="right").astype(np.int8)


def _follows_break(
    tokens: Tokens, texts: Sequence[str], between: re.Pattern[str]
) -> NDArray[np.bool_]:
    """Return whether a break or the document's start stands before tokens, (n_occurrences,).

    A break within the token before counts as well: that may be all there is of the token.
    """
    sizes = np.fromiter(map(len, texts), np.int64, len(texts)) + 1
    origins = np.cumsum(sizes) - sizes
    breaks = [
        origin + match.start()
        for origin, text in zip(origins.tolist(), texts, strict=True)
        for match in between.finditer(text)
    ]
    starts = tokens.starts + np.repeat(origins, np.diff(tokens.indptr))
    after = np.searchsorted(starts, np.array(breaks, dtype=np.int64), side="right")
    follows = np.zeros(len(starts) + 1, dtype=bool)
    follows[after] = True
    follows[tokens.indptr[:-1]] = True
    broken = np.array([BREAK.search(word) is not None for word in tokens.words], dtype=bool)
    follows[1:] |= broken[tokens.ids]
    return follows[:-1]
