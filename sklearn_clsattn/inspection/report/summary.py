"""A model report in a few sentences."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ..rendering.legible import percent
from .markup import p_text
from .statistics import wilson_interval

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
    n_right = np.array([ours.accuracy * n_test])
    low, high = (float(end[0]) for end in wilson_interval(n_right, np.array([n_test])))
    sentences = [
        f"On {n_test:,} test text{'s' * (n_test != 1)} our model finds the right one of "
        f"{len(report.data.classes)} classes for <b>{percent(ours.accuracy)}</b>"
        f" (95% interval: {percent(low)} to {percent(high)})."
    ]
    beside = next((one for one in report.differences if one.other == report.baseline), None)
    if beside is not None:
        theirs = next(model for model in report.models if model.name == report.baseline)
        n_baselines = sum(model.kind == "baseline" for model in report.models)
        tied = sum(
            model.kind == "baseline" and model.accuracy == theirs.accuracy
            for model in report.models
        )
        which = ", the stronger of two baselines," if n_baselines == 2 and tied < 2 else ""
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
        leaning = "about as sure of its predictions as it should be"
    else:
        leaning = "too sure of its predictions" if gap_in_points > 0 else "too modest"
        leaning += f" by {abs(gap_in_points):.1f} points"
    sentences.append(f"On average our model is {leaning}.")
    return sentences
