"""A text in pieces to be shaded by what each word of it adds to the decision.

A token's contribution is shared among its occurrences by what each counts, an n-gram's equally
among its words, all others equally among their characters: the pieces' shares sum to the tokens'
contributions. N-grams with large ones also have a line below, overlapping ones in other lanes.
"""

from bisect import bisect
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..text._symbols import ranges
from .terms import DocumentText

Array = NDArray[np.float64]

N_LANES = 3  # of lines below each other
_LINE_FROM = 0.15  # of the largest contribution: an n-gram with as much has a line


@dataclass(frozen=True)
class Piece:
    """A piece of a text, all of whose characters belong to the same tokens."""

    text: str
    tokens: tuple[int, ...]  # numbers of the document's tokens, -1 for those that `top` left out
    contribution: float  # its share of the tokens' contributions
    attention: float
    lines: tuple[tuple[int, int], ...]  # lane and token of n-grams with a line, upper lane first
    also: tuple[float, ...] = ()  # its shares of further contributions


def cut(
    text: DocumentText, contributions: Array, attention: Array, also: Array | None = None
) -> list[Piece]:
    """Split a text into pieces at the borders of its words."""
    if text.words is None or text.occurrences is None or text.shares is None:
        raise ValueError("the places of the tokens in this text are not known")
    words, (first, length, tokens) = text.words, text.occurrences.T
    # Every occurrence by word, every word by character.
    n_words = length.clip(min=1)
    number = np.repeat(np.arange(len(tokens)), n_words)
    starts, stops = words[ranges(first, n_words)].T
    sizes = stops - starts
    character = ranges(starts, sizes)
    token = np.repeat(tokens[number], sizes)
    weight = np.repeat((text.shares / n_words)[number] / sizes, sizes)
    amounts = [
        np.bincount(character, weight * np.append(of_token, 0.0)[token], len(text.text))
        for of_token in (contributions, attention, *([] if also is None else also.T))
    ]

    lines = _lanes(words, text.occurrences, contributions)
    borders = {0, len(text.text)}
    whole = (length > 0)[number]  # character n-grams cut no words
    borders.update(starts[whole].tolist(), stops[whole].tolist())
    covered = np.zeros(len(text.text) + 1, dtype=np.int8)
    covered[character] = 1
    borders.update(np.flatnonzero(np.diff(covered, prepend=0)).tolist())
    for start, stop, _, _ in lines:
        borders.update((start, stop))
    edges = sorted(borders)
    below: list[list[tuple[int, int]]] = [[] for _ in edges]
    for start, stop, lane, line in lines:
        for at in range(bisect(edges, start) - 1, bisect(edges, stop) - 1):
            below[at].append((lane, line))
    place = np.searchsorted(edges, character, side="right") - 1
    of_piece: list[list[int]] = [[] for _ in edges]
    for pair in np.unique(place * (len(contributions) + 1) + token + 1).tolist():
        at, one = divmod(pair, len(contributions) + 1)
        of_piece[at].append(one - 1)
    return [
        Piece(
            text=text.text[start:stop],
            tokens=tuple(of_piece[at]),
            contribution=float(amounts[0][start:stop].sum()),
            attention=float(amounts[1][start:stop].sum()),
            lines=tuple(sorted(below[at])),
            also=tuple(float(of[start:stop].sum()) for of in amounts[2:]),
        )
        for at, (start, stop) in enumerate(pairwise(edges))
    ]


def placed(texts: Iterable[DocumentText]) -> set[int]:
    """Return the numbers of the document's tokens with a known position in a text."""
    known = (text.occurrences for text in texts if text.occurrences is not None)
    return set[int]().union(*(occurrences[:, 2].tolist() for occurrences in known))


def _lanes(
    words: NDArray[np.int32], occurrences: NDArray[np.int32], contributions: Array
) -> list[tuple[int, int, int, int]]:
    """Return start, stop, lane and token of the lines, those of the strongest n-grams first."""
    weight = np.append(np.abs(contributions), 0.0)[occurrences[:, 2]]
    least = max(_LINE_FROM * np.abs(contributions).max(initial=0.0), 1e-12)
    candidates = np.flatnonzero((occurrences[:, 1] > 1) & (weight >= least))
    taken = np.zeros((N_LANES, int(words.max(initial=0))), dtype=bool)
    lines = []
    for at in candidates[np.argsort(-weight[candidates], kind="stable")]:
        first, length, token = occurrences[at].tolist()
        start, stop = int(words[first, 0]), int(words[first + length - 1, 1])
        for lane, there in enumerate(taken):
            if not there[start:stop].any():
                there[start:stop] = True
                lines.append((start, stop, lane, token))
                break
    return lines
