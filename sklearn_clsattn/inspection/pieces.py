"""A text in pieces to be shaded by what each word of it adds to the decision.

A token's contribution is shared equally among its occurrences, and an n-gram's among its words, so
that the pieces' shares sum to the contributions of the tokens in the text. N-grams with large
contributions also have a line below their words; overlapping lines are in different lanes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .terms import DocumentText

Array = NDArray[np.float64]

N_LANES = 3
"""The maximum number of lines below each other."""

# An n-gram has a line if its contribution is at least this share of the document's largest.
_LINE_FROM = 0.15


@dataclass(frozen=True)
class Piece:
    """A piece of a text, all of whose characters belong to the same tokens."""

    text: str
    tokens: tuple[int, ...]  # numbers of the document's tokens, -1 for those that `top` left out
    contribution: float  # its share of the tokens' contributions
    attention: float
    lines: tuple[tuple[int, int], ...]  # lane and token of n-grams with a line, upper lane first


def cut(text: DocumentText, contributions: Array, attention: Array) -> list[Piece]:
    """Split a text into pieces at the borders of its words."""
    if text.words is None or text.occurrences is None:
        raise ValueError("the places of the tokens in this text are not known")
    words, occurrences = text.words, text.occurrences
    times = np.bincount(occurrences[:, 2] + 1, minlength=len(contributions) + 1)[1:]
    of_word: dict[int, list[int]] = defaultdict(list)
    added, attended = np.zeros(len(words)), np.zeros(len(words))
    for first, length, token in occurrences.tolist():
        for word in range(first, first + length):
            of_word[word].append(token)
        if token >= 0:
            share = 1.0 / (length * times[token])
            added[first : first + length] += contributions[token] * share
            attended[first : first + length] += attention[token] * share
    lines = _lanes(words, occurrences, contributions)

    read = sorted(of_word)
    borders = {0, len(text.text)}
    borders.update(words[read].ravel().tolist())
    for start, stop, _, _ in lines:
        borders.update((start, stop))
    edges = sorted(borders)
    place = {edge: at for at, edge in enumerate(edges)}
    # Equal words of several vectorizers that read the same text are one piece.
    covering: list[list[int]] = [[] for _ in edges]
    for word in read:
        for at in range(place[int(words[word, 0])], place[int(words[word, 1])]):
            covering[at].append(word)
    below: list[list[tuple[int, int]]] = [[] for _ in edges]
    for start, stop, lane, token in lines:
        for at in range(place[start], place[stop]):
            below[at].append((lane, token))

    pieces = []
    for at, (start, stop) in enumerate(pairwise(edges)):
        # A word split by another vectorizer's word is shared in proportion to characters.
        shares = {word: (stop - start) / (words[word, 1] - words[word, 0]) for word in covering[at]}
        pieces.append(
            Piece(
                text=text.text[start:stop],
                tokens=tuple(sorted({token for word in shares for token in of_word[word]})),
                contribution=float(sum(added[word] * share for word, share in shares.items())),
                attention=float(sum(attended[word] * share for word, share in shares.items())),
                lines=tuple(sorted(below[at])),
            )
        )
    return pieces


def tokens_in(text: DocumentText) -> set[int]:
    """Return the numbers of the document's tokens with a known position in a text."""
    return set() if text.occurrences is None else set(text.occurrences[:, 2].tolist())


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
