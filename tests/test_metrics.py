"""Faithfulness: against a slow loop over documents and tokens, and by what must not matter."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import data
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.metrics import (
    ERASER_FRACTIONS,
    comprehensiveness,
    expected_calibration_error,
    sufficiency,
)


class Softmax:
    """A model with random coefficients: rows are independent of each other, nothing is trained."""

    def __init__(self, n_tokens, n_classes, seed=0):
        self.classes_ = np.array(["abcdefg"[code] for code in range(n_classes)])
        self.coef = np.random.default_rng(seed).normal(size=(n_tokens, n_classes))

    def predict_proba(self, X):
        counts = X.toarray() if sp.issparse(X) else np.asarray(X)
        z = np.exp((counts[:, :, None] * self.coef).sum(axis=1))
        return z / z.sum(axis=1, keepdims=True)


def slow_order(row, scores):
    """Return the tokens of a document that speak for the class, highest first."""
    tokens = [token for token in range(len(row)) if row[token] != 0 and scores[token] > 0]
    return sorted(tokens, key=lambda token: (-scores[token], token))


def slow_probability(model, row, scores, code, size, *, keep):
    """Return the probability of a class with only the top tokens, or without them."""
    changed = np.zeros_like(row) if keep else row.copy()
    for token in slow_order(row, scores)[:size]:
        changed[token] = row[token] if keep else 0
    return model.predict_proba(changed[None])[0, code]


@st.composite
def problems(draw):
    """Return a model, counts with empty documents, and scores with ties, zeros and negatives."""
    shape = (draw(st.integers(1, 5)), draw(st.integers(1, 7)))
    entries = shape[0] * shape[1]
    counts = draw(st.lists(st.integers(0, 3), min_size=entries, max_size=entries))
    scores = draw(st.lists(st.integers(-2, 3), min_size=entries, max_size=entries))
    model = Softmax(shape[1], draw(st.integers(2, 4)), draw(st.integers(0, 9)))
    return model, *(np.array(one, dtype=float).reshape(shape) for one in (counts, scores))


@settings(max_examples=30)
@given(problems(), st.integers(1, 8))
def test_drops_are_those_of_a_slow_loop(problem, k):
    model, X, scores = problem
    codes = model.predict_proba(X).argmax(axis=1)
    for metric, keep in ((comprehensiveness, False), (sufficiency, True)):
        for how in ({"k": k}, {"fractions": ERASER_FRACTIONS}, {"fractions": [0.3, 1.0]}):
            expected = []
            for row, z, code in zip(X, scores, codes, strict=True):
                shares = how.get("fractions", [])
                sizes = [math.ceil(share * np.count_nonzero(row) - 1e-9) for share in shares]
                whole = model.predict_proba(row[None])[0, code]
                left = [
                    slow_probability(model, row, z, code, size, keep=keep) for size in sizes or [k]
                ]
                expected.append(whole - np.mean(left))
            for matrix in (X, sp.csr_array(X), sp.csr_matrix(X), sp.coo_array(X)):
                answer = metric(model, matrix, sp.csr_array(scores), **how)
                assert_allclose(answer, expected, rtol=0, atol=1e-14)


def test_defaults_ties_and_rounding_of_shares():
    model, X = Softmax(100, 2), sp.csr_array(np.ones((1, 100)))
    scores = np.arange(100.0, 0, -1)[None]
    # 0.07 * 100 is a little more than 7 in floating point.
    for how, k in (({}, 10), ({"fractions": [0.07]}, 7), ({"fractions": [0.061]}, 7)):
        for metric in (comprehensiveness, sufficiency):
            answer = metric(model, X, scores, **how)
            assert_array_equal(answer, metric(model, X, scores, k=k))
    without = (np.arange(100) >= 3).astype(float)[None]
    ties = comprehensiveness(model, X, np.ones((1, 100)), k=3, target="b")
    whole, rest = (model.predict_proba(one)[0, 1] for one in (X, without))
    assert ties == whole - rest


def test_target_and_scores_for_each_class():
    X, y = data(n_classes=3)
    model = ClsAttentionClassifier().fit(X, np.array(["x", "y", "z"])[y])
    contributions, predicted = model.contributions(X), model.predict_proba(X).argmax(axis=1)
    assert len(set(predicted)) == 3
    by_class = np.array(
        [
            comprehensiveness(model, X, one, k=2, target=label)
            for label, one in zip(model.classes_, contributions, strict=True)
        ]
    )
    expected = by_class[predicted, np.arange(len(predicted))]
    dense = tuple(one.toarray() for one in contributions)
    for scores, target in ((contributions, None), (contributions, model.predict(X)), (dense, None)):
        answer = comprehensiveness(model, X, scores, k=2, target=target)
        assert_array_equal(answer, expected)
    assert_array_equal(comprehensiveness(model, X, contributions, k=2, target="y"), by_class[1])


def test_frames_and_pipelines():
    X, y = data()
    frame = pd.DataFrame(X.toarray()).add_prefix("t")
    scores = np.random.default_rng(0).normal(size=X.shape)
    model = make_pipeline(TfidfTransformer(), LogisticRegression()).fit(X, y)
    expected = comprehensiveness(model, X, scores, k=3)
    model.fit(frame, y)  # which warns of documents that have lost their names
    assert_allclose(comprehensiveness(model, frame, scores, k=3), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": ["a text", "another"]}, ValueError, "vectorizer's output"),
        ({"X": np.ones(3)}, ValueError, r"one document, got shape \(3,\)"),
        ({"scores": sp.csr_array((3, 2))}, ValueError, r"shape of X, \(2, 3\), got \(3, 2\)"),
        ({"scores": np.full((2, 3), "a")}, ValueError, "numbers without NaN, got dtype <U1"),
        ({"scores": sp.csr_array([[np.nan, 0, 0]] * 2)}, ValueError, "without NaN"),
        ({"scores": [np.ones((2, 3))]}, ValueError, "each of the 2 classes, got a list of 1"),
        ({"k": 0}, ValueError, "k == 0, must be >= 1"),
        ({"k": 2.5}, TypeError, "k must be an instance of int, not float"),
        ({"k": 1, "fractions": [0.1]}, ValueError, "not both"),
        ({"fractions": []}, ValueError, "above 0 and up to 1"),
        ({"fractions": [0.0, 0.5]}, ValueError, "above 0 and up to 1"),
        ({"fractions": 0.5}, ValueError, "above 0 and up to 1"),
        ({"target": ["a", "b", "a"]}, ValueError, "inconsistent numbers of samples"),
        ({"target": ["a", "q"]}, ValueError, r"'q' is not a class .* \['a', 'b'\]"),
    ],
)
def test_bad_input(change, error, message):
    given = {"estimator": Softmax(3, 2), "X": np.eye(2, 3), "scores": np.ones((2, 3)), **change}
    with pytest.raises(error, match=message):
        comprehensiveness(given.pop("estimator"), given.pop("X"), given.pop("scores"), **given)


# ---- calibration --------------------------------------------------------------------------------


def slow_error(codes, proba, weights, edges):
    """Return the expected calibration error, document by document; an edge is of the bin below."""
    gaps = dict.fromkeys(range(len(edges) + 1), 0.0)
    for code, row, weight in zip(codes, proba, weights, strict=True):
        confidence = max(row)
        number = sum(edge < confidence for edge in edges)
        gaps[number] += weight * ((list(row).index(confidence) == code) - confidence)
    return sum(map(abs, gaps.values())) / sum(weights)


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(1, 40), st.integers(1, 20), st.integers(0, 10**6))
def test_calibration_error_is_that_of_a_slow_loop(n_classes, n, n_bins, seed):
    rng = np.random.default_rng(seed)
    mix = rng.integers(16, size=(n, 1)) / 15  # many of the same confidence, some on edges
    proba = mix * np.eye(n_classes)[rng.integers(n_classes, size=n)] + (1 - mix) / n_classes
    codes = rng.integers(-1, n_classes, size=n)
    labels = np.array(list("edcba"))[:n_classes]
    y = np.where(codes < 0, "none of them", labels[codes])
    weights = rng.integers(1, 4, size=n)
    expected = slow_error(codes, proba, weights, np.linspace(0, 1, n_bins + 1)[1:-1])
    answer = expected_calibration_error(
        y, proba, labels=labels, n_bins=n_bins, sample_weight=weights
    )
    assert answer == pytest.approx(expected, abs=1e-12)
    rows = np.repeat(np.arange(n), weights)
    repeated = expected_calibration_error(y[rows], proba[rows], labels=labels)
    weighted = expected_calibration_error(y, proba, labels=labels, sample_weight=weights)
    assert repeated == pytest.approx(weighted, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_true": [0, 1, 2]}, ValueError, "inconsistent numbers of samples"),
        ({"y_true": [0, 0]}, ValueError, "2 columns, but there are 1 labels: pass labels="),
        ({"y_true": [[0, 1], [1, 0]]}, ValueError, "should be a 1d array"),
        ({"y_proba": [[-0.5, 1.5]] * 2}, ValueError, "must be probabilities"),
        ({"y_proba": [[0.5, 0.6]] * 2}, ValueError, "must be probabilities"),
        ({"n_bins": 1.5}, TypeError, "n_bins must be an instance of int"),
    ],
)
def test_wrong_probabilities_are_refused(change, error, message):
    arguments = {"y_true": [0, 1], "y_proba": [[0.5, 0.5]] * 2, **change}
    with pytest.raises(error, match=message):
        expected_calibration_error(arguments.pop("y_true"), arguments.pop("y_proba"), **arguments)
