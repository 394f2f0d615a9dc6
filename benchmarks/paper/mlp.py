"""An MLP after the softmax: E.p keeps its U, E.v no longer says what a token does."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike

from . import known, pictures
from .data import Corpus, Settings
from .findings import Check, Section, asked, decimals, reported, table
from .models import Fit, along_posterior, over_seeds
from .run import alone
from .shapes import arms, order
from .two_layers import DIMENSION, beside_paper, network_parameters, small

PICTURE = "paper_mlp.png"
EPOCHS = 8


def run(settings: Settings) -> Section:
    """Train one layer with an MLP on a part of IMDB, from several random starts."""
    corpus = small(settings.corpora[0], settings)
    parameters = {
        **network_parameters(settings),
        "early_stopping": False,
        "max_iter": settings.pick(EPOCHS, 4),
    }
    fits = over_seeds(corpus, settings, mlp=True, **parameters)
    _draw(settings, corpus, fits)
    checks = _checks(corpus, fits)
    rows = []
    for seed, model in zip(settings.seeds, fits, strict=True):
        scores, values, single = (
            along_posterior(corpus, each) for each in (model.scores, model.values, model.one_token)
        )
        u = arms(scores.centres, scores.means)
        rows.append(
            (
                str(seed),
                f"{model.n_iter}",
                f"{model.accuracy:.3f}",
                f"{decimals(u.left)}, {decimals(u.right)} (lowest at {u.lowest_at:.2f})",
                decimals(order(values.means)),
                f"{values.span:.2f}, scatter {values.scatter:.2f}",
                decimals(rise_left_over_right(values.centres, values.means)),
                decimals(order(single.means)),
            )
        )
    header = (
        "seed",
        "epochs",
        "test accuracy",
        "E.p: left arm, right arm",
        "E.v monotone",
        "range of E.v's means",
        "E.v: change left of 0 over rise right of 0",
        "f([s]) monotone",
    )
    scores, values = (along_posterior(corpus, each) for each in (fits[0].scores, fits[0].values))
    beside = beside_paper(("E.p", scores, known.MLP_SCORES), ("E.v", values, known.MLP_VALUES))
    return Section(
        "mlp",
        "An MLP after the softmax",
        "With one MLP layer after the softmax, as wide as the embedding, E.p keeps its U (4.8, "
        "0.6, 6.1 at the left end, lowest and right end), while E.v is near 0 on the whole "
        "negative side and rises to 1.4 on the positive one: it is less evidently monotone. Which "
        "data set is not said.",
        f"{corpus.words}.\n\n{table(header, rows)}\n\nSeed 0 beside the paper's table:\n\n{beside}",
        _conclusion(corpus, fits),
        checks,
        PICTURE,
        "One layer with an MLP on a part of the reviews, one colour a random start: E.p, E.v, "
        "and the output for one-token documents; tokens of the first. The paper's means stand in "
        "orange on an axis of their own (right).",
    )


def rise_left_over_right(centres: ArrayLike, means: ArrayLike) -> float:
    """Return how much means rise from the left end to 0, over the rise from 0 to the right end.

    Nan where they do not rise on the right.
    """
    centres, means = np.asarray(centres, dtype=float), np.asarray(means, dtype=float)
    middle = float(np.interp(0, centres, means))
    right = means[-1] - middle
    return float((middle - means[0]) / right) if right > 0 else float("nan")


def _checks(corpus: Corpus, fits: list[Fit]) -> list[Check]:
    scores = [along_posterior(corpus, model.scores) for model in fits]
    monotone = [order(along_posterior(corpus, model.values).means) for model in fits]
    single = [order(along_posterior(corpus, model.one_token).means) for model in fits]
    ends = scores[0].means
    paper = rise_left_over_right(known.BINS, known.MLP_VALUES)
    values = [along_posterior(corpus, model.values) for model in fits]
    flat = [abs(rise_left_over_right(each.centres, each.means)) for each in values]
    return [
        asked(
            "MLP: E.p, worse arm of the U",
            "arm",
            [arms(each.centres, each.means).worse for each in scores],
        ),
        asked(
            "MLP: E.v is no longer monotone, rising or falling",
            "not monotone",
            np.abs(monotone),
            f"(paper: {decimals(order(known.MLP_VALUES))})",
        ),
        asked(
            "MLP: E.v flat left of 0, change there over rise right of 0",
            "flat",
            flat,
            f"(paper: {paper:.2f})",
        ),
        asked("MLP: f([s]), the output for a document of one token, monotone", "monotone", single),
        reported(
            "MLP: E.p at the left end, lowest, right end",
            f"{ends[0]:.1f}, {ends.min():.1f}, {ends[-1]:.1f}",
            "4.8, 0.6, 6.1",
        ),
    ]


def _conclusion(corpus: Corpus, fits: list[Fit]) -> str:
    monotone = [order(along_posterior(corpus, model.values).means) for model in fits]
    rising = ", ".join(decimals(each) for each in monotone)
    return (
        "The U of E.p is kept, as in the paper. E.v does not do what the paper's does, flat on the "
        f"left and rising on the right: its rank correlations over the seeds are {rising}. "
        "With an MLP behind it, v is one direction of many that the MLP reads, and nothing ties "
        "E.v to the label. What a token does to the output is f([s]), the output for a document of "
        f"that token alone, and that is monotone. The MLP here is v' A2 relu(A1 o + c), d = "
        f"{DIMENSION}, trained by Adam with batches of 50 for {EPOCHS} epochs, without early "
        "stopping; the paper's form, and how long it trained, are not known, and its scores are "
        "many times larger."
    )


def _draw(settings: Settings, corpus: Corpus, fits: list[Fit]) -> None:
    figure, axes = pictures.grid(1, 3, width=4.0, height=3.0)
    panels = (
        (pictures.SCORE, "scores", known.MLP_SCORES),
        (pictures.VALUE, "values", known.MLP_VALUES),
        (r"$f([s])$", "one_token", None),
    )
    colours = (pictures.BLUE, pictures.GREEN, pictures.PINK, pictures.SKY, pictures.BLACK)
    marks = (*pictures.MARKS, "v")
    for ax, (symbol, what, paper) in zip(axes[0], panels, strict=True):
        numbers = getattr(fits[0], what)
        pictures.cloud(ax, corpus.posterior, numbers, along_posterior(corpus, numbers))
        for model, colour, mark in zip(fits[1:], colours[1:], marks[1:], strict=False):
            bins = along_posterior(corpus, getattr(model, what))
            pictures.means(ax, bins.centres, bins.means, colour=colour, mark=mark)
        pictures.show_all_lines(ax)
        pictures.name_axes(ax, f"{corpus.name}: {symbol}", pictures.POSTERIOR, symbol)
        if paper is not None:
            pictures.paper_axis(ax, known.BINS, paper)
    pictures.save(figure, settings, PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
