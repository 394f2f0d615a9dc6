"""The fewest words that reach a goal when they are chosen, found by predicting edited texts.

A choice of words is an array of their numbers. It reaches the goal if its *margin* is positive,
such as the lead of another class in the text without these words. A margin is known only by
predicting, and says nothing about other choices, so a size is excluded only by trying all choices
of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array

Choice = tuple[int, ...]
Margins = Callable[[Sequence[Choice]], Array]

REACHED = 1e-9  # the least margin that is not rounding
_MAX_ALL = 2_000  # choices of more than one word that are tried only to try all of a size
_FEW = 250  # choices of several sizes that are tried at once
_MAX_READ = 2_000_000  # words of the edited texts by which single words are ranked
_BATCH = 100_000  # words that are predicted before the time is looked at
_CANDIDATES = 32  # words that are tried at each step
_SWAPS = 64  # exchanges of words that are tried at once
_MAX_ROUNDS = 12  # of exchanges


@dataclass(frozen=True)
class FoundWords:
    """The words that were found, and what was tried."""

    words: Choice | None  # the most effective first, None if none were found
    n_tried: int  # all choices of up to this many words were tried


class _OutOfTime(Exception):
    """The time that a search may take is over."""


@dataclass
class _Trials:
    """The margins of choices, predicted in batches until the time is over."""

    margins: Margins
    n_words: int
    length: int  # occurrences of words in an edited text, at most
    stop: float  # when the time is over
    effects: Array  # (n_words,), what choosing each word adds to the margin, as far as it is known
    best: Choice | None = None  # the fewest words that reached the goal so far
    n_tried: int = -1

    def of(self, choices: Sequence[Choice]) -> Array:
        """Return the margins of choices, (n_choices,); remember the best that reached the goal."""
        made = []
        size = max(1, _BATCH // max(self.length, 1))
        for start in range(0, len(choices), size):
            if monotonic() > self.stop:
                raise _OutOfTime
            made.append(self.margins(choices[start : start + size]))
        margins = np.concatenate(made) if made else np.zeros(0)
        for at in np.flatnonzero(margins > REACHED).tolist():
            if self.best is None or len(choices[at]) < len(self.best):
                self.best = choices[at]
        return margins


def fewest_words(
    margins: Margins, n_words: int, length: int, suspicion: Array, time_limit: float
) -> FoundWords:
    """Return the fewest words that were found whose choice reaches the goal.

    `margins` returns the margins (n_choices,) of choices, `length` is the number of words in an
    edited text, and `suspicion`, (n_words,), ranks words where not all can be tried.
    """
    trials = _Trials(margins, n_words, length, monotonic() + time_limit, suspicion.copy())
    try:
        chosen = _by_trying_all(trials)
        if chosen is None and trials.n_tried < n_words:
            chosen = _greedily(trials)
            if chosen is not None:
                chosen = _exchanged(trials, *_without_needless(trials, chosen))
    except _OutOfTime:
        chosen = trials.best
    if chosen is None:
        return FoundWords(None, trials.n_tried)
    order = sorted(chosen, key=lambda word: -trials.effects[word])
    return FoundWords(tuple(order), trials.n_tried)


def _by_trying_all(trials: _Trials) -> Choice | None:
    """Return the best of the smallest choices that reach the goal, trying all of a size.

    Return None if they are too many; all single words are tried unless the text is very long.
    """
    n = trials.n_words
    if (n + 1) * trials.length > _MAX_READ:
        margin = trials.of([()])[0]
        trials.n_tried = 0
        return () if margin > REACHED else None
    left = n + 1 + _MAX_ALL
    size = 0
    while size <= n:
        # 1) All choices of the next size, or of several sizes if they are few.
        choices: list[Choice] = []
        while size <= n and comb(n, size) <= left:
            if choices and size > 1 and len(choices) + comb(n, size) > _FEW:
                break
            choices += combinations(range(n), size)
            left -= comb(n, size)
            size += 1
        if not choices:
            return None
        margins = trials.of(choices)
        if trials.n_tried < 0:
            trials.effects = margins[1 : n + 1] - margins[0]
        trials.n_tried = size - 1
        # 2) The smallest that reach the goal, and the best of these.
        reached = np.flatnonzero(margins > REACHED).tolist()
        if reached:
            best = min(reached, key=lambda at: (len(choices[at]), -margins[at]))
            return choices[best]
    return None


def _greedily(trials: _Trials) -> Choice | None:
    """Return a choice that reaches the goal, made of the most effective words, None without one."""
    n, effects = trials.n_words, trials.effects.copy()
    chosen: Choice = ()
    margin = float(trials.of([chosen])[0])
    while margin <= REACHED and len(chosen) < n:
        others = np.setdiff1d(np.arange(n), chosen)
        ranked = others[np.argsort(-effects[others], kind="stable")]
        # 1) The effects of the best candidates, now that others are chosen.
        candidates = ranked[:_CANDIDATES].tolist()
        gains = effects[candidates]
        if chosen or not trials.n_tried:
            gains = trials.of([(*chosen, word) for word in candidates]) - margin
            effects[candidates] = gains
        order = np.argsort(-gains, kind="stable")
        useful = [candidates[at] for at in order.tolist() if gains[at] > 0]
        if not useful:
            break
        # 2) A quarter of those that seem to be needed, at least the best.
        needed = int(np.searchsorted(np.cumsum(effects[useful]), REACHED - margin)) + 1
        chosen = (*chosen, *useful[: max(1, needed // 4)])
        if needed >= 8:
            margin = float(trials.of([chosen])[0])
        else:
            margin += float(gains.max())
    if margin > REACHED:
        return chosen
    # 3) Else the first words in the order of their effects, or all.
    order = np.argsort(-trials.effects, kind="stable")
    ends = np.unique(np.geomspace(1, n, num=min(n, _CANDIDATES)).round().astype(int))
    prefixes: list[Choice] = [tuple(order[:end].tolist()) for end in ends.tolist()]
    reached = np.flatnonzero(trials.of(prefixes) > REACHED)
    return prefixes[reached[0]] if len(reached) else None


def _without_needless(trials: _Trials, chosen: Choice) -> tuple[Choice, Array]:
    """Return a choice from which no word can be left out, and the margins without each word."""
    while True:
        fewer = [(*chosen[:at], *chosen[at + 1 :]) for at in range(len(chosen))]
        margins = trials.of(fewer)
        needless = np.flatnonzero(margins > REACHED)
        if not len(needless):
            return chosen, margins
        # As many of the least needed words as can go together: 1, 2, 4, ...
        order = needless[np.argsort(-margins[needless], kind="stable")]
        numbers = [chosen[at] for at in order.tolist()]
        ends = [2**k for k in range(len(numbers).bit_length())]
        kept = [tuple(word for word in chosen if word not in set(numbers[:end])) for end in ends]
        last = np.flatnonzero(trials.of(kept) > REACHED).max(initial=0)
        chosen = kept[last]


def _exchanged(trials: _Trials, chosen: Choice, without: Array) -> Choice:
    """Return a smaller choice, if exchanging words leads to one.

    `without` has the margins without each word of the choice. Two words are exchanged for one, or
    one for a better one, as their separate effects suggest.
    """
    for _ in range(_MAX_ROUNDS):
        if len(chosen) <= max(2, trials.n_tried + 1):
            break
        others = np.setdiff1d(np.arange(trials.n_words), chosen)
        others = others[np.argsort(-trials.effects[others], kind="stable")][:_CANDIDATES]
        if not len(others):
            break
        # 1) What each word of the choice, and each other word, adds to its margin.
        joined = trials.of([chosen, *((*chosen, word) for word in others.tolist())])
        margin, gains = joined[0], joined[1:] - joined[0]
        losses = margin - without
        # 2) The most promising exchanges.
        pairs = [(losses[i] + losses[j], (i, j)) for i, j in combinations(range(len(chosen)), 2)]
        smaller = _promising(chosen, pairs, others, gains)
        same_size = _promising(
            chosen, [(loss, (i,)) for i, loss in enumerate(losses)], others, gains
        )
        margins = trials.of([*smaller, *same_size])
        of_smaller, of_same = margins[: len(smaller)], margins[len(smaller) :]
        if of_smaller.max(initial=0.0) > REACHED:
            chosen = smaller[int(of_smaller.argmax())]
        elif of_same.max(initial=0.0) > margin + REACHED:
            chosen = same_size[int(of_same.argmax())]
        else:
            break
        chosen, without = _without_needless(trials, chosen)
    return chosen


def _promising(
    chosen: Choice,
    losses: Sequence[tuple[Any, tuple[int, ...]]],
    others: NDArray[np.intp],
    gains: Array,
) -> list[Choice]:
    """Return the choices made by exchanges that promise the highest margins, at most `_SWAPS`.

    `losses` are pairs of a loss and the places in the choice that are left for one of the `others`,
    which gains `gains`.
    """
    ranked = sorted(losses)[:_SWAPS]
    promised = np.subtract.outer(gains, np.array([loss for loss, _ in ranked])).ravel()
    best = np.argsort(-promised, kind="stable")[:_SWAPS]
    made = []
    for other, at in zip(*np.unravel_index(best, (len(gains), len(ranked))), strict=True):
        left = set(ranked[at][1])
        kept = (word for place, word in enumerate(chosen) if place not in left)
        made.append((*kept, int(others[other])))
    return made
