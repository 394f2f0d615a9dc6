"""The fitted model that a display draws: its classifier, its tokens' names, its matrices.

Names are those of :func:`~sklearn_clsattn.inspection.trace.trace`, as in explanations. What
cannot be traced is drawn all the same, its tokens by the names that the last step gives its
columns (those of a factorisation, say) or, as after a hashing vectorizer, by number.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._classifier import ClsAttentionClassifier
from ..._validation import check_non_negative
from ..trace import trace


@dataclass(frozen=True)
class DrawnModel:
    """A fitted model, taken apart for drawing.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        The fitted classifier.
    token_names : ndarray of shape (n_tokens,)
        Names of its columns.
    transformers : list of transformer
        What leads from documents to its columns, in order.
    """

    classifier: ClsAttentionClassifier
    token_names: NDArray[np.object_]
    transformers: list[Any]

    def token_matrix(self, X: Any) -> sp.csr_array:
        """Return documents as the classifier gets them, every entry stored once.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts
            Documents, as the model takes them. They are not changed.

        Returns
        -------
        X : csr_array of shape (n_documents, n_tokens)
            Token counts or weights.

        Raises
        ------
        ValueError
            If they are texts for a classifier without a vectorizer, or do not fit it.
        """
        if not self.transformers and _are_texts(X):
            raise ValueError(
                "Expected a token matrix of shape (n_documents, "
                f"{self.classifier.n_features_in_}), got texts: pass the fitted Pipeline of "
                "vectorizer and classifier, or vectorize them."
            )
        for transformer in self.transformers:
            X = transformer.transform(X)
        X = validate_data(
            self.classifier, X, accept_sparse="csr", accept_large_sparse=True, reset=False
        )
        check_non_negative(X, self.classifier)
        if not sp.issparse(X):
            return sp.csr_array(np.asarray(X, dtype=np.float64))
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return sp.csr_array(X)


def drawn_model(estimator: Any) -> DrawnModel:
    """Take a fitted model apart for drawing.

    Parameters
    ----------
    estimator : ClsAttentionClassifier, Pipeline, or a search over one
        A fitted estimator.

    Returns
    -------
    model : DrawnModel
        What is drawn.

    Raises
    ------
    TypeError
        If there is no :class:`~sklearn_clsattn.ClsAttentionClassifier` at its end.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection.displays.drawn_model import drawn_model
    >>> hashing = HashingVectorizer(n_features=4, alternate_sign=False)
    >>> model = make_pipeline(hashing, ClsAttentionClassifier())
    >>> drawn_model(model.fit(["good fun", "bad plot"], [1, 0])).token_names.tolist()
    ['0', '1', '2', '3']
    """
    try:
        traced = trace(estimator)
    except NotFittedError:
        raise
    except ValueError:  # its columns cannot be followed
        classifier, transformers = _at_the_end(estimator)
        names = _own_names(transformers)
    else:
        classifier, transformers = traced.classifier, traced.transformers
        names = traced.columns.names
        if not transformers:
            names = getattr(classifier, "feature_names_in_", None)
    check_is_fitted(classifier)
    if names is None or len(names) != classifier.n_features_in_:
        names = np.arange(classifier.n_features_in_)
    return DrawnModel(
        classifier, np.array([str(name) for name in names], dtype=object), transformers
    )


@contextmanager
def names_checked() -> Iterator[None]:
    """Let a matrix without names into a model that was fitted with them.

    :meth:`DrawnModel.token_matrix` has compared the names, and sparse matrices cannot carry them.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _at_the_end(estimator: Any) -> tuple[ClsAttentionClassifier, list[Any]]:
    """Return the classifier of what has one at its end, and the steps before it."""
    transformers: list[Any] = []
    while not isinstance(estimator, ClsAttentionClassifier):
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
            continue
        before = [step for _, step in estimator.steps[:-1]]
        transformers += [step for step in before if step not in (None, "passthrough")]
        estimator = estimator.steps[-1][1]
    return estimator, transformers


def _own_names(transformers: list[Any]) -> Any:
    """Return the names that steps give their columns, None where one has none."""
    # Steps of pipelines within pipelines may have the same name.
    steps = [(str(place), step) for place, step in enumerate(transformers)]
    try:
        return Pipeline(steps).get_feature_names_out()
    except (AttributeError, ValueError):  # a hashing vectorizer and the like say so in either way
        return None


def _are_texts(X: Any) -> bool:
    if isinstance(X, str):
        return True
    if sp.issparse(X) or not hasattr(X, "__len__") or getattr(X, "ndim", 1) != 1:
        return False
    return any(isinstance(document, str) for document in X)
