"""Drawing helpers that the displays share; matplotlib is imported late.

Blue is for a class, orange against it: distinguishable by colour-blind readers and in grey print.
All else has the colours of the user's matplotlib style, for dark backgrounds as well.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression

from ..formatting import token_text

Array = NDArray[np.float64]

FOR, AGAINST, NEUTRAL = "#0072B2", "#D55E00", "#8C8C8C"


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``; the error says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which is in the optional extra 'plot': "
            "pip install 'sklearn-clsattn[plot]'"
        ) from error
    return plt


def axes_for(ax: Any, n_panels: int, n_columns: int, size: tuple[float, float]) -> list[Any]:
    """Return the axes given, or those of a new figure with panels of `size` inches."""
    plt = import_pyplot()
    if ax is None:
        n_rows = -(-n_panels // n_columns)
        figure, grid = plt.subplots(
            n_rows,
            n_columns,
            figsize=(size[0] * n_columns, size[1] * n_rows),
            layout="constrained",
            squeeze=False,
        )
        axes = list(grid.flat)
        for surplus in axes[n_panels:]:
            figure.delaxes(surplus)
        return axes[:n_panels]
    axes = np.ravel(np.asarray(ax, dtype=object)).tolist()
    wrong = next((one for one in axes if not hasattr(one, "transAxes")), None)
    if wrong is not None:
        raise TypeError(f"ax must be matplotlib axes or an array of them, got {wrong!r}.")
    if len(axes) != n_panels:
        raise ValueError(
            f"ax must hold as many axes as are drawn, {n_panels}, but holds {len(axes)}: make them "
            f"with plt.subplots(1, {n_panels}), or leave ax out."
        )
    return axes


def store_axes(display: Any, axes: list[Any]) -> None:
    """Set ``ax_`` of a display, an array where there are several axes, and ``figure_``."""
    display.ax_ = axes[0] if len(axes) == 1 else np.array(axes, dtype=object)
    display.figure_ = axes[0].figure


def text_color() -> Any:
    """Return the colour of text in the user's style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def set_title(ax: Any, title: str) -> None:
    """Set a title, never parsed as mathematics, and remove the frame at the top and right."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)


def shown(name: Any, limit: int = 28) -> str:
    """Return a name with invisible white space as signs, at most `limit` characters long."""
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    text = token_text(text) or "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3  # n-grams often differ only at their ends
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def class_name(label: Any, limit: int = 20) -> str:
    """Return a class label as text; a number alone would not be recognised as a class."""
    return shown(label if isinstance(label, str) else f"class {label}", limit)


def few_ticks(axis: Any, at_most: int, *, integer: bool = False) -> None:
    """Limit the number of an axis's ticks, so that their labels do not overlap."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10], integer=integer))


def no_ticks_above_100(axis: Any) -> None:
    """Remove an axis's ticks above 100 %, where only annotations are."""
    low, high = axis.get_view_interval()
    if high > 100:
        ticks = axis.get_majorticklocs()
        axis.set_ticks(ticks[(ticks >= low) & (ticks <= 100)])


def named_bars(
    ax: Any,
    names: list[str],
    lengths: ArrayLike,
    colors: Any,
    notes: list[str] | None = None,
    *,
    notes_at: ArrayLike | None = None,
    min_slots: int = 3,
) -> None:
    """Draw at least `min_slots` bars from top to bottom, with names, and notes at `notes_at`."""
    lengths = np.asarray(lengths, dtype=np.float64)
    slots = np.arange(len(lengths))
    ax.barh(slots, lengths, color=colors, height=0.72, linewidth=0, zorder=2)
    ax.set_yticks(slots, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(lengths), min_slots) - 0.4, -0.6)
    ends = lengths if notes_at is None else np.asarray(notes_at)
    for slot, note, end in zip(slots, notes or [], ends, strict=False):
        ax.annotate(
            note,
            (end, slot),
            xytext=(3 if end >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if end >= 0 else "right",
            va="center_baseline",
            fontsize=8,
            parse_math=False,
        )


def write_instead(ax: Any, message: str) -> None:
    """Write a message in axes that have nothing to draw."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, message, ha="center", va="center", transform=ax.transAxes, parse_math=False)


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> Array:
    """Return ascending heights from `low` to `high`, near the wanted ones and `gap` apart."""
    heights = np.sort(np.asarray(wanted, dtype=np.float64))
    if len(heights) < 2:
        return heights.clip(low, high)
    gap = min(gap, (high - low) / (len(heights) - 1))
    steps = gap * np.arange(len(heights))
    heights = isotonic_regression(heights - steps) + steps
    heights = np.minimum(heights, high - steps[::-1])
    return np.maximum(heights, low + steps)


def draw_names(
    ax: Any, x: Array, y: Array, names: NDArray[Any], tokens: list[NDArray[np.intp]]
) -> None:
    """Write names in the margins, `tokens[0]` left and `tokens[1]` right, with lines to points."""
    every = np.concatenate(tokens)
    if not len(every):
        return
    low, high = ax.get_ylim()
    left, right = float(x.min()), float(x.max())
    width = max(right - left, 1e-9)
    few_ticks(ax.xaxis, 5)
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    ticks = ax.get_xticks()  # only where there are tokens; the margins are for names
    ticks = ticks[(ticks >= ax.get_xlim()[0]) & (ticks <= ax.get_xlim()[1])]
    circles = {"facecolors": "none", "edgecolors": text_color(), "linewidths": 0.7}
    ax.scatter(x[every], y[every], s=14, zorder=5, **circles)  # where the lines end
    edge = 0.03 * (high - low)
    limits = []
    for side, color, end, of_side in zip(
        (-1, 1), (AGAINST, FOR), (left, right), tokens, strict=True
    ):
        of_side = of_side[np.argsort(y[of_side], kind="stable")]
        texts = [shown(name, 18) for name in names[of_side]]
        heights = spread(y[of_side], 2.1 * edge, low + edge, high - edge)
        for token, text, height in zip(of_side, texts, heights, strict=True):
            ax.annotate(
                text,
                (x[token], y[token]),
                xytext=(end + side * 0.06 * width, height),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=8,
                color=color,
                arrowprops={
                    "arrowstyle": "-",
                    "color": NEUTRAL,
                    "linewidth": 0.5,
                    "relpos": (0 if side > 0 else 1, 0.5),
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                parse_math=False,
            )
        margin = 0.1 + 0.03 * max(map(len, texts), default=0)
        limits.append(end + side * margin * width)
    ax.set_xlim(*limits)
    ax.set_ylim(low, high)
    ax.set_xticks(ticks)
