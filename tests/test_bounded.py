"""Probabilities that cannot run away, and fits that end where a longer one would."""

import numpy as np
import pytest
import torch
from helpers import data, documents
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.chunk import multiple_sums
from sklearn_clsattn._core.path import AttentionPath
from sklearn_clsattn._core.prior_mean import PRIOR_DOCUMENTS, prior_mean
from sklearn_clsattn._core.statistics import token_scaling
from sklearn_clsattn.datasets import load_requests, make_token_classification

STRENGTHS = (1e-4, 1e-2, 1.0)


def requests(n_documents, seed):
    """Return some messages with their moods, and the last 1,000 of all in the same random order."""
    texts, moods = load_requests(target="mood", return_X_y=True)
    texts, moods = np.array(texts, dtype=object), np.asarray(moods)
    order = np.random.default_rng(seed).permutation(len(texts))
    train, test = order[:n_documents], order[-1000:]
    return texts[train], moods[train], texts[test], moods[test]


def words_of_their_own(n_documents, seed):
    """Return texts of 3 words of their class's own vocabulary and 9 shared ones, and classes."""
    rng = np.random.default_rng(seed)
    own, shared = zipf(300), zipf(500)
    y = rng.integers(0, 2, n_documents)
    texts = [
        " ".join(
            [f"c{k}w{word}" for word in rng.choice(300, 3, p=own)]
            + [f"s{word}" for word in rng.choice(500, 9, p=shared)]
        )
        for k in y
    ]
    return texts, y


def zipf(n):
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()


def test_ten_documents_do_not_make_it_certain():
    texts, moods, others, truth = requests(10, 1)

    def loss(**parameters):
        model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(**parameters))
        return log_loss(truth, model.fit(texts, moods).predict_proba(others))

    assert loss() < 1.0  # 12.27 without a bound; ln 2 is .69
    losses = [loss(C=C) for C in STRENGTHS]
    assert max(losses) < 1.2
    assert losses[0] == pytest.approx(np.log(2), abs=0.11)  # the classes' shares, 4 to 6


def test_words_of_both_classes_leave_it_in_doubt():
    texts, y = words_of_their_own(1000, 0)
    rng = np.random.default_rng(1)
    own, shared = zipf(300), zipf(500)
    both = [
        " ".join(
            [f"c{k}w{rng.choice(300, p=own)}" for k in (0, 1)]
            + [f"s{word}" for word in rng.choice(500, 9, p=shared)]
        )
        for _ in range(200)
    ]
    held_out, truth = words_of_their_own(2000, 5)
    flipped = np.where(np.random.default_rng(2).random(2000) < 0.05, 1 - truth, truth)
    medians = []
    for C in (*STRENGTHS, "auto"):
        model = make_pipeline(CountVectorizer(), ClsAttentionClassifier(C=C)).fit(texts, y)
        largest = model.predict_proba(both).max(axis=1)
        # Without a bound 62 % are above .999, and the loss is 1.9, whatever C. "auto" is large:
        # no held-out document says otherwise.
        assert (largest > 0.999).mean() < (0.15 if C == "auto" else 0.01)
        assert log_loss(flipped, model.predict_proba(held_out)) < (0.6 if C == "auto" else 0.75)
        medians.append(np.median(largest))
    assert medians == sorted(medians)
    assert medians[0] < 0.6
    assert medians[2] < 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_multiple_is_the_least_of_its_penalised_loss(n_classes, C):
    X, y = data(n_classes)
    documented = documents(X, y)
    documented = documented.trained_in(np.float64, "cpu")
    path = AttentionPath(documented, np.float64, "cpu", attention_C=0.03)
    multiple = path.mean
    start = np.zeros(n_classes if n_classes > 2 else 1)
    value, _, hessian = multiple._at_start
    strength = PRIOR_DOCUMENTS * hessian[0, 0] / len(y) / min(C, 1.0)

    def penalised(x):
        return multiple._corpus.sum(multiple_sums, x)[0] + 0.5 * strength * x[0] ** 2

    found = minimize(penalised, np.array([0.1, *start]), tol=1e-10)
    multiple.fit(C)
    assert multiple.scale == pytest.approx(found.x[0], rel=1e-3)
    assert multiple.mean_loss * len(y) + 0.5 * strength * multiple.scale**2 <= found.fun + 1e-6
    assert value > found.fun


def test_a_prior_from_earlier_documents_is_where_the_multiple_stays_without_evidence():
    X, y = data(2)
    documented = documents(0 * X, y).trained_in(np.float64, "cpu")
    loss = documented.loss(np.float64, "cpu", 1.0)
    units = token_scaling(documented.statistics, scaling="log_odds", attend_cls=True)
    mean = prior_mean(documented, loss, units, earlier=(0.3, 4.0))
    assert mean.scale == pytest.approx(0.3)
    assert mean.precision == 4.0


@pytest.mark.parametrize("C", ["auto", 3.6])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_neither_more_steps_nor_the_order_of_tokens_change_probabilities(C, n_classes):
    if n_classes == 2:
        texts, y, others, _ = requests(400, 0)
        vectorizer = CountVectorizer()
        X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(others)
    else:
        X, y = make_token_classification(
            700, n_classes=5, n_irrelevant=400, flip_y=0.05, random_state=0
        )
        X, y, X_test = X[:400], y[:400], X[400:]
    model = ClsAttentionClassifier(C=C).fit(X, y)
    probabilities = model.predict_proba(X_test)
    converged = ClsAttentionClassifier(C=model.C_, tol=1e-9, max_iter=3000)
    converged = converged.fit(X.astype(float), y).predict_proba(X_test)
    assert_allclose(probabilities, converged, atol=0.02)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(X.shape[1])
        other = ClsAttentionClassifier(C=C).fit(X[:, order], y)
        assert_allclose(other.C_, model.C_, rtol=1e-2)
        assert_allclose(other.predict_proba(X_test[:, order]), probabilities, atol=0.02)


def test_long_texts_are_told_apart():
    # Words as frequent in both classes, and ten of 50,000 that tell them apart.
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = np.zeros((20, 5002), dtype=int)
    X[:, :5000] = rng.multinomial(49_990, np.full(5000, 1 / 5000), size=20)
    X[np.arange(20), 5000 + y] = 10
    model = ClsAttentionClassifier().fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert_array_equal(ClsAttentionClassifier(C=1.0).fit(X, y).predict(X), y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cls_weight", [0.0, 2.0])
def test_curvature_is_that_of_second_differences(n_classes, cls_weight):
    X, y = data(n_classes)
    documented = documents(X, y)
    loss = documented.attention_loss(np.float64, "cpu", cls_weight)
    matrix = loss.zeros()
    matrix[:] = torch.from_numpy(np.random.default_rng(0).normal(size=matrix.shape))
    found, h = loss.curvature(matrix), 1e-3
    for token in (0, 5, len(matrix) - 1):  # the last row has the intercepts
        for k in range(found.shape[1]):
            step = torch.zeros_like(matrix)
            step[token, 1 + k] = h
            values = [loss(matrix + factor * step)[0] for factor in (-1, 0, 1)]
            expected = (values[0] - 2 * values[1] + values[2]) / h**2
            assert float(found[token, k]) == pytest.approx(expected, rel=1e-3, abs=1e-3)
