r"""The lead of a class over others, as a function of which tokens of the document are present.

Its sign is linear in these (see `Explanation.counterfactual`). An empty document without ``<cls>``
has the lead of the intercepts. Leads within rounding of 0, `TOLERANCE` of their terms, count as
level, which is neither ahead nor behind.

Without the tokens that have nearly all of the attention the others decide, however little they
have. So attention is kept as logarithms, and sums are in units of what decides them.
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

TOLERANCE = 1e-12  # the share of a lead's absolute terms that is rounding
_SMALLEST = 1e-100  # a lead that predictions may lose to underflow
_LARGEST = 1e250  # units, which no sum of others comes near


@dataclass(frozen=True, eq=False)
class Lead:
    """The lead of one class over R others in one document of m tokens."""

    logs: Array  # (m,), logarithms of the tokens' attention, not divided by its sum
    cls_log: float  # that of <cls>
    base: Array  # (R,), the lead of a document of <cls> alone
    gaps: Array  # (m, R), what a unit of attention on the token adds to the lead
    sizes: Array  # (m, R), the absolute terms of a document of the token alone
    base_sizes: Array  # (R,), those of one of <cls> alone

    @property
    def net(self) -> Array:
        """What a unit of attention on each token, and last <cls>, does for the sign, (m + 1, R)."""
        leads = np.vstack([self.gaps + self.base, self.base])
        return leads - TOLERANCE * np.vstack([self.sizes, self.base_sizes]) - _SMALLEST

    def linear(self, side: int = 0, n_units: int | None = None) -> tuple[Array, Array]:
        """Return the linear form's constants (R,) and the tokens' terms (m, R).

        They are in units of the largest constant, or term of this `side` (-1, 1, or 0 for both)
        among the first tokens. Where these are all 0, only the signs of the others are known.
        """
        net, logs = self.net, np.append(self.logs, self.cls_log)[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = logs + np.log(np.abs(net))
            sizes[:-1][side * net[:-1] < 0] = -inf
            if n_units is not None:
                sizes[n_units:-1] = -inf
            unit = sizes.argmax(axis=0), np.arange(len(self.base))
            terms = np.exp(logs - logs[unit[0], 0]) * net / np.abs(net[unit])
        terms = np.where(sizes[unit] > -inf, terms.clip(-_LARGEST, _LARGEST), np.sign(net))
        if self.cls_log == -inf:
            terms[-1] = 0.0
        return terms[-1], terms[:-1]

    def over(self, rival: int) -> Lead:
        """Return the lead over one of the others alone."""
        one = [rival]
        return Lead(
            self.logs,
            self.cls_log,
            self.base[one],
            self.gaps[:, one],
            self.sizes[:, one],
            self.base_sizes[one],
        )

    def of_rivals(self) -> Lead:
        """Return the leads of the others over the class."""
        return replace(self, base=-self.base, gaps=-self.gaps)

    def of(self, tokens: NDArray[np.bool_] | NDArray[np.intp]) -> Lead:
        """Return the lead in the document of some of the tokens."""
        return replace(
            self, logs=self.logs[tokens], gaps=self.gaps[tokens], sizes=self.sizes[tokens]
        )

    def weighted(self, weights: Array) -> Lead:
        """Return the lead where every token has these times its weight, (m,)."""
        with np.errstate(divide="ignore"):
            return replace(self, logs=self.logs + np.log(weights)).of(weights > 0)

    def now(self) -> Array:
        """Return the lead (R,) of all tokens."""
        return self.base + mean(self.logs, self.cls_log, self.gaps)[1]

    def is_ahead(self) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        if self.cls_log == -inf and not len(self.logs):
            return bool((self.base > 0).all())
        constant, terms = self.linear()
        return bool((constant + terms.sum(axis=0) > 0).all())

    def lowest(self, fixed: NDArray[np.intp]) -> Array:
        """Return the lowest leads over all subsets that have none of `fixed`, its first, two, ...

        Others join in the order of their gaps as long as these are below the lead so far; (n + 1,),
        the lowest of the R.
        """
        leads = np.empty((len(fixed) + 1, len(self.base)))
        for rival, gaps in enumerate(self.gaps.T.tolist()):
            order, logs = iter(np.argsort(gaps, kind="stable").tolist()), self.logs.tolist()
            joined, token = [False] * len(gaps), next(order, None)
            total, level = self.cls_log, 0.0
            for n, new in enumerate([None, *fixed.tolist()]):
                if new is not None and not joined[new]:
                    joined[new] = True
                    total, level = _added(total, level, logs[new], gaps[new])
                while token is not None and (joined[token] or gaps[token] < level):
                    if not joined[token]:
                        joined[token] = True
                        total, level = _added(total, level, logs[token], gaps[token])
                    token = next(order, None)
                leads[n, rival] = self.base[rival] + level
        return np.asarray(leads.min(axis=1))


def _added(log_total: float, level: Any, log: float, value: Any) -> tuple[float, Any]:
    """Return the logarithm of a total of weights, and their mean, with another value."""
    if log == -inf:
        return log_total, level
    total = max(log_total, log) + log1p(exp(-abs(log_total - log)))
    return total, level + exp(log - total) * (value - level)


def mean(logs: Array, cls_log: float, values: Array) -> tuple[float, Array]:
    """Return the logarithm of the tokens' and <cls>'s attention, and their mean value, (R,)."""
    highest = max(cls_log, float(logs.max(initial=-inf)))
    if highest == -inf:
        return highest, np.zeros(values.shape[1])
    masses = np.exp(logs - highest)
    total = masses.sum() + exp(cls_log - highest)
    return highest + float(np.log(total)), masses @ values / total


def means(log_total: float, start: Array, logs: Array, values: Array) -> Iterator[Array]:
    """Yield a mean, and then with each of some tokens more."""
    yield start
    for log, value in zip(logs.tolist(), values, strict=True):
        log_total, start = _added(log_total, start, log, value)
        yield start


def attention_logs(one: DecisionTerms) -> tuple[Array, float]:
    """Return the logarithms of the attention of one document's tokens, (m,), and of <cls>."""
    assert one.model is not None
    fitted = one.model.fitted
    with np.errstate(divide="ignore"):
        logs = np.log(one.model.token_weights(one.counts)) + fitted.scores[one.columns]
    return logs, float(np.log(fitted.cls_weight) + fitted.cls_score) if fitted.cls_weight else -inf


def of_class(one: DecisionTerms, number: int, log_odds: float = 0.0) -> Lead:
    """Return the lead of a class by its number; of two, `log_odds` is where the other begins."""
    return lead_of(one, *attention_logs(one), one.values, number, log_odds)


def lead_of(
    one: DecisionTerms, logs: Array, cls_log: float, values: Array, number: int, log_odds: float
) -> Lead:
    """Return a class's lead, as `of_class`, in a document of these tokens and values."""
    if len(one.classes) == 2:
        sign = 1.0 if one.classes[number] == one.targets[0] else -1.0
        base, gaps = sign * (one.intercept - log_odds), sign * values
        base_sizes, sizes = np.abs(one.intercept) + abs(log_odds), np.abs(values)
    else:
        others = np.arange(len(one.classes)) != number
        base, gaps = one.intercept[number] - one.intercept[others], values[:, [number]]
        base_sizes = np.abs(one.intercept[number]) + np.abs(one.intercept[others])
        sizes = np.abs(gaps) + np.abs(values[:, others])
        gaps = gaps - values[:, others]
    return Lead(logs, cls_log, base, gaps, sizes + base_sizes, base_sizes)


def present_class(one: DecisionTerms, log_odds: float = 0.0) -> int:
    """Return the number of the class that is ahead in one document."""
    if len(one.classes) > 2:
        return int(one.decision[0].argmax())
    explained = int(one.classes.tolist().index(one.targets.tolist()[0]))
    if one.decision[0, 0] == log_odds:  # level: predicted is the first class
        return 0
    return explained if one.decision[0, 0] > log_odds else 1 - explained


def checked(many: DecisionTerms, question: str) -> None:
    """Raise ValueError unless an explanation has what exact answers need."""
    if many.model is None:
        raise ValueError(
            f"{question} is exact for one layer of attention alone; this model has two"
        )
    if many.others_count.any():
        raise ValueError(
            f"{question} needs all tokens of the documents: explain them without top "
            f"(here {int(many.others_count.sum()):,} tokens were left out)"
        )
    if len(many.classes) > 2 and len(many.targets) < len(many.classes):
        raise ValueError(
            f"{question} compares classes, but only {many.targets.tolist()[0]!r} was explained: "
            "explain without target"
        )
