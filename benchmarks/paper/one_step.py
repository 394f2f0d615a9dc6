"""One full-batch step on E, then p and the scale of v: less scatter than everything trained."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sklearn_clsattn.paper import PenalizedOneStepClassifier

from . import known, pictures
from .data import Corpus, Settings, load
from .findings import Check, Section, asked, decimals, reported, spread, table
from .margin import rule
from .models import Fit, along_posterior, fit, joint_parameters, over_seeds, trained_jointly
from .run import alone
from .shapes import Bins, arms, equally_full, order, slope_through_origin

PICTURE = "paper_one_step.png"
JOINT = "everything trained"
ABLATION, SHORT = "one step, then p and v by Adam", "the same, stopped early"
LARGE, LARGE_VALUE = "the same after a step 30 times as large", 30.0
ITERATIONS, SHORT_ITERATIONS = 100, 30
FINITE, LIMIT = "one step, estimator", "one step, no dimension"
AXES = ("posterior", "alpha")
PANELS = (JOINT, ABLATION, LIMIT)
PANEL_COLOURS = (pictures.BLUE, pictures.GREEN, pictures.PINK)


def run(settings: Settings) -> Section:
    """Compare scatter after one step, in d = 2048 and in the limit, with everything trained."""
    rows: list[tuple[str, ...]] = []
    ratios: list[tuple[str, ...]] = []
    checks: list[Check] = []
    drawn: list[tuple[Corpus, dict[str, Fit]]] = []
    grows = []
    seen: dict[str, list[tuple[float, ...]]] = {SHORT: [], ABLATION: []}
    for name in settings.corpora:
        corpus = load(name, settings)
        fits = {JOINT: trained_jointly(corpus, settings)}
        largest = settings.pick(LARGE_VALUE, 3.0) * rule(corpus.X, corpus.y)
        short, whole = ablation(settings, SHORT_ITERATIONS), ablation(settings, ITERATIONS)
        fits[ABLATION] = over_seeds(corpus, settings, **whole)
        for label, how in {
            SHORT: short,
            LARGE: {**short, "step_size": largest},
            **one_step_parameters(settings),
        }.items():
            fits[label] = [fit(corpus, **how)]
        drawn.append((corpus, {label: models[0] for label, models in fits.items()}))
        rows += [_row(corpus, label, models) for label, models in fits.items()]
        checks += _checks(name, corpus, fits)
        for label in (ABLATION, SHORT, LARGE, FINITE, LIMIT):
            for axis in AXES:
                found = [
                    scatter_ratios(corpus, before, after, axis)
                    for before, after in zip(fits[JOINT], fits[label], strict=False)
                ]
                means = np.mean(found, axis=0)
                ratios.append((name, label, axis, *(f"{ratio:.2f}" for ratio in means)))
                if label in seen and axis == "posterior":
                    grows += [max(each[1], each[3]) < 1 for each in found]
                    seen[label] += found
    _draw(settings, drawn)
    header = (
        "data",
        "trained",
        "iterations",
        "test accuracy",
        "E.v monotone",
        "E.p: left arm, right arm",
        "scatter of E.v",
        "over range",
        "scatter of E.p",
        "over range",
    )
    ratio_header = (
        "data",
        "everything trained against",
        "axis",
        "scatter of E.v, ratio (paper: about 8)",
        "E.v, over range, ratio",
        "scatter of E.p, ratio (paper: about 6)",
        "E.p, over range, ratio",
    )
    return Section(
        "one_step",
        "One step on the embeddings, then p and v",
        "After one full-batch gradient step on E, with only p and v trained from there, the "
        "standard deviation inside the bins, averaged over bins, is about 8 times smaller for E.v "
        "and about 6 times smaller for E.p than with all embeddings trained to convergence.",
        f"Means over {len(settings.seeds)} seeds of everything trained and of the ablation, in "
        "brackets the least and the largest; one seed of the others.\n\n"
        + table(header, rows)
        + "\n\nScatter of everything trained over scatter after one step "
        "(above 1: one step scatters less). Along alpha the bins are equally full.\n\n"
        + table(ratio_header, ratios),
        _conclusion(grows, seen),
        checks,
        PICTURE,
        "Everything trained (left); one step, then p and v (middle), where the random start covers "
        "what the step wrote; and one step without a dimension, so without a random start (right), "
        "where E.v is alpha up to a factor: large for frequent words near 0, small for the rare "
        "ones at the ends. Mind the scales.",
    )


def ablation(settings: Settings, max_iter: int) -> dict[str, Any]:
    """Return the parameters of one step on E, then p and v by Adam: the paper's ablation.

    Ours: the size of the step makes the largest value 1, the package's rule, and training stops
    early. PenalizedOneStepClassifier is another training: there v keeps its direction, and p is
    penalised.
    """
    return {
        **joint_parameters(settings),
        "train_embeddings": "one_step",
        "n_iter_no_change": 10,
        "max_iter": max_iter,
    }


def one_step_parameters(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return parameters of the one-step fits; penalised ones, as v is trained here."""
    one_step = {"kind": PenalizedOneStepClassifier, "max_iter": settings.pick(1000, 100)}
    dimension = settings.pick(known.EMBEDDING_DIM, 64)
    return {FINITE: {**one_step, "embedding_dim": dimension}, LIMIT: one_step}


def scatter_ratios(corpus: Corpus, joint: Fit, one_step: Fit, axis: str) -> tuple[float, ...]:
    """Return scatter ratios of E.v, absolute and over range, then of E.p."""
    ratios = []
    for what in ("values", "scores"):
        before, after = (_bins(corpus, getattr(each, what), axis) for each in (joint, one_step))
        ratios += [before.scatter / after.scatter, before.relative_scatter / after.relative_scatter]
    return tuple(ratios)


def _bins(corpus: Corpus, numbers: np.ndarray, axis: str) -> Bins:
    if axis == "posterior":
        return along_posterior(corpus, numbers)
    return equally_full(corpus.alpha, numbers)


def _row(corpus: Corpus, label: str, models: list[Fit]) -> tuple[str, ...]:
    values, scores = (
        [along_posterior(corpus, getattr(model, what)) for model in models]
        for what in ("values", "scores")
    )
    us = [arms(bins.centres, bins.means) for bins in scores]

    def mean(numbers: list[float]) -> str:
        return decimals(float(np.mean(numbers)))

    return (
        corpus.name,
        label,
        spread([model.n_iter for model in models], "{:.0f}".format),
        spread([model.accuracy for model in models]),
        mean([order(bins.means) for bins in values]),
        f"{mean([u.left for u in us])}, {mean([u.right for u in us])}",
        mean([bins.scatter for bins in values]),
        mean([bins.relative_scatter for bins in values]),
        mean([bins.scatter for bins in scores]),
        mean([bins.relative_scatter for bins in scores]),
    )


def _checks(name: str, corpus: Corpus, fits: dict[str, list[Fit]]) -> list[Check]:
    limit = fits[LIMIT][0]
    pairs = list(zip(fits[JOINT], fits[ABLATION], strict=True))
    found = np.array([scatter_ratios(corpus, *pair, "posterior") for pair in pairs])
    _, share = slope_through_origin(corpus.alpha, limit.values)
    shrinks = [
        asked(f"{name}, one step: scatter of {what} shrinks, ratio", "shrinks", ratios, beside)
        for what, ratios, beside in (
            ("E.v", found[:, 0], "(paper: 8)"),
            ("E.p", found[:, 2], "(paper: 6)"),
            ("E.v over range", found[:, 1], ""),
            ("E.p over range", found[:, 3], ""),
        )
    ]
    return [
        *shrinks,
        asked(
            f"{name}, one step: accuracy below everything trained's, of what scatters less",
            "no worse",
            [joint.accuracy - one_step.accuracy for joint, one_step in pairs],
        ),
        asked(
            f"{name}, one step: E.v monotone in posterior",
            "monotone",
            [order(along_posterior(corpus, one_step.values).means) for _, one_step in pairs],
        ),
        asked(f"{name}, one step, no dimension: E.v on a line in alpha", "lemma", share),
        reported(
            f"{name}, one step, estimator: test accuracy, no dimension and d = "
            f"{known.EMBEDDING_DIM}",
            f"{limit.accuracy:.3f}, {fits[FINITE][0].accuracy:.3f}",
        ),
    ]


def _conclusion(grows: list[bool], seen: dict[str, list[tuple[float, ...]]]) -> str:
    relative = (
        "Relative to the range of the means it does not shrink, it grows"
        if all(grows)
        else "Relative to the range of the means the picture is mixed (see the ratios)"
    )
    ranges = "; ".join(
        f"after {iterations} iterations {min(column):.0f} to {max(column):.0f} times for {symbol}"
        for label, iterations in ((SHORT, SHORT_ITERATIONS), (ABLATION, ITERATIONS))
        for symbol, column in (
            ("E.v", [found[0] for found in seen[label]]),
            ("E.p", [found[2] for found in seen[label]]),
        )
    )
    return (
        "In absolute units scatter shrinks after one step, as the paper reports, but models are "
        "compared of which one has learnt little (see the accuracies). By how much it shrinks is a "
        "matter of where training stops, for every scale is free, that of the step, of p and "
        f"of v: {ranges}. {relative}: one step writes alpha, and alpha "
        "carries how frequent a token is, while the axis is a ratio in which frequency cancels, "
        "and the random start, whose products with p and v are of the order of their length over "
        "sqrt(d), does not shrink. Along alpha itself, what the step writes has no scatter at all: "
        "Lemma 4.1, not a finding about language. Nor do the means of E.v rise along the "
        "difference of posteriors as they do with everything trained, whatever the size of the "
        "step: the extreme bins hold rare tokens, whose alpha is small. The estimator's one-step "
        "training is not this ablation: it keeps the direction of v, starts scores against "
        "frequency, and is made to predict."
    )


def _draw(settings: Settings, drawn: list[tuple[Corpus, dict[str, Fit]]]) -> None:
    figure, axes = pictures.grid(2 * len(drawn), 3, width=3.6, height=2.5)
    for (corpus, fits), upper, lower in zip(drawn, axes[::2], axes[1::2], strict=True):
        for row, what, symbol in (
            (upper, "values", pictures.VALUE),
            (lower, "scores", pictures.SCORE),
        ):
            for ax, label, colour in zip(row, PANELS, PANEL_COLOURS, strict=True):
                numbers = getattr(fits[label], what)
                bins = along_posterior(corpus, numbers)
                pictures.cloud(ax, corpus.posterior, numbers, bins, colour=colour)
                pictures.name_axes(ax, f"{corpus.name}: {label}", pictures.POSTERIOR, symbol)
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
