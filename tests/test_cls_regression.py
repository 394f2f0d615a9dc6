"""The practical form of one-step training: its gradient, its preconditioner and its minimum."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import assert_gradient, centred, documents, scipy_minimum, weighted_and_repeated
from numpy.testing import assert_allclose

from sklearn_clsattn._core.attention_problem import CLS_PENALTY
from sklearn_clsattn._core.fitted import probabilities
from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn._core.problem import solve
from sklearn_clsattn._core.statistics import class_log_odds
from sklearn_clsattn.importance import class_totals, signed_frequency
from sklearn_clsattn.paper._cls_regression import (
    ATTENTION_C_UNIT,
    REFRESH,
    ClsProblem,
    fit_penalized_one_step,
)
from sklearn_clsattn.paper._step import take_step
from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 6])
CLS = pytest.mark.parametrize("cls_weight", [0.0, 2.5])
ATTEND = pytest.mark.parametrize("attend_cls", [True, False])

SETTINGS = {
    "step_size": None,
    "seed": 0,
    "C": 1.0,
    "attention_C": 1.0,
    "attend_cls": True,
    "max_iter": 2000,
    "tol": 1e-6,
}


def data(n_classes, seed=0, n_documents=24):
    """Return documents, one of them empty and one token unseen."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % n_classes
    means = np.full((n_documents, 9), 0.5)
    means[np.arange(n_documents), y] = 1.5
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return documents(sp.csr_matrix(X), y, rng.uniform(0.5, 2.0, n_documents))


def problem(
    d,
    dimension=None,
    *,
    step_size=None,
    cls_weight=2.5,
    C=1.0,
    cls_C=ATTENTION_C_UNIT,
    dtype=np.float64,
    seed=0,
):
    """Return the problem after a step on all documents, whatever their classes' weights."""
    bag, statistics = d.bag(dtype, "cpu"), d.statistics
    frozen = take_step(
        d.loss(bag),
        signed_frequency(statistics.shares, statistics.class_weights),
        step_size=step_size,
        embedding_dim=dimension,
        seed=seed,
    )
    presence = class_totals(d.X, d.codes, d.n_classes, d.weights, kind="presence").sum(axis=0)
    return ClsProblem(
        d.loss(bag, cls_weight=cls_weight),
        frozen,
        presence / statistics.total_weight,
        class_log_odds(statistics.class_weights),
        C=C,
        cls_C=cls_C,
    )


def fit(d, dimension=None, **settings):
    return fit_penalized_one_step(d, embedding_dim=dimension, **{**SETTINGS, **settings})


def somewhere(start, seed=0, scale=1.0):
    noise = np.random.default_rng(seed).normal(size=len(start))
    return start + scale * torch.from_numpy(noise).to(start.dtype)


@CLASSES
@DIMENSIONS
@CLS
def test_the_gradient_is_that_of_finite_differences(n_classes, dimension, cls_weight):
    made = problem(data(n_classes), dimension, cls_weight=cls_weight)
    for x in (made.start, somewhere(made.start, 0), somewhere(made.start, 1, 3.0)):
        assert_gradient(made, x)


@CLASSES
@DIMENSIONS
@CLS
def test_the_loss_is_that_of_padded_sequences(n_classes, dimension, cls_weight):
    """And the model that a point stands for has the outputs that the loss is of."""
    d = data(n_classes)
    made = problem(d, dimension, cls_weight=cls_weight, C=0.7, cls_C=3.0)
    x = somewhere(made.start)
    p, scales, last = made.map.parts(x)
    embeddings, total = made.frozen.embeddings, d.weights.sum()
    if isinstance(embeddings, ExplicitEmbeddings):
        E = embeddings.matrix
    else:
        E = torch.cat([torch.eye(9, dtype=torch.float64), embeddings.shifts], dim=1)
    v = made.frozen.output_vectors * (scales / made.unit)[:, None]
    decisions = reference.outputs(
        reference.PaddedDocuments.from_counts(d.X), E, p, v, cls_weight, float(last[0]), last[1:]
    )
    targets = encode_targets(d.codes, n_classes)
    expected = reference.mean_loss(decisions, targets, torch.from_numpy(d.weights))
    expected += (p @ p) / (2 * total * 3.0)
    expected += (scales @ scales) / (2 * total * 0.7) + CLS_PENALTY / 2 * last[0] ** 2
    assert made(x)[0] == pytest.approx(float(expected), rel=1e-12)
    model = made.model(x)
    assert_allclose(model.outputs(d.X), decisions, atol=1e-12)
    assert (model.embeddings is None) == (dimension is None)
    if dimension is not None:
        assert_allclose(model.embeddings.token_embeddings(), E, atol=1e-14)
        assert_allclose(model.embeddings.cls_embedding, p, atol=1e-14)
        assert_allclose(model.embeddings.output_vectors, v, atol=1e-14)


@CLASSES
@DIMENSIONS
def test_the_start(n_classes, dimension):
    d = data(n_classes)
    made = problem(d, dimension, cls_weight=0.0)
    p, scales, last = made.map.parts(made.start)
    assert float(last[0]) == 0
    assert_allclose(last[1:], class_log_odds(d.statistics.class_weights))
    outputs = made.model(made.start).outputs(d.X) - last[1:].numpy()
    mean = np.average(outputs, axis=0, weights=d.weights)
    spread = np.sqrt(np.average((outputs - mean) ** 2, axis=0, weights=d.weights).mean())
    # 2, halved while the loss falls.
    halvings = int(np.round(np.log2(2 / spread)))
    assert spread == pytest.approx(2.0 ** (1 - halvings), rel=1e-12)
    assert len(set(scales.tolist())) == 1
    losses = [
        made(torch.cat([p, 2.0**power * scales, last]))[0] for power in range(-1, 1 + halvings)
    ]
    assert losses[0] >= losses[1]
    assert losses[1:] == sorted(losses[1:])
    if dimension is not None:
        assert torch.equal(p, made.frozen.cls_embedding)
        return
    # Against frequency, and so that the mean mass of a document is what it was.
    scores = p[:9].numpy()
    assert not p[9:].any()
    present = (d.X.toarray() > 0).T @ d.weights / d.weights.sum()
    assert_allclose(np.ptp(scores + np.log(present + 0.01)), 0, atol=1e-13)
    mass = d.weights @ (d.X @ np.exp(scores))
    assert mass == pytest.approx(d.weights @ (d.X @ np.ones(9)), rel=1e-13)


@CLASSES
@DIMENSIONS
@CLS
def test_the_preconditioner(n_classes, dimension, cls_weight):
    """Symmetric and positive definite; in the limit, the inverse of the Gauss-Newton diagonal."""
    d = data(n_classes)
    made = problem(d, dimension, cls_weight=cls_weight)
    for x in (made.start, somewhere(made.start)):
        multiply = made.inverse_curvature(x)
        matrix = torch.stack([multiply(e) for e in torch.eye(len(x), dtype=torch.float64)])
        assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)
        assert float(torch.linalg.eigvalsh(matrix).min()) > 0
        expected = gauss_newton(made, x, d)
        inverse = torch.linalg.inv(matrix)
        if dimension is None:
            assert_allclose(inverse, torch.diag(torch.diag(inverse)), atol=1e-9)
            assert_allclose(torch.diag(inverse), np.diag(expected), rtol=1e-8)
            continue
        # Exact along the output vectors and by scales and intercepts, right on average else.
        v = made.frozen.output_vectors
        by_p = torch.from_numpy(expected[:dimension, :dimension])
        along = torch.diag(v @ inverse[:dimension, :dimension] @ v.T)
        assert_allclose(along, torch.diag(v @ by_p @ v.T), rtol=1e-9)
        others = slice(dimension, None)
        assert_allclose(torch.diag(inverse)[others], np.diag(expected)[others], rtol=1e-9)


def gauss_newton(made, x, d):
    """Return J'HJ of the outputs with the diagonal of the loss's Hessian, plus the penalties."""
    padded, cls_weight = torch.from_numpy(d.X.toarray()), made.loss.cls_weight

    def outputs(point):
        p, scales, last = made.map.parts(point)
        logits = torch.log(padded) + made.frozen.embeddings.scores(p)
        mass = torch.exp(logits).sum(dim=1) + cls_weight * torch.exp(last[0])
        empty = (padded.sum(dim=1) == 0) & (cls_weight == 0)
        attention = torch.exp(logits) / torch.where(empty, 1.0, mass)[:, None]
        return attention @ (made.map.values * scales) + last[1:]

    jacobian = torch.autograd.functional.jacobian(outputs, x)  # (n, K, parameters)
    F = outputs(x)
    odds = torch.sigmoid(F) if F.shape[1] == 1 else torch.softmax(F, dim=1)
    curvature = odds * (1 - odds) * torch.from_numpy(d.weights / d.weights.sum())[:, None]
    rows = torch.einsum("nk,nki,nkj->ij", curvature, jacobian, jacobian).numpy()
    # The score of <cls> is preconditioned by its penalty alone.
    p, scales, cls, _ = (block.index for block in made.blocks)
    rows[cls], rows[:, cls] = 0.0, 0.0
    diagonal = np.zeros(len(x))
    diagonal[p], diagonal[scales], diagonal[cls] = (block.penalty for block in made.blocks[:3])
    return rows + np.diag(diagonal)


def test_the_preconditioner_is_right_on_average_over_random_embeddings():
    """Across the output vectors: the mean curvature in units of what it is taken for."""
    d = data(2)
    ratios = []
    for seed in range(20):
        made = problem(d, 30, cls_C=1e6, seed=seed)
        x = made.start
        by_p = torch.from_numpy(gauss_newton(made, x, d)[:30, :30])
        v = made.frozen.output_vectors[0]
        mean = (torch.trace(by_p) - v @ by_p @ v) / 29
        across = torch.cat([torch.roll(v, 1), x.new_zeros(len(x) - 30)])
        across[:30] -= (v @ across[:30]) * v
        ratios.append(float(mean * (across @ made.inverse_curvature(x)(across))))
        ratios[-1] /= float(across @ across)
    assert np.mean(ratios) == pytest.approx(1, abs=0.25)


@CLS
def test_values_are_not_turned_round(cls_weight):
    """From too far out, the first step carried the scale past 0, never to come back."""
    made = problem(data(2), cls_weight=cls_weight)
    result = solve(made, max_iter=2000, tol=1e-6)
    assert (result.model.values * made.map.values.numpy()).sum() > 0
    assert result.loss_curve[-1] < 0.6


@CLASSES
def test_scales_of_zero_have_a_curvature(n_classes):
    made = problem(data(n_classes))
    p, scales, last = made.map.parts(made.start)
    at_zero = made.inverse_curvature(torch.cat([p, torch.zeros_like(scales), last]))
    product = at_zero(torch.ones_like(made.start))
    assert bool(torch.isfinite(product).all())
    assert bool((product > 0).all())


@CLASSES
@DIMENSIONS
def test_it_ends_where_scipy_does(n_classes, dimension):
    d = data(n_classes, 3)
    made = problem(d, dimension)
    result = solve(made, max_iter=2000, tol=1e-11)
    assert result.status == "converged"
    value, x = scipy_minimum(made)
    assert result.loss_curve[-1] == pytest.approx(value, abs=1e-9)
    model = made.model(x)
    found, wanted = (centred(one.outputs(d.X)) for one in (result.model, model))
    assert_allclose(found, wanted, atol=1e-4)
    seen = np.asarray(d.X.sum(axis=0)).ravel() > 0
    assert_allclose(result.model.scores[seen], model.scores[seen], atol=1e-3)


@CLASSES
@DIMENSIONS
@ATTEND
def test_what_is_returned(n_classes, dimension, attend_cls):
    d = data(n_classes)
    result = fit(d, dimension, attend_cls=attend_cls)
    assert result.status == "converged"
    assert result.attributes["optimality_gap_"] <= 1e-6
    assert result.attributes["step_size_"] > 0
    assert len(result.loss_curve) == result.n_iter + 1 > REFRESH / 4
    assert all(after <= before for before, after in pairwise(result.loss_curve))
    model = result.model
    assert model.cls_weight == (d.statistics.cls_weight if attend_cls else 0)
    assert model.scores.dtype == model.values.dtype == np.float64
    if dimension is None:
        assert model.embeddings is None
    else:
        E, p = model.embeddings.token_embeddings(), model.embeddings.cls_embedding
        assert p.shape == (dimension,)
        assert_allclose(E @ p, model.scores, atol=1e-12)
        assert_allclose(E @ model.embeddings.output_vectors.T, model.values, atol=1e-12)
    # It has learnt something.
    decisions = model.outputs(d.X)[:-1]
    found = decisions[:, 0] > 0 if n_classes == 2 else decisions.argmax(axis=1)
    assert (found == d.codes[:-1]).mean() > 0.7


@CLASSES
def test_the_step_gives_all_classes_the_same_weight(n_classes):
    d = data(n_classes)
    heavier = documents(d.X, d.codes, d.weights * np.where(d.codes == 1, 5.0, 1.0))
    for dimension in (None, 6):
        one, other = (fit(weighted, dimension) for weighted in (d, heavier))
        assert one.attributes["step_size_"] == pytest.approx(other.attributes["step_size_"])
        if dimension is not None:
            E, same = (fitted.model.embeddings.token_embeddings() for fitted in (one, other))
            assert_allclose(E, same, atol=1e-12)


@CLASSES
def test_a_token_never_seen_keeps_no_score_of_its_own(n_classes):
    model = fit(data(n_classes)).model
    assert abs(model.scores[8]) < 1e-2
    assert_allclose(model.values[8], 0, atol=1e-15)


@CLASSES
@DIMENSIONS
def test_weights_are_repetition(n_classes, dimension):
    d = data(n_classes)
    repeats = 1 + np.arange(len(d.codes)) % 3
    one, other = (fit(same, dimension) for same in weighted_and_repeated(d.X, d.codes, repeats))
    assert one.loss_curve[0] == pytest.approx(other.loss_curve[0], rel=1e-12)
    assert one.loss_curve[-1] == pytest.approx(other.loss_curve[-1], abs=1e-5)
    found, wanted = (centred(fitted.model.outputs(d.X)) for fitted in (one, other))
    assert_allclose(found, wanted, atol=0.05)


@DIMENSIONS
@ATTEND
def test_the_unit_of_counts_does_not_matter(dimension, attend_cls):
    """The weight of <cls>, the mean document weight, goes with it."""
    d = data(2)
    larger = documents(8 * d.X, d.codes, d.weights)
    one, other = (fit(same, dimension, attend_cls=attend_cls) for same in (d, larger))
    assert one.n_iter == other.n_iter
    assert_allclose(one.loss_curve, other.loss_curve, rtol=1e-12)
    assert_allclose(one.model.scores, other.model.scores, atol=1e-9)
    assert_allclose(one.model.values, other.model.values, atol=1e-9)
    assert_allclose(one.model.outputs(d.X), other.model.outputs(larger.X), atol=1e-9)


@CLASSES
def test_the_unit_of_values_does_not_matter(n_classes):
    """The penalty on the scales is in units of the spread of outputs, not of the step size.

    Scores are not free of it: the longer the step, the closer together it brings tokens.
    """
    one, other = (problem(data(n_classes), step_size=size, cls_C=1.0) for size in (None, 100.0))
    assert other.unit > 2 * one.unit
    assert_allclose(other.start, one.start, rtol=1e-12)
    assert other(one.start)[0] == pytest.approx(one(one.start)[0], rel=1e-12)
    assert_allclose(other.map.values, one.map.values, rtol=1e-12)


@CLASSES
def test_ways_to_end(n_classes):
    d = data(n_classes)
    for max_iter in (1, REFRESH, REFRESH + 3):
        result = fit(d, max_iter=max_iter, tol=1e-30)
        assert (result.status, result.n_iter) == ("max_iter", max_iter)
        assert len(result.loss_curve) == max_iter + 1
    few = documents(d.X[:8], d.codes[:8], d.weights[:8])
    result = fit(few, tol=0.0, max_iter=3000)
    assert result.status == "no_progress"
    assert result.n_iter < 3000
    assert len(result.loss_curve) == result.n_iter + 1
    result = fit(d, tol=1e3)
    assert (result.status, result.n_iter, len(result.loss_curve)) == ("converged", 0, 1)


@DIMENSIONS
def test_progress(dimension):
    seen = []

    def callback(progress):
        seen.append((progress.n_iter, progress.loss, progress.criterion, progress.model()))
        return len(seen) == REFRESH + 5

    result = fit(data(2), dimension, callback=callback, tol=1e-30)
    assert (result.status, result.n_iter) == ("stopped", REFRESH + 4)
    assert [step[0] for step in seen] == list(range(REFRESH + 5))
    assert [step[1] for step in seen] == result.loss_curve
    assert seen[-1][2] == result.attributes["optimality_gap_"]
    assert_allclose(seen[-1][3].scores, result.model.scores)
    # Not one model seen many times.
    assert np.abs(seen[0][3].scores - seen[-1][3].scores).max() > 1e-3


@CLASSES
@DIMENSIONS
@CLS
def test_documents_that_are_all_alike(n_classes, dimension, cls_weight):
    """Outputs have no spread but rounding, which must not become a unit."""
    X = sp.csr_matrix(np.tile([[3.0, 1.0, 0.7]], (10, 1)))
    codes = np.arange(10) % n_classes
    expected = np.tile(class_log_odds(np.bincount(codes).astype(float)), (10, 1))
    for x in (X, X[:, :1]):
        made = problem(documents(x, codes), dimension, cls_weight=cls_weight)
        result = solve(made, max_iter=2000, tol=1e-10)
        assert result.status == "converged"
        assert_allclose(centred(result.model.outputs(x)), centred(expected), atol=1e-3)
        assert made.unit == 1
        assert float(made.map.parts(made.start)[1].abs().max()) <= 2
        if dimension is not None:  # the v_k have length 1 before they are scaled
            assert np.abs(result.model.embeddings.output_vectors).max() < 100


@CLASSES
@DIMENSIONS
def test_no_document_has_tokens(n_classes, dimension):
    d = documents(sp.csr_matrix((9, 4)), np.arange(9) % n_classes)
    result = fit(d, dimension, tol=1e-10)
    assert result.status == "converged"
    assert np.isfinite(result.model.scores).all()
    shares = np.bincount(d.codes) / 9
    assert result.loss_curve[-1] == pytest.approx(-shares @ np.log(shares), abs=1e-9)


@CLASSES
@DIMENSIONS
def test_single_precision(n_classes, dimension):
    d = data(n_classes)
    single, double = (fit(d, dimension, dtype=t, tol=1e-4) for t in (np.float32, np.float64))
    assert single.status == "converged"
    if dimension is None:  # with random embeddings, others were drawn
        assert_allclose(single.loss_curve[-1], double.loss_curve[-1], atol=2e-4)
        # Of outputs far from 0, where the loss is flat, a gap of 1e-4 does not tell much.
        one, other = (np.squeeze(found.model.outputs(d.X)) for found in (single, double))
        assert_allclose(probabilities(one), probabilities(other), atol=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_far_apart_leave_the_preconditioner_finite(dtype):
    """A document whose tokens all score far below the others has no mass in single precision."""
    made = problem(data(2), dtype=dtype, cls_weight=0.0)
    x = made.start.clone()
    x[0] += 300.0
    product = made.inverse_curvature(x)(torch.ones_like(x))
    assert bool(torch.isfinite(product).all())
    assert bool((product > 0).all())
