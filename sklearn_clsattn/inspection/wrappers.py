"""Classifiers around a classifier, as far as what they make of its decision is a sum over tokens.

A threshold moves where the prediction of two classes changes; a calibration by a sigmoid or a
temperature is linear in the decision. Others are refused with what to explain instead.
"""

from dataclasses import dataclass
from typing import Any

from scipy.special import logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

_THRESHOLDS = (FixedThresholdClassifier, TunedThresholdClassifierCV)

_ITS_OWN = (
    "has several classifiers, each with attention of its own, which is no single sum: explain one "
    "of them, such as {}"
)
_REFUSED = {
    **dict.fromkeys(
        ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier"),
        _ITS_OWN + ", or fit the classifier itself, which takes any number of classes",
    ),
    **dict.fromkeys(
        ("MultiOutputClassifier", "VotingClassifier", "BaggingClassifier", "StackingClassifier"),
        _ITS_OWN,
    ),
    "ClassifierChain": (
        "has a classifier for each label, and all but the first also read the labels before: "
        "explain the first, {}, or fit a MultiOutputClassifier"
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What wrappers, if there are any, make of the decisions F of the classifier in them."""

    scale: float = 1.0
    shift: float = 0.0  # scale F + shift is explained
    threshold: float = 0.0  # of two classes, from where on the second one is predicted
    wrapped: bool = False

    def of(self, decisions: Any) -> Any:
        """Return what becomes of decisions or intercepts, of any shape."""
        return self.scale * decisions + self.shift if self.wrapped else decisions


def inside(wrapper: Any, path: str) -> Any:
    """Return the classifier in a threshold or calibration; None if it is neither.

    `path` is code for the wrapper, with a place for what is taken of it, for errors.
    """
    kind = type(wrapper).__name__
    if isinstance(wrapper, _THRESHOLDS):
        return getattr(wrapper, "estimator_", wrapper.estimator)
    if kind in _REFUSED:
        raise TypeError(f"{kind} {_REFUSED[kind].format(path.format('.estimators_[0]'))}")
    if not isinstance(wrapper, CalibratedClassifierCV):
        return None
    if not hasattr(wrapper, "calibrated_classifiers_"):
        raise NotFittedError(f"This {kind} is not fitted: fit it first.")
    one = wrapper.calibrated_classifiers_[0]
    instead = (
        f"or explain {path.format('.calibrated_classifiers_[0].estimator')}, whose decisions are "
        "those before calibration"
    )
    n_models = len(wrapper.calibrated_classifiers_)
    if n_models > 1:
        raise TypeError(
            f"{kind} averages the probabilities of {n_models} models, which is no sum over tokens: "
            f"fit it with ensemble=False, {instead}"
        )
    if one.method == "isotonic":
        raise TypeError(
            f"{kind} with method='isotonic' maps decisions by steps, after which no sum over "
            f"tokens is left: fit it with method='sigmoid', {instead}"
        )
    if one.method == "sigmoid" and len(one.classes) > 2:
        raise TypeError(
            f"{kind} with method='sigmoid' calibrates each of several classes by itself, after "
            "which no sum over tokens is left: fit it with method='temperature' (scikit-learn "
            f"1.8 or later), {instead}"
        )
    return one.estimator


def outcome(wrappers: list[Any]) -> Outcome:
    """Return what wrappers, the outermost first, make of the decisions of the classifier."""
    scale, shift, threshold = 1.0, 0.0, 0.0
    for wrapper in reversed(wrappers):
        if isinstance(wrapper, _THRESHOLDS):
            threshold = _threshold(wrapper)
            continue
        one = wrapper.calibrated_classifiers_[0]
        (calibrator,) = one.calibrators
        if one.method == "sigmoid":
            slope, constant = -float(calibrator.a_), -float(calibrator.b_)
        else:  # of two classes, the temperature is that of the decisions (-F, F)
            slope = float(calibrator.beta_) * (2.0 if len(one.classes) == 2 else 1.0)
            constant = 0.0
        scale, shift, threshold = slope * scale, slope * shift + constant, 0.0
    return Outcome(scale, shift, threshold, bool(wrappers))


def _threshold(wrapper: Any) -> float:
    """Return the log-odds of the second class from which on it is predicted."""
    if isinstance(wrapper, TunedThresholdClassifierCV):
        at, method = wrapper.best_threshold_, wrapper.response_method
        pos_label = wrapper._curve_scorer._get_pos_label()
    else:
        at, method, pos_label = wrapper.threshold, wrapper.response_method, wrapper.pos_label
        if at == "auto":
            return 0.0
    by_decision = method == "decision_function" or not hasattr(wrapper, "predict_proba")
    if not by_decision and not 0 < at < 1:
        raise ValueError(
            f"{type(wrapper).__name__} predicts one class whatever the document says, by its "
            f"threshold of {at:g}: explain its estimator_"
        )
    log_odds = float(at if by_decision else logit(at))
    is_second = pos_label is None or pos_label == wrapper.classes_[1]
    return log_odds if is_second else -log_odds
