"""The paper's training regimes as classifiers, and its statements as functions on plain arrays.

``docs/theory.md`` maps them to the paper.
"""

from ._assumptions import check_single_relevant_token
from ._classifiers import AttentionNetworkClassifier, EmbeddingClassifier, OneStepClassifier
from ._max_margin import max_margin_direction, selected_tokens
from ._one_step_embeddings import one_step_embeddings

__all__ = [
    "AttentionNetworkClassifier",
    "EmbeddingClassifier",
    "OneStepClassifier",
    "check_single_relevant_token",
    "max_margin_direction",
    "one_step_embeddings",
    "selected_tokens",
]
