"""Explanations as text for terminals, in colour where the terminal has it."""

from __future__ import annotations

from io import StringIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

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

Array = NDArray[np.float64]

_NARROWEST = 40
_WITHOUT_TERMINAL = 100
_N_LEVELS = 3
# Level of a word's share from which it is marked where there are no colours.
_MARKED_FROM = 2
# Blue and orange that are legible on black and on white, or bear white ink; what speaks against
# is underlined as well.
_BLUE, _ORANGE = "#2f7fd1", "#b8620a"
_FOR = ("", _BLUE, "#ffffff on #1f5f9e", "bold #ffffff on #0a4a8a")
_AGAINST = (
    "",
    f"underline {_ORANGE}",
    "underline #ffffff on #a85400",
    "bold underline #ffffff on #8a3c00",
)


def render_text(
    explanation: Explanation,
    *,
    target: Any,
    top: int,
    color: bool | None,
    width: int | None,
) -> str:
    """Return an explanation as text.

    Parameters
    ----------
    explanation : Explanation
        What to show.
    target : label or None
        The class to show; None for each document's predicted class where it was explained.
    top : int
        How many tokens for and against to list.
    color : bool or None
        Whether to use colours; None for where standard output is a terminal that has them.
    width : int or None
        Columns to use; None for those of the terminal, or 100.

    Returns
    -------
    text : str
        Lines, the last one without a line break.

    Raises
    ------
    ValueError
        If the class was not explained, or `top` or `width` is too small.
    """
    check_top(top)
    screen = Console()
    if width is None:
        width = max(screen.width, _NARROWEST) if screen.is_terminal else _WITHOUT_TERMINAL
    if width < _NARROWEST:
        raise ValueError(f"width must be at least {_NARROWEST} columns, got {width}")
    if color is None:
        color = screen.is_terminal and screen.color_system is not None and not screen.no_color
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system=_color_system(screen) if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    if target is not None and not len(explanation):
        shown_target(explanation, 0, target)
    with console.capture() as capture:
        if not len(explanation):
            console.print("No documents.")
        for i in range(len(explanation)):
            if i:
                console.print()
            k = shown_target(explanation, i, target)
            console.print(_document(explanation[i], k, top, color=color, width=width))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _color_system(screen: Console) -> Any:
    return screen.color_system or "truecolor"


def _document(one: Explanation, k: int, top: int, *, color: bool, width: int) -> RenderableType:
    contributions: Array = one.contributions[:, k]
    plus, minus = sides(one, k)
    rest = float(one.others_contributions[0, k])
    gains = float(contributions[contributions > 0].sum()) + max(rest, 0.0)
    losses = float(contributions[contributions < 0].sum()) + min(rest, 0.0)
    parts: list[RenderableType] = [_head(one)]
    if len(one.targets) > 1:
        parts.append(_classes(one))
    parts.append(
        Text.assemble(
            ("decision ", "bold"),
            (signed(float(one.decision[0, k])), "bold"),
            f" = {signed(float(one.intercept[k]))} intercept, {signed(gains)} {plus}, "
            f"{signed(losses)} {minus}",
        )
    )
    placed: set[int] = set()
    for text in one.texts[0]:
        placed |= tokens_in(text)
        name = [] if text.name is None else [(f"{visible(text.name)}: ", "bold")]
        body = _text(text, contributions, color=color)
        parts += [Text(), Text.assemble(*name, body)]
    left = [token for token in range(len(one.tokens)) if token not in placed]
    if left:
        parts += [Text(), _joined(one, left, contributions, color=color)]
    if not len(one.tokens) and not one.others_count[0]:
        parts += [Text(), Text("No token that the model knows: the decision is the intercept.")]
    speaks_for, against = strongest(contributions, top)
    largest = float(np.abs(contributions).max(initial=0.0))
    for tokens, title, side in ((speaks_for, f"+ {plus}", 1), (against, f"- {minus}", -1)):
        if tokens:
            style = (_FOR if side > 0 else _AGAINST)[2] if color else "bold"
            parts += [Text(), Text(title, style), _table(one, k, tokens, largest, side, width)]
    parts += _remarks(one, k)
    return Group(*parts)


def _head(one: Explanation) -> Text:
    predicted = one.predicted.tolist()[0]
    head = Text.assemble(
        (f"Document {int(one.index[0])}", "dim"),
        "  predicted ",
        (label_text(predicted), "bold"),
        f" with probability {percent(float(one.predicted_probability[0]))}",
    )
    if one.true is not None:
        true = one.true.tolist()[0]
        right = true == predicted
        head.append("  right" if right else "  WRONG, truly ", "" if right else "bold")
        head.append("" if right else label_text(true), "bold")
    return head


def _classes(one: Explanation) -> Text:
    labels = one.targets.tolist()
    order = np.argsort(-one.probability[0], kind="stable")[:6].tolist()
    shown = [f"{label_text(labels[k])} {percent(float(one.probability[0, k]))}" for k in order]
    more = len(labels) - len(order)
    return Text(", ".join(shown) + (f", and {more} more" if more else ""), "dim")


def _text(text: DocumentText, contributions: Array, *, color: bool) -> Text:
    if text.words is None:
        return Text(visible(text.text, keep_lines=True))
    attention = np.zeros_like(contributions)
    pieces: list[Piece] = cut(text, contributions, attention)
    largest = max([FAINT, *(abs(piece.contribution) for piece in pieces)])
    shown = Text()
    for piece in pieces:
        written = visible(piece.text, keep_lines=True)
        if piece.tokens and piece.text.strip():
            shown.append_text(_marked(written, piece.contribution, largest, color=color))
        else:
            shown.append(written, "dim" if piece.text.strip() else "")
    return shown


def _joined(one: Explanation, tokens: list[int], contributions: Array, *, color: bool) -> Text:
    largest = max([FAINT, *np.abs(contributions[tokens]).tolist()])
    shown = Text()
    for at, token in enumerate(tokens):
        name = visible(str(one.tokens[token]))
        if one.counts[token] != 1:
            name += f"×{count_text(float(one.counts[token]))}"
        shown.append(" " if at else "")
        shown.append_text(_marked(name, float(contributions[token]), largest, color=color))
    return shown


def _marked(written: str, added: float, largest: float, *, color: bool) -> Text:
    strength = level(added, largest, _N_LEVELS)
    if color:
        return Text(written, (_FOR if added > 0 else _AGAINST)[strength])
    if strength < _MARKED_FROM:
        return Text(written)
    return Text(f"[{'+' if added > 0 else '-'}{written}]")


def _table(
    one: Explanation, k: int, tokens: list[int], largest: float, side: int, width: int
) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for _ in range(3 if one.decision_without is not None else 2):
        table.add_column(justify="right", no_wrap=True)
    heads = ["adds", "", "token", "count", "attention"]
    heads += ["without"] if one.decision_without is not None else []
    table.add_row(*(Text(head, "dim") for head in heads))
    longest = 16 if width >= 80 else 6
    for token in tokens:
        added = float(one.contributions[token, k])
        bar = ("█" if side > 0 else "▒") * max(1, round(longest * abs(added) / largest))
        cells = [
            Text(signed(added)),
            Text(bar, _BLUE if side > 0 else _ORANGE),
            Text(visible(str(one.tokens[token]))),
            Text(count_text(float(one.counts[token]))),
            Text(percent(float(one.attention[token]))),
        ]
        if one.decision_without is not None:
            cells.append(Text(signed(float(one.decision_without[token, k]))))
        table.add_row(*cells)
    return table


def _remarks(one: Explanation, k: int) -> list[RenderableType]:
    remarks = []
    if one.others_count[0]:
        remarks.append(
            f"{one.others_count[0]} others, left out by top: "
            f"{signed(float(one.others_contributions[0, k]))}, "
            f"attention {percent(float(one.others_attention[0]))}."
        )
    if one.cls_attention[0]:
        remarks.append(
            f"<cls> keeps {percent(float(one.cls_attention[0]))} of the attention and adds 0."
        )
    return [Text(), Text(" ".join(remarks), "dim")] if remarks else []
