"""A text in pieces to be shaded by what each word of it adds to the decision.

A token's contribution is shared among its occurrences by what each counts, an n-gram's equally
among its words, all others equally among their characters: the pieces' shares sum to the tokens'
contributions. N-grams with large ones also have a line below, overlapping ones in other lanes.
"""

from collections.abc import Iterable
from itertools import pairwise, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text._symbols import ranges
from .terms import DocumentText

Array = NDArray[np.float64]

N_LANES = 3  # of lines below each other
_LINE_FROM = 0.15  # of the largest contribution: an n-gram with as much has a line


class Piece(NamedTuple):
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
    # Every occurrence by word.
    n_words = length.clip(min=1)
    number = np.repeat(np.arange(len(tokens)), n_words)
    starts, stops = words[ranges(first, n_words)].T
    lines = _lanes(words, text.occurrences, contributions)
    n_characters = len(text.text)
    changes = np.bincount(starts, minlength=n_characters + 1)
    changes -= np.bincount(stops, minlength=n_characters + 1)
    covered = np.cumsum(changes) > 0
    whole = (length > 0)[number]  # character n-grams cut no words
    of_lines = [place for start, stop, _, _ in lines for place in (start, stop)]
    edges = np.unique(
        np.concatenate(
            [
                np.array([0, n_characters, *of_lines]),
                starts[whole],
                stops[whole],
                np.flatnonzero(np.diff(covered, prepend=False)),
            ]
        )
    )
    below: dict[int, list[tuple[int, int]]] = {}
    for start, stop, lane, line in lines:
        for at in range(*np.searchsorted(edges, (start, stop)).tolist()):
            below.setdefault(at, []).append((lane, line))
    # Every word by the pieces that have characters of it.
    low = np.searchsorted(edges, starts, side="right") - 1
    n_pieces = np.searchsorted(edges, stops) - low
    place, word = ranges(low, n_pieces), np.repeat(np.arange(len(starts)), n_pieces)
    number = number[word]
    token = tokens[number]
    inside = np.minimum(stops[word], edges[place + 1]) - np.maximum(starts[word], edges[place])
    weight = (text.shares / n_words)[number] * inside / (stops - starts)[word]
    amounts = [
        np.bincount(place, weight * np.append(of_token, 0.0)[token], len(edges)).tolist()
        for of_token in (contributions, attention, *([] if also is None else also.T))
    ]
    pairs = np.sort(place * (len(contributions) + 1) + token + 1)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    at_piece, found = np.divmod(pairs, len(contributions) + 1)
    until = np.searchsorted(at_piece, np.arange(len(edges)), side="right").tolist()
    of_pieces = (found - 1).tolist()
    ends = edges.tolist()
    return [
        Piece(
            text.text[ends[at] : ends[at + 1]],
            tuple(of_pieces[begin:end]),
            contribution,
            attended,
            tuple(sorted(below.get(at, ()))),
            more,
        )
        for at, ((begin, end), contribution, attended, more) in enumerate(
            zip(
                pairwise([0, *until[:-1]]),
                *amounts[:2],
                zip(*amounts[2:], strict=True) if amounts[2:] else repeat(()),
                strict=False,
            )
        )
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
