r"""The margin of a class over others, as a function of which tokens of the document are present.

With attention shares q, that of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a
document that keeps the tokens S has a margin of the sign of

.. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta).

Margins within rounding of 0, `TOLERANCE` of their absolute terms, count as a tie. Without the
tokens that have nearly all of the attention the others decide, however little they have: so
attention is kept as logarithms, and sums are in units of what decides them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, inf, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms

Array = NDArray[np.float64]

TOLERANCE = 1e-12  # the share of a margin's absolute terms that is rounding
_SMALLEST = 1e-100  # a margin that predictions may lose to underflow
_LARGEST = 1e250  # units, which no sum of others comes near


@dataclass(frozen=True, eq=False)
class Margin:
    """The margin of one class over R others in a document of m tokens; the last row is <cls>."""

    base: Array  # (R,), the margin of a document of <cls> alone
    logs: Array  # (m + 1,), logarithms of the attention, not divided by its sum
    gains: Array  # (m + 1, R), what a unit of attention adds to the margin: 0 for <cls>
    sizes: Array  # (m + 1, R), the absolute terms of a document of that alone

    @property
    def net(self) -> Array:
        """What a unit of attention does for the sign of the margin, (m + 1, R)."""
        return self.gains + self.base - TOLERANCE * self.sizes - _SMALLEST

    def linear(self, side: int = 0, n_units: int | None = None) -> tuple[Array, Array]:
        """Return the linear form's constants (R,) and the tokens' terms (m, R).

        They are in units of the largest constant, or term of this `side` (-1, 1, or 0 for both)
        among the first tokens. Where these are all 0, only the signs of the others are known.
        """
        net, logs = self.net, self.logs[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = logs + np.log(np.abs(net))
            sizes[:-1][side * net[:-1] < 0] = -inf
            if n_units is not None:
                sizes[n_units:-1] = -inf
            unit = sizes.argmax(axis=0), np.arange(net.shape[1])
            terms = np.exp(logs - logs[unit[0], 0]) * net / np.abs(net[unit])
        terms = np.where(sizes[unit] > -inf, terms.clip(-_LARGEST, _LARGEST), np.sign(net))
        terms[self.logs == -inf] = 0.0
        return terms[-1], terms[:-1]

    def over(self, rival: int) -> Margin:
        """Return the margin over one of the others alone."""
        one = [rival]
        return Margin(self.base[one], self.logs, self.gains[:, one], self.sizes[:, one])

    def of_rivals(self) -> Margin:
        """Return the margins of the others over the class."""
        return replace(self, base=-self.base, gains=-self.gains)

    def of(self, tokens: NDArray[np.intp]) -> Margin:
        """Return the margin in the document of some of the tokens."""
        rows = np.append(tokens, -1)
        return Margin(self.base, self.logs[rows], self.gains[rows], self.sizes[rows])

    def weighted(self, weights: Any) -> Margin:
        """Return the margin where every token has these times its weight, (m,)."""
        with np.errstate(divide="ignore"):
            return replace(self, logs=self.logs + np.log(np.append(weights, 1.0)))

    def now(self) -> Array:
        """Return the margin (R,) of all tokens."""
        return self.base + mean(self.logs, self.gains)[1]

    def is_ahead(self) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        if (self.logs == -inf).all():
            return bool((self.base > 0).all())
        constant, terms = self.linear()
        return bool((constant + terms.sum(axis=0) > 0).all())

    def lowest(self, fixed: NDArray[np.intp]) -> Array:
        """Return the lowest margins over all subsets that have none of `fixed`, its first, two, ...

        Others join in the order of their gains as long as these are below the margin so far;
        (n + 1,), the lowest of the R.
        """
        margins = np.empty((len(fixed) + 1, len(self.base)))
        logs = self.logs.tolist()
        for rival, gains in enumerate(self.gains.T.tolist()):
            order = np.argsort(gains[:-1], kind="stable").tolist()
            joined, at = [False] * len(order), 0
            total, level = logs[-1], 0.0
            for n, new in enumerate([None, *fixed.tolist()]):
                if new is not None and not joined[new]:
                    joined[new] = True
                    total, level = _added(total, level, logs[new], gains[new])
                while at < len(order) and (joined[order[at]] or gains[order[at]] < level):
                    token, at = order[at], at + 1
                    if not joined[token]:
                        joined[token] = True
                        total, level = _added(total, level, logs[token], gains[token])
                margins[n, rival] = self.base[rival] + level
        return np.asarray(margins.min(axis=1))


def _added(log_total: float, level: Any, log: float, value: Any) -> tuple[float, Any]:
    """Return the logarithm of a total of weights, and their mean, with another value."""
    if log == -inf:
        return log_total, level
    total = max(log_total, log) + log1p(exp(-abs(log_total - log)))
    return total, level + exp(log - total) * (value - level)


def mean(logs: Array, values: Array) -> tuple[float, Array]:
    """Return the logarithm of the attention, and the mean value (R,): of nothing, 0."""
    highest = float(logs.max())
    if highest == -inf:
        return highest, np.zeros(values.shape[1])
    masses = np.exp(logs - highest)
    total = masses[:-1].sum() + masses[-1]
    return highest + float(np.log(total)), masses @ values / total


def means(log_total: float, start: Array, logs: Array, values: Array) -> Iterator[Array]:
    """Yield a mean, and then with each of some tokens more."""
    yield start
    for log, value in zip(logs.tolist(), values, strict=True):
        log_total, start = _added(log_total, start, log, value)
        yield start


def attention_logs(one: DecisionTerms) -> Array:
    """Return the logarithms of the attention of a document's tokens and, last, <cls>, (m + 1,)."""
    assert one.model is not None
    fitted = one.model.fitted
    with np.errstate(divide="ignore"):
        logs = np.log(one.model.token_weights(one.counts)) + fitted.scores[one.columns]
    cls_log = np.log(fitted.cls_weight) + fitted.cls_score if fitted.cls_weight else -inf
    return np.append(logs, cls_log)


def added_logs(one: DecisionTerms) -> Array:
    """Return the logarithm of what each token of the vocabulary adds to the attention's total."""
    model = one.model
    assert model is not None
    counts = np.zeros(len(model.names))
    counts[one.columns] = one.counts
    weights = model.token_weights(counts + 1.0) - model.token_weights(counts)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights) + model.fitted.scores)


def with_cls(values: Array) -> Array:
    """Return the values of tokens (m, R) with those of <cls>, which are 0, as the last row."""
    return np.vstack([values, np.zeros(values.shape[1])])


def margin_of(
    one: DecisionTerms, number: int, log_odds: float = 0.0, *, with_vocabulary: bool = False
) -> Margin:
    """Return the margin of a class by its number; of two, `log_odds` is where the other begins.

    `with_vocabulary` appends each token of the vocabulary, once, to those of the document.
    """
    logs, values = attention_logs(one), one.values
    if with_vocabulary:
        assert one.model is not None
        logs = np.concatenate([logs[:-1], added_logs(one), logs[-1:]])
        values = np.vstack([values, one.model.values])
    values, intercept = with_cls(values), one.intercept
    if len(one.classes) == 2:
        sign = 1.0 if one.classes[number] == one.targets[0] else -1.0
        base_sizes = np.abs(intercept) + abs(log_odds)
        base, sizes = sign * (intercept - log_odds), np.abs(values) + base_sizes
        return Margin(base, logs, sign * values, sizes)
    others = np.arange(len(one.classes)) != number
    base_sizes = np.abs(intercept[number]) + np.abs(intercept[others])
    sizes = np.abs(values[:, [number]]) + np.abs(values[:, others]) + base_sizes
    base = intercept[number] - intercept[others]
    return Margin(base, logs, values[:, [number]] - values[:, others], sizes)


def present_class(one: DecisionTerms, log_odds: float = 0.0) -> int:
    """Return the number of the class that is ahead in one document."""
    if len(one.classes) > 2:
        return int(one.decision[0].argmax())
    explained = one.classes.tolist().index(one.targets.tolist()[0])
    if one.decision[0, 0] == log_odds:  # a tie: predicted is the first class
        return 0
    return explained if one.decision[0, 0] > log_odds else 1 - explained
