"""What scikit-learn's checks of estimators cannot ask of this package's."""

from __future__ import annotations

from typing import Any

__all__ = ["expected_failed_checks"]

_NEGATIVE = (
    "feeds negative blobs whatever the tag positive_only says: "
    "the other checks move theirs into the positive"
)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the checks of scikit-learn that an estimator of this package fails, with the reason.

    Parameters
    ----------
    estimator : estimator
        One of this package.

    Returns
    -------
    checks : dict
        Names of checks and why each does not apply, as the parameter `expected_failed_checks` of
        :func:`~sklearn.utils.estimator_checks.check_estimator` takes them.

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
