"""IMDB and Yelp: everything trained, one step on E, frozen E, and four classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import known, pictures
from .data import STAR_NAMES, Corpus, Settings, load
from .models import Fit, along_posterior, batch_parameters, draw, fit, joint_parameters, over_seeds
from .record import Row, row
from .shapes import arms, binned, order
from .theorem import after_step, usual_step

CORPORA = ("IMDB", "Yelp")
EMBEDDINGS, SCORES, LIMIT = "Adam on E, p, v", "Adam on scores and values", "L-BFGS, no dimension"
BATCHES = "Adam on E, p, v, mini-batches"
LINES = {  # colour, mark and line of each
    SCORES: (pictures.ORANGE, "s", "--"),
    LIMIT: (pictures.GREEN, "^", ":"),
    BATCHES: (pictures.PINK, "D", "-."),
}
FROZEN_LOSS = 0.6
LARGE_STEP = 30.0
WHAT = (("values", "E.v"), ("scores", "E.p"))
STARS_AXIS = r"$(K\,P(k\,|\,s) - 1)\,/\,(K - 1)$"


def joint(settings: Settings) -> list[Row]:
    """Train by Adam on the embeddings, by Adam on scores and values, and by L-BFGS."""
    rows = []
    figure, axes = pictures.grid(len(CORPORA), 2, width=4.6, height=3.1)
    for name, panels in zip(CORPORA, axes, strict=True):
        corpus = load(name, settings)
        fits = {
            trained: over_seeds(corpus, settings, **how)
            for trained, how in trainings(settings).items()
        }
        fits[LIMIT] = [fit(corpus)]  # nothing is drawn
        for trained, models in fits.items():
            line = f"{name}, {trained}"
            rises = [order(along_posterior(corpus, model.values).means) for model in models]
            rows.append(row("rises", line, rises))
            scores = [along_posterior(corpus, model.scores) for model in models]
            rows.append(row("U", line, [arms(bins.centres, bins.means).worse for bins in scores]))
            accuracy = [model.accuracy for model in models]
            asked = trained == EMBEDDINGS  # of the paper's own training
            rows.append(row("accuracy" if asked else "other accuracy", line, accuracy))
            if asked:
                distances = [abs(model.test_loss - known.TRAINED_ERROR) for model in models]
                rows.append(row("trained loss", line, distances))
        for ax, what, symbol in zip(
            panels, ("scores", "values"), (pictures.SCORE, pictures.VALUE), strict=True
        ):
            numbers = getattr(fits[EMBEDDINGS][0], what)
            bins = along_posterior(corpus, numbers)
            draw(ax, corpus, numbers, f"{name}: {symbol}", symbol, label=EMBEDDINGS)
            for trained, (colour, mark, line) in LINES.items():
                other = along_posterior(corpus, getattr(fits[trained][0], what))
                means, label = other.means, trained
                if trained == LIMIT:
                    means = means * (bins.span / other.span)
                    means += (bins.means.min() - means.min()) * (what == "scores")
                    label = f"{trained}, stretched"
                pictures.means(
                    ax, other.centres, means, colour=colour, mark=mark, line=line, label=label
                )
            pictures.show_all_lines(ax)
    pictures.legend_below(figure, axes[0, 1], 4)
    pictures.save(figure, settings, "paper_joint.png")
    return rows


def trainings(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return parameters of the ways to train everything that draw anything.

    Mini-batches in fewer dimensions: every batch moves all of E.
    """
    adam = joint_parameters(settings)
    return {
        EMBEDDINGS: adam,
        SCORES: {**adam, "embedding_dim": None},
        BATCHES: batch_parameters(*settings.pick((64, 5), (16, 4))),
    }


def one_step(settings: Settings) -> list[Row]:
    """Compare scatter after one step on E, with p and v trained from there, with all trained.

    Ours: the size of the step makes the largest value 1, or 30, and training stops early.
    """
    rows = []
    figure, axes = pictures.grid(len(CORPORA), 4, width=3.2, height=2.7)
    for name, panels in zip(CORPORA, axes, strict=True):
        corpus = load(name, settings)
        how = {**joint_parameters(settings), "train_embeddings": "one_step"}
        how |= {"n_iter_no_change": 10, "max_iter": 100}
        large = settings.pick(LARGE_STEP, 3.0) * usual_step(corpus.X, corpus.y)
        trained = over_seeds(corpus, settings, **joint_parameters(settings))
        models = over_seeds(corpus, settings, **how)
        pairs = list(zip(trained, models, strict=True))
        for what, symbol in WHAT:
            ratios = np.array([scatter_ratios(corpus, *pair, what) for pair in pairs])
            rows.append(row(f"scatter {symbol}", name, ratios[:, 0]))
            rows.append(row("scatter over range", f"{name}, {symbol}", ratios[:, 1]))
        worse = [before.accuracy - after.accuracy for before, after in pairs]
        rows.append(row("one step worse", name, worse))
        rises = [order(along_posterior(corpus, model.values).means) for model in models]
        rows.append(row("one step rises", name, rises))
        short = {**how, "max_iter": 30}
        for line, other in {
            "stopped after 30 steps": fit(corpus, **short),
            f"the same after a step {LARGE_STEP:g} times as large": fit(
                corpus, **short, step_size=large
            ),
        }.items():
            for what, symbol in WHAT:
                ratio = scatter_ratios(corpus, trained[0], other, what)[0]
                rows.append(row("one step variants", f"{name}, {symbol}, {line}", ratio))
        for first, (label, model) in enumerate(
            (("all trained", trained[0]), ("one step", models[0]))
        ):
            for ax, numbers, symbol in (
                (panels[first], model.scores, pictures.SCORE),
                (panels[first + 2], model.values, pictures.VALUE),
            ):
                colour = pictures.COLOURS[2 * first]
                draw(ax, corpus, numbers, f"{name}: {label}", symbol, colour=colour)
    pictures.save(figure, settings, "paper_one_step.png")
    return rows


def scatter_ratios(corpus: Corpus, trained: Fit, after: Fit, what: str) -> tuple[float, float]:
    """Return scatter of everything trained over that after one step, absolute and over range."""
    before, later = (along_posterior(corpus, getattr(model, what)) for model in (trained, after))
    return before.scatter / later.scatter, before.relative_scatter / later.relative_scatter


def frozen(settings: Settings) -> list[Row]:
    """Train p and v alone over random embeddings, like for like with everything trained."""
    rows = []
    for name in CORPORA:
        corpus = load(name, settings)
        how = joint_parameters(settings)
        trained = over_seeds(corpus, settings, **how)
        same = over_seeds(corpus, settings, train_embeddings=False, **how)
        descent = fit(
            corpus, **{**how, "train_embeddings": False, "solver": "sgd", "learning_rate": 10.0}
        )
        below = [one.accuracy - other.accuracy for one, other in zip(trained, same, strict=True)]
        rows += [
            row("frozen below", f"{name}, by Adam", below),
            row("frozen loss", name, [abs(model.test_loss - FROZEN_LOSS) for model in same]),
            row("frozen descent", name, descent.accuracy),
        ]
    return rows


def lemma(settings: Settings) -> list[Row]:
    """Compare one step in a finite dimension with Lemma 4.1, for two classes and for four."""
    rows, dimension = [], settings.pick(known.EMBEDDING_DIM, 16)
    for name in (*CORPORA, "Yelp stars"):
        corpus = load(name, settings)
        shares, errors = [], []
        for seed in settings.seeds:
            step = after_step((corpus.X, corpus.y), 1.0, dimension, seed)
            rest = step.embeddings @ step.output_vectors.T - step.shifts
            shares.append(1 - np.square(rest).sum() / np.square(step.shifts + rest).sum())
            errors.append(step.lemma_error().max() * dimension**0.5)
        if corpus.n_classes == 2:
            rows.append(row("lemma line", name, shares))
        rows.append(row("lemma error", f"{name}, {corpus.n_classes} classes", errors))
    return rows


def stars(settings: Settings) -> list[Row]:
    """Train on four classes and bin each class's values along its own importance."""
    corpus = load("Yelp stars", settings)
    ways = {label: how for label, how in trainings(settings).items() if label != BATCHES}
    fits = {label: over_seeds(corpus, settings, **how) for label, how in ways.items()}
    fits[LIMIT] = [fit(corpus)]
    rows = []
    for label, models in fits.items():
        for k, name in enumerate(STAR_NAMES):
            rises = [order(binned(corpus.posterior[k], each.values[k]).means) for each in models]
            rows.append(row("stars", f"{label}, {name}", rises))
    rows.append(row("other accuracy", "Yelp stars", [model.accuracy for model in fits[EMBEDDINGS]]))
    figure, axes = pictures.grid(2, 3, width=3.9, height=3.0)
    for k, ax in enumerate(axes[:, :2].flat):
        x, y = corpus.posterior[k], fits[EMBEDDINGS][0].values[k]
        bins = binned(x, y)
        pictures.cloud(ax, x, y, bins, label=EMBEDDINGS)
        for label, colour, mark in ((SCORES, pictures.GREEN, "^"), (LIMIT, pictures.PINK, "D")):
            other = binned(x, fits[label][0].values[k])
            means = other.means * bins.span / other.span
            style = {"colour": colour, "mark": mark, "line": ":", "label": f"{label}, stretched"}
            pictures.means(ax, other.centres, means, **style)
        pictures.name_axes(ax, STAR_NAMES[k], STARS_AXIS, rf"$E_s \cdot v_{k + 1}$")
    for ax, k in zip(axes[:, 2], known.CLASS_BINS, strict=True):
        style = {"colour": pictures.ORANGE, "mark": "s", "line": "--"}
        pictures.means(ax, known.CLASS_BINS[k], known.CLASS_VALUES[k], **style)
        pictures.zero_line(ax)
        pictures.name_axes(ax, f"The paper: class {k}", "the paper's axis", rf"$E_s \cdot v_{k}$")
    pictures.legend_below(figure, axes[0, 0], 3)
    pictures.save(figure, settings, "paper_stars.png")
    return rows
