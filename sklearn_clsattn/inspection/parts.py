"""The classifiers inside a fitted estimator, and the names of what they read."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._classifier import ClsAttentionClassifier

# The names of each classifier's columns, and the fitted model that they belong to; not pickled.
_NAMES: WeakKeyDictionary[Any, tuple[list[Any], NDArray[np.object_] | None]] = WeakKeyDictionary()


_THRESHOLDS = FixedThresholdClassifier, TunedThresholdClassifierCV


@dataclass(frozen=True, eq=False)
class Member:
    """A classifier inside an estimator, and the steps through which documents go before it.

    Its decisions count by its `share` in those of the estimator. It `decides` if the estimator
    predicts what it does: not if several vote, or its probabilities or threshold are changed.
    """

    steps: list[Any]
    classifier: Any
    share: float = 1.0
    decides: bool = True
    threshold: Any = None  # the outermost estimator that has changed its threshold


def members_of(estimator: Any) -> list[Member]:
    """Return the classifiers inside a fitted estimator: several of a vote or of folds, else one."""
    steps: list[Any] = []
    decides = True
    threshold = None
    shares = [1.0]
    # 1) What is directly inside.
    if isinstance(estimator, Pipeline):
        # A prediction does not go through samplers, nor through "passthrough".
        steps = [step for _, step in estimator.steps[:-1] if hasattr(step, "transform")]
        inside = [estimator.steps[-1][1]]
    elif hasattr(estimator, "vectorizer_") and hasattr(estimator, "classifier_"):
        steps = [estimator.vectorizer_]
        inside = [estimator.classifier_]
    elif hasattr(estimator, "best_estimator_"):
        inside = [estimator.best_estimator_]
    elif isinstance(estimator, FrozenEstimator):
        inside = [estimator.estimator]
    elif isinstance(estimator, VotingClassifier) and hasattr(estimator, "estimators_"):
        inside = estimator.estimators_
        decides = False
        shares = _voting_shares(estimator)
    elif hasattr(estimator, "calibrated_classifiers_"):
        inside = [fold.estimator for fold in estimator.calibrated_classifiers_]
        decides = False
        shares = [1 / len(inside)] * len(inside)
    elif isinstance(estimator, _THRESHOLDS) and hasattr(estimator, "estimator_"):
        inside = [estimator.estimator_]
        decides = False
        threshold = estimator
    else:
        if isinstance(estimator, BaseEstimator):
            check_is_fitted(estimator)
        return [Member([], estimator)]
    # 2) The members of these.
    members = []
    for one, share in zip(inside, shares, strict=True):
        for member in members_of(one):
            whole = Member(
                [*steps, *member.steps],
                member.classifier,
                share * member.share,
                decides and member.decides,
                threshold or member.threshold,
            )
            members.append(whole)
    return members


def _voting_shares(voting: VotingClassifier) -> list[float]:
    """Return the weights of the classifiers that vote, with the sum 1."""
    weights = voting.weights or [1.0] * len(voting.estimators)
    of_voters = []
    for weight, (_, estimator) in zip(weights, voting.estimators, strict=True):
        if estimator != "drop":
            of_voters.append(weight)
    return [weight / sum(of_voters) for weight in of_voters]


def attention_parts_of(estimator: Any) -> tuple[list[Any], ClsAttentionClassifier]:
    """Return the steps before the only classifier inside a fitted estimator, and the classifier."""
    member, *others = members_of(estimator)
    classifier = member.classifier
    if others or not member.decides or not isinstance(classifier, ClsAttentionClassifier):
        inner = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        raise TypeError(
            "expected a ClsAttentionClassifier, or a Pipeline that ends in one, got "
            f"{type(inner).__name__}"
        )
    return member.steps, classifier


def has_several_labels(classifier: Any) -> bool:
    """Return whether a fitted classifier predicts several labels for a document."""
    binarizer = getattr(classifier, "_label_binarizer", None)
    y_type = str(getattr(binarizer, "y_type_", ""))
    return bool(getattr(classifier, "multilabel_", False)) or y_type.startswith("multilabel")


def column_names(steps: list[Any], classifier: Any) -> NDArray[np.object_]:
    """Return the names of a classifier's columns, (n_columns,), found once for a fitted model.

    They are those of the steps' ``get_feature_names_out``, or x0, x1, ...
    """
    names = _given_names(steps, classifier)
    if names is None:
        names = np.array([f"x{at}" for at in range(classifier.n_features_in_)], dtype=object)
    return names


def have_names(steps: list[Any], classifier: Any) -> bool:
    """Return whether a classifier's columns have names, found once for a fitted model."""
    return _given_names(steps, classifier) is not None


def _given_names(steps: list[Any], classifier: Any) -> NDArray[np.object_] | None:
    """Return the names that steps or a data frame gave a classifier's columns, None of numbers."""
    model = [*steps, classifier.classes_]
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
        names = getattr(classifier, "feature_names_in_", None)
    if names is not None:
        names = np.asarray(names, dtype=object)
    _NAMES[classifier] = model, names
    return names
