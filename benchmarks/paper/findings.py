"""What an experiment returns: plain data that the console and the page both print."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .thresholds import THRESHOLDS

HOLDS, FAILS, REPORTED = "holds", "**fails**", "reported"


@dataclass(frozen=True)
class Check:
    """One statement: what was asked, what came, and whether it holds (None: nothing was asked).

    Attributes
    ----------
    what, asked, measured : str
        As a table says it.

    holds : bool or None
        None where a number is only reported.
    """

    what: str
    asked: str
    measured: str
    holds: bool | None = None

    @property
    def verdict(self) -> str:
        """The verdict as a table says it."""
        if self.holds is None:
            return REPORTED
        return HOLDS if self.holds else FAILS


@dataclass(frozen=True)
class Section:
    """One figure or table made again.

    Attributes
    ----------
    name, title : str
        The script's name, and the heading.

    paper, measured : str
        Markdown: what the paper reports, and what was measured.

    conclusion : str
        Markdown: where the two agree and where they do not.

    checks : sequence of Check
        In the summary table, too.

    picture, caption : str
        File name of the picture, or "", and what is seen in it.

    seconds : float
        What the experiment took.
    """

    name: str
    title: str
    paper: str
    measured: str
    conclusion: str
    checks: Sequence[Check] = field(default_factory=tuple)
    picture: str = ""
    caption: str = ""
    seconds: float = 0.0


def asked(what: str, threshold: str, numbers: Any, detail: str = "") -> Check:
    """Return whether the numbers of all seeds (or the only one) meet a threshold of the table."""
    limit = THRESHOLDS[threshold]
    numbers = np.atleast_1d(np.asarray(numbers, dtype=float))
    form = scientific if limit.limit < 0.01 else decimals
    measured = spread(numbers, form) + (f" {detail}" if detail else "")
    return Check(what, limit.words, measured, all(limit.met(number) for number in numbers))


def spread(numbers: Any, form: Callable[[float], str] | None = None) -> str:
    """Return the mean over seeds, and the least and the largest in brackets if they differ."""
    form = form or decimals
    numbers = np.atleast_1d(np.asarray(numbers, dtype=float))
    if np.isnan(numbers).any():
        n_missing = int(np.isnan(numbers).sum())
        return "not defined" + (f" in {n_missing} of {len(numbers)}" if len(numbers) > 1 else "")
    low, mean, high = (form(float(each)) for each in (numbers.min(), numbers.mean(), numbers.max()))
    return mean if low == high else f"{mean} ({low} to {high})"


def reported(what: str, measured: str, paper: str = "–") -> Check:
    """Return a number that nothing is asked of, beside the paper's."""
    return Check(what, f"paper: {paper}" if paper != "–" else paper, measured)


def decimals(number: float) -> str:
    """Return a number with three figures after the point, never rounded up to what it is not.

    0.9996 would read 1.000: a threshold of 1 might seem to hold where it does not.
    """
    if not math.isfinite(number):
        return "–"
    text = f"{number:.3f}"
    if abs(number) < 1 and text.lstrip("-") == "1.000":
        text = ("-" if number < 0 else "") + "0.999"
    return "0.000" if text == "-0.000" else text


def scientific(number: float) -> str:
    """Return a number near 0 in two figures."""
    return f"{number:.1e}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def checks_table(checks: Sequence[Check]) -> str:
    """Return checks as a Markdown table."""
    rows = [(check.what, check.asked, check.measured, check.verdict) for check in checks]
    return table(("what", "asked", "measured", "verdict"), rows)
