"""The paper's statements as functions on plain arrays, each with its source.

Token statistics, the tokens a direction selects, and the max-margin direction of Theorem 4.3, by
a quadratic programme or without other packages.
"""

from ..importance import log_odds, posterior_difference, signed_frequency
from ._ascent import AscentProgress, MarginAscent
from ._assumptions import SingleRelevantTokenCheck, check_single_relevant_token
from ._conditions import TheoremConditions
from ._feasibility import InfeasibleSelectionError
from ._margin_ascent import maximise_margin
from ._max_margin import MaxMargin, max_margin_direction
from ._one_step import OneStepEmbeddings, one_step_embeddings
from ._pairs import TokenPairs, token_pairs
from ._selection import selected_tokens

__all__ = [
    "AscentProgress",
    "InfeasibleSelectionError",
    "MarginAscent",
    "MaxMargin",
    "OneStepEmbeddings",
    "SingleRelevantTokenCheck",
    "TheoremConditions",
    "TokenPairs",
    "check_single_relevant_token",
    "log_odds",
    "max_margin_direction",
    "maximise_margin",
    "one_step_embeddings",
    "posterior_difference",
    "selected_tokens",
    "signed_frequency",
    "token_pairs",
]
