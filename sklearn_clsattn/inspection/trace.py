"""Map the columns of a Pipeline's classifier back to the words of the documents.

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

# Tokens of vectorizers that have been traced, with the vocabulary that they come from.
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


@dataclass(frozen=True)
class Columns:
    """Columns of a matrix and their origins: arrays of shape (n_columns,)."""

    names: NDArray[np.object_]
    sources: NDArray[np.intp]  # numbers of the vectorizers, -1 for none
    terms: NDArray[np.object_]  # the vectorizers' own names of the tokens

    def __getitem__(self, chosen: Any) -> Columns:
        return Columns(self.names[chosen], self.sources[chosen], self.terms[chosen])

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Trace:
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


def trace(estimator: Any, *, wrapped: bool = False) -> Trace:
    """Follow the columns of a fitted classifier, Pipeline or search back to the documents."""
    wrappers: list[Any] = []
    steps, classifier = split_pipeline(estimator, wrappers if wrapped else None)
    check_is_fitted(classifier)
    walk = _Walk()
    state: TextInput | Columns = TextInput()
    if not steps:
        state = _table(classifier, classifier.n_features_in_)
    for at, (name, step) in enumerate(steps):
        state = walk.through(name, step, state, [later for _, later in steps[at + 1 :]])
    transformers = [step for _, step in steps]
    if isinstance(state, TextInput) or len(state) != classifier.n_features_in_:
        found = "none" if isinstance(state, TextInput) else len(state)
        raise ValueError(
            f"cannot trace the classifier's {classifier.n_features_in_} columns back to tokens: "
            f"following the Pipeline's steps leads to {found}. {_INSTEAD}"
        )
    return Trace(classifier, transformers, state, walk.sources, outcome(wrappers))


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
                "or a Pipeline that ends in one, got "
                f"{_kind(outermost)}{where}"
            )
    return steps, estimator


def _steps_of_prediction(steps: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that a prediction goes through, as samplers of imbalanced-learn are not."""
    return [
        (name, step)
        for name, step in steps
        if step not in (None, "passthrough")
        and not (hasattr(step, "fit_resample") and not hasattr(step, "transform"))
    ]


class _Walk:
    """Follows columns through steps, and collects the vectorizers among them."""

    def __init__(self) -> None:
        self.sources: list[tuple[Any, TextInput]] = []

    def through(
        self, name: str, step: Any, state: TextInput | Columns, later: Iterable[Any] = ()
    ) -> TextInput | Columns:
        """Return the output of a step for the input `state`."""
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return state
        if isinstance(step, FrozenEstimator):
            step = step.estimator
        if isinstance(step, Pipeline):
            pairs = _steps_of_prediction(step.steps)
            for at, (inner_name, inner) in enumerate(pairs):
                after = [*(one for _, one in pairs[at + 1 :]), *later]
                state = self.through(inner_name, inner, state, after)
            return state
        if isinstance(step, HashingVectorizer):
            raise ValueError(
                f"cannot trace the columns of {_kind(step)} (step {name!r}) back to tokens: "
                f"hashing keeps no names. Use a CountVectorizer or TfidfVectorizer. {_INSTEAD}"
            )
        if isinstance(step, FeatureUnion):
            return self._union(step, state)
        if isinstance(step, ColumnTransformer):
            return self._side_by_side(step, state)
        if isinstance(state, Columns):
            return _followed(name, step, state)
        if isinstance(step, _VECTORIZERS):
            return self._vectorized(step, state)
        if any(map(_reads_text, later)):  # the step changes or selects texts
            return replace(
                state,
                name=state.name or state.branch,
                key=(*state.key, id(step)),
                steps=(*state.steps, step.transform),
            )
        width = getattr(step, "n_features_in_", None)
        if width is None:  # the step reads documents itself, such as DictVectorizer
            return _columns(_own_names(name, step))
        return _followed(name, step, _table(step, width))

    def _vectorized(self, vectorizer: Any, state: TextInput) -> Columns:
        check_is_fitted(vectorizer, "vocabulary_")
        terms = vectorizer_terms(vectorizer)
        self.sources.append((vectorizer, state))
        return Columns(terms, np.full(len(terms), len(self.sources) - 1), terms)

    def _union(self, union: FeatureUnion, state: TextInput | Columns) -> Columns:
        branches = []
        for name, step in union.transformer_list:
            if isinstance(step, str) and step == "drop":
                continue
            within = replace(state, branch=name) if isinstance(state, TextInput) else state
            branches.append((name, self.through(name, step, within)))
        return _joined(branches)

    def _side_by_side(self, step: ColumnTransformer, state: TextInput | Columns) -> Columns:
        branches = []
        for name, inner, columns in step.transformers_:
            if isinstance(inner, str) and inner == "drop":
                continue
            if isinstance(state, Columns):
                part: TextInput | Columns = state[_positions(step, columns)]
                part = part if _passes(inner) else self.through(name, inner, part)
            elif _reads_text(inner):
                if not isinstance(columns, str | int | np.integer):
                    raise ValueError(
                        f"cannot trace transformer {name!r} of a ColumnTransformer: a vectorizer "
                        f"reads one column, named by itself, got {columns!r}"
                    )
                part = self.through(name, inner, _column(state, columns))
            else:
                part = _features(name, inner, step, columns)
            if isinstance(part, TextInput) or len(part):
                branches.append((name, part))
        return _joined(branches)


def vectorizer_terms(vectorizer: Any) -> NDArray[np.object_]:
    """Return the vectorizer's tokens (n_tokens,) in column order, cached as that takes long."""
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
    try:
        out = step.get_feature_names_out(np.asarray(given, dtype=object))
    except (AttributeError, ValueError, TypeError) as error:
        hint = (
            ' Where it keeps columns in their places, say so: feature_names_out="one-to-one".'
            if isinstance(step, FunctionTransformer)
            else ""
        )
        raise ValueError(
            f"cannot trace the columns of {_kind(step)} (step {name!r}) back to tokens: it does "
            f"not say which of its columns come from which.{hint} {_INSTEAD}"
        ) from error
    if len(place) != len(columns) or any(column not in place for column in out):
        raise ValueError(
            f"cannot trace the columns of {_kind(step)} (step {name!r}) back to tokens: each of "
            f"them mixes several. {_INSTEAD}"
        )
    return columns[np.array([place[column] for column in out], dtype=np.intp)]


def _features(name: str, inner: Any, outer: ColumnTransformer, columns: Any) -> Columns:
    """Return the output columns of a step on columns without text, by its own names."""
    positions = _positions(outer, columns)
    names = getattr(outer, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{at}" for at in range(outer.n_features_in_)], dtype=object)
    chosen = np.asarray(names, dtype=object)[positions]
    if not len(chosen) or _passes(inner):
        return _columns(chosen)
    return _columns(_own_names(name, inner, chosen))


def _own_names(name: str, step: Any, given: Any = None) -> Any:
    try:
        return step.get_feature_names_out() if given is None else step.get_feature_names_out(given)
    except AttributeError as error:
        raise ValueError(
            f"cannot trace the columns of {_kind(step)} (step {name!r}): it has no "
            f"get_feature_names_out. {_INSTEAD}"
        ) from error


def _columns(names: Any) -> Columns:
    names = np.asarray([str(name) for name in names], dtype=object)
    return Columns(names, np.full(len(names), -1), names)


def _table(step: Any, width: int) -> Columns:
    names = getattr(step, "feature_names_in_", None)
    return _columns([f"x{at}" for at in range(width)] if names is None else names)


def _joined(branches: list[tuple[str, TextInput | Columns]]) -> Columns:
    """Return concatenated columns, prefixed with the branches' names if there are several."""
    parts = []
    for name, part in branches:
        if isinstance(part, TextInput):
            raise ValueError(
                f"cannot trace {name!r}: it passes documents on as they are. {_INSTEAD}"
            )
        if len(branches) > 1:
            prefixed = np.array([f"{name}__{column}" for column in part.names], dtype=object)
            part = replace(part, names=prefixed)
        parts.append(part)
    return Columns(
        np.concatenate([part.names for part in parts] or [np.array([], dtype=object)]),
        np.concatenate([part.sources for part in parts] or [np.array([], dtype=np.intp)]),
        np.concatenate([part.terms for part in parts] or [np.array([], dtype=object)]),
    )


def _column(state: TextInput, column: Any) -> TextInput:
    """Return one text column of documents that are rows of a table."""

    def select(documents: Any) -> Any:
        if isinstance(column, str):
            return documents[column]
        if hasattr(documents, "iloc"):
            return documents.iloc[:, column]
        return np.asarray(documents, dtype=object)[:, column]

    return TextInput(str(column), (*state.key, column), (*state.steps, select))


def _positions(step: ColumnTransformer, columns: Any) -> NDArray[np.intp]:
    """Return the positions of the columns that a ColumnTransformer selects in any form."""
    everything = np.arange(step.n_features_in_)
    if isinstance(columns, slice) and not any(
        isinstance(end, str) for end in (columns.start, columns.stop)
    ):
        return everything[columns]
    names = [str(name) for name in getattr(step, "feature_names_in_", [])]
    if isinstance(columns, slice):  # of names, the last one included
        first = 0 if columns.start is None else names.index(columns.start)
        last = len(names) - 1 if columns.stop is None else names.index(columns.stop)
        return everything[first : last + 1 : columns.step]
    if isinstance(columns, str | int | np.integer):
        columns = [columns]
    with warnings.catch_warnings():
        # scikit-learn 1.6 warns that a remainder's columns will be names: both are handled.
        warnings.simplefilter("ignore", FutureWarning)
        columns = list(columns)
    if columns and isinstance(columns[0], bool | np.bool_):
        return everything[np.array(columns)]
    places = [names.index(at) if isinstance(at, str) else int(at) for at in columns]
    return everything[np.array(places, dtype=np.intp)]


def _passes(step: Any) -> bool:
    """Whether a step of a ColumnTransformer leaves columns unchanged."""
    if isinstance(step, FunctionTransformer):
        return step.func is None
    return isinstance(step, str) and step == "passthrough"


def _reads_text(step: Any) -> bool:
    """Whether a step is or contains a vectorizer."""
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    if isinstance(step, Pipeline):
        return any(_reads_text(inner) for _, inner in step.steps)
    if isinstance(step, FeatureUnion):
        return any(_reads_text(inner) for _, inner in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        return any(_reads_text(inner) for _, inner, _ in step.transformers_)
    return isinstance(step, (*_VECTORIZERS, HashingVectorizer))


def _kind(estimator: Any) -> str:
    return repr(estimator) if isinstance(estimator, str) else type(estimator).__name__
