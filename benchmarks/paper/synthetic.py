"""Synthetic data: E.v a line through the origin, E.p a V that is lowest at 0."""

from __future__ import annotations

from typing import Any

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import OneStepClassifier

from . import pictures
from .data import Corpus, Settings
from .models import along_posterior, batch_parameters, draw, fit, joint_parameters
from .record import Row, row
from .shapes import arms, order, share_on_line

BATCHES = "all trained, mini-batches"
RELEVANT = (150, 40)  # tokens of a class; in a fast run


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

    A relevant token stands in a document of the other class with a probability delta of its own,
    so that its difference of posteriors is 1 - 2 delta, or less 1 of that.
    """
    n_samples = settings.pick(4000, 300)
    X, y = make_token_classification(
        2 * n_samples,
        n_relevant_per_class=settings.pick(*RELEVANT),
        n_irrelevant=settings.pick(400, 40),
        document_length=40,
        relevant_share=0.25,
        delta=(0.0, 0.5),
        zipf_exponent=0.0,
        random_state=seed,
    )
    return Corpus("synthetic", X[:n_samples], y[:n_samples], X[n_samples:], y[n_samples:])
