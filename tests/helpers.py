"""Small things that several test files share."""

import sys
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.documents import Documents

ARRAYS = ["attention_scores_", "token_values_", "intercept_", "token_importance_", "loss_curve_"]


# Where forks are safe, processes of tests are forked from one that has imported what takes seconds.
START_METHOD = "forkserver" if sys.platform == "linux" else "spawn"


def process_context():
    """Return a context whose processes need not import everything again."""
    context = get_context(START_METHOD)
    if START_METHOD == "forkserver":
        from multiprocessing import forkserver  # of POSIX systems alone

        imported = ["dask", "datasets"]
        context.set_forkserver_preload([f"sklearn_clsattn.{name}" for name in imported])
        forkserver.ensure_running()
    return context


def data(n_classes=2, seed=0, n_documents=60, n_tokens=20):
    """Return counts in which the first tokens tell the classes apart, and labels.

    The last document is empty, and the last token is in no document.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_documents) % n_classes
    means = np.full((n_documents, n_tokens), 0.4)
    means[np.arange(n_documents), y] = 1.5
    X = rng.poisson(means).astype(float)
    X[-1] = 0
    X[:, -1] = 0
    return sp.csr_matrix(X), y


def settled(**parameters):
    """Return a classifier that trains until hardly anything can be gained."""
    return ClsAttentionClassifier(**{"tol": 1e-12, "max_iter": 3000, **parameters})


def assert_same_fit(one, other):
    """Require every number that was fitted to be the same to the last bit."""
    for name in ARRAYS:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def documents(X, codes, weights=None, n_classes=None):
    """Return what trainings take; every document weighs 1 if `weights` is None."""
    weights = np.ones(len(codes)) if weights is None else weights
    n_classes = int(codes.max()) + 1 if n_classes is None else n_classes
    return Documents.of(X, codes, weights, n_classes)


def weighted_and_repeated(X, codes, repeats):
    """Return documents of the weights `repeats`, and the same with each so often instead."""
    rows = np.repeat(np.arange(len(codes)), repeats)
    return documents(X, codes, repeats.astype(float)), documents(X[rows], codes[rows])


def assert_gradient(problem, x, *, h=1e-6, abs=2e-9, rel=1e-6):
    """Require every coordinate of the gradient at x to be that of finite differences."""
    _, gradient = problem(x)
    differences = torch.empty_like(x)
    for i in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[i] = h
        differences.view(-1)[i] = (problem(x + step)[0] - problem(x - step)[0]) / (2 * h)
    assert gradient.numpy() == pytest.approx(differences.numpy(), abs=abs, rel=rel)


def scipy_minimum(problem):
    """Return the value of a problem's minimum, and the point, as SciPy finds them."""
    shape = problem.start.shape

    def function(x):
        value, gradient = problem(torch.from_numpy(x).reshape(shape))
        return value, gradient.reshape(-1).numpy()

    found = scipy.optimize.minimize(
        function,
        problem.start.reshape(-1).numpy(),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    return found.fun, torch.from_numpy(found.x).reshape(shape)


def centred(outputs):
    """Return outputs less their mean over classes, which says nothing."""
    return outputs - outputs.mean(axis=1, keepdims=True) if outputs.shape[1] > 1 else outputs
