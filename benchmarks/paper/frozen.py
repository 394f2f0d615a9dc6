"""Frozen random embeddings, only p and v trained, against everything trained."""

from __future__ import annotations

import sys

from sklearn_clsattn.paper import FrozenEmbeddingClassifier

from . import known, pictures
from .data import Corpus, Settings, load
from .findings import Check, Section, at_least, at_most, reported, table
from .models import Fit, fit, joint_parameters, trained_jointly
from .run import alone

PICTURE = "paper_frozen.png"
CORPORA = ("IMDB", "Yelp")
DIMENSIONS = (64, 256, known.EMBEDDING_DIM)
# Asked before the run: frozen is clearly worse like for like, and its loss near the paper's.
LEAST_GAP = 0.1
PAPER_LOSS, MOST_OFF = 0.6, 0.1

Curves = dict[int, dict[int, Fit]]


def run(settings: Settings) -> Section:
    """Train p and v over random embeddings of several dimensions, for more and more iterations."""
    dimensions = settings.pick(DIMENSIONS, (8, 64))
    iterations = settings.pick((1, 2, 5, 10, 20, 50), (2, 20))
    rows: list[tuple[str, ...]] = []
    checks: list[Check] = []
    drawn: list[tuple[Corpus, Fit, Fit, Curves]] = []
    gaps = {}
    for name in CORPORA:
        corpus = load(name, settings)
        joint = trained_jointly(corpus, settings)
        curves = {
            dimension: {n: frozen(corpus, dimension, n) for n in iterations}
            for dimension in dimensions
        }
        for dimension, curve in curves.items():
            accuracies = (f"{model.accuracy:.3f}" for model in curve.values())
            last = curve[iterations[-1]]
            rows.append((corpus.name, f"frozen, d = {dimension}", *accuracies, _loss(last)))
        blanks = [""] * (len(iterations) - 1)
        same = fit(corpus, **{**joint_parameters(settings), "train_embeddings": False})
        drawn.append((corpus, joint, same, curves))
        rows.append(
            (
                corpus.name,
                f"frozen, d = {dimensions[-1]}, by Adam, {same.n_iter} steps",
                *blanks,
                f"{same.accuracy:.3f}",
                _loss(same),
            )
        )
        rows.append(
            (
                corpus.name,
                f"everything, by Adam, {joint.n_iter} steps",
                *blanks,
                f"{joint.accuracy:.3f}",
                _loss(joint),
            )
        )
        widest = curves[dimensions[-1]]
        gaps[name] = joint.accuracy - same.accuracy
        against = f"({same.accuracy:.3f} against {joint.accuracy:.3f}; paper: about 0.23)"
        checks += [
            at_least(
                f"{name}: frozen, like for like by Adam, accuracy below everything trained's",
                gaps[name],
                LEAST_GAP,
                against,
            ),
            at_most(
                f"{name}: frozen, like for like by Adam, test loss off the paper's about 0.6",
                abs(same.test_loss - PAPER_LOSS),
                MOST_OFF,
                f"(loss {same.test_loss:.3f})",
            ),
            reported(
                f"{name}: frozen, d = {dimensions[-1]}, by L-BFGS with a ridge, accuracies on the "
                "way",
                f"{min(m.accuracy for m in widest.values()):.3f} to "
                f"{max(m.accuracy for m in widest.values()):.3f}",
                "about 0.72",
            ),
            at_least(
                f"{name}: everything trained, accuracy",
                joint.accuracy,
                known.TRAINED_ACCURACY,
                "(paper: about 0.95, data set not named)",
            ),
        ]
    _draw(settings, drawn)
    header = (
        "data",
        "trained",
        *(f"{n} iteration{'s' if n > 1 else ''}" for n in iterations),
        "test loss at the end",
    )
    return Section(
        "frozen",
        "Frozen embeddings",
        "With random embeddings that stay as drawn, and only p and the classifier's weights "
        "trained, test accuracy is about 72 % (error about 0.6); with everything trained about "
        "95 % (error about 0.1). The data set is not named.",
        "Test accuracy. The last two rows of each data set are like for like: the same full-batch "
        "Adam with the same early stopping, on p and v alone or on everything. The others train p "
        "and v by L-BFGS with the package's default penalties.\n\n" + table(header, rows),
        _conclusion(gaps),
        checks,
        PICTURE,
        "Test accuracy over iterations with frozen random embeddings of three dimensions; the "
        "solid lines are everything trained, and p and v alone, by the same Adam; the dashed ones "
        "are the paper's numbers.",
    )


def frozen(corpus: Corpus, dimension: int, max_iter: int) -> Fit:
    """Train p and v only."""
    return fit(
        corpus, FrozenEmbeddingClassifier, embedding_dim=dimension, max_iter=max_iter, tol=0.0
    )


def _loss(model: Fit) -> str:
    return f"{model.test_loss:.3f}"


def _conclusion(gaps: dict[str, float]) -> str:
    measured = ", ".join(f"{100 * gap:.1f} points on {name}" for name, gap in gaps.items())
    return (
        f"Like for like, frozen embeddings are {measured} below everything trained, as the paper "
        "reports. They are not as bad as that by themselves: a better optimiser (L-BFGS, run on) "
        "with a ridge makes up most of it, so the gap is one of training under the same budget, "
        "not of what random embeddings can express. 95 % on IMDB is not reached by anything here, "
        "whatever is trained, nor by the linear baselines of the benchmark."
    )


def _draw(settings: Settings, drawn: list[tuple[Corpus, Fit, Fit, Curves]]) -> None:
    figure, axes = pictures.grid(1, len(drawn), width=4.6, height=3.4)
    for ax, (corpus, joint, same, curves) in zip(axes[0], drawn, strict=True):
        for (dimension, curve), colour, mark in zip(
            curves.items(), pictures.COLOURS, pictures.MARKS, strict=False
        ):
            accuracies = [100 * model.accuracy for model in curve.values()]
            pictures.means(
                ax,
                list(curve),
                accuracies,
                colour=colour,
                mark=mark,
                label=f"frozen, d = {dimension}, by L-BFGS",
            )
        first = min(next(iter(curves.values())))
        last = max(next(iter(curves.values())))
        for model, words, x, side, above in (
            (joint, "everything trained, by Adam", first, "left", False),
            (same, "frozen, by the same Adam", last, "right", True),
        ):
            ax.axhline(100 * model.accuracy, color=pictures.BLACK, linewidth=1.3)
            ax.text(
                x,
                100 * model.accuracy + (0.4 if above else -0.4),
                words,
                fontsize=8.5,
                horizontalalignment=side,
                verticalalignment="bottom" if above else "top",
            )
        for number, words in (
            (known.FROZEN_ACCURACY, "frozen"),
            (known.TRAINED_ACCURACY, "trained"),
        ):
            ax.axhline(100 * number, color=pictures.GREY, linewidth=1, linestyle="--")
            ax.text(
                first,
                100 * number + 0.4,
                f"paper: {words}",
                fontsize=8.5,
                color="#666666",
            )
        ax.set_xscale("log")
        ax.set_ylim(51, 98)
        ticks = list(next(iter(curves.values())))
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        pictures.name_axes(ax, corpus.name, "iterations of L-BFGS", "test accuracy, %")
        pictures.legend(ax, loc="lower right")
    pictures.save(figure, settings.images / PICTURE)


if __name__ == "__main__":
    sys.exit(alone(run))
