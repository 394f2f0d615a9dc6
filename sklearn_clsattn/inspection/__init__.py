"""Explanations of fitted models: exact, as data, as text and as HTML."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._explain import explain
    from ._label_issues import label_issues
    from ._training_documents import training_documents
    from ._trajectory import TrajectoryRecorder
    from .displays.attention import AttentionDisplay
    from .displays.context import ContextDisplay
    from .displays.importance import TokenImportanceDisplay
    from .displays.regularization import RegularizationPathDisplay
    from .displays.selection import SelectionDisplay
    from .displays.trajectory import TrajectoryDisplay
    from .explanation import Explanation
    from .minimal.minimal_set import MinimalSet
    from .minimal.minimal_sets import MinimalSets
    from .report.model_report import ModelReport
    from .terms import DocumentText

__all__ = [
    "AttentionDisplay",
    "ContextDisplay",
    "DocumentText",
    "Explanation",
    "MinimalSet",
    "MinimalSets",
    "ModelReport",
    "RegularizationPathDisplay",
    "SelectionDisplay",
    "TokenImportanceDisplay",
    "TrajectoryDisplay",
    "TrajectoryRecorder",
    "explain",
    "label_issues",
    "training_documents",
]

_HOME = {
    "AttentionDisplay": ".displays.attention",
    "ContextDisplay": ".displays.context",
    "DocumentText": ".terms",
    "Explanation": ".explanation",
    "MinimalSet": ".minimal.minimal_set",
    "MinimalSets": ".minimal.minimal_sets",
    "ModelReport": ".report.model_report",
    "RegularizationPathDisplay": ".displays.regularization",
    "SelectionDisplay": ".displays.selection",
    "TokenImportanceDisplay": ".displays.importance",
    "TrajectoryDisplay": ".displays.trajectory",
    "TrajectoryRecorder": "._trajectory",
    "explain": "._explain",
    "label_issues": "._label_issues",
    "training_documents": "._training_documents",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: the command line's help must not wait."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
