"""A model report in a few sentences."""

from __future__ import annotations

from html import escape
from math import sqrt
from typing import TYPE_CHECKING

from ..rendering.legible import percent
from .markup import p_text

if TYPE_CHECKING:
    from .model_report import ModelReport

# The usual line between what chance explains and what it does not.
_UNLIKELY = 0.05


def summary_sentences(report: ModelReport) -> list[str]:
    """Return what a reader in a hurry should know.

    Parameters
    ----------
    report : ModelReport
        The report.

    Returns
    -------
    sentences : list of str
        As HTML.
    """
    ours, n_test = report.models[0], report.data.n_test
    margin = 1.96 * sqrt(ours.accuracy * (1 - ours.accuracy) / n_test)
    sentences = [
        f"On {n_test:,} test text{'s' * (n_test != 1)} our model finds the right one of "
        f"{len(report.data.classes)} classes for <b>{percent(ours.accuracy)}</b>"
        f" (±\N{NO-BREAK SPACE}{100 * margin:.1f}\N{NO-BREAK SPACE}points)."
    ]
    beside = next((one for one in report.differences if one.other == report.baseline), None)
    if beside is not None:
        theirs = next(model for model in report.models if model.name == report.baseline)
        n_baselines = sum(model.kind == "baseline" for model in report.models)
        which = ", the stronger of two baselines," if n_baselines == 2 else ""
        points = 100 * abs(beside.accuracy)
        side = "more" if beside.accuracy < 0 else "fewer"
        gap = f"{points:.2f} points {side} than ours" if beside.accuracy else "the same as ours"
        chance = (
            "more than chance explains"
            if beside.p_value < _UNLIKELY
            else "no more than chance explains"
        )
        sentences.append(
            f"{escape(theirs.name)}{which} reaches <b>{percent(theirs.accuracy)}</b>, {gap}"
            + (f": {chance} ({escape(p_text(beside.p_value))})." if beside.accuracy else ".")
        )
    floor = next(model for model in report.models if model.kind == "floor")
    sentences.append(
        f"Always naming the most frequent class would reach <b>{percent(floor.accuracy)}</b>."
    )
    curve = report.calibration[0]
    total = sum(curve.texts)
    confidence = sum(n * mean for n, mean in zip(curve.texts, curve.confidence, strict=True))
    gap_in_points = 100 * (confidence / total - ours.accuracy)
    if abs(gap_in_points) < 0.5:
        leaning = "about as sure of itself as it should be"
    else:
        leaning = "too sure of itself" if gap_in_points > 0 else "too modest"
        leaning += f" by {abs(gap_in_points):.1f} points"
    sentences.append(f"Our model's probabilities are, on average, {leaning}.")
    return sentences
