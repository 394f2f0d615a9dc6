"""Our classifier and the usual ones on the same texts, measured alike."""

from ._baselines import Model, default_models
from ._class_tokens import ClassTokens, class_tokens
from ._compare import ComparisonResult, FittedComparison, Progress, compare, fit_and_compare
from ._measurement import ModelResult
from ._texts import count_tokens, hold_out
from ._token_effects import token_effects

__all__ = [
    "ClassTokens",
    "ComparisonResult",
    "FittedComparison",
    "Model",
    "ModelResult",
    "Progress",
    "class_tokens",
    "compare",
    "count_tokens",
    "default_models",
    "fit_and_compare",
    "hold_out",
    "token_effects",
]
