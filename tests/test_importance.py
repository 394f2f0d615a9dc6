"""Token statistics against a reference that goes document by document, in plain Python."""

import math

import numpy as np
from helpers import refused
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

KINDS = ["counts", "shares"]


def slow_totals(X, y, n_classes, weights, kind):
    totals = np.zeros((n_classes, len(X[0])))
    for document, label, weight in zip(X, y, weights, strict=True):
        length = (float(sum(document)) or 1.0) if kind == "shares" else 1.0
        totals[label] += weight * np.array(document) / length
    return totals


def slow_signed_frequency(X, y, n_classes, weights):
    """Return the K-class definition, one row a class, for K = 2 as well."""
    signs = np.where(np.arange(n_classes)[:, None] == y, n_classes - 1, -1) / n_classes
    shares = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-300)
    return signs @ (weights[:, None] * shares) / weights.sum()


@st.composite
def documents(draw):
    """Draw counts, labels (every class present) and weights; empty documents are common."""
    n_classes = draw(st.sampled_from([2, 3, 4, 8]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_documents, n_tokens = draw(st.integers(n_classes, 12)), draw(st.integers(1, 6))
    X = rng.choice([0, 0, 0, 1, 2, 7], (n_documents, n_tokens))
    y = rng.permutation(np.arange(n_documents) % n_classes)
    return X, y, n_classes, rng.integers(1, 4, n_documents)


@settings(max_examples=40)
@given(documents(), st.sampled_from(KINDS))
def test_totals_are_the_slow_ones_in_every_format(data, kind):
    X, y, n_classes, weights = data
    expected = slow_totals(X.tolist(), y, n_classes, weights, kind)
    forms = [X, X.tolist(), X.astype(np.float32)]
    for layout in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia"):
        forms += [getattr(sparse, f"{layout}_{made}")(X) for made in ("matrix", "array")]
    for form in forms:
        totals = class_totals(form, y, n_classes, weights, kind=kind)
        assert totals.dtype == np.float64
        assert_allclose(totals, expected, rtol=1e-12)


@settings(max_examples=40)
@given(documents())
def test_formulas_are_their_definitions(data):
    X, y, n_classes, weights = data
    balanced = weights / np.bincount(y, weights=weights)[y]
    shares = class_totals(X, y, n_classes, weights, kind="shares")
    for centred, of_documents in ((False, weights), (True, balanced)):
        expected = slow_signed_frequency(X, y, n_classes, of_documents)
        alpha = signed_frequency(shares, np.bincount(y, weights=weights), centred=centred)
        if n_classes == 2:  # the K-class formula gives half of it to each class
            alpha = np.stack([-alpha / 2, alpha / 2])
        assert_allclose(alpha, expected, atol=1e-14)
    totals = slow_totals(X.tolist(), y, n_classes, weights, "counts")
    difference = np.atleast_2d(posterior_difference(totals))
    odds = np.atleast_2d(log_odds(totals, smoothing=0.5))
    smoothed = totals + 0.5
    posterior = totals / np.maximum(totals.sum(axis=0), 1e-300)
    for row, k in enumerate([1] if n_classes == 2 else range(n_classes)):
        others = np.delete(posterior, k, axis=0).mean(axis=0)
        assert_allclose(difference[row], posterior[k] - others, atol=1e-12)
        rest = np.delete(smoothed, k, axis=0).sum(axis=0)
        expected = np.log(smoothed[k] / smoothed[k].sum()) - np.log(rest / rest.sum())
        assert_allclose(odds[row], expected, atol=1e-12)


def test_overall_importance():
    assert_array_equal(overall_importance([-2.0, 1.0]), [2.0, 1.0])
    assert_allclose(overall_importance([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), [3**0.5, 0])


def of_two(**arguments):
    return class_totals(**{"X": np.eye(2), "y": [0, 1], "n_classes": 2, **arguments})


def test_wrong_arguments():
    refused("kind must be", of_two, kind="sums")
    refused(r"Expected 2 integer class codes .* shape \(3,\)", of_two, y=[0, 1, 2])
    refused("codes from 0 to 1, got 0 to 2", of_two, y=[0, 2])
    refused("codes from 0 to 1, got -1 to 1", of_two, y=[-1, 1])
    refused("integer class.*float64", of_two, y=[0.0, 1.0])
    refused(r"weights of shape \(1,\)", of_two, sample_weight=[1.0])
    refused("at least 2 classes", posterior_difference, [1.0, 2.0])
    refused("at least 2 classes", log_odds, [[1.0, 2.0]])
    refused("class_weight_totals must have shape", signed_frequency, np.eye(2), [1, 2, 3])
    refused("smoothing must be", log_odds, np.eye(2), smoothing=0)
    refused("smoothing must be", log_odds, np.eye(2), smoothing=math.nan)
    refused("must have shape", overall_importance, 1.0)
