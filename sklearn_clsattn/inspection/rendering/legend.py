"""How to read a text that is shaded and outlined."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .style import N_SHADES
from .view import View


def render_legend(views: Sequence[View]) -> str:
    """Return what the marks in documents mean.

    Parameters
    ----------
    views : sequence of View
        The documents; the legend names only what they have.

    Returns
    -------
    html : str
        A paragraph; nothing where there are no tokens.
    """
    if all(view.knows_nothing for view in views):
        return ""
    said = {(view.plus.said, view.minus.said) for view in views}
    plus, minus = said.pop() if len(said) == 1 else ("for the class shown", "against it")
    parts = [
        f"{_ramp('p')} {escape(plus)}",
        f"{_ramp('n')} {escape(minus)}; the last shade: a document's strongest word",
        '<span class="t a1">outlined</span>, <span class="t a2">more</span>: '
        "at least half, three quarters of the highest attention",
    ]
    if any(view.has_lines for view in views):
        parts.append(
            '<span class="g l0"><span class="t">an n-gram</span></span>: '
            "its words share what it adds"
        )
    if any(text.pieces for view in views for text in view.texts):
        parts.append("grey: not read")
    return f'<p class="legend">{"".join(f"<span>{part}</span>" for part in parts)}</p>\n'


def _ramp(letter: str) -> str:
    steps = "".join(f'<i class="{letter}{at}"></i>' for at in range(1, N_SHADES + 1))
    return f'<span class="ramp">{steps}</span>'
