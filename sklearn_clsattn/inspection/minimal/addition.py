"""The fewest tokens of the vocabulary that, added once to a document, change its prediction."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms
from .lead import TOLERANCE, Lead, of_class, present_class
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
        leads = with_added(one, of_class(one, present, log_odds), present)
        lead, added = leads[0], -leads[1]
        constant, terms = -lead.constant, -lead.terms
        rows = [_for_one(constant[j], terms[:, j], added[:, j]) for j in range(len(constant))]
        best = min((row for row in rows if row is not None), key=len, default=None)
        return Found(best, None if best is None else len(best))
    return _for_all(*with_added(one, of_class(one, to), to))


def with_added(one: DecisionTerms, lead: Lead, number: int) -> tuple[Lead, Array]:
    """Return a lead, and what adding each token of the vocabulary once gains, (n_tokens, R)."""
    masses, lead = added_masses(one, lead)
    model = one.model
    assert model is not None
    values = model.values
    if len(one.classes) == 2:
        sign = 1.0 if one.classes[number] == one.targets[0] else -1.0
        gaps = sign * values
    else:
        others = np.arange(len(one.classes)) != number
        gaps = values[:, [number]] - values[:, others]
    return lead, masses[:, None] * (gaps + lead.base)


def added_masses(one: DecisionTerms, lead: Lead) -> tuple[Array, Lead]:
    """Return what each token of the vocabulary weighs if added once, and the lead in this scale."""
    model = one.model
    assert model is not None
    fitted = model.fitted
    counts = np.zeros(len(model.names))
    counts[one.columns] = one.counts
    weights = model.token_weights(counts + 1.0) - model.token_weights(counts)
    with np.errstate(divide="ignore"):
        logits = np.log(weights) + fitted.scores
        # The logarithm of the document's mass, from what has most of it.
        shares = np.append(one.attention, one.cls_attention)
        own = np.log(model.token_weights(one.counts)) + fitted.scores[one.columns]
    cls = float(np.log(fitted.cls_weight)) + fitted.cls_score if fitted.cls_weight else -np.inf
    most = int(shares.argmax())
    if shares[most] > 0:
        logits -= np.append(own, cls)[most] - np.log(shares[most])
    highest = max(0.0, float(logits.max(initial=0.0)))
    scale = float(np.exp(-highest))
    shrunk = Lead(scale * lead.shares, scale * lead.cls_share, lead.base, lead.gaps)
    return np.exp(logits - highest), shrunk


def _for_one(constant: float, terms: Array, added: Array) -> NDArray[np.intp] | None:
    """Return the fewest additions that make a single sum positive; None if none will do."""
    start, size = constant + terms.sum(), abs(constant) + np.abs(terms).sum()
    for n_sorted in (min(_SORTED_FIRST, len(added)), len(added)):
        order = np.argpartition(-added, n_sorted - 1)[:n_sorted] if n_sorted else np.arange(0)
        order = order[np.argsort(-added[order], kind="stable")]
        order = order[added[order] > 0]
        sums = start + np.concatenate([[0.0], np.cumsum(added[order])])
        sizes = size + np.concatenate([[0.0], np.cumsum(added[order])])
        ahead = sums > TOLERANCE * sizes
        if ahead.any():
            return order[: int(ahead.argmax())]
        if len(order) < n_sorted:
            break
    return None


def _for_all(lead: Lead, added: Array) -> Found:
    """Return few additions for a lead over several classes at once, with a bound."""
    constant, terms = lead.constant, lead.terms
    rows: list[Any] = [
        _for_one(constant[j], terms[:, j], added[:, j]) for j in range(len(constant))
    ]
    if any(row is None for row in rows):
        return Found(None, None)
    bound = max(map(len, rows))
    start, size = constant + terms.sum(axis=0), np.abs(constant) + np.abs(terms).sum(axis=0)

    def ahead(columns: NDArray[np.intp]) -> bool:
        sums = start + added[columns].sum(axis=0)
        return bool((sums > TOLERANCE * (size + np.abs(added[columns]).sum(axis=0))).all())

    if bound == 1:
        margins = (start + added - TOLERANCE * (size + np.abs(added))).min(axis=1)
        best = int(margins.argmax())
        if margins[best] > 0:
            return Found(np.array([best]), 1)
        bound = 2
    useful = np.minimum(added, np.maximum(-start, 0.0)).sum(axis=1)
    pool = np.argsort(-useful, kind="stable")[:_CANDIDATES]
    chosen = greedy(added[pool], -start, lambda some: ahead(pool[some]))
    return Found(None, bound) if chosen is None else Found(pool[chosen], bound)
