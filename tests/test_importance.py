"""The importance of tokens is what its definition says, and the transformer selects by it."""

import pickle

import numpy as np
import pytest
from helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer

STATISTICS = ["signed_frequency", "posterior_difference", "log_odds"]
SELECTIONS = [{}, {"k": 4}, {"scale": False}, {"k": 4, "scale": False}]


def problem(n_classes):
    rng = np.random.default_rng(n_classes)
    X = sparse.csr_matrix(rng.poisson(0.4, (40, 12)).astype(float))
    return X, np.arange(40) % n_classes


def as_dense(X):
    return X.toarray() if sparse.issparse(X) else X


# Numbers


def test_importance_by_hand():
    X = np.array([[1, 1, 0], [0, 2, 0], [3, 1, 0]])
    y = ["yes", "yes", "no"]
    fitted = TokenImportanceTransformer().fit(X, y)
    assert_array_equal(fitted.classes_, ["no", "yes"])
    assert_allclose(fitted.token_importance_, [(0.5 - 0.75) / 3, (0.5 + 1 - 0.25) / 3, 0])
    fitted = TokenImportanceTransformer("posterior_difference").fit(X, y)
    assert_allclose(fitted.token_importance_, [-0.5, 0.5, 0])
    fitted = TokenImportanceTransformer("log_odds", smoothing=2).fit(X, y)
    expected = np.log([3 / 10, 5 / 10, 2 / 10]) - np.log([5 / 10, 3 / 10, 2 / 10])
    assert_allclose(fitted.token_importance_, expected, atol=1e-15)


def slow_signed_frequency(X, y, n_classes, weights):
    """Return the definition for several classes, a row for each, document by document."""
    alpha = np.zeros((n_classes, X.shape[1]))
    for document, label, weight in zip(X, y, weights, strict=True):
        signs = np.where(np.arange(n_classes) == label, n_classes - 1, -1) / n_classes
        alpha += weight * np.outer(signs, document / max(document.sum(), 1))
    return alpha / weights.sum()


@st.composite
def documents(draw):
    """Draw counts, labels (every class present) and weights; empty documents are common."""
    n_classes = draw(st.sampled_from([2, 3, 4, 8]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_documents, n_tokens = draw(st.integers(n_classes, 12)), draw(st.integers(1, 6))
    X = rng.choice([0, 0, 0, 1, 2, 7], (n_documents, n_tokens))
    y = rng.permutation(np.arange(n_documents) % n_classes)
    return X, y, n_classes, rng.integers(1, 4, n_documents)


def by_class(importance, X, y, weights, **parameters):
    """Return the transformer's importance, of two classes that of the second."""
    fitted = TokenImportanceTransformer(importance, **parameters).fit(X, y, weights)
    return np.atleast_2d(fitted.token_importance_)


@settings(max_examples=40)
@given(documents())
def test_importance_is_its_definition(data):
    X, y, n_classes, weights = data
    balanced = weights / np.bincount(y, weights=weights)[y]
    for centred, of_documents in ((False, weights), (True, balanced)):
        expected = slow_signed_frequency(X, y, n_classes, of_documents)
        alpha = by_class("signed_frequency", X, y, weights, centred=centred)
        if n_classes == 2:  # the definition gives half of it to each class
            alpha = np.concatenate([-alpha / 2, alpha / 2])
        assert_allclose(alpha, expected, atol=1e-14)
    totals = np.array([weights[y == k] @ X[y == k] for k in range(n_classes)])
    smoothed = totals + 0.5
    posterior = totals / np.maximum(totals.sum(axis=0), 1e-300)
    difference = by_class("posterior_difference", X, y, weights)
    odds = by_class("log_odds", X, y, weights, smoothing=0.5)
    for row, k in enumerate([1] if n_classes == 2 else range(n_classes)):
        others = np.delete(posterior, k, axis=0).mean(axis=0)
        assert_allclose(difference[row], posterior[k] - others, atol=1e-12)
        rest = np.delete(smoothed, k, axis=0).sum(axis=0)
        expected = np.log(smoothed[k] / smoothed[k].sum()) - np.log(rest / rest.sum())
        assert_allclose(odds[row], expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_classifiers_importance_is_the_signed_frequency(n_classes):
    X, y = problem(n_classes)
    X = X.sign()  # the classifier damps counts
    model = ClsAttentionClassifier(C=1.0).fit(X, y)
    fitted = TokenImportanceTransformer("signed_frequency").fit(X, y)
    assert_allclose(model.token_importance_, fitted.token_importance_, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("importance", STATISTICS)
def test_k_threshold_and_scale(n_classes, importance):
    X, y = problem(n_classes)
    fitted = TokenImportanceTransformer(importance).fit(X, y)
    assert fitted.token_importance_.shape == ((12,) if n_classes == 2 else (3, 12))
    overall = fitted.scale_
    assert_allclose(overall**2, (np.atleast_2d(fitted.token_importance_) ** 2).mean(axis=0))
    best = np.argsort(-np.round(overall, 12), kind="stable")
    fifth = overall[best[4]]
    for parameters, expected in [
        ({}, best),
        ({"k": 3}, best[:3]),
        ({"k": 0.25}, best[:3]),
        ({"k": 1.0}, best),
        ({"k": 0.001}, best[:1]),
        ({"threshold": fifth}, np.flatnonzero(overall > fifth)),
        ({"threshold": fifth, "k": 3}, best[:3]),
        ({"threshold": fifth, "k": 9}, np.flatnonzero(overall > fifth)),
    ]:
        fitted = TokenImportanceTransformer(importance, **parameters).fit(X, y)
        support = fitted.get_support()
        assert_array_equal(np.flatnonzero(support), np.sort(expected))
        assert_allclose(fitted.transform(X).toarray(), (X.toarray() * overall)[:, support])
        selection = fitted.set_params(scale=False).fit(X, y)
        assert selection.scale_ is None
        assert_array_equal(selection.transform(X).toarray(), X.toarray()[:, support])
        assert_array_equal(selection.transform(X.toarray()), X.toarray()[:, support])


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from(STATISTICS), st.integers(2, 4))
def test_batches_are_one_fit_and_weights_are_repetition(seed, importance, n_classes):
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.poisson(0.4, (40, 12)).astype(float))
    y = np.arange(40) * n_classes // 40  # so that the first batch has a single class
    weights = rng.integers(0, 3, 40)
    weights[::10] = 1
    parameters = {"importance": importance, "k": 5, "centred": bool(seed % 2)}
    whole = TokenImportanceTransformer(**parameters).fit(X, y, weights)
    rows = np.repeat(np.arange(40), weights)
    repeated = TokenImportanceTransformer(**parameters).fit(X[rows], y[rows])
    batches = TokenImportanceTransformer(**parameters)
    for at in (slice(0, 7), slice(7, 25), slice(25, 40)):
        batches = pickle.loads(pickle.dumps(batches))
        batches.partial_fit(X[at], y[at], classes=range(n_classes), sample_weight=weights[at])
    for other in (repeated, batches):
        assert_allclose(other.token_importance_, whole.token_importance_, atol=1e-14)
        assert_array_equal(other.class_count_, whole.class_count_)
        assert_array_equal(other.get_support(), whole.get_support())
        assert_array_equal(other.classes_, whole.classes_)
    # fit starts again, whatever came before.
    assert_array_equal(batches.fit(X, y, weights).token_importance_, whole.token_importance_)


# Output


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
@pytest.mark.parametrize("parameters", SELECTIONS, ids=str)
def test_what_comes_back_is_compressed_rows_of_its_own(parameters, dtype):
    X, y = problem(3)
    dense, scaled = X.toarray().astype(dtype), parameters.get("scale", True)
    fitted = TokenImportanceTransformer("log_odds", **parameters).fit(X, y)
    expected = fitted.transform(X).toarray()
    for made in (np.array, sparse.csr_matrix, sparse.csr_array, sparse.csc_array):
        Z = made(dense)
        result = clone(fitted).fit_transform(Z, y)
        assert_allclose(as_dense(result), expected, rtol=1e-6)
        assert result.dtype == (dtype if dtype == np.float32 or not scaled else np.float64)
        if made is np.array:
            result[:] = 7
        else:
            assert type(result) is {sparse.csr_matrix: made}.get(made, sparse.csr_array)
            result.sort_indices()  # in place: nothing of it may be shared with X
            result.data[:] = 7
        assert_array_equal(as_dense(Z), dense)


def test_more_or_fewer_tokens_than_there_are():
    X, y = problem(2)
    with pytest.warns(UserWarning, match="k=13 is above n_tokens=12: all are kept"):
        fitted = TokenImportanceTransformer(k=13).fit(X, y)
    assert fitted.get_support().all()
    fitted = TokenImportanceTransformer(threshold=5, k=3).fit(X, y)
    for Z in (X, X.toarray()):
        with pytest.warns(UserWarning, match=r"No tokens were selected.*threshold=5"):
            empty = fitted.transform(Z)
        assert empty.shape == (40, 0)


# Batches that do not fit


def test_a_refused_batch_changes_nothing():
    X, y = problem(2)
    fitted = TokenImportanceTransformer().fit(X, y)
    totals = fitted.token_totals_.copy()
    refused("features", fitted.partial_fit, X[:, :5], y)
    refused(r"not among the classes .*: \[2\]", fitted.partial_fit, X, y + 1)
    refused("classes of the first call", fitted.partial_fit, X, y, [0, 1, 2])
    refused("other sums", fitted.set_params(importance="log_odds").partial_fit, X, y)
    assert_array_equal(fitted.token_totals_, totals)


def test_two_statistics_of_the_same_sums_may_be_exchanged():
    X, y = problem(2)
    fitted = TokenImportanceTransformer("log_odds").fit(X, y)
    fitted.set_params(importance="posterior_difference").partial_fit(X, y)
    other = TokenImportanceTransformer("posterior_difference").fit(X, y)
    assert_allclose(fitted.token_importance_, other.token_importance_)
