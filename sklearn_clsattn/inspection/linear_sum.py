"""The decisions of linear classifiers and of naive Bayes as sums over tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model._base import LinearClassifierMixin  # noqa: PLC2701 - no public name
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import validate_data

from .._types import Array, Numbers
from .terms import AfterSteps, ByToken, Terms


class Input(NamedTuple):
    """A classifier's input, and the same as a matrix of the weights of tokens."""

    documents: Any
    X: sp.csr_array  # (n_documents, n_columns), without zeros


@dataclass(frozen=True, eq=False)
class LinearSum(AfterSteps):
    """A linear classifier after steps: a token adds its coefficient times its weight.

    So does naive Bayes, whose coefficients are logarithms of probabilities.
    """

    coefficients: list[Any]  # matrices of n_columns, dense or CSR, one above the other
    intercept: Array  # (n_outputs,), of each of their rows

    @classmethod
    def of(cls, steps: list[Any], classifier: Any) -> Self | None:
        """Return the sum of a fitted classifier, None if it is neither linear nor naive Bayes."""
        if isinstance(classifier, MultinomialNB | ComplementNB | BernoulliNB):
            of_classes, of_none = _naive_bayes(classifier)
            return cls(steps, classifier, [of_classes], of_none)
        inside = [classifier]
        if isinstance(classifier, OneVsRestClassifier):
            inside = classifier.estimators_
        coefficients = []
        intercepts = []
        for one in inside:
            if not isinstance(one, LinearClassifierMixin) and not _is_linear_svc(one):
                return None
            coef = one.coef_ if sp.issparse(one.coef_) else np.atleast_2d(one.coef_)
            coefficients.append(coef)
            intercepts.append(np.broadcast_to(one.intercept_, coef.shape[0]))
        return cls(steps, classifier, coefficients, np.concatenate(intercepts).astype(np.float64))

    def read(self, documents: Any) -> Input:
        """Return documents as the classifier's input."""
        for step in self.steps:
            documents = step.transform(documents)
        checked = validate_data(
            self.classifier, documents, reset=False, accept_sparse="csr", dtype=np.float64
        )
        X = sp.csr_array(checked, copy=True)
        if isinstance(self.classifier, BernoulliNB) and self.classifier.binarize is not None:
            X.data = (X.data > self.classifier.binarize).astype(np.float64)
        X.sum_duplicates()
        X.eliminate_zeros()
        return Input(documents, X)

    def decisions(self, read: Input) -> Array:
        """Return the decisions for the classifier's input, (n_documents, n_outputs)."""
        X = read.X
        columns, places = np.unique(X.indices, return_inverse=True)
        of_used = sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(columns)))
        return np.asarray(of_used @ self._values(columns)) + self.intercept

    def probabilities(self, read: Input, decisions: Array) -> Array | None:
        """Return the probabilities of classes, or of labels, if the classifier has them."""
        if not hasattr(self.classifier, "predict_proba"):
            return None
        return np.asarray(self.classifier.predict_proba(read.documents), dtype=np.float64)

    def terms(self, read: Input) -> Terms:
        """Return the terms of the decisions for the classifier's input."""
        X = read.X
        columns, places = np.unique(X.indices, return_inverse=True)
        values = self._values(columns)[places]
        return Terms(
            indptr=X.indptr.astype(np.intp),
            tokens=self.names[X.indices],
            weights=X.data,
            contributions=X.data[:, None] * values,
            values=values,
        )

    def by_token(self, read: Input) -> ByToken:
        """Return the classifier's input, and the coefficients."""
        return ByToken(read.X, self._values(np.arange(read.X.shape[1])), self.names)

    def _values(self, columns: Numbers) -> Array:
        """Return the coefficients of some columns, (n_columns, n_outputs)."""
        parts = []
        for matrix in self.coefficients:
            part = matrix[:, columns]
            parts.append(part.toarray() if sp.issparse(part) else part)
        return np.concatenate(parts, dtype=np.float64).T


def _is_linear_svc(classifier: Any) -> bool:
    """Return whether a classifier is a support vector machine of two classes that is linear."""
    is_svc = isinstance(classifier, SVC | NuSVC)
    return is_svc and classifier.kernel == "linear" and len(classifier.classes_) == 2


def _naive_bayes(classifier: Any) -> tuple[Array, Array]:
    """Return the coefficients, (n_outputs, n_columns), and intercepts of naive Bayes.

    Of two classes the differences count, of more those to the mean over the classes.
    """
    of_tokens = classifier.feature_log_prob_
    of_none = classifier.class_log_prior_
    if isinstance(classifier, ComplementNB):  # without the prior
        of_none = np.zeros(len(of_tokens))
    if isinstance(classifier, BernoulliNB):
        of_absence = np.log1p(-np.exp(of_tokens))
        of_tokens = of_tokens - of_absence
        of_none = of_none + of_absence.sum(axis=1)
    if len(of_none) == 2:
        return of_tokens[[1]] - of_tokens[[0]], of_none[[1]] - of_none[[0]]
    return of_tokens - of_tokens.mean(axis=0), of_none - of_none.mean()
