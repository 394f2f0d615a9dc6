"""The stable gradient by the scores, against autograd and against a thousand digits."""

import mpmath
import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.fitted import SELECTION_TOLERANCE, select_tokens
from sklearn_clsattn._core.objective import AttentionLoss, encode_targets
from sklearn_clsattn.paper._selective_gradient import SelectiveObjective

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def problem(n_classes, seed=0, X=None, *, n_documents=12):
    """Return counts (one document empty, one token unseen), targets, weights and values."""
    rng = np.random.default_rng(seed)
    X = reference.counts(seed, n_documents) if X is None else sp.csr_matrix(X, dtype=float)
    targets = encode_targets(np.arange(X.shape[0]) % n_classes, n_classes)
    weights = torch.from_numpy(rng.uniform(0.5, 2.0, X.shape[0]))
    n_outputs = 1 if n_classes == 2 else n_classes
    values = torch.from_numpy(rng.normal(size=(X.shape[1], n_outputs)))
    return X, targets, weights, values


def loss_of(X, targets, weights, values, dtype=np.float64):
    return AttentionLoss(TokenBag(X, dtype=dtype), targets, weights, values.shape[1])


def stable(X, targets, weights, values, scores, dtype=np.float64):
    return SelectiveObjective(loss_of(X, targets, weights, values, dtype), values)(scores)


def gradient_of(point):
    return point.by_score * np.exp(point.log_scale)


def padded(X, targets, weights, values, scores):
    """Return loss and gradient by the scores of padded sequences."""
    leaf = scores.clone().requires_grad_()
    embeddings, p, v = reference.embed(leaf, values)
    documents = reference.PaddedDocuments.from_counts(X)
    decisions = reference.outputs(documents, embeddings, p, v, 0.0, 0.0, 0.0)
    loss = reference.mean_loss(decisions, targets, weights)
    return float(loss.detach()), torch.autograd.grad(loss, leaf)[0]


def plain(X, targets, weights, values, scores):
    """Return loss and gradient by the scores of the form that training elsewhere uses."""
    loss = loss_of(X, targets, weights, values)
    matrix = loss.zeros()
    matrix[:-1, 0], matrix[:-1, 1:] = scores, values
    mean, gradient = loss.mean(matrix)
    return mean, gradient[:-1, 0]


def exact(X, targets, weights, values, scores):
    """Return the gradient by the scores in mpmath's precision: the plain formula, digit by digit.

    dL/da_s = sum_i omega_i / Omega sum_k dl_i/dF_ik q_is (b_sk - f_ik).
    """
    number = mpmath.mpf
    a = [number(x) for x in scores.tolist()]
    b = [[number(x) for x in row] for row in values.tolist()]
    omega = [number(x) for x in weights.tolist()]
    gradient = [number(0)] * len(a)
    for i, row in enumerate(X.toarray().tolist()):
        tokens = [s for s, count in enumerate(row) if count > 0]
        if not tokens:
            continue
        masses = [number(row[s]) * mpmath.exp(a[s]) for s in tokens]
        q = [mass / sum(masses) for mass in masses]
        outputs = range(len(b[0]))
        f = [sum(qs * b[s][k] for qs, s in zip(q, tokens, strict=True)) for k in outputs]
        if len(f) == 1:
            y = number(float(targets[i]))
            g = [-y / (1 + mpmath.exp(y * f[0]))]
        else:
            exponentials = [mpmath.exp(x) for x in f]
            g = [x / sum(exponentials) for x in exponentials]
            g[int(targets[i])] -= 1
        for qs, s in zip(q, tokens, strict=True):
            pull = sum(g[k] * (b[s][k] - f[k]) for k in outputs)
            gradient[s] += omega[i] * qs * pull / sum(omega)
    return gradient


def scaled(gradient, log_scale):
    """Return an exact gradient over exp(log_scale) in double precision."""
    factor = mpmath.exp(-mpmath.mpf(log_scale))
    return np.array([float(x * factor) for x in gradient])


@CLASSES
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_gradient_of_padded_sequences(n_classes, seed):
    """With weights, unequal lengths, repeated tokens, an empty document and an unseen token."""
    X, targets, weights, values = problem(n_classes, seed)
    assert X.max() > 1
    assert len(np.unique(np.diff(X.indptr))) > 3
    for scale in (0.0, 0.3, 2.0):
        scores = scale * torch.from_numpy(np.random.default_rng(seed).normal(size=X.shape[1]))
        point = stable(X, targets, weights, values, scores)
        loss, expected = padded(X, targets, weights, values, scores)
        assert point.loss == pytest.approx(loss, rel=1e-14)
        error = (gradient_of(point) - expected).abs().max() / expected.abs().max()
        assert float(error) < 1e-12
        assert float(gradient_of(point)[X.shape[1] // 2]) == 0


@CLASSES
def test_any_positive_weights(n_classes):
    X, targets, weights, values = problem(n_classes)
    X = X.multiply(0.37).tocsr()
    scores = torch.from_numpy(np.random.default_rng(3).normal(size=X.shape[1]))
    point = stable(X, targets, weights, values, scores)
    loss, expected = padded(X, targets, weights, values, scores)
    assert point.loss == pytest.approx(loss, rel=1e-14)
    assert_allclose(gradient_of(point), expected, atol=1e-14)


@CLASSES
@pytest.mark.parametrize("seed", range(3))
def test_at_a_score_scale_of_a_thousand(n_classes, seed):
    """Every token's derivative is right to its own length, however small beside the largest."""
    X, targets, weights, values = problem(n_classes, seed, n_documents=6)
    scores = 1000 * torch.from_numpy(np.random.default_rng(seed).normal(size=X.shape[1]))
    point = stable(X, targets, weights, values, scores)
    assert bool(torch.isfinite(point.by_score).all())
    assert float(point.by_score.abs().max()) > 0.1
    assert np.isfinite(point.log_scale)
    with mpmath.workdps(4000):
        expected = scaled(exact(X, targets, weights, values, scores), point.log_scale)
    assert_allclose(point.by_score, expected, rtol=1e-10, atol=1e-300)

    _, lost = plain(X, targets, weights, values, scores)
    assert float(lost.abs().max()) < 1e-15


@CLASSES
def test_where_the_plain_form_is_rounding(n_classes):
    """Every document has one token far ahead: its rivals weigh less than a rounding error."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(6), rng.poisson(1.0, (6, 8))])
    X, targets, weights, values = problem(n_classes, X=X)
    errors = {}
    for lead in (5.0, 45.0, 60.0):
        scores = torch.from_numpy(0.3 * rng.normal(size=14) + lead * (np.arange(14) < 6))
        point = stable(X, targets, weights, values, scores)
        with mpmath.workdps(200):
            truth = exact(X, targets, weights, values, scores)
            expected = scaled(truth, point.log_scale)
            leaders = scaled(truth, 0.0)[:6]
        assert_allclose(point.by_score, expected, rtol=1e-12, atol=1e-15)
        lost = plain(X, targets, weights, values, scores)[1].numpy()[:6]
        errors[lead] = np.linalg.norm(lost - leaders) / np.linalg.norm(leaders)
    assert errors[5.0] < 1e-9
    # The leaders' own gradient is either rounded to 0 or made of rounding, many times too large.
    assert errors[45.0] > 0.5
    assert errors[60.0] > 0.5


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0, 3), st.integers(2, 4))
def test_it_is_orthogonal_to_a_shift_of_all_scores(seed, log_scale, n_classes):
    X, targets, weights, values = problem(n_classes, seed)
    rng = np.random.default_rng(seed)
    scores = 10**log_scale * torch.from_numpy(rng.normal(size=X.shape[1]))
    point = stable(X, targets, weights, values, scores)
    assert abs(float(point.by_score.sum())) < 1e-12 * float(point.by_score.abs().sum())
    shifted = stable(X, targets, weights, values, scores + 2.0**12)
    assert_allclose(shifted.by_score, point.by_score, atol=1e-9)
    assert shifted.log_scale == pytest.approx(point.log_scale, abs=1e-9)


@CLASSES
def test_the_loss_is_the_objectives(n_classes):
    X, targets, weights, values = problem(n_classes)
    for scale in (0.0, 1.0, 1000.0):
        scores = scale * torch.from_numpy(np.random.default_rng(0).normal(size=X.shape[1]))
        point = stable(X, targets, weights, values, scores)
        loss, _ = plain(X, targets, weights, values, scores)
        assert point.loss == pytest.approx(loss, rel=1e-13)


@CLASSES
def test_the_selection_is_that_of_the_model(n_classes):
    X, targets, weights, values = problem(n_classes)
    ranks = np.random.default_rng(0).integers(-2, 3, X.shape[1])
    for step in (1.0, 0.1 * SELECTION_TOLERANCE):  # ties to the last bit, and for all tokens
        scores = torch.from_numpy(step * ranks)
        selective = SelectiveObjective(loss_of(X, targets, weights, values), values)
        point = selective(scores)
        documents, tokens = select_tokens(scores.numpy(), X, SELECTION_TOLERANCE)
        assert (len(tokens) == X.nnz) == (step < 1)
        assert_array_equal(selective.documents[point.selected], documents)
        assert_array_equal(selective.tokens[point.selected], tokens)
        attention = torch.softmax(torch.log(torch.from_numpy(X.toarray())) + scores, dim=1)
        for i in range(X.shape[0]):
            on_selected = float(attention[i, tokens[documents == i]].sum())
            expected = 0.0 if not X[[i]].nnz else np.log(on_selected)
            assert float(point.log_selected_attention[i]) == pytest.approx(expected, abs=1e-12)


@CLASSES
def test_ties(n_classes):
    """The leading token is the first of several: which one must not matter."""
    X, targets, weights, values = problem(n_classes, X=[[1, 1, 1, 0], [0, 2, 2, 1], [1, 0, 0, 1]])
    scores = torch.tensor([800.0, 800.0, 800.0, 100.0], dtype=torch.float64)
    point = stable(X, targets, weights, values, scores)
    with mpmath.workdps(1000):
        expected = scaled(exact(X, targets, weights, values, scores), point.log_scale)
    assert_allclose(point.by_score, expected, rtol=1e-11, atol=1e-300)
    assert point.selected.tolist() == [True] * 5 + [False] + [True, False]
    order = [2, 1, 0, 3]
    mirrored = stable(X[:, order], targets, weights, values[order], scores[order])
    assert_allclose(mirrored.by_score[order], point.by_score, rtol=1e-13, atol=1e-300)


def test_a_token_that_only_its_count_puts_ahead():
    """Attention weighs counts, selection does not (it is about scores alone)."""
    X, targets, weights, values = problem(2, X=[[100, 1]])
    scores = torch.tensor([0.0, 1.0], dtype=torch.float64)
    point = stable(X, targets, weights, values, scores)
    assert point.selected.tolist() == [False, True]
    assert float(point.log_selected_attention[0]) == pytest.approx(np.log(np.e / (100 + np.e)))
    _, expected = padded(X, targets, weights, values, scores)
    assert_allclose(gradient_of(point), expected, rtol=1e-12)


@CLASSES
def test_equal_values_have_no_gradient(n_classes):
    X, targets, weights, values = problem(n_classes)
    values = values[:1].repeat(len(values), 1)
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=X.shape[1]))
    point = stable(X, targets, weights, values, scores)
    assert point.log_scale == -np.inf
    assert not point.by_score.any()
    assert np.isfinite(point.loss)


@CLASSES
def test_documents_of_one_token_have_no_gradient(n_classes):
    X, targets, weights, values = problem(n_classes, X=np.eye(5) * [1, 2, 3, 4, 5])
    point = stable(X, targets, weights, values, torch.arange(5.0, dtype=torch.float64))
    assert point.log_scale == -np.inf
    assert not point.by_score.any()
    assert point.selected.all()
    assert not point.log_selected_attention.any()


@CLASSES
def test_no_document_has_tokens(n_classes):
    X, targets, weights, values = problem(n_classes, X=np.zeros((4, 3)))
    point = stable(X, targets, weights, values, torch.zeros(3, dtype=torch.float64))
    assert point.log_scale == -np.inf
    assert not point.by_score.any()
    assert point.loss == pytest.approx(np.log(n_classes))
    assert len(point.selected) == 0
    assert not point.log_selected_attention.any()


@CLASSES
def test_weights_are_repetition(n_classes):
    X, targets, _, values = problem(n_classes)
    repeats = np.arange(X.shape[0]) % 3
    rows = np.repeat(np.arange(X.shape[0]), repeats)
    scores = 50 * torch.from_numpy(np.random.default_rng(0).normal(size=X.shape[1]))
    weighted = stable(X, targets, torch.from_numpy(repeats).double(), values, scores)
    repeated = stable(X[rows], targets[rows], torch.ones(len(rows)).double(), values, scores)
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-13)
    # The largest term is one document's: its weight is in the scale, or in the sum.
    ratio = np.exp(weighted.log_scale - repeated.log_scale)
    assert_allclose(weighted.by_score * ratio, repeated.by_score, rtol=1e-11, atol=1e-300)


@CLASSES
def test_entries_stored_in_parts_and_stored_zeros(n_classes):
    X, targets, weights, values = problem(n_classes)
    rows, columns = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices
    parts = np.concatenate([0.25 * X.data, 0.75 * X.data, np.zeros(3)])
    order = np.argsort(np.concatenate([rows, rows, [0, 1, 2]]), kind="stable")
    stored = np.concatenate([columns, columns, [0, 1, 2]])[order]
    extra = np.bincount([0, 1, 2], minlength=X.shape[0])
    indptr = np.concatenate([[0], np.cumsum(2 * np.diff(X.indptr) + extra)])
    divided = sp.csr_matrix((parts[order], stored, indptr), shape=X.shape)
    assert (divided != X).nnz == 0
    divided = sp.csr_matrix((parts[order], stored, indptr), shape=X.shape)
    scores = 10 * torch.from_numpy(np.random.default_rng(0).normal(size=X.shape[1]))
    one, other = (stable(x, targets, weights, values, scores) for x in (X, divided))
    assert_allclose(gradient_of(other), gradient_of(one), rtol=1e-12, atol=1e-300)
    assert_allclose(other.log_selected_attention, one.log_selected_attention, atol=1e-12)


def test_single_precision_documents_are_summed_in_double():
    X, targets, weights, values = problem(2)
    scores = 40 * torch.from_numpy(np.random.default_rng(0).normal(size=X.shape[1]))
    one = stable(X, targets, weights, values, scores)
    other = stable(X, targets, weights, values, scores, np.float32)
    assert other.by_score.dtype == torch.float64
    assert_array_equal(other.by_score, one.by_score)
