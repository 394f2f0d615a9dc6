"""AttentionNetworkClassifier: batches, its module, and the fitted network that predicts."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers import data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import check_random_state

from sklearn_clsattn.paper import AttentionNetworkClassifier, _network
from sklearn_clsattn.paper._network import AttentionNetwork, pad_documents
from sklearn_clsattn.paper._random_start import draw_embeddings
from sklearn_clsattn.paper._trainer import hold_out

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS = pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, False), (1, True), (2, True)])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


def network(X, n_classes, n_layers, mlp, cls_weight=1.5):
    """Return a network with random numbers in all that is trained."""
    generator = torch.Generator().manual_seed(0)
    n_outputs = 1 if n_classes == 2 else n_classes
    module = AttentionNetwork(
        draw_embeddings(X.shape[1], n_outputs, 6, seed=0),
        intercept=torch.zeros(n_outputs, dtype=torch.float64),
        n_layers=n_layers,
        mlp=mlp,
        cls_weight=cls_weight,
        generator=generator,
    )
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter += 0.5 * noise
    return module


def documents_of_all_lengths(n_documents=30, n_tokens=25):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.linspace(0, 2, n_documents)[:, None], (n_documents, n_tokens))
    return sp.csr_matrix(X[rng.permutation(n_documents)] * 0.5)


@KINDS
@CLASSES
@pytest.mark.parametrize("cls_weight", [0.0, 1.5])
def test_batches_change_nothing_and_numpy_computes_the_same(
    n_classes, n_layers, mlp, cls_weight, monkeypatch
):
    X = documents_of_all_lengths()
    module = network(X, n_classes, n_layers, mlp, cls_weight)
    expected = np.vstack(
        [module(pad_documents(X[[i]], torch.float64, "cpu")).detach() for i in range(30)]
    )
    for limit in (20_000, 40):  # in groups by their fullness, and by their size
        monkeypatch.setattr(_network, "_GROUP_TOKENS", limit)
        padded = pad_documents(X, torch.float64, "cpu")
        assert sorted(padded.order) == list(range(30))
        assert 4 < len(padded.groups) < 30
        assert_allclose(module(padded).detach(), expected[padded.order], atol=1e-12)
    fitted = module.to_numpy()
    assert_allclose(fitted.outputs(X), expected, atol=1e-12)
    assert_allclose(fitted.outputs(X[[7]])[0], fitted.outputs(X)[7], atol=1e-12)
    assert (fitted.n_layers, fitted.mlp) == (n_layers, mlp)
    shares = fitted.attention(X)
    assert_array_equal(shares.indices, X.indices)
    filled = np.diff(X.indptr) > 0
    sums = np.asarray(shares.sum(axis=1)).ravel()[filled]
    assert (sums < 1 - 1e-6).all() if cls_weight else np.allclose(sums, 1)
    if not mlp:
        sums = np.column_stack([part.sum(axis=1) for part in fitted.contributions(X)])
        assert_allclose(sums + fitted.intercept, expected, atol=1e-12)


@KINDS
def test_early_stopping_keeps_the_best_network(n_layers, mlp):
    X, y = data(3, n_documents=90)
    model = AttentionNetworkClassifier(
        n_layers=n_layers, mlp=mlp, embedding_dim=8, learning_rate=0.1, random_state=0,
        validation_fraction=0.3, n_iter_no_change=3, max_iter=30
    ).fit(X, y)  # fmt: skip
    seed = int(check_random_state(0).randint(np.iinfo(np.int32).max))
    _, held_out = hold_out(y, np.ones(len(y)), 0.3, seed)
    log_probabilities = model.predict_log_proba(X[held_out])
    loss = -log_probabilities[np.arange(len(held_out)), y[held_out]].mean()
    assert loss == pytest.approx(model.validation_loss_curve_.min(), rel=1e-9)
    assert len(model.validation_loss_curve_) == model.n_iter_ + 1
    best = int(model.validation_loss_curve_.argmin())
    assert model.n_iter_ == min(best + 3, 30)


def test_documents_held_out():
    """Of every class the share, one at least, of documents of positive weight, not all of them."""
    codes = np.repeat([0, 1, 2], [100, 20, 4])
    weights = np.ones(124)
    weights[:50] = 0
    trained_on, held_out = hold_out(codes, weights, 0.1, seed=0)
    assert_array_equal(np.bincount(codes[held_out]), [5, 2, 1])
    assert (weights[held_out] > 0).all()
    assert_array_equal(np.sort(np.concatenate([trained_on, held_out])), np.arange(124))
    assert_array_equal(hold_out(codes, weights, 0.1, seed=0)[1], held_out)
    assert not np.array_equal(hold_out(codes, weights, 0.1, seed=1)[1], held_out)
    with pytest.raises(ValueError, match=r"only one document.*early_stopping=False"):
        hold_out(np.array([0, 0, 1]), np.ones(3), 0.1, seed=0)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_learning_rate_that_is_too_large(n_layers):
    X, y = data()
    model = AttentionNetworkClassifier(
        n_layers=n_layers, learning_rate=1e300, embedding_dim=4, random_state=0
    )
    with pytest.raises(ValueError, match=r"lower the learning rate|range of floating-point"):
        model.fit(X, y)
