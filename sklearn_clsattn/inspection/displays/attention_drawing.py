"""Drawing where the model looks in one document, and what each token adds to the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from . import plotting
from .plotting import AGAINST, FOR, NEUTRAL

if TYPE_CHECKING:
    from .attention import AttentionDisplay


def draw_document(display: AttentionDisplay, ax: Any, table: pd.DataFrame) -> list[Any]:
    """Draw the rows of a table of terms: attention, and contributions where there are any."""
    n_panels = 1 if display.contributions is None else 2
    names = [
        name if own else f"{plotting.shown(name)}{_times(count)}"
        for name, count, own in zip(table["token"], table["count"], table["own"], strict=True)
    ]
    widest = max(map(len, names))
    size = (3.9 + 0.06 * widest, 1.1 + 0.25 * max(len(table), 3))
    axes = plotting.axes_for(ax, n_panels, n_panels, size)
    _draw_attention(display, axes[0], names, table)
    if n_panels == 2:
        _draw_contributions(display, axes[1], names, table)
        if _side_by_side(*axes):
            axes[1].tick_params(axis="y", labelleft=False)
    return axes


def _draw_attention(
    display: AttentionDisplay, ax: Any, names: list[str], table: pd.DataFrame
) -> None:
    plotting.tidy(ax, "Attention" if len(display.attention) else "Attention: no known token")
    shares = 100 * table["attention"].to_numpy(dtype=np.float64)
    notes = ["" if np.isnan(share) else f"{share:.1f} %" for share in shares]
    plotting.named_bars(ax, names, np.nan_to_num(shares), NEUTRAL, notes)
    plotting.apart(ax, table["own"].to_numpy(dtype=bool))
    ax.set_xlim(0, 1.22 * max(np.nan_to_num(shares).max(initial=0.0), 1e-9))
    plotting.no_more_than_all(ax.xaxis)
    ax.set_xlabel("share of attention (%)")
    known = display.target is not None and display.probability is not None
    if display.contributions is None and known:
        ax.set_title(
            f"Attention (P({plotting.shown(display.target, 20)}) = {display.probability:.3f})",
            loc="left",
            fontsize="medium",
            parse_math=False,
        )


def _draw_contributions(
    display: AttentionDisplay, ax: Any, names: list[str], table: pd.DataFrame
) -> None:
    terms = table["contribution"].to_numpy(dtype=np.float64)
    known = display.target is not None
    label = plotting.shown(display.target, 20) if known else None
    name = plotting.class_name(display.target, 16) if known else None
    assert display.decision is not None
    decimals = plotting.decimals_for(terms)
    title = f"Contributions: decision {plotting.signed(display.decision, decimals)}"
    if label is not None and display.probability is not None:
        title += f",\nP({label})" if len(label) > 8 else f", P({label})"
        title += f" = {display.probability:.3f}"
    plotting.tidy(ax, title)
    colours = np.where(terms < 0, AGAINST, FOR)
    notes = [plotting.signed(term, decimals) for term in terms]
    plotting.named_bars(ax, names, terms, colours.tolist(), notes)
    plotting.apart(ax, table["own"].to_numpy(dtype=bool))
    ax.spines["left"].set_visible(False)  # the line that bars stand on is the one at 0
    plotting.few_ticks(ax.xaxis, 6)
    ax.axvline(0, color=plotting.ink(), linewidth=0.8, zorder=3)
    low, high = min(terms.min(initial=0.0), 0.0), max(terms.max(initial=0.0), 0.0)
    width = max(high - low, 1e-9)
    ax.set_xlim(low - (0.17 if low < 0 else 0.03) * width, high + 0.17 * width)
    if label is None:
        across = "contribution to the decision"
    elif display.other is None:
        across = f"contribution to the decision for {name}"
    else:
        across = f"← {plotting.class_name(display.other, 16)}   contribution   {name} →"
    ax.set_xlabel(across, parse_math=False)


def _times(count: float) -> str:
    return f" ×{count:.3g}" if count > 1 and float(count).is_integer() else ""


def _side_by_side(one: Any, other: Any) -> bool:
    """Whether rows of the one go on in the other, so that names need to be written only once."""
    return bool(abs(one.get_position().y0 - other.get_position().y0) < 1e-6)
