"""Documents as the private core takes them, for the tests that may know it."""

import numpy as np

from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._targets import Targets


def targets(codes, n_classes=None):
    """Return the targets of documents with one label each, of classes named 0, 1, 2, ..."""
    return Targets(np.arange(n_classes or int(np.max(codes)) + 1), np.asarray(codes))


def documents(X, codes, weights=None, n_classes=None):
    """Return what trainings take: every document weighs 1 if `weights` is None."""
    weights = np.ones(len(codes)) if weights is None else weights
    return Documents.from_arrays(X, targets(codes, n_classes), weights)
