"""The competitors from raw text, one file each: vectorizer and classifier, with their defaults.

Each file has a function `competitor` of a problem's parameters of CountVectorizer: which tokens
those that count tokens shall count.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from benchmarks.competitors.base import Competitor

from . import (
    fast_text,
    linear_svc_counts,
    linear_svc_tfidf,
    logistic_counts,
    ours_front_end,
    ours_same_tokens,
)

_MODULES = (
    ours_front_end,
    ours_same_tokens,
    logistic_counts,
    linear_svc_counts,
    linear_svc_tfidf,
    fast_text,
)


def text_competitors(vectorizer: dict[str, Any]) -> list[Competitor]:
    """Return those whose packages are installed."""
    return [m.competitor(vectorizer) for m in _MODULES if not _missing(m)]


def left_out() -> dict[str, str]:
    """Return the titles of those that are left out, and the package that each lacks."""
    return {m.competitor({}).title: _missing(m) for m in _MODULES if _missing(m)}


def _missing(module: Any) -> str:
    """Return the name of the package that is needed and not installed, or nothing."""
    package: str = getattr(module, "PACKAGE", "")
    return package if package and find_spec(package) is None else ""
