"""Training by mini-batches: the closed form, the slow reference, weights, stopping, seeds."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers import documents, weighted_and_repeated
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts, mean_loss
from test_network import VARIANTS, spelled_out

from sklearn_clsattn._core.objective import encode_targets
from sklearn_clsattn._core.statistics import class_log_odds
from sklearn_clsattn.paper._minibatch import fit_network
from sklearn_clsattn.paper._network import AttentionNetwork
from sklearn_clsattn.theory._gradient_step import draw_embeddings, embedding_gradient

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
ARRAYS = [
    "embedding_matrix",
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
    """Return documents in which one token speaks for each class."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_documents) % n_classes
    means = np.full((n_documents, n_tokens), 0.5)
    means[np.arange(n_documents), codes] = 3.0
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return documents(sp.csr_matrix(X), codes, rng.uniform(0.5, 2.0, n_documents))


def fit(d, **options):
    settings = {
        "n_layers": 1,
        "mlp": False,
        "embedding_dim": 6,
        "learning_rate": 0.02,
        "batch_size": 10,
        "attend_cls": False,
        "early_stopping": False,
        "validation_fraction": 0.2,
        "n_iter_no_change": 1000,
        "max_iter": 5,
        "tol": 0.0,
        "seed": 3,
        **options,
    }
    return fit_network(d, **settings)


def log_loss(model, d):
    outputs = model.outputs(d.X)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    losses = np.logaddexp.reduce(outputs, axis=1) - outputs[np.arange(len(d.codes)), d.codes]
    return np.average(losses, weights=d.weights)


def assert_same(one, other, **tolerance):
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert_allclose(a, b, err_msg=name, **tolerance)


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
def test_one_layer_full_batch_agrees_with_the_closed_form(n_classes, attend_cls):
    d = data(n_classes)
    steps = 30
    result = fit(d, batch_size=100, max_iter=steps, attend_cls=attend_cls)

    cls_weight = d.statistics.cls_weight if attend_cls else 0.0
    of_documents = d.loss(d.bag(np.float64, "cpu"), cls_weight=cls_weight)
    start = draw_embeddings(d.X.shape[1], d.n_outputs, 6, seed=3)
    E, p, v = start.embeddings, start.cls_embedding, start.output_vectors
    last_row = torch.zeros(1 + d.n_outputs, dtype=torch.float64)
    last_row[1:] = torch.from_numpy(class_log_odds(d.statistics.class_weights))
    optimizer = torch.optim.Adam([E, p, v, last_row], lr=0.02)
    losses = []
    for _ in range(steps):
        loss, gradient = embedding_gradient(of_documents, E, p, v, last_row)
        losses.append(loss)
        of_tokens = gradient[:-1]
        E.grad = of_tokens @ torch.vstack([p, v])
        p.grad, v.grad = E.T @ of_tokens[:, 0], of_tokens[:, 1:].T @ E
        last_row.grad = gradient[-1].clone()
        last_row.grad[0] = 0  # the score of <cls> is not trained here
        optimizer.step()
    model = result.model
    assert_allclose(model.embedding_matrix, E, rtol=1e-8, atol=1e-9)
    assert_allclose(model.cls_embedding, p, rtol=1e-8, atol=1e-9)
    assert_allclose(model.output_vectors, v, rtol=1e-8, atol=1e-9)
    assert_allclose(model.intercept, last_row[1:], rtol=1e-8, atol=1e-9)
    assert model.cls_weight == cls_weight
    # An epoch's loss is that of its only batch, met before the step.
    assert_allclose(result.loss_curve, [losses[0], *losses], rtol=1e-10)
    assert losses[-1] < losses[0] - 0.1


@VARIANTS
@CLASSES
def test_every_variant_takes_the_steps_of_the_slow_reference(n_layers, mlp, n_classes):
    d = data(n_classes, n_documents=20, n_tokens=8)
    steps = 5
    model = fit(d, batch_size=20, max_iter=steps, n_layers=n_layers, mlp=mlp).model

    made = AttentionNetwork(
        draw_embeddings(8, d.n_outputs, 6, seed=3),
        intercept=torch.from_numpy(class_log_odds(d.statistics.class_weights)),
        n_layers=n_layers,
        mlp=mlp,
        generator=torch.Generator().manual_seed(4),
    )
    targets, weights = encode_targets(d.codes, n_classes), torch.from_numpy(d.weights)
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(steps):
        optimizer.zero_grad()
        mean_loss(spelled_out(made, d.X), targets, weights).backward()
        optimizer.step()
    assert_same(model, made.to_numpy(), rtol=1e-7, atol=1e-8)


@VARIANTS
def test_training_in_mini_batches_lowers_the_loss(n_layers, mlp):
    d = data()
    result = fit(d, n_layers=n_layers, mlp=mlp, max_iter=15)
    assert (result.status, result.n_iter) == ("max_iter", 15)
    assert len(result.loss_curve) == 16
    assert result.attributes == {}
    assert log_loss(result.model, d) < result.loss_curve[0] - 0.2


@CLASSES
def test_the_first_loss_is_that_of_the_start(n_classes):
    d = data(n_classes)
    result = fit(d, max_iter=0)
    assert result.loss_curve == [pytest.approx(log_loss(result.model, d))]
    assert result.n_iter == 0


@pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, True)])
def test_a_weight_is_a_repetition_where_all_documents_are_one_batch(n_layers, mlp):
    d = data(n_documents=20)
    options = {"n_layers": n_layers, "mlp": mlp, "batch_size": 1000, "max_iter": 6}
    both = weighted_and_repeated(d.X, d.codes, np.arange(20) % 4)
    weighted, repeated = (fit(same, **options) for same in both)
    assert_same(weighted.model, repeated.model, rtol=1e-7, atol=1e-8)
    assert_allclose(weighted.loss_curve, repeated.loss_curve, rtol=1e-9)


def test_documents_of_weight_0_are_as_good_as_absent():
    d = data()
    d.weights[::7] = 0
    there = d.weights > 0
    X_other = sp.csr_matrix(d.X.toarray() * there[:, None] + 5.0 * ~there[:, None])
    options = {"early_stopping": True, "max_iter": 3}
    with_them = fit(documents(X_other, d.codes, d.weights), **options)
    without = fit(documents(d.X[there], d.codes[there], d.weights[there]), **options)
    assert with_them.loss_curve == without.loss_curve
    name = "validation_loss_curve_"
    assert_array_equal(with_them.attributes[name], without.attributes[name])
    assert_same(with_them.model, without.model, rtol=0)


@VARIANTS
def test_the_same_seed_gives_the_same_model_whatever_the_global_one(n_layers, mlp):
    d = data()
    options = {"n_layers": n_layers, "mlp": mlp, "early_stopping": True, "max_iter": 3}
    torch.manual_seed(0)
    one = fit(d, **options)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    other = fit(d, **options)
    assert torch.equal(before, torch.get_rng_state())
    assert_same(one.model, other.model, rtol=0)
    assert one.loss_curve == other.loss_curve
    different = fit(d, **{**options, "seed": 4})
    assert different.loss_curve != one.loss_curve


def noise(n_classes=2):
    """Return documents with nothing to learn, so that the validation loss soon rises."""
    X = counts(0, n_documents=80, n_tokens=30)
    return documents(X, np.random.default_rng(1).integers(0, n_classes, 80))


@CLASSES
def test_early_stopping_returns_the_epoch_of_the_lowest_validation_loss(n_classes):
    seen = []
    result = fit(
        noise(n_classes),
        early_stopping=True,
        n_iter_no_change=4,
        max_iter=200,
        callback=lambda progress: bool(seen.append((progress, progress.model()))),
    )
    assert result.status == "converged"
    curve = result.attributes["validation_loss_curve_"]
    assert len(curve) == result.n_iter + 1 == len(result.loss_curve) == len(seen)
    best_iter = int(np.argmin(curve))
    assert best_iter == result.n_iter - 4
    assert_same(result.model, seen[best_iter][1], rtol=0)
    assert [progress.n_iter for progress, _ in seen] == list(range(result.n_iter + 1))
    assert_array_equal([progress.criterion for progress, _ in seen], curve)
    assert [progress.loss for progress, _ in seen] == result.loss_curve


def test_without_early_stopping_training_ends_when_the_loss_no_longer_falls():
    result = fit(data(), max_iter=500, n_iter_no_change=2, tol=0.02)
    assert result.status == "converged"
    assert 2 < result.n_iter < 500
    assert min(result.loss_curve[-2:]) > min(result.loss_curve[:-2]) - 0.02


def test_a_callback_can_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.n_iter == 2

    result = fit(data(), callback=callback)
    assert (result.status, result.n_iter, len(seen)) == ("stopped", 2, 3)
    assert math.isnan(seen[0].criterion)


def test_precision():
    d = data()
    single, double = (fit(d, dtype=dtype) for dtype in (np.float32, np.float64))
    assert single.model.embedding_matrix.dtype == np.float32
    assert double.model.embedding_matrix.dtype == np.float64
    assert_allclose(single.loss_curve[0], double.loss_curve[0], rtol=0.2)
    of_single = fit(documents(d.X.astype(np.float32), d.codes, d.weights))
    assert_array_equal(of_single.model.embedding_matrix, double.model.embedding_matrix)


@VARIANTS
def test_documents_without_tokens_can_be_trained_on(n_layers, mlp):
    X = sp.csr_matrix(([2.0], ([0], [1])), shape=(12, 4))
    d = documents(X, np.arange(12) % 2)
    result = fit(d, n_layers=n_layers, mlp=mlp, batch_size=3)
    assert np.isfinite(result.loss_curve).all()
    assert np.isfinite(result.model.outputs(X)).all()


def test_the_callers_matrix_is_left_alone():
    X = sp.csr_matrix(([1.0, 2.0, 0.0, 1.0], [2, 0, 1, 1], [0, 3, 4]), shape=(2, 3))
    fit(documents(X, np.array([0, 1])), n_layers=2)
    assert_array_equal(X.indices, [2, 0, 1, 1])
    assert_array_equal(X.data, [1, 2, 0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_layers": 3}, "n_layers must be 1 or 2"),
        ({"embedding_dim": 1}, "embedding_dim must be at least 2"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fit(data(), **options)


def test_a_class_too_small_to_hold_one_out_is_refused():
    d = documents(data().X, (np.arange(60) == 7).astype(int))
    with pytest.raises(ValueError, match="early_stopping=False"):
        fit(d, early_stopping=True)
    assert fit(d).n_iter == 5


def test_a_loss_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="lower the learning rate"):
        fit(data(), learning_rate=1e200, n_layers=2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@VARIANTS
def test_cuda_trains_the_same_model(n_layers, mlp):
    d = data()
    options = {"n_layers": n_layers, "mlp": mlp, "early_stopping": True, "max_iter": 3}
    cpu, cuda = (fit(d, device=device, **options) for device in ("cpu", "cuda"))
    assert_same(cpu.model, cuda.model, rtol=1e-6, atol=1e-8)
    assert_allclose(cpu.loss_curve, cuda.loss_curve, rtol=1e-8)
