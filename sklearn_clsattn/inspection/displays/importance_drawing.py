"""Drawing what a model makes of every token: points over what documents say, or bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import plotting
from .binned_means import BinnedMeans, binned_means
from .inputs import Array
from .name_places import spread, tokens_to_name
from .plotting import AGAINST, FOR

if TYPE_CHECKING:
    from .importance import TokenImportanceDisplay

_CROWD = 500  # points, from which on they are small, faint and drawn as one picture
_AXIS = {
    "effect": "effect on decisions (std. dev.)",
    "signed_frequency": "signed frequency",
    "value": "token value",
}


def draw_scatter(
    display: TokenImportanceDisplay, ax: Any, places: list[int], n_bins: int
) -> list[Any]:
    """Draw scores and values of tokens over posterior differences, two axes a class."""
    assert display.posterior_difference is not None
    axes = plotting.axes_for(ax, 2 * len(places), 2, (5.6, 4.2))
    for row, place in enumerate(places):
        label = plotting.shown(display.classes[place], 16)
        name = plotting.class_name(display.classes[place])
        if len(display.classes) == 2:
            other = plotting.shown(display.classes[1 - place], 16)
            across = f"P({label} | token) − P({other} | token)"
        else:
            across = f"P({label} | token) less the mean of the other classes"
        values, difference = display.token_values[place], display.posterior_difference[place]
        importance = values if display.importance is None else display.importance[place]
        named = tokens_to_name(importance, difference)
        for panel, (title, numbers, up) in zip(
            axes[2 * row : 2 * row + 2],
            (
                ("Where the model looks", display.attention_scores, "attention score"),
                ("What it makes of it", values, f"token value for {name}"),
            ),
            strict=True,
        ):
            _draw_points(panel, difference, numbers, display.documents)
            bins = _draw_means(panel, difference, numbers, n_bins)
            _write_names(panel, difference, numbers, display.token_names, named)
            plotting.tidy(
                panel, title if len(places) == 1 else f"{name}: {title[0].lower()}{title[1:]}"
            )
            panel.set_xlabel(across, parse_math=False)
            panel.set_ylabel(up, parse_math=False)
        if len(bins.means):  # where a value rises with the difference nothing stands
            axes[2 * row + 1].legend(loc="lower right", fontsize=8, frameon=False)
    return axes


def draw_bars(display: TokenImportanceDisplay, ax: Any, places: list[int], k: int) -> list[Any]:
    """Draw the `k` most important tokens of each class, one axes a class."""
    assert display.importance is not None
    n_rows = -(-len(places) // 4)
    best = []
    for place in places:
        order = np.argsort(-display.importance[place], kind="stable")[:k]
        best.append(order[display.importance[place][order] > 0])
    longest = max((len(tokens) for tokens in best), default=0)
    names = [[plotting.shown(name) for name in display.token_names[tokens]] for tokens in best]
    widest = max((len(name) for of_class in names for name in of_class), default=0)
    size = (2.7 + 0.075 * widest, 1.1 + 0.23 * max(longest, 3))
    axes = plotting.axes_for(ax, len(places), -(-len(places) // n_rows), size)
    reach = max(
        (
            float(display.importance[place][tokens[0]])
            for place, tokens in zip(places, best, strict=True)
            if len(tokens)
        ),
        default=1.0,
    )
    for panel, place, tokens, shown in zip(axes, places, best, names, strict=True):
        plotting.tidy(panel, plotting.class_name(display.classes[place], 32))
        if not len(tokens):
            plotting.say_nothing(panel, "no token speaks for it")
            continue
        colour = AGAINST if len(display.classes) == 2 and place == 0 else FOR
        plotting.named_bars(panel, shown, display.importance[place][tokens], colour)
        # One scale, so that bars can be compared from class to class.
        panel.set_xlim(0, 1.05 * reach)
        plotting.few_ticks(panel.xaxis, 4)
        panel.set_xlabel(_AXIS.get(display.importance_name, display.importance_name))
    return axes


def _draw_points(ax: Any, x: Array, y: Array, documents: Array | None) -> None:
    """Draw tokens as points, frequent ones larger."""
    sizes: Any = 9.0
    if documents is not None:
        least = max(documents.min(initial=np.inf), 1)
        sizes = 6 + 5 * np.log10(np.maximum(documents, 1) / least)
    crowded = len(x) > _CROWD
    ax.scatter(
        x,
        y,
        s=sizes if crowded else 2.5 * sizes,
        c=np.where(x < 0, AGAINST, FOR),
        alpha=0.3 if crowded else 0.6,
        linewidths=0,
        rasterized=crowded,
    )
    ax.plot([x.min(), x.max()], [0, 0], color=plotting.ink(), linewidth=0.6, zorder=0)


def _draw_means(ax: Any, x: Array, y: Array, n_bins: int) -> BinnedMeans:
    """Draw means over bins, joined where bins are neighbours: elsewhere nothing is known."""
    bins = binned_means(x, y, n_bins)
    gaps = np.flatnonzero(np.diff(bins.places) > 1) + 1
    ax.errorbar(
        np.insert(bins.centres, gaps, np.nan),
        np.insert(bins.means, gaps, np.nan),
        yerr=np.insert(bins.deviations, gaps, np.nan),
        color=plotting.ink(),
        linewidth=1.4,
        elinewidth=0.7,
        marker="o",
        markersize=3.5,
        zorder=4,
        label=f"mean and standard\ndeviation in {n_bins} bins",
    )
    return bins


def _write_names(
    ax: Any, x: Array, y: Array, names: NDArray[Any], tokens: list[NDArray[np.intp]]
) -> None:
    """Write names in the margins, `tokens[0]` left and `tokens[1]` right, with lines to them."""
    if not any(len(of_side) for of_side in tokens):
        return
    low, high = ax.get_ylim()
    left, right = float(x.min()), float(x.max())
    width = max(right - left, 1e-9)
    plotting.few_ticks(ax.xaxis, 5)
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    ticks = ax.get_xticks()  # only where there are tokens; the margins are for names
    ticks = ticks[(ticks >= ax.get_xlim()[0]) & (ticks <= ax.get_xlim()[1])]
    texts = [[plotting.shown(names[token], 18) for token in of_side] for of_side in tokens]
    every = np.concatenate(tokens)
    rings = {"facecolors": "none", "edgecolors": plotting.ink(), "linewidths": 0.7}
    ax.scatter(x[every], y[every], s=14, zorder=5, **rings)  # or lines would end in the crowd
    for side, of_side in zip((-1, 1), tokens, strict=True):
        of_side = of_side[np.argsort(y[of_side], kind="stable")]
        edge = 0.03 * (high - low)
        heights = spread(y[of_side], 2.1 * edge, low + edge, high - edge)
        beside = right + 0.06 * width if side > 0 else left - 0.06 * width
        for token, height in zip(of_side, heights, strict=True):
            ax.annotate(
                plotting.shown(names[token], 18),
                (x[token], y[token]),
                xytext=(beside, height),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=8,
                color=FOR if side > 0 else AGAINST,
                arrowprops={
                    "arrowstyle": "-",
                    "color": plotting.NEUTRAL,
                    "linewidth": 0.5,
                    "relpos": (0 if side > 0 else 1, 0.5),
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                parse_math=False,
            )
    margins = [0.1 + 0.03 * max(map(len, of_side), default=0) for of_side in texts]
    ax.set_xlim(left - margins[0] * width, right + margins[1] * width)
    ax.set_ylim(low, high)
    ax.set_xticks(ticks)
