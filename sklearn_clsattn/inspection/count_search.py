r"""The fewest counts of a bag that change its prediction when they are 0, or that guarantee it.

With attention shares q, that of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a
bag that keeps the tokens S has a margin of the sign of

.. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta),

the decision times its positive denominator. So the margin of one class over another is linear in
which tokens are kept, and sorting finds the fewest. The margins of one class over several others at
once are an integer program (HiGHS). Attention is kept as logarithms, because the others decide
where the tokens with nearly all of it are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.special import softmax

from .._types import Array, Numbers
from .terms import DecisionTerms

Choice = NDArray[np.bool_]

# The solver's tolerance of conditions, in units of a condition's largest coefficient, and the size
# below which it takes a coefficient for 0.
_FEASIBILITY = 1e-6
_ZERO = 1e-9
_IMPOSSIBLE = 2  # the solver's status
_MAX_EXCLUDED = 100  # solutions that do not hold
_ROUNDING = 1e-12  # share of a margin's absolute terms
_SMALLEST = 1e-100  # margin that predictions may lose to underflow
_LARGEST = 1e250  # units, which no sum of others comes near


@dataclass(frozen=True)
class CountSearchResult:
    """The result of a search for tokens, and how many are needed."""

    tokens: Numbers | None  # their numbers, the most effective first; None if none were found
    at_least: int | None  # a proved lower bound of how many are needed; None if none will do


@dataclass(frozen=True, eq=False)
class Margin:
    """The margin of one class over R others in a bag of m tokens; the last row is ``<cls>``."""

    base: Array  # (R,), the margin of a bag without tokens
    logs: Array  # (m + 1, 1), logarithms of the attention, not divided by its sum
    gains: Array  # (m + 1, R), what a unit of attention adds to the margin: 0 for <cls>
    sizes: Array  # (m + 1, R), the absolute terms of a bag of that token alone

    @property
    def net(self) -> Array:
        """The effect of a unit of attention on the sign of the margin, (m + 1, R)."""
        return self.gains + self.base - _ROUNDING * self.sizes - _SMALLEST

    def linear(self, deciding: Choice | bool = True) -> tuple[Array, Array]:
        """Return the linear form's constants (R,) and the tokens' terms (m, R).

        They are in units of the largest constant or `deciding` term, (m, R). If these are all 0,
        only the signs of the others are known.
        """
        net = self.net
        logs = np.broadcast_to(self.logs, self.gains.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_sizes = logs + np.log(np.abs(net))
            log_sizes[:-1] = np.where(deciding, log_sizes[:-1], -inf)
            # The largest term of each rival is the unit.
            unit = (log_sizes.argmax(axis=0), np.arange(net.shape[1]))
            terms = np.exp(logs - logs[unit]) * net / np.abs(net[unit])
        has_unit = log_sizes[unit] > -inf
        terms = np.where(has_unit, terms.clip(-_LARGEST, _LARGEST), np.sign(net))
        terms[logs == -inf] = 0.0
        return terms[-1], terms[:-1]

    def over(self, rival: int) -> Margin:
        """Return the margin over one of the other classes alone."""
        column = [rival]
        return Margin(self.base[column], self.logs, self.gains[:, column], self.sizes[:, column])

    def reduced_to(self, kept: NDArray[Any]) -> Margin:
        """Return the margin of a bag that keeps these tokens, (m, 1 or R)."""
        with_cls = np.vstack([kept, np.ones(kept.shape[1])])
        with np.errstate(divide="ignore"):
            return replace(self, logs=self.logs + np.log(with_cls))

    def is_ahead(self) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        constant, terms = self.linear()
        is_empty = (self.logs == -inf).all(axis=0)
        signs = np.where(is_empty, self.base, constant + terms.sum(axis=0))
        return bool((signs > 0).all())

    def lowest(self, fixed: Numbers) -> Array:
        """Return the lowest margins while none, the first, the first two, ... of `fixed` stay.

        They are the lowest over all subsets of the other tokens and over all R, (n_fixed + 1,).
        Others join in the order of their gains as long as these are below the margin so far.
        """
        margins = np.empty((len(fixed) + 1, len(self.base)))
        logs = self.logs[:, 0].tolist()
        for rival, gains in enumerate(self.gains.T.tolist()):
            others = np.argsort(gains[:-1], kind="stable")[::-1].tolist()
            cls_token = len(others)
            joined = set()
            log_total = -inf  # of the attention of the tokens that joined
            mean_gain = 0.0  # weighted by attention
            for n, new in enumerate([cls_token, *fixed.tolist()]):
                # `new` joins, then all others whose gains are below the mean.
                while True:
                    if new not in joined and logs[new] > -inf:
                        log_total = float(np.logaddexp(log_total, logs[new]))
                        mean_gain += exp(logs[new] - log_total) * (gains[new] - mean_gain)
                    joined.add(new)
                    if not others or gains[others[-1]] >= mean_gain:
                        break
                    new = others.pop()
                margins[n, rival] = self.base[rival] + mean_gain
        return np.asarray(margins.min(axis=1))


@dataclass(frozen=True, eq=False)
class BagDecisions:
    """The decisions of all classes for one document, as sums over its m tokens.

    Of two classes, the one that is not explained has the decision 0 in every document.
    """

    document: DecisionTerms

    def for_all_classes(self, explained: Array) -> Array:
        """Return numbers for all classes (..., K), where of two only one is explained."""
        classes = self.document.classes.tolist()
        if len(classes) > 2:
            return explained
        target = self.document.targets.tolist()[0]
        numbers = np.zeros((*explained.shape[:-1], 2))
        numbers[..., classes.index(target)] = explained[..., 0]
        return numbers

    @cached_property
    def margins(self) -> Margin:
        """The decisions of all classes, as margins over nothing."""
        document = self.document
        assert document.model is not None
        fitted = document.model.fitted
        with np.errstate(divide="ignore"):
            token_logs = np.log(document.model.token_weights(document.weights))
        token_logs = token_logs + fitted.scores[document.columns]
        cls_log = -np.inf
        if fitted.cls_weight:
            cls_log = np.log(fitted.cls_weight) + fitted.cls_score
        logs = np.append(token_logs, cls_log)[:, None]
        cls_value = np.zeros_like(document.intercept)
        gains = self.for_all_classes(np.vstack([document.values, cls_value]))
        base = self.for_all_classes(document.intercept)
        return Margin(base, logs, gains, sizes=np.abs(gains) + np.abs(base))

    def margin(self, number: int) -> Margin:
        """Return the margin of a class over all others."""
        margins = self.margins
        leader = [number]
        others = np.arange(len(margins.base)) != number
        return Margin(
            margins.base[leader] - margins.base[others],
            margins.logs,
            margins.gains[:, leader] - margins.gains[:, others],
            margins.sizes[:, leader] + margins.sizes[:, others],
        )

    def without(self, tokens: Numbers) -> Array:
        """Return the decisions without none, the first, the first two, ... of some tokens.

        Their shape is (n_tokens + 1, K).
        """
        margins = self.margins
        # 1) The tokens that stay, then the removed ones from the last on, because those before may
        # have all of the attention.
        kept = np.delete(np.arange(len(margins.logs)), tokens)
        rows = np.append(kept, tokens[::-1])
        logs = margins.logs[rows]
        gains = margins.gains[rows]
        # 2) The mean gain of the first, the first two, ... of them.
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.logaddexp.accumulate(logs)
            positive = np.logaddexp.accumulate(logs + np.log(gains.clip(min=0.0)))
            negative = np.logaddexp.accumulate(logs + np.log((-gains).clip(min=0.0)))
            means = np.nan_to_num(np.exp(positive - total) - np.exp(negative - total))
        decisions = margins.base + means
        return np.asarray(decisions[-len(tokens) - 1 :][::-1])


@dataclass(frozen=True, eq=False)
class _Question:
    """Which tokens to choose so that a class is ahead.

    Chosen tokens are removed or, if `is_kept`, stay, while of the others those stay that do harm.
    """

    margin: Margin
    is_kept: bool

    @property
    def n(self) -> int:
        """The number of tokens."""
        return len(self.margin.logs) - 1

    def over(self, rival: int) -> _Question:
        """Return the question for one of the other classes alone."""
        return _Question(self.margin.over(rival), self.is_kept)

    def outcome(self, chosen: Choice) -> Margin:
        """Return the margin of the bag that a choice makes."""
        if self.is_kept:
            does_harm = self.margin.net[:-1] <= 0
            return self.margin.reduced_to(chosen[:, None] | does_harm)
        return self.margin.reduced_to(~chosen[:, None])

    def holds(self, chosen: Choice) -> bool:
        """Return whether the class is ahead with a choice."""
        return self.outcome(chosen).is_ahead()

    def terms(self) -> tuple[Array, Array, Array]:
        """Return the margin's constant (R,), and the tokens' terms (m, R) if not and if chosen.

        A choice holds if the constant and its terms exceed 0 together.
        """
        net = self.margin.net[:-1]
        if self.is_kept:
            does_harm = net <= 0
            constant, terms = self.margin.linear(does_harm)
            return constant, np.where(does_harm, terms, 0.0), terms
        constant, terms = self.margin.linear(net >= 0)
        return constant, terms, np.zeros_like(terms)

    def needs_and_gains(self) -> tuple[Array, Array]:
        """Return each rival's deficit without any choice (R,), and each token's gain (m, R)."""
        constant, not_chosen, chosen = self.terms()
        return -(constant + not_chosen.sum(axis=0)), chosen - not_chosen


def fewest_to_change(margins: Margin) -> CountSearchResult:
    """Return the fewest tokens without which any other class is ahead of one.

    `margins` are those of this class over all others.
    """
    others_lead = replace(margins, base=-margins.base, gains=-margins.gains)
    best: Numbers | None = None
    best_lead = -inf
    for rival in range(len(margins.base)):
        question = _Question(others_lead.over(rival), is_kept=False)
        tokens = _by_sorting(question)
        if tokens is None:
            continue
        lead = _lead(question.outcome(_mask(tokens, question.n)))
        # Fewer tokens are better, and of equally many those with the larger lead.
        if best is None or (len(tokens), -lead) < (len(best), -best_lead):
            best = tokens
            best_lead = lead
    return CountSearchResult(best, None if best is None else len(best))


def fewest_to_reach(margins: Margin, time_limit: float) -> CountSearchResult:
    """Return the fewest tokens without which a class is ahead of all others."""
    return _over_all_rivals(_Question(margins, is_kept=False), time_limit)


def fewest_to_guarantee(margins: Margin, time_limit: float) -> CountSearchResult:
    """Return the fewest tokens with which a class is ahead, whatever happens to the others."""
    return _over_all_rivals(_Question(margins, is_kept=True), time_limit)


def _lead(margin: Margin) -> float:
    """Return the margin over one class, of all tokens of its bag."""
    if (margin.logs == -inf).all():
        return float(margin.base[0])
    return float(margin.base[0] + (softmax(margin.logs, axis=0) * margin.gains).sum())


def _mask(tokens: Any, n: int) -> Choice:
    """Return a choice (n,), given the numbers of what is chosen."""
    chosen = np.zeros(n, dtype=bool)
    chosen[tokens] = True
    return chosen


def _by_sorting(question: _Question) -> Numbers | None:
    """Return the fewest tokens that reach a single condition, None if none do."""
    constants, terms_if_not, terms_if_chosen = question.terms()
    constant = constants[0]
    not_chosen = terms_if_not[:, 0]
    chosen = terms_if_chosen[:, 0]
    order = np.argsort(not_chosen - chosen, kind="stable")
    # The margins with none, the first, the first two, ... chosen. The terms of what is left are
    # summed from the end, where the others' digits cannot hide them.
    chosen_sums = np.append(0.0, np.cumsum(chosen[order]))
    left_sums = np.append(np.cumsum(not_chosen[order][::-1])[::-1], 0.0)
    is_ahead = constant + chosen_sums + left_sums > 0
    # Where nothing may be left, the sign of the margin is that of an empty bag.
    is_ahead[0] = question.holds(np.zeros(question.n, dtype=bool))
    is_ahead[-1] = question.holds(np.ones(question.n, dtype=bool))
    if not is_ahead.any():
        return None
    return order[: int(is_ahead.argmax())]


def _over_all_rivals(question: _Question, time_limit: float) -> CountSearchResult:
    """Return the fewest tokens with which a class is ahead of all others at once."""
    n = question.n
    # 1) The tokens for the hardest rival are often enough for all.
    hardest = np.arange(0)
    for rival in range(len(question.margin.base)):
        tokens = _by_sorting(question.over(rival))
        if tokens is None:
            return CountSearchResult(None, None)
        if rival == 0 or len(tokens) > len(hardest):
            hardest = tokens
    bound = len(hardest)
    needs, gains = question.needs_and_gains()
    if question.holds(_mask(hardest, n)):
        return CountSearchResult(_ordered(gains, np.sort(hardest)), bound)
    if bound == n:
        return CountSearchResult(None, None)
    # 2) Some tokens must be chosen in any case.
    forced = _forced(question)
    bound = max(bound, int(forced.sum()))
    if question.holds(forced):
        return CountSearchResult(_ordered(gains, np.flatnonzero(forced)), bound)
    gains_left = gains
    if forced.any():
        rest = replace(question, margin=question.outcome(forced))
        needs, gains_left = rest.needs_and_gains()
    # 3) An integer program finds the others, or they are found greedily.
    chosen, program_bound = _by_program(question, needs, gains_left, forced, time_limit)
    if program_bound is None or forced.all():
        return CountSearchResult(None, None)
    bound = max(bound, program_bound)
    if chosen is None:
        chosen = _greedily(question, needs, gains_left, forced)
    if chosen is None:
        return CountSearchResult(None, bound)
    return CountSearchResult(_ordered(gains, np.flatnonzero(chosen)), bound)


def _ordered(gains: Array, tokens: Numbers) -> Numbers:
    """Return tokens in the order of their gains, the highest first."""
    return tokens[np.argsort(-gains[tokens].sum(axis=1), kind="stable")]


def _forced(question: _Question) -> Choice:
    """Return the tokens that cannot stay, as one of them outweighs all that is for the class."""
    forced = np.zeros(question.n, dtype=bool)
    if question.is_kept:
        return forced
    while True:
        margin = question.outcome(forced)
        constant, terms = margin.linear(margin.net[:-1] >= 0)
        most = constant.clip(min=0.0) + terms.clip(min=0.0).sum(axis=0)  # for the class
        outweighs = (terms < -most * (1 + 1e-9)).any(axis=1)
        if not (outweighs & ~forced).any():
            return forced
        forced |= outweighs


def _column_scale(gains: Array) -> Array:
    """Return the largest absolute gain for each rival, (R,), 1 where all are 0."""
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    return np.asarray(scale)


def _greedily(question: _Question, needs: Array, gains: Array, forced: Choice) -> Choice | None:
    """Return tokens found one by one by their gains, of which only forced ones are needless."""
    scale = _column_scale(gains)
    useful = np.minimum(gains, needs.clip(min=0.0)).sum(axis=1)
    ranked = np.argsort(-useful, kind="stable")
    chosen = forced.copy()
    order: list[int] = []
    # 1) The token that fills most of what is missing, until the class is ahead.
    while not question.holds(chosen):
        free = ranked[~chosen[ranked]]
        missing = (needs - gains[chosen].sum(axis=0)) / scale
        useful_parts = np.minimum(gains[free] / scale, missing.clip(min=_FEASIBILITY))
        filled = useful_parts.sum(axis=1)
        if not (filled > 0).any():
            return None
        best = int(free[filled.argmax()])
        chosen[best] = True
        order.append(best)
    # 2) The tokens that are not needed, from the last on.
    for token in reversed(order):
        chosen[token] = False
        if not question.holds(chosen):
            chosen[token] = True
    return chosen


def _by_program(
    question: _Question, needs: Array, gains: Array, forced: Choice, time_limit: float
) -> tuple[Choice | None, int | None]:
    """Return the smallest choice (m,) and a lower bound of its size, by integer programming.

    The choice is None if none was found, and the bound if there is none.
    """
    deadline = monotonic() + time_limit
    if question.is_kept:  # gains beyond the need do not help
        most_useful = np.where(needs == 0, np.inf, needs.clip(min=0.0))
        gains = np.minimum(gains, most_useful)
    scale = _column_scale(gains)
    rows = sp.csr_array((gains / scale).T)
    needs = needs / scale
    cost = np.ones(question.n)
    excluded: list[LinearConstraint] = []

    def solve(slack: float) -> tuple[Choice | None, int | None]:
        """Return the solver's choice, and its bound, with conditions that are loose by `slack`."""
        seconds = deadline - monotonic()
        if seconds <= 0:
            return None, 0
        result: Any = milp(
            cost,
            integrality=cost,
            bounds=Bounds(forced * 1.0, 1),
            constraints=[LinearConstraint(rows, lb=needs - slack), *excluded],
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if result.status == _IMPOSSIBLE:
            return None, None
        dual_bound = result.mip_dual_bound
        least = 0
        if dual_bound is not None and np.isfinite(dual_bound):
            least = max(0, int(np.ceil(dual_bound - 1e-6)))
        return (None if result.x is None else result.x > 0.5), least

    # 1) With all that the solver's tolerance may let through, so that its bound is one. Solutions
    # that do not hold are excluded.
    slack = _FEASIBILITY + _ZERO * len(gains)
    bound = 0
    choice: Choice | None = None
    for _ in range(_MAX_EXCLUDED):
        choice, least = solve(slack)
        if least is None:
            return None, None
        bound = max(bound, least)
        if choice is None or question.holds(choice):
            break
        differ = np.where(choice, -1.0, 1.0)
        excluded.append(LinearConstraint(differ[None], lb=1.0 - choice.sum()))
    # 2) Else with conditions that a solution fulfils in spite of the tolerance.
    if choice is None or not question.holds(choice):
        choice, _ = solve(-10 * slack)
    if choice is None or not question.holds(choice):
        return None, bound
    return choice, bound
