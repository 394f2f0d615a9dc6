"""What displays read: a fitted classifier, the names of its columns, and documents."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..._base import BaseAttentionClassifier, checked_documents
from ..feature_origins import feature_origins, split_pipeline

Array = NDArray[np.float64]


def named_classifier(estimator: Any) -> tuple[BaseAttentionClassifier, NDArray[np.object_]]:
    """Return the fitted classifier that an estimator ends in, and the names of its columns."""
    _, classifier = split_pipeline(estimator)
    try:
        return classifier, feature_origins(estimator).columns.names
    except ValueError:  # its columns cannot be traced to tokens, or it is not fitted
        return classifier, feature_origins(classifier).columns.names


def token_matrix(estimator: Any, X: Any) -> sp.csr_array:
    """Return documents as the classifier's input (n_documents, n_tokens), without zeros."""
    steps, classifier = split_pipeline(estimator)
    for _, transformer in steps:
        X = transformer.transform(X)
    X = sp.csr_array(checked_documents(classifier, X), dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def documents_with(X: sp.csr_array) -> NDArray[np.intp]:
    """Return the number of rows (n_columns,) in which a matrix without stored zeros has entries."""
    return np.bincount(X.indices, minlength=X.shape[1])
