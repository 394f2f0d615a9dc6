"""Pages from the templates in `templates/`, with all values escaped, and what has space on them."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .formatting import MINUS, aligned, count_text, label_text, percent, signed, token_text, visible
from .token_positions import Segment, excerpt
from .view import View

# An element of a page that holds another page, for that neither's rules reach the other. It is as
# high as what it shows; without its frame, as an untrusted notebook shows it, one line is left.
_FRAME = (
    '<iframe title="{says}" srcdoc="{page}" sandbox="allow-same-origin" style="display:block;'
    'width:100%;height:{height}px;border:0;color-scheme:normal" onload="const frame=this,'
    "page=frame.contentDocument.documentElement,fit=()=>{{frame.style.height=page.offsetHeight+1+'px'}};"
    'fit();new ResizeObserver(fit).observe(page)">{says}: trust this notebook to see it.</iframe>'
)
MAX_UNFOLDED = 20  # more documents than this are folded to a line each
_LARGEST_PAGE = 1_000_000  # characters of the texts that a page has as a whole
_LONG = 1_500  # characters of a text, or so, from which on its strongest parts come first
_EXCERPT = 500
MAX_IN_FULL = 100  # more documents have no bar and no tables
_CHARACTERS_OF_MANY = 100_000  # of the texts of folded documents together
TOKENS_OF_MANY = 4_000  # listed of all of these together


class Space(NamedTuple):
    """What is shown of one document."""

    is_folded: bool
    is_brief: bool  # without bar and tables
    is_whole: bool  # with the whole text below the excerpt
    excerpts: list[list[Segment] | None]  # of each text; None for one that is shown as it is


def framed(page: str, says: str, height: int) -> str:
    """Return an element for notebooks that shows a page, at first `height` pixels high."""
    return _FRAME.format(page=html.escape(page), says=html.escape(says), height=height)


def render(template: str, **context: Any) -> str:
    """Return a template rendered with its context: every value is escaped, and visible."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        aligned=partial(aligned, minus=MINUS),
        # A name that may be broken after the signs in it, rather than within its words.
        breakable=lambda name: Markup("<wbr>").join(re.split(r"(?<=[_/.-])(?=\w)", name)),
        label=label_text,
        percent=percent,
        quantity=count_text,
        signed=partial(signed, minus=MINUS),
        thousands="{:,}".format,
        token=token_text,
    )
    return environment


def _finalize(value: Any) -> Any:
    """Return an expression's value without control characters; Jinja escapes all but markup."""
    text = visible(str(value), keep_lines=True)
    return Markup(text) if hasattr(value, "__html__") else text


def spaces(views: Sequence[View]) -> list[Space]:
    """Return what there is space for of each document: all of few, the strongest parts of many."""
    n, longest, limit = len(views), _LONG, _EXCERPT
    is_folded = n > MAX_UNFOLDED
    if is_folded:
        longest = limit = max(_CHARACTERS_OF_MANY // n, 100)
    made, used = [], 0
    for one in views:
        excerpts = [
            excerpt(text.segments, limit) if len(text.text) > longest else None
            for text in one.texts
        ]
        used += sum(len(text.text) for text in one.texts)
        is_whole = not is_folded and used <= _LARGEST_PAGE
        made.append(Space(is_folded, n > MAX_IN_FULL, is_whole, excerpts))
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
