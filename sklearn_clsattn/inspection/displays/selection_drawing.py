"""Drawing which tokens are selected, and how concentrated attention is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import plotting
from .plotting import AGAINST, FOR

if TYPE_CHECKING:
    from .selection import SelectionDisplay


def draw_selected(
    display: SelectionDisplay, ax: Any, tokens: NDArray[np.intp], n_documents: int
) -> None:
    """Draw how often tokens are selected, as shares of `n_documents` that have tokens."""
    selected = 100 * display.selection_counts[tokens] / n_documents
    present = 100 * display.documents[tokens] / n_documents
    plotting.tidy(ax, "Tokens selected most often")
    if not len(tokens):
        plotting.say_nothing(ax, "no token is selected")
        return
    known, classes = display.token_classes, display.classes
    labels = [None] * len(tokens) if known is None else known[tokens]
    first = classes.tolist()[:1] if classes is not None and len(classes) == 2 else []
    colours = [AGAINST if label in first else FOR for label in labels]
    ends = np.maximum(selected, present)
    notes = [
        f"{share:.{1 if share < 9.95 else 0}f} %"
        + ("" if label is None else f" · {plotting.class_name(label, 14)}")
        for share, label in zip(selected, labels, strict=True)
    ]
    names = [plotting.shown(name, 24) for name in display.token_names[tokens]]
    ax.barh(np.arange(len(tokens)), present, color=colours, height=0.72, alpha=0.25, zorder=1)
    plotting.named_bars(ax, names, selected, colours, notes, reach=ends, room=10)
    # The notes need room, more of it where they have a class.
    ax.set_xlim(0, ends.max() * (1.25 if known is None else 1.6))
    ax.set_xlabel("% of documents: selected (dark), present (light)")


def draw_entropy(display: SelectionDisplay, ax: Any, filled: NDArray[np.bool_]) -> None:
    """Draw a histogram of entropy over documents that have tokens, those `filled`."""
    plotting.tidy(ax, "How attention is spread")
    drawn = [display.entropy[filled]]
    if display.even_entropy is not None:
        drawn.append(display.even_entropy[filled])
    both = np.concatenate(drawn).clip(min=0.0)
    low, high = both.min(), both.max()
    if high - low < 1e-6:  # all alike: a bar, not a line
        low, high = max(low - 0.5, 0.0), high + 0.5
    edges = np.linspace(low, high, 31)
    for numbers, name, style in zip(
        drawn,
        ("attention", "if all scores were equal"),
        (
            {"color": FOR, "alpha": 0.75},
            {"histtype": "step", "color": plotting.ink(), "linestyle": "--"},
        ),
        strict=False,
    ):
        middle = float(np.median(numbers))
        label = f"{name}: median {middle:.2f},\nas if evenly over {_plain(np.exp(middle))} tokens"
        ax.hist(numbers.clip(low, high), bins=edges, label=label, **style)
    plotting.few_ticks(ax.yaxis, 6, whole=True)
    ax.set_ylim(top=ax.get_ylim()[1] * 1.4)  # room for the legend
    ax.legend(loc="upper left", fontsize=8, frameon=False)
    ax.set_xlabel("entropy of attention in a document (nats)")
    ax.set_ylabel("documents")


def draw_shares(display: SelectionDisplay, ax: Any, filled: NDArray[np.bool_]) -> None:
    """Draw what the top tokens have together, over documents that have tokens."""
    plotting.tidy(ax, "What the top tokens have of it")
    places = np.arange(1, display.top_shares.shape[1] + 1)
    shares = 100 * display.top_shares[filled]
    low, high = np.percentile(shares, [10, 90], axis=0)
    ax.fill_between(places, low, high, color=FOR, alpha=0.2, linewidth=0)
    ax.plot(places, shares.mean(axis=0), color=FOR, marker="o", markersize=4)
    label = "attention: mean, and\n10 % to 90 % of documents"
    ax.plot([], [], color=FOR, marker="o", markersize=4, label=label)
    if display.even_top_shares is not None:
        ax.plot(
            places,
            100 * display.even_top_shares[filled].mean(axis=0),
            color=plotting.ink(),
            linestyle="--",
            label="if all scores were equal: mean",
        )
    if display.cls_share is not None and display.cls_share.any():
        kept = 100 * display.cls_share[filled].mean()
        ax.plot([], [], " ", label=f"(<cls> keeps {kept:.3g} % on average)")
    highest = float(np.concatenate([line.get_ydata() for line in ax.lines[:1]] + [high]).max())
    plotting.few_ticks(ax.yaxis, 6)
    ax.set_ylim(0, 1.45 * highest)  # room for the legend
    plotting.no_more_than_all(ax.yaxis)
    ax.set_xticks(places if len(places) <= 12 else places[:: -(-len(places) // 10)])
    ax.legend(loc="upper left", fontsize=8, frameon=False)
    ax.set_xlabel("number of most attended tokens")
    ax.set_ylabel("% of the attention among tokens")


def _plain(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:,.0f}"
