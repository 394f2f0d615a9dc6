"""The names of the columns that a classifier reads after steps."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin
from sklearn.feature_selection import SelectorMixin

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
