"""The decision as a bar: from the intercept up by all that is for, then down by all against."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from .legible import aligned, label_text, strongest
from .markup import MINUS, escaped, tooltip
from .view import View

# Tokens of each side that have segments of their own; more would be too short to read.
_MAX_SEGMENTS = 6
# A side of the line at 0 that is narrower than this, in percent, has no room for its label.
_MIN_LABEL = 8.0


def render_bar(view: View) -> str:
    """Return the bar and the sum that it draws.

    Parameters
    ----------
    view : View
        The document.

    Returns
    -------
    html : str
        Only the sum where the document has no tokens.
    """
    sides = (view.plus, view.minus)
    end, start, *totals = aligned([view.end, view.start, *(side.total for side in sides)], MINUS)
    parts = [
        f'<span><i class="key end"></i><b>{end}</b> decision =</span>',
        f'<span><i class="key start"></i><b>{start}</b> intercept</span>',
    ]
    said = f"decision {end} = {start} intercept"
    for side, number, shade in zip(sides, totals, ("p3", "n3"), strict=True):
        if side.total:
            name = f'<span class="t {shade}">{escape(side.said)}</span>'
            parts.append(f"<span><b>{number}</b> {name}</span>")
            said += f", {number} {side.said}"
    drawn = _bar(view, said) if any(side.total for side in sides) else ""
    return f'{drawn}<p class="sum">{"".join(parts)}</p>\n'


def _bar(view: View, said: str) -> str:
    start, end = view.start, view.end
    highest = start + view.plus.total
    values = [start, end, highest] + [0.0] * view.is_binary
    low, width = min(values), (max(values) - min(values)) or 1.0

    def at(value: float) -> float:
        return 1.0 + 98.0 * (value - low) / width

    speaks_for, against = strongest(view.contributions, _MAX_SEGMENTS)
    rows = []
    if view.plus.total:
        rows.append(f'<span class="row">{_segments(view, speaks_for, start, highest, at)}</span>')
    if view.minus.total:
        # The strongest stand where the way down begins.
        downward = _segments(view, against, highest, end, at)
        rows.append(f'<span class="row minus">{downward}</span>')
    last = " second" if len(rows) == 2 else ""
    marks = (
        f'<span class="mark start" style="left:{at(start):.2f}%"></span>'
        f'<span class="mark end{last}" style="left:{at(end):.2f}%"></span>'
    )
    zero, axis = "", ""
    if view.is_binary:  # the prediction changes at 0; among more classes 0 means nothing
        zero = f'<span class="mark zero" style="left:{at(0.0):.2f}%"></span>'
        axis = _axis(view, at(0.0))
    return (
        f'<div class="bar" role="img" aria-label="{escape(said)}">'
        f"{zero}{''.join(rows)}{marks}{axis}</div>\n"
    )


def _axis(view: View, at: float) -> str:
    """Return which class is predicted on which side of the line at 0."""
    left, right = escape(label_text(view.other)), escape(label_text(view.target))
    html = '<span class="axis">'
    if at > _MIN_LABEL:
        html += f'<span class="left" style="width:{at:.2f}%"><i>← <bdi>{left}</bdi></i></span>'
    if at < 100 - _MIN_LABEL:
        html += f'<span class="right" style="left:{at:.2f}%"><i><bdi>{right}</bdi> →</i></span>'
    return f"{html}</span>"


def _segments(
    view: View, tokens: list[int], start: float, stop: float, at: Callable[[float], float]
) -> str:
    """Return the strongest tokens end to end from `start`, and the others together to `stop`."""
    html = []
    here = start
    for token in tokens:
        there = here + float(view.contributions[token])
        html.append(_segment(at(here), at(there), view.name(token)[1], tooltip(view, [token]), ""))
        here = there
    if abs(stop - here) > 1e-9 * max(1.0, abs(stop)):
        html.append(
            _segment(at(here), at(stop), "others", "all other tokens together", ' class="rest"')
        )
    return "".join(html)


def _segment(one: float, other: float, name: str, title: str, kind: str) -> str:
    left, width = min(one, other), abs(one - other)
    # The style sheet hides a label that does not fit as a whole.
    label = f"<bdi>{escaped(name)}</bdi>" if width > 2 else ""
    return f'<i{kind} style="left:{left:.2f}%;width:{width:.2f}%" title="{title}">{label}</i>'
