"""The decisions of linear classifiers and naive Bayes as sums over tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model._base import LinearClassifierMixin  # noqa: PLC2701 - has no public name
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.svm import SVC, NuSVC
from sklearn.utils import check_array

from .._types import Array, Numbers
from .parts import column_names
from .terms import ByToken, Terms

# Of classifiers for which no token is a term, too: what they were made of, and their constants.
_CONSTANTS: WeakKeyDictionary[Any, tuple[Array, Array]] = WeakKeyDictionary()


class _Input(NamedTuple):
    """A classifier's input, and the same as a matrix in which tokens have their weights."""

    documents: Any
    X: sp.csr_array  # (n_documents, n_columns), without zeros


@dataclass(frozen=True, eq=False)
class LinearDecision:
    """A linear classifier after steps: a token adds its coefficient times its weight.

    Naive Bayes adds log-probabilities of tokens: of two classes their differences count, of more
    those to the mean over the classes.
    """

    steps: list[Any]
    classifier: Any
    coefficients: list[Any]  # matrices of n_columns, dense or CSR, one above the other
    constants: Array  # of each of their rows
    is_naive_bayes: bool = False

    @classmethod
    def of(cls, steps: list[Any], classifier: Any) -> Self | None:
        """Return the decision of a fitted classifier, None if it is no linear one."""
        if isinstance(classifier, MultinomialNB | ComplementNB):
            has_prior = isinstance(classifier, MultinomialNB)
            of_tokens = classifier.feature_log_prob_
            constants = classifier.class_log_prior_ if has_prior else np.zeros(len(of_tokens))
            return cls(steps, classifier, [of_tokens], constants, is_naive_bayes=True)
        if isinstance(classifier, BernoulliNB):
            of_tokens = classifier.feature_log_prob_
            constants = _bernoulli_constants(classifier)
            return cls(steps, classifier, [of_tokens], constants, is_naive_bayes=True)
        inside = [classifier]
        if isinstance(classifier, OneVsRestClassifier):
            inside = classifier.estimators_
        coefficients = []
        constants = []
        for one in inside:
            if not isinstance(one, LinearClassifierMixin) and not _is_linear_svc(one):
                return None
            coef = one.coef_ if sp.issparse(one.coef_) else np.atleast_2d(one.coef_)
            coefficients.append(coef)
            constants.append(np.broadcast_to(one.intercept_, coef.shape[0]))
        return cls(steps, classifier, coefficients, np.concatenate(constants).astype(np.float64))

    @property
    def intercept(self) -> Array:
        """The intercepts, (n_outputs,)."""
        return self._by_output(self.constants)

    def read(self, documents: Any) -> _Input:
        """Return documents as the classifier's input."""
        for step in self.steps:
            documents = step.transform(documents)
        checked = check_array(documents, accept_sparse="csr", dtype=np.float64)
        X = sp.csr_array(checked, copy=True)
        X.sum_duplicates()
        if isinstance(self.classifier, BernoulliNB) and self.classifier.binarize is not None:
            X.data = (X.data > self.classifier.binarize).astype(np.float64)
        X.eliminate_zeros()
        return _Input(documents, X)

    def decisions(self, read: _Input) -> Array:
        """Return the decisions for the classifier's input, (n_documents, n_outputs)."""
        X = read.X
        columns, places = np.unique(X.indices, return_inverse=True)
        by_used = sp.csr_array((X.data, places, X.indptr), shape=(X.shape[0], len(columns)))
        return np.asarray(by_used @ self._values(columns)) + self.intercept

    def probabilities(self, read: _Input, decisions: Array) -> Array | None:
        """Return the probabilities of classes, or labels, if the classifier has them."""
        if not hasattr(self.classifier, "predict_proba"):
            return None
        return np.asarray(self.classifier.predict_proba(read.documents), dtype=np.float64)

    def terms(self, read: _Input) -> Terms:
        """Return the terms of the decisions for the classifier's input."""
        X = read.X
        columns, places = np.unique(X.indices, return_inverse=True)
        values = self._values(columns)[places]
        return Terms(
            indptr=X.indptr.astype(np.intp),
            tokens=self._names[X.indices],
            weights=X.data,
            contributions=X.data[:, None] * values,
            values=values,
        )

    def by_token(self, read: _Input) -> ByToken:
        """Return the classifier's input, and the coefficients."""
        return ByToken(read.X, self._values(np.arange(read.X.shape[1])), self._names)

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        """The names of the columns, (n_columns,)."""
        return column_names(self.steps, self.classifier)

    def _values(self, columns: Numbers) -> Array:
        """Return the coefficients of some columns, (n_columns, n_outputs)."""
        parts = []
        for matrix in self.coefficients:
            part = matrix[:, columns]
            parts.append(part.toarray() if sp.issparse(part) else part)
        rows = np.concatenate(parts, dtype=np.float64)
        if isinstance(self.classifier, BernoulliNB):
            rows -= _of_absent(rows)
        return self._by_output(rows.T)

    def _by_output(self, by_row: Array) -> Array:
        """Return numbers for outputs (..., n_outputs), of those for rows of coefficients."""
        if not self.is_naive_bayes:
            return by_row
        if by_row.shape[-1] == 2:
            return by_row[..., [1]] - by_row[..., [0]]
        return by_row - by_row.mean(axis=-1, keepdims=True)


def _is_linear_svc(classifier: Any) -> bool:
    """Return whether a classifier is a support vector machine of two classes that is linear."""
    is_svc = isinstance(classifier, SVC | NuSVC)
    return is_svc and classifier.kernel == "linear" and len(classifier.classes_) == 2


def _of_absent(of_tokens: Array) -> Array:
    """Return the log-probabilities of the absence of tokens, of those of their presence."""
    return np.log1p(-np.exp(of_tokens))


def _bernoulli_constants(classifier: BernoulliNB) -> Array:
    """Return the log-probabilities of no token by class, computed once for a fitted classifier."""
    of_tokens = classifier.feature_log_prob_
    if classifier not in _CONSTANTS or _CONSTANTS[classifier][0] is not of_tokens:
        of_no_token = classifier.class_log_prior_ + _of_absent(of_tokens).sum(axis=1)
        _CONSTANTS[classifier] = of_tokens, of_no_token
    return _CONSTANTS[classifier][1]
