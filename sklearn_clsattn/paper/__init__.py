"""The regimes of the paper as classifiers, and its statements as functions on plain arrays.

| regime | classifier |
|---|---|
| one gradient step on E, then p alone | :class:`OneStepClassifier` |
| E, p and v trained together; E frozen as drawn, or after one step | :class:`EmbeddingClassifier` |
| two layers, or an MLP after the softmax | :class:`AttentionNetworkClassifier` |

| statement | function |
|---|---|
| Lemma 4.1: what one step writes into the embeddings | :func:`one_step_embeddings` |
| Theorem 4.3: the direction that p tends to | :func:`max_margin_direction` |
| its assumption on the data | :func:`check_single_relevant_token` |
| the tokens that a document attends to in the end | :func:`selected_tokens` |
"""

from ._assumptions import SingleRelevantTokenCheck, check_single_relevant_token
from ._classifiers import AttentionNetworkClassifier, EmbeddingClassifier, OneStepClassifier
from ._max_margin import MaxMargin, max_margin_direction, selected_tokens
from ._one_step_embeddings import OneStepEmbeddings, one_step_embeddings

__all__ = [
    "AttentionNetworkClassifier",
    "EmbeddingClassifier",
    "MaxMargin",
    "OneStepClassifier",
    "OneStepEmbeddings",
    "SingleRelevantTokenCheck",
    "check_single_relevant_token",
    "max_margin_direction",
    "one_step_embeddings",
    "selected_tokens",
]
