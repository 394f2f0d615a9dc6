"""Coordinates of a report's charts, which templates draw as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .data import CalibrationCurve

_TOP, _BOTTOM = 12, 42


@dataclass(frozen=True)
class Axes:
    """The axes of a chart: x from `start` to 1, y from `lowest` to `highest`."""

    start: float
    lowest: float
    highest: float
    values: list[tuple[float, str]]  # numbers with a grid line, and their labels
    # About the width of a phone, so that labels keep their size there.
    width: int = 360
    height: int = 290
    left: int = 44  # the ends of the x axis
    right: int = 350

    @property
    def floor(self) -> int:
        """The y coordinate of the x axis."""
        return self.height - _BOTTOM

    @property
    def shares(self) -> list[float]:
        """The tick labels of the x axis, which starts at 1 / n_classes."""
        step = 0.1 if self.start >= 0.45 else 0.2
        first = math.ceil(self.start / step - 1e-9)
        return [at * step for at in range(first, round(1 / step) + 1)]

    def x(self, share: float) -> float:
        """Return the x coordinate of a share."""
        return self.left + (self.right - self.left) * (share - self.start) / (1.0 - self.start)

    def y(self, value: float) -> float:
        """Return the y coordinate of a number."""
        part = (value - self.lowest) / (self.highest - self.lowest)
        return self.floor - (self.floor - _TOP) * part


def calibration_axes(curves: Sequence[CalibrationCurve], n_classes: int) -> Axes:
    """Return the axes of shares of right predictions, for every point and our intervals."""
    start = 1.0 / n_classes
    lowest = min([start, *curves[0].low, *(share for curve in curves for share in curve.accuracy)])
    steps = 10 if lowest >= 0.4 else 5
    first = max(0, math.floor(lowest * steps))
    ticks = [(at / steps, f"{at / steps:.0%}") for at in range(first, steps + 1)]
    return Axes(start, first / steps, 1.0, ticks)


def confidence_axes(curves: Sequence[CalibrationCurve], n_classes: int) -> Axes:
    """Return the axes of numbers of texts, with round ticks from 0 to the highest or above."""
    highest = max(max(curve.histogram) for curve in curves)
    rough = max(highest, 1) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= rough)
    step = max(step, 1.0)
    counts = [step * at for at in range(math.ceil(highest / step) + 1)]
    ticks = [(n, f"{n / 1000:g}k" if n >= 1000 else f"{n:g}") for n in counts]
    return Axes(1.0 / n_classes, 0.0, counts[-1], ticks)
