"""Explanations of fitted models, as data, as text and as HTML.

A file with an underscore has the public function of its name. The public classes are in
`explanation` and `displays`; all other files are private.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._depends_on import depends_on
    from ._explain import explain
    from ._label_issues import label_issues
    from ._report import report
    from .displays import TokenImportanceDisplay
    from .explanation import Explanation

__all__ = [
    "Explanation",
    "TokenImportanceDisplay",
    "depends_on",
    "explain",
    "label_issues",
    "report",
]

_HOME = {
    "Explanation": ".explanation",
    "TokenImportanceDisplay": ".displays",
    "depends_on": "._depends_on",
    "explain": "._explain",
    "label_issues": "._label_issues",
    "report": "._report",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, which keeps the command line's help fast."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
