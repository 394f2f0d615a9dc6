"""Pages from the templates in `templates/`, with all values escaped."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .formatting import MINUS, aligned, count_text, label_text, percent, signed, token_text, visible


def render(template: str, **context: Any) -> str:
    """Return a template of `templates/` rendered with its context; a missing name is an error.

    Every value is escaped, in elements and in quoted attributes, and its control characters are
    replaced (see `formatting.visible`), so that UTF-8 can encode the page; line breaks stay.
    """
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
