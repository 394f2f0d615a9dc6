"""Gradient flow against an independent integrator, from the paper's text alone.

`Padded` is the model of the paper on padded documents; LSODA integrates p's flow from the same E,
p and v. Only the path of the flow matters, so its speed is set to 1.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import LSODA

from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import OneStepClassifier, _gradient_flow, one_step_embeddings


class Padded:
    """n documents of the longest one's length T: softmax(p' E_X') E_X v, and what it selects."""

    def __init__(self, X, y, E, v):
        X = sp.csr_matrix(X)
        self.tokens = np.zeros((X.shape[0], np.diff(X.indptr).max()), dtype=int)
        self.log_counts = np.full(self.tokens.shape, -np.inf)
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            self.tokens[i, : row.stop - row.start] = X.indices[row]
            self.log_counts[i, : row.stop - row.start] = np.log(X.data[row])
        self.y, self.E = 2.0 * y - 1, E
        self.values = (E @ v)[self.tokens]
        self.differences = self.values[:, :, None] - self.values[:, None, :]

    def attention(self, p):
        """Return log q, (n, T)."""
        logits = self.log_counts + (self.E @ p)[self.tokens]
        return logits - np.logaddexp.reduce(logits, axis=1)[:, None]

    def flow(self, _, p):
        """Return -dL/dp over its length.

        dL/da_j = -y sigma(-y f) q_j (b_j - f), with b_j - f as sum_k q_k (b_j - b_k): no
        difference of nearly equal numbers is left where softmax is nearly a maximum.
        """
        log_q = self.attention(p)
        q = np.exp(log_q)
        f = np.where(q > 0, q * self.values, 0).sum(axis=1)
        ahead = (q[:, None, :] * self.differences).sum(axis=2)
        with np.errstate(divide="ignore"):
            sizes = log_q + np.log(np.abs(ahead)) - np.logaddexp(0, self.y * f)[:, None]
        terms = self.y[:, None] * np.sign(ahead) * np.exp(sizes - sizes.max())
        by_token = np.bincount(self.tokens.ravel(), terms.ravel(), len(self.E))
        direction = by_token @ self.E
        return direction / np.linalg.norm(direction)

    def selected(self, p):
        """Return which of the (n, T) places have the highest score of their document."""
        scores = np.where(np.isfinite(self.log_counts), (self.E @ p)[self.tokens], -np.inf)
        return scores >= scores.max(axis=1, keepdims=True) - 1e-6


def lsoda(padded, p, rtol, *, way=_gradient_flow.PATIENCE):
    """Follow the flow until no selection has changed over a way in p, as the package does."""
    solver = LSODA(padded.flow, 0.0, p, 50_000.0, rtol=rtol, atol=rtol, max_step=1.0)
    before, since = padded.selected(p), 0.0
    while True:
        solver.step()
        selected = padded.selected(solver.y)
        if (selected != before).any():
            before, since = selected, solver.t
        on_selected = np.where(selected, np.exp(padded.attention(solver.y)), 0).sum(axis=1)
        if solver.t - since > way and on_selected.min() > 0.99:
            return solver.y


def start(seed, dimension, value):
    """Return data of Assumption 1, and the estimator before its training of p."""
    X, y = make_token_classification(
        120,
        n_relevant_per_class=5,
        n_irrelevant=50,
        document_length=10,
        delta=0,
        single_relevant=True,
        random_state=seed,
    )
    X = X.astype(np.float64)
    step_size = value / np.abs(one_step_embeddings(X, y, step_size=1.0).shifts).max()
    model = OneStepClassifier(embedding_dim=dimension, step_size=step_size, random_state=seed)
    return X, y, model


def in_the_span(E, p, v):
    """Return E, p and v in a basis of the rows of E alone: all that the flow sees, V numbers."""
    basis = np.linalg.qr(E.T)[0]
    return E @ basis, p @ basis, v @ basis


@pytest.mark.filterwarnings("ignore:step_size.*(saturates|drowned)")
@pytest.mark.parametrize(
    ("dimension", "value", "seed", "share"),
    [
        (4096, 1.0, 0, 1.0),
        (4096, 2.0, 0, 0.5),
        (4096, 4.0, 0, 0.5),
        (4096, 8.0, 0, 1.0),
        (1024, 2.0, 2, 1.0),
        (256, 2.0, 11, 0.5),
        (1024, 0.125, 207, 107 / 120),
        (256, 0.125, 204, 0.8),
    ],
)
def test_the_flow_selects_what_an_independent_integrator_selects(
    dimension, value, seed, share, monkeypatch
):
    """And so does it at a tenth of the tolerance: no step size is left in the result."""
    X, y, model = start(seed, dimension, value)
    step = one_step_embeddings(
        X, y, step_size=model.step_size, embedding_dim=dimension, random_state=seed
    )
    E, p, v = in_the_span(step.embeddings, step.cls_embedding, step.output_vectors[0])
    padded = Padded(X, y, E, v)
    reached = lsoda(padded, p, rtol=1e-6)
    expected = sp.csr_matrix(X.shape, dtype=bool).tolil()
    rows, places = np.nonzero(padded.selected(reached))
    expected[rows, padded.tokens[rows, places]] = True
    relevant = np.zeros(X.shape[1], dtype=bool)
    relevant[:10] = True
    assert np.mean(expected[:, relevant].sum(axis=1) > 0) == share

    for tolerance in (1e-3, 1e-4):
        monkeypatch.setattr(_gradient_flow, "TOLERANCE", tolerance)
        model.fit(X, y)
        assert (model.select_tokens(X) != expected.tocsr()).nnz == 0


@pytest.mark.filterwarnings("ignore:step_size.*saturates")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("value", "certified"), [(1.0, False), (2000.0, True)])
def test_the_certificate_and_what_it_promises(value, certified):
    """The loss never rises, so that no document is ever wrong once n L is below log 2."""
    X, y, model = start(0, 1024, value)
    model.set_params(max_iter=5).fit(X, y)
    assert (np.diff(model.loss_curve_) <= 1e-12).all()
    assert (len(y) * model.loss_curve_[0] < np.log(2)) == certified
    assert model.score(X, y) == 1 or not certified
