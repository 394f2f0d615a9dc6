r"""The fewest units of a document whose removal, addition or keeping puts a class ahead of others.

With attention shares q, that of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a
document that keeps the tokens S has a margin of the sign of

.. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta).

Attention is kept as logarithms, for without the tokens that have nearly all of it the others
decide. For one condition, the units of the largest gains are the fewest. Several conditions, and
words, as n-grams share them, are an integer program (HiGHS), with
:math:`y_U = \max_{u \in U} x_u` for what goes with any unit of the set U. Every choice that will
do fulfils its conditions, so that its bound holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf
from operator import itemgetter
from time import monotonic
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.special import softmax

from ..._types import Array
from ..terms import DecisionTerms

Integers = NDArray[np.intp]
Choice = NDArray[np.bool_]

# The numbers of the units, the most effective first, None where none were found; and a proven lower
# bound of how many it takes, None where no number will do.
Found = tuple[Integers | None, int | None]

# The solver's tolerance of conditions, in units of a condition's largest coefficient, and what it
# takes for 0.
_FEASIBILITY = 1e-6
_ZERO = 1e-9
_IMPOSSIBLE = 2
_MAX_EXCLUDED = 100  # solutions that do not hold
_CANDIDATES = 200  # tokens of the vocabulary that are added for several conditions
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


@dataclass(frozen=True, eq=False)
class Units:
    """The n units of a document of m tokens that may be chosen, and what a choice does to it.

    A choice removes tokens, or words, each occurrence with any word of its set; adds tokens of the
    vocabulary, once each, as rows behind those of the document; or keeps tokens, while of the
    others those stay that do harm. Of two classes, the one that is not explained has the decision 0
    in every document.
    """

    document: Any  # the DecisionTerms of one document
    change: str  # "tokens", "words", "add" or "keep"
    names: NDArray[np.object_]  # (n,)
    spans: list[Integers]  # of each text, starts, stops and units, (n_spans, 3)
    shared: Any = None  # CSR (n_shared, n), which words each set of several has, as ones
    shares: Any = None  # CSR (n + n_shared, m), of tokens' counts that go with a word, or set

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.names)

    def of_classes(self, of_explained: Any) -> Array:
        """Return columns for all classes (..., K), where of two only one is explained."""
        one = self.document
        if len(one.classes) > 2:
            return np.asarray(of_explained)
        columns = np.zeros((*of_explained.shape[:-1], 2))
        columns[..., one.classes.tolist().index(one.targets.tolist()[0])] = of_explained[..., 0]
        return columns

    @cached_property
    def every(self) -> Margin:
        """The decisions of all classes: their margins over nothing."""
        one, model, fitted = self.document, self.document.model, self.document.model.fitted
        values, intercept = one.values, one.intercept
        cls = np.log(fitted.cls_weight) + fitted.cls_score if fitted.cls_weight else -np.inf
        with np.errstate(divide="ignore"):
            logs = np.log(model.token_weights(one.weights)) + fitted.scores[one.columns]
            if self.change == "add":
                counts = np.zeros(self.n)
                counts[one.columns] = one.weights
                more = model.token_weights(counts + 1.0) - model.token_weights(counts)
                logs = np.append(logs, np.log(more) + fitted.scores)
                values = np.vstack([values, model.values])
        gains = self.of_classes(np.vstack([values, np.zeros_like(intercept)]))
        base = self.of_classes(intercept)
        return Margin(base, np.append(logs, cls)[:, None], gains, np.abs(gains) + np.abs(base))

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

    def changed(self, margin: Margin, chosen: Choice) -> Margin:
        """Return a margin of the document that a choice makes."""
        weights = self.weights(margin, chosen)
        of_all = np.vstack([weights, np.ones(weights.shape[1])])
        with np.errstate(divide="ignore"):
            return replace(margin, logs=margin.logs + np.log(of_all))

    def weights(self, margin: Margin, chosen: Choice) -> NDArray[Any]:
        """Return the share of its weight that every token has with a choice, (m, 1 or R)."""
        if self.change == "tokens":
            return ~chosen[:, None]
        if self.change == "keep":
            return chosen[:, None] | (margin.net[:-1] <= 0)
        counts, weigh = self.document.weights, self.document.model.token_weights
        if self.change == "add":
            return np.append(np.ones(len(counts)), chosen)[:, None]
        lost = self.shares.T @ np.append(chosen, self.shared @ chosen > 0)
        left = weigh(counts * (1 - lost).clip(min=0.0)) / weigh(counts)
        return np.where(lost > _WHOLE, 0.0, left)[:, None]

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
        counts, weigh = self.document.weights, self.document.model.token_weights
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
        rows, m = np.arange(len(every.logs)), len(self.document.weights)
        if self.change == "add":
            rows = np.concatenate([rows[:m], rows[-1:], m + numbers])
        else:  # from the last one removed on, as those before may have all of the attention
            rows = np.append(np.delete(rows, numbers), numbers[::-1])
        logs, gains = every.logs[rows], every.gains[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = [logs + np.log(part.clip(min=0.0)) for part in (gains, -gains)]
            total, more, less = (np.logaddexp.accumulate(part) for part in (logs, *parts))
            means = np.nan_to_num(np.exp(more - total) - np.exp(less - total))
        decisions = (every.base + means)[-n_steps:]
        return decisions if self.change == "add" else decisions[::-1]


def mask(numbers: Any, n: int) -> Choice:
    """Return a choice (n,) by the numbers of what is chosen."""
    chosen = np.zeros(n, dtype=bool)
    chosen[numbers] = True
    return chosen


def units_of(one: DecisionTerms, change: str) -> Units:
    """Return the units of one document; raise ValueError where places of words are not known."""
    if change == "words":
        return _words(one)
    if change == "add":
        assert one.model is not None
        return Units(one, change, one.model.names, [])
    spans = []
    for text in one.texts[0]:
        rows = np.empty((0, 3), dtype=np.intp)
        if text.words is not None and text.occurrences is not None:
            first, length, token = text.occurrences.T
            last = first + length - 1
            rows = np.stack([text.words[first, 0], text.words[last, 1], token], axis=1)
        spans.append(rows)
    return Units(one, change, one.tokens, spans)


def _words(one: DecisionTerms) -> Units:
    """Return the words of one document as units."""
    numbers: dict[tuple[str | None, str], int] = {}
    names, known, entries, all_spans = list[str](), set[int](), [], []
    for text in one.texts[0]:
        unit_of: dict[Any, int] = {}
        if text.words is not None and text.occurrences is not None and text.shares is not None:
            bounds = list(map(tuple, text.words.tolist()))
            found = text.occurrences.tolist()
            covered = {span for at, length, _ in found for span in bounds[at : at + length]}
            for start, stop in sorted(covered):
                name = text.text[start:stop]
                unit_of[start, stop] = numbers.setdefault((text.name, name.lower()), len(names))
                names += [name] * (len(numbers) - len(names))
            for (at, length, token), share in zip(found, text.shares.tolist(), strict=True):
                words = bounds[at : at + length]
                known.add(token)
                entries.append((tuple(sorted({unit_of[word] for word in words})), token, share))
        rows = [(*span, unit) for span, unit in unit_of.items()]
        all_spans.append(np.array(rows, dtype=np.intp).reshape(-1, 3))
    lost = [str(name) for at, name in enumerate(one.tokens) if at not in known]
    if lost:
        raise ValueError(
            f"cannot remove words from document {int(one.index[0])}, because the positions of "
            f"{len(lost)} tokens, such as {lost[0]!r}, are unknown. Explain texts with places=True "
            "and a vectorizer of words, or remove tokens instead of words"
        )
    several = list(dict.fromkeys(units for units, _, _ in entries if len(units) > 1))
    row_of = {units: at for at, units in enumerate(several, len(names))}
    ends = [row_of.get(units, units[0]) for units, _, _ in entries], [at for _, at, _ in entries]
    size = len(names) + len(several), len(one.tokens)
    shares = sp.csr_array(([float(share) for *_, share in entries], ends), shape=size)
    shared = sp.lil_array((len(several), len(names)))
    for at, units in enumerate(several):
        shared[at, list(units)] = 1.0
    return Units(one, "words", np.array(names, dtype=object), all_spans, shared.tocsr(), shares)


def fewest(units: Units, margin: Margin, time_limit: float, *, over_any: bool = False) -> Found:
    """Return the fewest units with which the class is ahead of all others, or of one of them."""
    if len(margin.base) > 1 and not over_any:
        return _for_all(units, margin, time_limit)
    reached = []
    for rival in map(margin.over, range(len(margin.base))):
        first = _by_sorting(units, rival)
        if first is not None:
            is_added = units.change == "add"
            after = 0.0 if is_added else units.changed(rival, mask(first, units.n)).now()[0]
            reached.append((len(first), -after, rival, first))
    best, least = None, list[int]()
    for bound, _, rival, numbers in sorted(reached, key=itemgetter(0, 1)):
        if best is not None and bound >= len(best):
            break
        found: Found = numbers, bound
        if units.change == "words":
            found = _for_all(units, rival, time_limit, None if best is None else len(best) - 1)
        best = best if found[0] is None else found[0]
        least += [] if found[1] is None else [found[1]]
    return best, min(least, default=None)


def _by_sorting(units: Units, rival: Margin) -> Integers | None:
    """Return the first units by gain that reach a single condition: of words, a lower bound."""
    constant, off, on = (part[..., 0] for part in units.conditions(rival))
    if units.change == "words":  # as if they shared nothing
        on = on[: units.n] + units.shared.T @ on[units.n :].clip(min=0.0)
        off = np.zeros(units.n)
    order, losses = np.arange(units.n), off - on
    if units.change == "add" and units.n > _CANDIDATES:  # mostly, a few are enough
        best = losses <= np.partition(losses, _CANDIDATES)[_CANDIDATES]
        order = np.flatnonzero(best) if constant + on[best].sum() > _FEASIBILITY else order
    order = order[np.argsort(losses[order], kind="stable")]
    rest = np.append(np.cumsum(off[order][::-1])[::-1], 0.0)
    ahead = constant + np.append(0.0, np.cumsum(on[order])) + rest > 0
    for at in (0, -1) if len(order) == units.n else (0,):  # where nothing may be left
        ahead[at] = units.changed(rival, np.full(units.n, at != 0)).is_ahead()
    return order[: int(ahead.argmax())] if ahead.any() else None


def _for_all(units: Units, margin: Margin, time_limit: float, at_most: int | None = None) -> Found:
    """Return the fewest units, `at_most` so many, for a margin over all classes."""
    singles = [_by_sorting(units, margin.over(rival)) for rival in range(len(margin.base))]
    able = [single for single in singles if single is not None]
    if len(able) < len(singles):
        return None, None
    hardest, n = max(able, key=len), units.n
    bound, needs, gains = len(hardest), *_linear(units, margin)
    if units.change == "tokens" or bound == n:
        if units.changed(margin, mask(hardest, n)).is_ahead():
            return _ordered(units, margin, gains, np.sort(hardest)), bound
        if bound == n:
            return None, None
    if units.change == "add":
        return _added(units, margin, needs, gains, max(bound, 2))
    forced = _forced(units, margin)
    found: Choice | None = forced
    after = units.changed(margin, forced)
    if not after.is_ahead():
        of_others = _linear(units, after) if forced.any() else (needs, gains)
        found, least = _program(units, margin, *of_others, forced, time_limit, at_most)
        if least is None or forced.all():
            return None, None
        bound = max(bound, least)
        if found is None and at_most is None:
            found = _greedy(units, margin, *of_others, forced)
    bound = max(bound, int(forced.sum()))
    if found is None:
        return None, bound
    return _ordered(units, margin, gains, np.flatnonzero(found)), bound


def _added(units: Units, margin: Margin, needs: Array, gains: Array, bound: int) -> Found:
    """Return the best single token to add, or a few of the most useful ones, found greedily."""
    best = int((gains - needs).min(axis=1).argmax())
    if units.changed(margin, mask(best, units.n)).is_ahead():
        return np.array([best]), 1
    useful = np.minimum(gains, needs.clip(min=0.0)).sum(axis=1)
    pool = np.argsort(-useful, kind="stable")[:_CANDIDATES]
    m, nothing = len(units.document.weights), np.zeros(len(pool), dtype=bool)
    rows = np.concatenate([np.arange(m), m + pool, [-1]])
    some = Margin(margin.base, margin.logs[rows], margin.gains[rows], margin.sizes[rows])
    chosen = _greedy(units, some, needs, gains[pool], nothing)
    found = None if chosen is None else _ordered(units, margin, gains, pool[chosen])
    return found, bound


def _linear(units: Units, margin: Margin) -> tuple[Array, Array]:
    """Return what a margin lacks (R,), and what units add to it (n + n_shared, R)."""
    constant, off, on = units.conditions(margin)
    return -(constant + off.sum(axis=0)), on - off


def _forced(units: Units, margin: Margin) -> Choice:
    """Return the tokens that cannot stay, as one of them outweighs all that is for the class."""
    forced = np.zeros(units.n, dtype=bool)
    while units.change == "tokens":
        constant, terms, _ = units.conditions(units.changed(margin, forced))
        most = constant.clip(min=0.0) + terms.clip(min=0.0).sum(axis=0)
        new = (terms < -most * (1 + 1e-9)).any(axis=1) & ~forced
        if not new.any():
            break
        forced |= new
    return forced


def _ordered(units: Units, margin: Margin, gains: Array, numbers: Integers) -> Integers:
    """Return units in the order of their gains, or of words of what removing each does alone."""
    effects = gains[numbers].sum(axis=1)
    if units.change == "words":
        alone = (units.changed(margin, mask(number, units.n)) for number in numbers)
        effects = np.array([after.now().min() for after in alone])
    return numbers[np.argsort(-effects, kind="stable")]


def _greedy(
    units: Units, margin: Margin, needs: Array, gains: Array, forced: Choice
) -> Choice | None:
    """Return units found one by one, by their gains or of words by the margin after each.

    None of those that are not forced is needless.
    """
    useful = np.minimum(gains, needs.clip(min=0.0)).sum(axis=1)[: units.n]
    ranked = np.argsort(-useful, kind="stable")
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    chosen, order = forced.copy(), list[int]()
    while not units.changed(margin, chosen).is_ahead():
        free = ranked[~chosen[ranked]]
        if units.change == "words":
            more = (units.changed(margin, chosen | mask(at, units.n)) for at in free)
            after = np.array([one.now().min() for one in more])
        else:
            missing = (needs - gains[chosen].sum(axis=0)) / scale
            after = np.minimum(gains[free] / scale, missing.clip(min=_FEASIBILITY)).sum(axis=1)
            free, after = free[after > 0], after[after > 0]
        if not len(free):
            return None
        order.append(int(free[after.argmax()]))
        chosen[order[-1]] = True
    for at in reversed(order):
        chosen[at] = False
        chosen[at] = not units.changed(margin, chosen).is_ahead()
    return chosen


def _program(
    units: Units,
    margin: Margin,
    needs: Array,
    gains: Array,
    forced: Choice,
    time_limit: float,
    at_most: int | None,
) -> tuple[Choice | None, int | None]:
    """Return the smallest choice (n,), of `at_most` a size, and a lower bound of its size.

    None is for no choice found, and for no bound where there is none.
    """
    stop, n, n_shared = monotonic() + time_limit, units.n, len(gains) - units.n
    if units.change == "keep":  # what is more than needed does not help
        gains = np.minimum(gains, np.where(needs == 0, np.inf, needs.clip(min=0.0)))
    scale = np.abs(gains).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    rows, needs = sp.csr_array((gains / scale).T), needs / scale
    slack = _FEASIBILITY + _ZERO * len(gains)
    cost = np.repeat([1.0, 0.0], [n, n_shared])
    conditions = [LinearConstraint(cost[None], ub=np.inf if at_most is None else at_most)]
    if n_shared:  # a set counts no more than the sum of its units, and no less than each
        of_set, in_set = units.shared.nonzero()
        each = np.arange(len(of_set))
        ends = np.repeat([1.0, -1.0], len(each)), (np.tile(each, 2), np.append(n + of_set, in_set))
        no_more = sp.hstack([units.shared, -sp.eye_array(n_shared)])
        both = sp.vstack([no_more, sp.csr_array(ends, shape=(len(each), n + n_shared))])
        conditions.append(LinearConstraint(both, lb=0.0))

    def solve(slack: float) -> tuple[Choice | None, int | None]:
        left = stop - monotonic()
        if left <= 0:
            return None, 0
        result: Any = milp(
            cost,
            integrality=cost,
            bounds=Bounds(np.append(forced, np.zeros(n_shared)), 1),
            constraints=[LinearConstraint(rows, lb=needs - slack), *conditions],
            options={"time_limit": left, "mip_rel_gap": 0.0},
        )
        if result.status == _IMPOSSIBLE:
            return None, None
        bound = result.mip_dual_bound
        least = int(np.ceil(bound - 1e-6)) if bound is not None and np.isfinite(bound) else 0
        return (None if result.x is None else result.x[:n] > 0.5), max(0, least)

    def holds(choice: Choice | None) -> bool:
        return choice is not None and units.changed(margin, choice).is_ahead()

    bound = 0
    # First with all that the solver's tolerance may let through, so that its bound is one.
    for _ in range(_MAX_EXCLUDED):
        choice, least = solve(slack)
        if least is None:
            return None, None
        bound = max(bound, least)
        if choice is None or holds(choice):
            break
        differ = np.append(np.where(choice, -1.0, 1.0), np.zeros(n_shared))
        conditions.append(LinearConstraint(differ[None], lb=1.0 - choice.sum()))
    if not holds(choice):
        choice, _ = solve(-10 * slack)
    return (choice if holds(choice) else None), bound
