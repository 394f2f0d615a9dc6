"""Numbers, labels and tokens as text, for terminals and pages alike."""

import math
from collections.abc import Sequence
from typing import Any

from .._writing import label_text as label_text
from .._writing import visible
from ..text._character_ngrams import CHARACTER_PREFIX

MINUS = "\N{MINUS SIGN}"  # on pages and in plots


def token_text(name: str) -> str:
    """Return a token's name on one line: "ing␣", or "char: ing␣" for a ContextVectorizer's."""
    prefix, separator, ngram = name.partition(CHARACTER_PREFIX)
    if separator:
        return f"{visible(prefix)}char: {token_text(ngram)}"
    text = visible(name)
    inner = text.strip(" ")
    n_before = len(text) - len(text.lstrip(" "))
    n_after = len(text) - len(inner) - n_before
    return "␣" * n_before + inner + "␣" * n_after


def class_name(label: Any) -> str:
    """Return a class label in a sentence: a bare number would not be recognised as a class."""
    return label_text(label) if isinstance(label, str) else f"class {label_text(label)}"


def aligned(numbers: Sequence[float | None], minus: str = "-") -> list[str]:
    """Return signed numbers with equally many decimals, to be aligned in a column; "–" for None."""
    largest = max((abs(number) for number in numbers if number is not None), default=0.0)
    decimals = _decimals(largest)
    texts = []
    for number in numbers:
        if number is None:
            texts.append("–")
        elif decimals is None:
            texts.append(signed(number, minus))
        else:
            texts.append(f"{number:+.{decimals}f}".replace("-", minus))
    return texts


def rounds_to_nothing(number: float, largest: float) -> bool:
    """Return whether `aligned` writes a number as 0 beside the largest."""
    decimals = _decimals(largest)
    return decimals is not None and abs(number) < 0.5 * 10.0**-decimals


def _decimals(largest: float) -> int | None:
    """Return the decimals of numbers up to `largest`; None where each has its own."""
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    if not -5 <= magnitude <= 5:
        return None
    if magnitude < -1:
        return 1 - magnitude
    return max(0, 3 - max(1, magnitude))


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
    if share >= 1:
        return "100%"
    if share >= 0.9995:
        return ">99.9%"
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.1%}"


def count_text(count: float) -> str:
    """Return a count, such as "2", or a weight, such as "0.31"."""
    is_whole = count == round(count) and count < 1e6
    return f"{count:.0f}" if is_whole else f"{count:.3g}"


def count_column(counts: Sequence[float]) -> list[str]:
    """Return counts, or weights with equally many decimals, to be aligned in a column."""
    largest = max(counts, default=0.0)
    decimals = _decimals(largest)
    are_whole = all(count == round(count) for count in counts)
    if are_whole or decimals is None:
        return [count_text(count) for count in counts]
    texts = []
    for count in counts:
        is_visible = count == 0 or not rounds_to_nothing(count, largest)
        texts.append(f"{count:.{decimals}f}" if is_visible else count_text(count))
    return texts


def shortened(many: Any) -> str:
    """Return an explanation as text: at most its first ten documents."""
    text = str(many[:10].to_text())
    n_more = len(many) - 10
    return text if n_more <= 0 else f"{text}\n\nand {n_more:,} more: to_text() has all of them."


def level(size: float, largest: float, n_levels: int) -> int:
    """Return the level of a size, from 0 (below a tenth of the largest) to `n_levels`."""
    share = abs(size) / largest if largest > 0 else 0.0
    if share < 0.1:
        return 0
    return min(n_levels, 1 + int(share * n_levels * 0.9999))
