"""The small pieces of HTML that all parts of a model report are made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..rendering.legible import label_text

MAX_CLASSES = 20
"""So many classes have a row, a column or bars of their own; more make a page that nobody reads."""


def name_of(label: Any) -> str:
    """Return a class label as HTML.

    Parameters
    ----------
    label : object
        Any label.

    Returns
    -------
    html : str
        Isolated from the direction of the text around it.
    """
    return f"<bdi>{escape(label_text(label))}</bdi>"


def title_of(label: Any) -> str:
    """Return a class label as a heading; a bare number would not be known for one.

    Parameters
    ----------
    label : object
        Any label.

    Returns
    -------
    html : str
        Such as "class 1".
    """
    return name_of(label) if isinstance(label, str) else f"class {name_of(label)}"


def p_text(p: float) -> str:
    """Return a p-value.

    Parameters
    ----------
    p : float
        Between 0 and 1.

    Returns
    -------
    text : str
        Such as "p = 0.031".
    """
    return ("p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}").replace(
        " ", "\N{NO-BREAK SPACE}"
    )


def facts_list(pairs: Sequence[tuple[str, str]]) -> str:
    """Return terms and what they are.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Both as HTML.

    Returns
    -------
    html : str
        A description list.
    """
    return f'<dl class="r-facts">{"".join(f"<dt>{a}</dt><dd>{b}</dd>" for a, b in pairs)}</dl>'


def table(heads: Sequence[str], rows: Sequence[str], *, slim: bool = False) -> str:
    """Return a table with a head.

    Parameters
    ----------
    heads : sequence of str
        The columns, as HTML.
    rows : sequence of str
        What :func:`row` returns.
    slim : bool, default=False
        Whether it is only as wide as it needs to be.

    Returns
    -------
    html : str
        The table.
    """
    head = "".join(f'<th scope="col">{head}</th>' for head in heads)
    return (
        f'<table class="r-tab{" r-slim" * slim}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def row(head: str, cells: Sequence[str]) -> str:
    """Return a row of a table.

    Parameters
    ----------
    head : str
        What the row is about, as HTML.
    cells : sequence of str
        The other cells.

    Returns
    -------
    html : str
        The row.
    """
    return f'<tr><th scope="row">{head}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
