"""A document's decision drawn as bars, from the intercept to the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from .displays import AGAINST, FOR, NEUTRAL, few_ticks, set_labels, shown
from .formatting import MINUS, percent, signed
from .view import View

_INCHES = 5.2  # the width of a new figure, without names
_PER_CHARACTER = 0.075  # inches of a name
_MARGIN = 0.16  # of the width of all bars, on either side, for numbers
_ROOM = 1.0  # bars' heights, above and below, for the names of decision and intercept


def draw_waterfall(view: View, max_display: int, ax: Any) -> Any:
    """Draw a document's contributions as bars, the strongest on top; return the axes."""
    import matplotlib.pyplot as plt

    # 1) The bars' names and lengths, and where they start, from the intercept upwards.
    names, lengths = _bars(view, max_display)
    widths = np.array(lengths)
    stops = view.start + np.cumsum(widths[::-1])[::-1]
    starts = stops - widths
    # 2) The bars, joined by lines, with their numbers.
    if ax is None:
        width = _INCHES + _PER_CHARACTER * max(map(len, names), default=0)
        height = 1.5 + 0.27 * max(len(names), 3)
        ax = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    slots = np.arange(len(names))
    colors = np.where(widths > 0, FOR, AGAINST).tolist()
    bars = ax.barh(slots, widths, left=starts, color=colors, height=0.72, linewidth=0, zorder=2)
    joints = np.append(stops, view.start)
    below = np.append(slots, len(names))
    ax.vlines(joints, below - 1, below, color=NEUTRAL, linewidth=0.7, zorder=1)
    ax.bar_label(bars, [signed(length, MINUS) for length in lengths], padding=3, fontsize=8)
    # 3) Where the bars start and end, and where two classes are level.
    ends = [view.start, view.end, *starts, *stops]
    if view.is_binary:
        ends.append(0.0)
        ax.axvline(0.0, color=NEUTRAL, linewidth=0.7, linestyle=":", zorder=0)
    margin = _MARGIN * ((max(ends) - min(ends)) or 1.0)
    ax.set_xlim(min(ends) - margin, max(ends) + margin)
    ax.set_ylim(len(names) - 0.4 + _ROOM, -0.6 - _ROOM)
    _write_end(ax, view.end, -1.05, f"decision {signed(view.end, MINUS)}")
    _write_end(ax, view.start, len(names) + 0.05, f"intercept {signed(view.start, MINUS)}")
    # 4) The names.
    ax.set_yticks(slots, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    few_ticks(ax.xaxis, 6)
    title = f"Document {view.number}: predicted {shown(view.predicted_name, 20)}"
    if view.probability is not None:
        title += f" ({percent(view.probability)})"
    set_labels(ax, title, _axis_label(view))
    return ax


def _bars(view: View, max_display: int) -> tuple[list[str], list[float]]:
    """Return the names and contributions of the strongest tokens, and of all others together."""
    strongest = sorted(view.tokens, key=lambda token: -abs(token.contribution))
    n_named = len(strongest) if len(strongest) <= max_display else max_display - 1
    names = []
    lengths = []
    for token in strongest[:n_named]:
        names.append(shown(token.name))
        lengths.append(token.contribution)
    others = strongest[n_named:]
    if others:
        ending = "" if len(others) == 1 else "s"
        names.append(f"{len(others):,} other token{ending}")
        lengths.append(sum(token.contribution for token in others))
    return names, lengths


def _write_end(ax: Any, value: float, slot: float, words: str) -> None:
    """Write words at a value, inside of the axes."""
    # 1) On which side of the value there is space.
    low, high = ax.get_xlim()
    share = (value - low) / (high - low)
    alignment = "center"
    offset = 0
    if share < 0.25:
        alignment = "left"
        offset = 3
    elif share > 0.75:
        alignment = "right"
        offset = -3
    # 2) The words.
    ax.annotate(
        words,
        (value, slot),
        xytext=(offset, 0),
        textcoords="offset points",
        ha=alignment,
        va="center",
        fontsize=9,
        parse_math=False,
    )


def _axis_label(view: View) -> str:
    """Return the name of a view's decision, for its axis."""
    if view.other is not None:
        measure = "log-odds" if view.has_attention else "decision"
        return f"{measure} of {shown(view.target, 20)} against {shown(view.other, 20)}"
    return f"decision for {shown(view.target, 32)}"
