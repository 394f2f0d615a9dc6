"""Explanations as HTML: the document's own text, shaded, and the sum that its decision is.

There are no scripts, nothing is fetched, and every text goes through :func:`.markup.escaped`.
"""

from __future__ import annotations

from html import escape
from typing import Any

from ..explanation import Explanation
from .bar import render_bar
from .legend import render_legend
from .legible import (
    aligned,
    check_top,
    count_text,
    level,
    percent,
    shown_target,
    signed,
    token_text,
)
from .markup import MINUS, named, tooltip
from .markup import escaped as escaped
from .pieces import Piece
from .style import N_OUTLINES, N_SHADES, PAGE_STYLE, STYLE
from .view import ShownText, Side, View, view

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
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
    views = _views(explanation[:max_documents], target, top)
    sections = [_section(one) for one in views]
    more = len(explanation) - len(views)
    if more:
        sections.append(
            f'<p class="soft">and {more:,} more document{"s" * (more > 1)}: '
            "slice the explanation to see them.</p>"
        )
    if not len(explanation):
        sections.append('<p class="soft">No documents.</p>')
    title = escaped(repr(explanation)[1:-1])
    head = "" if fragment else f"<h1>{title}</h1>\n"
    legend = render_legend(views)
    body = f'<div class="clsattn">\n<style>{STYLE}</style>\n{head}{legend}{"".join(sections)}</div>'
    return body if fragment else _PAGE.format(title=title, style=PAGE_STYLE, body=body)


def render_sections(
    explanation: Explanation, *, target: Any, top: int, open_text: bool = True
) -> str:
    """Return the documents of an explanation as sections, without style and legend.

    They are to stand in an element of class ``clsattn``, on a page that has
    :data:`~sklearn_clsattn.inspection.rendering.style.STYLE`.

    Parameters
    ----------
    explanation : Explanation
        What to show.
    target : label or None
        The class to show; None for each document's predicted class where it was explained.
    top : int
        How many tokens for and against to list.
    open_text : bool, default=True
        Whether the texts are open, rather than folded until the reader opens them.

    Returns
    -------
    html : str
        A ``<section>`` for each document.

    Raises
    ------
    ValueError
        If the class was not explained, or `top` is negative.
    """
    views = _views(explanation, target, top)
    return "".join(_section(one, open_text=open_text) for one in views)


def _views(explanation: Explanation, target: Any, top: int) -> list[View]:
    check_top(top)
    if target is not None:
        shown_target(explanation, 0, target)
    return [view(one, target, top) for one in explanation]


def _section(view: View, *, open_text: bool = True) -> str:
    text = _texts(view)
    if text and not open_text:
        text = f"<details><summary>{_folded(view)}</summary>\n{text}</details>\n"
    return (
        f'<section class="doc">\n{_head(view)}{_classes(view)}{render_bar(view)}{text}'
        f"{_lists(view)}{_remarks(view)}</section>\n"
    )


def _folded(view: View) -> str:
    """Return what is said in place of texts that are folded."""
    if not view.texts:
        return f"Its {len(view.one.tokens):,} tokens"
    words = sum(len("".join(piece.text for piece in text.pieces).split()) for text in view.texts)
    return f"Its text: {words:,} word{'s' * (words != 1)}"


def _head(view: View) -> str:
    parts = [
        f'<span class="no">Document {int(view.one.index[0])}</span>',
        f'<span class="said">predicted <b><bdi>{escape(view.predicted)}</bdi></b> '
        f"with probability <b>{percent(view.probability)}</b></span>",
    ]
    if not view.is_binary and view.said != view.predicted:
        parts.append(f'<span class="soft">seen from <bdi>{escape(view.said)}</bdi></span>')
    if view.true is not None:
        true = f"<bdi>{escape(view.true)}</bdi>"
        parts.append(
            f"<span>✓ truly {true}</span>"
            if view.is_right
            else f'<span class="wrong">✗ truly {true}</span>'
        )
    return f'<div class="head">{"".join(parts)}</div>\n'


def _classes(view: View) -> str:
    shown, more = view.classes()
    if not shown:
        return ""
    items = [
        f'<li class="{"shown" if one.shown else "soft"}" '
        f'title="decision {signed(one.decision, MINUS)}">'
        f"<span><bdi>{escape(one.label)}</bdi> {percent(one.probability)}</span>"
        f'<span class="meter"><i style="width:{100 * one.probability:.1f}%"></i></span></li>'
        for one in shown
    ]
    if more:
        items.append(f'<li class="soft">and {more} more classes</li>')
    return f'<ul class="classes">{"".join(items)}</ul>\n'


def _texts(view: View) -> str:
    html = []
    for text in view.texts:
        if text.name is not None:
            html.append(f"<h4><bdi>{escaped(text.name)}</bdi></h4>")
        html.append(_text(view, text))
    if view.unplaced:
        html.append(f"<h4>{view.unplaced_title()}</h4>{_joined(view)}")
    if view.knows_nothing:
        html.append(
            '<p class="soft">No token that the model knows: the decision is the intercept.</p>'
        )
    return "".join(html)


def _text(view: View, text: ShownText) -> str:
    inner = "".join(_piece(view, piece) for piece in text.pieces)
    return f'<div class="text" dir="auto" lang="">{inner}</div>\n'


def _piece(view: View, piece: Piece) -> str:
    html = escaped(piece.text, keep_lines=True)
    if piece.tokens:
        known = [token for token in piece.tokens if token >= 0]
        html = _marked(view, "span", html, piece.contribution, piece.attention, known)
    for lane, token in piece.lines:
        against = " minus" if view.contributions[token] < 0 else ""
        html = f'<span class="g l{lane}{against}">{html}</span>'
    return html


def _joined(view: View) -> str:
    one = view.one
    parts = []
    for token in view.unplaced:
        html = escaped(token_text(str(one.tokens[token])))
        if one.counts[token] != 1:
            html += f"<small>×{count_text(float(one.counts[token]))}</small>"
        added, attended = float(view.contributions[token]), float(one.attention[token])
        parts.append(_marked(view, "bdi", html, added, attended, [token]))
    return f'<div class="text joined">{" ".join(parts)}</div>\n'


def _marked(
    view: View, element: str, html: str, added: float, attended: float, tokens: list[int]
) -> str:
    """Return a word shaded by what it adds and outlined by its attention."""
    names = ["t"]
    shade = level(added, view.largest, N_SHADES)
    # Attention is spread wider than contributions: its lower half is left without outlines.
    over = 2 * attended / view.most - 1 if view.most else -1.0
    outline = min(N_OUTLINES, 1 + int(N_OUTLINES * over)) if over >= 0 else 0
    if shade:
        names.append(f"{'p' if added > 0 else 'n'}{shade}")
    if outline:
        names.append(f"a{outline}")
    title = f' title="{tooltip(view, tokens)}"' if tokens and len(names) > 1 else ""
    return f'<{element} class="{" ".join(names)}"{title}>{html}</{element}>'


def _lists(view: View) -> str:
    tokens = view.plus.tokens + view.minus.tokens
    if not tokens:
        return ""
    added = aligned([float(view.contributions[token]) for token in tokens], MINUS)
    numbers = dict(zip(tokens, added, strict=True))
    largest = max(abs(float(view.contributions[token])) for token in tokens)
    tables = "".join(_table(view, side, numbers, largest) for side in view.sides)
    return f'<div class="lists">{tables}</div>\n'


def _table(view: View, side: Side, numbers: dict[int, str], largest: float) -> str:
    kind = ' class="minus"' if side.sign < 0 else ""
    caption = f"{'+' if side.sign > 0 else MINUS} {escape(side.said)}"
    if not side.tokens:
        return f"<table{kind}><caption>{caption}: no token</caption></table>"
    one = view.one
    known = [value for token in side.tokens if (value := view.without(token)) is not None]
    without = aligned(known, MINUS)
    rows = []
    for at, token in enumerate(side.tokens):
        size = 100 * abs(float(view.contributions[token])) / largest
        cells = [
            numbers[token],
            percent(float(one.attention[token])),
            count_text(float(one.counts[token])),
            *without[at : at + 1],
        ]
        rows.append(
            f'<tr><th scope="row"><span class="size" style="width:{size:.1f}%"></span>'
            f"{named(view, token)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        )
    heads = ["token", "adds", "attention", "count"] + ["decision without"] * bool(without)
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f"<table{kind}><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _remarks(view: View) -> str:
    remarks = "; ".join(map(escape, view.remarks(MINUS)))
    return f'<p class="soft small">{remarks}.</p>\n' if remarks else ""
