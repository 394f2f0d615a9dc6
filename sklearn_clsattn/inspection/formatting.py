"""Numbers, labels and tokens as text, for terminals and pages alike."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len

from .._writing import visible
from ..text._context_vectorizer import CHARACTER_PREFIX

MINUS = "\N{MINUS SIGN}"  # on pages and in plots
WIDTH = 79  # columns of text
_MAX_LISTS = 20


def label_text(label: Any) -> str:
    """Return a class label on one line, of at most 60 characters."""
    text = " ".join(visible(str(label)).split()) or repr(label)
    return text if len(text) <= 60 else f"{text[:59].rstrip(' .')}…"


def token_text(name: str) -> str:
    """Return a token's name on one line: "ing␣", or "char: ing␣" for a ContextVectorizer's."""
    family, found, ngram = name.partition(CHARACTER_PREFIX)
    if found:
        return f"{visible(family)}char: {token_text(ngram)}"
    text = visible(name)
    inner = text.strip(" ")
    if len(inner) == len(text):
        return text
    start = len(text) - len(text.lstrip(" "))
    return "␣" * start + inner + "␣" * (len(text) - start - len(inner))


def token_lists(heading: str, lists: Sequence[tuple[Any, Sequence[str]]]) -> str:
    """Return the tokens of each class under a heading; no token is broken at a line's end."""
    lines = [heading]
    for label, tokens in lists[:_MAX_LISTS]:
        kind = "" if isinstance(label, str) else "class "
        # A sign that is no token: tokens may be commas, and have spaces in them.
        words = [*(f"{token} ·" for token in tokens[:-1]), *tokens[-1:]]
        lines.append(filled(words, f"  {kind}{label_text(label)}: ", "    "))
    if len(lists) > _MAX_LISTS:
        lines.append(f"  and {len(lists) - _MAX_LISTS} more classes")
    return "\n".join(lines)


def filled(words: Iterable[str], first: str = "", others: str = "") -> str:
    """Return words in lines of the usual width, which start with `first` and with `others`."""
    lines, line, start = [], first, first
    for word in words:
        if line != start and cell_len(line + word) > WIDTH:
            lines.append(line.rstrip())
            line = start = others
        line += f"{word} "
    return "\n".join([*lines, line.rstrip()])


def in_columns(rows: Sequence[Sequence[str]], gap: str = "  ") -> str:
    """Return rows as lines, with the first column aligned left and the others right."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        spaces = [" " * (n - cell_len(cell)) for cell, n in zip(row, widths, strict=True)]
        others = map(str.__add__, spaces[1:], row[1:])
        lines.append(gap.join([row[0] + spaces[0], *others]).rstrip())
    return "\n".join(lines)


def aligned(numbers: Sequence[float | None], minus: str = "-") -> list[str]:
    """Return signed numbers with equally many decimals, to be aligned in a column; "–" for None."""
    decimals = _decimals(max((abs(one) for one in numbers if one is not None), default=0.0))
    if decimals is None:
        return ["–" if number is None else signed(number, minus) for number in numbers]
    return [
        "–" if number is None else f"{number:+.{decimals}f}".replace("-", minus)
        for number in numbers
    ]


def rounds_to_nothing(number: float, largest: float) -> bool:
    """Return whether `aligned` writes a number as 0 beside the largest."""
    decimals = _decimals(largest)
    return decimals is not None and abs(number) < 0.5 * 10.0**-decimals


def _decimals(largest: float) -> int | None:
    """Return the decimals of numbers up to `largest`; None where each has its own."""
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    if not -5 <= magnitude <= 5:
        return None
    return max(0, 3 - max(1, magnitude)) if magnitude >= -1 else 1 - magnitude


def signed(number: float, minus: str = "-") -> str:
    """Return a number with its sign and two or three digits, such as "+0.31"."""
    size = abs(number)
    if size >= 999.5:
        text = f"{number:+.3g}"
    elif size >= 0.0995 or size == 0:
        text = f"{number:+.2f}"
    elif size >= 0.00095:
        text = f"{number:+.3f}"
    else:
        text = f"{number:+.0e}"
    return text.replace("-", minus)


def percent(share: float) -> str:
    """Return a share between 0 and 1 in percent, such as "3.1%"."""
    if share >= 0.9995:
        return ">99.9%" if share < 1 else "100%"
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def count_text(count: float) -> str:
    """Return a count, such as "2", or a weight, such as "0.31"."""
    return f"{count:.0f}" if count == round(count) and count < 1e6 else f"{count:.3g}"


def shortened(many: Any) -> str:
    """Return an explanation of documents as text, of many of the first ten alone."""
    text, more = str(many[:10].to_text()), len(many) - 10
    return text if more <= 0 else f"{text}\n\nand {more:,} more: to_text() has all of them."


def level(size: float, largest: float, n_levels: int) -> int:
    """Return the level of a size, from 0 (below a tenth of the largest) to `n_levels`."""
    share = abs(size) / largest if largest > 0 else 0.0
    return 0 if share < 0.1 else min(n_levels, 1 + int(share * n_levels * 0.9999))
