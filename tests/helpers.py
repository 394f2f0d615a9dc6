"""Small things that several test files share."""

import sys
import warnings
from functools import cache
from multiprocessing import get_context

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn.paper import AttentionNetworkClassifier

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


@cache
def hardly_fitted(n_classes, n_tokens, attend_cls=True):
    """Return a classifier whose arrays a test replaces."""
    y = np.arange(2 * n_classes) % n_classes
    X = np.random.default_rng(0).poisson(1.0, (len(y), n_tokens))
    return ClsAttentionClassifier(attend_cls=attend_cls, max_iter=1, tol=1e9).fit(X, y)


def network(X, y, **parameters):
    """Return a network after two epochs, of which it is not asked how well it does."""
    few = {"embedding_dim": 4, "max_iter": 2, "early_stopping": False, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return AttentionNetworkClassifier(**few, **parameters).fit(X, y)


def assert_same_fit(one, other):
    """Require every number that was fitted to be the same to the last bit."""
    for name in ARRAYS:
        assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_close_fit(one, other, tol=1e-10):
    """Require two fits to have taken the same way to the same model, up to rounding."""
    assert one.n_iter_ == other.n_iter_
    assert_array_equal(one.classes_, other.classes_)
    for name in [*ARRAYS, "C_", "cls_score_", "cls_weight_", "optimality_gap_"]:
        mine, its = getattr(one, name), getattr(other, name)
        assert_allclose(mine, its, rtol=tol, atol=tol, err_msg=name)
    assert_array_equal(one.selected_tokens_, other.selected_tokens_)
    assert_array_equal(one.selection_counts_, other.selection_counts_)


def documents(X, codes, weights=None, n_classes=None):
    """Return what trainings take: every document weighs 1 if `weights` is None."""
    weights = np.ones(len(codes)) if weights is None else weights
    return Documents.of(X, codes, weights, n_classes or int(codes.max()) + 1)
