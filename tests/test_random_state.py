"""random_state stands for the same start, whatever the numbers in X are stored as."""

import warnings

import numpy as np
import pytest
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    OneStepClassifier,
    one_step_embeddings,
)

HARDLY = {"learning_rate": 1e-12, "max_iter": 1}  # what is fitted is the start
REGIMES = {
    "one step, then the flow": (OneStepClassifier, {"step_size": 1e-9, "max_iter": 1}),
    "Adam": (EmbeddingClassifier, HARDLY),
    "gradient descent": (EmbeddingClassifier, HARDLY | {"solver": "sgd"}),
    "mini-batches": (EmbeddingClassifier, HARDLY | {"batch_size": 20}),
    "frozen": (EmbeddingClassifier, HARDLY | {"train_embeddings": False}),
    "one step, then p and v": (
        EmbeddingClassifier,
        HARDLY | {"train_embeddings": "one_step", "step_size": 1e-9},
    ),
    "one layer": (AttentionNetworkClassifier, HARDLY),
    "two layers": (AttentionNetworkClassifier, HARDLY | {"n_layers": 2}),
    "two layers, MLP": (AttentionNetworkClassifier, HARDLY | {"n_layers": 2, "mlp": True}),
}
DTYPES = [np.int64, np.int32, np.uint8, bool, np.float32, np.float64]


def start_of(kind, parameters, X, y, seed):
    """Return the embeddings, p, output vectors and decisions of a model that hardly trained."""
    model = kind(embedding_dim=5, random_state=seed, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    outputs = model.decision_function(X)
    return model.token_embeddings_, model.cls_embedding_, model.output_vector_, outputs


@pytest.mark.parametrize("n_tokens", [20, 1100])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("regime", REGIMES)
def test_every_regime_starts_from_the_same_draw(regime, n_classes, n_tokens):
    kind, parameters = REGIMES[regime]
    X, y = data(n_classes, n_tokens=n_tokens)
    X = (X[:-1] > 0).astype(float)  # the last document is empty; zeros and ones fit every type
    y = y[:-1]
    expected = start_of(kind, parameters, X, y, 0)
    assert not np.allclose(expected[0], start_of(kind, parameters, X, y, 1)[0], atol=0.1)
    for dtype in DTYPES:
        found = start_of(kind, parameters, X.astype(dtype), y, 0)
        for each, its in zip(expected, found, strict=True):
            assert_allclose(its, each, atol=2e-6)


def test_the_step_on_embeddings_draws_the_same():
    X, y = data()
    X, y = X[:-1], y[:-1]
    of_floats = one_step_embeddings(X, y, step_size=2, embedding_dim=7, random_state=3)
    for dtype in (np.int64, np.float32):
        step = one_step_embeddings(X.astype(dtype), y, step_size=2, embedding_dim=7, random_state=3)
        assert_array_equal(step.initial_embeddings, of_floats.initial_embeddings)
        assert_allclose(step.embeddings, of_floats.embeddings, atol=1e-6)
