"""Explanations as HTML: the document's own text, shaded, and the sum that its decision is.

There are no scripts, nothing is fetched, and every text goes through :func:`escaped`.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .explanation import DocumentText, Explanation
from .legible import (
    FAINT,
    check_top,
    count_text,
    label_text,
    level,
    percent,
    shown_target,
    sides,
    signed,
    strongest,
    visible,
)
from .pieces import Piece, cut, tokens_in
from .style import N_OUTLINES, N_SHADES, STYLE

Array = NDArray[np.float64]

_MINUS = "\N{MINUS SIGN}"
# As many classes as a line of probabilities names.
_MAX_CLASSES = 6
# Segments of the bar that have names; the others are too short to read.
_MAX_SEGMENTS = 6

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body style="margin:0">
{body}
</body>
</html>
"""


def render_html(
    explanation: Explanation,
    *,
    target: Any,
    top: int,
    fragment: bool,
    max_documents: int | None = None,
) -> str:
    """Return an explanation as HTML.

    Parameters
    ----------
    explanation : Explanation
        What to show.
    target : label or None
        The class to show; None for each document's predicted class where it was explained.
    top : int
        How many tokens for and against to list.
    fragment : bool
        Whether to return an element, with its style, rather than a page.
    max_documents : int or None, default=None
        How many documents to show at most; a line says how many more there are.

    Returns
    -------
    html : str
        Without characters that UTF-8 cannot encode.

    Raises
    ------
    ValueError
        If the class was not explained, or `top` is negative.
    """
    check_top(top)
    n_shown = len(explanation) if max_documents is None else min(len(explanation), max_documents)
    sections = []
    for i in range(n_shown):
        k = shown_target(explanation, i, target)
        sections.append(_Section(explanation[i], k, top).html())
    if target is not None and not n_shown:
        shown_target(explanation, 0, target)
    more = len(explanation) - n_shown
    if more:
        sections.append(
            f'<p class="soft">and {more:,} more document{"s" * (more > 1)}: '
            "slice the explanation to see them.</p>"
        )
    if not len(explanation):
        sections.append('<p class="soft">No documents.</p>')
    body = f'<div class="clsattn">\n<style>{STYLE}</style>\n{_legend()}{"".join(sections)}</div>'
    if fragment:
        return body
    return _PAGE.format(title=escaped(repr(explanation)[1:-1]), body=body)


def escaped(text: str, *, keep_lines: bool = False) -> str:
    """Return a text as HTML that shows it, in an element or between the quotes of an attribute.

    Parameters
    ----------
    text : str
        Any text.
    keep_lines : bool, default=False
        Whether line breaks and tabs stay; otherwise they become spaces.

    Returns
    -------
    html : str
        Without markup and control characters.
    """
    return escape(visible(text, keep_lines=keep_lines), quote=True)


class _Section:
    """One document, seen from one class."""

    def __init__(self, explanation: Explanation, k: int, top: int) -> None:
        self.explanation = explanation
        self.k = k
        self.top = top
        self.contributions: Array = explanation.contributions[:, k]
        self.plus, self.minus = sides(explanation, k)

    def html(self) -> str:
        return (
            f'<section class="doc">\n{self._head()}{self._classes()}{self._bar()}{self._texts()}'
            f"{self._lists()}{self._remarks()}</section>\n"
        )

    def _head(self) -> str:
        one = self.explanation
        predicted = one.predicted.tolist()[0]
        parts = [
            f'<span class="no">Document {int(one.index[0])}</span>',
            f"<span>predicted <b><bdi>{escape(label_text(predicted))}</bdi></b> "
            f"with probability {percent(float(one.predicted_probability[0]))}</span>",
        ]
        if one.true is not None:
            true = one.true.tolist()[0]
            shown = f"<bdi>{escape(label_text(true))}</bdi>"
            parts.append(
                f"<span>✓ truly {shown}</span>"
                if true == predicted
                else f'<span class="wrong">✗ truly {shown}</span>'
            )
        return f'<div class="head">{"".join(parts)}</div>\n'

    def _classes(self) -> str:
        one = self.explanation
        if len(one.targets) == 1:
            return ""
        labels = one.targets.tolist()
        order = np.argsort(-one.probability[0], kind="stable")[:_MAX_CLASSES].tolist()
        items = [
            f"<li><bdi>{escape(label_text(labels[k]))}</bdi> {percent(one.probability[0, k])} "
            f'<span class="soft">(decision {signed(one.decision[0, k], _MINUS)})</span></li>'
            for k in order
        ]
        if len(labels) > len(order):
            items.append(f'<li class="soft">and {len(labels) - len(order)} more classes</li>')
        return f'<ul class="classes">{"".join(items)}</ul>\n'

    def _bar(self) -> str:
        """Return the way from the intercept to the decision: up by what is for, then down."""
        one = self.explanation
        start, end = float(one.intercept[self.k]), float(one.decision[0, self.k])
        rest = float(one.others_contributions[0, self.k])
        gains = [*self.contributions[self.contributions > 0].tolist(), max(rest, 0.0)]
        losses = [*self.contributions[self.contributions < 0].tolist(), min(rest, 0.0)]
        highest = start + sum(gains)
        low, high = min(0.0, start, end), max(0.0, highest)
        width = (high - low) or 1.0

        def at(value: float) -> float:
            return 1.0 + 98.0 * (value - low) / width

        speaks_for, against = strongest(self.contributions, _MAX_SEGMENTS)
        upward = self._segments(speaks_for, start, sum(gains), at)
        # From the decision upwards, because the strongest stand where the way down begins.
        downward = self._segments(against, highest, sum(losses), at)
        numbers = (
            f"decision {signed(end, _MINUS)} = {signed(start, _MINUS)} intercept, "
            f"{signed(sum(gains), _MINUS)} {self.plus}, "
            f"{signed(sum(losses), _MINUS)} {self.minus}"
        )
        return (
            f'<div class="bar" role="img" aria-label="{escape(numbers)}">'
            f'<span class="mark zero" style="left:{at(0.0):.2f}%"></span>'
            f'<span class="row" style="top:.3rem">{upward}</span>'
            f'<span class="row minus" style="top:1.8rem">{downward}</span>'
            f'<span class="mark start" style="left:{at(start):.2f}%"></span>'
            f'<span class="mark end" style="left:{at(end):.2f}%"></span></div>\n'
            f'<p class="sum"><span><b>{signed(end, _MINUS)}</b> decision =</span>'
            f"<span><b>{signed(start, _MINUS)}</b> intercept</span>"
            f"<span><b>{signed(sum(gains), _MINUS)}</b> "
            f'<span class="t p3">{escape(self.plus)}</span></span>'
            f"<span><b>{signed(sum(losses), _MINUS)}</b> "
            f'<span class="t n3">{escape(self.minus)}</span></span>'
            f'<span class="soft">(dotted line: 0)</span></p>\n'
        )

    def _segments(self, tokens: list[int], start: float, total: float, at: Any) -> str:
        """Return the strongest tokens end to end from `start`, and the sum of all others."""
        html = []
        here = start
        for token in tokens:
            there = here + float(self.contributions[token])
            name = str(self.explanation.tokens[token])
            html.append(_segment(here, there, name, self._title([token]), "", at))
            here = there
        if abs(start + total - here) > 1e-9:
            html.append(
                _segment(here, start + total, "others", "all other tokens", ' class="rest"', at)
            )
        return "".join(html)

    def _texts(self) -> str:
        one = self.explanation
        texts = one.texts[0]
        placed = set().union(*(tokens_in(text) for text in texts)) if texts else set()
        html = []
        for text in texts:
            if text.name is not None:
                html.append(f"<h4><bdi>{escaped(text.name)}</bdi></h4>")
            html.append(self._text(text))
        left = [token for token in range(len(one.tokens)) if token not in placed]
        if left:
            if not texts:
                said = "Its tokens, in the order of the columns"
            elif placed - {-1}:
                said = "Tokens that have no place in the text"
            else:
                said = "Its tokens, whose places in the text cannot be told"
            html.append(f"<h4>{said}</h4>{self._joined(left)}")
        elif not len(one.tokens) and not one.others_count[0]:
            html.append(
                '<p class="soft">No token that the model knows: the decision is the intercept.</p>'
            )
        return "".join(html)

    def _text(self, text: DocumentText) -> str:
        if text.words is None:
            pieces = [Piece(text.text, (), 0.0, 0.0, ())]
        else:
            pieces = cut(text, self.contributions, self.explanation.attention)
        largest = max([FAINT, *(abs(piece.contribution) for piece in pieces)])
        most = max((piece.attention for piece in pieces), default=0.0)
        inner = "".join(self._piece(piece, largest, most) for piece in pieces)
        return f'<div class="text" dir="auto" lang="">{inner}</div>\n'

    def _piece(self, piece: Piece, largest: float, most: float) -> str:
        html = escaped(piece.text, keep_lines=True)
        if piece.tokens:
            known = [token for token in piece.tokens if token >= 0]
            html = self._marked(
                "span", html, piece.contribution, piece.attention, known, largest, most
            )
        for lane, token in piece.lines:
            against = " minus" if self.contributions[token] < 0 else ""
            html = f'<span class="g l{lane}{against}">{html}</span>'
        return html

    def _joined(self, tokens: list[int]) -> str:
        one = self.explanation
        largest = max([FAINT, *np.abs(self.contributions[tokens]).tolist()])
        most = float(one.attention[tokens].max())
        parts = []
        for token in tokens:
            html = escaped(str(one.tokens[token]))
            if one.counts[token] != 1:
                html += f"<small>×{count_text(one.counts[token])}</small>"
            added, attended = float(self.contributions[token]), float(one.attention[token])
            parts.append(self._marked("bdi", html, added, attended, [token], largest, most))
        return f'<div class="text joined">{" ".join(parts)}</div>\n'

    def _marked(
        self,
        element: str,
        html: str,
        added: float,
        attended: float,
        tokens: list[int],
        largest: float,
        most: float,
    ) -> str:
        names = ["t"]
        shade = level(added, largest, N_SHADES)
        # Attention is spread wider than contributions: its lower part is left without outlines.
        outline = int(min(N_OUTLINES, (N_OUTLINES + 1) * attended / most)) if most else 0
        if shade:
            names.append(f"{'p' if added > 0 else 'n'}{shade}")
        if outline:
            names.append(f"a{outline}")
        title = f' title="{self._title(tokens)}"' if tokens and len(names) > 1 else ""
        return f'<{element} class="{" ".join(names)}"{title}>{html}</{element}>'

    def _title(self, tokens: list[int]) -> str:
        one = self.explanation
        lines = []
        for token in sorted(tokens, key=lambda token: -abs(self.contributions[token])):
            line = (
                f"{visible(str(one.tokens[token]))} ×{count_text(one.counts[token])}: "
                f"{signed(self.contributions[token], _MINUS)}, "
                f"attention {percent(float(one.attention[token]))}"
            )
            if one.decision_without is not None:
                line += f", decision without {signed(one.decision_without[token, self.k], _MINUS)}"
            lines.append(line)
        return escape("\n".join(lines))

    def _lists(self) -> str:
        speaks_for, against = strongest(self.contributions, self.top)
        if not (speaks_for or against):
            return ""
        largest = float(np.abs(self.contributions).max())
        return (
            '<div class="lists">'
            + self._table(speaks_for, f"+ {self.plus}", "", largest)
            + self._table(against, f"{_MINUS} {self.minus}", ' class="minus"', largest)
            + "</div>\n"
        )

    def _table(self, tokens: list[int], caption: str, side: str, largest: float) -> str:
        one = self.explanation
        if not tokens:
            return f"<table{side}><caption>{escape(caption)}: no token</caption></table>"
        without = one.decision_without
        rows = []
        for token in tokens:
            added = float(self.contributions[token])
            cells = [
                f'<span class="size" style="width:{4.5 * abs(added) / largest:.2f}rem"></span>'
                f"{signed(added, _MINUS)}",
                percent(float(one.attention[token])),
                count_text(float(one.counts[token])),
            ]
            if without is not None:
                cells.append(signed(float(without[token, self.k]), _MINUS))
            name = f'<th scope="row"><bdi>{escaped(str(one.tokens[token]))}</bdi></th>'
            rows.append(f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        heads = ["token", "adds", "attention", "count"]
        heads += ["decision without"] if without is not None else []
        head = "".join(f'<th scope="col">{name}</th>' for name in heads)
        return (
            f"<table{side}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )

    def _remarks(self) -> str:
        one = self.explanation
        remarks = []
        for sign, said in ((1, self.plus), (-1, self.minus)):
            on_side = np.sort(self.contributions[sign * self.contributions > 0] * sign)[::-1]
            more = on_side[self.top :]
            if len(more):
                remarks.append(
                    f"{len(more)} more {escape(said)} ({signed(sign * more.sum(), _MINUS)})"
                )
        if one.others_count[0]:
            remarks.append(
                f"{one.others_count[0]} others, left out by top "
                f"({signed(one.others_contributions[0, self.k], _MINUS)}, "
                f"attention {percent(float(one.others_attention[0]))})"
            )
        if one.cls_attention[0]:
            remarks.append(
                f"&lt;cls&gt; keeps {percent(float(one.cls_attention[0]))} of the attention "
                "and adds 0"
            )
        return f'<p class="soft small">{"; ".join(remarks)}.</p>\n' if remarks else ""


def _segment(here: float, there: float, name: str, title: str, kind: str, at: Any) -> str:
    left, right = sorted((at(here), at(there)))
    # Where there is room for some letters.
    label = f"<bdi>{escaped(name)}</bdi>" if right - left > 7 else ""
    return (
        f'<i{kind} style="left:{left:.2f}%;width:{right - left:.2f}%" title="{title}">{label}</i>'
    )


def _legend() -> str:
    return (
        '<p class="legend">'
        '<span><span class="t p3">blue, solid</span>: speaks for the class</span>'
        '<span><span class="t n3">orange, dotted</span>: speaks against it</span>'
        '<span><span class="t a1">outlined</span> <span class="t a2">or</span> '
        '<span class="t a3">more</span>: a quarter, half, three quarters of the highest attention'
        "</span>"
        '<span><span class="g l0"><span class="t">line</span> <span class="t">below</span></span> '
        '<span class="g l0 minus"><span class="t">several</span> <span class="t">words</span>'
        "</span>: an n-gram that matters; its words share its contribution</span>"
        "<span>grey: not read</span></p>\n"
    )
