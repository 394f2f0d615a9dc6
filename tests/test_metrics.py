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
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, metrics
from sklearn_clsattn.metrics import (
    ERASER_FRACTIONS,
    _perturbation,
    comprehensiveness,
    deletion_curve,
    expected_calibration_error,
    sufficiency,
)


class Softmax:
    """A model with random coefficients: rows are independent of each other, nothing is trained."""

    def __init__(self, n_tokens, n_classes, seed=0):
        self.classes_ = np.array(["abcdefg"[code] for code in range(n_classes)])
        self.coef = np.random.default_rng(seed).normal(size=(n_tokens, n_classes))
        self.asked = 0

    def predict_proba(self, X):
        self.asked += X.shape[0]
        terms = X.toarray() if sp.issparse(X) else np.asarray(X)
        z = np.exp((terms[:, :, None] * self.coef).sum(axis=1))
        return z / z.sum(axis=1, keepdims=True)


def slow_order(row, scores):
    """Return the tokens of a document that speak for the class, highest first."""
    tokens = [token for token in range(len(row)) if row[token] != 0 and scores[token] > 0]
    return sorted(tokens, key=lambda token: (-scores[token], token))


def slow_probability(model, row, code):
    return model.predict_proba(row[None])[0, code]


def slow_drop(model, row, scores, code, *, keep, k=None, fractions=None):
    """Return one document's comprehensiveness or sufficiency, token by token."""
    order = slow_order(row, scores)
    sizes = [k]
    if fractions is not None:
        sizes = [math.ceil(share * np.count_nonzero(row) - 1e-9) for share in fractions]
    drops = []
    for size in sizes:
        left = np.zeros_like(row) if keep else row.copy()
        for token in order[:size]:
            left[token] = row[token] if keep else 0
        drops.append(slow_probability(model, row, code) - slow_probability(model, left, code))
    return np.mean(drops)


@st.composite
def problems(draw, max_tokens=7):
    """Return a model, counts with empty documents, and scores with ties, zeros and negatives."""
    n_documents, n_tokens = draw(st.integers(1, 5)), draw(st.integers(1, max_tokens))
    shape = (n_documents, n_tokens)
    entries = n_documents * n_tokens
    counts = draw(st.lists(st.integers(0, 3), min_size=entries, max_size=entries))
    scores = draw(st.lists(st.integers(-2, 3), min_size=entries, max_size=entries))
    model = Softmax(n_tokens, draw(st.integers(2, 4)), draw(st.integers(0, 9)))
    return (
        model,
        np.array(counts, dtype=float).reshape(shape),
        np.array(scores, dtype=float).reshape(shape),
    )


@settings(max_examples=40)
@given(problems(), st.integers(1, 8))
def test_drops_and_curves_are_those_of_a_slow_loop(problem, k):
    model, X, scores = problem
    codes = model.predict_proba(X).argmax(axis=1)
    for metric, keep in ((comprehensiveness, False), (sufficiency, True)):
        for how in ({"k": k}, {"fractions": ERASER_FRACTIONS}, {"fractions": [0.3, 1.0]}):
            expected = [
                slow_drop(model, row, z, code, keep=keep, **how)
                for row, z, code in zip(X, scores, codes, strict=True)
            ]
            for matrix in (X, sp.csr_array(X), sp.csr_matrix(X), sp.coo_array(X)):
                found = metric(model, matrix, sp.csr_array(scores), **how)
                assert_allclose(found, expected, rtol=0, atol=1e-14)
    curves = deletion_curve(model, sp.csr_array(X), scores, k=k)
    assert curves.shape == (len(X), k + 1)
    for row, z, code, curve in zip(X, scores, codes, curves, strict=True):
        left, expected = row.copy(), [slow_probability(model, row, code)]
        order = slow_order(row, z)
        for place in range(k):
            left[order[place : place + 1]] = 0
            expected.append(slow_probability(model, left, code))
        assert_allclose(curve, expected, rtol=0, atol=1e-14)


@given(problems(), st.integers(0, 100))
def test_only_order_and_sign_of_scores_matter(problem, seed):
    model, X, scores = problem
    stretched = np.where(scores > 0, np.exp(scores), 5 * scores)
    for metric in (comprehensiveness, sufficiency, deletion_curve):
        assert_array_equal(metric(model, X, scores, k=2), metric(model, X, stretched, k=2))
    # Nor do scores of tokens that are not there.
    noise = np.where(X == 0, np.random.default_rng(seed).normal(size=X.shape), scores)
    assert_array_equal(
        comprehensiveness(model, X, noise, k=2), comprehensiveness(model, X, scores, k=2)
    )


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter_but_for_ties(problem, random):
    model, X, scores = problem
    scores += np.arange(X.shape[1]) / 100  # no ties
    order = list(range(X.shape[1]))
    random.shuffle(order)
    shuffled = Softmax(1, 2)
    shuffled.classes_, shuffled.coef = model.classes_, model.coef[order]
    for metric in (comprehensiveness, sufficiency, deletion_curve):
        for how in ({"k": 1}, {"k": 3}):
            assert_allclose(
                metric(shuffled, X[:, order], scores[:, order], **how),
                metric(model, X, scores, **how),
                rtol=0,
                atol=1e-14,
            )


@given(problems())
def test_removing_nothing_and_keeping_everything_change_nothing(problem):
    model, X, _ = problem
    nothing, everything = np.zeros_like(X), np.ones_like(X)
    n = X.shape[1]
    assert not comprehensiveness(model, X, nothing).any()
    assert not comprehensiveness(model, X, -everything).any()
    assert not sufficiency(model, X, everything, k=n).any()
    assert not sufficiency(model, X, everything, fractions=[1]).any()
    # What is kept of a document of which nothing speaks for the class is the empty document.
    empty = model.predict_proba(np.zeros_like(X))
    whole = model.predict_proba(X)
    rows, codes = np.arange(len(X)), whole.argmax(axis=1)
    expected = whole[rows, codes] - empty[rows, codes]
    assert_allclose(sufficiency(model, X, nothing), expected, rtol=0, atol=1e-14)
    assert_allclose(comprehensiveness(model, X, everything, k=n), expected, rtol=0, atol=1e-14)
    curves = deletion_curve(model, X, everything, k=n + 2)
    assert_array_equal(curves[:, -1], curves[:, n])


def test_ties_go_by_column():
    model = Softmax(4, 2)
    X, scores = np.ones((1, 4)), np.array([[1.0, 2.0, 2.0, 1.0]])
    curve = deletion_curve(model, X, scores, k=4, target="b")[0]
    for removed, probability in enumerate(curve):
        left = X.copy()
        left[0, [1, 2, 0, 3][:removed]] = 0
        assert probability == model.predict_proba(left)[0, 1]


def test_the_default_is_ten_tokens_and_shares_are_rounded_up():
    model = Softmax(30, 2)
    X = sp.csr_array(np.ones((1, 30)))
    scores = np.random.default_rng(0).random((1, 30))
    for metric in (comprehensiveness, sufficiency):
        ten = metric(model, X, scores, k=10)
        assert_array_equal(metric(model, X, scores), ten)
        assert_array_equal(metric(model, X, scores, fractions=[1 / 3]), ten)
        assert_array_equal(metric(model, X, scores, fractions=[0.301]), ten)
        one, two = (metric(model, X, scores, k=k) for k in (1, 2))
        assert_allclose(metric(model, X, scores, fractions=[0.01, 0.05]), (one + two) / 2)
    assert deletion_curve(model, X, scores).shape == (1, 11)
    hundred = sp.csr_array(np.ones((1, 100)))
    many = np.arange(100.0, 0, -1)[None]
    wide = Softmax(100, 2)
    # 0.07 * 100 is a little more than 7 in floating point.
    assert_array_equal(
        comprehensiveness(wide, hundred, many, fractions=[0.07]),
        comprehensiveness(wide, hundred, many, k=7),
    )


def test_target_and_scores_for_each_class():
    X, y = data(n_classes=3)
    labels = np.array(["x", "y", "z"])[y]
    model = ClsAttentionClassifier().fit(X, labels)
    terms = model.contributions(X)
    predicted = model.predict_proba(X).argmax(axis=1)
    assert len(set(predicted)) == 3
    by_list = comprehensiveness(model, X, terms, k=2)
    by_hand = np.array(
        [comprehensiveness(model, X, term, k=2, target=model.classes_[code]) for code, term in
         enumerate(terms)]
    )  # fmt: skip
    assert_array_equal(by_list, by_hand[predicted, np.arange(len(predicted))])
    assert_array_equal(comprehensiveness(model, X, terms, k=2, target=model.predict(X)), by_list)
    assert_array_equal(comprehensiveness(model, X, terms, k=2, target="y"), by_hand[1])
    dense = tuple(term.toarray() for term in terms)
    assert_array_equal(comprehensiveness(model, X, dense, k=2), by_list)


def test_scores_for_each_of_many_classes():
    model = Softmax(4, 2)
    model.classes_ = np.arange(70)
    model.coef = np.random.default_rng(0).normal(size=(4, 70))
    X, codes = np.ones((70, 4)), np.arange(70)
    scores = np.random.default_rng(1).random((70, 70, 4))
    by_list = comprehensiveness(model, X, list(scores), k=1, target=codes)
    assert_array_equal(
        by_list, comprehensiveness(model, X, scores[codes, codes], k=1, target=codes)
    )


def test_contributions_say_more_than_their_opposite():
    X, y = data()
    model = ClsAttentionClassifier().fit(X, y)
    z = model.contributions(X)
    true, false = (comprehensiveness(model, X, s, k=2).mean() for s in ([-z, z], [z, -z]))
    assert true > 0.1 > 0 > false
    kept, lost = (sufficiency(model, X, s, k=2).mean() for s in ([-z, z], [z, -z]))
    assert kept < 0.1 < 0.3 < lost


def pipelines():
    frame = pd.DataFrame
    return [
        pytest.param(ClsAttentionClassifier(), sp.csr_array, id="ours"),
        pytest.param(LogisticRegression(), sp.csr_matrix, id="logistic"),
        pytest.param(LogisticRegression(), lambda X: frame(X).add_prefix("t"), id="frame"),
        pytest.param(make_pipeline(TfidfTransformer(), LogisticRegression()), sp.csr_matrix,
                     id="pipeline"),
        pytest.param(MultinomialNB(), sp.csc_matrix, id="columns"),
        pytest.param(GaussianNB(), np.asarray, id="dense"),
    ]  # fmt: skip


@pytest.mark.parametrize(("model", "form"), pipelines())
def test_any_classifier_and_format(model, form):
    X, y = data()
    X = X.toarray()
    given = form(X)
    model.fit(given, y)
    scores = np.random.default_rng(0).normal(size=X.shape)
    codes = model.predict_proba(given).argmax(axis=1)
    order = [slow_order(row, z)[:3] for row, z in zip(X, scores, strict=True)]
    without = X.copy()
    for row, tokens in zip(without, order, strict=True):
        row[tokens] = 0
    rows = np.arange(len(X))
    base = model.predict_proba(given)[rows, codes]
    expected = base - model.predict_proba(form(without))[rows, codes]
    assert_allclose(comprehensiveness(model, given, scores, k=3), expected, rtol=0, atol=1e-12)
    assert_allclose(
        deletion_curve(model, given, scores, k=3)[:, -1], base - expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray], ids=["sparse", "dense"])
def test_small_blocks_change_nothing(monkeypatch, form):
    X = np.random.default_rng(1).poisson(1, (9, 6)).astype(float)
    X[4] = 0
    scores = np.random.default_rng(2).normal(size=X.shape)
    largest = []

    class Recording(Softmax):
        def predict_proba(self, X):
            largest.append(X.shape[0])
            return super().predict_proba(X)

    whole = deletion_curve(Recording(6, 3), form(X), scores, k=5)
    assert max(largest) > 9
    for entries in (1, 7, 20):
        monkeypatch.setattr(_perturbation, "_BLOCK_ENTRIES", entries)
        largest.clear()
        assert_array_equal(deletion_curve(Recording(6, 3), form(X), scores, k=5), whole)
        assert max(largest) <= max(1, entries)


def test_nothing_is_asked_twice():
    model = Softmax(4, 2)
    X, scores = np.array([[1.0, 1, 0, 0], [0, 0, 0, 0]]), np.ones((2, 4))
    deletion_curve(model, X, scores, k=200)
    assert model.asked == 2 + 2  # both documents, and the first without one and two tokens
    model.asked = 0
    comprehensiveness(model, X, scores, fractions=[0.01, 0.1, 0.5])
    assert model.asked == 2 + 1


def test_what_the_caller_gave_stays_as_it_is():
    # Unsorted indices, an entry in two parts, an explicit zero.
    parts = (np.array([1.0, 2, 1, 0, 3]), np.array([3, 1, 3, 0, 2]), np.array([0, 4, 5]))
    X = sp.csr_array(tuple(part.copy() for part in parts), shape=(2, 4))
    scores = sp.csr_array((np.array([3.0, 1, 2, 9]), parts[1][:4], [0, 4, 4]), shape=(2, 4))
    before = [array.copy() for M in (X, scores) for array in (M.data, M.indices, M.indptr)]
    model = Softmax(4, 2)
    found = deletion_curve(model, X, scores, k=2)
    assert_array_equal(
        found, deletion_curve(model, X.toarray(), scores.toarray(), k=2)
    )  # the explicit zero's score of 9 counts for nothing
    after = [array for M in (X, scores) for array in (M.data, M.indices, M.indptr)]
    for one, other in zip(before, after, strict=True):
        assert_array_equal(one, other)


METRICS = [comprehensiveness, sufficiency, deletion_curve]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": ["a text", "another"]}, TypeError, "output of the vectorizer"),
        ({"X": np.ones(3)}, ValueError, r"\(n_documents, n_tokens\), got 1 dim"),
        ({"X": np.ones((0, 3))}, ValueError, "at least one document"),
        ({"X": sp.csr_array((0, 3))}, ValueError, "at least one document"),
        ({"scores": np.ones((2, 4))}, ValueError, r"shape of X, \(2, 3\), got \(2, 4\)"),
        ({"scores": np.ones(3)}, ValueError, r"got \(3,\)"),
        ({"scores": sp.csr_array((3, 2))}, ValueError, r"got \(3, 2\)"),
        ({"scores": np.array([["a"] * 3] * 2)}, TypeError, "scores must be numbers, got dtype"),
        ({"scores": np.full((2, 3), np.nan)}, ValueError, "some are NaN"),
        ({"scores": sp.csr_array([[np.nan, 0, 0]] * 2)}, ValueError, "some are NaN"),
        ({"scores": [np.ones((2, 3))]}, ValueError, "each of the 2 classes, got a list of 1"),
        ({"scores": []}, ValueError, "got a list of 0"),
        ({"scores": [np.ones((2, 3)), np.ones((2, 2))]}, ValueError, r"got \(2, 2\)"),
        ({"k": 0}, ValueError, "k == 0, must be >= 1"),
        ({"k": 2.5}, TypeError, "k must be an instance of int, not float"),
        ({"target": "z"}, ValueError, r"'z' is not a class .* \['a', 'b'\]"),
        ({"target": ["a", "b", "a"]}, ValueError, r"or 2, one for each document, got shape \(3,\)"),
        ({"target": ["a", "q"]}, ValueError, "'q' is not a class"),
        ({"estimator": LinearSVC()}, TypeError, "predict_proba, which LinearSVC does not have"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_input(metric, change, error, message):
    given = {"estimator": Softmax(3, 2), "X": np.eye(2, 3), "scores": np.ones((2, 3)), **change}
    with pytest.raises(error, match=message):
        metric(given.pop("estimator"), given.pop("X"), given.pop("scores"), **given)


@pytest.mark.parametrize("metric", [comprehensiveness, sufficiency])
@pytest.mark.parametrize("fractions", [[], [0.0, 0.5], [1.1], 0.5, [np.nan], [[0.1]]], ids=str)
def test_bad_fractions(metric, fractions):
    with pytest.raises(ValueError, match="shares of a document's tokens, over 0 and up to 1"):
        metric(Softmax(3, 2), np.eye(2, 3), np.ones((2, 3)), fractions=fractions)


def test_k_and_fractions_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        comprehensiveness(Softmax(3, 2), np.eye(3), np.eye(3), k=1, fractions=[0.1])


def test_a_model_of_another_width_and_an_unfitted_one_say_so_themselves():
    X, y = data()
    model = ClsAttentionClassifier()
    with pytest.raises(Exception, match="not fitted"):
        comprehensiveness(model, X, X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="features"):
        comprehensiveness(model, X[:, :5], X[:, :5])


def test_answers_of_another_shape_are_refused():
    class Several(DummyClassifier):
        def predict_proba(self, X):
            return [np.ones((X.shape[0], 2))] * 3

    with pytest.raises(TypeError, match=r"must return .* got shape \(3, 2, 2\) for 2 documents"):
        comprehensiveness(Several(), np.eye(2), np.eye(2))


def test_the_public_names():
    assert set(metrics.__all__) == {
        "ERASER_FRACTIONS",
        "expected_calibration_error",
        "greedy_scores",
        *(metric.__name__ for metric in METRICS),
    }


# ---- calibration --------------------------------------------------------------------------------


def slow_error(codes, proba, weights, edges):
    """Return the expected calibration error, document by document; an edge is of the bin below."""
    gaps = dict.fromkeys(range(len(edges) + 1), 0.0)
    for code, row, weight in zip(codes, proba, weights, strict=True):
        confidence = max(row)
        place = sum(edge < confidence for edge in edges)
        gaps[place] += weight * ((list(row).index(confidence) == code) - confidence)
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
    shares = np.linspace(0, 1, n_bins + 1)[1:-1]
    for strategy in ("uniform", "quantile"):
        edges = shares if strategy == "uniform" else np.quantile(proba.max(axis=1), shares)
        expected = slow_error(codes, proba, weights, edges)
        how = {"labels": labels, "n_bins": n_bins, "strategy": strategy}
        found = expected_calibration_error(y, proba, sample_weight=weights, **how)
        assert found == pytest.approx(expected, abs=1e-12)
    rows = np.repeat(np.arange(n), weights)
    repeated = expected_calibration_error(y[rows], proba[rows], labels=labels)
    weighted = expected_calibration_error(y, proba, labels=labels, sample_weight=weights)
    assert repeated == pytest.approx(weighted, abs=1e-12)


def test_calibration_error_by_hand():
    proba = [[0.95, 0.05], [0.05, 0.95], [0.7, 0.3]]
    error = expected_calibration_error([0, 0, 0], proba, labels=[0, 1])
    assert error == pytest.approx((abs(1 - 2 * 0.95) + 0.3) / 3)
    assert expected_calibration_error([0, 0, 0], [0.05, 0.95, 0.3], labels=[0, 1]) == pytest.approx(
        error
    )
    assert expected_calibration_error(["x", "y", "z"], np.eye(3)) == 0
    assert expected_calibration_error([-1, -1], np.eye(2), labels=[0, 1]) == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_true": [0, 1, 2]}, ValueError, "inconsistent numbers of samples"),
        ({"y_true": [0, 0]}, ValueError, "2 classes, but there are 1 labels: pass labels="),
        ({"labels": [0, 1, 2]}, ValueError, "there are 3 labels"),
        ({"y_true": [[0], [1]]}, ValueError, r"y_true of shape \(n_documents,\)"),
        ({"y_proba": [[0.5, 0.6]] * 2}, ValueError, "must be probabilities"),
        ({"y_proba": [[-0.5, 1.5]] * 2}, ValueError, "must be probabilities"),
        ({"y_proba": [[np.nan, 1]] * 2}, ValueError, "NaN"),
        ({"n_bins": 0}, ValueError, "n_bins == 0, must be >= 1"),
        ({"n_bins": 1.5}, TypeError, "n_bins must be an instance of int"),
        ({"strategy": "equal"}, ValueError, "strategy must be"),
        ({"sample_weight": [0, 0]}, ValueError, "positive for some document|at least one non-zero"),
    ],
)
def test_wrong_probabilities_are_refused(change, error, message):
    arguments = {"y_true": [0, 1], "y_proba": [[0.5, 0.5]] * 2, **change}
    with pytest.raises(error, match=message):
        expected_calibration_error(arguments.pop("y_true"), arguments.pop("y_proba"), **arguments)
