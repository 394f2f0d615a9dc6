"""Small things that the tests of the classifier share."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sklearn_clsattn import ClsAttentionClassifier

ARRAYS = ["attention_scores_", "token_values_", "intercept_", "token_importance_", "loss_curve_"]


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
