"""What the formatters share: characters that can be shown, numbers, and what to show first."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import Explanation

Array = NDArray[np.float64]

# Characters that turn the direction of everything after them.
_DIRECTIONS = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}

# Contributions smaller than this, in log-odds, are shaded as what they are: next to nothing.
FAINT = 0.05


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Return a text in which every character can be written and none takes control.

    Lone surrogates and non-characters become U+FFFD; control characters, with which a text could
    steer a terminal, become the signs that Unicode has for them; characters that turn the
    direction of writing become their numbers.

    Parameters
    ----------
    text : str
        Any text.
    keep_lines : bool, default=False
        Whether line breaks and tabs stay; otherwise they become spaces.

    Returns
    -------
    text : str
        What can be shown.
    """
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        character if character.isprintable() else _shown(character, keep_lines)
        for character in text
    )


def _shown(character: str, keep_lines: bool) -> str:
    code = ord(character)
    if character in "\n\t":
        return character if keep_lines else " "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if code in _DIRECTIONS:
        return f"[U+{code:04X}]"
    if unicodedata.category(character) == "Cc":
        return "\ufffd"
    if code in (0x2028, 0x2029):
        return "\n" if keep_lines else " "
    if unicodedata.category(character) == "Cs" or _is_noncharacter(code):
        return "\ufffd"
    return character


def _is_noncharacter(code: int) -> bool:
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def label_text(label: Any) -> str:
    """Return a class label on one line, so short that it fits a heading.

    Parameters
    ----------
    label : object
        Any label.

    Returns
    -------
    text : str
        At most 60 characters.
    """
    text = " ".join(visible(str(label)).split()) or repr(label)
    return text if len(text) <= 60 else f"{text[:59]}…"


def token_text(name: str) -> str:
    """Return a token's name on one line, with the spaces that it starts or ends with visible.

    Parameters
    ----------
    name : str
        Any name; n-grams of characters have spaces at their ends.

    Returns
    -------
    text : str
        Such as "ing␣".
    """
    text = visible(name)
    inner = text.strip(" ")
    if len(inner) == len(text):
        return text
    start = len(text) - len(text.lstrip(" "))
    return "␣" * start + inner + "␣" * (len(text) - start - len(inner))


def aligned(numbers: Sequence[float], minus: str = "-") -> list[str]:
    """Return signed numbers with equally many decimals, so that they can be compared in a column.

    Parameters
    ----------
    numbers : sequence of float
        Such as contributions.
    minus : str, default="-"
        The minus sign.

    Returns
    -------
    texts : list of str
        With two decimals, or so many that the largest number has two digits.
    """
    largest = max((abs(number) for number in numbers), default=0.0)
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    if not -5 <= magnitude <= 5:
        return [signed(number, minus) for number in numbers]
    decimals = max(0, 3 - max(1, magnitude)) if magnitude >= -1 else 1 - magnitude
    return [f"{number:+.{decimals}f}".replace("-", minus) for number in numbers]


def signed(number: float, minus: str = "-") -> str:
    """Return a number with its sign and as many digits as matter.

    Parameters
    ----------
    number : float
        A contribution or decision.
    minus : str, default="-"
        The minus sign.

    Returns
    -------
    text : str
        Such as "+0.31".
    """
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
    """Return a share in percent.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    text : str
        Such as "3.1%".
    """
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.9995 else "100%"


def count_text(count: float) -> str:
    """Return a count or weight.

    Parameters
    ----------
    count : float
        What the classifier was given.

    Returns
    -------
    text : str
        Such as "2", or "0.31" for a weight.
    """
    return f"{count:.0f}" if count == round(count) and count < 1e6 else f"{count:.3g}"


def shown_target(explanation: Explanation, document: int, target: Any) -> int:
    """Return which of the targets to show of a document.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    document : int
        Place of the document in it.
    target : label or None
        What was asked for; None for the predicted class where it was explained.

    Returns
    -------
    k : int
        A place in ``explanation.targets``.

    Raises
    ------
    ValueError
        If the class asked for was not explained.
    """
    targets = explanation.targets.tolist()
    if target is None:
        predicted = explanation.predicted.tolist()[document]
        return targets.index(predicted) if predicted in targets else 0
    if np.ndim(target) == 0 and target in targets:
        return targets.index(target)
    raise ValueError(f"target must be None or one of the classes explained, {targets}: {target!r}")


def check_top(top: Any) -> None:
    """Refuse a number of tokens that is none.

    Parameters
    ----------
    top : int
        How many tokens to list.

    Raises
    ------
    ValueError
        If it is no integer, or negative.
    """
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 0:
        raise ValueError(f"top must be a number of tokens, 0 or more, got {top!r}")


def strongest(contributions: Array, top: int) -> tuple[list[int], list[int]]:
    """Return the tokens that speak most for and against.

    Parameters
    ----------
    contributions : ndarray of shape (n_tokens,)
        Of a document's tokens.
    top : int
        How many of each at most.

    Returns
    -------
    speaks_for, speaks_against : list of int
        Places of the tokens, the strongest first.
    """
    order = np.argsort(-contributions, kind="stable").tolist()
    speaks_for = [at for at in order if contributions[at] > 0][:top]
    speaks_against = [at for at in reversed(order) if contributions[at] < 0][:top]
    return speaks_for, speaks_against


def sides(explanation: Explanation, k: int) -> tuple[str, str]:
    """Return what the two signs of a contribution mean.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    k : int
        The target shown.

    Returns
    -------
    plus, minus : str
        "for good" and "for bad" of two classes, else "for good" and "against good".
    """
    target = explanation.targets.tolist()[k]
    plus = f"for {label_text(target)}"
    if len(explanation.classes) == 2:
        other = next(label for label in explanation.classes.tolist() if label != target)
        return plus, f"for {label_text(other)}"
    return plus, f"against {label_text(target)}"


def level(size: float, largest: float, n_levels: int) -> int:
    """Return a number's level of emphasis, 0 below a tenth of the largest.

    Parameters
    ----------
    size : float
        What to show.
    largest : float
        What has the highest level.
    n_levels : int
        The highest level.

    Returns
    -------
    level : int
        From 0 to `n_levels`.
    """
    share = abs(size) / largest if largest > 0 else 0.0
    return 0 if share < 0.1 else min(n_levels, 1 + int(share * n_levels * 0.9999))
