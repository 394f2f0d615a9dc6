"""What the displays share in drawing: matplotlib imported late, one style.

Blue speaks for a class, orange against it (of two classes, for the first): apart for colour-blind
readers and in grey print. Everything else takes the colour of the reader's own style, so that
displays can be read on dark backgrounds as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FOR, AGAINST, NEUTRAL = "#0072B2", "#D55E00", "#8C8C8C"


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or say how to install it."""
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
        axes = grid.ravel().tolist()
        for surplus in axes[n_panels:]:
            figure.delaxes(surplus)
        return list(axes[:n_panels])
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


def as_drawn(axes: list[Any]) -> Any:
    """Return what `ax_` is: the axes, or an array of them where there are several."""
    if len(axes) == 1:
        return axes[0]
    array = np.empty(len(axes), dtype=object)
    array[:] = axes
    return array


def ink() -> Any:
    """Return the colour of text in the reader's style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def tidy(ax: Any, title: str | None = None) -> None:
    """Take away what frames the axes, and set a title; it is never read as mathematics."""
    ax.spines[["top", "right"]].set_visible(False)
    if title:
        ax.set_title(title, loc="left", fontsize="medium", parse_math=False)


def shown(name: Any, limit: int = 28) -> str:
    """Return a name as it is drawn.

    White space that would not be seen is drawn as signs. Long names lose their middle: n-grams
    often differ at their end alone.
    """
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    core = text.strip(" ")
    left = len(text) - len(text.lstrip(" ")) if core else len(text)
    right = len(text) - len(text.rstrip(" ")) if core else 0
    text = "␣" * left + core + "␣" * right
    if not text:
        return "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def class_name(label: Any, limit: int = 20) -> str:
    """Return a class label as it is drawn; a bare number would not be known for one."""
    return shown(label if isinstance(label, str) else f"class {label}", limit)


def signed(number: float, decimals: int = 2) -> str:
    """Return a number with decimals and its sign; a plain 0 where it is exactly that."""
    return f"{number:+.{decimals}f}".replace("-", "−") if number else "0"


def decimals_for(numbers: ArrayLike) -> int:
    """Return how many decimals tell numbers apart that are drawn together, at least two."""
    largest = float(np.abs(np.asarray(numbers, dtype=np.float64)).max(initial=0.0))
    return 2 if largest == 0 else int(np.clip(1 - np.floor(np.log10(largest)), 2, 6))


def few_ticks(axis: Any, at_most: int, *, whole: bool = False) -> None:
    """Let an axis have so few ticks that their labels stand apart, if asked at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10], integer=whole))


def no_more_than_all(axis: Any) -> None:
    """Take away an axis's ticks above 100 %: the room there is for words."""
    low, high = axis.get_view_interval()
    if high > 100:
        ticks = axis.get_majorticklocs()
        axis.set_ticks(ticks[(ticks >= low) & (ticks <= 100)])


def named_bars(
    ax: Any,
    names: list[str],
    lengths: ArrayLike,
    colours: Any,
    notes: list[str] | None = None,
    reach: ArrayLike | None = None,
    room: int = 3,
) -> None:
    """Draw horizontal bars, the first on top, with names at the left and notes at their ends.

    `reach` is where a note stands, if not at the end of its bar; `room` for how many bars there is
    at least, so that few ones are not fat.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    places = np.arange(len(lengths))
    ax.barh(places, lengths, color=colours, height=0.72, linewidth=0, zorder=2)
    ax.set_yticks(places, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(lengths), room) - 0.4, -0.6)
    for place, note, end in zip(
        places, notes or [], lengths if reach is None else np.asarray(reach), strict=False
    ):
        ax.annotate(
            note,
            (end, place),
            xytext=(3 if end >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if end >= 0 else "right",
            va="center_baseline",
            fontsize=8,
            parse_math=False,
        )


def apart(ax: Any, rows: NDArray[np.bool_]) -> None:
    """Write names of rows that are no tokens in italics, so that they are not taken for tokens."""
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        if row:
            label.set_style("italic")


def say_nothing(ax: Any, why: str) -> None:
    """Write in empty axes why they are empty."""
    ax.set_xticks([])
    ax.set_yticks([])
    ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, parse_math=False)
