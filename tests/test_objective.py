"""The loss on bags of tokens and the objective: against slow models, and their laws.

These are private. What users see of them is tested through estimators, in all other files.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
import reference
import scipy.sparse as sp
import torch
from helpers import assert_gradient, core_documents, targets
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from reference import PaddedDocuments, counts, slow_log_odds
from torch.testing import assert_close

from sklearn_clsattn._bags import Bags, TokenVectors
from sklearn_clsattn._targets import Targets
from sklearn_clsattn.training.documents import Documents
from sklearn_clsattn.training.earlier_batches import Memory
from sklearn_clsattn.training.leave_one_out import evidence_without, left_out
from sklearn_clsattn.training.objective import CLS_PENALTY, AttentionObjective, RememberedLoss
from sklearn_clsattn.training.output_loss import output_loss, target_array
from sklearn_clsattn.training.regularization_path import AttentionPath
from sklearn_clsattn.training.statistics import Scaling, TokenTotals

HAS_KERNELS = torch.backends.mkl.is_available()
BACKENDS = ["torch", "scipy"] if HAS_KERNELS else ["scipy"]
N_OUTPUTS = pytest.mark.parametrize("n_outputs", [1, 3], ids=["K=2", "K=3"])
CLS = pytest.mark.parametrize("cls_weight", [2.5, 0.0], ids=["cls", "no cls"])
DTYPES = {np.float32: torch.float32, np.float64: torch.float64}


# The loss and the objective


@dataclass(frozen=True)
class Problem:
    """Documents, the units of training, and a point: a row per token and one of <cls>."""

    X: sp.csr_matrix
    codes: np.ndarray
    weights: np.ndarray
    scaling: Scaling
    x: torch.Tensor

    @classmethod
    def drawn(cls, n_outputs=1, cls_weight=2.5, *, X=None, seed=0, spread=1.0, size=1.0):
        """Draw one for some documents, in numbers that single precision has."""
        X = counts(seed) if X is None else X
        (n_documents, n_tokens), rng = X.shape, np.random.default_rng(seed + 100)
        x = rng.normal(size=(n_tokens + 1, 1 + n_outputs))
        x[:-1, 0] *= spread
        x[-1, 0] *= bool(cls_weight)
        x[:, 1:] *= size
        units = rng.normal(size=n_tokens), np.exp(rng.normal(size=(n_tokens, n_outputs)))
        x, *units = (array.astype(np.float32).astype(float) for array in (x, *units))
        codes = rng.integers(0, max(2, n_outputs), n_documents)
        weights = rng.uniform(0.2, 3.0, n_documents)
        return cls(X, codes, weights, Scaling(*units, cls_weight, 1.0), torch.from_numpy(x))

    @property
    def targets(self):
        return torch.from_numpy(target_array(self.given.targets))

    @property
    def given(self):
        bags = self.X if isinstance(self.X, Bags) else Bags(sp.csr_array(self.X))
        n_classes = max(2, self.x.shape[1] - 1)
        return Documents(bags, targets(self.codes, n_classes), self.weights)

    def loss(self, dtype=np.float64, backend="scipy"):
        with patch.object(torch.backends.mkl, "is_available", lambda: backend == "torch"):
            return self.given.attention_loss(dtype, "cpu", self.scaling.cls_weight)

    def objective(self, dtype=np.float64, backend="scipy", C=0.7, attention_C=0.3):
        loss, statistics = self.loss(dtype, backend), self.given.statistics
        return AttentionObjective(loss, statistics, self.scaling, C=C, attention_C=attention_C)


def words_of_letters(X, seed):
    """Return documents of these words, each of which has its own columns."""
    letters = counts(seed + 1, X.shape[1], 12)
    names = np.array([f"word{at}" for at in range(X.shape[1])], dtype=object)
    return Bags(sp.csr_array(X), sp.csr_array(letters), names)


def assert_same(result, expected, rtol=1e-9, atol=1e-11):
    """Compare two pairs of loss and gradient."""
    assert result[0] == pytest.approx(expected[0], rel=rtol, abs=atol)
    assert_close(result[1].double(), expected[1].double(), rtol=rtol, atol=atol)


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(
        ["counts", "weights", "scores far apart", "certain", "empty", "zeros", "words of letters"]
    ),
    constant=st.sampled_from([0.0, -700.0, 3.0, 300.0]),
    n_outputs=st.sampled_from([1, 3]),
    cls_weight=st.sampled_from([2.5, 0.0]),
    dtype=st.sampled_from([*DTYPES]),
    backend=st.sampled_from(BACKENDS),
)
def test_objective_and_gradient_are_those_of_the_padded_model(
    seed, kind, constant, n_outputs, cls_weight, dtype, backend
):
    """With a constant on all scores, as far as digits reach, and documents that weigh nothing."""
    X = counts(seed) if kind != "empty" else sp.csr_matrix((4, 3))
    rng = np.random.default_rng(seed)
    if kind in ("weights", "zeros"):
        X.data *= rng.uniform(0.1, 2.0, len(X.data)) * (kind == "weights")
    whole = X
    if kind == "words of letters":
        X = words_of_letters(X, seed)
        whole = X.matrix()
    spread = 5.0 if kind == "scores far apart" else 1.0
    size = 1e4 if kind == "certain" else 1.0
    problem = Problem.drawn(n_outputs, cls_weight, X=X, seed=seed, spread=spread, size=size)
    weights = problem.weights * (rng.random(X.shape[0]) < 0.8)
    weights[0] = 1.0
    start = problem.scaling.starting_scores + constant * (dtype == np.float64)
    units = replace(problem.scaling, starting_scores=start)
    problem = replace(problem, weights=weights, scaling=units)
    loss, gradient = problem.objective(dtype, backend)(problem.x.to(DTYPES[dtype]))
    assert gradient.dtype == DTYPES[dtype]
    penalties = *(1 / (C * weights.sum()) for C in (0.7, 0.3)), CLS_PENALTY
    settings = problem.targets, torch.from_numpy(weights), problem.scaling, penalties
    expected = reference.objective(problem.x, PaddedDocuments.from_counts(whole), *settings)
    size = max(1.0, float(expected[1].abs().max()))
    close = (1e-9, 1e-10) if dtype == np.float64 else (2e-5, 1e-5 * size)
    assert_same((loss, gradient), expected, *close)


@N_OUTPUTS
@CLS
@pytest.mark.parametrize("backend", BACKENDS)
def test_curvature_is_that_of_second_differences(backend, n_outputs, cls_weight):
    problem, h = Problem.drawn(n_outputs, cls_weight), 1e-3
    loss = problem.loss(backend=backend)
    found = loss.curvature(problem.x)
    for token, k in np.ndindex(*found.shape):  # the last row has the intercepts
        step = torch.zeros_like(problem.x)
        step[token, 1 + k] = h
        values = [loss(problem.x + factor * step)[0] for factor in (-1, 0, 1)]
        expected = (values[0] - 2 * values[1] + values[2]) / h**2
        assert float(found[token, k]) == pytest.approx(expected, rel=1e-3, abs=1e-3)


@N_OUTPUTS
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_bound_of_words_of_letters_is_near_that_of_the_whole(backend, n_outputs):
    words = words_of_letters(counts(0), 0)
    bounds = []
    for X in (words, words.matrix()):
        problem = Problem.drawn(n_outputs, X=X)
        bounds.append(problem.loss(backend=backend).bound(problem.x))
    approximate, exact = bounds
    assert_allclose(approximate[-1], exact[-1], rtol=1e-9)
    assert 0.5 < float((approximate / exact)[:-1].nanmedian()) < 2.0


@CLS
def test_where_the_mass_of_a_document_underflows_the_loss_is_infinite(cls_weight):
    """A line search takes that as too far, and tries a shorter step."""
    problem = Problem.drawn(1, cls_weight, seed=0, X=counts(0, empty=False), spread=1e4)
    assert problem.loss()(problem.x)[0] == np.inf


# Targets of every kind, and what is known before training


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0, 1e3])
def test_the_loss_of_outputs_of_any_size(size):
    """Against cross entropies in long double, with targets of 0, 1 and between."""
    rng = np.random.default_rng(0)
    outputs = size * rng.normal(size=(40, 3))
    P = rng.dirichlet(np.ones(3), 40)
    P[:10] = np.eye(3)[rng.integers(0, 3, 10)]
    several = (P > 0.3).astype(float)
    weights, wide = rng.uniform(size=40), outputs.astype(np.longdouble)

    loss, derivative = output_loss(Targets(np.arange(3), P), weights)(torch.from_numpy(outputs))
    top = wide.max(axis=1, keepdims=True)
    logs = top + np.log(np.exp(wide - top).sum(axis=1, keepdims=True))
    expected = logs[:, 0] - (P * wide).sum(axis=1)
    slopes = weights[:, None] * (np.exp(wide - logs) - P)
    assert loss == pytest.approx(float(weights @ expected), rel=1e-9)
    assert_allclose(derivative, slopes.astype(float), atol=1e-12)

    labels = Targets(np.arange(3), several, multilabel=True)
    loss, derivative = output_loss(labels, weights)(torch.from_numpy(outputs))
    expected = (np.logaddexp(0, wide) - several * wide).sum(axis=1)
    slopes = weights[:, None] * (1 / (1 + np.exp(-wide)) - several)
    assert loss == pytest.approx(float(weights @ expected), rel=1e-9)
    assert_allclose(derivative, slopes.astype(float), atol=1e-12)


@pytest.mark.parametrize("kind", ["two classes", "probabilities", "several labels", "vectors"])
def test_the_gradient_is_that_of_differences(kind):
    """With the prior mean, of naive Bayes without each document, in it."""
    X, rng, options = counts(0, 30, 15), np.random.default_rng(0), {}
    codes = np.arange(30) % 3
    P = 0.5 * np.eye(3)[codes] + 0.5 * rng.dirichlet(np.ones(3), 30)
    given = Targets(np.arange(3), P)
    if kind == "two classes":
        given = targets(codes % 2)
    elif kind == "several labels":
        given = Targets(np.arange(3), (P > 0.3).astype(float), multilabel=True)
    elif kind == "vectors":
        vectors = rng.normal(size=(15, 3))
        vectors[::5] = 0.0
        options = {"vectors": TokenVectors.from_rows(vectors)}
    d = Documents(Bags(sp.csr_array(X)), given, rng.uniform(0.5, 2.0, 30))
    path = AttentionPath(d, np.float64, "cpu", attention_C=0.1, **options)
    if kind == "vectors":
        path.set_vector_scale(1.5)
    objective = path.set_C(0.7)
    x = objective.start + torch.from_numpy(rng.normal(size=tuple(objective.start.shape)))
    free = torch.ones_like(x)
    free[15:-1, 0] = 0.0  # vectors have no part in scores
    assert_gradient(objective, x * free, free)
    assert (objective.curvature(x * free) > 0).all()


@CLS
def test_the_curvature_by_vectors_is_exact_where_training_starts(cls_weight):
    """There outputs are alike, and the vectors' rotation has left no other curvature."""
    X, vectors = counts(0, 30, 15), np.random.default_rng(0).normal(size=(15, 3))
    d = core_documents(X, np.arange(30) % 2)
    how = {"attend_cls": bool(cls_weight), "vectors": TokenVectors.from_rows(vectors)}
    path, h = AttentionPath(d, np.float64, "cpu", attention_C=0.1, **how), 1e-3
    path.set_vector_scale(1.5)
    objective = path.set_C(0.7)
    start = objective.start
    for row in (-4, -3, -2):  # those of w
        step = torch.zeros_like(start)
        step[row, 1] = h
        below, here, above = (objective(start + factor * step)[0] for factor in (-1, 0, 1))
        curvature = float(objective.curvature(start)[row, 1])
        assert curvature == pytest.approx((below - 2 * here + above) / h**2, rel=1e-5)


# Of 7 units: one column alone, two, none, and no columns at all; others in several units.
UNITS_WITH_COLUMNS = np.array(
    [
        [1.0, 0, 0, 0, 0, 0.5, 0, 0],
        [0, 2.0, 1.5, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0.3, 0.6, 0],
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1.0, 0, 0, 0.3, 0.3],
        [0, 0, 0, 0, 1.0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0.3, 0, 0.3],
    ]
)


@pytest.mark.parametrize("kind", ["counts", "bags"])
@pytest.mark.parametrize("n_labels", [2, 4, "several"])
def test_naive_bayes_leaves_each_document_and_its_copies_out(n_labels, kind):
    """Some documents stand several times, with the same class or others, and some weigh 0."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(counts(0, 24, 7))
    X = sp.csr_array(sp.vstack([X, X[:5], X[3:9], X[3:4]]))
    dense = X.toarray()
    bags = Bags(X)
    if kind == "bags":
        bags = Bags(X, sp.csr_array(UNITS_WITH_COLUMNS), np.arange(7).astype(object))
        dense = dense @ UNITS_WITH_COLUMNS
    weights = rng.uniform(0.5, 2.0, 36)
    if n_labels == "several":
        Y = rng.integers(0, 2, (36, 3))
        given = Targets(np.arange(3), Y.astype(float), multilabel=True)
        problems = [(labels, 2) for labels in Y.T]
    else:
        weights[[2, 7]] = 0.0
        codes = np.append(np.arange(24) % n_labels, rng.integers(n_labels, size=12))
        given = targets(codes, n_labels)
        problems = [(codes, n_labels)]
    documents = Documents(bags, given, weights)
    totals = TokenTotals.from_statistics(documents.statistics)
    found = evidence_without(bags, *left_out(given, weights, documents.copies), totals)
    for i in np.flatnonzero(weights):
        row = dense[i]
        odds = [slow_log_odds(sp.csr_array(dense), codes, weights, n, i) for codes, n in problems]
        assert_allclose(found[i], np.vstack(odds) @ row, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("cls_weight", [0.0, 0.4])
def test_remembered_losses_are_their_expansion_whatever_the_weight_of_cls(cls_weight):
    rng = np.random.default_rng(0)
    center, gradient, change = rng.normal(size=(3, 6, 2))
    memory = Memory(center, 3.0, gradient, rng.uniform(size=(6, 2)), bool(cls_weight))
    matrix = center + change
    matrix[-1, 0] -= np.log(cls_weight) if cls_weight else 0.0
    loss = SimpleNamespace(cls_weight=cls_weight, device="cpu")
    found = RememberedLoss(memory, loss)(torch.from_numpy(matrix))
    expected = 3.0 + (gradient * change + memory.curvature * change**2 / 2).sum()
    assert found[0] == pytest.approx(expected)
    assert_allclose(found[1], gradient + memory.curvature * change)
