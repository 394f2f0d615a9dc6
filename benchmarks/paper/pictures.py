"""How the pictures look: tokens in light grey, means over bins on top, the same in all of them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from .shapes import Bins

if TYPE_CHECKING:
    from .data import Settings

# Okabe and Ito's palette, apart for colour-blind readers; marks differ as well.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS = (BLUE, ORANGE, GREEN, PINK)
MARKS = ("o", "s", "^", "D")
GREY, LINE = "#9a9a9a", "#cccccc"
POSTERIOR = r"$P(1\,|\,s) - P(0\,|\,s)$"
SCORE = r"$E_s \cdot p$"
VALUE = r"$E_s \cdot v$"

_STYLE = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.constrained_layout.use": True,
}
_MAX_BYTES = 190_000
_MAX_POINTS = 5000  # a picture shall stay small; which ones are left out is random


def grid(n_rows: int, n_columns: int, *, height: float = 2.9, width: float = 4.2) -> tuple:
    """Return a figure and its axes, (n_rows, n_columns)."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(
            n_rows, n_columns, figsize=(width * n_columns, height * n_rows), squeeze=False
        )
    return figure, axes


def cloud(ax: Any, x: ArrayLike, y: ArrayLike, bins: Bins | None = None, **more: Any) -> None:
    """Draw tokens, and on top the means over bins with one standard deviation on either side.

    The vertical axis shows the middle 99 % of the tokens and all means; a note says how many lie
    beyond.
    """
    x, y = np.asarray(x), np.asarray(y)
    colour, mark, label = more.get("colour", BLUE), more.get("mark", "o"), more.get("label", "mean")
    shown = np.random.default_rng(0).permutation(len(x))[:_MAX_POINTS]
    ax.scatter(x[shown], y[shown], s=3, color=GREY, alpha=0.25, linewidths=0, rasterized=True)
    low, high = np.quantile(y, [0.005, 0.995])
    if bins is not None:
        means(ax, bins.centres, bins.means, colour=colour, mark=mark, label=label)
        ax.fill_between(
            bins.centres,
            bins.means - bins.deviations,
            bins.means + bins.deviations,
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        low, high = min(low, bins.means.min()), max(high, bins.means.max())
    margin = 0.06 * (high - low) or 1.0
    ax.set_ylim(low - margin, high + margin)
    zero_line(ax)


def means(ax: Any, x: ArrayLike, y: ArrayLike, **more: Any) -> None:
    """Draw means over bins as a line with marks."""
    ax.plot(
        x,
        y,
        color=more.get("colour", BLUE),
        marker=more.get("mark", "o"),
        markersize=more.get("size", 4.5),
        markeredgecolor="white",
        markeredgewidth=0.5,
        linewidth=1.3,
        linestyle=more.get("line", "-"),
        label=more.get("label"),
        zorder=3,
    )


def show_all_lines(ax: Any) -> None:
    """Widen the vertical axis to all means drawn, where clouds of tokens have set it."""
    heights = np.concatenate([line.get_ydata() for line in ax.lines])
    low, high = ax.get_ylim()
    margin = 0.03 * (heights.max() - heights.min())
    ax.set_ylim(min(low, heights.min() - margin), max(high, heights.max() + margin))


def paper_axis(ax: Any, x: ArrayLike, y: ArrayLike) -> None:
    """Draw the paper's means on an axis of their own: heights are not comparable, shapes are."""
    other = ax.twinx()
    means(other, x, y, colour=ORANGE, mark="s", line="--", size=3.2)
    other.tick_params(axis="y", colors=ORANGE, labelsize=8)
    other.spines[["top", "left", "right", "bottom"]].set_visible(False)
    other.set_ylabel("paper", color=ORANGE, fontsize=8.5, labelpad=2)


def zero_line(ax: Any) -> None:
    """Draw a thin line at 0."""
    ax.axhline(0, color=LINE, linewidth=0.8, zorder=0)


def name_axes(ax: Any, title: str, x: str, y: str) -> None:
    """Write what is seen."""
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if x == POSTERIOR:
        ax.set_xticks([-1, -0.5, 0, 0.5, 1])


def legend_below(figure: Any, ax: Any, n_columns: int) -> None:
    """Write the legend of one panel under all of them."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=8.5
    )


def save(figure: Any, settings: Settings, name: str) -> None:
    """Write the picture, with few enough colours to be small."""
    path = settings.images / name
    path.parent.mkdir(parents=True, exist_ok=True)
    written = io.BytesIO()
    figure.savefig(written, dpi=110)
    plt.close(figure)
    picture = Image.open(written).convert("RGB")
    for n_colours in (200, 96, 48):  # as few as it takes
        picture.quantize(n_colours, dither=Image.Dither.NONE).save(path, optimize=True)
        if path.stat().st_size < _MAX_BYTES:
            break
