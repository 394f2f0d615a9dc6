"""A model report as a page of HTML."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from ..comparison import BASELINE_CS, TUNED, shown_measure
from ._explanation_page import MAX_UNFOLDED, spaces
from .formatting import MINUS, aligned
from .pages import render
from .view import views

_MAX_CLASSES = 20  # with a row, column or bars
_MAX_MATRIX = 8  # more classes have a line each instead of a confusion matrix
_N_CONFUSIONS = 15
_N_TAKEN_FOR = 3
_TOP = 8

# Heading, field, format and which value is the best.
_COLUMNS: tuple[tuple[str, str, str, Any], ...] = (
    ("accuracy", "accuracy", ".4f", max),
    ("macro F1", "macro_f1", ".4f", max),
    ("log loss", "log_loss", ".4f", min),
    ("calibration error", "calibration_error", ".4f", min),
    ("fit s", "fit_seconds", ".2f", min),
    ("predict s", "predict_seconds", ".3f", min),
)
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
    empty = {
        "tokens": not any(of.important for of in report.tokens),
        "mistakes": bool(report.mistakes.n_all and not len(report.mistakes.shown)),
        "labels": report.labels is None or report.labels.empty,
    }
    return render(
        "report/report.html",
        report=report,
        fragment=fragment,
        title=report.title,
        p_text=_p_text,
        max_classes=_MAX_CLASSES,
        parts={key: title for key, title in _SECTIONS.items() if not empty.get(key)},
        **_summary(report),
        tuned=TUNED if report.baseline else None,
        tuned_values="{:g}, {:g} and {:g}".format(*BASELINE_CS),
        heads=["model", *(head for head, *_ in _COLUMNS)],
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
    ours, n_test = report.models[0], report.data.n_test
    beside = next((one for one in report.models if one.name == report.baseline), None)
    bins = report.calibration[0].bins
    confidence = np.average(bins["confidence"], weights=bins["texts"])
    return {
        "ours": ours,
        "interval": wilson_interval(round(ours.accuracy * n_test), n_test),
        "beside": beside,
        "difference": None if beside is None else report.differences.loc[beside.name],
        "floor": next((model for model in report.models if model.kind == "floor"), None),
        "gap": float(100 * (confidence - ours.accuracy)),
    }


def wilson_interval(n_right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of the share `n_right` / `n`."""
    interval = binomtest(n_right, n).proportion_ci(method="wilson")
    return float(interval.low), float(interval.high)


def _models(report: Any) -> list[tuple[str, str | None, tuple[Any, ...]]]:
    """Return the rows of the table of models: name, style, and (text, whether best) of columns."""
    columns = [shown_measure(report.models, "–", *column) for _, *column in _COLUMNS]
    styles = {"ours": "r-us", "floor": "r-floor"}
    rows = zip(report.models, zip(*columns, strict=True), strict=True)
    return [(model.name, styles.get(model.kind), cells) for model, cells in rows]


def _differences(report: Any) -> list[tuple[Any, None, list[tuple[str, bool]]]]:
    """Return rows of the table of differences, in the form of those of `_models`."""
    rows = []
    for one in report.differences.itertuples():
        points = f"{100 * one.accuracy:+.2f} ± {196 * one.standard_error:.2f}".replace("-", MINUS)
        cells = points, f"{one.only_ours:,}", f"{one.only_other:,}", _p_text(one.p_value)
        rows.append((one.Index, None, [(text, False) for text in cells]))
    return rows


def _p_text(p: float) -> str:
    text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _confused(report: Any) -> list[tuple[Any, Any, int, float]]:
    """Return the most frequent confusions: true, predicted, texts, share of the true class."""
    counts, classes = report.confusion[:-1], report.data.classes
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[: min(_N_CONFUSIONS, (wrong > 0).sum())]
    return [
        (classes[i], classes[j], int(wrong[i, j]), wrong[i, j] / counts[i].sum())
        for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)
    ]


def _by_class(report: Any) -> list[tuple[Any, float, int, list[tuple[Any, int]], int]]:
    """Return, of many classes, those with the smallest share of right predictions first."""
    classes = report.data.classes
    if len(classes) <= _MAX_MATRIX:
        return []
    rows = []
    for k, counts in enumerate(report.confusion[:-1]):
        total = int(counts.sum())
        wrong = [j for j in np.argsort(-counts, kind="stable") if counts[j] and j != k]
        others = [(classes[j], int(counts[j])) for j in wrong[:_N_TAKEN_FOR]]
        more = int(counts[wrong[_N_TAKEN_FOR:]].sum())
        rows.append((classes[k], counts[k] / total if total else 1.0, total, others, more))
    return sorted(rows, key=lambda row: (row[1], -row[2]))


def _token_bars(report: Any) -> list[tuple[Any, list[tuple[str, float, str]]]]:
    """Return each class's tokens: name, width in percent and size, all on one scale."""
    sizes = [size for of in report.tokens for _, size in of.important]
    written = iter(aligned(sizes))  # with equally many decimals; the sign is always plus
    return [
        (of.label, [(name, 100 * n / max(sizes), next(written)[1:]) for name, n in of.important])
        for of in report.tokens
    ]


def _mistakes(report: Any) -> list[dict[Hashable, Any]]:
    """Return the mistakes that are shown, with views of their explanations."""
    explanation, rows = report.mistakes.explanation, report.mistakes.shown.to_dict("records")
    if explanation is None:
        return []
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
        first = math.ceil(self.start / step - 1e-9)
        return [at * step for at in range(first, round(1 / step) + 1)]

    def x(self, share: float) -> float:
        """Return the x coordinate of a share."""
        return self.left + (self.right - self.left) * (share - self.start) / (1.0 - self.start)

    def y(self, value: float) -> float:
        """Return the y coordinate of a number."""
        part = (value - self.lowest) / (self.highest - self.lowest)
        return self.floor - (self.floor - self.top) * part


def chart_axes(curves: list[Any], n_classes: int) -> tuple[Axes, Axes]:
    """Return the axes of shares of right predictions, and of numbers of texts, by confidence."""
    start = 1.0 / n_classes
    lowest = min(start, curves[0].bins["low"].min(), *(one.bins["right"].min() for one in curves))
    steps = 10 if lowest >= 0.4 else 5
    first = max(0, math.floor(lowest * steps))
    shares = [(at / steps, f"{at / steps:.0%}") for at in range(first, steps + 1)]
    highest = max(max(curve.histogram) for curve in curves)
    rough = max(highest, 1) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= rough)
    step = max(step, 1.0)
    counts = [step * at for at in range(math.ceil(highest / step) + 1)]
    numbers = [(n, f"{n / 1000:g}k" if n >= 1000 else f"{n:g}") for n in counts]
    return Axes(start, first / steps, 1.0, shares), Axes(start, 0.0, counts[-1], numbers)
