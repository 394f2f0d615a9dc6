"""Our classifier and the usual ones on the same texts, measured alike."""

from ._baselines import Model, default_models
from ._class_tokens import ClassTokens, class_tokens
from ._compare import ComparisonResult, Progress, compare, count_tokens, hold_out
from ._measurement import ModelResult

__all__ = [
    "ClassTokens",
    "ComparisonResult",
    "Model",
    "ModelResult",
    "Progress",
    "class_tokens",
    "compare",
    "count_tokens",
    "default_models",
    "hold_out",
]
