"""A text in segments to be shaded by what each word of it adds to the decision.

A token's contribution is shared among its occurrences by what each counts, an n-gram's equally
among its words, all others equally among their characters: the segments' shares sum to the tokens'
contributions. N-grams with large ones also have a line below, overlapping ones in other lanes.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..text._symbols import ranges
from .terms import DocumentText

Array = NDArray[np.float64]

N_LANES = 3  # of lines below each other
_LINE_FROM = 0.15  # of the largest contribution: an n-gram with as much has a line


class Segment(NamedTuple):
    """A segment of a text, all of whose characters belong to the same tokens."""

    text: str
    tokens: tuple[int, ...] = ()  # numbers of the document's tokens, -1 for those left out
    contribution: float = 0.0  # its share of the tokens' contributions
    attention: float = 0.0
    lines: tuple[tuple[int, int], ...] = ()  # lane and token of n-grams, upper lane first


def cut(text: DocumentText, contributions: Array, attention: Array) -> list[Segment]:
    """Return a text as segments that end where its words do; as one without positions."""
    if text.words is None or text.occurrences is None or text.shares is None:
        return [Segment(text.text)]
    words, (first, length, tokens) = text.words, text.occurrences.T
    # Every word of every occurrence, with the occurrence's number.
    n_words = length.clip(min=1)
    occurrence = np.repeat(np.arange(len(tokens)), n_words)
    starts, stops = words[ranges(first, n_words)].T
    lines = _lanes(text, contributions)
    is_word = (length > 0)[occurrence]  # character n-grams cut no words
    n_characters = len(text.text)
    changes = np.bincount(starts, minlength=n_characters + 1)
    changes -= np.bincount(stops, minlength=n_characters + 1)
    read = np.flatnonzero(np.diff(np.cumsum(changes) > 0, prepend=False))
    of_lines = [place for start, stop, *_ in lines for place in (start, stop)]
    edges = np.unique(
        np.concatenate([[0, n_characters], of_lines, starts[is_word], stops[is_word], read])
    ).astype(np.intp)
    # Every segment of every word.
    low = np.searchsorted(edges, starts, side="right") - 1
    n_segments = np.searchsorted(edges, stops) - low
    segment, word = ranges(low, n_segments), np.repeat(np.arange(len(starts)), n_segments)
    token = tokens[occurrence[word]]
    inside = np.minimum(stops[word], edges[segment + 1]) - np.maximum(starts[word], edges[segment])
    share = (text.shares / n_words)[occurrence[word]] * inside / (stops - starts)[word]
    added, attended = (
        np.bincount(segment, share * np.append(amounts, 0.0)[token], len(edges)).tolist()
        for amounts in (contributions, attention)
    )
    n_numbers = len(contributions) + 1
    pairs = np.sort(segment * n_numbers + token + 1)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    members = (pairs % n_numbers - 1).tolist()
    until = np.searchsorted(pairs // n_numbers, np.arange(len(edges) + 1)).tolist()
    below: dict[int, list[tuple[int, int]]] = {}
    for start, stop, lane, number in lines:
        for at in range(*np.searchsorted(edges, (start, stop)).tolist()):
            below.setdefault(at, []).append((lane, number))
    return [
        Segment(
            text.text[start:stop],
            tuple(members[until[at] : until[at + 1]]),
            added[at],
            attended[at],
            tuple(sorted(below.get(at, ()))),
        )
        for at, (start, stop) in enumerate(pairwise(edges.tolist()))
    ]


def placed(texts: Iterable[DocumentText]) -> set[int]:
    """Return the numbers of the document's tokens with a known position in a text."""
    known = (text.occurrences for text in texts if text.occurrences is not None)
    return set[int]().union(*(occurrences[:, 2].tolist() for occurrences in known))


def _lanes(text: DocumentText, contributions: Array) -> list[tuple[int, int, int, int]]:
    """Return start, stop, lane and token of the lines, those of the strongest n-grams first."""
    words, occurrences = text.words, text.occurrences
    assert words is not None
    assert occurrences is not None
    weight = np.append(np.abs(contributions), 0.0)[occurrences[:, 2]]
    least = max(_LINE_FROM * np.abs(contributions).max(initial=0.0), 1e-12)
    candidates = np.flatnonzero((occurrences[:, 1] > 1) & (weight >= least))
    taken = np.zeros((N_LANES, len(text.text)), dtype=bool)
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
