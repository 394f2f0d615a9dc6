"""The decisions of linear classifiers as sums over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model._base import LinearClassifierMixin  # noqa: PLC2701 - no public name
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import validate_data

from .._types import Array, Numbers
from .column_names import column_names
from .terms import ByToken, Terms
from .token_positions import LocatedText, locate


class Input(NamedTuple):
    """A classifier's input, and the same as a matrix of the weights of tokens."""

    documents: Any
    X: sp.csr_array  # (n_documents, n_columns), without zeros


@dataclass(frozen=True, eq=False)
class LinearSum:
    """A linear classifier after steps: a token adds its coefficient times its weight."""

    steps: list[Any]
    classifier: Any
    coefficients: list[Any]  # matrices of n_columns, dense or CSR, one above the other
    constants: Array  # of each of their rows

    @classmethod
    def of(cls, steps: list[Any], classifier: Any) -> Self | None:
        """Return the sum of a fitted classifier, None if it is not linear."""
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

    def read(self, documents: Any) -> Input:
        """Return documents as the classifier's input."""
        for step in self.steps:
            documents = step.transform(documents)
        checked = validate_data(
            self.classifier, documents, reset=False, accept_sparse="csr", dtype=np.float64
        )
        X = self._weights(sp.csr_array(checked, copy=True))
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
            tokens=self._names[X.indices],
            weights=X.data,
            contributions=X.data[:, None] * values,
            values=values,
        )

    def by_token(self, read: Input) -> ByToken:
        """Return the classifier's input, and the coefficients."""
        return ByToken(read.X, self._values(np.arange(read.X.shape[1])), self._names)

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens."""
        return locate(self.steps[0] if self.steps else None, text, tokens)

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        """The names of the columns, (n_columns,)."""
        return column_names(self.steps, self.classifier).names

    def _weights(self, X: sp.csr_array) -> sp.csr_array:
        """Return the weights of tokens that the classifier adds."""
        return X

    def _values(self, columns: Numbers) -> Array:
        """Return the coefficients of some columns, (n_columns, n_outputs)."""
        parts = []
        for matrix in self.coefficients:
            part = matrix[:, columns]
            parts.append(part.toarray() if sp.issparse(part) else part)
        return self._by_output(np.concatenate(parts, dtype=np.float64).T)

    def _by_output(self, by_row: Array) -> Array:
        """Return numbers for outputs (..., n_outputs), of those for rows of coefficients."""
        return by_row


def _is_linear_svc(classifier: Any) -> bool:
    """Return whether a classifier is a support vector machine of two classes that is linear."""
    is_svc = isinstance(classifier, SVC | NuSVC)
    return is_svc and classifier.kernel == "linear" and len(classifier.classes_) == 2
