"""Where the columns of a Pipeline's classifier come from: the words of the documents.

A step's ``get_feature_names_out`` says what it does: an error is raised if its output columns do
not all have names of its input columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAttentionClassifier
from ..text._context_vectorizer import ContextVectorizer
from .wrappers import Outcome, inside, outcome

_VECTORIZERS = (CountVectorizer, ContextVectorizer)

# Tokens of vectorizers, with the vocabulary that they come from: sorting a large one takes long.
_TERMS: WeakKeyDictionary[Any, tuple[Any, NDArray[np.object_]]] = WeakKeyDictionary()

_INSTEAD = (
    "explain(pipeline[-1], pipeline[:-1].transform(documents)) explains the classifier in terms "
    "of the columns that it is given."
)


@dataclass(frozen=True)
class TextInput:
    """One text of each document, as a vectorizer reads it."""

    name: str | None = None  # where documents have several texts
    key: tuple[Any, ...] = ()  # the same for vectorizers that read the same text
    steps: tuple[Callable[[Any], Any], ...] = ()  # from the documents to the texts
    branch: str | None = None  # of a union

    def of(self, documents: Any) -> list[Any]:
        """Return the texts of documents, n_documents of them."""
        for step in self.steps:
            documents = step(documents)
        return list(documents)

    def column(self, column: Any) -> TextInput:
        """Return one text column of documents that are rows of a table."""

        def select(documents: Any) -> Any:
            if isinstance(column, str):
                return documents[column]
            if hasattr(documents, "iloc"):
                return documents.iloc[:, column]
            return np.asarray(documents, dtype=object)[:, column]

        return TextInput(str(column), (*self.key, column), (*self.steps, select))


@dataclass(frozen=True)
class Columns:
    """Columns of a matrix and their origins: arrays of shape (n_columns,)."""

    names: NDArray[np.object_]
    sources: NDArray[np.intp]  # numbers of the vectorizers, -1 for none
    terms: NDArray[np.object_]  # the vectorizers' own names of the tokens

    @classmethod
    def without_text(cls, names: Iterable[Any]) -> Columns:
        """Return columns that come from no vectorizer."""
        named = np.asarray([str(name) for name in names], dtype=object)
        return cls(named, np.full(len(named), -1), named)

    def __getitem__(self, chosen: Any) -> Columns:
        return Columns(self.names[chosen], self.sources[chosen], self.terms[chosen])

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class FeatureOrigins:
    """The parts of a Pipeline: the steps before its classifier, and the classifier's columns."""

    classifier: BaseAttentionClassifier
    transformers: list[Any]
    columns: Columns
    sources: list[tuple[Any, TextInput]]  # vectorizers, with their input
    outcome: Outcome  # what classifiers around the classifier make of its decisions

    def transform(self, documents: Any) -> Any:
        """Return the classifier's input, of shape (n_documents, n_columns)."""
        for transformer in self.transformers:
            documents = transformer.transform(documents)
        return documents


def feature_origins(estimator: Any, *, wrapped: bool = False) -> FeatureOrigins:
    """Follow the columns of a fitted classifier, Pipeline or search back to the documents."""
    wrappers: list[Any] = []
    steps, classifier = split_pipeline(estimator, wrappers if wrapped else None)
    check_is_fitted(classifier)
    walk = _Walk()
    columns = walk.through_all(steps, TextInput()) if steps else _input_columns(classifier)
    if isinstance(columns, TextInput) or len(columns) != classifier.n_features_in_:
        n_found = "none" if isinstance(columns, TextInput) else len(columns)
        raise ValueError(
            f"cannot trace the classifier's {classifier.n_features_in_} columns back to tokens: "
            f"following the Pipeline's steps leads to {n_found}. {_INSTEAD}"
        )
    transformers = [step for _, step in steps]
    return FeatureOrigins(classifier, transformers, columns, walk.sources, outcome(wrappers))


def split_pipeline(
    estimator: Any, wrappers: list[Any] | None = None
) -> tuple[list[tuple[str, Any]], BaseAttentionClassifier]:
    """Return the named steps of (nested) pipelines and searches, and the classifier.

    Thresholds and calibrations are added to `wrappers`, the outermost first, or refused without.
    """
    steps: list[tuple[str, Any]] = []
    outermost = estimator
    while not isinstance(estimator, BaseAttentionClassifier):
        path = "make_pipeline(pipeline[:-1], pipeline[-1]{})" if steps else "model{}"
        inner = inside(estimator, path)
        if inner is not None:
            if wrappers is None:
                raise TypeError(
                    f"expected a classifier of this package or a Pipeline that ends in one, got "
                    f"{_kind(estimator)} around it, which only explain takes: pass what it has "
                    "fitted, such as its estimator_"
                )
            wrappers.append(estimator)
            estimator = inner
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline) and estimator.steps:
            steps += _steps_of_prediction(estimator.steps[:-1])
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "estimator") and hasattr(estimator, "refit"):
            raise NotFittedError(
                f"This {type(estimator).__name__} has no best_estimator_ to explain: fit it "
                "first, with refit=True."
            )
        else:
            where = "" if estimator is outermost else f" with {_kind(estimator)} as its last step"
            raise TypeError(
                "expected a fitted ClsAttentionClassifier (or another classifier of this package), "
                f"or a Pipeline that ends in one, got {_kind(outermost)}{where}"
            )
    return steps, estimator


def vectorizer_terms(vectorizer: Any) -> NDArray[np.object_]:
    """Return the vectorizer's tokens (n_tokens,) in column order."""
    vocabulary = vectorizer.vocabulary_
    hashable = type(vectorizer).__hash__ is not None
    known = _TERMS.get(vectorizer) if hashable else None
    n_terms = len(vocabulary) + len(getattr(vectorizer, "character_vocabulary_", ()))
    if known is not None and known[0] is vocabulary and len(known[1]) == n_terms:
        return known[1]
    if isinstance(vectorizer, ContextVectorizer):
        terms = vectorizer.get_feature_names_out()
    else:
        terms = np.empty(len(vocabulary), dtype=object)
        terms[list(vocabulary.values())] = list(vocabulary)
    terms.flags.writeable = False
    if hashable:
        _TERMS[vectorizer] = (vocabulary, terms)
    return terms


class _Walk:
    """Follows columns through steps, and collects the vectorizers among them."""

    def __init__(self) -> None:
        self.sources: list[tuple[Any, TextInput]] = []

    def through_all(
        self, steps: list[tuple[str, Any]], state: Any, later: Iterable[Any] = ()
    ) -> TextInput | Columns:
        """Return the output of steps, before others, for the input `state`."""
        for at, (name, step) in enumerate(steps):
            after = [*(one for _, one in steps[at + 1 :]), *later]
            state = self.through(name, step, state, after)
        return state

    def through(
        self, name: str, step: Any, state: TextInput | Columns, later: Iterable[Any] = ()
    ) -> TextInput | Columns:
        """Return the output of a step, before others, for the input `state`."""
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return state
        if isinstance(step, FrozenEstimator):
            step = step.estimator
        if isinstance(step, Pipeline):
            return self.through_all(_steps_of_prediction(step.steps), state, later)
        if isinstance(step, HashingVectorizer):
            raise _untraceable(
                name, step, "hashing keeps no names. Use a CountVectorizer or TfidfVectorizer."
            )
        if isinstance(step, FeatureUnion):
            branches = []
            for branch, inner in step.transformer_list:
                if not (isinstance(inner, str) and inner == "drop"):
                    given = replace(state, branch=branch) if isinstance(state, TextInput) else state
                    branches.append((branch, self.through(branch, inner, given)))
            return _joined(branches)
        if isinstance(step, ColumnTransformer):
            return _joined(
                (branch, self._of_columns(branch, inner, columns, step, state))
                for branch, inner, columns in step.transformers_
                if not (isinstance(inner, str) and inner == "drop")
            )
        if isinstance(state, Columns):
            return _followed(name, step, state)
        if isinstance(step, _VECTORIZERS):
            check_is_fitted(step, "vocabulary_")
            terms = vectorizer_terms(step)
            self.sources.append((step, state))
            return Columns(terms, np.full(len(terms), len(self.sources) - 1), terms)
        if any(map(_reads_text, later)):  # the step changes or selects texts
            return replace(
                state,
                name=state.name or state.branch,
                key=(*state.key, id(step)),
                steps=(*state.steps, step.transform),
            )
        if getattr(step, "n_features_in_", None) is None:  # it reads documents, as DictVectorizer
            return Columns.without_text(_output_names(name, step))
        return _followed(name, step, _input_columns(step))

    def _of_columns(
        self, name: str, step: Any, columns: Any, outer: ColumnTransformer, state: Any
    ) -> TextInput | Columns:
        """Return the output of a ColumnTransformer's step on some columns of its input."""
        if isinstance(state, TextInput) and _reads_text(step):
            if not isinstance(columns, str | int | np.integer):
                raise ValueError(
                    f"cannot trace transformer {name!r} of a ColumnTransformer: a vectorizer "
                    f"reads one column, named by itself, got {columns!r}"
                )
            return self.through(name, step, state.column(columns))
        positions = _positions(outer, columns)
        passes = (isinstance(step, str) and step == "passthrough") or (
            isinstance(step, FunctionTransformer) and step.func is None
        )
        if isinstance(state, Columns):
            return state[positions] if passes else self.through(name, step, state[positions])
        chosen = _input_columns(outer)[positions]
        if passes or not len(chosen):
            return chosen
        return Columns.without_text(_output_names(name, step, chosen.names))


def _steps_of_prediction(steps: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that a prediction goes through, as samplers of imbalanced-learn are not."""
    return [
        (name, step)
        for name, step in steps
        if step not in (None, "passthrough")
        and not (hasattr(step, "fit_resample") and not hasattr(step, "transform"))
    ]


def _input_columns(step: Any) -> Columns:
    """Return the columns of the table that a step reads."""
    names = getattr(step, "feature_names_in_", None)
    return Columns.without_text(
        [f"x{at}" for at in range(step.n_features_in_)] if names is None else names
    )


def _followed(name: str, step: Any, columns: Columns) -> Columns:
    """Return the columns after a step, identified by its own names of them."""
    if (isinstance(step, FunctionTransformer) and step.func is None) or (
        isinstance(step, OneToOneFeatureMixin)
    ):
        return columns
    if isinstance(step, SelectorMixin):
        return columns[step.get_support(indices=True)]
    known = getattr(step, "feature_names_in_", None)
    # Where the step has no names, unique ones, so that equal names cannot be confused.
    given = [f"x{at}" for at in range(len(columns))] if known is None else list(known)
    place = {column: at for at, column in enumerate(given)}
    out = _output_names(name, step, np.asarray(given, dtype=object))
    if len(place) != len(columns) or any(column not in place for column in out):
        raise _untraceable(name, step, "each of them mixes several.")
    return columns[np.array([place[column] for column in out], dtype=np.intp)]


def _output_names(name: str, step: Any, given: Any = None) -> Any:
    """Return a step's own names of its output columns."""
    try:
        return step.get_feature_names_out() if given is None else step.get_feature_names_out(given)
    except (AttributeError, ValueError, TypeError) as error:
        reason = "it does not say which of its columns come from which."
        if isinstance(step, FunctionTransformer):
            reason += (
                ' Where it keeps columns in their places, say so: feature_names_out="one-to-one".'
            )
        raise _untraceable(name, step, reason) from error


def _untraceable(name: str, step: Any, reason: str) -> ValueError:
    return ValueError(
        f"cannot trace the columns of {_kind(step)} (step {name!r}) back to tokens: {reason} "
        f"{_INSTEAD}"
    )


def _joined(branches: Iterable[tuple[str, TextInput | Columns]]) -> Columns:
    """Return concatenated columns, prefixed with the branches' names if there are several."""
    parts: dict[str, Columns] = {}
    for name, part in branches:
        if isinstance(part, TextInput):
            raise ValueError(
                f"cannot trace {name!r}: it passes documents on as they are. {_INSTEAD}"
            )
        if len(part):
            parts[name] = part
    if len(parts) > 1:
        for name, part in parts.items():
            prefixed = np.array([f"{name}__{column}" for column in part.names], dtype=object)
            parts[name] = replace(part, names=prefixed)
    joined = [Columns.without_text([]), *parts.values()]
    return Columns(
        np.concatenate([part.names for part in joined]),
        np.concatenate([part.sources for part in joined]),
        np.concatenate([part.terms for part in joined]),
    )


def _positions(step: ColumnTransformer, columns: Any) -> NDArray[np.intp]:
    """Return the positions of the columns that a ColumnTransformer selects in any form."""
    every = pd.Series(np.arange(step.n_features_in_), getattr(step, "feature_names_in_", None))
    if isinstance(columns, slice):
        chosen: list[Any] = [columns.start, columns.stop]
    elif isinstance(columns, str | int | np.integer):
        chosen = columns = [columns]
    else:
        with warnings.catch_warnings():
            # scikit-learn 1.6 warns that a remainder's columns will be names: both are handled.
            warnings.simplefilter("ignore", FutureWarning)
            chosen = columns = list(columns)
    by_name = any(isinstance(one, str) for one in chosen)
    return (every.loc if by_name else every.iloc)[columns].to_numpy()


def _reads_text(step: Any) -> bool:
    """Return whether a step is or contains a vectorizer."""
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    for name in ("steps", "transformer_list", "transformers_"):
        if hasattr(step, name):
            return any(_reads_text(inner) for _, inner, *_ in getattr(step, name))
    return isinstance(step, (*_VECTORIZERS, HashingVectorizer))


def _kind(estimator: Any) -> str:
    return repr(estimator) if isinstance(estimator, str) else type(estimator).__name__
