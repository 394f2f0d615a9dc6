"""The practical form of one-step training: its gradient, its preconditioner and its minimum."""

from itertools import pairwise

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sklearn_clsattn.importance import class_totals, signed_frequency
from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.model.token_embeddings import ExplicitEmbeddings
from sklearn_clsattn.training.cls_regression import (
    ATTENTION_C_UNIT,
    REFRESH,
    ClsObjective,
    fit_cls_regression,
)
from sklearn_clsattn.training.joint import CLS_PENALTY, class_log_odds
from sklearn_clsattn.training.one_step import take_step

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
DIMENSIONS = pytest.mark.parametrize("dimension", [None, 6])
CLS = pytest.mark.parametrize("cls_weight", [0.0, 2.5])

SETTINGS = {"cls_weight": 2.5, "output_C": 1.0, "attention_C": 1.0}
TRAINING = {"max_iter": 2000, "tol": 1e-6}


def documents(n_classes, seed=0, n_documents=24):
    """Return counts with an empty document and an unseen token, labels and weights."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % n_classes
    means = np.full((n_documents, 9), 0.5)
    means[np.arange(n_documents), y] = 1.5
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return sp.csr_matrix(X), y, rng.uniform(0.5, 2.0, n_documents)


def arguments(X, y, weights, dimension=None, dtype=np.float64, seed=0):
    """Return the first arguments of the objective, and the intercept that training starts at."""
    n_classes = int(y.max()) + 1
    totals = np.bincount(y, weights)
    shares = class_totals(X, y, n_classes, weights, kind="shares")
    bag, targets = TokenBag(X, dtype=dtype), encode_targets(y, n_classes)
    omega = torch.from_numpy(np.asarray(weights, dtype=float))
    importance = signed_frequency(shares, totals)
    frozen = take_step(
        bag, targets, omega, importance, step_size=None, embedding_dim=dimension, seed=seed
    )
    presence = class_totals(X, y, n_classes, weights, kind="presence").sum(axis=0)
    return (bag, targets, omega, frozen, presence / totals.sum()), class_log_odds(totals)


def objective_of(X, y, weights, dimension=None, *, dtype=np.float64, **settings):
    first, intercept = arguments(X, y, weights, dimension, dtype)
    settings = {**SETTINGS, **settings}
    objective = ClsObjective(
        *first,
        cls_weight=settings["cls_weight"],
        output_C=settings["output_C"],
        cls_C=settings["attention_C"] * ATTENTION_C_UNIT,
    )
    return objective, objective.start(torch.from_numpy(intercept).to(first[0].dtype))


def fit(X, y, weights, dimension=None, *, dtype=np.float64, on_step=None, seed=0, **settings):
    first, intercept = arguments(X, y, weights, dimension, dtype, seed)
    return fit_cls_regression(
        *first, intercept, on_step=on_step, **{**SETTINGS, **TRAINING, **settings}
    )


def centred(outputs):
    """Return outputs less their mean where several classes share it: the loss ignores that."""
    return outputs - outputs.mean(axis=1, keepdims=True) if outputs.shape[1] > 1 else outputs


def somewhere(start, seed=0, scale=1.0):
    noise = np.random.default_rng(seed).normal(size=len(start))
    return start + scale * torch.from_numpy(noise).to(start.dtype)


@CLASSES
@DIMENSIONS
@CLS
def test_the_gradient_is_that_of_finite_differences(n_classes, dimension, cls_weight):
    X, y, weights = documents(n_classes)
    objective, start = objective_of(X, y, weights, dimension, cls_weight=cls_weight)
    for x in (start, somewhere(start, 0), somewhere(start, 1, 3.0)):
        _, gradient = objective(x)
        h = 1e-6
        for i, unit in enumerate(torch.eye(len(x), dtype=torch.float64)):
            difference = (objective(x + h * unit)[0] - objective(x - h * unit)[0]) / (2 * h)
            assert float(gradient[i]) == pytest.approx(difference, abs=2e-9)


@CLASSES
@DIMENSIONS
@CLS
def test_the_loss_is_that_of_padded_sequences(n_classes, dimension, cls_weight):
    """And the model that a point stands for has the outputs that the loss is of."""
    X, y, weights = documents(n_classes)
    objective, start = objective_of(
        X, y, weights, dimension, cls_weight=cls_weight, output_C=0.7, attention_C=0.03
    )
    x = somewhere(start)
    p, scales, last = objective.parts(x)
    frozen, total = objective.frozen, weights.sum()
    if isinstance(frozen.embeddings, ExplicitEmbeddings):
        E = frozen.embeddings.matrix
    else:
        shifts = frozen.embeddings.shifts
        E = torch.cat([torch.eye(len(shifts), dtype=torch.float64), shifts], dim=1)
    v = frozen.output_vectors * (scales / objective.unit)[:, None]
    decisions = reference.outputs(
        reference.PaddedDocuments.from_counts(X), E, p, v, cls_weight, float(last[0]), last[1:]
    )
    targets = encode_targets(y, n_classes)
    expected = reference.mean_loss(decisions, targets, torch.from_numpy(weights))
    expected += (p @ p) / (2 * total * 0.03 * ATTENTION_C_UNIT)
    expected += (scales @ scales) / (2 * total * 0.7) + CLS_PENALTY / 2 * last[0] ** 2
    assert objective(x)[0] == pytest.approx(float(expected), rel=1e-12)
    assert_allclose(objective.model(x).outputs(X), decisions, atol=1e-12)


@CLASSES
def test_the_start(n_classes):
    X, y, weights = documents(n_classes)
    for dimension in (None, 6):
        objective, start = objective_of(X, y, weights, dimension, cls_weight=0.0)
        p, scales, last = objective.parts(start)
        assert float(last[0]) == 0
        assert_allclose(last[1:], class_log_odds(np.bincount(y, weights)))
        outputs = objective.model(start).outputs(X) - last[1:].numpy()
        mean = np.average(outputs, axis=0, weights=weights)
        spread = np.sqrt(np.average((outputs - mean) ** 2, axis=0, weights=weights).mean())
        # 2, halved while the loss falls.
        halvings = int(np.round(np.log2(2 / spread)))
        assert spread == pytest.approx(2.0 ** (1 - halvings), rel=1e-12)
        assert len(set(scales.tolist())) == 1
        losses = [
            objective(torch.cat([p, 2.0**power * scales, last]))[0]
            for power in range(-1, 1 + halvings)
        ]
        assert losses[0] >= losses[1]
        assert losses[1:] == sorted(losses[1:])
        if dimension is not None:
            assert torch.equal(p, objective.frozen.cls_embedding)
            continue
        # Against frequency, and so that the mean mass of a document is what it was.
        scores = p[:9].numpy()
        assert not p[9:].any()
        present = (X.toarray() > 0).T @ weights / weights.sum()
        assert_allclose(np.ptp(scores + np.log(present + 0.01)), 0, atol=1e-13)
        mass = weights @ (X @ np.exp(scores))
        assert mass == pytest.approx(weights @ (X @ np.ones(9)), rel=1e-13)


@CLASSES
@DIMENSIONS
@CLS
def test_the_preconditioner(n_classes, dimension, cls_weight):
    """Symmetric and positive definite; in the limit, the inverse of the Gauss-Newton diagonal."""
    X, y, weights = documents(n_classes)
    objective, start = objective_of(X, y, weights, dimension, cls_weight=cls_weight)
    for x in (start, somewhere(start)):
        multiply = objective.preconditioner(x)
        matrix = torch.stack([multiply(e) for e in torch.eye(len(x), dtype=torch.float64)])
        assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12)
        assert float(torch.linalg.eigvalsh(matrix).min()) > 0
        expected = gauss_newton(objective, x, X, weights)
        inverse = torch.linalg.inv(matrix)
        if dimension is None:
            assert_allclose(inverse, torch.diag(torch.diag(inverse)), atol=1e-9)
            assert_allclose(torch.diag(inverse), np.diag(expected), rtol=1e-8)
            continue
        # Exact along the output vectors and by scales and intercepts, right on average else.
        v, d = objective.frozen.output_vectors, objective.dimension
        along = torch.diag(v @ inverse[:d, :d] @ v.T)
        by_p = torch.from_numpy(expected[:d, :d])
        assert_allclose(along, torch.diag(v @ by_p @ v.T), rtol=1e-9)
        assert_allclose(torch.diag(inverse)[d:], np.diag(expected)[d:], rtol=1e-9)


def gauss_newton(objective, x, X, weights):
    """Return J'HJ of the outputs with the diagonal of the loss's Hessian, plus the penalties."""
    p, scales, _ = objective.parts(x)
    padded = torch.from_numpy(X.toarray())

    def outputs(point):
        p, scales, last = objective.parts(point)
        logits = torch.log(padded) + objective.frozen.embeddings.scores(p)
        mass = torch.exp(logits).sum(dim=1) + objective.cls_weight * torch.exp(last[0])
        empty = (padded.sum(dim=1) == 0) & (objective.cls_weight == 0)
        attention = torch.exp(logits) / torch.where(empty, 1.0, mass)[:, None]
        return attention @ (objective.values * scales) + last[1:]

    jacobian = torch.autograd.functional.jacobian(outputs, x)  # (n, K, parameters)
    F = outputs(x)
    odds = torch.sigmoid(F) if F.shape[1] == 1 else torch.softmax(F, dim=1)
    curvature = odds * (1 - odds) * torch.from_numpy(weights / weights.sum())[:, None]
    rows = torch.einsum("nk,nki,nkj->ij", curvature, jacobian, jacobian).numpy()
    d, k = len(p), len(scales)
    diagonal = np.zeros(len(x))
    diagonal[:d], diagonal[d : d + k] = objective.cls_strength, objective.output_strength
    # The score of <cls> is preconditioned by its penalty alone.
    rows[d + k], rows[:, d + k] = 0.0, 0.0
    diagonal[d + k] = CLS_PENALTY
    return rows + np.diag(diagonal)


def test_the_preconditioner_is_right_on_average_over_random_embeddings():
    """Across the output vectors: the mean curvature in units of what it is taken for."""
    X, y, weights = documents(2)
    ratios = []
    for seed in range(20):
        first, intercept = arguments(X, y, weights, 30, seed=seed)
        objective = ClsObjective(*first, cls_weight=2.5, output_C=1.0, cls_C=1e6)
        x = objective.start(torch.from_numpy(intercept))
        by_p = torch.from_numpy(gauss_newton(objective, x, X, weights)[:30, :30])
        v = objective.frozen.output_vectors[0]
        mean = (torch.trace(by_p) - v @ by_p @ v) / 29
        across = torch.cat([torch.roll(v, 1), x.new_zeros(len(x) - 30)])
        across[:30] -= (v @ across[:30]) * v
        ratios.append(float(mean * (across @ objective.preconditioner(x)(across))))
        ratios[-1] /= float(across @ across)
    assert np.mean(ratios) == pytest.approx(1, abs=0.25)


def test_values_are_not_turned_round():
    """From too far out, the first step carried the scale past 0, never to come back."""
    X, y, weights = documents(2)
    for cls_weight in (0.0, 2.5):
        result = fit(X, y, weights, cls_weight=cls_weight)
        assert result.output_scales > 0
        assert result.loss_curve[-1] < 0.6


@CLASSES
def test_scales_of_zero_have_a_curvature(n_classes):
    X, y, weights = documents(n_classes)
    objective, start = objective_of(X, y, weights)
    p, _, last = objective.parts(start)
    scales = torch.zeros(objective.n_outputs, dtype=torch.float64)
    at_zero = objective.preconditioner(torch.cat([p, scales, last]))
    product = at_zero(torch.ones_like(start))
    assert bool(torch.isfinite(product).all())
    assert bool((product > 0).all())


@CLASSES
@DIMENSIONS
def test_it_ends_where_scipy_does(n_classes, dimension):
    X, y, weights = documents(n_classes, 3)
    result = fit(X, y, weights, dimension, tol=1e-11)
    assert result.status == "converged"
    objective, start = objective_of(X, y, weights, dimension)

    def function(x):
        value, gradient = objective(torch.from_numpy(x))
        return value, gradient.numpy()

    expected = minimize(
        function,
        start.numpy(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-8},
    )
    assert result.loss_curve[-1] == pytest.approx(expected.fun, abs=1e-9)
    model = objective.model(torch.from_numpy(expected.x))
    found, wanted = (centred(fitted.outputs(X)) for fitted in (result.fitted, model))
    assert_allclose(found, wanted, atol=1e-4)
    seen = np.asarray(X.sum(axis=0)).ravel() > 0
    assert_allclose(result.fitted.scores[seen], model.scores[seen], atol=1e-3)


@CLASSES
@DIMENSIONS
@CLS
def test_what_is_returned(n_classes, dimension, cls_weight):
    X, y, weights = documents(n_classes)
    result = fit(X, y, weights, dimension, cls_weight=cls_weight)
    assert result.status == "converged"
    assert result.gap <= 1e-6
    assert len(result.loss_curve) == result.n_iter + 1 > REFRESH / 4
    assert all(after <= before for before, after in pairwise(result.loss_curve))
    frozen = arguments(X, y, weights, dimension)[0][3]
    p = torch.from_numpy(result.cls_embedding)
    assert p.shape == (frozen.embeddings.dimension,)
    assert_allclose(frozen.embeddings.scores(p), result.fitted.scores, atol=1e-12)
    assert_allclose(frozen.values.numpy() * result.output_scales, result.fitted.values, atol=1e-12)
    assert result.fitted.cls_weight == cls_weight
    assert result.fitted.scores.dtype == result.cls_embedding.dtype == np.float64
    # It has learnt something.
    decisions = result.fitted.outputs(X)[:-1]
    found = decisions[:, 0] > 0 if n_classes == 2 else decisions.argmax(axis=1)
    assert (found == y[:-1]).mean() > 0.7


@CLASSES
def test_a_token_never_seen_keeps_no_score_of_its_own(n_classes):
    X, y, weights = documents(n_classes)
    result = fit(X, y, weights)
    assert abs(result.cls_embedding[8]) < 1e-2
    assert_allclose(result.fitted.values[8], 0, atol=1e-15)


@CLASSES
@DIMENSIONS
def test_weights_are_repetition(n_classes, dimension):
    X, y, _ = documents(n_classes)
    repeats = 1 + np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted = fit(X, y, repeats.astype(float), dimension)
    repeated = fit(X[rows], y[rows], np.ones(len(rows)), dimension)
    assert weighted.loss_curve[0] == pytest.approx(repeated.loss_curve[0], rel=1e-12)
    assert weighted.loss_curve[-1] == pytest.approx(repeated.loss_curve[-1], abs=1e-5)
    found, wanted = (centred(one.fitted.outputs(X)) for one in (weighted, repeated))
    assert_allclose(found, wanted, atol=0.05)


@DIMENSIONS
@CLS
def test_the_unit_of_counts_does_not_matter(dimension, cls_weight):
    """The weight of <cls>, the mean document weight, goes with it."""
    X, y, weights = documents(2)
    one = fit(X, y, weights, dimension, cls_weight=cls_weight)
    other = fit(8 * X, y, weights, dimension, cls_weight=8 * cls_weight)
    assert one.n_iter == other.n_iter
    assert_allclose(one.loss_curve, other.loss_curve, rtol=1e-12)
    assert_allclose(one.fitted.scores, other.fitted.scores, atol=1e-9)
    assert_allclose(one.fitted.values, other.fitted.values, atol=1e-9)
    assert_allclose(one.fitted.outputs(X), other.fitted.outputs(8 * X), atol=1e-9)


@CLASSES
def test_the_unit_of_values_does_not_matter(n_classes):
    """The penalty on the scales is in units of the spread of outputs, not of the step size.

    Scores are not free of it: the longer the step, the closer together it brings tokens.
    """
    X, y, weights = documents(n_classes)
    first, intercept = arguments(X, y, weights)
    frozen = first[3]
    objective = ClsObjective(*first, cls_weight=1.0, output_C=1.0, cls_C=1.0)
    larger = take_step(
        first[0],
        first[1],
        first[2],
        frozen.values.numpy()[:, 0] * 2 if n_classes == 2 else frozen.values.numpy().T,
        step_size=100.0,
        embedding_dim=None,
        seed=0,
    )
    other = ClsObjective(*first[:3], larger, first[4], cls_weight=1.0, output_C=1.0, cls_C=1.0)
    x = objective.start(torch.from_numpy(intercept))
    assert_allclose(other.start(torch.from_numpy(intercept)), x, rtol=1e-12)
    assert other(x)[0] == pytest.approx(objective(x)[0], rel=1e-12)
    assert_allclose(other.values, objective.values, rtol=1e-12)


@CLASSES
def test_ways_to_end(n_classes):
    X, y, weights = documents(n_classes)
    for max_iter in (1, REFRESH, REFRESH + 3):
        result = fit(X, y, weights, max_iter=max_iter, tol=1e-30)
        assert (result.status, result.n_iter) == ("max_iter", max_iter)
        assert len(result.loss_curve) == max_iter + 1
    result = fit(X[:8], y[:8], weights[:8], tol=0.0, max_iter=3000)
    assert result.status == "no_progress"
    assert result.n_iter < 3000
    assert len(result.loss_curve) == result.n_iter + 1
    result = fit(X, y, weights, tol=1e3)
    assert (result.status, result.n_iter, len(result.loss_curve)) == ("converged", 0, 1)


@DIMENSIONS
def test_progress(dimension):
    X, y, weights = documents(2)
    seen = []

    def on_step(progress):
        seen.append((progress.n_iter, progress.loss, progress.gap, progress.fitted()))
        return len(seen) == REFRESH + 5

    result = fit(X, y, weights, dimension, on_step=on_step, tol=1e-30)
    assert (result.status, result.n_iter) == ("stopped", REFRESH + 4)
    assert [step[0] for step in seen] == list(range(REFRESH + 5))
    assert [step[1] for step in seen] == result.loss_curve
    assert seen[-1][2] == result.gap
    assert_allclose(seen[-1][3].scores, result.fitted.scores)
    # Not one model seen many times.
    assert np.abs(seen[0][3].scores - seen[-1][3].scores).max() > 1e-3


@CLASSES
@DIMENSIONS
@CLS
def test_documents_that_are_all_alike(n_classes, dimension, cls_weight):
    """Outputs have no spread but rounding, which must not become a unit."""
    X = sp.csr_matrix(np.tile([[3.0, 1.0, 0.7]], (10, 1)))
    y = np.arange(10) % n_classes
    for x in (X, X[:, :1]):
        result = fit(x, y, np.ones(10), dimension, cls_weight=cls_weight, tol=1e-10)
        assert result.status == "converged"
        expected = class_log_odds(np.bincount(y).astype(float))
        decisions = result.fitted.outputs(x)
        expected = np.tile(expected, (10, 1))
        assert_allclose(centred(decisions), centred(expected), atol=1e-3)
        assert np.abs(result.output_scales).max() < 100


@CLASSES
def test_no_document_has_tokens(n_classes):
    X, y = sp.csr_matrix((9, 4)), np.arange(9) % n_classes
    for dimension in (None, 6):
        result = fit(X, y, np.ones(9), dimension, tol=1e-10)
        assert result.status == "converged"
        assert np.isfinite(result.fitted.scores).all()
        shares = np.bincount(y) / 9
        assert result.loss_curve[-1] == pytest.approx(-shares @ np.log(shares), abs=1e-9)


@CLASSES
@DIMENSIONS
def test_single_precision(n_classes, dimension):
    X, y, weights = documents(n_classes)
    single = fit(X, y, weights, dimension, dtype=np.float32, tol=1e-4)
    double = fit(X, y, weights, dimension, tol=1e-4)
    assert single.status == "converged"
    if dimension is None:  # with random embeddings, others were drawn
        assert_allclose(single.loss_curve[-1], double.loss_curve[-1], atol=2e-4)
        assert_allclose(single.fitted.outputs(X), double.fitted.outputs(X), atol=0.1)


def test_scores_far_apart_leave_the_preconditioner_finite():
    """A document whose tokens all score far below the others has no mass in single precision."""
    X, y, weights = documents(2)
    for dtype in (np.float32, np.float64):
        objective, start = objective_of(X, y, weights, dtype=dtype, cls_weight=0.0)
        x = start.clone()
        x[0] += 300.0
        product = objective.preconditioner(x)(torch.ones_like(x))
        assert bool(torch.isfinite(product).all())
        assert bool((product > 0).all())
