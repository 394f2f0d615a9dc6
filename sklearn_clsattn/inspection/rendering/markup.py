"""Text as HTML: every text of a user, and every token's name, goes through these functions."""

from __future__ import annotations

from html import escape

from .legible import count_text, percent, signed, token_text, visible
from .view import View

MINUS = "\N{MINUS SIGN}"
"""The minus sign on paper; a hyphen is shorter than a plus."""


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


def named(view: View, token: int) -> str:
    """Return a token's name as HTML, with its vectorizer's part, less prominent, after it.

    Parameters
    ----------
    view : View
        The document.
    token : int
        One of its tokens.

    Returns
    -------
    html : str
        Elements that writing of any direction cannot break out of.
    """
    prefix, name = view.name(token)
    html = f"<bdi>{escaped(token_text(name))}</bdi>"
    return f'{html} <bdi class="of">{escaped(prefix)}</bdi>' if prefix else html


def tooltip(view: View, tokens: list[int]) -> str:
    """Return what there is to say of tokens, for the attribute `title`.

    Parameters
    ----------
    view : View
        The document.
    tokens : list of int
        Some of its tokens.

    Returns
    -------
    html : str
        A line for each token, the strongest first.
    """
    one = view.one
    lines = []
    for token in sorted(tokens, key=lambda token: -abs(view.contributions[token])):
        line = (
            f"{token_text(str(one.tokens[token]))} ×{count_text(float(one.counts[token]))}: "
            f"{signed(float(view.contributions[token]), MINUS)}, "
            f"attention {percent(float(one.attention[token]))}"
        )
        without = view.without(token)
        if without is not None:
            line += f", decision without {signed(without, MINUS)}"
        lines.append(line)
    return escape("\n".join(lines))
