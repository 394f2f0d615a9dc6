"""The estimator checks of scikit-learn that do not apply to this package."""

from __future__ import annotations

from typing import Any

__all__ = ["expected_failed_checks"]

_NEGATIVE = "passes negative numbers, although the tag positive_only is set"


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the scikit-learn checks that an estimator is expected to fail, with reasons.

    Parameters
    ----------
    estimator : estimator
        An estimator of this package.

    Returns
    -------
    checks : dict
        Maps the name of a check to the reason. Pass it to
        :func:`~sklearn.utils.estimator_checks.check_estimator` as `expected_failed_checks`.

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
