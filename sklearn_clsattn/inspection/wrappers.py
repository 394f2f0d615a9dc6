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
_BY_CLASS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
_ENSEMBLES = ("VotingClassifier", "BaggingClassifier", "StackingClassifier")
_SEVERAL = (*_BY_CLASS, *_ENSEMBLES, "MultiOutputClassifier", "ClassifierChain")


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
    if kind in _SEVERAL:
        raise TypeError(
            f"{kind} has several classifiers, each with attention of its own, which is no single "
            f"sum: explain one of them, such as {path.format('.estimators_[0]')}"
            + (", or fit the classifier itself, which takes any number of classes")
            * (kind in _BY_CLASS)
        )
    if not isinstance(wrapper, CalibratedClassifierCV):
        return None
    if not hasattr(wrapper, "calibrated_classifiers_"):
        raise NotFittedError(f"This {kind} is not fitted: fit it first.")
    calibrated = wrapper.calibrated_classifiers_[0]
    n_models = len(wrapper.calibrated_classifiers_)
    refused = None
    if n_models > 1:
        refused = f"averages the probabilities of {n_models} models", "ensemble=False"
    elif calibrated.method == "isotonic":
        refused = "with method='isotonic' maps decisions by steps", "method='sigmoid'"
    elif calibrated.method == "sigmoid" and len(calibrated.classes) > 2:
        refused = (
            "with method='sigmoid' calibrates each of several classes by itself",
            "method='temperature' (scikit-learn 1.8 or later)",
        )
    if refused:
        raise TypeError(
            f"{kind} {refused[0]}, after which no sum over tokens is left: fit it with "
            f"{refused[1]}, or explain "
            f"{path.format('.calibrated_classifiers_[0].estimator')}, whose decisions are those "
            "before calibration"
        )
    return calibrated.estimator


def outcome(wrappers: list[Any]) -> Outcome:
    """Return what wrappers, the outermost first, make of the decisions of the classifier."""
    scale, shift, threshold = 1.0, 0.0, 0.0
    for wrapper in reversed(wrappers):
        if isinstance(wrapper, _THRESHOLDS):
            threshold = _threshold(wrapper)
            continue
        calibrated = wrapper.calibrated_classifiers_[0]
        (calibrator,) = calibrated.calibrators
        if calibrated.method == "sigmoid":
            slope, constant = -float(calibrator.a_), -float(calibrator.b_)
        else:  # of two classes, the temperature is that of the decisions (-F, F)
            slope = float(calibrator.beta_) * (2.0 if len(calibrated.classes) == 2 else 1.0)
            constant = 0.0
        scale, shift, threshold = slope * scale, slope * shift + constant, 0.0
    return Outcome(scale, shift, threshold, bool(wrappers))


def _threshold(wrapper: Any) -> float:
    """Return the log-odds of the second class from which on it is predicted."""
    if isinstance(wrapper, TunedThresholdClassifierCV):
        at, pos_label = wrapper.best_threshold_, wrapper._curve_scorer._get_pos_label()
    else:
        at, pos_label = wrapper.threshold, wrapper.pos_label
        if at == "auto":
            return 0.0
    log_odds = at
    if wrapper.response_method != "decision_function" and hasattr(wrapper, "predict_proba"):
        if not 0 < at < 1:
            raise ValueError(
                f"{type(wrapper).__name__} predicts one class whatever the document says, by its "
                f"threshold of {at:g}: explain its estimator_"
            )
        log_odds = logit(at)
    return float(log_odds if pos_label is None or pos_label == wrapper.classes_[1] else -log_odds)
