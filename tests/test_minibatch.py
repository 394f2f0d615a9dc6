"""Training by mini-batches: the closed form, the slow reference, weights, stopping, seeds."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts, mean_loss
from test_network import VARIANTS, spelled_out

from sklearn_clsattn.model.bag import TokenBag
from sklearn_clsattn.model.gradient_step import (
    draw_embeddings,
    embedding_gradient,
    unscaled_objective,
)
from sklearn_clsattn.model.network import AttentionNetwork
from sklearn_clsattn.model.targets import encode_targets
from sklearn_clsattn.training.minibatch import fit_network

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
ARRAYS = [
    "embeddings",
    "cls_embedding",
    "output_vectors",
    "intercept",
    "first_key_query",
    "second_key_query",
    "hidden_weights",
    "hidden_bias",
    "hidden_output",
]


def data(n_classes=2, seed=0, n_documents=60, n_tokens=15):
    """Return counts in which one token speaks for each class, class codes and weights."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_documents) % n_classes
    means = np.full((n_documents, n_tokens), 0.5)
    means[np.arange(n_documents), codes] = 3.0
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return sp.csr_matrix(X), codes, rng.uniform(0.5, 2.0, n_documents)


def fit(X, codes, weights=None, **options):
    settings = {
        "n_layers": 1,
        "mlp": False,
        "embedding_dim": 6,
        "learning_rate": 0.02,
        "batch_size": 10,
        "cls_weight": 0.0,
        "early_stopping": False,
        "validation_fraction": 0.2,
        "n_iter_no_change": 1000,
        "max_iter": 5,
        "tol": 0.0,
        "seed": 3,
        "device": "cpu",
        **options,
    }
    weights = np.ones(len(codes)) if weights is None else weights
    return fit_network(X, codes, weights, int(codes.max()) + 1, **settings)


def log_loss(fitted, X, codes, weights):
    outputs = fitted.outputs(X)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    losses = np.logaddexp.reduce(outputs, axis=1) - outputs[np.arange(len(codes)), codes]
    return np.average(losses, weights=weights)


def assert_same(one, other, **tolerance):
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert_allclose(a, b, err_msg=name, **tolerance)


@CLASSES
@pytest.mark.parametrize("cls_weight", [0.0, 1.5])
def test_one_layer_full_batch_agrees_with_the_closed_form(n_classes, cls_weight):
    X, codes, weights = data(n_classes)
    n_outputs = 1 if n_classes == 2 else n_classes
    steps = 30
    result = fit(X, codes, weights, batch_size=100, max_iter=steps, cls_weight=cls_weight)

    objective = unscaled_objective(
        TokenBag(X),
        encode_targets(codes, n_classes),
        torch.from_numpy(weights),
        n_outputs,
        cls_weight=cls_weight,
    )
    start = draw_embeddings(X.shape[1], n_outputs, 6, seed=3)
    E, p, v = start.embeddings, start.cls_embedding, start.output_vectors
    logs = np.log(np.bincount(codes, weights) / weights.sum())
    last_row = torch.zeros(1 + n_outputs, dtype=torch.float64)
    last_row[1:] = torch.from_numpy(logs[1:] - logs[:1] if n_classes == 2 else logs)
    optimizer = torch.optim.Adam([E, p, v, last_row], lr=0.02)
    losses = []
    for _ in range(steps):
        loss, gradient = embedding_gradient(objective, E, p, v, last_row)
        losses.append(loss)
        of_tokens = gradient[:-1]
        E.grad = of_tokens @ torch.vstack([p, v])
        p.grad, v.grad = E.T @ of_tokens[:, 0], of_tokens[:, 1:].T @ E
        last_row.grad = gradient[-1].clone()
        last_row.grad[0] = 0  # the score of <cls> is not trained here
        optimizer.step()
    fitted = result.fitted
    assert_allclose(fitted.embeddings, E, rtol=1e-8, atol=1e-9)
    assert_allclose(fitted.cls_embedding, p, rtol=1e-8, atol=1e-9)
    assert_allclose(fitted.output_vectors, v, rtol=1e-8, atol=1e-9)
    assert_allclose(fitted.intercept, last_row[1:], rtol=1e-8, atol=1e-9)
    # An epoch's loss is that of its only batch, met before the step.
    assert_allclose(result.loss_curve, [losses[0], *losses], rtol=1e-10)
    assert losses[-1] < losses[0] - 0.1


@VARIANTS
@CLASSES
def test_every_variant_takes_the_steps_of_the_slow_reference(n_layers, mlp, n_classes):
    X, codes, weights = data(n_classes, n_documents=20, n_tokens=8)
    n_outputs = 1 if n_classes == 2 else n_classes
    steps = 5
    options = {"n_layers": n_layers, "mlp": mlp, "fit_intercept": True}
    fitted = fit(X, codes, weights, batch_size=20, max_iter=steps, **options).fitted

    logs = np.log(np.bincount(codes, weights) / weights.sum())
    made = AttentionNetwork(
        draw_embeddings(8, n_outputs, 6, seed=3),
        intercept=torch.from_numpy(logs[1:] - logs[:1] if n_classes == 2 else logs),
        n_layers=n_layers,
        mlp=mlp,
        generator=torch.Generator().manual_seed(4),
    )
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = spelled_out(made, X)
        mean_loss(outputs, encode_targets(codes, n_classes), torch.from_numpy(weights)).backward()
        optimizer.step()
    assert_same(fitted, made.to_numpy(), rtol=1e-7, atol=1e-8)


@VARIANTS
def test_training_in_mini_batches_lowers_the_loss(n_layers, mlp):
    X, codes, weights = data()
    result = fit(X, codes, weights, n_layers=n_layers, mlp=mlp, max_iter=15)
    assert result.status == "max_iter"
    assert result.n_iter == result.best_iter == 15
    assert len(result.loss_curve) == 16
    assert result.validation_curve is None
    assert log_loss(result.fitted, X, codes, weights) < result.loss_curve[0] - 0.2


@CLASSES
def test_the_first_loss_is_that_of_the_start(n_classes):
    X, codes, weights = data(n_classes)
    result = fit(X, codes, weights, max_iter=0)
    assert result.loss_curve == [pytest.approx(log_loss(result.fitted, X, codes, weights))]
    assert result.n_iter == 0


@pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, True)])
def test_a_weight_is_a_repetition_where_all_documents_are_one_batch(n_layers, mlp):
    X, codes, _ = data(n_documents=20)
    repeats = np.arange(20) % 4
    options = {"n_layers": n_layers, "mlp": mlp, "batch_size": 1000, "max_iter": 6}
    weighted = fit(X, codes, repeats.astype(float), **options)
    rows = np.repeat(np.arange(20), repeats)
    repeated = fit(X[rows], codes[rows], **options)
    assert_same(weighted.fitted, repeated.fitted, rtol=1e-7, atol=1e-8)
    assert_allclose(weighted.loss_curve, repeated.loss_curve, rtol=1e-9)


def test_documents_of_weight_0_are_as_good_as_absent():
    X, codes, weights = data()
    weights[::7] = 0
    there = weights > 0
    X_other = sp.csr_matrix(X.toarray() * there[:, None] + 5.0 * ~there[:, None])
    options = {"early_stopping": True, "max_iter": 3}
    with_them = fit(X_other, codes, weights, **options)
    without = fit(X[there], codes[there], weights[there], **options)
    assert with_them.loss_curve == without.loss_curve
    assert with_them.validation_curve == without.validation_curve
    assert_same(with_them.fitted, without.fitted, rtol=0)


@VARIANTS
def test_the_same_seed_gives_the_same_model_whatever_the_global_one(n_layers, mlp):
    X, codes, weights = data()
    options = {"n_layers": n_layers, "mlp": mlp, "early_stopping": True, "max_iter": 3}
    torch.manual_seed(0)
    one = fit(X, codes, weights, **options)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    other = fit(X, codes, weights, **options)
    assert torch.equal(before, torch.get_rng_state())
    assert_same(one.fitted, other.fitted, rtol=0)
    assert one.loss_curve == other.loss_curve
    different = fit(X, codes, weights, **{**options, "seed": 4})
    assert different.loss_curve != one.loss_curve


def noise(n_classes=2):
    """Return data with nothing to learn, so that the validation loss soon rises."""
    X = counts(0, n_documents=80, n_tokens=30)
    return X, np.random.default_rng(1).integers(0, n_classes, 80)


@CLASSES
def test_early_stopping_returns_the_epoch_of_the_lowest_validation_loss(n_classes):
    X, codes = noise(n_classes)
    seen = []
    result = fit(
        X,
        codes,
        early_stopping=True,
        n_iter_no_change=4,
        max_iter=200,
        on_step=lambda progress: bool(seen.append((progress, progress.fitted()))),
    )
    assert result.status == "converged"
    curve = result.validation_curve
    assert len(curve) == result.n_iter + 1 == len(result.loss_curve) == len(seen)
    assert result.best_iter == int(np.argmin(curve)) == result.n_iter - 4
    assert_same(result.fitted, seen[result.best_iter][1], rtol=0)
    assert [progress.n_iter for progress, _ in seen] == list(range(result.n_iter + 1))
    assert [progress.gap for progress, _ in seen] == curve
    assert [progress.loss for progress, _ in seen] == result.loss_curve


def test_without_early_stopping_training_ends_when_the_loss_no_longer_falls():
    X, codes, weights = data()
    result = fit(X, codes, weights, max_iter=500, n_iter_no_change=2, tol=0.02)
    assert result.status == "converged"
    assert 2 < result.n_iter < 500
    assert min(result.loss_curve[-2:]) > min(result.loss_curve[:-2]) - 0.02


def test_a_callback_can_stop():
    X, codes, weights = data()
    seen = []

    def on_step(progress):
        seen.append(progress)
        return progress.n_iter == 2

    result = fit(X, codes, weights, on_step=on_step)
    assert (result.status, result.n_iter, len(seen)) == ("stopped", 2, 3)
    assert math.isnan(seen[0].gap)


def test_precision_follows_the_documents():
    X, codes, weights = data()
    single = fit(X.astype(np.float32), codes, weights)
    double = fit(X, codes, weights)
    assert single.fitted.embeddings.dtype == np.float32
    assert double.fitted.embeddings.dtype == np.float64
    assert_allclose(single.loss_curve[0], double.loss_curve[0], rtol=0.2)
    forced = fit(X.astype(np.float32), codes, weights, dtype=torch.float64)
    assert_array_equal(forced.fitted.embeddings, double.fitted.embeddings)


def test_without_intercepts_there_are_none():
    X, codes, weights = data(3)
    assert_array_equal(fit(X, codes, weights, fit_intercept=False).fitted.intercept, np.zeros(3))


@VARIANTS
def test_documents_without_tokens_can_be_trained_on(n_layers, mlp):
    X = sp.csr_matrix(([2.0], ([0], [1])), shape=(12, 4))
    codes = np.arange(12) % 2
    result = fit(X, codes, n_layers=n_layers, mlp=mlp, batch_size=3)
    assert np.isfinite(result.loss_curve).all()
    assert np.isfinite(result.fitted.outputs(X)).all()


def test_the_callers_matrix_is_left_alone():
    X = sp.csr_matrix(([1.0, 2.0, 0.0, 1.0], [2, 0, 1, 1], [0, 3, 4]), shape=(2, 3))
    fit(X, np.array([0, 1]), n_layers=2)
    assert_array_equal(X.indices, [2, 0, 1, 1])
    assert_array_equal(X.data, [1, 2, 0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"learning_rate": math.inf}, "learning_rate must be positive"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"n_layers": 3}, "n_layers must be 1 or 2"),
        ({"embedding_dim": 1}, "embedding_dim must be at least 2"),
    ],
)
def test_bad_settings_are_refused(options, message):
    X, codes, weights = data()
    with pytest.raises(ValueError, match=message):
        fit(X, codes, weights, **options)


def test_a_class_too_small_to_hold_one_out_is_refused():
    X, codes, _ = data()
    codes = (np.arange(60) == 7).astype(int)
    with pytest.raises(ValueError, match="early_stopping=False"):
        fit(X, codes, early_stopping=True)
    assert fit(X, codes).n_iter == 5


def test_a_loss_that_is_not_finite_is_refused():
    X, codes, weights = data()
    with pytest.raises(ValueError, match="lower the learning rate"):
        fit(X, codes, weights, learning_rate=1e200, n_layers=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@VARIANTS
def test_cuda_trains_the_same_model(n_layers, mlp):
    X, codes, weights = data()
    options = {"n_layers": n_layers, "mlp": mlp, "early_stopping": True, "max_iter": 3}
    cpu = fit(X, codes, weights, **options)
    cuda = fit(X, codes, weights, device="cuda", **options)
    assert_same(cpu.fitted, cuda.fitted, rtol=1e-6, atol=1e-8)
    assert_allclose(cpu.loss_curve, cuda.loss_curve, rtol=1e-8)
