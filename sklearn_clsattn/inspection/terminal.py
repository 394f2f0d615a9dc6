"""Explanations as text for terminals, in colour where the terminal has it."""

from collections.abc import Iterable
from io import StringIO
from numbers import Integral
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from sklearn.utils import check_scalar

from .formatting import (
    aligned,
    count_column,
    count_text,
    level,
    percent,
    signed,
    token_text,
    visible,
)
from .token_positions import Segment, strongest_passages
from .view import MAX_UNFOLDED, Token, View, views

_NARROWEST = 40  # columns of text
_NO_BARS = 60  # narrower tables have no bars
_WITHOUT_TERMINAL = 100
_BARS = ""  # the heading of their column
_LONG = 20_000  # characters of a text, from which on only its strongest passages are shown
_OF_LONG = 2_000  # characters of these passages
# Blue and orange with the same contrast, 4.5 to 1, on black and on white.
BLUE, ORANGE = "#2678c8", "#b45f06"
# Stronger words are white on a colour; words against the class are underlined as well.
FOR = ("", BLUE, "#ffffff on #1f5f9e", "bold #ffffff on #0a4a8a")
_ORANGES = (ORANGE, "#ffffff on #a85400", "bold #ffffff on #8a3c00")
AGAINST = ("", *(f"underline {style}" for style in _ORANGES))


def render_text(
    explanation: Any, target: Any, top: int, color: bool | None, width: int | None
) -> str:
    """Return an explanation as text, with the parameters of `Explanation.to_text`."""
    check_scalar(top, "top", Integral, min_val=0)
    # 1) The console.
    screen = Console()
    if width is None:
        width = max(screen.width, _NARROWEST) if screen.is_terminal else _WITHOUT_TERMINAL
    if width < _NARROWEST:
        raise ValueError(f"width must be at least {_NARROWEST} columns, got {width}")
    if color is None:
        color = screen.is_terminal and screen.color_system is not None and not screen.no_color
    colors: Any = screen.color_system or "truecolor"
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system=colors if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    # 2) The documents.
    shown = views(explanation, target, top, with_deletion=len(explanation) <= MAX_UNFOLDED)
    with console.capture() as capture:
        for i, one in enumerate(shown):
            if i:
                console.print(Text(f"\n{'─' * width}\n", "dim"))
            for part in _document(one, color=color, width=width):
                console.print(part)
        if not shown:
            console.print("No documents.")
    lines = map(str.rstrip, capture.get().splitlines())  # tables fill the width with spaces
    return "\n".join(lines)


def _document(view: View, *, color: bool, width: int) -> list[RenderableType]:
    """Return the parts of a document, each on lines of its own."""
    # 1) The prediction, and the strongest reasons for it.
    head = Text.assemble(
        (f"Document {view.number}", "dim"),
        "  predicted ",
        (view.predicted, "bold"),
    )
    if view.probability is not None:
        head.append_text(Text.assemble(" with probability ", (percent(view.probability), "bold")))
    if view.is_right:
        head.append("  correct")
    elif view.true is not None:
        head.append("  WRONG, true label: ")
        head.append(view.true, "bold")
    parts: list[RenderableType] = [head]
    if view.reasons:
        parts.append(_reasons(view, color=color))
    # 2) The text, and the tokens that have no position in it.
    if view.text is not None and view.text.strip():
        parts += [Text(), _text(view, view.text, color=color)]
    if view.unplaced:
        parts.append(Text())
        if view.text is not None:
            parts.append(Text(f"{view.unplaced_title()}:", "dim"))
        parts.append(_unplaced(view, color=color))
    if not view.tokens:
        parts += [Text(), Text(view.nothing)]
    # 3) What changes the prediction, and the details.
    if view.deletion:
        parts += [Text(), Text(visible(view.deletion))]
    parts += _details(view, color=color, width=width)
    return parts


def _reasons(view: View, *, color: bool) -> Text:
    """Return the sentence on the strongest tokens, which shows the meaning of the colours."""
    sentence = Text()
    for number, reason in enumerate(view.reasons):
        if number:
            sentence.append("; ")
        last = len(reason.tokens) - 1
        for at, token in enumerate(reason.tokens):
            if at:
                sentence.append(" and " if at == last else ", ")
            strength = level(token.contribution, view.largest, 3)
            style = _style(reason.sign, max(strength, 1)) if color else ""
            sentence.append(f'"{token_text(token.name)}"', style)
        sentence.append(f" {reason.verb} {reason.label}")
    sentence.append(".")
    return sentence


def _unplaced(view: View, *, color: bool) -> Text:
    """Return the tokens without a position in a text, marked by what they add."""
    names = []
    for token in view.unplaced:
        name = token_text(token.name)
        # Beside a text, a weight need not be a number of occurrences.
        if token.weight != 1 and view.text is None:
            name += f"×{count_text(token.weight)}"
        names.append(_marked(view, name, token.contribution, color=color))
    return Text(" ").join(names)


def _details(view: View, *, color: bool, width: int) -> list[RenderableType]:
    """Return the probabilities of classes, the decision as a sum, and its terms in tables."""
    parts: list[RenderableType] = [Text(), Text("Details", "bold")]
    # 1) The classes.
    shown, more = view.classes()
    if shown:
        listed = []
        for one in shown:
            number = signed(one.decision) if one.probability is None else percent(one.probability)
            listed.append(f"{one.label} {number}")
        if more:
            listed.append(f"and {more} more")
        parts.append(Text(", ".join(listed), "dim"))
    # 2) The sum, and its terms.
    if view.is_sum:
        parts.append(_sum(view))
    parts += _tables(view, color=color, width=width)
    # 3) Remarks, on a line each.
    remarks = view.remarks()
    if view.effects_note:
        remarks.append(view.effects_note)
    if remarks:
        sentences = [f"{remark}." for remark in remarks]
        parts += [Text(), Text("\n".join(sentences), "dim")]
    return parts


def _name(token: Token) -> str:
    """Return a token's name and the remark on it."""
    name = token_text(token.name)
    return f"{name} ({token.note})" if token.note else name


def _style(sign: float, strength: int) -> str:
    return (FOR if sign > 0 else AGAINST)[strength]


def _text(view: View, text: str, *, color: bool) -> Text:
    """Return the text, or the strongest passages of a long one, marked by what they add."""
    shown = Text()
    if len(text) <= _LONG:
        _append_segments(shown, view, view.segments, color=color)
        return shown
    title = f"The passages that matter most, and where they start in the {len(text):,} characters:"
    shown.append(title, "dim")
    for place, segments in strongest_passages(view.segments, _OF_LONG):
        shown.append(f"\n{place:4.0%}  ", "dim")
        _append_segments(shown, view, segments, color=color)
    return shown


def _sum(view: View) -> Text:
    """Return the decision as a sum."""
    end, start, *totals = aligned([view.end, view.start, view.plus.total, view.minus.total])
    decision = Text.assemble((f"{view.decision_name} {end}", "bold"), f" = {start} intercept")
    for side, number in zip((view.plus, view.minus), totals, strict=True):
        if side.total:
            decision.append(f", {number} {side.label}")
    return decision


def _append_segments(shown: Text, view: View, segments: Iterable[Segment], *, color: bool) -> None:
    """Append segments of a text, marked by what they add."""
    for segment in segments:
        written = visible(segment.text, keep_lines=True)
        is_blank = not segment.text.strip()
        if segment.tokens and not is_blank:
            shown.append_text(_marked(view, written, segment.contribution, color=color))
        else:
            style = "dim strike" if segment.is_ignored else "dim"
            shown.append(written, "" if is_blank else style)


def _marked(view: View, written: str, added: float, *, color: bool) -> Text:
    strength = level(added, view.largest, 3)
    if color:
        return Text(written, _style(added, strength))
    if strength > 1:
        sign = "+" if added > 0 else "-"
        return Text(f"[{sign}{written}]")
    return Text(written)


def _tables(view: View, *, color: bool, width: int) -> list[RenderableType]:
    """Return the strongest tokens of both sides, in tables of equal column widths."""
    tokens = view.listed
    if not tokens:
        return []
    # 1) The columns, and their widths; the names get what the others leave.
    columns = _columns(view, width)
    gap = 1 if width < _NO_BARS else 2
    widths: dict[str, int] = {}
    for head, cells in columns.items():
        widths[head] = max(map(cell_len, [head, *cells]))
    n_others = sum(widths.values()) - widths["token"] + gap * (len(widths) - 1)
    widths["token"] = max(1, min(widths["token"], width - n_others))
    rows = dict(zip(tokens, zip(*columns.values(), strict=True), strict=True))
    # 2) A table for each side.
    parts: list[RenderableType] = []
    for side in view.sides:
        if not side.tokens:
            continue
        title = Text(f"{side.label[0].upper()}{side.label[1:]}")
        title.stylize(_style(side.sign, 2) if color else "bold")
        table = Table.grid(padding=(0, gap, 0, 0), pad_edge=False)
        bar_style = BLUE if side.sign > 0 else ORANGE
        heads = []
        styles = []
        for head, size in widths.items():
            justify: Any = "left" if head in (_BARS, "token") else "right"
            table.add_column(justify=justify, overflow="fold", width=size)
            heads.append(Text(head, "dim"))
            styles.append(bar_style if head == _BARS else "")
        table.add_row(*heads)
        for token in side.tokens:
            table.add_row(*map(Text, rows[token], styles))
        parts += [Text(), title, table]
    return parts


def _columns(view: View, width: int) -> dict[str, list[str]]:
    """Return the columns of the tables of listed tokens, with bars where there is space."""
    tokens = view.listed
    contributions = [token.contribution for token in tokens]
    columns = {view.adds_name: aligned(contributions)}
    if width >= _NO_BARS:
        longest = 6 if width < 80 else 16
        largest = max(map(abs, contributions))
        columns[_BARS] = []
        for contribution in contributions:
            length = longest * abs(contribution) / largest
            columns[_BARS].append("█" * round(length))
    columns["token"] = [_name(token) for token in tokens]
    columns["weight"] = count_column([token.weight for token in tokens])
    if view.has_attention:
        columns["attention"] = [percent(token.attention or 0.0) for token in tokens]
    if view.has_without:
        columns["without"] = aligned([token.without for token in tokens])
    return columns
