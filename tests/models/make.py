"""Save the models of a format's first version: run once a format, never to make a test pass."""

import json
import sys
from pathlib import Path

import numpy as np

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    PenalizedOneStepClassifier,
)
from sklearn_clsattn.saving import save_model
from sklearn_clsattn.text import make_text_classifier

FOLDER = Path(__file__).parent
TEXTS = ["a good film", "a bad film", "good fun, a film", "bad, dull fun"] * 6
X = np.random.default_rng(0).poisson(1.0, (24, 6))
y = np.arange(24) % 2


def models():
    """Return fitted models by name, and what they are asked."""
    short = {"max_iter": 3, "random_state": 0}
    return {
        "texts": (make_text_classifier(min_df=1).fit(TEXTS, ["pos", "neg"] * 12), TEXTS[:4]),
        "batches": (ClsAttentionClassifier(C=1.0).partial_fit(X, y), X[:4].tolist()),
        "one step": (PenalizedOneStepClassifier(embedding_dim=8, random_state=0).fit(X, y), X[:4]),
        "embeddings": (EmbeddingClassifier(embedding_dim=4, **short).fit(X, y), X[:4]),
        "network": (
            AttentionNetworkClassifier(n_layers=2, mlp=True, embedding_dim=4, **short).fit(X, y),
            X[:4],
        ),
        "importance": (TokenImportanceTransformer().fit(X, y), X[:4]),
    }


def said(model, X):
    """Return what a model says of documents."""
    return (model.predict_proba if hasattr(model, "predict_proba") else model.transform)(X)


if __name__ == "__main__":
    expected = {}
    for name, (model, asked) in models().items():
        save_model(model, FOLDER / f"{sys.argv[1]} {name}.skops")
        asked = np.asarray(asked).tolist()
        expected[name] = {"asked": asked, "said": said(model, asked).tolist()}
    (FOLDER / f"{sys.argv[1]}.json").write_text(json.dumps(expected, indent=1) + "\n")
