"""The decisions of this package's classifiers as sums over tokens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._bags import Bags
from .._base import BaseAttentionClassifier, class_probabilities
from .._classifier import ClsAttentionClassifier
from .._matrices import row_sums
from .._types import Array, Numbers
from ..text._context_vectorizer import ContextVectorizer
from ..training.fitted_model import VectorEmbeddings
from .shown_classes import ShownClasses
from .terms import AfterSteps, ByToken, Terms

_NEAR = 0.25  # least cosine between the vectors of two tokens that are called near


@dataclass(frozen=True, eq=False)
class AttentionSum(AfterSteps):
    """A classifier of this package after steps: a token adds its attention times its value."""

    classifier: BaseAttentionClassifier

    @property
    def intercept(self) -> Array:
        """The intercepts, (n_outputs,)."""
        return self.classifier.intercept_

    def read(self, documents: Any) -> Bags:
        """Return documents as bags.

        A classifier that damps counts by itself reads those of columns, not of words with
        characters.
        """
        classifier = self.classifier
        for step in self.steps:
            makes_bags = (
                step is self.steps[-1]
                and isinstance(step, ContextVectorizer)
                and isinstance(classifier, ClsAttentionClassifier)
                and not hasattr(classifier, "entry_scale_")
            )
            documents = step._bags_of(documents) if makes_bags else step.transform(documents)
        return classifier._bags(documents)

    def decisions(self, read: Bags) -> Array:
        """Return the decisions for bags, (n_documents, n_outputs)."""
        return self.classifier._model().outputs(read)

    def probabilities(self, read: Bags, decisions: Array) -> Array:
        """Return the probabilities of classes, or of labels."""
        return class_probabilities(self.classifier, decisions)

    def terms(self, read: Bags) -> Terms:
        """Return the terms of the decisions for bags."""
        units = self._units(read)
        X = units.X
        fitted = units.fitted
        # 1) Attention and contributions; with one layer, these are attention times values.
        attention = fitted.attention(X).data.astype(np.float64, copy=False)
        shares = attention[:, None]
        values = fitted.values[X.indices].astype(np.float64, copy=False)
        contributions = shares * values
        if fitted.n_layers > 1:
            by_output = [output.data for output in fitted.contributions(X)]
            contributions = np.column_stack(by_output).astype(np.float64)
            unknown = np.full_like(contributions, np.nan)
            values = np.divide(contributions, shares, out=unknown, where=shares > 0)
        # 2) Parts of the contributions.
        own = None
        if units.values_without_characters is not None:
            own = shares * units.values_without_characters[X.indices]
        by_vector = None
        if units.values_without_vectors is not None:
            by_vector = shares * (values - units.values_without_vectors[X.indices])
        # 3) The attention of <cls>.
        cls_attention = np.zeros(X.shape[0])
        if fitted.cls_weight:
            cls_attention = (1.0 - row_sums(attention, X.indptr)).clip(min=0.0)
        return Terms(
            indptr=X.indptr.astype(np.intp),
            tokens=units.names[X.indices],
            weights=X.data.astype(np.float64),
            contributions=contributions,
            values=values,
            attention=attention,
            own_contributions=own,
            vector_contributions=by_vector,
            cls_attention=cls_attention,
        )

    def by_token(self, read: Bags) -> ByToken:
        """Return the attention of documents by tokens, and the tokens' values."""
        units = self._units(read)
        values = np.asarray(units.fitted.values, dtype=np.float64)
        return ByToken(units.fitted.attention(units.X), values, units.names)

    @property
    def _embeddings(self) -> VectorEmbeddings | None:
        """The embeddings of a classifier with word vectors."""
        stored = self.classifier._embeddings
        return stored if isinstance(stored, VectorEmbeddings) else None

    def likeness(self, shown: ShownClasses) -> Likeness | None:
        """Return the vectors of the model's tokens, if they have some."""
        embeddings = self._embeddings
        if embeddings is None:
            return None
        return Likeness(self.names, embeddings, shown.outputs, shown.sign)

    def _units(self, bags: Bags) -> _Units:
        """Return documents by columns, or by words if words have character n-grams."""
        names = self.names
        fitted = self.classifier._model()
        embeddings = self._embeddings
        without_vectors = None if embeddings is None else embeddings.own
        if bags.tokens is None or bags.names is None:
            return _Units(bags.units, fitted, names, None, without_vectors)
        # 1) The model of words, each of which stands for its columns.
        words = fitted.of_units(bags.tokens)
        if without_vectors is not None:
            without_vectors = replace(fitted, values=without_vectors).of_units(bags.tokens).values
        # 2) What a word adds by its own column, which is its first. A word that is not in the
        # vocabulary has none.
        first = bags.tokens.indptr[:-1]
        columns = bags.tokens.indices[first]
        share = bags.tokens.data[first] * np.exp(fitted.scores[columns] - words.scores)
        share[names[columns] != bags.names] = np.nan
        own_values = share[:, None] * fitted.values[columns]
        return _Units(bags.units, words, bags.names, own_values, without_vectors)


@dataclass(frozen=True, eq=False)
class _Units:
    """Documents by the units of an explanation, and the model of these."""

    X: sp.csr_array  # (n_documents, n_tokens)
    fitted: Any  # a FittedAttention or FittedNetwork
    names: NDArray[np.object_]  # (n_tokens,)
    # Of words that have character n-grams, what a unit of attention adds without these, and of
    # tokens that have vectors, without these: (n_tokens, n_outputs).
    values_without_characters: Array | None
    values_without_vectors: Array | None


@dataclass(frozen=True, eq=False)
class Likeness:
    """The vectors of tokens, and the tokens' own values, without the vectors' part."""

    names: NDArray[np.object_]  # (n_tokens,)
    embeddings: VectorEmbeddings
    # The decisions for the explained classes are `sign` times these outputs.
    outputs: Numbers
    sign: float

    def near(self, name: str, direction: Array) -> list[str]:
        """Return the nearest tokens, up to three, whose own values favour the same class.

        `direction`, (n_targets,), is 1 for the class shown and -1 for its rival, times the sign of
        the vector's contribution. Only tokens whose own values have a positive product with it
        count.
        """
        names = self.names[self.embeddings.tokens]
        positions = np.flatnonzero(names == name)
        if not len(positions):
            return []
        token = positions[0]
        vectors = self.embeddings.vectors
        own_values = self.sign * self.embeddings.own[self.embeddings.tokens][:, self.outputs]
        cosines = (vectors @ vectors[token]) * (own_values @ direction > 0)
        cosines[token] = 0.0
        nearest = np.argsort(-cosines)[:3]
        near = nearest[cosines[nearest] > _NEAR]
        return list(map(str, names[near]))
