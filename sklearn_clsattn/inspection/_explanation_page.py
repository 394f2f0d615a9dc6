"""An explanation as a page of HTML, and what of each document has space on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from .pages import render
from .terms import DecisionTerms
from .token_positions import Passage, strongest_passages
from .view import View, views

MAX_UNFOLDED = 20  # more documents than this are folded to a line each
_MAX_IN_FULL = 100  # more documents have no details
_TOKENS_OF_MANY = 4_000  # listed of all of these together
_LARGEST_PAGE = 1_000_000  # characters of the texts that a page has as a whole
_LONG = 1_500  # characters of a text, or so, from which on its strongest passages come first
_OF_LONG = 500  # characters of these passages
_CHARACTERS_OF_MANY = 100_000  # of the texts of folded documents together


class Space(NamedTuple):
    """What is shown of one document."""

    is_folded: bool
    is_brief: bool  # without details
    is_whole: bool  # with the whole text below its passages
    passages: list[list[Passage] | None]  # of each text; None for one that is shown as it is


def explanation_html(
    explanation: DecisionTerms, n_shown: int, target: Any, top: int, fragment: bool
) -> str:
    """Return a page, or a part of one, of the first documents."""
    is_brief = n_shown > _MAX_IN_FULL
    if is_brief:
        top = min(top, max(1, _TOKENS_OF_MANY // (2 * n_shown)))
    shown = views(
        explanation[:n_shown],
        target,
        top,
        with_effects=not is_brief,
        with_deletion=n_shown <= MAX_UNFOLDED,
    )
    return render(
        "explanation.html",
        title=repr(explanation)[1:-1],
        views=shown,
        spaces=spaces(shown),
        overview=_overview(shown),
        more=max(len(explanation) - n_shown, 0),
        fragment=fragment,
    )


def spaces(views: Sequence[View], can_fold: bool = True) -> list[Space]:
    """Return the space of each view: all of few documents, the strongest passages of many."""
    n = len(views)
    longest = _LONG
    limit = _OF_LONG
    is_folded = can_fold and n > MAX_UNFOLDED
    if is_folded:
        longest = limit = max(_CHARACTERS_OF_MANY // n, 100)
    made = []
    used = 0
    for one in views:
        passages = [
            strongest_passages(text.segments, limit) if len(text.text) > longest else None
            for text in one.texts
        ]
        used += sum(len(text.text) for text in one.texts)
        is_whole = not is_folded and used <= _LARGEST_PAGE
        made.append(Space(is_folded, n > _MAX_IN_FULL, is_whole, passages))
    return made


def _overview(views: Sequence[View]) -> str:
    """Return a sentence on the predictions, and on how many are wrong."""
    predicted = Counter(one.predicted for one in views).most_common()
    said = [f"{count:,} {label}" for label, count in predicted[:4]]
    if len(predicted) > 4:
        said.append(f"{sum(count for _, count in predicted[4:]):,} other classes")
    known = sum(one.true is not None for one in views)
    wrong = known - sum(one.is_right for one in views)
    right = f" {wrong:,} of {known:,} {'is' if wrong == 1 else 'are'} wrong." if known else ""
    return f"Predicted: {', '.join(said)}.{right}"
