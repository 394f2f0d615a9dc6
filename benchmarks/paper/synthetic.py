"""Synthetic data: E.v a line through the origin, E.p a V that is lowest at 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklearn_clsattn.paper import OneStepClassifier

from . import pictures
from .data import Corpus, Settings
from .models import along_posterior, batch_parameters, draw, fit, joint_parameters
from .record import Row, row
from .shapes import Array, arms, order, share_on_line

BATCHES = "all trained, mini-batches"
RELEVANT = (150, 40)  # tokens of a class; in a fast run
MEAN_LENGTH, LENGTH_SPREAD = 40, 0.5  # of documents; standard deviation of its logarithm
RELEVANT_SHARE = 0.25


def run(settings: Settings) -> list[Row]:
    """Train on documents whose tokens differ in how often they stand in the other class."""
    corpora = [generate(settings, seed) for seed in settings.seeds]
    ways: dict[str, dict[str, Any]] = {
        BATCHES: batch_parameters(*settings.pick((64, 15), (16, 2))),
        "all trained, full batch": joint_parameters(settings),
        "one step, then p": {"kind": OneStepClassifier, "max_iter": settings.pick(300, 100)},
    }
    rows = []
    for name, how in ways.items():
        found = []
        for seed, corpus in zip(settings.seeds, corpora, strict=True):
            model = fit(corpus, random_state=seed, **how)
            relevant = corpus.frequent < 2 * settings.pick(*RELEVANT)
            scores = along_posterior(corpus, model.scores)
            u = arms(scores.centres, scores.means)
            found.append(
                {
                    "line": share_on_line(corpus.posterior[relevant], model.values[relevant]),
                    "rises": order(along_posterior(corpus, model.values).means),
                    "V": u.worse,
                    "lowest": abs(u.lowest_at),
                    "accuracy": model.accuracy,
                }
            )
        rows += [
            row(f"synthetic {what}", name, [each[what] for each in found]) for what in found[0]
        ]
    figure, axes = pictures.grid(1, 2)
    model = fit(corpora[0], random_state=0, **ways[BATCHES])
    for ax, symbol, numbers in zip(
        axes[0], (pictures.SCORE, pictures.VALUE), (model.scores, model.values), strict=True
    ):
        draw(ax, corpora[0], numbers, f"Synthetic: {symbol}", symbol)
    pictures.save(figure, settings, "paper_synthetic.png")
    return rows


def generate(settings: Settings, seed: int) -> Corpus:
    """Return training and test documents; all tokens of a kind are equally frequent.

    A relevant token is in a document of the other class with a probability delta of its own, so
    that its difference of posteriors is 1 - 2 delta, or less 1 of that.
    """
    n_documents = settings.pick(4000, 300)
    n_relevant = settings.pick(*RELEVANT)
    n_irrelevant = settings.pick(400, 40)
    rng = np.random.RandomState(seed)
    # 1) classes, and lengths of documents, of which a quarter is relevant
    y = np.repeat([0, 1], n_documents)
    rng.shuffle(y)
    lengths = rng.lognormal(np.log(MEAN_LENGTH) - LENGTH_SPREAD**2 / 2, LENGTH_SPREAD, len(y))
    lengths = np.maximum(np.rint(lengths), 1).astype(int)
    n_own = np.maximum(rng.binomial(lengths, RELEVANT_SHARE), 1)
    # 2) the tokens, those that are relevant first in each document
    documents = np.repeat(np.arange(len(y)), lengths)
    starts = np.cumsum(lengths) - lengths
    is_relevant = np.arange(len(documents)) - starts[documents] < n_own[documents]
    delta = np.linspace(0.0, 0.5, n_relevant)
    tokens = np.empty(len(documents), dtype=int)
    for k, p in enumerate((np.append(1 - delta, delta), np.append(delta, 1 - delta))):
        drawn = is_relevant & (y[documents] == k)
        tokens[drawn] = _draw(rng, p, int(drawn.sum()))
    others = _draw(rng, np.ones(n_irrelevant), int(np.sum(~is_relevant)))
    tokens[~is_relevant] = 2 * n_relevant + others
    # 3) counts
    entries = np.ones(len(tokens), dtype=int), (documents, tokens)
    X = sp.csr_matrix(entries, shape=(len(y), 2 * n_relevant + n_irrelevant))
    half = n_documents
    return Corpus("synthetic", X[:half], y[:half], X[half:], y[half:])


def _draw(rng: np.random.RandomState, weights: Array, size: int) -> NDArray[np.intp]:
    """Return numbers with probabilities in proportion to weights, (size,)."""
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative / cumulative[-1], rng.random_sample(size), side="right")
