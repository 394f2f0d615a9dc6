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
            return self._effects_of_values()
        return self._effects_of_contributions()

    def _effects_of_values(self) -> Array:
        """Return the effects (n_classes, n_tokens) of attention times value."""
        values = self.values
        if not self.classifier.multilabel_:
            values = values - values.mean(axis=0)
        attention = sp.csr_array(self.fitted.attention(self.X))
        _, variances = mean_variance_axis(attention, axis=0)
        return np.asarray(values * np.sqrt(variances) + 0.0)  # no negative zeros

    def _effects_of_contributions(self) -> Array:
        """Return the effects (n_classes, n_tokens) from the contributions to each output."""
        contributions = self.fitted.contributions(self.X)
        n_outputs = len(contributions)
        mean = 0.0
        if n_outputs > 1:
            mean = sum(output.data for output in contributions) / n_outputs
        effects = []
        for output in contributions:
            entries = (output.data - mean, output.indices, output.indptr)
            centred = sp.csr_array(entries, shape=output.shape)
            means, variances = mean_variance_axis(centred, axis=0)
            effects.append(np.sign(means) * np.sqrt(variances))
        return values_by_class(effects[0] if n_outputs == 1 else np.array(effects))

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
    steps, _ = split_pipeline(estimator)
    with without_name_warnings():
        for number, (_, step) in enumerate(steps):
            is_last = number == len(steps) - 1
            vectorizer = step.estimator if isinstance(step, FrozenEstimator) else step
            if is_last and isinstance(vectorizer, ContextVectorizer):
                documents = bags_of(vectorizer, documents)
            else:
                documents = step.transform(documents)
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
    effects = read.effects
    counts = read.selection_counts
    best_class = read.values.argmax(axis=0)
    by_count = np.argsort(-counts, kind="stable")
    selected = by_count[: np.count_nonzero(counts)]
    classes = []
    for k, label in enumerate(read.classifier.classes_.tolist()):
        tokens = ClassTokens(label, important=[], selected=[])
        by_effect = np.argsort(-effects[k], kind="stable")
        for token in by_effect[:n_top]:
            if effects[k, token] > 0:
                tokens.important.append((str(read.names[token]), float(effects[k, token])))
        for token in selected[best_class[selected] == k][:n_top]:
            tokens.selected.append((str(read.names[token]), int(counts[token])))
        classes.append(tokens)
    return classes


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
    if rows.ndim == 1:
        return np.stack([-rows, rows]) + 0.0  # no negative zeros
    return rows
