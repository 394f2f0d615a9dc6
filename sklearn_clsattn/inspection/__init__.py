"""Explanations of fitted models, as data, as text and as HTML.

A file with an underscore has the public function of its name. The public classes are in
`explanation` and `displays`; all other files are private.
"""

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
