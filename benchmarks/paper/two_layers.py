"""Two layers with trained key-query matrices: E.W2 p a U, E.v rising, as the rebuttal has them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sklearn_clsattn.paper import AttentionNetworkClassifier

from . import known, pictures
from .data import Corpus, Settings, load, subset
from .findings import Check, Section, asked, decimals, reported, spread, table
from .models import Fit, along_posterior, over_seeds
from .run import alone
from .shapes import Bins, arms, order

PICTURE = "paper_two_layers.png"
DIMENSION = 128
N_TRAIN, N_TEST = 4000, 4000
SCORE = r"$E_s \cdot W_2\, p$"


def run(settings: Settings) -> Section:
    """Train two layers on a part of IMDB and of Yelp."""
    parts: list[str] = []
    checks: list[Check] = []
    drawn: list[tuple[Corpus, Fit]] = []
    for name in settings.corpora:
        corpus = small(name, settings)
        models = over_seeds(corpus, settings, n_layers=2, **network_parameters(settings))
        drawn.append((corpus, models[0]))
        scores, values = (
            [along_posterior(corpus, getattr(model, what)) for model in models]
            for what in ("scores", "values")
        )
        checks += _checks(name, scores, values)
        epochs = spread([model.n_iter for model in models], "{:.0f}".format)
        accuracy = spread([model.accuracy for model in models])
        parts.append(f"{corpus.words}; epochs {epochs}, test accuracy {accuracy}.")
        if name == settings.corpora[0]:
            parts.append("The first seed beside the paper's table:")
            parts.append(
                beside_paper(
                    ("E.W2 p", scores[0], known.TWO_LAYER_SCORES),
                    ("E.v", values[0], known.TWO_LAYER_VALUES),
                )
            )
    paper_u = arms(known.BINS, known.TWO_LAYER_SCORES)
    checks.append(
        reported(
            "The paper's own table: E.v monotone; arms of E.W2 p",
            f"{decimals(order(known.TWO_LAYER_VALUES))}; "
            f"{decimals(paper_u.left)}, {decimals(paper_u.right)}",
        )
    )
    draw(settings, PICTURE, drawn, SCORE, known.TWO_LAYER_SCORES, known.TWO_LAYER_VALUES)
    holds = not any(check.holds is False for check in checks)
    return Section(
        "two_layers",
        "Two layers with key-query matrices",
        "With trained key-query matrices in both layers, the mean of E.W2 p falls from 15.5 to "
        "-3.9 and rises to 12.4 again, and that of E.v rises from -1.07 to 0.93, along bins from "
        "-0.95 to 0.89. Which data set is not said.",
        "\n\n".join(parts),
        (
            "The shapes agree: a U below 0 at its lowest, and a value that rises through 0. "
            if holds
            else "Not every shape holds (see the table). "
        )
        + "Heights are not comparable: how long the paper trained is not known. The form of the "
        "two layers is ours: a first layer of self-attention with a residual, "
        "h_i = E_i + sum_j softmax_j(E_i W1 E_j) E_j, pooled by p' W2 h, so that what stands as "
        "E.W2 p is E_s' W2' p; W1 starts at 0 and W2 at "
        f"the identity; d = {DIMENSION}; Adam, batches of 50, early stopping.",
        checks,
        PICTURE,
        "Two layers on a part of the reviews; the paper's means in orange, on an axis of their "
        "own (right).",
    )


def small(name: str, settings: Settings) -> Corpus:
    """Return the documents that the deeper variants are trained on: time allows no more."""
    return subset(load(name, settings), N_TRAIN, N_TEST)


def network_parameters(settings: Settings) -> dict[str, Any]:
    """Return what the deeper variants have in common."""
    return {
        "kind": AttentionNetworkClassifier,
        "embedding_dim": settings.pick(DIMENSION, 16),
        "batch_size": 50,
        "early_stopping": True,
        "n_iter_no_change": 3,
        "max_iter": settings.pick(12, 6),
        **({"learning_rate": 0.01} if settings.fast else {}),
    }


def beside_paper(*columns: tuple[str, Bins, np.ndarray]) -> str:
    """Return our means beside the paper's, bin by bin, each with its own axis."""
    names = [name for name, _, _ in columns]
    header = ["bin", *names, "paper's bin", *(f"{name}, paper" for name in names)]
    bins = columns[0][1]
    rows = []
    for place in range(max(len(bins.centres), len(known.BINS))):
        ours = place < len(bins.centres)
        paper = place < len(known.BINS)
        rows.append(
            [
                f"{bins.centres[place]:.2f}" if ours else "",
                *(f"{each.means[place]:.2f}" if ours else "" for _, each, _ in columns),
                f"{known.BINS[place]:.2f}" if paper else "",
                *(f"{numbers[place]:.2f}" if paper else "" for _, _, numbers in columns),
            ]
        )
    return table(header, rows)


def draw(
    settings: Settings,
    picture: str,
    drawn: list[tuple[Corpus, Fit]],
    score: str,
    paper_scores: np.ndarray,
    paper_values: np.ndarray,
) -> None:
    """Draw scores and values of each corpus, the paper's means on a second axis."""
    figure, axes = pictures.grid(len(drawn), 2, width=4.8)
    for row, (corpus, model) in zip(axes, drawn, strict=True):
        for ax, symbol, numbers, paper in (
            (row[0], score, model.scores, paper_scores),
            (row[1], pictures.VALUE, model.values, paper_values),
        ):
            pictures.cloud(ax, corpus.posterior, numbers, along_posterior(corpus, numbers))
            pictures.name_axes(ax, corpus.name, pictures.POSTERIOR, symbol)
            pictures.paper_axis(ax, known.BINS, paper)
    pictures.save(figure, settings, picture)


def _checks(name: str, scores: list[Bins], values: list[Bins]) -> list[Check]:
    us = [arms(bins.centres, bins.means) for bins in scores]
    first_scores, first_values = scores[0].means, values[0].means
    return [
        asked(
            f"{name}, two layers: E.v monotone", "monotone", [order(bins.means) for bins in values]
        ),
        asked(
            f"{name}, two layers: E.W2 p, worse arm of the U",
            "arm",
            [u.worse for u in us],
            f"(lowest at {spread([u.lowest_at for u in us], '{:.2f}'.format)})",
        ),
        reported(
            f"{name}, two layers: E.W2 p at the left end, lowest, right end, first seed",
            f"{first_scores[0]:.1f}, {first_scores.min():.1f}, {first_scores[-1]:.1f}",
            "15.5, -3.9, 12.4",
        ),
        reported(
            f"{name}, two layers: E.v from, to, first seed",
            f"{first_values[0]:.2f}, {first_values[-1]:.2f}",
            "-1.07, 0.93",
        ),
    ]


if __name__ == "__main__":
    sys.exit(alone(run))
