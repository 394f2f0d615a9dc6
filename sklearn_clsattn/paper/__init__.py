"""The regimes of the paper, as classifiers with the methods and attributes of the everyday one.

| regime | classifier |
|---|---|
| one gradient step on E, then p alone | :class:`OneStepClassifier` |
| one gradient step on E, then p and v with penalties | :class:`PenalizedOneStepClassifier` |
| E frozen at random, p and v trained | :class:`FrozenEmbeddingClassifier` |
| E, p and v trained together | :class:`EmbeddingClassifier` |
| two layers, or an MLP after the softmax | :class:`AttentionNetworkClassifier` |
"""

from ._embedding_classifier import EmbeddingClassifier
from ._frozen_classifier import FrozenEmbeddingClassifier
from ._network_classifier import AttentionNetworkClassifier
from ._one_step_classifier import OneStepClassifier
from ._penalized_one_step_classifier import PenalizedOneStepClassifier

__all__ = [
    "AttentionNetworkClassifier",
    "EmbeddingClassifier",
    "FrozenEmbeddingClassifier",
    "OneStepClassifier",
    "PenalizedOneStepClassifier",
]
