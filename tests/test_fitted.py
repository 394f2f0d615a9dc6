"""A fitted model's outputs, attention, contributions and selected tokens."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import PaddedDocuments, counts, embed

from sklearn_clsattn._core import fitted as fitted_module
from sklearn_clsattn._core.fitted import (
    SELECTION_TOLERANCE,
    FittedAttention,
    count_selected,
    select_tokens,
)

OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 3])
CLS = pytest.mark.parametrize("cls_weight", [1.7, 0.0], ids=["cls", "no cls"])
# At a spread of 2000 whole documents underflow against the largest score.
SPREAD = pytest.mark.parametrize("spread", [1.0, 2000.0])


def model(n_tokens, n_outputs=1, cls_weight=1.7, *, seed=0, spread=1.0, entry_scale=None):
    rng = np.random.default_rng(seed)
    return FittedAttention(
        scores=spread * rng.normal(size=n_tokens),
        values=rng.normal(size=(n_tokens, n_outputs)),
        intercept=rng.normal(size=n_outputs),
        cls_weight=cls_weight,
        cls_score=float(rng.normal()) if cls_weight else -np.inf,
        entry_scale=entry_scale,
    )


@OUTPUTS
@CLS
@SPREAD
def test_outputs_and_attention_are_those_of_the_padded_model(n_outputs, cls_weight, spread):
    X = counts(0, 30, 12, 0.3)
    fitted = model(12, n_outputs, cls_weight, spread=spread)
    scores, values = torch.from_numpy(fitted.scores), torch.from_numpy(fitted.values)
    documents, (E, p, v) = PaddedDocuments.from_counts(X), embed(scores, values)
    cls = fitted.cls_weight, fitted.cls_score
    expected = reference.outputs(documents, E, p, v, *cls, torch.from_numpy(fitted.intercept))
    # Scores of thousands in a random basis carry rounding of 1e-12.
    close = {"rtol": 1e-10 if spread == 1.0 else 1e-8, "atol": 1e-10}
    for Z in (X, sp.csr_array(X), X.toarray()):
        assert_allclose(fitted.outputs(Z), expected, **close)
    on_positions, on_cls = reference.attention(documents, E, p, *cls)
    attention = np.zeros(X.shape)
    documents_of = np.repeat(np.arange(30), documents.tokens.shape[1])
    np.add.at(attention, (documents_of, documents.tokens.ravel()), on_positions.ravel())
    assert_allclose(fitted.attention(X).toarray(), attention, **close)
    shares = np.where(np.diff(X.indptr) == 0, 0.0, 1 - on_cls.numpy())
    assert_allclose(attention.sum(axis=1), shares, atol=1e-10)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    n_outputs=st.sampled_from([1, 2, 5]),
    cls_weight=st.sampled_from([0.0, 0.3, 50.0]),
    spread=st.sampled_from([0.0, 1.0, 30.0, 2000.0]),
    entry_scale=st.sampled_from([None, 1.5]),
    block=st.sampled_from([1, 20, 10**6]),
)
def test_contributions_and_intercept_are_the_outputs(
    seed, n_outputs, cls_weight, spread, entry_scale, block
):
    X = counts(seed, 8, 7)
    if seed % 2:
        X.data *= np.random.default_rng(seed).uniform(1e-3, 1e3, len(X.data))
    fitted = model(7, n_outputs, cls_weight, seed=seed, spread=spread, entry_scale=entry_scale)
    terms, attention = fitted.contributions(X), fitted.attention(X)
    assert (attention.data >= 0).all()
    assert attention.sum(axis=1).max() <= 1 + 1e-12
    sums = np.column_stack([np.asarray(term.sum(axis=1)).ravel() for term in terms])
    whole = [X.astype(np.int32), X.toarray().astype(np.uint8)] if not seed % 2 else []
    with patch.object(fitted_module, "BLOCK_ENTRIES", block):
        for Z in (X, X.toarray(), *whole):
            assert_allclose(fitted.outputs(Z), sums + fitted.intercept, rtol=1e-10, atol=1e-12)
    for term, values in zip(terms, fitted.values.T, strict=True):
        assert_array_equal(term.indices, X.indices)
        assert_array_equal(term.data, attention.data * values[X.indices])
    # Each is the caller's to keep: neither X nor another one is changed with it.
    before, last = X.toarray(), terms[-1].toarray()
    for array in (attention, *terms[:-1]):
        array.data[:], array.indices[:] = -1, 0
    assert_array_equal(X.toarray(), before)
    assert_array_equal(terms[-1].toarray(), last)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, SELECTION_TOLERANCE, 0.5]))
def test_selected_tokens_against_brute_force(seed, tolerance):
    rng, X = np.random.default_rng(seed), counts(seed, 8, 7)
    # Few distinct scores, so that documents have ties, some of them near misses.
    scores = rng.integers(-2, 3, 7) + rng.choice([0.0, 1e-9, 4e-7, 1e-3], 7)
    X.data[X.indices == 2] = seed % 2  # stored, but where it is 0 no token of its documents
    expected = []
    for i, row in enumerate(X.toarray()):
        present = np.flatnonzero(row > 0)
        best = scores[present].max(initial=-np.inf)
        expected += [(i, s) for s in present if scores[s] >= best - tolerance]
    documents, tokens = select_tokens(scores, X, tolerance)
    assert list(zip(documents, tokens, strict=True)) == expected
    counted = np.bincount(tokens, minlength=7)
    assert_array_equal(count_selected(scores, X, tolerance), counted)
    if tolerance == SELECTION_TOLERANCE:
        flags = replace(model(7), scores=scores).selected(X)
        assert flags.dtype == bool
        assert flags.shape == X.shape
        assert sorted(zip(*flags.nonzero(), strict=True)) == expected


@OUTPUTS
@CLS
@SPREAD
@pytest.mark.parametrize("entry_scale", [None, 1.5])
def test_the_most_probable_class_is_that_of_the_outputs(
    n_outputs, cls_weight, spread, entry_scale, monkeypatch
):
    """Also where outputs tie but for rounding, and where the masses of documents underflow."""
    monkeypatch.setattr(fitted_module, "BLOCK_ENTRIES", 50)
    X = counts(3, 60, 12, 0.3)
    given = model(12, n_outputs, cls_weight, spread=spread, entry_scale=entry_scale)
    # Every token's values have a mirror image: documents with both of a pair are ties.
    ties = replace(
        given,
        scores=np.tile(given.scores[:6], 2),
        values=np.vstack([given.values[:6], -given.values[:6]]),
        intercept=np.zeros(n_outputs),
    )
    paired = sp.csr_matrix(sp.hstack([X[:, :6], X[:, :6]]))
    large = replace(given, values=1.5e308 * np.sign(given.values))  # differences overflow
    pairs = [(given, X), (given, X.astype(np.int32)), (given, X * 1e290)]
    for fitted, Z in [*pairs, (ties, paired), (large, X)]:
        for W in (Z, Z.toarray()):
            outputs = fitted.outputs(W)
            best = outputs.argmax(axis=1) if n_outputs > 1 else outputs[:, 0] > 0
            assert_array_equal(fitted.most_probable(W), best)


@OUTPUTS
@pytest.mark.parametrize("entry", [0, 1, 2, 1022, 1023, 1024, 10**6, 2**62])
def test_counts_of_any_size_in_one_document(n_outputs, entry, monkeypatch):
    """Blocks before it are of ones, and of others that a table holds."""
    monkeypatch.setattr(fitted_module, "BLOCK_ENTRIES", 200)
    X = counts(3, 600, 12, 0.3).astype(np.int64)
    X.data[: len(X.data) // 2] = 1
    X.data[-400] = entry
    fitted = model(12, n_outputs, entry_scale=1.5)
    expected = fitted.outputs(X.astype(np.float64))
    assert_allclose(fitted.outputs(X), expected, rtol=1e-12)
    best = expected.argmax(axis=1) if n_outputs > 1 else expected[:, 0] > 0
    assert_array_equal(fitted.most_probable(X), best)


def test_predictions_follow_scores_and_cls_that_change_and_leave_nothing_behind():
    X, fitted = counts(1, 60, 12, 0.3), model(12)
    assert len(X.data) > 12  # not answered entry by entry
    key = id(fitted.scores)
    for change in (fitted.scores, -fitted.scores):
        fitted.outputs(X)
        fitted.scores[:] = 2.0 * change
        for changed in (fitted, replace(fitted, cls_weight=50.0)):
            fresh = replace(changed, scores=changed.scores.copy())
            assert_array_equal(changed.outputs(X), fresh.outputs(X))
            assert_array_equal(changed.most_probable(X), fresh.most_probable(X))
    assert key in fitted_module._kept_masses
    del fitted, changed, fresh, change
    assert key not in fitted_module._kept_masses


@OUTPUTS
@pytest.mark.parametrize("entry_scale", [None, 1e-3, 2.0])
@pytest.mark.parametrize("size", [1e308, 1e304, 1.0, 1e-250, 1e-300])
def test_entries_of_any_size_are_answered_alike_in_any_batch(n_outputs, entry_scale, size):
    cls_weight = 1.0 if size > 1e-200 else 0.0
    fitted = model(6, n_outputs, cls_weight, entry_scale=entry_scale)
    X = np.random.default_rng(0).uniform(0.1, 1.0, size=(7, 6)) * size
    X[:, 5] = 0
    alone = np.concatenate([fitted.outputs(sp.csr_array(row)) for row in X[:, None]])
    assert np.isfinite(alone).all()
    for together in (X, sp.csr_array(X)):
        assert_allclose(fitted.outputs(together), alone, rtol=1e-9)


def test_scores_too_far_apart_for_the_digits_of_a_float():
    scores, values = np.array([0.0, -742.0, 2.0]), np.array([[1.0], [2.0], [3.0]])
    fitted = FittedAttention(scores, values, np.zeros(1), 0.0, -np.inf)
    X = np.array([[5e-22, 9e300, 0.0]])
    expected = fitted.outputs(sp.csr_array(X))  # few entries: by logarithms
    assert 1.1 < expected[0, 0] < 1.9
    assert_allclose(fitted.outputs(X), expected, rtol=1e-12)
