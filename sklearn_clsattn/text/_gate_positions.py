"""Positions of tokens in texts: distances from the start and the end, and the word before."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .._types import Integers
from ._tokens import Ids, Tokens, look_up

MAX_SCORE = 6.0  # of an occurrence, in absolute value
N_CELLS = 10  # of distances, by powers of two: 1, 2-3, 4-7, ..., 512 and beyond
_FAR = 2 ** (N_CELLS - 1)
# The cell of each distance from 0 (which is none) to the first of the last cell.
_CELLS = np.array([max(n.bit_length() - 1, 0) for n in range(_FAR + 1)], dtype=np.int8)

BREAK = re.compile(r"[.!?;:,\n]")
NEW_LINE = re.compile(r"\n")
_BLOCK = 1 << 17  # tokens whose positions are found together


@dataclass(frozen=True)
class GatePositions:
    """Positions of the occurrences of tokens, arrays of shape (n_occurrences,)."""

    from_start: NDArray[np.int8]  # cell, counted in tokens
    from_end: NDArray[np.int8]
    previous: Ids  # number of the word before, -1 where it is unknown or beyond a break

    def __getitem__(self, here: slice | NDArray[Any]) -> Self:
        """Return the positions of some occurrences."""
        return type(self)(self.from_start[here], self.from_end[here], self.previous[here])


class PlacedTokens(NamedTuple):
    """The tokens of preprocessed texts, and their columns and positions."""

    tokens: Tokens
    columns: list[Ids]  # for each length, of the n-grams that begin at tokens, or -1
    positions: GatePositions


def token_positions(
    tokens: Tokens,
    texts: Sequence[str],
    numbers: Mapping[str, int],
    *,
    with_punctuation: bool = False,
) -> GatePositions:
    """Return the positions of the tokens of texts, and the `numbers` of the words before them.

    A token has no word before it if a break is between them, or if that word contains a break.
    With `with_punctuation`, signs are tokens, and only a new line can be between two.
    """
    # The number of each word that may be the word before: one with a break may not.
    number_of_word = look_up(tokens.words, numbers)
    has_break = np.array([BREAK.search(word) is not None for word in tokens.words], dtype=bool)
    number_of_word[has_break] = -1
    between = NEW_LINE if with_punctuation else BREAK
    n_tokens = len(tokens.ids)
    from_start = np.empty(n_tokens, dtype=np.int8)
    from_end = np.empty(n_tokens, dtype=np.int8)
    previous = np.empty(n_tokens, dtype=np.int32)
    for documents, here, indptr in tokens.blocks(_BLOCK):
        # 1) the distances from the start and from the end
        lengths = np.diff(indptr)
        position = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        from_start[here] = _cells(position + 1)
        to_end = np.repeat(lengths, lengths) - position
        from_end[here] = _cells(to_end)
        # 2) the word before, but not across documents and breaks
        word_before = number_of_word[tokens.ids[here]]
        word_before[1:] = word_before[:-1].copy()
        word_before[position == 0] = -1
        starts = tokens.starts[here]
        after_breaks = _after_breaks(starts, indptr, texts[documents], between)
        word_before[after_breaks] = -1
        previous[here] = word_before
    return GatePositions(from_start, from_end, previous)


def _after_breaks(
    starts: Ids, indptr: Integers, texts: Sequence[str], between: re.Pattern[str]
) -> Integers:
    """Return the first token after each break within a text, (n_breaks,), by tokens' `starts`."""
    tokens_after = []
    for first, last, text in zip(indptr[:-1].tolist(), indptr[1:].tolist(), texts, strict=True):
        breaks = [match.start() for match in between.finditer(text)]
        if breaks:
            after = first + np.searchsorted(starts[first:last], breaks, side="right")
            tokens_after.append(after[after < last])  # no token follows the last breaks
    return np.concatenate([np.zeros(0, dtype=np.int64), *tokens_after])


def _cells(distances: Integers) -> NDArray[np.int8]:
    """Return the cell of each distance, (n_occurrences,), from 0 to N_CELLS - 1."""
    return _CELLS[np.minimum(distances, _FAR)]


def frequent_words(tokens: Tokens, weights: NDArray[np.float64], least: float) -> list[str]:
    """Return the words in documents of a weight of at least `least`, in alphabetical order."""
    counts = tokens.word_counts
    words = np.repeat(np.arange(len(tokens.words)), np.diff(counts.indptr))
    weight_of_word = np.bincount(words, weights[counts.indices], len(tokens.words))
    is_frequent = weight_of_word >= least
    return sorted(compress(tokens.words, is_frequent))
