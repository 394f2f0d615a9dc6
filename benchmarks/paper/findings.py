"""What an experiment returns: plain data that the console and the page both print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

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


def at_least(what: str, number: float, limit: float, detail: str = "") -> Check:
    """Return the check that a number is at least `limit`; nan never is."""
    measured = "not defined" if math.isnan(number) else decimals(number)
    return Check(what, f"≥ {limit:g}", measured + (f" {detail}" if detail else ""), number >= limit)


def at_most(what: str, number: float, limit: float, detail: str = "") -> Check:
    """Return the check that a number is at most `limit`; nan never is."""
    measured = "not defined" if math.isnan(number) else decimals(number)
    return Check(what, f"≤ {limit:g}", measured + (f" {detail}" if detail else ""), number <= limit)


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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def checks_table(checks: Sequence[Check]) -> str:
    """Return checks as a Markdown table."""
    rows = [(check.what, check.asked, check.measured, check.verdict) for check in checks]
    return table(("what", "asked", "measured", "verdict"), rows)
