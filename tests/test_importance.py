"""Token statistics against a reference that goes document by document, in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_clsattn.importance import (
    class_totals,
    log_odds,
    overall_importance,
    posterior_difference,
    signed_frequency,
)

KINDS = ["counts", "presence", "shares"]
STATISTICS = ["signed_frequency", "centred", "posterior_difference", "log_odds"]


def slow_totals(X, y, n_classes, weights, kind):
    totals = [[0.0] * len(X[0]) for _ in range(n_classes)]
    for document, label, weight in zip(X, y, weights, strict=True):
        length = float(sum(document))
        for token, count in enumerate(document):
            if count > 0:
                amount = {"counts": count, "presence": 1.0, "shares": count / length}[kind]
                totals[label][token] += weight * amount
    return np.array(totals)


def slow_signed_frequency(X, y, n_classes, weights):
    """Return the K-class definition, one row a class, for K = 2 as well."""
    alpha = np.zeros((n_classes, len(X[0])))
    for document, label, weight in zip(X, y, weights, strict=True):
        length = float(sum(document))
        for token, count in enumerate(document):
            for k in range(n_classes):
                sign = (n_classes - 1) / n_classes if k == label else -1 / n_classes
                alpha[k, token] += weight * (count / length if length else 0.0) * sign
    return alpha / sum(weights)


def statistic(name, X, y, n_classes, weights=None):
    if name in ("signed_frequency", "centred"):
        class_weights = np.bincount(y, weights=weights, minlength=n_classes)
        shares = class_totals(X, y, n_classes, weights, kind="shares")
        return signed_frequency(shares, class_weights, centred=name == "centred")
    totals = class_totals(X, y, n_classes, weights)
    return posterior_difference(totals) if name == "posterior_difference" else log_odds(totals)


@st.composite
def documents(draw, n_classes=None):
    """Draw counts, labels (every class present) and weights; empty documents are common."""
    n_classes = draw(st.integers(2, 4)) if n_classes is None else n_classes
    n_documents = draw(st.integers(n_classes, 9))
    n_tokens = draw(st.integers(1, 6))
    counts = st.lists(st.sampled_from([0, 0, 0, 1, 2, 7]), min_size=n_tokens, max_size=n_tokens)
    X = np.array(draw(st.lists(counts, min_size=n_documents, max_size=n_documents)))
    extra = n_documents - n_classes
    rest = draw(st.lists(st.integers(0, n_classes - 1), min_size=extra, max_size=extra))
    y = np.array([*range(n_classes), *rest])
    weights = np.array(
        draw(st.lists(st.integers(1, 3), min_size=n_documents, max_size=n_documents))
    )
    return X, y, n_classes, weights


@settings(max_examples=50)
@given(documents(), st.sampled_from(KINDS))
def test_totals_are_the_slow_ones(data, kind):
    X, y, n_classes, weights = data
    expected = slow_totals(X.tolist(), y, n_classes, weights, kind)
    for matrix in (X, X.astype(np.float32), sparse.csr_matrix(X), sparse.csc_array(X)):
        totals = class_totals(matrix, y, n_classes, weights, kind=kind)
        assert totals.dtype == np.float64
        assert totals.shape == (n_classes, X.shape[1])
        assert_allclose(totals, expected, rtol=1e-12)


@settings(max_examples=50)
@given(documents())
def test_signed_frequency_is_the_definition(data):
    X, y, n_classes, weights = data
    balanced = weights / np.bincount(y, weights=weights)[y]
    for name, of_documents in (("signed_frequency", weights), ("centred", balanced)):
        expected = slow_signed_frequency(X.tolist(), y, n_classes, of_documents)
        alpha = statistic(name, X, y, n_classes, weights)
        if n_classes == 2:  # the K-class formula gives half of it to each class
            alpha = np.stack([-alpha / 2, alpha / 2])
        assert_allclose(alpha, expected, atol=1e-14)


def test_only_the_centred_form_ignores_the_class_prior():
    X = np.ones((5, 2))
    y = np.array([0, 1, 1, 1, 1])
    assert_allclose(statistic("signed_frequency", X, y, 2), [0.3, 0.3])
    assert_allclose(statistic("centred", X, y, 2), [0, 0], atol=1e-15)


@settings(max_examples=40)
@given(documents())
def test_posterior_difference_and_log_odds_token_by_token(data):
    X, y, n_classes, weights = data
    totals = slow_totals(X.tolist(), y, n_classes, weights, "counts")
    difference = np.atleast_2d(posterior_difference(totals))
    odds = np.atleast_2d(log_odds(totals, smoothing=0.5))
    smoothed = totals + 0.5
    for row, k in enumerate([1] if n_classes == 2 else range(n_classes)):
        rest = np.delete(smoothed, k, axis=0)
        for token in range(X.shape[1]):
            seen = totals[:, token].sum()
            expected = 0.0
            if seen:
                posterior = totals[:, token] / seen
                expected = posterior[k] - np.delete(posterior, k).mean()
            assert difference[row, token] == pytest.approx(expected, abs=1e-12)
            expected = math.log(smoothed[k, token] / smoothed[k].sum()) - math.log(
                rest[:, token].sum() / rest.sum()
            )
            assert odds[row, token] == pytest.approx(expected, abs=1e-12)
    assert np.all(np.abs(difference) <= 1)


@pytest.mark.parametrize("name", STATISTICS)
@settings(max_examples=30)
@given(data=documents(), seed=st.integers(0, 1000))
def test_repetition_order_and_names_of_classes(name, data, seed):
    X, y, n_classes, weights = data
    expected = statistic(name, X, y, n_classes, weights)
    repeated = statistic(name, np.repeat(X, weights, axis=0), np.repeat(y, weights), n_classes)
    assert_allclose(repeated, expected, atol=1e-12)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    shuffled = sparse.csr_array(X[rows][:, columns])
    values = statistic(name, shuffled, y[rows], n_classes, weights[rows])
    assert_allclose(values, expected[..., columns], atol=1e-12)
    swapped = statistic(name, X, n_classes - 1 - y, n_classes, weights)
    assert_allclose(swapped, -expected if n_classes == 2 else expected[::-1], atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_empty_documents_and_unseen_tokens(n_classes):
    X = np.array([[2, 1, 0], [1, 2, 0], [0, 3, 0], [0, 0, 0]])
    y = np.array([0, 1, n_classes - 1, 0])
    for name in STATISTICS:
        values = statistic(name, sparse.csr_matrix(X), y, n_classes)
        assert np.isfinite(values).all()
        if name != "log_odds":
            assert_array_equal(values[..., 2], 0)
    # The empty document counts among the n documents, and for nothing else.
    alpha = statistic("signed_frequency", X, y, n_classes)
    assert_allclose(alpha * 4 / 3, statistic("signed_frequency", X[:3], y[:3], n_classes))


def test_nothing_to_sum_gives_zeros():
    assert_array_equal(class_totals(np.zeros((0, 3)), np.zeros(0, int), 2), np.zeros((2, 3)))
    assert_array_equal(signed_frequency(np.zeros((2, 3)), [0, 0]), np.zeros(3))
    assert_array_equal(posterior_difference(np.zeros((3, 2))), np.zeros((3, 2)))
    assert_allclose(log_odds(np.zeros((2, 4))), np.zeros(4), atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_every_sparse_format(layout, kind):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.5, (12, 7))
    y = rng.integers(0, 3, 12)
    expected = class_totals(dense, y, 3, kind=kind)
    for container in ("matrix", "array"):
        X = getattr(sparse, f"{layout}_{container}")(dense)
        assert_allclose(class_totals(X, y, 3, kind=kind), expected, rtol=1e-12)
        assert_array_equal(X.toarray(), dense)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_unusual_but_valid_storage(layout, kind):
    # Duplicates (2 + 1 at [0, 1]), an explicit zero, unsorted and 64-bit indices, read-only.
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 5.0, 0.0]), np.array([1, 1, 0, 2]), np.array([0, 3, 4])), shape=(2, 3)
    )
    if layout == "csc":
        X = sparse.csc_array(
            (np.array([5.0, 1.0, 2.0, 0.0]), np.array([0, 0, 0, 1]), np.array([0, 1, 3, 4])),
            shape=(2, 3),
        )
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    expected = slow_totals([[5, 3, 0], [0, 0, 0]], [0, 1], 2, [1, 1], kind)
    assert_allclose(class_totals(X, [0, 1], 2, kind=kind), expected)
    assert X.nnz == 4


def test_float32_is_summed_in_float64():
    X = sparse.csr_matrix(np.full((20, 1), 1e8 + 8, dtype=np.float32))
    X[0, 0] = 1.0
    assert class_totals(X, np.zeros(20, int), 2)[0, 0] == 1 + 19 * float(np.float32(1e8 + 8))


def test_log_odds_with_smoothing_of_each_class():
    totals = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 2.0], [1.0, 1.0, 0.0]])
    assert_allclose(log_odds(totals, smoothing=[0.5] * 3), log_odds(totals, smoothing=0.5))
    # Smoothing in proportion to the classes leaves a token that was never seen at exactly 0.
    unseen = np.column_stack([totals, np.zeros(3)])
    odds = log_odds(unseen, smoothing=totals.sum(axis=1) / 7)
    assert_allclose(odds[:, 3], 0, atol=1e-14)


def test_log_odds_stays_finite_where_one_class_has_almost_everything():
    totals = np.array([[1e16, 1.0], [0.0, 0.0], [0.0, 1.0]])
    assert np.isfinite(log_odds(totals, smoothing=1e-3)).all()


def test_overall_importance():
    assert_array_equal(overall_importance([-2.0, 1.0]), [2.0, 1.0])
    assert_allclose(overall_importance([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), [3**0.5, 0])
    with pytest.raises(ValueError, match="must have shape"):
        overall_importance(1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "sums"}, "kind must be"),
        ({"y": [0, 1, 2]}, r"y must have shape \(2,\)"),
        ({"y": [0, 2]}, "codes from 0 to 1, got 0 to 2"),
        ({"y": [-1, 1]}, "codes from 0 to 1, got -1 to 1"),
        ({"y": [0.0, 1.0]}, "integers"),
        ({"sample_weight": [1.0]}, "sample_weight must have shape"),
    ],
)
def test_wrong_arguments_of_class_totals(arguments, message):
    with pytest.raises(ValueError, match=message):
        class_totals(**{"X": np.eye(2), "y": [0, 1], "n_classes": 2, **arguments})


@pytest.mark.parametrize("totals", [[1.0, 2.0], [[1.0, 2.0]]])
def test_totals_need_two_classes(totals):
    for formula in (posterior_difference, log_odds, lambda t: signed_frequency(t, [1.0])):
        with pytest.raises(ValueError, match="at least 2 classes"):
            formula(totals)


def test_wrong_arguments_of_formulas():
    with pytest.raises(ValueError, match="class_weight_totals must have shape"):
        signed_frequency(np.eye(2), [1, 2, 3])
    for smoothing in (0, -1, [1.0, 0.0], [1.0, 1.0, 1.0], math.nan):
        with pytest.raises(ValueError, match="smoothing must be"):
            log_odds(np.eye(2), smoothing=smoothing)
