r"""The fewest words whose removal, with everything that contains them, changes a prediction.

What remains keeps its weight. N-grams share words, so that this is an integer programme:
:math:`x_u` says whether word u is removed, and :math:`y_U = \max_{u \in U} x_u` whether an
occurrence with the words U is lost. A token of which the share :math:`\rho` is lost loses
:math:`f(\rho)` of its weight, where f is convex with :math:`f'(0) \rho \le f(\rho) \le \rho`: with
the side that helps more, every set of words that changes the prediction fulfils the programme's
linear conditions, so that its bound holds.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..pieces import placed
from ..terms import DecisionTerms, DocumentText
from .lead import Lead, of_class, present_class
from .programme import fewest, without_needless
from .removal_of_tokens import Found

Array = NDArray[np.float64]
Chosen = NDArray[np.bool_]

_STEP = 1e-6  # of a count, for the slope of its weight


@dataclass(frozen=True, eq=False)
class Words:
    """The W distinct words of a document, and the occurrences of tokens in sets of them."""

    names: list[str]  # as they stand first
    places: list[NDArray[np.intp]]  # of each text, starts, stops and words, (n_places, 3)
    sets: sp.csr_array  # (n_sets, W), which words each set has, as ones
    # (n_occurrences,): the set, the token's number in the document, and the part of its count.
    occurrence_sets: NDArray[np.intp]
    tokens: NDArray[np.intp]
    parts: Array

    def lost(self, removed: Chosen, n_tokens: int) -> Array:
        """Return the share of every token's count that goes with some words, (n_tokens,)."""
        gone = (self.sets @ removed.astype(np.float64) > 0)[self.occurrence_sets]
        lost = np.bincount(self.tokens[gone], self.parts[gone], n_tokens)
        return lost.clip(max=1.0)


def words_of(one: DecisionTerms) -> Words:
    """Return the words of one document; raise ValueError where their places are not known."""
    numbers: dict[tuple[str | None, str], int] = {}
    names: list[str] = []
    places, found = [], []
    for text in one.texts[0]:
        if text.words is None or text.occurrences is None or text.shares is None:
            places.append(np.zeros((0, 3), dtype=np.intp))
            continue
        of_text, occurrences = _words_of_text(text, numbers, names)
        places.append(of_text)
        found += occurrences
    known = placed(one.texts[0])
    lost = [str(name) for at, name in enumerate(one.tokens) if at not in known]
    if lost:
        raise ValueError(
            f"no words can be removed from document {int(one.index[0])} with all that contains "
            f"them: the places of {len(lost)} tokens, such as {lost[0]!r}, are not known. Explain "
            "texts with places=True and a vectorizer of words, or remove tokens rather than words"
        )
    distinct: dict[tuple[int, ...], int] = {}
    rows = [distinct.setdefault(words, len(distinct)) for words, _, _ in found]
    lengths = [len(words) for words in distinct]
    columns = np.fromiter((word for words in distinct for word in words), dtype=np.intp)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    shape = (len(distinct), len(names))
    return Words(
        names,
        places,
        sp.csr_array((np.ones(len(columns)), columns, indptr), shape=shape),
        np.array(rows, dtype=np.intp),
        np.array([token for _, token, _ in found], dtype=np.intp),
        np.array([part for _, _, part in found], dtype=np.float64),
    )


def _words_of_text(
    text: DocumentText, numbers: dict[tuple[str | None, str], int], names: list[str]
) -> tuple[NDArray[np.intp], list[tuple[tuple[int, ...], int, float]]]:
    """Return a text's places, and words, token and part of its occurrences; number new words."""
    assert text.words is not None
    assert text.occurrences is not None
    assert text.shares is not None
    first, length, token = text.occurrences.T.tolist()
    bounds: list[tuple[int, int]] = [(start, stop) for start, stop in text.words.tolist()]
    spans = {
        bounds[at] for start, n in zip(first, length, strict=True) for at in range(start, start + n)
    }
    # What no word covers may have character n-grams, as words that are not in the vocabulary.
    known = sorted(spans)
    starts = [start for start, _ in known]
    for stretch in re.finditer(r"\S+", text.text):
        place = stretch.start()
        for at in range(bisect_left(starts, place), len(known)):
            start, stop = known[at]
            if start >= stretch.end():
                break
            if start > place:
                spans.add((place, start))
            place = max(place, stop)
        if place < stretch.end():
            spans.add((place, stretch.end()))
    ordered = sorted(spans)
    ends = np.array([stop for _, stop in ordered], dtype=np.intp)
    begins = np.array([start for start, _ in ordered], dtype=np.intp)

    def number(span: tuple[int, int]) -> int:
        name = text.text[slice(*span)]
        key = (text.name, name.lower())
        if key not in numbers:
            numbers[key] = len(names)
            names.append(name)
        return numbers[key]

    of_place = {span: number(span) for span in ordered}
    occurrences = []
    for start, n, which, part in zip(first, length, token, text.shares.tolist(), strict=True):
        if n:
            words = {of_place[bounds[at]] for at in range(start, start + n)}
        else:  # character n-grams belong to the words that they overlap
            low, high = bounds[start]
            near = range(
                int(np.searchsorted(ends, low, side="right")), int(np.searchsorted(begins, high))
            )
            words = {of_place[ordered[at]] for at in near}
        if words:
            occurrences.append((tuple(sorted(words)), which, part))
    rows = [(start, stop, of_place[start, stop]) for start, stop in ordered]
    return np.array(rows, dtype=np.intp).reshape(-1, 3), occurrences


class Removal:
    """What removing words of a document does to leads."""

    def __init__(self, one: DecisionTerms, words: Words) -> None:
        assert one.model is not None
        self._words, self._n_tokens = words, len(one.tokens)
        self._weigh, self._counts = one.model.token_weights, one.counts
        self._full = self._weigh(one.counts)
        # Whether a token is lost as a whole: then it loses all of its weight and no less.
        order = np.lexsort((words.occurrence_sets, words.tokens))
        tokens, sets = words.tokens[order], words.occurrence_sets[order]
        several = (np.diff(tokens) == 0) & (np.diff(sets) != 0)
        whole = np.bincount(words.tokens, words.parts, self._n_tokens) > 1 - 1e-9
        whole[tokens[1:][several]] = False
        slope = (self._full - self._weigh(one.counts * (1 - _STEP))) / (_STEP * self._full)
        self.slope = np.where(whole, 1.0, slope * (1 - 1e-5))

    def weights(self, removed: Chosen) -> Array:
        """Return the share of its weight that every token keeps, (n_tokens,)."""
        lost = self._words.lost(removed, self._n_tokens)
        return np.where(lost > 1 - 1e-9, 0.0, self._weigh(self._counts * (1 - lost)) / self._full)

    def linear(self, lead: Lead) -> tuple[Array, Array]:
        """Return what a lead lacks, (R,), and upper bounds of what sets' loss gains it, (n, R)."""
        constant, terms = lead.linear()
        gains = -terms
        gains = np.where(gains > 0, gains, gains * self.slope[:, None])
        words = self._words
        of_occurrence = words.parts[:, None] * gains[words.tokens]
        sets = words.occurrence_sets
        n_sets = words.sets.shape[0]
        bounds = [np.bincount(sets, column, n_sets) for column in of_occurrence.T]
        return -(constant + terms.sum(axis=0)), np.column_stack(bounds)


def fewest_words(
    one: DecisionTerms, words: Words, to: int | None, log_odds: float, time_limit: float
) -> Found:
    """Return the fewest of a document's words without which another class, or `to`, is ahead."""
    present = present_class(one, log_odds)
    if to == present:
        return Found(np.array([], dtype=np.intp), 0)
    if not len(one.tokens):
        return Found(None, None)
    removal = Removal(one, words)
    if to is not None and len(one.classes) > 2:
        return _ordered(words, removal, of_class(one, to), time_limit)
    lead = of_class(one, present, log_odds)
    rivals = [lead.of_rivals().over(rival) for rival in range(len(lead.base))]
    bounds = [_sorted_bound(words, removal, rival) for rival in rivals]
    best, least = Found(None, None), []
    for at in sorted(
        (at for at, bound in enumerate(bounds) if bound is not None),
        key=lambda at: (bounds[at], -float(rivals[at].now()[0])),
    ):
        bound = bounds[at]
        assert bound is not None
        if best.chosen is not None and bound >= len(best.chosen):
            least.append(bound)
            continue
        smaller = None if best.chosen is None else len(best.chosen) - 1
        found = _ordered(words, removal, rivals[at], time_limit, smaller)
        if found.at_least is not None:
            least.append(max(bound, found.at_least))
        if found.chosen is not None and (
            best.chosen is None or len(found.chosen) < len(best.chosen)
        ):
            best = found
    if best.chosen is not None:
        least.append(len(best.chosen))
    return Found(best.chosen, min(least, default=None))


def _sorted_bound(words: Words, removal: Removal, lead: Lead) -> int | None:
    """Return a quick lower bound for one rival, as if words shared no n-grams."""
    needs, gains = (array[..., 0] for array in removal.linear(lead))
    sizes = np.diff(words.sets.indptr)
    counted = np.where(sizes > 1, gains.clip(min=0.0), gains)
    sums = np.sort(words.sets.T @ counted)[::-1].clip(min=0.0)
    reached = np.cumsum(sums) >= needs * (1 - 1e-9)
    return int(reached.argmax()) + 1 if reached.any() else None


def _ordered(
    words: Words,
    removal: Removal,
    lead: Lead,
    time_limit: float,
    at_most: int | None = None,
) -> Found:
    """Return the fewest words, `at_most` so many, for a lead over all classes, the best first."""

    def holds(removed: Chosen) -> bool:
        return lead.weighted(removal.weights(removed)).is_ahead()

    n_words = len(words.names)
    chosen, bound = _programme(words, removal, lead, holds, time_limit, at_most)
    if bound is None:
        return Found(None, None)
    if chosen is None and at_most is None:
        chosen = _greedy(removal, lead, n_words, holds)
    if chosen is None:
        return Found(None, bound)
    numbers = np.flatnonzero(chosen)
    alone = np.zeros(n_words, dtype=bool)
    effects = np.empty(len(numbers))
    for at, number in enumerate(numbers):
        alone[number] = True
        effects[at] = lead.weighted(removal.weights(alone)).now().min()
        alone[number] = False
    return Found(numbers[np.argsort(-effects, kind="stable")], bound)


def _programme(
    words: Words,
    removal: Removal,
    lead: Lead,
    holds: Callable[[Chosen], bool],
    time_limit: float,
    at_most: int | None,
) -> tuple[Chosen | None, int | None]:
    """Return the smallest set by the integer programme, and its bound."""
    n_words = words.sets.shape[1]
    (needs, gains), sizes = removal.linear(lead), np.diff(words.sets.indptr)
    single = sizes == 1
    of_words = words.sets[np.flatnonzero(single)].T @ gains[single]
    shared = np.flatnonzero(~single)
    members = words.sets[shared]
    n_shared = len(shared)
    # y <= the sum of its x, and y >= each x.
    some = sp.hstack([members, -sp.eye_array(n_shared)])
    rows = np.repeat(np.arange(n_shared), np.diff(members.indptr))
    lines = np.arange(members.nnz)
    shape = (members.nnz, n_words)
    each = sp.hstack(
        [
            -sp.csr_array((np.ones(members.nnz), (lines, members.indices)), shape=shape),
            sp.csr_array((np.ones(members.nnz), (lines, rows)), shape=(members.nnz, n_shared)),
        ]
    )
    return fewest(
        np.vstack([of_words, gains[shared]]),
        needs,
        holds,
        time_limit,
        sp.csr_array(sp.vstack([some, each])) if n_shared else None,
        n_shared,
        at_most,
    )


def _greedy(
    removal: Removal, lead: Lead, n_words: int, holds: Callable[[Chosen], bool]
) -> Chosen | None:
    """Return words found one by one with the exact lead after each, none of which is needless."""
    removed = np.zeros(n_words, dtype=bool)
    effects = np.zeros(n_words)
    while not holds(removed):
        best, highest = -1, -np.inf
        for at in np.flatnonzero(~removed):
            removed[at] = True
            after = float(lead.weighted(removal.weights(removed)).now().min())
            removed[at] = False
            if after > highest:
                best, highest = int(at), after
        if best < 0:
            return None
        removed[best] = True
        effects[best] = -removed.sum()
    return without_needless(removed, effects, holds)
