"""A model report as a page of HTML."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from ..comparison import BASELINE_CS, QUALITY_MEASURES, TUNED, Cell, Measure, result_table
from ._explanation_page import MAX_UNFOLDED, spaces
from .formatting import MINUS, aligned
from .pages import render
from .view import views

_MAX_CLASSES = 20  # with a row, column or bars
_MAX_MATRIX = 8  # more classes have a line each instead of a confusion matrix
_N_CONFUSIONS = 15
_N_TAKEN_FOR = 3
_TOP = 8

_MEASURES = (
    *QUALITY_MEASURES,
    Measure("calibration error", "calibration_error", ".4f", min),
    Measure("fit s", "fit_seconds", ".2f", min),
    Measure("predict s", "predict_seconds", ".3f", min),
)
_STYLES = {"ours": "r-us", "floor": "r-floor"}
_SECTIONS = {
    "data": "Data",
    "results": "Results",
    "calibration": "Calibration",
    "confusion": "Confusions",
    "tokens": "Important tokens",
    "mistakes": "Mistakes",
    "labels": "Labels to check",
    "made": "How it was made",
    "reading": "How to read this",
}


def report_html(report: Any, *, fragment: bool) -> str:
    """Return a report as a page, or as an element for another page."""
    sections = dict(_SECTIONS)
    if not any(tokens.important for tokens in report.tokens):
        del sections["tokens"]
    if report.mistakes.n_all and not len(report.mistakes.shown):
        del sections["mistakes"]
    if report.labels is None or report.labels.empty:
        del sections["labels"]
    return render(
        "report/report.html",
        report=report,
        fragment=fragment,
        title=report.title,
        p_text=_p_text,
        max_classes=_MAX_CLASSES,
        parts=sections,
        **_summary(report),
        tuned=TUNED if report.baseline else None,
        tuned_values="{:g}, {:g} and {:g}".format(*BASELINE_CS),
        heads=["model", *(measure.heading for measure in _MEASURES)],
        models=_models(report),
        differences=_differences(report),
        axes=chart_axes(report.calibration, len(report.data.classes)),
        calibration_errors={model.name: model.calibration_error for model in report.models},
        by_class=_by_class(report),
        confused=_confused(report),
        tokens=_token_bars(report),
        mistakes=_mistakes(report),
        labels=[] if report.labels is None else list(report.labels.itertuples()),
    )


def _summary(report: Any) -> dict[str, Any]:
    """Return the values for the summary at the top."""
    ours = report.models[0]
    n_test = report.data.n_test
    baseline = None
    floor = None
    for model in report.models:
        if model.name == report.baseline:
            baseline = model
        elif model.kind == "floor":
            floor = model
    bins = report.calibration[0].bins
    confidence = np.average(bins["confidence"], weights=bins["texts"])
    return {
        "ours": ours,
        "interval": wilson_interval(round(ours.accuracy * n_test), n_test),
        "beside": baseline,
        "difference": None if baseline is None else report.differences.loc[baseline.name],
        "floor": floor,
        "gap": float(100 * (confidence - ours.accuracy)),
    }


def wilson_interval(n_correct: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of the proportion `n_correct` / `n`."""
    interval = binomtest(n_correct, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def _models(report: Any) -> list[tuple[str, str | None, list[Cell]]]:
    """Return the rows of the table of models: name, style and cells."""
    table = result_table(report.models, _MEASURES, missing="–")
    rows = []
    for model, cells in zip(report.models, table, strict=True):
        rows.append((model.name, _STYLES.get(model.kind), cells))
    return rows


def _differences(report: Any) -> list[tuple[Any, None, list[Cell]]]:
    """Return the rows of the table of differences: name, no style and cells."""
    rows = []
    for one in report.differences.itertuples():
        half_width = 196 * one.standard_error  # of the 95% interval, in points
        points = f"{100 * one.accuracy:+.2f} ± {half_width:.2f}".replace("-", MINUS)
        texts = [points, f"{one.only_ours:,}", f"{one.only_other:,}", _p_text(one.p_value)]
        rows.append((one.Index, None, [Cell(text, is_best=False) for text in texts]))
    return rows


def _p_text(p: float) -> str:
    if p < 0.001:
        text = "p < 0.001"
    elif p < 0.1:
        text = f"p = {p:.3f}"
    else:
        text = f"p = {p:.2f}"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _confused(report: Any) -> list[tuple[Any, Any, int, float]]:
    """Return the most frequent confusions: true and predicted class, count, and its proportion."""
    counts = report.confusion[:-1]
    classes = report.data.classes
    wrong = counts - np.diag(np.diag(counts))
    n_shown = min(_N_CONFUSIONS, np.count_nonzero(wrong))
    order = np.argsort(-wrong, axis=None, kind="stable")[:n_shown]
    rows = []
    for true, predicted in zip(*np.unravel_index(order, wrong.shape), strict=True):
        count = int(wrong[true, predicted])
        rows.append((classes[true], classes[predicted], count, count / counts[true].sum()))
    return rows


def _by_class(report: Any) -> list[tuple[Any, float, int, list[tuple[Any, int]], int]]:
    """Return each of many classes with its accuracy and confusions, the least accurate first."""
    classes = report.data.classes
    if len(classes) <= _MAX_MATRIX:
        return []
    rows = []
    for k, counts in enumerate(report.confusion[:-1]):
        total = int(counts.sum())
        accuracy = counts[k] / total if total else 1.0
        order = np.argsort(-counts, kind="stable")
        is_confused = (counts[order] > 0) & (order != k)
        confused = order[is_confused]
        named = [(classes[j], int(counts[j])) for j in confused[:_N_TAKEN_FOR]]
        n_more = int(counts[confused[_N_TAKEN_FOR:]].sum())
        rows.append((classes[k], accuracy, total, named, n_more))
    return sorted(rows, key=lambda row: (row[1], -row[2]))


def _token_bars(report: Any) -> list[tuple[Any, list[tuple[str, float, str]]]]:
    """Return each class's tokens: name, width in percent and size, all on one scale."""
    # 1) All sizes, written with equally many decimals; the sign is always plus.
    sizes: list[float] = []
    for tokens in report.tokens:
        sizes += [size for _, size in tokens.important]
    texts = aligned(sizes)
    text_of_size = dict(zip(sizes, texts, strict=True))
    # 2) The bars of each class.
    classes = []
    for tokens in report.tokens:
        bars = []
        for name, size in tokens.important:
            width = 100 * size / max(sizes)
            bars.append((name, width, text_of_size[size].removeprefix("+")))
        classes.append((tokens.label, bars))
    return classes


def _mistakes(report: Any) -> list[dict[Hashable, Any]]:
    """Return the mistakes that are shown, with views of their explanations."""
    explanation = report.mistakes.explanation
    if explanation is None:
        return []
    rows = report.mistakes.shown.to_dict("records")
    with_deletion = len(explanation) <= MAX_UNFOLDED
    shown = views(explanation, None, _TOP, with_deletion=with_deletion)
    for row, view, space in zip(rows, shown, spaces(shown, can_fold=False), strict=True):
        row["view"] = view
        row["space"] = space
    return rows


@dataclass(frozen=True)
class Axes:
    """The axes of a chart: x from 1 / n_classes to 1, y from `lowest` to `highest`."""

    start: float
    lowest: float
    highest: float
    values: list[tuple[float, str]]  # numbers with a grid line, and their labels
    # About the width of a phone, so that labels keep their size there.
    width: int = 360
    height: int = 290
    left: int = 44  # the ends of the x axis
    right: int = 350
    top: int = 12  # the ends of the y axis
    floor: int = 248

    @property
    def shares(self) -> list[float]:
        """The tick labels of the x axis."""
        step = 0.1 if self.start >= 0.45 else 0.2
        first = math.ceil(self.start / step - 1e-9)  # in steps; rounding must not skip one
        last = round(1 / step)
        return [number * step for number in range(first, last + 1)]

    def x(self, share: float) -> float:
        """Return the x coordinate of a share."""
        return self.left + (self.right - self.left) * (share - self.start) / (1.0 - self.start)

    def y(self, value: float) -> float:
        """Return the y coordinate of a number."""
        part = (value - self.lowest) / (self.highest - self.lowest)
        return self.floor - (self.floor - self.top) * part


def chart_axes(curves: list[Any], n_classes: int) -> tuple[Axes, Axes]:
    """Return the axes of accuracy, and of numbers of texts, by confidence."""
    start = 1.0 / n_classes
    lowest = min(start, curves[0].bins["low"].min())  # accuracy
    highest = 0  # number of texts
    for curve in curves:
        lowest = min(lowest, curve.bins["right"].min())
        highest = max(highest, *curve.histogram)
    # 1) Accuracy: every 10 or 20 percent.
    n_steps = 10 if lowest >= 0.4 else 5
    first = max(0, math.floor(lowest * n_steps))
    shares = []
    for number in range(first, n_steps + 1):
        share = number / n_steps
        shares.append((share, f"{share:.0%}"))
    accuracy = Axes(start, first / n_steps, 1.0, shares)
    # 2) Numbers of texts: about four steps of a round number, at least 1.
    step = _round_step(max(highest, 1) / 4)
    n_steps = math.ceil(highest / step)
    counts = []
    for number in range(n_steps + 1):
        count = step * number
        label = f"{count / 1000:g}k" if count >= 1000 else f"{count:g}"
        counts.append((count, label))
    numbers = Axes(start, 0.0, step * n_steps, counts)
    return accuracy, numbers


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times powers of 10 that is at least `least` and 1."""
    power = 10.0 ** math.floor(math.log10(least))
    step = power
    for times in (1, 2, 2.5, 5, 10):
        step = power * times
        if step >= least:
            break
    return max(step, 1.0)
