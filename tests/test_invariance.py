"""What says nothing changes nothing: the order of documents, names of classes, copies.

Problems have what invites a choice by order, name or rounding: copies in several classes, empty
documents, tokens without log-odds, tokens of one document.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_clsattn import ClsAttentionClassifier

N_TOKENS = 8


def drawn(kind, seed):
    """Return a generator, counts, labels 0..K-1, K, and token vectors of a problem of a kind."""
    rng = np.random.default_rng(seed)
    n_classes = 2 + seed % 2
    X = rng.poisson(rng.uniform(0.2, 1.2, N_TOKENS), (24, N_TOKENS)).astype(float)
    y = np.arange(24) % n_classes
    if kind == "copies in several classes":
        X[-9:] = X[:9]
        y[-9:] = rng.integers(0, n_classes, 9)
    elif kind == "empty documents":
        X[rng.random(24) < 0.3] = 0.0
    elif kind == "two equal halves":
        X, y = np.vstack([X, X]), np.concatenate([y, y])
    elif kind == "each document in two classes":  # all log-odds of two classes are 0
        X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % n_classes])
    elif kind == "tokens without log-odds":
        X = rng.integers(0, 2, (24, N_TOKENS)).astype(float)
        X[:, 4:] = np.repeat(X[::n_classes, 4:], n_classes, axis=0)  # the same in all classes
        X[:, :4] = X[:, 3::-1] if seed % 3 else X[:, :4]
    elif kind == "tokens of one document":
        X = np.hstack([X[:, :3], np.eye(24)])
    return rng, X, y, n_classes, rng.normal(size=(X.shape[1], 3))


KINDS = [
    "copies in several classes",
    "empty documents",
    "two equal halves",
    "each document in two classes",
    "tokens without log-odds",
    "tokens of one document",
]
CASES = pytest.mark.parametrize(
    ("kind", "has_vectors", "seed"),
    [(kind, has_vectors, seed) for seed, kind in enumerate(KINDS) for has_vectors in (False, True)],
)


@pytest.fixture(autouse=True)
def few_scales(monkeypatch):
    """Two values of gamma, which are enough for a mean."""
    monkeypatch.setattr("sklearn_clsattn.training.fit.SCALES", (0.0, 1.0))


def fitted(X, y, vectors, has_vectors, weights=None):
    """Return a classifier with the C of its choice."""
    return ClsAttentionClassifier().fit(X, y, weights, vectors if has_vectors else None)


@CASES
def test_order_and_names_say_nothing(kind, has_vectors, seed):
    rng, X, y, n_classes, vectors = drawn(kind, seed)
    rows = rng.permutation(len(y))
    names = np.roll(rng.permutation(n_classes), 1) if n_classes > 2 else np.array([1, 0])
    model = fitted(X, y, vectors, has_vectors)
    other = fitted(X[rows], names[y[rows]], vectors, has_vectors)
    assert_allclose(other.C_, model.C_, rtol=1e-5)
    expected = model.predict_proba(X)
    assert_allclose(other.predict_proba(X)[:, names], expected, atol=1e-6)
    if n_classes == 2:
        assert_allclose(
            other.decision_function(X), -model.decision_function(X), rtol=1e-5, atol=1e-5
        )


@CASES
def test_a_weight_is_a_number_of_copies(kind, has_vectors, seed):
    rng, X, y, n_classes, vectors = drawn(kind, seed)
    weights = rng.integers(0, 3, len(y))
    weights[:n_classes] = 1
    copies = np.repeat(np.arange(len(y)), weights)
    model = fitted(X, y, vectors, has_vectors, weights)
    other = fitted(X[copies], y[copies], vectors, has_vectors)
    assert_allclose(other.predict_proba(X), model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("n_rare", [1, 2, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_rare_class_leaves_C_near_the_guess(n_rare, n_classes):
    """Few documents of a class say little about C, however many there are of another class.

    The guess is about .1 here, and the best C with ten documents, if all counted, 10.
    """
    rng = np.random.default_rng(n_rare)
    X = rng.poisson(0.4, (1200, 30)).astype(float)
    y = np.zeros(1200, dtype=int)
    rare = rng.choice(1200, n_rare * (n_classes - 1), replace=False)
    y[rare] = 1 + np.arange(len(rare)) % (n_classes - 1)
    X[rare, 0] += 3
    model = ClsAttentionClassifier().fit(X, y)
    assert 0.06 < model.C_ < 0.35
    if len(rare) < 10:
        assert len(model.Cs_) == 0  # none is tried
    else:
        assert model.Cs_[model.scores_.mean(axis=0).argmax()] > 3
        assert model.scores_.shape[0] == 4  # every rare document is held out once
