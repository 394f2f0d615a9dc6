"""Our classifier and the usual ones on the same texts, measured alike."""

from ._baselines import Model, default_models
from ._class_tokens import ClassTokens, class_tokens
from ._compare import Comparison, Progress, compare
from ._measurement import Entrant, ModelResult
from ._texts import count_tokens, hold_out
from ._token_effects import token_effects

__all__ = [
    "ClassTokens",
    "Comparison",
    "Entrant",
    "Model",
    "ModelResult",
    "Progress",
    "class_tokens",
    "compare",
    "count_tokens",
    "default_models",
    "hold_out",
    "token_effects",
]
