"""The fewest tokens of the vocabulary that, added once to a document, change its prediction."""

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .integer_program import Choice, greedy
from .margin import Margin, margin_of, present_class
from .removal import Found

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

# Tokens that are sorted first; more are rarely needed.
_SORTED_FIRST = 64
# Candidates of each class for a step of the search for several conditions.
_CANDIDATES = 200


def fewest_added(one: DecisionTerms, to: int | None, log_odds: float) -> Found:
    """Return the columns of the fewest tokens with which another class, or `to`, is ahead."""
    present = present_class(one, log_odds)
    if to == present:
        return Found(np.array([], dtype=np.intp), 0)
    is_any = to is None or len(one.classes) == 2
    number = present if to is None or is_any else to
    margin = margin_of(one, number, log_odds, with_vocabulary=True)
    if is_any:
        margin = margin.of_rivals()
    n_tokens = len(one.tokens)
    constant, terms = margin.linear(n_units=n_tokens)
    start, added = constant + terms[:n_tokens].sum(axis=0), terms[n_tokens:]
    singles = [_by_sorting(start[j], added[:, j]) for j in range(len(start))]
    able = [single for single in singles if single is not None]
    if is_any:
        best = min(able, key=len, default=None)
        return Found(best, None if best is None else len(best))
    if len(able) < len(singles):
        return Found(None, None)
    return _for_all(margin, n_tokens, start, added, max(map(len, able)))


def _by_sorting(start: float, added: Array) -> Integers | None:
    """Return the fewest additions that make a single sum positive; None if none will do."""
    for n_sorted in (min(_SORTED_FIRST, len(added)), len(added)):
        order = np.argpartition(-added, n_sorted - 1)[:n_sorted] if n_sorted else np.arange(0)
        order = order[np.argsort(-added[order], kind="stable")]
        order = order[added[order] > 0]
        ahead = start + np.concatenate([[0.0], np.cumsum(added[order])]) > 0
        if ahead.any():
            return order[: int(ahead.argmax())]
        if len(order) < n_sorted:
            break
    return None


def _for_all(margin: Margin, n_tokens: int, start: Array, added: Array, bound: int) -> Found:
    """Return few additions for a margin over several classes at once, with a bound."""
    if bound == 1:
        margins = (start + added).min(axis=1)
        best = int(margins.argmax())
        if margins[best] > 0:
            return Found(np.array([best]), 1)
        bound = 2
    useful = np.minimum(added, np.maximum(-start, 0.0)).sum(axis=1)
    pool = np.argsort(-useful, kind="stable")[:_CANDIDATES]

    with_pool = margin.of(np.concatenate([np.arange(n_tokens), n_tokens + pool]))

    def holds(some: Choice) -> bool:
        return with_pool.weighted(np.append(np.ones(n_tokens), some)).is_ahead()

    chosen = greedy(added[pool], -start, holds)
    return Found(None, bound) if chosen is None else Found(pool[chosen], bound)
