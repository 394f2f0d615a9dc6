"""The checks of scikit-learn that do not apply to this package's estimators."""

from __future__ import annotations

from typing import Any

__all__ = ["expected_failed_checks"]

_NEGATIVE = "passes negative numbers, although the tag positive_only is set"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn that an estimator of this package fails, with the reason.

    Parameters
    ----------
    estimator : estimator
        One of this package.

    Returns
    -------
    checks : dict
        From the name of a check to the reason, for the parameter `expected_failed_checks` of
        :func:`~sklearn.utils.estimator_checks.check_estimator`.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.checks import expected_failed_checks
    >>> sorted(expected_failed_checks(ClsAttentionClassifier()))
    ['check_class_weight_classifiers', 'check_decision_proba_consistency']
    """
    checks = {}
    if hasattr(estimator, "decision_function"):
        checks["check_decision_proba_consistency"] = _NEGATIVE
    if "class_weight" in estimator.get_params():
        checks["check_class_weight_classifiers"] = _NEGATIVE
    return checks
