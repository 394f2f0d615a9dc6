"""Searches for small changes and for guarantees that only ask a model for probabilities.

Each is given the counts of one document, (n_tokens,), and the probability of the predicted class as
a function of which of its tokens are kept, (n_questions, n_kept). They return the places, among the
document's tokens, of those that are removed or kept, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

Keeps = NDArray[np.bool_]
Ask = Callable[[Keeps], NDArray[np.float64]]
Places = NDArray[np.intp]

ANCHOR_PRECISION = 0.95
_ANCHOR_SAMPLES = 200
_DICE_TRIES = 100
_MOST_REMOVED = 100


class Document:
    """A text, its counts, and what the model says of it without some of its tokens."""

    def __init__(self, pipeline: Any, text: str) -> None:
        self.pipeline, self.text, self.classifier = pipeline, text, pipeline[-1]
        self.x = x = sp.csr_array(pipeline[:-1].transform([text]))
        x.sort_indices()
        self.n = x.nnz
        self.code = int(self.classifier.predict_proba(x)[0].argmax())

    def with_only(self, kept: Keeps) -> sp.csr_array:
        """Return the counts with some tokens kept, (n_questions, n), of that many documents."""
        rows, places = np.nonzero(kept)
        data, columns = self.x.data[places], self.x.indices[places]
        return sp.csr_array((data, (rows, columns)), shape=(len(kept), self.x.shape[1]))

    def ask(self, kept: Keeps) -> NDArray[np.float64]:
        """Return the predicted class's probability (n_questions,) with some tokens kept."""
        found: NDArray[np.float64] = self.classifier.predict_proba(self.with_only(kept))
        return found[:, self.code]

    def agrees(self, kept: Keeps) -> NDArray[np.float64]:
        """Return 1 where the prediction stays with some tokens kept, else 0, (n_questions,)."""
        found = self.classifier.decision_function(self.with_only(kept))
        codes = (found > 0).astype(int) if found.ndim == 1 else found.argmax(axis=1)
        return np.asarray(codes == self.code, dtype=np.float64)


def greedy(ask: Ask, n: int, rng: np.random.Generator) -> Places | None:
    """Remove the token that lowers the probability most until it is below a half (SEDC)."""
    kept = np.ones(n, dtype=bool)
    while kept.any() and n - kept.sum() < _MOST_REMOVED:
        places = np.flatnonzero(kept)
        questions = np.tile(kept, (len(places), 1))
        questions[np.arange(len(places)), places] = False
        answers = ask(questions)
        best = int(answers.argmin())
        kept[places[best]] = False
        if answers[best] < 0.5:
            return np.flatnonzero(~kept)
    return None


def lime_order(ask: Ask, n: int, rng: np.random.Generator, samples: int = 5000) -> Places | None:
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


def dice_random(ask: Ask, n: int, rng: np.random.Generator) -> Places | None:
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
            for place in rng.permutation(np.flatnonzero(~kept)):
                kept[place] = True
                if ask(kept[None])[0] >= 0.5:
                    kept[place] = False
            return np.flatnonzero(~kept)
    return None


def anchor(ask: Ask, n: int, rng: np.random.Generator) -> Places | None:
    """Fix the token with which random removals of the others keep the prediction most often.

    Until that holds in `ANCHOR_PRECISION` of the samples: the greedy search of Anchors.
    """
    order = _anchor_order(ask, n, rng)
    return None if order is None else np.sort(np.array(order, dtype=np.intp))


def anchor_scores(ask: Ask, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a score for every token, (n,): those of the anchor first, in the order found.

    The others score by how much oftener the prediction stays with this token fixed alone.
    """
    nothing = np.zeros(n, dtype=bool)
    usual = _precision(ask, nothing, rng)
    scores = np.empty(n)
    for place in range(n):
        alone = nothing.copy()
        alone[place] = True
        scores[place] = _precision(ask, alone, rng) - usual
    order = _anchor_order(ask, n, rng) or []
    scores[order] = 1.0 + np.arange(len(order), 0, -1)
    return scores


def _anchor_order(ask: Ask, n: int, rng: np.random.Generator) -> list[int] | None:
    """Return the tokens of an anchor in the order in which they are fixed; None without any."""
    fixed, order = np.zeros(n, dtype=bool), list[int]()
    while not fixed.all():
        free = np.flatnonzero(~fixed)
        candidates = free if len(free) <= 50 else rng.choice(free, 50, replace=False)
        best, highest = -1, -1.0
        for place in candidates.tolist():
            tried = fixed.copy()
            tried[place] = True
            precision = _precision(ask, tried, rng)
            if precision > highest:
                best, highest = place, precision
        fixed[best] = True
        order.append(best)
        if highest >= ANCHOR_PRECISION:
            return order
    return None


def _precision(ask: Ask, fixed: NDArray[np.bool_], rng: np.random.Generator) -> float:
    """Return how often the prediction stays when others than the fixed are removed at random."""
    kept = rng.random((_ANCHOR_SAMPLES, len(fixed))) < 0.5
    kept[:, fixed] = True
    return float((ask(kept) > 0.5).mean())
