r"""Margins of classes as functions of what a document has, and the units of which it is changed.

With attention shares q, that of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a
document that keeps the tokens S has a margin of the sign of

.. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta).

Margins within rounding of 0, `TOLERANCE` of their absolute terms, count as a tie. Attention is kept
as logarithms, for without the tokens that have nearly all of it the others decide, however little
they have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from ..terms import DecisionTerms, DocumentText

Array = NDArray[np.float64]
Integers = NDArray[np.intp]
Choice = NDArray[np.bool_]
Span = tuple[int, int]

TOLERANCE = 1e-12  # the share of a margin's absolute terms that is rounding
_SMALLEST = 1e-100  # a margin that predictions may lose to underflow
_LARGEST = 1e250  # units, which no sum of others comes near
_WHOLE = 1 - 1e-9  # a share of a count that is all of it but for rounding
_STEP = 1e-6  # of a count, for the slope of its weight


@dataclass(frozen=True, eq=False)
class Margin:
    """The margin of one class over R others in a document of m tokens; the last row is <cls>."""

    base: Array  # (R,), the margin of a document of <cls> alone
    logs: Array  # (m + 1, 1 or R), logarithms of the attention, not divided by its sum
    gains: Array  # (m + 1, R), what a unit of attention adds to the margin: 0 for <cls>
    sizes: Array  # (m + 1, R), the absolute terms of a document of that alone

    @property
    def net(self) -> Array:
        """What a unit of attention does for the sign of the margin, (m + 1, R)."""
        return self.gains + self.base - TOLERANCE * self.sizes - _SMALLEST

    def linear(self, deciding: Any = True) -> tuple[Array, Array]:
        """Return the linear form's constants (R,) and the tokens' terms (m, R).

        They are in units of the largest constant, or term of those `deciding` (m, R). Where these
        are all 0, only the signs of the others are known.
        """
        net, logs = self.net, np.broadcast_to(self.logs, self.gains.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = logs + np.log(np.abs(net))
            sizes[:-1] = np.where(deciding, sizes[:-1], -inf)
            unit = sizes.argmax(axis=0), np.arange(net.shape[1])
            terms = np.exp(logs - logs[unit]) * net / np.abs(net[unit])
        terms = np.where(sizes[unit] > -inf, terms.clip(-_LARGEST, _LARGEST), np.sign(net))
        terms[logs == -inf] = 0.0
        return terms[-1], terms[:-1]

    def over(self, rival: int) -> Margin:
        """Return the margin over one of the others alone."""
        one = [rival]
        return Margin(self.base[one], self.logs, self.gains[:, one], self.sizes[:, one])

    def of_rivals(self) -> Margin:
        """Return the margins of the others over the class."""
        return replace(self, base=-self.base, gains=-self.gains)

    def weighted(self, weights: Any) -> Margin:
        """Return the margin where every token has these times its weight, (m, 1 or R)."""
        of_all = np.vstack([weights, np.ones(weights.shape[1])])
        with np.errstate(divide="ignore"):
            return replace(self, logs=self.logs + np.log(of_all))

    def now(self) -> Array:
        """Return the margin (R,) of all tokens."""
        with np.errstate(invalid="ignore"):
            means = (softmax(self.logs, axis=0) * self.gains).sum(axis=0)
        return self.base + np.where(self._is_empty, 0.0, means)

    def is_ahead(self) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        constant, terms = self.linear()
        return bool((np.where(self._is_empty, self.base, constant + terms.sum(axis=0)) > 0).all())

    @property
    def _is_empty(self) -> NDArray[np.bool_]:
        return np.asarray((self.logs == -inf).all(axis=0))

    def lowest(self, fixed: NDArray[np.intp]) -> Array:
        """Return the lowest margins over all subsets that have none of `fixed`, its first, two, ...

        Others join in the order of their gains as long as these are below the margin so far;
        (n + 1,), the lowest of the R.
        """
        margins = np.empty((len(fixed) + 1, len(self.base)))
        logs = self.logs[:, 0].tolist()
        for rival, gains in enumerate(self.gains.T.tolist()):
            others = np.argsort(gains[:-1], kind="stable")[::-1].tolist()
            joined, total, level = set(), -inf, 0.0
            for n, new in enumerate([len(others), *fixed.tolist()]):
                while True:
                    if new not in joined and logs[new] > -inf:
                        total = float(np.logaddexp(total, logs[new]))
                        level += exp(logs[new] - total) * (gains[new] - level)
                    joined.add(new)
                    if not others or gains[others[-1]] >= level:
                        break
                    new = others.pop()
                margins[n, rival] = self.base[rival] + level
        return np.asarray(margins.min(axis=1))


def running_means(logs: Array, values: Array) -> Array:
    """Return the mean values (n, K) of the first token, the first two, ...; of nothing, 0."""
    total = np.logaddexp.accumulate(logs)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = [
            np.logaddexp.accumulate(logs[:, None] + np.log(part.clip(min=0.0)), axis=0)
            for part in (values, -values)
        ]
        return np.nan_to_num(np.exp(sums[0] - total) - np.exp(sums[1] - total))


@dataclass(frozen=True, eq=False)
class Units:
    """The n units of a document of m tokens that may be chosen, and what a choice does to it.

    A choice removes tokens, or words, each occurrence with any word of its set; adds tokens of the
    vocabulary, once each, as rows behind those of the document; or keeps tokens, while of the
    others those stay that do harm. Of two classes, the one that is not explained has the decision
    `log_odds` in every document.
    """

    document: DecisionTerms
    change: str  # "tokens", "words", "add" or "keep"
    log_odds: float
    names: NDArray[np.object_]  # (n,)
    spans: list[Integers]  # of each text, starts, stops and units, (n_spans, 3)
    shared: Any = None  # CSR (n_shared, n), which words each set of several has, as ones
    shares: Any = None  # CSR (n + n_shared, m), of tokens' counts that go with a word, or set

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.names)

    def of_classes(self, of_explained: Any, of_other: float = 0.0) -> Array:
        """Return columns for all classes (..., K), where of two only one is explained."""
        one = self.document
        if len(one.classes) > 2:
            return np.asarray(of_explained)
        columns = np.full((*of_explained.shape[:-1], 2), of_other)
        columns[..., one.classes.tolist().index(one.targets.tolist()[0])] = of_explained[..., 0]
        return columns

    @cached_property
    def every(self) -> Margin:
        """The decisions of all classes: their margins over nothing."""
        one, model = self.document, self._model
        values, intercept, fitted = one.values, one.intercept, model.fitted
        cls = np.log(fitted.cls_weight) + fitted.cls_score if fitted.cls_weight else -np.inf
        with np.errstate(divide="ignore"):
            logs = np.log(model.token_weights(one.counts)) + fitted.scores[one.columns]
            if self.change == "add":
                counts = np.zeros(self.n)
                counts[one.columns] = one.counts
                more = model.token_weights(counts + 1.0) - model.token_weights(counts)
                logs = np.append(logs, np.log(more) + fitted.scores)
                values = np.vstack([values, model.values])
        gains = self.of_classes(np.vstack([values, np.zeros_like(intercept)]))
        base = self.of_classes(intercept, self.log_odds)
        return Margin(base, np.append(logs, cls)[:, None], gains, np.abs(gains) + np.abs(base))

    @property
    def _model(self) -> Any:
        return self.document.model

    def margin(self, number: int) -> Margin:
        """Return the margin of a class over all others."""
        base, gains, sizes = self.every.base, self.every.gains, self.every.sizes
        one, others = [number], np.arange(len(base)) != number
        return Margin(
            base[one] - base[others],
            self.every.logs,
            gains[:, one] - gains[:, others],
            sizes[:, one] + sizes[:, others],
        )

    def with_some(self, margin: Margin, added: Integers) -> Margin:
        """Return a margin of which only some tokens of the vocabulary can be added."""
        m = len(self.document.counts)
        rows = np.concatenate([np.arange(m), m + added, [-1]])
        return Margin(margin.base, margin.logs[rows], margin.gains[rows], margin.sizes[rows])

    def changed(self, margin: Margin, chosen: Choice) -> Margin:
        """Return a margin of the document that a choice makes."""
        return margin.weighted(self.weights(margin, chosen))

    def weights(self, margin: Margin, chosen: Choice) -> NDArray[Any]:
        """Return the share of its weight that every token has with a choice, (m, 1 or R)."""
        if self.change == "tokens":
            return ~chosen[:, None]
        if self.change == "keep":
            return chosen[:, None] | (margin.net[:-1] <= 0)
        counts = self.document.counts
        if self.change == "add":
            return np.append(np.ones(len(counts)), chosen)[:, None]
        lost = self.shares.T @ np.append(chosen, self.shared @ chosen > 0)
        left = self._model.token_weights(counts * (1 - lost).clip(min=0.0))
        return np.where(lost > _WHOLE, 0.0, left / self._model.token_weights(counts))[:, None]

    def conditions(self, margin: Margin) -> tuple[Array, Array, Array]:
        """Return a margin's constant (R,), and the terms of units that are not, and are, chosen.

        The margin is positive only if the sum of these is. Of words, terms (n + n_shared, R) are
        upper bounds: a token of which the share r is lost loses f(r) of its weight, where f is
        convex with f'(0) r <= f(r) <= r, and the bounds are by the side that helps more.
        """
        off, on = (self.weights(margin, np.full(self.n, chosen)) for chosen in (False, True))
        harm = margin.net[:-1] * (on * 1.0 - off) <= 0
        constant, terms = margin.linear((off > 0) & harm)
        if self.change == "words":
            gains = self.shares @ np.where(terms < 0, -terms, -terms * self._slopes)
            lead = constant + terms.sum(axis=0)
            return lead + 1e-9 * np.abs(lead), np.zeros_like(gains), gains
        off, on, first = off * terms, on * terms, len(terms) - self.n
        return constant + off[:first].sum(axis=0), off[first:], on[first:]

    @cached_property
    def _slopes(self) -> Array:
        """The least that tokens lose of their weight for each share of their count, (m, 1)."""
        counts, weigh = self.document.counts, self._model.token_weights
        slopes = (1 - weigh(counts * (1 - _STEP)) / weigh(counts)) / _STEP
        # A token that is lost as a whole loses all of its weight and no less.
        in_one = np.bincount(self.shares.indices, minlength=len(counts)) == 1
        whole = in_one & (self.shares.sum(axis=0) > _WHOLE)
        return np.where(whole, 1.0, slopes * (1 - 1e-5))[:, None]

    def decisions(self, numbers: Integers) -> Array:
        """Return the decisions with none, the first, the first two, ... of some units chosen."""
        every, n_steps = self.every, len(numbers) + 1
        if self.change == "words":
            steps = (mask(numbers[:n], self.n) for n in range(n_steps))
            return np.stack([self.changed(every, step).now() for step in steps])
        rows, m = np.arange(len(every.logs)), len(self.document.counts)
        if self.change == "add":
            rows = np.concatenate([rows[:m], rows[-1:], m + numbers])
        else:  # from the last one removed on, as those before may have all of the attention
            rows = np.append(np.delete(rows, numbers), numbers[::-1])
        decisions = every.base + running_means(every.logs[rows, 0], every.gains[rows])[-n_steps:]
        return decisions if self.change == "add" else decisions[::-1]

    def marks(self, chosen: Integers) -> tuple[Integers, ...]:
        """Return for each text where the chosen units start and stop, (n_marks, 2)."""
        return tuple(
            np.unique(spans[np.isin(spans[:, 2], chosen), :2], axis=0).reshape(-1, 2)
            for spans in self.spans
        )


def mask(numbers: Any, n: int) -> Choice:
    """Return a choice (n,) by the numbers of what is chosen."""
    chosen = np.zeros(n, dtype=bool)
    chosen[numbers] = True
    return chosen


def units_of(one: DecisionTerms, change: str, log_odds: float = 0.0) -> Units:
    """Return the units of one document; raise ValueError where places of words are not known."""
    if change == "words":
        return Units(one, change, log_odds, *_words(one))
    if change == "add":
        assert one.model is not None
        return Units(one, change, log_odds, one.model.names, [])
    spans = []
    for text in one.texts[0]:
        rows: Any = []
        if text.words is not None and text.occurrences is not None:
            first, length, token = text.occurrences.T
            last = first + np.maximum(length, 1) - 1
            rows = np.stack([text.words[first, 0], text.words[last, 1], token], axis=1)
        spans.append(_rows(rows))
    return Units(one, change, log_odds, one.tokens, spans)


def _words(one: DecisionTerms) -> tuple[Any, ...]:
    """Return `names`, `spans`, `shared` and `shares` of the words of one document."""
    read = [_read(text) for text in one.texts[0]]
    known = {token for _, occurrences in read for _, token, _ in occurrences}
    lost = [str(name) for at, name in enumerate(one.tokens) if at not in known]
    if lost:
        raise ValueError(
            f"no words can be removed from document {int(one.index[0])} with all that contains "
            f"them: the places of {len(lost)} tokens, such as {lost[0]!r}, are not known. Explain "
            "texts with places=True and a vectorizer of words, or remove tokens rather than words"
        )
    numbers: dict[tuple[str | None, str], int] = {}
    names, spans, entries = list[str](), [], []
    for text, (of_text, occurrences) in zip(one.texts[0], read, strict=True):
        unit_of = {}
        for start, stop in of_text:
            name = text.text[start:stop]
            unit_of[start, stop] = numbers.setdefault((text.name, name.lower()), len(names))
            if len(names) < len(numbers):
                names.append(name)
        spans.append(_rows([(*span, unit) for span, unit in unit_of.items()]))
        for words, token, share in occurrences:
            entries.append((tuple(sorted({unit_of[word] for word in words})), token, share))
    entries = [entry for entry in entries if entry[0]]
    several = list(dict.fromkeys(units for units, _, _ in entries if len(units) > 1))
    row_of = {units: at for at, units in enumerate(several, len(names))}
    rows = [row_of.get(units, units[0]) for units, _, _ in entries]
    ends = rows, [token for _, token, _ in entries]
    size = len(names) + len(several), len(one.tokens)
    shares = sp.csr_array(([float(share) for *_, share in entries], ends), shape=size)
    pairs = [(at, unit) for at, units in enumerate(several) for unit in units]
    of_sets = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    shared = sp.csr_array((np.ones(len(pairs)), of_sets), shape=(len(several), len(names)))
    return np.array(names, dtype=object), spans, shared, shares


def _rows(rows: Any) -> Integers:
    return np.array(rows, dtype=np.intp).reshape(-1, 3)


def _read(text: DocumentText) -> tuple[list[Span], list[tuple[list[Span], int, float]]]:
    """Return where the words of a text start and stop; and occurrences: words, token and share.

    What no word of the vocabulary covers may have character n-grams, and is words as well.
    """
    if text.words is None or text.occurrences is None or text.shares is None:
        return [], []
    bounds: list[Span] = [(start, stop) for start, stop in text.words.tolist()]
    found = text.occurrences.tolist()
    known = {span for at, length, _ in found for span in bounds[at : at + length]}
    others = list(text.text)
    for start, stop in known:
        others[start:stop] = " " * (stop - start)
    spans = sorted(known | {match.span() for match in re.finditer(r"\S+", "".join(others))})
    starts, stops = np.array(spans, dtype=np.intp).reshape(-1, 2).T
    # Character n-grams, which have a length of 0, belong to all words that they overlap.
    low = np.searchsorted(stops, text.words[:, 0], side="right").tolist()
    high = np.searchsorted(starts, text.words[:, 1]).tolist()
    return spans, [
        (bounds[at : at + length] if length else spans[low[at] : high[at]], token, share)
        for (at, length, token), share in zip(found, text.shares.tolist(), strict=True)
    ]
