"""A fitted model's outputs, attention and selected tokens, of numbers of any size."""

from copy import copy

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import hardly_fitted
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import PaddedDocuments, counts, embed

N_CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("cls_weight", [1.7, 0.0], ids=["cls", "no cls"])
# At a spread of 2000 whole documents underflow against the largest score.
SPREAD = pytest.mark.parametrize("spread", [1.0, 2000.0])
DAMPED = pytest.mark.parametrize("entry_scale", [None, 1.5])


def drawn(n_tokens, n_classes=2, cls_weight=1.7, *, seed=0, spread=1.0, entry_scale=None):
    """Return a classifier with drawn scores, values and intercept."""
    rng = np.random.default_rng(seed)
    model = copy(hardly_fitted(n_classes, n_tokens, cls_weight > 0))
    model.attention_scores_ = spread * rng.normal(size=n_tokens)
    model.token_values_ = rng.normal(size=model.token_values_.shape)
    model.intercept_ = rng.normal(size=model.intercept_.shape)
    if cls_weight:
        model.cls_weight_, model.cls_score_ = cls_weight, float(rng.normal())
    model.entry_scale_ = entry_scale
    return model


def outputs(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


def most_probable(decisions):
    """Return the numbers of the classes that outputs are highest for."""
    return decisions.argmax(axis=1) if decisions.shape[1] > 1 else decisions[:, 0] > 0


@N_CLASSES
@CLS
@SPREAD
def test_outputs_and_attention_are_those_of_the_padded_model(n_classes, cls_weight, spread):
    X = counts(0, 30, 12, 0.3)
    model = drawn(12, n_classes, cls_weight, spread=spread)
    values = np.atleast_2d(model.token_values_).T
    E, p, v = embed(torch.from_numpy(model.attention_scores_), torch.from_numpy(values))
    documents, cls = PaddedDocuments.from_counts(X), (model.cls_weight_, model.cls_score_)
    expected = reference.outputs(documents, E, p, v, *cls, torch.from_numpy(model.intercept_))
    # Scores of thousands in a random basis carry rounding of 1e-12.
    close = {"rtol": 1e-10 if spread == 1.0 else 1e-8, "atol": 1e-10}
    for Z in (X, sp.csr_array(X), X.toarray()):
        assert_allclose(outputs(model, Z), expected, **close)
    on_positions, on_cls = reference.attention(documents, E, p, *cls)
    attention = np.zeros(X.shape)
    documents_of = np.repeat(np.arange(30), documents.tokens.shape[1])
    np.add.at(attention, (documents_of, documents.tokens.ravel()), on_positions.ravel())
    assert_allclose(model.attention(X).toarray(), attention, **close)
    shares = np.where(np.diff(X.indptr) == 0, 0.0, 1 - on_cls.numpy())
    assert_allclose(attention.sum(axis=1), shares, atol=1e-10)


def test_what_is_returned_is_the_callers_to_keep():
    """Neither X nor another answer is changed with it."""
    X, model = counts(0, 8, 7), drawn(7, 3)
    attention, (first, *_, last) = model.attention(X), model.contributions(X)
    before, kept = X.toarray(), last.toarray()
    for array in (attention, first):
        array.data[:], array.indices[:] = -1, 0
    assert_array_equal(X.toarray(), before)
    assert_array_equal(last.toarray(), kept)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_selected_tokens_against_brute_force(seed):
    rng, X, model = np.random.default_rng(seed), counts(seed, 8, 7), drawn(7)
    # Few distinct scores, so that documents have ties, some of them near misses.
    model.attention_scores_ = rng.integers(-2, 3, 7) + rng.choice([0.0, 1e-9, 4e-7, 1e-3], 7)
    X.data[X.indices == 2] = seed % 2  # stored, but where it is 0 no token of its documents
    selected = model.select_tokens(X)
    assert selected.dtype == bool
    for row, chosen in zip(X.toarray(), selected.toarray(), strict=True):
        best = model.attention_scores_[row > 0].max(initial=-np.inf)
        assert_array_equal(chosen, (row > 0) & (model.attention_scores_ >= best - 1e-6))


@N_CLASSES
@CLS
@SPREAD
@DAMPED
def test_the_prediction_is_that_of_the_outputs(n_classes, cls_weight, spread, entry_scale):
    """Also where outputs tie but for rounding, and where the masses of documents underflow."""
    X = counts(3, 60, 12, 0.3)
    model = drawn(12, n_classes, cls_weight, spread=spread, entry_scale=entry_scale)
    # Every token's values have a mirror image: documents with both of a pair are ties.
    ties = copy(model)
    half = model.token_values_[..., :6]
    ties.attention_scores_ = np.tile(model.attention_scores_[:6], 2)
    ties.token_values_ = np.concatenate([half, -half], axis=-1)
    ties.intercept_ = np.zeros_like(model.intercept_)
    paired = sp.csr_matrix(sp.hstack([X[:, :6], X[:, :6]]))
    large = copy(model)  # of which differences overflow
    large.token_values_ = 1.5e308 * np.sign(model.token_values_)
    pairs = [(model, X), (model, X.astype(np.int32)), (model, X * 1e290)]
    for one, Z in [*pairs, (ties, paired), (large, X)]:
        for W in (Z, Z.toarray()):
            assert_array_equal(one.predict(W), most_probable(outputs(one, W)))


@N_CLASSES
@pytest.mark.parametrize("entry", [0, 1, 2, 1022, 1023, 1024, 10**6, 2**62])
def test_counts_of_any_size_in_one_document(n_classes, entry):
    X = counts(3, 600, 12, 0.3).astype(np.int64)
    X.data[: len(X.data) // 2] = 1
    X.data[-400] = entry
    model = drawn(12, n_classes, entry_scale=1.5)
    expected = outputs(model, X.astype(np.float64))
    assert_allclose(outputs(model, X), expected, rtol=1e-6, atol=1e-9)
    assert_array_equal(model.predict(X), most_probable(expected))


def test_predictions_follow_scores_and_cls_that_change():
    X, model = counts(1, 60, 12, 0.3), drawn(12)
    for factor in (2.0, -1.0):
        before = outputs(model, X)
        model.attention_scores_ *= factor
        fresh = copy(model)
        fresh.attention_scores_ = model.attention_scores_.copy()
        assert_array_equal(outputs(model, X), outputs(fresh, X))
        assert np.abs(outputs(model, X) - before).max() > 0.01
        before = outputs(model, X)
        model.cls_weight_ *= 30
        assert np.abs(outputs(model, X) - before).max() > 0.01


@N_CLASSES
@pytest.mark.parametrize("entry_scale", [None, 1e-3, 2.0])
@pytest.mark.parametrize("size", [1e100, 1.0, 1e-100])
def test_entries_of_any_size_are_answered_alike_in_any_batch(n_classes, entry_scale, size):
    model = drawn(6, n_classes, 1.0, entry_scale=entry_scale)
    X = np.random.default_rng(0).uniform(0.1, 1.0, size=(7, 6)) * size
    X[:, 5] = 0
    alone = np.concatenate([outputs(model, sp.csr_array(row)) for row in X[:, None]])
    assert np.isfinite(alone).all()
    for together in (X, sp.csr_array(X)):
        assert_allclose(outputs(model, together), alone, rtol=1e-9)


def test_scores_too_far_apart_for_the_digits_of_a_float():
    model = drawn(3, cls_weight=0.0)
    model.attention_scores_, model.intercept_ = np.array([0.0, -742.0, 2.0]), np.zeros(1)
    model.token_values_ = np.array([1.0, 2.0, 3.0])
    X = np.array([[5e-22, 9e300, 0.0]])
    expected = outputs(model, sp.csr_array(X))  # few entries: by logarithms
    assert 1.1 < expected[0, 0] < 1.9
    assert_allclose(outputs(model, X), expected, rtol=1e-12)
