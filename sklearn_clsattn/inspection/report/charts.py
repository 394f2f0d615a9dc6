"""The charts of a model report, drawn as SVG that takes its colours from the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..rendering.legible import percent
from ..rendering.markup import escaped
from .statistics import N_BINS, CalibrationCurve

# About the width of a phone, so that letters keep their size there.
_WIDTH, _HEIGHT = 360, 290
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 12, 42


class _Axes:
    """Places on the drawing for shares from `start` to 1 across, and from 0 to `highest` up."""

    def __init__(self, start: float, lowest: float, highest: float) -> None:
        self.start, self.lowest, self.highest = start, lowest, highest

    def x(self, share: float) -> float:
        width = _WIDTH - _LEFT - _RIGHT
        return _LEFT + width * (share - self.start) / (1.0 - self.start)

    def y(self, value: float) -> float:
        height = _HEIGHT - _TOP - _BOTTOM
        part = (value - self.lowest) / (self.highest - self.lowest)
        return _HEIGHT - _BOTTOM - height * part

    def frame(self, ticks: Sequence[tuple[float, str]], across: str) -> str:
        """Return the grid, and the labels of both axes."""
        floor = _HEIGHT - _BOTTOM
        parts = []
        for value, label in ticks:
            here = self.y(value)
            parts.append(_line("r-grid", _LEFT, here, _WIDTH - _RIGHT, here))
            parts.append(_text(_LEFT - 7, here + 4, label, "end"))
        for share in _shares(self.start):
            parts.append(_line("r-axis", self.x(share), floor, self.x(share), floor + 4))
            parts.append(_text(self.x(share), floor + 17, f"{share:.0%}", "middle"))
        parts.append(_line("r-axis", _LEFT, floor, _WIDTH - _RIGHT, floor))
        parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 5, across, "middle"))
        return "".join(parts)


def calibration_chart(curves: Sequence[CalibrationCurve], n_classes: int) -> str:
    """Return the calibration curves of one or two models.

    Parameters
    ----------
    curves : sequence of CalibrationCurve
        Ours, and the baseline's if there is one.
    n_classes : int
        Number of classes, of which the most probable has at least its share.

    Returns
    -------
    svg : str
        The drawing, with a title and a description.
    """
    start = 1.0 / n_classes
    lowest = min([start, *(min(curve.low) for curve in curves[:1])])
    lowest = min([lowest, *(min(curve.accuracy) for curve in curves)])
    steps = 10 if lowest >= 0.4 else 5
    lowest = max(0.0, math.floor(lowest * steps) / steps)
    axes = _Axes(start, lowest, 1.0)
    ticks = [(at / steps, f"{at / steps:.0%}") for at in range(steps + 1) if at / steps >= lowest]
    parts = [
        axes.frame(ticks, "confidence in the predicted class"),
        _line("r-ideal", axes.x(start), axes.y(max(start, lowest)), axes.x(1.0), axes.y(1.0)),
    ]
    # The baseline first, so that our points are never hidden.
    for at, curve in reversed(list(enumerate(curves))):
        points = list(zip(curve.confidence, curve.accuracy, strict=True))
        path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in points)
        if not at:
            for x, low, high in zip(curve.confidence, curve.low, curve.high, strict=True):
                parts.append(_line("r-s0 r-range", axes.x(x), axes.y(low), axes.x(x), axes.y(high)))
        parts.append(f'<polyline class="r-s{at} r-line" points="{path}"></polyline>')
        for (x, y), texts in zip(points, curve.texts, strict=True):
            said = f"{curve.name}: {texts:,} texts, confidence {percent(x)}, right {percent(y)}"
            parts.append(_marker(at, axes.x(x), axes.y(y), said))
    said = "; ".join(
        f"{curve.name}: "
        + ", ".join(
            f"{percent(x)} confident, {percent(y)} right"
            for x, y in zip(curve.confidence, curve.accuracy, strict=True)
        )
        for curve in curves
    )
    title = "Share of right predictions by confidence"
    return _svg("clsreport-calibration", title, f"{title}. {said}.", "".join(parts))


def confidence_chart(curves: Sequence[CalibrationCurve], n_classes: int) -> str:
    """Return how many texts the models are so confident of.

    Parameters
    ----------
    curves : sequence of CalibrationCurve
        Ours, and the baseline's if there is one.
    n_classes : int
        Number of classes.

    Returns
    -------
    svg : str
        The drawing, with a title and a description.
    """
    start = 1.0 / n_classes
    ticks = _counts(max(max(curve.histogram) for curve in curves))
    axes = _Axes(start, 0.0, ticks[-1])
    step = (1.0 - start) / N_BINS
    parts = [
        axes.frame([(tick, _short(tick)) for tick in ticks], "confidence in the predicted class")
    ]
    share = 0.8 / len(curves)
    for at, curve in enumerate(curves):
        for place, texts in enumerate(curve.histogram):
            left = start + step * (place + 0.1 + share * at)
            x, width = axes.x(left), axes.x(left + step * share) - axes.x(left)
            top, floor = axes.y(texts), _HEIGHT - _BOTTOM
            # A line of its own has no room in a thin bar.
            inset = 0.7 * at
            said = (
                f"{curve.name}: {texts:,} texts with confidence {percent(start + step * place)} to "
                f"{percent(start + step * (place + 1))}"
            )
            if texts:
                parts.append(
                    f'<rect class="r-s{at} r-bar" x="{x + inset:.1f}" y="{top:.1f}" '
                    f'width="{max(width - 2 * inset, 0.5):.1f}" '
                    f'height="{max(floor - top, 0.5):.1f}"><title>{escaped(said)}</title></rect>'
                )
    title = "Number of test texts by confidence"
    said = "; ".join(
        f"{curve.name}: {', '.join(f'{texts:,}' for texts in curve.histogram)}" for curve in curves
    )
    said = f"{title}, in {N_BINS} bins from {percent(start)} to 100%. {said}."
    return _svg("clsreport-confidence", title, said, "".join(parts))


def key_mark(series: int) -> str:
    """Return what one model looks like in the charts.

    Parameters
    ----------
    series : {0, 1}
        Ours, or the baseline.

    Returns
    -------
    svg : str
        A short piece of its line.
    """
    return (
        '<svg viewBox="0 0 36 14" aria-hidden="true">'
        f'<polyline class="r-s{series} r-line" points="0,7 36,7"></polyline>'
        f"{_marker(series, 18, 7, '')}</svg>"
    )


def _svg(name: str, title: str, description: str, inner: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escaped(title)}'
        f'</title><desc id="{name}-desc">{escaped(description)}</desc>{inner}</svg>'
    )


def _marker(series: int, x: float, y: float, said: str) -> str:
    title = f"<title>{escaped(said)}</title>" if said else ""
    if series:
        return (
            f'<rect class="r-s1 r-dot" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8">'
            f"{title}</rect>"
        )
    return f'<circle class="r-s0 r-dot" cx="{x:.1f}" cy="{y:.1f}" r="5">{title}</circle>'


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"></line>'


def _text(x: float, y: float, said: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escaped(said)}</text>'


def _shares(start: float) -> list[float]:
    """Return the shares to name below the axis, which starts wherever 1 / n_classes is."""
    step = 0.1 if start >= 0.45 else 0.2
    first = math.ceil(start / step - 1e-9)
    return [at * step for at in range(first, round(1 / step) + 1)]


def _counts(highest: int) -> list[float]:
    """Return round numbers from 0 to `highest` or above."""
    rough = max(highest, 1) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= rough)
    step = max(step, 1.0)
    return [step * at for at in range(math.ceil(highest / step) + 1)]


def _short(count: float) -> str:
    return f"{count / 1000:g}k" if count >= 1000 else f"{count:g}"
