"""AttentionNetworkClassifier: documents of any length, and how its training ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import data, network, refused
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_clsattn.paper import AttentionNetworkClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KINDS = pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, False), (1, True), (2, True)])


def documents_of_all_lengths(n_documents=30, n_tokens=25):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.linspace(0, 2, n_documents)[:, None], (n_documents, n_tokens))
    return sp.csr_matrix(X[rng.permutation(n_documents)] * 0.5)


@KINDS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("attend_cls", [False, True])
def test_neither_other_documents_nor_their_lengths_change_an_answer(
    n_classes, n_layers, mlp, attend_cls
):
    """The loss of the fitted module is that of NumPy's answers, of all documents or of one."""
    X, y = documents_of_all_lengths(), np.arange(30) % n_classes
    how = {"n_layers": n_layers, "mlp": mlp, "attend_cls": attend_cls, "batch_size": 30}
    still = {"learning_rate": 1e-12}  # so that the last loss is that of the fitted network
    model = network(X, y, **how, **still)
    losses = -model.predict_log_proba(X)[np.arange(30), y]
    assert model.loss_curve_[-1] == pytest.approx(losses.mean(), rel=1e-6)
    alone = np.concatenate([model.decision_function(X[[i]]) for i in range(30)])
    assert_allclose(model.decision_function(X), alone, atol=1e-12)
    shares = model.attention(X)
    assert_array_equal(shares.indices, X.indices)
    sums = np.asarray(shares.sum(axis=1)).ravel()[np.diff(X.indptr) > 0]
    assert (sums < 1 - 1e-6).all() if attend_cls else np.allclose(sums, 1)


@KINDS
def test_early_stopping_keeps_the_best_network(n_layers, mlp):
    X, y = data(3, n_documents=90)
    model = AttentionNetworkClassifier(
        n_layers=n_layers, mlp=mlp, embedding_dim=8, learning_rate=0.1, random_state=0,
        validation_fraction=0.3, n_iter_no_change=3, max_iter=30
    ).fit(X, y)  # fmt: skip
    assert len(model.validation_loss_curve_) == model.n_iter_ + 1
    best = int(model.validation_loss_curve_.argmin())
    assert model.n_iter_ == min(best + 3, 30)
    # Fitted no further, it is the same network.
    shorter = model.set_params(max_iter=best, early_stopping=True)
    expected, losses = model.predict_proba(X), model.validation_loss_curve_
    shorter.fit(X, y)
    assert_allclose(shorter.validation_loss_curve_, losses[: best + 1])
    assert_allclose(shorter.predict_proba(X), expected)


def test_a_class_of_one_document_cannot_be_held_out():
    X, y = data()
    rows = [0, 1, 2]
    model = AttentionNetworkClassifier(embedding_dim=4, random_state=0)
    refused(r"only one document.*early_stopping=False", model.fit, X[rows], y[rows])


@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_learning_rate_that_is_too_large(n_layers):
    X, y = data()
    model = AttentionNetworkClassifier(
        n_layers=n_layers, learning_rate=1e300, embedding_dim=4, random_state=0
    )
    refused(r"lower the learning rate|range of floating-point", model.fit, X, y)
