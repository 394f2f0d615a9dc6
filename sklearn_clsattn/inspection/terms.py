"""Decisions as sums: the terms that tokens add, their names, and what such a model can be asked."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.feature_selection import SelectorMixin

from .._types import Array, Numbers
from .token_positions import LocatedText, locate

_MADE_UP = ClassNamePrefixFeaturesOutMixin  # the steps whose columns are numbered components
_PASSED_ON = OneToOneFeatureMixin | SelectorMixin  # the steps that keep names, or number columns


class ColumnNames(NamedTuple):
    """The names of columns, and whether they are names, rather than numbers such as x0."""

    names: NDArray[np.object_]  # (n_columns,)
    are_names: bool


# Those of each classifier, and the fitted model that they belong to; not pickled.
_FOUND: WeakKeyDictionary[Any, tuple[list[Any], ColumnNames]] = WeakKeyDictionary()


def column_names(steps: list[Any], classifier: Any) -> ColumnNames:
    """Return the names of a classifier's columns, found once for a fitted model.

    They are those of the steps' ``get_feature_names_out``, or x0, x1, ...
    """
    model = [*steps, classifier.classes_]
    if classifier in _FOUND:
        last_model, last_names = _FOUND[classifier]
        if len(model) == len(last_model) and all(map(operator.is_, model, last_model)):
            return last_names
    # 1) The names that the steps give; after a step without names, those of the next by itself.
    names: Any = None
    are_names = False
    for step in steps:
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            names = None
        if names is None or isinstance(step, _MADE_UP):
            are_names = False
        elif not isinstance(step, _PASSED_ON) or hasattr(step, "feature_names_in_"):
            are_names = True
    # 2) The names of the classifier's own input.
    if names is None:
        names = getattr(classifier, "feature_names_in_", None)
        are_names = names is not None
    if names is None:
        names = [f"x{at}" for at in range(classifier.n_features_in_)]
    found = ColumnNames(np.asarray(names, dtype=object), are_names)
    _FOUND[classifier] = model, found
    return found


@dataclass(frozen=True, eq=False)
class Terms:
    """What the tokens of documents add to the decisions, or their effects on them."""

    indptr: Numbers  # (n_documents + 1,): the tokens of a document are indptr[i]:indptr[i + 1]
    tokens: NDArray[Any]  # (n_entries,), of objects
    weights: Array
    contributions: Array  # (n_entries, n_outputs)
    values: Array | None = None  # what a unit of weight, or of attention, adds
    attention: Array | None = None  # (n_entries,)
    own_contributions: Array | None = None  # without character n-grams
    vector_contributions: Array | None = None
    cls_attention: Array | None = None  # (n_documents,)


class ByToken(NamedTuple):
    """Documents by tokens: a token adds its value times its loading, such as its attention."""

    loadings: sp.csr_array  # (n_documents, n_tokens)
    values: Array  # (n_tokens, n_outputs)
    names: NDArray[Any]  # (n_tokens,), of objects


class Explained(Protocol):
    """A model whose decisions have terms for the tokens of documents."""

    @property
    def intercept(self) -> Array | None:
        """The intercepts, (n_outputs,); None if the terms are effects, which do not add up."""

    def read(self, documents: Any) -> Any:
        """Return documents as the model reads them."""

    def decisions(self, read: Any) -> Array:
        """Return the decisions for documents that were read, (n_documents, n_outputs)."""

    def terms(self, read: Any) -> Terms:
        """Return the terms of these decisions."""

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens."""


class DecisionSum(Explained, Protocol):
    """A classifier after steps whose decisions are the intercepts plus the sums of the terms."""

    @property
    def steps(self) -> list[Any]:
        """The steps before the classifier."""

    @property
    def intercept(self) -> Array:
        """The intercepts, (n_outputs,)."""

    def probabilities(self, read: Any, decisions: Array) -> Array | None:
        """Return the probabilities of classes, or of labels, if the classifier has them."""

    def by_token(self, read: Any) -> ByToken:
        """Return documents by tokens."""


@dataclass(frozen=True, eq=False)
class AfterSteps:
    """A classifier after steps, and what it has of these: names, and places in texts."""

    steps: list[Any]
    classifier: Any

    @cached_property
    def names(self) -> NDArray[np.object_]:
        """The names of the classifier's columns, (n_columns,)."""
        return column_names(self.steps, self.classifier).names

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens."""
        return locate(self.steps[0] if self.steps else None, text, tokens)
