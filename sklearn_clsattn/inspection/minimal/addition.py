"""The fewest tokens of the vocabulary that, added once to a document, change its prediction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import Lead, attention_logs, lead_of, present_class
from .programme import greedy
from .removal_of_tokens import Found

Array = NDArray[np.float64]

# Tokens that are sorted first; more are rarely needed.
_SORTED_FIRST = 64
# Candidates of each class for a step of the search for several conditions.
_CANDIDATES = 200


def fewest_added(one: DecisionTerms, to: int | None, log_odds: float) -> Found:
    """Return the columns of the fewest tokens with which another class, or `to`, is ahead."""
    present = present_class(one, log_odds)
    if to == present:
        return Found(np.array([], dtype=np.intp), 0)
    if to is None or len(one.classes) == 2:
        start, added = _sums(one, with_added(one, present, log_odds).of_rivals())
        rows = [_for_one(start[j], added[:, j]) for j in range(len(start))]
        best = min((row for row in rows if row is not None), key=len, default=None)
        return Found(best, None if best is None else len(best))
    return _for_all(one, with_added(one, to, log_odds))


def with_added(one: DecisionTerms, number: int, log_odds: float) -> Lead:
    """Return a class's lead in a document with each token of the vocabulary once, these last."""
    assert one.model is not None
    logs, cls_log = attention_logs(one)
    logs = np.concatenate([logs, added_logs(one)])
    values = np.concatenate([one.values, one.model.values])
    return lead_of(one, logs, cls_log, values, number, log_odds)


def added_logs(one: DecisionTerms) -> Array:
    """Return the logarithm of what each token of the vocabulary adds to the attention's total."""
    model = one.model
    assert model is not None
    counts = np.zeros(len(model.names))
    counts[one.columns] = one.counts
    weights = model.token_weights(counts + 1.0) - model.token_weights(counts)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights) + model.fitted.scores)


def _sums(one: DecisionTerms, lead: Lead) -> tuple[Array, Array]:
    """Return the document's sums (R,), and what each added token gains them, (n_tokens, R)."""
    n = len(one.tokens)
    constant, terms = lead.linear(n_units=n)
    return constant + terms[:n].sum(axis=0), terms[n:]


def _for_one(start: float, added: Array) -> NDArray[np.intp] | None:
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


def _for_all(one: DecisionTerms, lead: Lead) -> Found:
    """Return few additions for a lead over several classes at once, with a bound."""
    start, added = _sums(one, lead)
    rows: list[Any] = [_for_one(start[j], added[:, j]) for j in range(len(start))]
    if any(row is None for row in rows):
        return Found(None, None)
    bound = max(map(len, rows))
    own = np.arange(len(one.tokens))

    def ahead(columns: NDArray[np.intp]) -> bool:
        return lead.of(np.concatenate([own, len(own) + columns])).is_ahead()

    if bound == 1:
        margins = (start + added).min(axis=1)
        best = int(margins.argmax())
        if margins[best] > 0:
            return Found(np.array([best]), 1)
        bound = 2
    useful = np.minimum(added, np.maximum(-start, 0.0)).sum(axis=1)
    pool = np.argsort(-useful, kind="stable")[:_CANDIDATES]
    chosen = greedy(added[pool], -start, lambda some: ahead(pool[some]))
    return Found(None, bound) if chosen is None else Found(pool[chosen], bound)
