"""Pages from the templates in `templates/`, with all values escaped."""

from __future__ import annotations

import html
import re
from functools import cache, partial
from typing import Any

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
