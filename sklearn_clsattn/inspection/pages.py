"""Pages from the templates in `templates/`, with all values escaped, and the explanation's page."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .formatting import (
    MINUS,
    aligned,
    count_column,
    count_text,
    label_text,
    percent,
    signed,
    token_text,
    visible,
)
from .token_positions import Passage, strongest_passages
from .view import MAX_UNFOLDED, View, views

_MAX_IN_FULL = 100  # more documents have no details
_TOKENS_OF_MANY = 4_000  # listed of all of these together
_LARGEST_PAGE = 1_000_000  # characters of the texts that a page has as a whole
_LONG = 1_500  # characters of a text, or so, from which on its strongest passages come first
_OF_LONG = 500  # characters of these passages
_CHARACTERS_OF_MANY = 100_000  # of the texts of folded documents together

# An element that holds another page, so that the rules of neither reach the other. It is as
# high as what it shows; without its frame, as an untrusted notebook shows it, one line is left.
_FRAME = (
    '<iframe title="{says}" srcdoc="{page}" sandbox="allow-same-origin" style="display:block;'
    'width:100%;height:{height}px;border:0;color-scheme:normal" onload="const frame=this,'
    "page=frame.contentDocument.documentElement,fit=()=>{{frame.style.height=page.offsetHeight+1+'px'}};"
    'fit();new ResizeObserver(fit).observe(page)">{says}: trust this notebook to see it.</iframe>'
)


def framed(page: str, says: str, height: int) -> str:
    """Return an element for notebooks that shows a page, at first `height` pixels high."""
    return _FRAME.format(page=html.escape(page), says=html.escape(says), height=height)


def render(template: str, **context: Any) -> str:
    """Return a template rendered with its context: every value is escaped, and visible."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    folders = [PackageLoader(__package__), PackageLoader("sklearn_clsattn", "styles")]
    environment = Environment(
        loader=ChoiceLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        aligned=partial(aligned, minus=MINUS),
        breakable=_breakable,
        label=label_text,
        percent=percent,
        quantity=count_text,
        quantities=count_column,
        signed=partial(signed, minus=MINUS),
        thousands="{:,}".format,
        token=token_text,
    )
    return environment


def _breakable(name: str) -> Markup:
    """Return a name that may be broken after the signs in it, rather than within its words."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.-])(?=\w)", name))


def _finalize(value: Any) -> Any:
    """Return an expression's value without control characters; Jinja escapes all but markup."""
    text = visible(str(value), keep_lines=True)
    return Markup(text) if hasattr(value, "__html__") else text


class Layout(NamedTuple):
    """What is shown of one document."""

    is_folded: bool
    is_brief: bool  # without details
    is_whole: bool  # with the whole text below its passages
    passages: list[Passage] | None  # of a long text


def explanation_html(explanation: Any, n_shown: int, target: Any, top: int, fragment: bool) -> str:
    """Return a page, or a part of one, of the first documents."""
    is_brief = n_shown > _MAX_IN_FULL
    if is_brief:
        top = min(top, max(1, _TOKENS_OF_MANY // (2 * n_shown)))
    shown = views(
        explanation[:n_shown],
        target,
        top,
        with_decision_without=not is_brief,
        with_deletion=n_shown <= MAX_UNFOLDED,
    )
    return render(
        "explanation.html",
        title=repr(explanation)[1:-1],
        views=shown,
        layouts=layouts(shown),
        overview=_overview(shown),
        more=max(len(explanation) - n_shown, 0),
        fragment=fragment,
    )


def layouts(views: Sequence[View]) -> list[Layout]:
    """Return the layout of each view: all of few documents, the strongest passages of many."""
    n = len(views)
    is_folded = n > MAX_UNFOLDED
    is_brief = n > _MAX_IN_FULL
    longest = _LONG
    limit = _OF_LONG
    if is_folded:
        longest = max(_CHARACTERS_OF_MANY // n, 100)
        limit = longest
    view_layouts = []
    n_characters = 0
    for view in views:
        passages = None
        if view.text is not None:
            n_characters += len(view.text)
            if len(view.text) > longest:
                passages = strongest_passages(view.segments, limit)
        is_whole = not is_folded and n_characters <= _LARGEST_PAGE
        view_layouts.append(Layout(is_folded, is_brief, is_whole, passages))
    return view_layouts


def _overview(views: Sequence[View]) -> str:
    """Return a sentence on the predictions, and on how many are wrong."""
    counts = Counter(view.predicted for view in views).most_common()
    classes = [f"{label} ({count:,})" for label, count in counts[:4]]
    if len(counts) > 4:
        n_others = sum(count for _, count in counts[4:])
        classes.append(f"other classes ({n_others:,})")
    sentence = f"Predicted: {', '.join(classes)}."
    known = [view for view in views if view.true is not None]
    if known:
        n_wrong = sum(not view.is_right for view in known)
        verb = "is" if n_wrong == 1 else "are"
        sentence += f" {n_wrong:,} of {len(known):,} {verb} wrong."
    return sentence
