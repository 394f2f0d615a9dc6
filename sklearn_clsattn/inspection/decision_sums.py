"""How fitted estimators decide: as sums over tokens, or averages of several such sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model._base import LinearClassifierMixin  # noqa: PLC2701 - no public name
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import validate_data

from .._bags import Bags
from .._base import BaseAttentionClassifier, class_probabilities
from .._classifier import ClsAttentionClassifier
from .._matrices import row_sums
from .._types import Array, Numbers
from ..text._context_vectorizer import ContextVectorizer
from ..training.fitted_model import VectorEmbeddings
from .inner_classifiers import Member, Members
from .shown_classes import ShownClasses
from .terms import AfterSteps, ByToken, DecisionSum, Terms, column_names
from .token_positions import LocatedText


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
            return _Units(bags.matrix(), fitted, names, None, without_vectors)
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


def sum_of(inside: Members, *, of_texts: bool) -> DecisionSum | AverageSum | None:
    """Return the sum by which an estimator decides, on average; None if by none.

    A sum over columns without names, such as the numbers of an embedding, says nothing of texts.
    """
    sums = []
    for member in inside.members:
        decision_sum = member_sum(member)
        if decision_sum is None:
            return None
        is_foreign = isinstance(decision_sum, LinearSum)  # ours always have names
        if of_texts and is_foreign and not column_names(member.steps, member.classifier).are_names:
            return None
        sums.append(decision_sum)
    if len(sums) == 1:
        return sums[0]
    if not know_the_same_classes(inside.members):
        return None
    return AverageSum(sums, np.array([member.share for member in inside.members]))


def know_the_same_classes(members: Sequence[Member]) -> bool:
    """Return whether classifiers inside an estimator know the same classes; some may know fewer."""
    classes = [member.classifier.classes_ for member in members]
    return all(np.array_equal(known, classes[0]) for known in classes)


def member_sum(member: Member) -> DecisionSum | None:
    """Return the sum by which a classifier inside an estimator decides, None if by none."""
    classifier = member.classifier
    if isinstance(classifier, BaseAttentionClassifier):
        return None if classifier.mlp else AttentionSum(member.steps, classifier)
    return LinearSum.of(member.steps, classifier)


@dataclass(frozen=True, eq=False)
class AverageSum:
    """The average of several sums, such as those of the classifiers that vote."""

    members: Sequence[DecisionSum]
    shares: Array  # (n_members,), with the sum 1

    @property
    def intercept(self) -> Array:
        """The average intercepts, (n_outputs,)."""
        return self._average([np.asarray(member.intercept) for member in self.members])

    def read(self, documents: Any) -> list[Any]:
        """Return documents as each member reads them."""
        return [member.read(documents) for member in self.members]

    def decisions(self, read: list[Any]) -> Array:
        """Return the average decisions, (n_documents, n_outputs)."""
        of_members = []
        for member, documents in zip(self.members, read, strict=True):
            of_members.append(member.decisions(documents))
        return self._average(of_members)

    def terms(self, read: list[Any]) -> Terms:
        """Return the average terms of the decisions, by document and name of the token."""
        # 1) The terms of all members, one after the other.
        documents = []
        tokens = []
        numbers = []
        for share, member, of_member in zip(self.shares, self.members, read, strict=True):
            terms = member.terms(of_member)
            n_documents = len(terms.indptr) - 1
            documents.append(np.repeat(np.arange(n_documents), np.diff(terms.indptr)))
            tokens.append(terms.tokens)
            numbers.append(share * np.column_stack([terms.weights, terms.contributions]))
        # 2) Their sums, by document and name.
        codes, names = pd.factorize(np.concatenate(tokens))
        table = pd.DataFrame(np.concatenate(numbers))
        sums = table.groupby([np.concatenate(documents), codes]).sum()
        n_tokens = np.bincount(sums.index.get_level_values(0), minlength=n_documents)
        return Terms(
            indptr=np.append(0, np.cumsum(n_tokens)),
            tokens=np.asarray(names, dtype=object)[sums.index.get_level_values(1)],
            weights=sums[0].to_numpy(),
            contributions=sums.to_numpy()[:, 1:],
        )

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens; none if members read texts differently."""
        first, *others = [repr(member.steps[0]) for member in self.members if member.steps]
        if any(other != first for other in others):
            return LocatedText(text)
        return self.members[0].locate(text, tokens)

    def _average(self, of_members: list[Array]) -> Array:
        """Return the average of arrays of equal shape, one of each member."""
        return np.tensordot(self.shares, np.stack(of_members), axes=1)
