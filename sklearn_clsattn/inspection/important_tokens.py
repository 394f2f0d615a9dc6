"""Important tokens of a fitted model, by their effects on the decisions for documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._bags import Bags, multiplied
from .._base import BaseAttentionClassifier, checked_documents, fitted_attention
from .._core.fitted import FittedAttention
from .._types import Array
from ..text._context_vectorizer import ContextVectorizer, bags_of
from .feature_origins import feature_origins, split_pipeline, without_name_warnings


@dataclass(frozen=True)
class ClassTokens:
    """A class's most important tokens, with their effects, and its most selected ones.

    Selected tokens, which have the highest attention in a document, come with document counts.
    """

    label: Any
    important: list[tuple[str, float]]
    selected: list[tuple[str, int]]


@dataclass(frozen=True, eq=False)
class ReadDocuments:
    """Documents as input of a classifier, by words if words have character n-grams."""

    classifier: BaseAttentionClassifier
    fitted: Any  # the model of these tokens, a FittedAttention or FittedNetwork
    names: NDArray[np.object_]  # (n_tokens,)
    X: sp.csr_array  # (n_documents, n_tokens), without zeros

    @property
    def effects(self) -> Array:
        """The effects of tokens on the decision for each class, (n_classes, n_tokens).

        An effect is the standard deviation, over the documents, of what the token adds to the
        decision for the class minus its mean over the classes (with several labels, to that for
        each label). It is negative if the token opposes the class.
        With an MLP, whose decisions are not sums, attention times value is used instead.
        """
        if self.fitted.n_layers == 1 or self.fitted.mlp:
            several = self.classifier.multilabel_
            centred = self.values if several else self.values - self.values.mean(axis=0)
            attention = sp.csr_array(self.fitted.attention(self.X))
            return np.asarray(centred * np.sqrt(mean_variance_axis(attention, axis=0)[1]) + 0.0)
        of_classes = self.fitted.contributions(self.X)
        mean = sum(one.data for one in of_classes) / len(of_classes) if len(of_classes) > 1 else 0.0
        effects = []
        for one in of_classes:
            centred = sp.csr_array((one.data - mean, one.indices, one.indptr), one.shape)
            means, variances = mean_variance_axis(centred, axis=0)
            effects.append(np.sign(means) * np.sqrt(variances))
        return values_by_class(effects[0] if len(effects) == 1 else np.array(effects))

    @property
    def values(self) -> Array:
        """The tokens' values for each class, (n_classes, n_tokens)."""
        values = self.fitted.values
        return values_by_class(values[:, 0] if values.shape[1] == 1 else values.T)

    @property
    def selection_counts(self) -> NDArray[np.intp]:
        """Number of documents in which each token is selected, (n_tokens,)."""
        return documents_with(self.fitted.selected(self.X))


def read_documents(estimator: Any, documents: Any) -> ReadDocuments:
    """Return documents as input of the classifier at the end of a fitted estimator."""
    classifier, names = named_classifier(estimator)
    with without_name_warnings():
        *before, last = [transformer for _, transformer in split_pipeline(estimator)[0]] or [None]
        for transformer in before:
            documents = transformer.transform(documents)
        if isinstance(last, FrozenEstimator):
            last = last.estimator
        if isinstance(last, ContextVectorizer):
            documents = bags_of(last, documents)
        elif last is not None:
            documents = last.transform(documents)
        X = checked_documents(classifier, documents)
    fitted = fitted_attention(classifier)
    if isinstance(X, Bags) and type(fitted) is FittedAttention:
        X, fitted, names = X.left, fitted.of_units(X.right), X.units
    X = sp.csr_array(multiplied(X), dtype=np.float64, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return ReadDocuments(classifier, fitted, names, X)


def class_tokens(read: ReadDocuments, *, n_top: int = 10) -> list[ClassTokens]:
    """Return, for each class, the most important and the most selected tokens of documents."""
    effects, counts = read.effects, read.selection_counts
    speaks_for = read.values.argmax(axis=0)
    selected = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    tokens = []
    for k, label in enumerate(read.classifier.classes_.tolist()):
        best = np.argsort(-effects[k], kind="stable")[:n_top]
        of_class = selected[speaks_for[selected] == k][:n_top].tolist()
        important = [(str(read.names[s]), float(effects[k, s])) for s in best if effects[k, s] > 0]
        most = [(str(read.names[s]), int(counts[s])) for s in of_class]
        tokens.append(ClassTokens(label, important, most))
    return tokens


def named_classifier(estimator: Any) -> tuple[BaseAttentionClassifier, NDArray[np.object_]]:
    """Return the fitted classifier that an estimator ends in, and the names of its columns."""
    _, classifier = split_pipeline(estimator)
    try:
        return classifier, feature_origins(estimator).columns.names
    except ValueError:  # its columns cannot be traced to tokens, or it is not fitted
        return classifier, feature_origins(classifier).columns.names


def documents_with(X: sp.csr_array) -> NDArray[np.intp]:
    """Return the number of rows (n_columns,) in which a matrix without stored zeros has entries."""
    return np.bincount(X.indices, minlength=X.shape[1])


def values_by_class(values: ArrayLike) -> Array:
    """Return values (n_classes, n_tokens); for two classes, expand those of the second."""
    rows = np.asarray(values, dtype=np.float64)
    return np.stack([-rows, rows]) + 0.0 if rows.ndim == 1 else rows  # no negative zeros
