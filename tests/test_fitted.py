"""A fitted model's outputs, attention, contributions and selected tokens."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import PaddedDocuments, counts, embed
from reference import attention as reference_attention
from reference import outputs as reference_outputs

from sklearn_clsattn._core import fitted as fitted_module
from sklearn_clsattn._core.fitted import (
    SELECTION_TOLERANCE,
    FittedAttention,
    count_selected,
    select_tokens,
)

OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 3])
CLS = pytest.mark.parametrize("cls_weight", [1.7, 0.0], ids=["cls", "no cls"])


def model(n_tokens, n_outputs=1, cls_weight=1.7, *, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    return FittedAttention(
        scores=spread * rng.normal(size=n_tokens),
        values=rng.normal(size=(n_tokens, n_outputs)),
        intercept=rng.normal(size=n_outputs),
        cls_weight=cls_weight,
        cls_score=float(rng.normal()) if cls_weight else -np.inf,
    )


def in_reference(fitted, X):
    """Return documents, embeddings, p and v of the slow model, in a random basis."""
    scores, values = torch.from_numpy(fitted.scores), torch.from_numpy(fitted.values)
    return PaddedDocuments.from_counts(X), *embed(scores, values)


@OUTPUTS
@CLS
@pytest.mark.parametrize("spread", [1.0, 2000.0])
def test_outputs_are_those_of_the_padded_model(n_outputs, cls_weight, spread):
    """At a spread of 2000 whole documents underflow against the largest score."""
    X = counts(0, 30, 12, 0.3)
    fitted = model(12, n_outputs, cls_weight, spread=spread)
    documents, E, p, v = in_reference(fitted, X)
    cls = fitted.cls_weight, fitted.cls_score
    expected = reference_outputs(documents, E, p, v, *cls, torch.from_numpy(fitted.intercept))
    # Scores of thousands in a random basis carry rounding of 1e-12.
    rtol = 1e-10 if spread == 1.0 else 1e-8
    for Z in (X, sp.csr_array(X), X.toarray()):
        assert_allclose(fitted.outputs(Z), expected, rtol=rtol, atol=1e-10)

    on_positions, on_cls = reference_attention(documents, E, p, *cls)
    result = fitted.attention(X)
    tokens = documents.tokens
    for token in range(12):
        of_token = torch.where(tokens == token, on_positions, 0.0).sum(dim=1)
        assert_allclose(result.toarray()[:, token], of_token, rtol=rtol, atol=1e-10)
    empty = np.diff(X.indptr) == 0
    share = np.asarray(result.sum(axis=1)).ravel()
    assert_allclose(share, np.where(empty, 0.0, 1 - on_cls.numpy()), atol=1e-10)


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([0.0, 0.3, 50.0]),
    st.sampled_from([0.0, 1.0, 30.0, 2000.0]),
)
def test_contributions_and_intercept_are_the_outputs(seed, n_outputs, cls_weight, spread):
    X = counts(seed, 8, 7)
    X.data *= np.random.default_rng(seed).uniform(1e-3, 1e3, len(X.data))
    fitted = model(7, n_outputs, cls_weight, seed=seed, spread=spread)
    terms = fitted.contributions(X)
    assert len(terms) == n_outputs
    sums = np.column_stack([np.asarray(term.sum(axis=1)).ravel() for term in terms])
    assert_allclose(sums + fitted.intercept, fitted.outputs(X), rtol=1e-10, atol=1e-12)
    for term in terms:
        assert isinstance(term, sp.csr_array)
        assert_array_equal(term.indices, X.indices)
        assert_array_equal(term.indptr, X.indptr)
    attention = fitted.attention(X)
    assert (attention.data >= 0).all()
    assert attention.sum(axis=1).max() <= 1 + 1e-12
    for term, values in zip(terms, fitted.values.T, strict=True):
        assert_array_equal(term.data, attention.data * values[X.indices])


@CLS
def test_attention_and_contributions_are_the_callers_to_keep(cls_weight):
    X = counts(1)
    fitted = model(X.shape[1], 3, cls_weight)
    before = [a.tobytes() for a in (X.data, X.indices, X.indptr)]
    first, second, third = fitted.contributions(X)
    kept = second.toarray()
    for array in (fitted.attention(X), first, third):
        array.data[:] = -1
        array.indices[:] = 0
    assert_array_equal(second.toarray(), kept)
    assert [a.tobytes() for a in (X.data, X.indices, X.indptr)] == before


@OUTPUTS
@CLS
def test_empty_documents(n_outputs, cls_weight):
    fitted = model(4, n_outputs, cls_weight)
    stored_zeros = sp.csr_matrix(
        (np.zeros(3), np.array([0, 2, 3]), np.array([0, 2, 3, 3])), shape=(3, 4)
    )
    for X in (sp.csr_matrix((3, 4)), stored_zeros):
        assert_array_equal(fitted.outputs(X), np.tile(fitted.intercept, (3, 1)))
        assert_array_equal(fitted.attention(X).toarray(), np.zeros((3, 4)))
        assert fitted.selected(X).nnz == 0
        assert [term.toarray().any() for term in fitted.contributions(X)] == [False] * n_outputs
    assert fitted.outputs(sp.csr_matrix((0, 4))).shape == (0, n_outputs)
    assert fitted.attention(sp.csr_matrix((0, 4))).shape == (0, 4)


@CLS
def test_adding_a_document_changes_no_other(cls_weight):
    X = counts(2, 10, 6)
    fitted = model(6, 1, cls_weight, spread=300.0)
    whole = fitted.outputs(X)
    for i in range(10):
        assert_allclose(fitted.outputs(X[i : i + 1]), whole[i : i + 1], rtol=1e-12)


@OUTPUTS
def test_explicit_zeros_and_unsorted_indices(n_outputs):
    X = counts(3, 10, 6)
    rng = np.random.default_rng(0)
    data, indices, indptr = [], [], [0]
    for row in X.toarray():
        order = rng.permutation(6)  # all six stored, zeros too, in any order
        data += list(row[order])
        indices += list(order)
        indptr.append(len(data))
    messy = sp.csr_matrix((np.array(data), np.array(indices), np.array(indptr)), shape=X.shape)
    assert not messy.has_sorted_indices
    kept = messy.indices.copy()
    for spread in (1.0, 2000.0):
        fitted = model(6, n_outputs, spread=spread)
        assert_allclose(fitted.outputs(messy), fitted.outputs(X), rtol=1e-12)
        pairs = [
            (fitted.attention(messy), fitted.attention(X)),
            (fitted.selected(messy), fitted.selected(X)),
            *zip(fitted.contributions(messy), fitted.contributions(X), strict=True),
        ]
        for result, expected in pairs:
            assert_allclose(result.toarray(), expected.toarray(), rtol=1e-12)
    assert_array_equal(messy.indices, kept)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from([0.0, SELECTION_TOLERANCE, 0.5]))
def test_selected_tokens_against_brute_force(seed, tolerance):
    rng = np.random.default_rng(seed)
    X = counts(seed, 8, 7)
    # Few distinct scores, so that documents have ties, some of them near misses.
    scores = rng.integers(-2, 3, 7) + rng.choice([0.0, 1e-9, 4e-7, 1e-3], 7)
    expected = []
    for i, row in enumerate(X.toarray()):
        present = np.flatnonzero(row > 0)
        best = scores[present].max(initial=-np.inf)
        expected += [(i, s) for s in present if scores[s] >= best - tolerance]
    documents, tokens = select_tokens(scores, X, tolerance)
    assert list(zip(documents, tokens, strict=True)) == expected
    counted = np.bincount(tokens, minlength=7)
    assert_array_equal(count_selected(scores, X, tolerance), counted)
    X.data[X.indices == 3] = 0  # stored, but no token of its documents
    without = select_tokens(scores, X, tolerance)[1]
    assert_array_equal(count_selected(scores, X, tolerance), np.bincount(without, minlength=7))
    X.data[X.indices == 3] = 1
    if tolerance != SELECTION_TOLERANCE:
        return
    flags = FittedAttention(scores, np.zeros((7, 1)), np.zeros(1), 0.0, -np.inf).selected(X)
    assert flags.dtype == bool
    assert flags.shape == X.shape
    assert sorted(zip(*flags.nonzero(), strict=True)) == expected


@OUTPUTS
@pytest.mark.parametrize("spread", [1.0, 2000.0])
@pytest.mark.parametrize("block", [1, 20, 10**6])
def test_outputs_of_damped_counts_are_sums_of_contributions(n_outputs, spread, block, monkeypatch):
    """At a spread of 2000 whole documents underflow; blocks may be single rows."""
    monkeypatch.setattr(fitted_module, "BLOCK_ENTRIES", block)
    X = counts(3, 30, 12, 0.3)
    fitted = replace(model(12, n_outputs, spread=spread), entry_scale=1.5)
    terms = [np.asarray(term.sum(axis=1)).ravel() for term in fitted.contributions(X)]
    expected = np.column_stack(terms) + fitted.intercept
    for Z in (X, X.astype(np.int32), X.toarray()):
        assert_allclose(fitted.outputs(Z), expected, rtol=1e-10, atol=1e-10)


@OUTPUTS
@pytest.mark.parametrize("cls_weight", [0.0, 1.7])
@pytest.mark.parametrize("spread", [1.0, 2000.0])
@pytest.mark.parametrize("entry_scale", [None, 1.5])
@pytest.mark.parametrize("block", [1, 10**6])
def test_the_most_probable_class_is_that_of_the_outputs(
    n_outputs, cls_weight, spread, entry_scale, block, monkeypatch
):
    """Also where outputs tie but for rounding, and where the masses of documents underflow."""
    monkeypatch.setattr(fitted_module, "BLOCK_ENTRIES", block)
    X = counts(3, 60, 12, 0.3)
    given = replace(model(12, n_outputs, cls_weight, spread=spread), entry_scale=entry_scale)
    # Every token's values have a mirror image: documents with both of a pair are ties.
    halves = [given.values[:6], -given.values[:6]]
    ties = replace(
        given,
        scores=np.tile(given.scores[:6], 2),
        values=np.vstack(halves),
        intercept=np.zeros(n_outputs),
    )
    paired = sp.csr_matrix(sp.hstack([X[:, :6], X[:, :6]]))
    large = replace(given, values=1.5e308 * np.sign(given.values))  # differences overflow
    pairs = [
        (given, X),
        (given, X.astype(np.int32)),
        (given, X * 1e290),
        (ties, paired),
        (large, X),
    ]
    for fitted, Z in pairs:
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
    fitted = replace(model(12, n_outputs), entry_scale=1.5)
    expected = fitted.outputs(X.astype(np.float64))
    assert_allclose(fitted.outputs(X), expected, rtol=1e-12)
    best = expected.argmax(axis=1) if n_outputs > 1 else expected[:, 0] > 0
    assert_array_equal(fitted.most_probable(X), best)


def test_predictions_follow_scores_and_cls_that_change_and_leave_nothing_behind():
    X = counts(1, 60, 12, 0.3)
    fitted = model(12)
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


def test_ties_within_the_stated_tolerance():
    just_below, below = 1.0 - 0.5 * SELECTION_TOLERANCE, 1.0 - 2 * SELECTION_TOLERANCE
    fitted = FittedAttention(
        np.array([1.0, just_below, below]), np.zeros((3, 1)), np.zeros(1), 5.0, 9.0
    )
    X = sp.csr_matrix(np.array([[1, 1, 1], [0, 3, 1], [0, 0, 2]]))
    assert_array_equal(fitted.selected(X).toarray(), [[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    fitted.scores[2] = just_below - 0.75 * SELECTION_TOLERANCE
    # Ties are with the document's highest, so they do not chain.
    assert_array_equal(fitted.selected(X).toarray(), [[1, 1, 0], [0, 1, 1], [0, 0, 1]])


def test_a_token_without_value_still_draws_attention():
    fitted = FittedAttention(np.zeros(2), np.array([[2.0], [0.0]]), np.zeros(1), 1.0, 0.0)
    X = np.array([[1.0, 0.0], [1.0, 2.0]])
    assert_allclose(fitted.outputs(X)[:, 0], [1.0, 0.5])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("entry_scale", [None, 1e-3, 2.0])
@pytest.mark.parametrize("size", [1e308, 1e304, 1.0, 1e-250, 1e-300])
def test_entries_of_any_size_are_answered_alike_in_any_batch(n_classes, entry_scale, size):
    rng = np.random.default_rng(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    fitted = FittedAttention(
        scores=rng.normal(size=6),
        values=rng.normal(size=(6, n_outputs)),
        intercept=rng.normal(size=n_outputs),
        cls_weight=1.0,
        cls_score=0.0 if size > 1e-200 else -np.inf,
        entry_scale=entry_scale,
    )
    X = rng.uniform(0.1, 1.0, size=(7, 6)) * size
    alone = np.concatenate(
        [fitted.outputs(sp.csr_array(row * (np.arange(6) < 5))) for row in X[:, None]]
    )
    X[:, 5] = 0
    together = fitted.outputs(sp.csr_array(X))
    assert np.isfinite(alone).all()
    assert_allclose(together, alone, rtol=1e-9)
    assert_allclose(fitted.outputs(X), alone, rtol=1e-9)


def test_scores_too_far_apart_for_the_digits_of_a_float():
    fitted = FittedAttention(
        scores=np.array([0.0, -742.0, 2.0]),
        values=np.array([[1.0], [2.0], [3.0]]),
        intercept=np.zeros(1),
        cls_weight=0.0,
        cls_score=-np.inf,
    )
    X = np.array([[5e-22, 9e300, 0.0]])
    expected = fitted.outputs(sp.csr_array(X))  # few entries: by logarithms
    assert 1.1 < expected[0, 0] < 1.9
    assert_allclose(fitted.outputs(X), expected, rtol=1e-12)
