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

WordSet = tuple[int, ...]
Margins = Callable[[Sequence[WordSet]], Array]

REACHED = 1e-9  # the least margin that is not rounding
_DECIMALS = 6  # by which words are ranked: of words that are level, the first comes first
_MAX_CHOICES = 2_000  # of more than one word, that are tried size by size
_MAX_AT_ONCE = 250  # choices of several sizes that are tried at once
_MAX_READ = 2_000_000  # words of the edited texts by which single words are ranked
_BATCH = 100_000  # words that are predicted before the time is looked at
_CANDIDATES = 32  # words that are tried at each step
_SWAPS = 64  # exchanges of words that are tried at once
_MAX_ROUNDS = 12  # of exchanges


@dataclass(frozen=True)
class WordSearchResult:
    """The result of a search for words, and what was tried."""

    words: WordSet | None  # the most effective first, None if none were found
    n_tried: int  # all choices of up to this many words were tried


class _OutOfTime(Exception):
    """The time that a search may take is over."""


@dataclass
class _Trials:
    """The margins of choices, predicted in batches until the time is over."""

    predict: Margins
    n_words: int
    length: int  # occurrences of words in an edited text, about
    deadline: float
    effects: Array  # (n_words,), what choosing each word adds to the margin, as far as it is known
    best: WordSet | None = None  # the fewest words that reached the goal so far
    n_tried: int = -1  # all choices of up to this many words were tried

    def margins(self, choices: Sequence[WordSet]) -> Array:
        """Return the margins of choices, (n_choices,); remember the best that reached the goal."""
        batches = [np.zeros(0)]
        size = max(1, _BATCH // max(self.length, 1))
        for start in range(0, len(choices), size):
            if monotonic() > self.deadline:
                raise _OutOfTime
            batches.append(self.predict(choices[start : start + size]))
        margins = np.concatenate(batches)
        for at in np.flatnonzero(margins > REACHED).tolist():
            if self.best is None or len(choices[at]) < len(self.best):
                self.best = choices[at]
        return margins


def fewest_words(
    margins: Margins, n_words: int, length: int, suspicion: Array, time_limit: float
) -> WordSearchResult:
    """Return the fewest words that were found whose choice reaches the goal.

    `margins` returns the margins (n_choices,) of choices, `length` is the number of words in an
    edited text, and `suspicion`, (n_words,), ranks words where not all can be tried.
    """
    trials = _Trials(margins, n_words, length, monotonic() + time_limit, suspicion.copy())
    try:
        chosen = _exhaustive_search(trials)
        if chosen is None and trials.n_tried < n_words:
            chosen = _greedy_search(trials)
            if chosen is not None:
                chosen, without = _pruned(trials, chosen)
                chosen = _exchanged(trials, chosen, without)
    except _OutOfTime:
        chosen = trials.best
    if chosen is None:
        return WordSearchResult(None, trials.n_tried)
    order = _ranked(trials.effects[list(chosen)]).tolist()
    return WordSearchResult(tuple(chosen[at] for at in order), trials.n_tried)


def _ranked(values: Array) -> NDArray[np.intp]:
    """Return the places of values, the largest first."""
    return np.argsort(-values.round(_DECIMALS), kind="stable")


def _exhaustive_search(trials: _Trials) -> WordSet | None:
    """Return the best of the smallest choices that reach the goal, trying all of a size.

    Return None if they are too many; all single words are tried unless the text is very long.
    """
    n = trials.n_words
    if (n + 1) * trials.length > _MAX_READ:
        margin = trials.margins([()])[0]
        trials.n_tried = 0
        return () if margin > REACHED else None
    n_left = n + 1 + _MAX_CHOICES
    size = 0
    while size <= n:
        # 1) All choices of the next size, or of several sizes if they are few.
        choices: list[WordSet] = []
        while size <= n and comb(n, size) <= n_left:
            if choices and size > 1 and len(choices) + comb(n, size) > _MAX_AT_ONCE:
                break
            choices += combinations(range(n), size)
            n_left -= comb(n, size)
            size += 1
        if not choices:
            return None
        margins = trials.margins(choices)
        if trials.n_tried < 0:  # the first choices are no word and the single words
            trials.effects = margins[1 : n + 1] - margins[0]
        trials.n_tried = size - 1
        # 2) The smallest that reach the goal, and the best of these.
        reached = np.flatnonzero(margins > REACHED).tolist()
        if reached:
            sizes = [len(choices[at]) for at in reached]
            smallest = [at for at in reached if len(choices[at]) == min(sizes)]
            return choices[smallest[_ranked(margins[smallest])[0]]]
    return None


def _greedy_search(trials: _Trials) -> WordSet | None:
    """Return a choice of the most effective words that reaches the goal, None without one."""
    n = trials.n_words
    effects = trials.effects.copy()
    chosen: WordSet = ()
    margin = float(trials.margins([chosen])[0])
    while margin <= REACHED and len(chosen) < n:
        # 1) The effects of the best candidates, now that others are chosen.
        others = np.setdiff1d(np.arange(n), chosen)
        candidates = others[_ranked(effects[others])][:_CANDIDATES].tolist()
        gains = effects[candidates]
        if chosen or not trials.n_tried:
            gains = trials.margins([(*chosen, word) for word in candidates]) - margin
            effects[candidates] = gains
        useful = []
        for at in _ranked(gains).tolist():
            if gains[at] > 0:
                useful.append(candidates[at])
        if not useful:
            break
        # 2) A quarter of those that seem to be needed, at least the best.
        n_needed = int(np.searchsorted(np.cumsum(effects[useful]), REACHED - margin)) + 1
        chosen = (*chosen, *useful[: max(1, n_needed // 4)])
        if n_needed >= 8:
            margin = float(trials.margins([chosen])[0])
        else:  # the margin with the best word alone is known
            margin += float(gains.max())
    if margin > REACHED:
        return chosen
    return _shortest_prefix(trials)


def _shortest_prefix(trials: _Trials) -> WordSet | None:
    """Return the first words, by their effects, that reach the goal, None if none do."""
    n = trials.n_words
    order = _ranked(trials.effects)
    ends = np.unique(np.geomspace(1, n, num=min(n, _CANDIDATES)).round().astype(int))
    prefixes: list[WordSet] = []
    for end in ends.tolist():
        prefixes.append(tuple(order[:end].tolist()))
    reached = np.flatnonzero(trials.margins(prefixes) > REACHED)
    return prefixes[reached[0]] if len(reached) else None


def _pruned(trials: _Trials, chosen: WordSet) -> tuple[WordSet, Array]:
    """Return a choice without needless words, and the margins without each of its words."""
    while True:
        # 1) The words that can be left out alone.
        fewer = []
        for at in range(len(chosen)):
            fewer.append((*chosen[:at], *chosen[at + 1 :]))
        margins = trials.margins(fewer)
        needless = np.flatnonzero(margins > REACHED)
        if not len(needless):
            return chosen, margins
        # 2) As many of the least needed words as can go together: 1, 2, 4, ...
        order = needless[_ranked(margins[needless])]
        words = [chosen[at] for at in order.tolist()]
        pruned: list[WordSet] = []
        for power in range(len(words).bit_length()):
            left_out = set(words[: 2**power])
            pruned.append(tuple(word for word in chosen if word not in left_out))
        last = np.flatnonzero(trials.margins(pruned) > REACHED).max(initial=0)
        chosen = pruned[last]


def _exchanged(trials: _Trials, chosen: WordSet, without: Array) -> WordSet:
    """Return a smaller choice, if exchanging words leads to one.

    `without` has the margins without each word of the choice. Two words are exchanged for one, or
    one for a better one, as their separate effects suggest.
    """
    for _ in range(_MAX_ROUNDS):
        if len(chosen) <= max(2, trials.n_tried + 1):
            break
        others = np.setdiff1d(np.arange(trials.n_words), chosen)
        others = others[_ranked(trials.effects[others])][:_CANDIDATES]
        if not len(others):
            break
        # 1) What each word of the choice, and each other word, adds to its margin.
        larger = [(*chosen, word) for word in others.tolist()]
        margins = trials.margins([chosen, *larger])
        margin = margins[0]
        gains = margins[1:] - margin
        losses = margin - without
        # 2) The most promising exchanges of two words, or one, for another.
        singles = []
        for at, loss in enumerate(losses):
            singles.append((round(float(loss), _DECIMALS), (at,)))
        pairs = []
        for i, j in combinations(range(len(chosen)), 2):
            pairs.append((round(float(losses[i] + losses[j]), _DECIMALS), (i, j)))
        smaller = _promising(chosen, pairs, others, gains)
        same_size = _promising(chosen, singles, others, gains)
        # 3) The best of them: a smaller choice, or one with a higher margin.
        margins = trials.margins([*smaller, *same_size])
        smaller_margins = margins[: len(smaller)]
        same_size_margins = margins[len(smaller) :]
        if smaller_margins.max(initial=0.0) > REACHED:
            chosen = smaller[int(_ranked(smaller_margins)[0])]
        elif same_size_margins.max(initial=0.0) > margin + REACHED:
            chosen = same_size[int(_ranked(same_size_margins)[0])]
        else:
            break
        chosen, without = _pruned(trials, chosen)
    return chosen


def _promising(
    chosen: WordSet,
    losses: Sequence[tuple[Any, tuple[int, ...]]],
    others: NDArray[np.intp],
    gains: Array,
) -> list[WordSet]:
    """Return the choices made by exchanges that promise the highest margins, at most `_SWAPS`.

    `losses` are pairs of a loss and the places in the choice that are left for one of the `others`,
    which gains `gains`.
    """
    ranked = sorted(losses)[:_SWAPS]
    least_losses = np.array([loss for loss, _ in ranked])
    promised = np.subtract.outer(gains, least_losses)  # (n_others, n_ranked)
    best = _ranked(promised.ravel())[:_SWAPS]
    choices: list[WordSet] = []
    for other, at in zip(*np.unravel_index(best, promised.shape), strict=True):
        _, places = ranked[at]
        kept = np.delete(chosen, places).tolist()
        choices.append((*kept, int(others[other])))
    return choices
