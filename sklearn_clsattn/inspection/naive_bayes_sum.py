"""The decisions of naive Bayes as sums over tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB

from .._types import Array, Numbers
from .linear_sum import LinearSum


@dataclass(frozen=True, eq=False)
class NaiveBayesSum(LinearSum):
    """Naive Bayes after steps: a token adds its log-probability times its weight.

    Of two classes the differences count, of more those to the mean over the classes.
    """

    @classmethod
    def of(cls, steps: list[Any], classifier: Any) -> Self | None:
        """Return the sum of a fitted classifier, None if it is no naive Bayes of counts."""
        if not isinstance(classifier, MultinomialNB | ComplementNB | BernoulliNB):
            return None
        of_tokens = classifier.feature_log_prob_
        constants = classifier.class_log_prior_
        if isinstance(classifier, ComplementNB):  # without the prior
            constants = np.zeros(len(of_tokens))
        if isinstance(classifier, BernoulliNB):
            constants = constants + _of_absence(of_tokens).sum(axis=1)
        return cls(steps, classifier, [of_tokens], constants)

    def _weights(self, X: sp.csr_array) -> sp.csr_array:
        """Return the weights of tokens: 1 in a BernoulliNB."""
        if isinstance(self.classifier, BernoulliNB) and self.classifier.binarize is not None:
            X.data = (X.data > self.classifier.binarize).astype(np.float64)
        return X

    def _values(self, columns: Numbers) -> Array:
        """Return the values of some tokens, (n_columns, n_outputs)."""
        of_tokens = self.classifier.feature_log_prob_[:, columns]
        if isinstance(self.classifier, BernoulliNB):
            of_tokens = of_tokens - _of_absence(of_tokens)
        return self._by_output(of_tokens.T)

    def _by_output(self, by_row: Array) -> Array:
        """Return numbers for outputs (..., n_outputs), of those for classes."""
        if by_row.shape[-1] == 2:
            return by_row[..., [1]] - by_row[..., [0]]
        return by_row - by_row.mean(axis=-1, keepdims=True)


def _of_absence(of_tokens: Array) -> Array:
    """Return the log-probabilities of the absence of tokens, of those of their presence."""
    return np.log1p(-np.exp(of_tokens))
