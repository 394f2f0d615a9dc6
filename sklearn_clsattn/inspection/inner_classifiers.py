"""The classifiers inside a fitted estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .._text_classifier import TextClassifier
from ..text._keywords import Keywords


@dataclass(frozen=True, eq=False)
class Member:
    """A classifier inside an estimator, and the steps through which documents go before it."""

    steps: list[Any]
    classifier: Any
    share: float  # in the average decision


@dataclass(frozen=True, eq=False)
class Members:
    """The classifiers inside a fitted estimator: several of a vote or of folds, else one.

    The only one `decides` unless the estimator changes its probabilities or its threshold.
    """

    members: list[Member]
    decides: bool
    threshold: Any = None  # the estimator that changes the threshold, if one does


def members_of(estimator: Any) -> Members:
    """Return the classifiers inside a fitted estimator."""
    # 1) A chain of steps that ends in the only one.
    if isinstance(estimator, Pipeline):
        return _after(_steps(estimator.steps[:-1]), members_of(estimator.steps[-1][1]))
    if isinstance(estimator, TextClassifier):
        check_is_fitted(estimator)
        return _after([estimator.vectorizer_], members_of(estimator.classifier_))
    if isinstance(estimator, Keywords):
        check_is_fitted(estimator)
        return members_of(estimator.model_)
    if hasattr(estimator, "best_estimator_"):
        return members_of(estimator.best_estimator_)
    if isinstance(estimator, FrozenEstimator):
        return members_of(estimator.estimator)
    # 2) Estimators that predict otherwise than those inside.
    if isinstance(estimator, FixedThresholdClassifier | TunedThresholdClassifierCV):
        # Without a fit, one that is fixed predicts by what it was given.
        inside = members_of(getattr(estimator, "estimator_", estimator.estimator))
        return Members(inside.members, decides=False, threshold=estimator)
    if isinstance(estimator, CalibratedClassifierCV):
        check_is_fitted(estimator)
        folds = [fold.estimator for fold in estimator.calibrated_classifiers_]
        return _together(folds, [1.0] * len(folds))
    if isinstance(estimator, VotingClassifier):
        check_is_fitted(estimator)
        return _together(estimator.estimators_, _voting_weights(estimator))
    # 3) A classifier.
    if isinstance(estimator, BaseEstimator):
        check_is_fitted(estimator)
    return Members([Member([], estimator, 1.0)], decides=True)


def _steps(named_steps: list[tuple[str, Any]]) -> list[Any]:
    """Return the steps through which documents go, also those inside Pipelines."""
    steps = []
    for _, step in named_steps:
        if isinstance(step, Pipeline):
            steps += _steps(step.steps)
        elif hasattr(step, "transform"):  # neither a sampler nor "passthrough"
            steps.append(step)
    return steps


def _after(steps: list[Any], inside: Members) -> Members:
    """Return the classifiers inside the last of several steps."""
    members = []
    for member in inside.members:
        members.append(Member([*steps, *member.steps], member.classifier, member.share))
    return Members(members, inside.decides, inside.threshold)


def _together(estimators: list[Any], weights: list[float]) -> Members:
    """Return the classifiers inside several estimators."""
    members = []
    for estimator, weight in zip(estimators, weights, strict=True):
        for member in members_of(estimator).members:
            share = member.share * weight / sum(weights)
            members.append(Member(member.steps, member.classifier, share))
    return Members(members, decides=False)


def _voting_weights(voting: VotingClassifier) -> list[float]:
    """Return the weights of the classifiers that vote."""
    if voting.weights is None:
        return [1.0] * len(voting.estimators_)
    weights = []
    for weight, (_, estimator) in zip(voting.weights, voting.estimators, strict=True):
        if estimator != "drop":
            weights.append(float(weight))
    return weights


def has_several_labels(classifier: Any) -> bool:
    """Return whether a fitted classifier predicts several labels for a document."""
    binarizer = getattr(classifier, "_label_binarizer", None)
    y_type = str(getattr(binarizer, "y_type_", ""))
    return bool(getattr(classifier, "multilabel_", False)) or y_type.startswith("multilabel")
