"""Every regime against plain padded PyTorch, written from the paper's text: position by position.

The model of the paper, f(X) = softmax(p' E_X') E_X v on sequences of tokens, no intercept, no <cls>
that attends to itself; its ablations with key-query matrices, a hidden layer or frozen embeddings.
Compared through the public estimators: outputs, losses, and what ten steps of Adam, which follow
autograd's gradients, make of every parameter.
"""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from helpers import data, network, refused
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import check_random_state

from sklearn_clsattn.paper import AttentionNetworkClassifier, EmbeddingClassifier, OneStepClassifier
from sklearn_clsattn.paper._network import AttentionNetwork
from sklearn_clsattn.paper._trainer import draw_embeddings

CLASSES = pytest.mark.parametrize("n_classes", [2, 4])
DIMENSION, RATE, STEPS = 12, 0.02, 10
ADAM = {
    "embedding_dim": DIMENSION,
    "learning_rate": RATE,
    "fit_intercept": False,
    "attend_cls": False,
    "early_stopping": False,
    "tol": 0.0,
    "n_iter_no_change": 100,
    "max_iter": STEPS,
    "random_state": 0,
}
unfinished = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Paper(torch.nn.Module):
    """The paper's model on sequences padded to the longest one's length T.

    E (V, d), p (d,), v (K, d); W1 and W2 (d, d) of two layers; A1 (d, d), c (d,) and A2 (d, d) of a
    hidden layer.
    """

    def __init__(self, **start):
        super().__init__()
        for name, value in start.items():
            self.register_parameter(name, torch.nn.Parameter(value.detach().clone()))

    def forward(self, tokens, real):
        rows = self.E[tokens]  # (n, T, d)
        if hasattr(self, "W1"):
            table = rows @ self.W1 @ rows.transpose(1, 2)
            table = torch.softmax(table.masked_fill(~real[:, None, :], -torch.inf), dim=2)
            rows = rows + table @ rows
        direction = self.W2.T @ self.p if hasattr(self, "W2") else self.p
        scores = (rows @ direction).masked_fill(~real, -torch.inf)
        pooled = (torch.softmax(scores, dim=1)[:, :, None] * rows).sum(dim=1)
        if hasattr(self, "A1"):
            pooled = torch.relu(pooled @ self.A1.T + self.c) @ self.A2.T
        return pooled @ self.v.T  # (n, K)

    def loss(self, sequences, y):
        outputs = self(*sequences)
        if outputs.shape[1] == 1:
            return torch.log1p(torch.exp(-(2.0 * y - 1) * outputs[:, 0])).mean()
        return F.cross_entropy(outputs, y)


def sequences_of(X):
    """Return token ids (n, T) and which places are real, tokens repeated by their counts."""
    tokens = reference.PaddedDocuments.from_counts(X).tokens
    return tokens.clamp(min=0), tokens != reference.PADDING


def problem(n_classes):
    rng = np.random.default_rng(3)
    X = rng.poisson(0.6, (30, 9)).astype(float)
    X[:, 0] += X.sum(axis=1) == 0
    return sp.csr_matrix(X), np.arange(30) % n_classes


def start(n_tokens, n_classes):
    """Return the random start that random_state=0 stands for: E, p and v."""
    seed = int(check_random_state(0).randint(np.iinfo(np.int32).max))
    return seed, draw_embeddings(n_tokens, 1 if n_classes == 2 else n_classes, DIMENSION, seed=seed)


def train(model, X, y, names, kind=torch.optim.Adam, rate=RATE):
    """Take ten steps on the parameters named; return the losses before each and after."""
    sequences, y = sequences_of(X), torch.from_numpy(y)
    optimizer = kind([getattr(model, name) for name in names], lr=rate)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model.loss(sequences, y)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return [*losses, model.loss(sequences, y).item()]


def assert_outputs(estimator, model, X):
    outputs = model(*sequences_of(X)).detach().numpy()
    outputs = outputs[:, 0] if outputs.shape[1] == 1 else outputs
    assert_allclose(estimator.decision_function(X), outputs, rtol=1e-7, atol=1e-9)


def largest_value_one(importance):
    """Return the size of the step on E after which the largest value is 1, or less for K > 2."""
    per_step = 0.5 * importance[None] if importance.ndim == 1 else importance
    size = 1 / np.abs(per_step).max()
    return size if importance.ndim == 1 else min(size, 2 / np.linalg.norm(per_step, 2))


@unfinished
@CLASSES
@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize(
    ("how", "step_size"), [(True, None), (False, None), ("one_step", None), ("one_step", 30.0)]
)
def test_everything_trained_frozen_embeddings_and_one_step(n_classes, solver, how, step_size):
    X, y = problem(n_classes)
    rate = {"adam": RATE, "sgd": 0.5}[solver]
    estimator = EmbeddingClassifier(
        train_embeddings=how,
        step_size=step_size,
        **{**ADAM, "solver": solver, "learning_rate": rate},
    ).fit(X, y)
    _, drawn = start(X.shape[1], n_classes)
    model = Paper(**dict(zip("Epv", drawn, strict=True)))
    if how == "one_step":
        model.loss(sequences_of(X), torch.from_numpy(y)).backward()
        with torch.no_grad():
            size = step_size or largest_value_one(estimator.token_importance_)
            model.E -= size * model.E.grad
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[solver]
    losses = train(model, X, y, "Epv" if how is True else "pv", kind, rate)
    assert_allclose(estimator.loss_curve_, losses, rtol=1e-9)
    assert_allclose(estimator.token_embeddings_, model.E.detach(), atol=1e-8)
    assert_allclose(estimator.cls_embedding_, model.p.detach(), atol=1e-8)
    assert_allclose(np.atleast_2d(estimator.output_vector_), model.v.detach(), atol=1e-8)
    assert_outputs(estimator, model, X)


@unfinished
def test_booleans_of_numpy_train_embeddings_too():
    """A grid of parameters may be an array."""
    X, y = problem(2)
    expected, trained = (
        EmbeddingClassifier(train_embeddings=value, **ADAM).fit(X, y) for value in (True, np.True_)
    )
    assert_array_equal(trained.token_embeddings_, expected.token_embeddings_)
    EmbeddingClassifier(train_embeddings=np.True_, max_iter=2).fit(X, y)  # without a dimension


@unfinished
@pytest.mark.parametrize("kind", [AttentionNetworkClassifier, EmbeddingClassifier])
def test_mini_batches(kind):
    """Two batches a step each are what plain PyTorch makes of the same two halves."""
    X, y = problem(2)
    seed, drawn = start(X.shape[1], 2)
    model = Paper(**dict(zip("Epv", drawn, strict=True)))
    how = {} if kind is AttentionNetworkClassifier else {"solver": "sgd"}
    optimizer = (torch.optim.SGD if how else torch.optim.Adam)(model.parameters(), lr=RATE)
    order = np.random.default_rng(seed)
    for _ in range(STEPS):
        shuffled = order.permutation(np.arange(len(y)))
        for half in np.split(shuffled, 2):
            optimizer.zero_grad()
            model.loss(sequences_of(X[half]), torch.from_numpy(y[half])).backward()
            optimizer.step()
    estimator = kind(batch_size=len(y) // 2, **ADAM, **how).fit(X, y)
    assert_allclose(estimator.token_embeddings_, model.E.detach(), atol=1e-8)
    assert_outputs(estimator, model, X)
    whole = kind(batch_size=len(y), **ADAM, **how).fit(X, y)
    assert np.abs(whole.token_embeddings_ - estimator.token_embeddings_).max() > 1e-4


@unfinished
@CLASSES
@pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, False), (1, True), (2, True)])
def test_layers_and_the_hidden_layer(n_layers, mlp, n_classes):
    X, y = problem(n_classes)
    seed, drawn = start(X.shape[1], n_classes)
    drawn_too = AttentionNetwork(  # for the start of A1 and A2 alone
        drawn, n_layers=n_layers, mlp=mlp, generator=torch.Generator().manual_seed(seed + 1)
    )
    parts = dict(zip("Epv", drawn, strict=True))
    if n_layers == 2:
        identity = torch.eye(DIMENSION, dtype=torch.float64)
        parts |= {"W1": 0 * identity, "W2": identity}
    if mlp:
        parts |= {
            f"A{i}": drawn_too.layers[f"hidden_{n}"] for i, n in ((1, "weights"), (2, "output"))
        }
        parts["c"] = torch.zeros(DIMENSION, dtype=torch.float64)
    model = Paper(**parts)
    estimator = AttentionNetworkClassifier(n_layers=n_layers, mlp=mlp, batch_size=len(y), **ADAM)
    losses = train(model, X, y, parts)
    estimator.fit(X, y)
    # The start, then of each epoch the loss before its one step.
    assert_allclose(estimator.loss_curve_, [losses[0], *losses[:-1]], rtol=1e-9)
    assert_allclose(estimator.token_embeddings_, model.E.detach(), atol=1e-8)
    assert_outputs(estimator, model, X)
    if n_layers == 2:  # E.W2' p: the matrix is not symmetric after ten steps
        scores = model.E @ model.W2.T @ model.p
        assert_allclose(estimator.attention_scores_, scores.detach(), atol=1e-8)
        assert float((model.W2 - model.W2.T).abs().max().detach()) > 1e-3


@unfinished
@pytest.mark.filterwarnings("ignore:.*token values")
@CLASSES
def test_one_step_and_the_start_of_the_flow(n_classes):
    """E after one full-batch step of gradient descent, and the loss that the flow starts from."""
    X, y = problem(n_classes)
    _, drawn = start(X.shape[1], n_classes)
    model = Paper(**dict(zip("Epv", drawn, strict=True)))
    sequences, targets = sequences_of(X), torch.from_numpy(y)
    model.loss(sequences, targets).backward()
    with torch.no_grad():
        model.E -= 20.0 * model.E.grad
    estimator = OneStepClassifier(
        step_size=20.0, embedding_dim=DIMENSION, max_iter=10, random_state=0
    ).fit(X, y)
    assert_allclose(estimator.token_embeddings_, model.E.detach(), atol=1e-12)
    assert_allclose(estimator.token_values_.T, (model.E @ model.v.T).detach().squeeze(), atol=1e-12)
    assert estimator.loss_curve_[0] == pytest.approx(model.loss(sequences, targets).item())
    # What was followed from there is p alone: the same outputs with the p that it reached.
    with torch.no_grad():
        model.p.copy_(torch.from_numpy(estimator.cls_embedding_))
    assert_outputs(estimator, model, X)


# Documents of any length, and how the training of a network ends


KINDS = pytest.mark.parametrize(("n_layers", "mlp"), [(1, False), (2, False), (1, True), (2, True)])


def documents_of_all_lengths(n_documents=30, n_tokens=25):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.linspace(0, 2, n_documents)[:, None], (n_documents, n_tokens))
    return sp.csr_matrix(X[rng.permutation(n_documents)] * 0.5)


@unfinished
@KINDS
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("attend_cls", [False, True])
def test_the_loss_of_a_fitted_network_is_that_of_its_answers(n_classes, n_layers, mlp, attend_cls):
    """PyTorch trains on documents of any lengths what NumPy predicts."""
    X, y = documents_of_all_lengths(), np.arange(30) % n_classes
    how = {"n_layers": n_layers, "mlp": mlp, "attend_cls": attend_cls, "batch_size": 30}
    still = {"learning_rate": 1e-12}  # so that the last loss is that of the fitted network
    model = network(X, y, **how, **still)
    losses = -model.predict_log_proba(X)[np.arange(30), y]
    assert model.loss_curve_[-1] == pytest.approx(losses.mean(), rel=1e-6)


@unfinished
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


@unfinished
def test_a_class_of_one_document_is_trained_on():
    X, y = data(3)
    rows = np.flatnonzero(y < 2)
    rows = np.append(rows, np.flatnonzero(y == 2)[0])
    how = {"embedding_dim": 8, "learning_rate": 0.1, "max_iter": 50, "random_state": 0}
    model = AttentionNetworkClassifier(**how).fit(X[rows], y[rows])
    assert model.predict(X[rows[-1:]]) == 2


@unfinished
@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_learning_rate_that_is_too_large(n_layers):
    X, y = data()
    model = AttentionNetworkClassifier(
        n_layers=n_layers, learning_rate=1e300, embedding_dim=4, random_state=0
    )
    refused("lower learning_rate|range of floating-point", model.fit, X, y)
