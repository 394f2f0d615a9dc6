"""Tracing the columns of a Pipeline's classifier back to the words of the documents.

The tracing relies on the ``get_feature_names_out`` of each step: an error is raised unless all of
its output columns have names of its input columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.validation import check_is_fitted

from .._base import BaseAttentionClassifier
from ..text._context_vectorizer import ContextVectorizer

_INSTEAD = (
    "explain(pipeline[-1], pipeline[:-1].transform(documents)) explains the classifier in terms "
    "of its input columns."
)


@dataclass(frozen=True)
class TextInput:
    """One text of each document, as a vectorizer reads it."""

    name: str | None = None  # where documents have several texts
    key: tuple[Any, ...] = ()  # the same for vectorizers that read the same text
    steps: tuple[Callable[[Any], Any], ...] = ()  # from the documents to the texts
    column: Any = None  # of the documents that has the text, None if they are texts themselves
    is_editable: bool = True  # whether the column is one of the documents, before any step

    def read(self, documents: Any) -> list[Any]:
        """Return the texts of documents, n_documents of them."""
        for step in self.steps:
            documents = step(documents)
        return list(documents)

    def select_column(self, column: Any) -> TextInput:
        """Return one text column of documents that are rows of a table."""

        def select(documents: Any) -> Any:
            if isinstance(column, str):
                return documents[column]
            if hasattr(documents, "iloc"):
                return documents.iloc[:, column]
            return np.asarray(documents, dtype=object)[:, column]

        return TextInput(
            name=str(column),
            key=(*self.key, column),
            steps=(*self.steps, select),
            column=column,
            is_editable=self.is_editable and not self.steps,
        )


@dataclass(frozen=True)
class Columns:
    """Columns of a matrix and their origins: arrays of shape (n_columns,)."""

    names: NDArray[np.object_]
    sources: NDArray[np.intp]  # numbers of the vectorizers, -1 for none
    terms: NDArray[np.object_]  # the vectorizers' own names of the tokens

    @classmethod
    def without_text(cls, names: Iterable[Any]) -> Columns:
        """Return columns that come from no vectorizer."""
        named = np.asarray(list(map(str, names)), dtype=object)
        return cls(named, np.full(len(named), -1), named)

    @classmethod
    def joined(cls, parts: list[Columns]) -> Columns:
        """Return the columns of several matrices side by side."""
        return cls(
            np.concatenate([part.names for part in parts]),
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.terms for part in parts]),
        )

    def with_terms(self, terms: NDArray[np.object_]) -> Columns:
        """Return columns from the same vectorizers with other terms, and the prefixes of names."""
        names = []
        for name, old_term, term in zip(self.names, self.terms, terms, strict=True):
            names.append(name.removesuffix(old_term) + term)
        return Columns(np.array(names, dtype=object), self.sources, terms)

    def __getitem__(self, chosen: Any) -> Columns:
        return Columns(self.names[chosen], self.sources[chosen], self.terms[chosen])


@dataclass(frozen=True)
class Source:
    """A vectorizer, the texts that it reads, and its tokens in the order of its columns."""

    vectorizer: Any
    input: TextInput
    terms: NDArray[np.object_]
    hashed: Mapping[str, str] = field(default_factory=dict)  # from a token to its column's name

    def column_term(self, term: str) -> str:
        """Return the name of the column that counts a token."""
        return self.hashed.get(term, term)


@dataclass(frozen=True)
class FeatureOrigins:
    """The parts of a Pipeline: the steps before its classifier, and the classifier's columns."""

    classifier: BaseAttentionClassifier
    transformers: list[Any]
    columns: Columns
    sources: list[Source]

    def transform(self, documents: Any) -> Any:
        """Return the classifier's input, of shape (n_documents, n_columns)."""
        for transformer in self.transformers:
            documents = transformer.transform(documents)
        return documents


@dataclass(frozen=True)
class _Trace:
    """The documents that are explained, if any, and the vectorizers found on the way."""

    documents: Any
    sources: list[Source] = field(default_factory=list)

    def add(self, vectorizer: Any, text: TextInput, terms: Any, hashed: Any = None) -> Columns:
        """Add a vectorizer; return its columns."""
        self.sources.append(Source(vectorizer, text, terms, hashed or {}))
        return Columns(terms, np.full(len(terms), len(self.sources) - 1), terms)


def feature_origins(estimator: Any, documents: Any = None) -> FeatureOrigins:
    """Follow the columns of a fitted classifier, Pipeline or search back to the documents.

    The columns of a HashingVectorizer have the names of the tokens that `documents` have.
    """
    steps, classifier = split_pipeline(estimator)
    check_is_fitted(classifier)
    trace = _Trace(documents)
    columns: TextInput | Columns = TextInput() if steps else _input_columns(classifier)
    for name, step in steps:
        columns = _through(name, step, columns, trace)
    n_columns = 0 if isinstance(columns, TextInput) else len(columns.names)
    if isinstance(columns, TextInput) or n_columns != classifier.n_features_in_:
        raise ValueError(
            f"cannot trace the classifier's {classifier.n_features_in_} columns back to tokens: "
            f"the Pipeline's steps have names for {n_columns} columns. {_INSTEAD}"
        )
    return FeatureOrigins(classifier, [step for _, step in steps], columns, trace.sources)


def split_pipeline(estimator: Any) -> tuple[list[tuple[str, Any]], BaseAttentionClassifier]:
    """Return the named steps of (nested) pipelines and searches, and the classifier."""
    steps: list[tuple[str, Any]] = []
    inner = estimator
    while not isinstance(inner, BaseAttentionClassifier):
        if isinstance(inner, Pipeline) and inner.steps:
            steps += _steps_of_prediction(inner.steps[:-1])
            inner = inner.steps[-1][1]
        elif isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        elif hasattr(inner, "vectorizer_") and hasattr(inner, "classifier_"):
            steps.append(("vectorizer", inner.vectorizer_))
            inner = inner.classifier_
        elif hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        else:
            where = "" if inner is estimator else f" with {_kind(inner)} as its last step"
            raise TypeError(
                "expected a fitted ClsAttentionClassifier (or another classifier of this package), "
                f"or a Pipeline that ends in one, got {_kind(estimator)}{where}: if it contains "
                "such a fitted classifier, pass that"
            )
    return steps, inner


@contextmanager
def without_name_warnings() -> Iterator[None]:
    """Ignore warnings that a matrix has no names: the documents were checked already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield


def _through(
    name: str, step: Any, state: TextInput | Columns, trace: _Trace
) -> TextInput | Columns:
    """Return the output of a step for the input `state`, and add its vectorizers to the trace."""
    if isinstance(step, str) and step == "passthrough":
        return state
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    # 1) A step of several steps.
    if isinstance(step, Pipeline):
        for inner, part in _steps_of_prediction(step.steps):
            state = _through(inner, part, state, trace)
        return state
    if isinstance(step, FeatureUnion):
        branches = []
        for branch, inner in step.transformer_list:
            if not _is_dropped(inner):
                branches.append((branch, _through(branch, inner, state, trace)))
        return _joined(branches)
    if isinstance(step, ColumnTransformer):
        branches = []
        for branch, inner, columns in step.transformers_:
            if not _is_dropped(inner):
                output = _of_columns(branch, inner, columns, step, state, trace)
                branches.append((branch, output))
        return _joined(branches)
    # 2) A step that changes or selects columns.
    if isinstance(state, Columns):
        return _followed(name, step, state)
    # 3) A step that reads texts.
    if isinstance(step, CountVectorizer | ContextVectorizer):
        check_is_fitted(step, "vocabulary_")
        terms = np.asarray(step.get_feature_names_out(), dtype=object)
        return trace.add(step, state, terms)
    if isinstance(step, HashingVectorizer) and trace.documents is not None:
        return trace.add(step, state, *_hashed_terms(step, state.read(trace.documents)))
    if hasattr(step, "get_feature_names_out"):
        return Columns.without_text(_output_names(name, step))
    # 4) A step that changes or selects texts.
    return replace(state, key=(*state.key, id(step)), steps=(*state.steps, step.transform))


def _is_dropped(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def _hashed_terms(
    vectorizer: HashingVectorizer, texts: list[Any]
) -> tuple[NDArray[np.object_], dict[str, str]]:
    """Return the names of all columns, (n_columns,), and the name of each token's column.

    A column is named after the tokens of the texts that it counts, "" if there are none.
    """
    analyze = vectorizer.build_analyzer()
    distinct: dict[str, None] = {}
    for text in texts:
        distinct.update(dict.fromkeys(analyze(text)))
    tokens = list(distinct)
    terms = np.full(vectorizer.n_features, "", dtype=object)
    if not tokens:
        return terms, {}
    one_token = clone(vectorizer).set_params(
        analyzer=lambda token: [token], input="content", norm=None, alternate_sign=False
    )
    columns = one_token.transform(tokens).indices
    for token, column in zip(tokens, columns.tolist(), strict=True):
        before = terms[column]
        terms[column] = f"{before} / {token}" if before else token
    return terms, dict(zip(tokens, terms[columns].tolist(), strict=True))


def _of_columns(
    name: str, step: Any, columns: Any, outer: ColumnTransformer, state: Any, trace: _Trace
) -> TextInput | Columns:
    """Return the output of a ColumnTransformer's step on some columns of its input."""
    chosen = outer._transformer_to_input_indices[name]
    if isinstance(state, Columns):
        return _through(name, step, state[chosen], trace)
    if isinstance(columns, str | int | np.integer):  # a step for texts, one of each document
        return _through(name, step, state.select_column(columns), trace)
    inputs = _input_columns(outer)[chosen]
    if isinstance(step, str) or not len(chosen):  # "passthrough"
        return inputs
    return Columns.without_text(_output_names(name, step, inputs.names))


def _steps_of_prediction(steps: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the steps that a prediction goes through, as samplers of imbalanced-learn are not."""
    return [(name, step) for name, step in steps if hasattr(step, "transform")]


def _input_columns(step: Any) -> Columns:
    """Return the columns of the table that a step reads."""
    unnamed = [f"x{at}" for at in range(step.n_features_in_)]
    return Columns.without_text(getattr(step, "feature_names_in_", unnamed))


def _followed(name: str, step: Any, columns: Columns) -> Columns:
    """Return the columns after a step, identified by its own names of them."""
    # If the step has no names, unique ones are made up, so that equal names cannot be confused.
    unique = [f"x{at}" for at in range(len(columns.names))]
    inputs = np.asarray(getattr(step, "feature_names_in_", unique), dtype=object)
    positions = pd.Index(inputs, dtype=object).get_indexer(_output_names(name, step, inputs))
    if len(inputs) != len(columns.names) or (positions < 0).any():
        raise _untraceable(name, step, "each of them mixes several.")
    return columns[positions]


def _output_names(name: str, step: Any, inputs: Any = None) -> Any:
    """Return a step's own names of its output columns."""
    try:
        if inputs is None:
            return step.get_feature_names_out()
        return step.get_feature_names_out(inputs)
    except (AttributeError, ValueError, TypeError) as error:
        reason = (
            "its columns have no names. For a FunctionTransformer that keeps the columns, set "
            'feature_names_out="one-to-one".'
        )
        raise _untraceable(name, step, reason) from error


def _untraceable(name: str, step: Any, reason: str) -> ValueError:
    return ValueError(
        f"cannot trace the columns of {_kind(step)} (step {name!r}) back to tokens: {reason} "
        f"{_INSTEAD}"
    )


def _joined(branches: Iterable[tuple[str, TextInput | Columns]]) -> Columns:
    """Return concatenated columns, prefixed with the branches' names if there are several."""
    names: list[str] = []
    parts: list[Columns] = []
    for name, part in branches:
        if isinstance(part, TextInput):
            raise ValueError(
                f"cannot trace {name!r} back to tokens: its columns have no names. {_INSTEAD}"
            )
        if len(part.names):
            parts.append(part)
            names += [f"{name}__{column}" for column in part.names]
    if len(parts) == 1:
        return parts[0]
    return replace(Columns.joined(parts), names=np.array(names, dtype=object))


def _kind(estimator: Any) -> str:
    return repr(estimator) if isinstance(estimator, str) else type(estimator).__name__
