"""The interface of solvers: any fits."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from scipy.optimize import minimize

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.solvers.base import Iterate, SolverResult
from sklearn_clsattn._core.statistics import CorpusStatistics

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
SETTINGS = {"C": 1.0, "attention_C": 0.03, "max_iter": 100, "tol": 1e-3}


def documents(n_classes, n_documents=90):
    X = counts(0, n_documents, 25)
    codes = np.arange(n_documents) % n_classes
    X = X.toarray()
    X[np.arange(n_documents), codes] += np.arange(n_documents) % 3  # the classes' own tokens
    X = sp.csr_matrix(X)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, n_documents)
    statistics = CorpusStatistics.of(X, codes, n_classes, weights)
    return Documents(X, codes, weights, statistics)


def lbfgs_of_scipy(function, start, *, is_converged, max_iter, inverse_curvature=None):
    """SciPy's L-BFGS-B as a solver; it has no preconditioner."""
    result = SolverResult(start, [])

    def evaluate(flat):
        value, gradient = function(torch.from_numpy(flat.copy()).reshape(start.shape))
        return value, gradient.numpy().ravel()

    def accept(flat):
        x = torch.from_numpy(flat.copy()).reshape(start.shape)
        value, gradient = function(x)
        result.n_iter += bool(result.values)
        result.x = x
        result.values.append(value)
        if is_converged(Iterate(result.n_iter, x, value, gradient)):
            result.status = "converged"
            raise StopIteration

    try:
        accept(start.numpy().ravel())
        options = {"maxiter": max_iter, "ftol": 0, "gtol": 0}
        method = "L-BFGS-B"
        minimize(
            evaluate,
            start.numpy().ravel(),
            jac=True,
            method=method,
            callback=accept,
            options=options,
        )
    except StopIteration:
        pass
    return result


@CLASSES
def test_another_solver_reaches_the_same_model(n_classes):
    """A solver is one function: SciPy's stands in for ours, and stops by the same gap."""
    settings = {**SETTINGS, "tol": 1e-9, "max_iter": 2000}
    ours = fit_attention(documents(n_classes), **settings)
    other = fit_attention(documents(n_classes), solver=lbfgs_of_scipy, **settings)
    assert ours.status == other.status == "converged"
    assert other.attributes["optimality_gap_"] <= 1e-9
    assert len(other.loss_curve) == other.n_iter + 1
    assert other.loss_curve[-1] == pytest.approx(ours.loss_curve[-1], abs=2e-9)
    assert_allclose(other.model.scores, ours.model.scores, atol=1e-3)
    assert_allclose(other.model.values, ours.model.values, atol=1e-2)


def test_fit_is_the_core_on_validated_documents():
    """What the estimator stores is what `fit_attention` returns, so the above is about it."""
    whole = documents(3)
    options = {"C": SETTINGS["C"], "tol": SETTINGS["tol"], "sublinear_counts": False}
    model = ClsAttentionClassifier(**options).fit(whole.X, whole.codes, whole.weights)
    expected = fit_attention(whole, **SETTINGS)
    assert model.n_iter_ == expected.n_iter
    assert_array_equal(model.attention_scores_, expected.model.scores)
