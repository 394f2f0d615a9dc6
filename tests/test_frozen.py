"""Training with frozen random embeddings: its gradient, its optimum, and its limit."""

import numpy as np
import pytest
import scipy.optimize
import torch
from numpy.testing import assert_allclose, assert_array_equal
from reference import PaddedDocuments, counts, mean_loss, outputs

from sklearn_clsattn.importance import class_totals
from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.gradient_step import draw_embeddings
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.training.frozen import FrozenObjective, fit_frozen
from sklearn_clsattn.training.joint import CLS_PENALTY, fit_joint, joint_problem
from sklearn_clsattn.training.scaling import token_scaling

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
CLS = pytest.mark.parametrize("attend_cls", [True, False])


def data(n_classes, seed=0, n_documents=40, n_tokens=10):
    X = counts(seed, n_documents, n_tokens)
    codes = np.arange(n_documents) % n_classes
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return X, codes, weights


def arguments(X, codes, weights, attend_cls=True, scaling=None):
    """Return what the fits of joint training and of this one have in common."""
    n_classes = int(codes.max()) + 1
    class_weights = np.bincount(codes, weights)
    units = token_scaling(
        class_totals(X, codes, n_classes, weights, kind="shares"),
        class_weights,
        float(np.average(X @ np.ones(X.shape[1]), weights=weights)),
        1.0,
        scaling=scaling,
        attend_cls=attend_cls,
    )
    return TokenBag(X), codes, weights, class_weights, units


def fit(X, codes, weights, dimension=6, attend_cls=True, **settings):
    return fit_frozen(
        *arguments(X, codes, weights, attend_cls),
        embedding_dim=dimension,
        **{
            "seed": 0,
            "value_C": 1.0,
            "attention_C": 0.3,
            "max_iter": 500,
            "tol": 1e-6,
            **settings,
        },
    )


def decisions(fitted, X):
    """Return the outputs; of several, a constant on all says nothing and is left out."""
    F = fitted.outputs(X)
    return F - F.mean(axis=1, keepdims=True) if F.shape[1] > 1 else F


def frozen_objective(n_classes, attend_cls, dimension, seed=0):
    X, codes, weights = data(n_classes, seed)
    problem = joint_problem(*arguments(X, codes, weights, attend_cls), value_C=1.0, attention_C=0.3)
    drawn = draw_embeddings(X.shape[1], 1 if n_classes == 2 else n_classes, dimension, seed=seed)
    return FrozenObjective(problem.objective, drawn.embeddings), problem


@CLASSES
@CLS
@pytest.mark.parametrize("dimension", [4, 25])
def test_the_gradient_is_that_of_finite_differences(n_classes, attend_cls, dimension):
    objective, problem = frozen_objective(n_classes, attend_cls, dimension)
    shape = objective.parameters_at(problem.start[-1]).shape
    generator = torch.Generator().manual_seed(3)
    point = torch.randn(shape, generator=generator, dtype=torch.float64)
    _, gradient = objective(point)
    for _ in range(10):
        direction = torch.randn(shape, generator=generator, dtype=torch.float64)
        step = 1e-5 * direction
        slope = (objective(point + step)[0] - objective(point - step)[0]) / 2e-5
        assert slope == pytest.approx(float((gradient * direction).sum()), rel=1e-6, abs=1e-8)


@CLASSES
@CLS
def test_the_loss_is_that_of_padded_sequences_and_penalised_vectors(n_classes, attend_cls):
    X, codes, weights = data(n_classes)
    result = fit(X, codes, weights, attend_cls=attend_cls)
    _, problem = frozen_objective(n_classes, attend_cls, 6)
    units = problem.objective.units
    drawn = draw_embeddings(X.shape[1], result.fitted.values.shape[1], 6, seed=0)
    p, v = torch.from_numpy(result.cls_embedding), torch.from_numpy(result.output_vectors)
    cls_score = result.fitted.cls_score if attend_cls else 0.0
    of_documents = outputs(
        PaddedDocuments.from_counts(X),
        drawn.embeddings,
        p,
        v,
        units.cls_weight,
        cls_score,
        torch.from_numpy(result.fitted.intercept),
    )
    loss = mean_loss(of_documents, encode_targets(codes, n_classes), torch.from_numpy(weights))
    w = v / units.value_scales[0][:, None]
    loss += problem.objective.score_penalty / 2 * p.square().sum()
    loss += problem.objective.value_penalty / 2 * w.square().sum()
    loss += CLS_PENALTY / 2 * cls_score**2
    assert result.loss_curve[-1] == pytest.approx(float(loss), rel=1e-10)


@CLASSES
@CLS
def test_it_finds_what_scipy_finds(n_classes, attend_cls):
    X, codes, weights = data(n_classes)
    result = fit(X, codes, weights, attend_cls=attend_cls, tol=1e-11, max_iter=2000)
    assert result.status in ("converged", "no_progress")
    objective, problem = frozen_objective(n_classes, attend_cls, 6)
    start = objective.parameters_at(problem.start[-1])

    def function(x):
        value, gradient = objective(torch.from_numpy(x).reshape(start.shape))
        return value, gradient.reshape(-1).numpy()

    expected = scipy.optimize.minimize(
        function,
        start.reshape(-1).numpy(),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    assert result.loss_curve[-1] == pytest.approx(expected.fun, abs=1e-9)
    model = objective.model(torch.from_numpy(expected.x).reshape(start.shape))
    assert_allclose(decisions(result.fitted, X), decisions(model, X), atol=1e-4)


@CLASSES
@CLS
def test_many_dimensions_tend_to_joint_training(n_classes, attend_cls):
    """E E^T tends to the identity like d^(-1/2), and with it the fit to joint training's."""
    X, codes, weights = data(n_classes)
    settings = {"value_C": 1.0, "attention_C": 0.3, "max_iter": 2000, "tol": 1e-9}
    joint = fit_joint(*arguments(X, codes, weights, attend_cls), **settings)
    expected = decisions(joint.fitted, X)
    distances = []
    for dimension in (64, 512, 4096):
        errors = [
            decisions(fit(X, codes, weights, dimension, attend_cls, **precise).fitted, X) - expected
            for precise in ({"seed": seed, "tol": 1e-9, "max_iter": 2000} for seed in range(3))
        ]
        distances.append(np.sqrt(np.mean(np.square(errors))))
    slopes = np.diff(np.log(distances)) / np.log(8)
    assert_allclose(slopes, -0.5, atol=0.25)
    assert distances[-1] < 0.06 * np.std(expected)


def test_a_fit_says_what_it_did():
    X, codes, weights = data(3)
    reports = []
    result = fit(X, codes, weights, on_step=lambda progress: reports.append(progress))
    assert result.status == "converged"
    assert result.gap <= 1e-6
    assert len(result.loss_curve) == result.n_iter + 1
    assert (np.diff(result.loss_curve) < 0).all()
    assert [report.loss for report in reports] == result.loss_curve
    assert reports[-1].gap == result.gap
    priors = np.bincount(codes, weights) / weights.sum()
    assert result.loss_curve[0] == pytest.approx(-(priors * np.log(priors)).sum())
    assert result.cls_embedding.shape == (6,)
    assert result.output_vectors.shape == (3, 6)
    embeddings = draw_embeddings(X.shape[1], 3, 6, seed=0).embeddings.numpy()
    assert_allclose(embeddings @ result.cls_embedding, result.fitted.scores, atol=1e-12)
    assert_allclose(embeddings @ result.output_vectors.T, result.fitted.values, atol=1e-10)


def test_stops():
    X, codes, weights = data(2)
    short = fit(X, codes, weights, max_iter=2, tol=0.0)
    assert (short.status, short.n_iter) == ("max_iter", 2)
    told = fit(X, codes, weights, tol=0.0, on_step=lambda progress: progress.n_iter == 1)
    assert (told.status, told.n_iter) == ("stopped", 1)


def test_a_seed_gives_the_same_fit_and_another_a_different_one():
    X, codes, weights = data(2)
    one, same, other = (fit(X, codes, weights, seed=seed) for seed in (0, 0, 1))
    assert one.loss_curve == same.loss_curve
    assert_array_equal(one.cls_embedding, same.cls_embedding)
    assert one.loss_curve[-1] != other.loss_curve[-1]


@CLASSES
def test_weights_do_as_repetition(n_classes):
    X, codes, _ = data(n_classes)
    repeats = np.random.default_rng(1).integers(0, 4, len(codes))
    rows = np.repeat(np.arange(len(codes)), repeats)
    weighted = fit(X, codes, repeats.astype(float), tol=1e-12)
    repeated = fit(X[rows], codes[rows], np.ones(len(rows)), tol=1e-12)
    assert_allclose(weighted.fitted.outputs(X), repeated.fitted.outputs(X), atol=1e-5)


def test_single_precision():
    """Other embeddings are drawn in single precision, but their scores are products as well."""
    X, codes, weights = data(2)
    result = fit(X.astype(np.float32), codes, weights, tol=1e-3)
    assert result.status == "converged"
    drawn = draw_embeddings(X.shape[1], 1, 6, seed=0, dtype=torch.float32)
    scores = drawn.embeddings.double().numpy() @ result.cls_embedding
    assert_allclose(scores, result.fitted.scores, atol=1e-5)


def test_bad_settings():
    X, codes, weights = data(3)
    with pytest.raises(ValueError, match="embedding_dim must be at least 4"):
        fit(X, codes, weights, 3)
    with pytest.raises(ValueError, match="token_scaling=None"):
        fit_frozen(
            *arguments(X, codes, weights, scaling="log_odds"),
            embedding_dim=8,
            seed=0,
            value_C=1.0,
            attention_C=0.3,
            max_iter=10,
            tol=1e-3,
        )
