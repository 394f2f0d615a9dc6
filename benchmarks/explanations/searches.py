"""Searches for small changes and for guarantees that only ask a model for probabilities.

Each is given the probability of the predicted class as a function of which of a document's n tokens
are kept, (n_questions, n). They return the numbers of those that are removed or kept, or None.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

Ask = Callable[[NDArray[np.bool_]], NDArray[np.float64]]
Numbers = NDArray[np.intp]

ANCHOR_PRECISION = 0.95
_ANCHOR_SAMPLES = 200
_DICE_TRIES = 100
_MOST_REMOVED = 100


def greedy(ask: Ask, n: int, rng: np.random.Generator) -> Numbers | None:
    """Remove the token that lowers the probability most until it is below a half (SEDC)."""
    kept = np.ones(n, dtype=bool)
    while kept.any() and n - kept.sum() < _MOST_REMOVED:
        left = np.flatnonzero(kept)
        questions = np.tile(kept, (len(left), 1))
        questions[np.arange(len(left)), left] = False
        answers = ask(questions)
        best = int(answers.argmin())
        kept[left[best]] = False
        if answers[best] < 0.5:
            return np.flatnonzero(~kept)
    return None


def lime_order(ask: Ask, n: int, rng: np.random.Generator, samples: int = 5000) -> Numbers | None:
    """Remove tokens in the order of LIME's weights until it is below a half (LIME-C).

    LIME's sampling and kernel for texts: tokens are left out at random, and a weighted ridge
    regression of the probability is fitted on which are kept.
    """
    kept = np.ones((samples, n), dtype=bool)
    for row in kept[1:]:
        row[rng.choice(n, rng.integers(1, n + 1), replace=False)] = False
    distance = 100 * (1 - kept.sum(axis=1) / np.sqrt(kept.sum(axis=1).clip(min=1) * n))
    weights = np.sqrt(np.exp(-(distance**2) / 25.0**2))
    ridge = Ridge(alpha=1.0).fit(kept.astype(float), ask(kept), sample_weight=weights)
    order = np.argsort(-ridge.coef_, kind="stable")[:_MOST_REMOVED]
    without = np.ones((len(order), n), dtype=bool)
    for size in range(1, len(order) + 1):
        without[size - 1 :, order[size - 1]] = False
    below = np.flatnonzero(ask(without) < 0.5)
    return order[: int(below[0]) + 1] if len(below) else None


def dice_random(ask: Ask, n: int, rng: np.random.Generator) -> Numbers | None:
    """Remove more and more random tokens until it is below a half, then put back what is needless.

    DiCE's random method and its greedy sparsity step.
    """
    for size in np.unique(np.ceil(np.geomspace(1, n, 20)).astype(int)).tolist():
        questions = np.ones((_DICE_TRIES, n), dtype=bool)
        for row in questions:
            row[rng.choice(n, size, replace=False)] = False
        answers = ask(questions)
        if answers.min() < 0.5:
            kept = questions[int(answers.argmin())]
            for number in rng.permutation(np.flatnonzero(~kept)):
                kept[number] = True
                if ask(kept[None])[0] >= 0.5:
                    kept[number] = False
            return np.flatnonzero(~kept)
    return None


def anchor(ask: Ask, n: int, rng: np.random.Generator) -> Numbers | None:
    """Fix the token with which random removals of the others keep the prediction most often.

    Until that holds in `ANCHOR_PRECISION` of the samples: the greedy search of Anchors.
    """
    order = _anchor_order(ask, n, rng)
    return None if order is None else np.sort(np.array(order, dtype=np.intp))


def anchor_scores(ask: Ask, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a score for every token, (n,): those of the anchor first, in the order found.

    The others score by how much oftener the prediction stays with this token fixed alone.
    """
    usual = _precision(ask, np.zeros(n, dtype=bool), rng)
    scores = np.array([_precision(ask, np.arange(n) == at, rng) for at in range(n)]) - usual
    order = _anchor_order(ask, n, rng) or []
    scores[order] = 1.0 + np.arange(len(order), 0, -1)
    return scores


def _anchor_order(ask: Ask, n: int, rng: np.random.Generator) -> list[int] | None:
    """Return the tokens of an anchor in the order in which they are fixed; None without any."""
    fixed, order = np.zeros(n, dtype=bool), list[int]()
    while not fixed.all():
        free = np.flatnonzero(~fixed)
        candidates = free if len(free) <= 50 else rng.choice(free, 50, replace=False)
        precisions = [_precision(ask, fixed | (np.arange(n) == at), rng) for at in candidates]
        best = int(np.argmax(precisions))
        fixed[candidates[best]] = True
        order.append(int(candidates[best]))
        if precisions[best] >= ANCHOR_PRECISION:
            return order
    return None


def _precision(ask: Ask, fixed: NDArray[np.bool_], rng: np.random.Generator) -> float:
    """Return how often the prediction stays when others than the fixed are removed at random."""
    kept = rng.random((_ANCHOR_SAMPLES, len(fixed))) < 0.5
    kept[:, fixed] = True
    return float((ask(kept) > 0.5).mean())
