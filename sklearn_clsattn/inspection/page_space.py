"""What a page has space for: all of few documents, the parts that matter most of many."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .segments import Segment
from .view import View

MAX_UNFOLDED = 20  # more documents than this are folded to a line each
LARGEST_PAGE = 1_000_000  # characters of the texts that a page has as a whole
_LONG = 1_500  # characters of a text, or so, from which on its strongest parts come first
_EXCERPT = 500
_MAX_IN_FULL = 100  # more documents have no bar and no tables
_CHARACTERS_OF_MANY = 100_000  # of the texts of folded documents together
_TOKENS_OF_MANY = 4_000  # listed of all of these together
_AROUND = 40  # characters on either side of a strong word


@dataclass(frozen=True)
class Space:
    """What is shown of one document."""

    is_folded: bool
    is_brief: bool  # without bar and tables
    is_whole: bool  # with the whole text below the excerpt
    excerpts: list[list[Segment] | None]  # of each text; None for one that is shown as it is


def listed_tokens(n_documents: int, top: int) -> int:
    """Return how many tokens for and against to list of each of the documents on a page."""
    if n_documents <= _MAX_IN_FULL:
        return top
    return min(top, max(1, _TOKENS_OF_MANY // (2 * n_documents)))


def spaces(views: Sequence[View]) -> list[Space]:
    """Return what there is space for of each document."""
    n = len(views)
    folded = n > MAX_UNFOLDED
    longest, limit = _LONG, _EXCERPT
    if folded:
        longest = limit = max(_CHARACTERS_OF_MANY // n, 100)
    made, used = [], 0
    for one in views:
        excerpts = [
            excerpt(text.segments, limit) if text.length > longest else None for text in one.texts
        ]
        used += sum(text.length for text in one.texts)
        whole = not folded and used <= LARGEST_PAGE
        made.append(Space(folded, n > _MAX_IN_FULL, whole, excerpts))
    return made


def excerpt(segments: Sequence[Segment], limit: int) -> list[Segment]:
    """Return the segments that add most with text around them, `limit` characters or so."""
    text = "".join(segment.text for segment in segments)
    starts = [0]
    for segment in segments:
        starts.append(starts[-1] + len(segment.text))
    chosen = bytearray(len(text))
    left = limit
    for at in sorted(range(len(segments)), key=lambda at: -abs(segments[at].contribution)):
        start = max(starts[at] - _AROUND, 0)
        stop = min(starts[at + 1], starts[at] + limit) + _AROUND
        if start:  # not from the middle of a word
            start = max(start, text.find(" ", start, starts[at]) + 1)
        end = text.rfind(" ", starts[at + 1], stop)
        stop = end if end >= 0 and stop < len(text) else stop
        left -= chosen.count(0, start, stop)
        chosen[start:stop] = b"\1" * len(chosen[start:stop])
        if left <= 0:
            break
    made: list[Segment] = []
    gap = Segment(" … ")
    for at, segment in enumerate(segments):
        first, last = starts[at], starts[at + 1]
        here = first
        while (here := chosen.find(1, here, last)) >= 0:
            stop = chosen.find(0, here, last)
            stop = last if stop < 0 else stop
            if here and not chosen[here - 1]:
                made.append(gap)
            made.append(segment._replace(text=text[here:stop]))
            here = stop
    if chosen and not chosen[-1]:
        made.append(gap)
    return made


def overview(views: Sequence[View]) -> str:
    """Return what is predicted, and how often it is wrong, as a sentence."""
    predicted = Counter(one.predicted for one in views).most_common()
    said = [f"{count:,} {label}" for label, count in predicted[:4]]
    if len(predicted) > 4:
        said.append(f"{sum(count for _, count in predicted[4:]):,} other classes")
    known = sum(one.true is not None for one in views)
    wrong = known - sum(one.is_right for one in views)
    right = f" {wrong:,} of {known:,} are wrong." if known else ""
    return f"Predicted: {', '.join(said)}.{right}"
