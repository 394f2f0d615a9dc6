"""What is removed of a document as a whole: its tokens, or the words of its texts."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..terms import DecisionTerms, DocumentText
from .integer_program import Choice
from .margin import Margin

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Span = tuple[int, int]

_WHOLE = 1 - 1e-9  # a share of a count that is all of it but for rounding
_STEP = 1e-6  # of a count, for the slope of its weight


@dataclass(frozen=True, eq=False)
class Units:
    """The W units of a document, and the occurrences of tokens, each in a set of units.

    An occurrence goes with any unit of its set, and its token with all occurrences.
    """

    document: DecisionTerms
    names: NDArray[np.object_]  # (W,)
    spans: list[Integers]  # of each text, starts, stops and units, (n_spans, 3)
    sets: sp.csr_array  # (n_sets, W), which units each set has, as ones
    set_of: Integers  # (n_occurrences,)
    token_of: Integers  # (n_occurrences,), the token's number in the document
    shares: Array  # (n_occurrences,), of the token's count
    are_tokens: bool = False

    def weights(self, removed: Choice) -> Array:
        """Return the share of its weight that every token keeps without some units, (m,)."""
        gone = (self.sets @ removed.astype(np.float64) > 0)[self.set_of]
        counts = self.document.counts
        lost = np.bincount(self.token_of[gone], self.shares[gone], len(counts)).clip(max=1.0)
        left = self._weigh(counts * (1 - lost)) / self._weigh(counts)
        return np.where(lost > _WHOLE, 0.0, left)

    def linear(self, margin: Margin) -> tuple[Array, Array]:
        """Return what a margin lacks, (R,), and upper bounds of what sets' loss gains it, (n, R).

        A token of which the share r is lost loses f(r) of its weight, where f is convex with
        f'(0) r <= f(r) <= r: the bounds are by the side that helps more.
        """
        constant, terms = margin.linear(side=1 if self.are_tokens else 0)
        gains = np.where(terms < 0, -terms, -terms * self._slopes[:, None])
        of_occurrences = self.shares[:, None] * gains[self.token_of]
        n_sets = self.sets.shape[0]
        bounds = [np.bincount(self.set_of, column, n_sets) for column in of_occurrences.T]
        return -(constant + terms.sum(axis=0)), np.column_stack(bounds)

    def marks(self, chosen: Integers) -> tuple[Integers, ...]:
        """Return for each text where the chosen units start and stop, (n_marks, 2)."""
        return tuple(
            np.unique(spans[np.isin(spans[:, 2], chosen), :2], axis=0).reshape(-1, 2)
            for spans in self.spans
        )

    def _weigh(self, counts: Array) -> Array:
        assert self.document.model is not None
        return self.document.model.token_weights(counts)

    @cached_property
    def _slopes(self) -> Array:
        """The least that tokens lose of their weight for each share of their count, (m,)."""
        counts = self.document.counts
        order = np.lexsort((self.set_of, self.token_of))
        tokens, sets = self.token_of[order], self.set_of[order]
        whole = np.bincount(self.token_of, self.shares, len(counts)) > _WHOLE
        whole[tokens[1:][(np.diff(tokens) == 0) & (np.diff(sets) != 0)]] = False
        full = self._weigh(counts)
        slopes = (full - self._weigh(counts * (1 - _STEP))) / (_STEP * full)
        # A token that is lost as a whole loses all of its weight and no less.
        return np.where(whole, 1.0, slopes * (1 - 1e-5))


def tokens_of(one: DecisionTerms) -> Units:
    """Return the tokens of one document as units."""
    spans = []
    for text in one.texts[0]:
        if text.words is None or text.occurrences is None:
            spans.append(_rows([]))
            continue
        first, length, token = text.occurrences.T
        last = first + np.maximum(length, 1) - 1
        spans.append(np.stack([text.words[first, 0], text.words[last, 1], token], axis=1))
    number = np.arange(len(one.tokens))
    ones = np.ones(len(number))
    sets = sp.csr_array((ones, number, np.arange(len(number) + 1)), shape=(len(number),) * 2)
    return Units(one, one.tokens, spans, sets, number, number, ones, are_tokens=True)


def words_of(one: DecisionTerms) -> Units:
    """Return the words of one document; raise ValueError where their places are not known."""
    known = set[int]().union(
        *(text.occurrences[:, 2].tolist() for text in one.texts[0] if text.occurrences is not None)
    )
    lost = [str(name) for at, name in enumerate(one.tokens) if at not in known]
    if lost:
        raise ValueError(
            f"no words can be removed from document {int(one.index[0])} with all that contains "
            f"them: the places of {len(lost)} tokens, such as {lost[0]!r}, are not known. Explain "
            "texts with places=True and a vectorizer of words, or remove tokens rather than words"
        )
    numbers: dict[tuple[str | None, str], int] = {}
    names: list[str] = []
    sets: dict[tuple[int, ...], int] = {}
    spans, occurrences = [], []
    for text in one.texts[0]:
        unit_of = {}
        for span in _word_spans(text):
            name = text.text[slice(*span)]
            unit_of[span] = numbers.setdefault((text.name, name.lower()), len(names))
            if unit_of[span] == len(names):
                names.append(name)
        spans.append(_rows([(*span, unit) for span, unit in unit_of.items()]))
        for words, token, share in _occurrences(text, list(unit_of)):
            units = tuple(sorted({unit_of[word] for word in words}))
            if units:
                occurrences.append((sets.setdefault(units, len(sets)), token, share))
    columns = [unit for units in sets for unit in units]
    indptr = np.cumsum([0, *map(len, sets)])
    matrix = sp.csr_array((np.ones(len(columns)), columns, indptr), shape=(len(sets), len(names)))
    set_of, token_of = (np.array([row[at] for row in occurrences], dtype=np.intp) for at in (0, 1))
    shares = np.array([share for _, _, share in occurrences], dtype=np.float64)
    return Units(one, np.array(names, dtype=object), spans, matrix, set_of, token_of, shares)


def _rows(rows: list[tuple[int, int, int]]) -> Integers:
    return np.array(rows, dtype=np.intp).reshape(-1, 3)


def _word_spans(text: DocumentText) -> list[Span]:
    """Return where the words of a text start and stop, in order.

    What no word of the vocabulary covers may have character n-grams, and is words as well.
    """
    if text.words is None or text.occurrences is None:
        return []
    first, length, _ = text.occurrences.T
    numbers = {at for start, n in zip(first, length, strict=True) for at in range(start, start + n)}
    spans: set[Span] = {(start, stop) for start, stop in text.words[list(numbers)].tolist()}
    others = list(text.text)
    for start, stop in spans:
        others[start:stop] = " " * (stop - start)
    return sorted(spans | {match.span() for match in re.finditer(r"\S+", "".join(others))})


def _occurrences(text: DocumentText, spans: list[Span]) -> Iterable[tuple[list[Span], int, float]]:
    """Yield the words, token and share of every occurrence in a text."""
    if text.words is None or text.occurrences is None or text.shares is None:
        return
    bounds: list[Span] = [(start, stop) for start, stop in text.words.tolist()]
    starts, stops = (np.array([span[at] for span in spans]) for at in (0, 1))
    # Character n-grams, which have a length of 0, belong to all words that they overlap.
    low = np.searchsorted(stops, text.words[:, 0], side="right").tolist()
    high = np.searchsorted(starts, text.words[:, 1]).tolist()
    for (at, length, token), share in zip(
        text.occurrences.tolist(), text.shares.tolist(), strict=True
    ):
        words = bounds[at : at + length] if length else spans[low[at] : high[at]]
        yield words, token, share
