"""A fitted estimator in its parts, and documents as its classifier reads them."""

from __future__ import annotations

import operator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._bags import Bags
from .._base import BaseAttentionClassifier, bags_of_documents
from .._classifier import ClsAttentionClassifier
from .._text_classifier import TextClassifier
from ..text._context_vectorizer import ContextVectorizer, bags_of

# The names of each classifier's columns, and the fitted model that they belong to; not pickled.
_NAMES: WeakKeyDictionary[Any, tuple[list[Any], NDArray[np.object_]]] = WeakKeyDictionary()


def parts_of(estimator: Any) -> tuple[list[Any], BaseAttentionClassifier]:
    """Return the steps before the classifier of an estimator, and the classifier.

    The estimator is a classifier of this package, a Pipeline that ends in one, an estimator that
    has a `vectorizer_` and a `classifier_`, or a fitted search over any of these.
    """
    steps: list[Any] = []
    inner = estimator
    if isinstance(estimator, TextClassifier):
        check_is_fitted(estimator)
    while not isinstance(inner, BaseAttentionClassifier):
        if isinstance(inner, Pipeline):
            # A prediction does not go through samplers, nor through "passthrough".
            steps += [step for _, step in inner.steps[:-1] if hasattr(step, "transform")]
            inner = inner.steps[-1][1]
        elif hasattr(inner, "vectorizer_") and hasattr(inner, "classifier_"):
            steps.append(inner.vectorizer_)
            inner = inner.classifier_
        elif hasattr(inner, "best_estimator_"):
            inner = inner.best_estimator_
        elif isinstance(inner, FrozenEstimator):
            inner = inner.estimator
        else:
            raise TypeError(
                "expected a fitted classifier of this package, or a Pipeline that ends in one, got "
                f"{type(inner).__name__}: if it contains such a fitted classifier, pass that"
            )
    return steps, inner


def column_names(steps: list[Any], classifier: BaseAttentionClassifier) -> NDArray[np.object_]:
    """Return the names of a classifier's columns, (n_columns,), found once for a fitted model.

    They are those of the steps' ``get_feature_names_out``, or x0, x1, ...
    """
    model = [*steps, classifier.intercept_]
    if classifier in _NAMES:
        last_model, last_names = _NAMES[classifier]
        if len(model) == len(last_model) and all(map(operator.is_, model, last_model)):
            return last_names
    # 1) the names that the steps give; after a step without names, those of the next by itself
    names: Any = None
    for step in steps:
        try:
            names = step.get_feature_names_out(names)
        except (AttributeError, ValueError):
            names = None
    # 2) the names of the classifier's own input
    if names is None:
        unnamed = [f"x{at}" for at in range(classifier.n_features_in_)]
        names = getattr(classifier, "feature_names_in_", unnamed)
    names = np.asarray(names, dtype=object)
    _NAMES[classifier] = model, names
    return names


def classifier_input(steps: list[Any], classifier: BaseAttentionClassifier, documents: Any) -> Bags:
    """Return documents as the classifier reads them.

    A classifier that damps counts by itself reads those of columns, not of words with characters.
    """
    for step in steps:
        makes_bags = (
            step is steps[-1]
            and isinstance(step, ContextVectorizer)
            and isinstance(classifier, ClsAttentionClassifier)
            and not hasattr(classifier, "entry_scale_")
        )
        documents = bags_of(step, documents) if makes_bags else step.transform(documents)
    return bags_of_documents(classifier, documents)
