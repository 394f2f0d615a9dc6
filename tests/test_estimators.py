"""scikit-learn's own checks of an estimator, all of them, none expected to fail."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_clsattn import ClsAttentionClassifier

# Two checks feed their blobs as they are to estimators that take non-negative numbers only
# (tag `positive_only`), where all others call _enforce_estimator_tags_X. They are run all
# the same, on the same blobs moved into the positive.
NEGATIVE_BLOBS = {"check_class_weight_classifiers", "check_decision_proba_consistency"}

# A list of what scikit-learn 1.6 gives as a generator, which pytest 9 warns of.
CHECKS = parametrize_with_checks(
    [
        ClsAttentionClassifier(),
        ClsAttentionClassifier(class_weight="balanced"),
        ClsAttentionClassifier(token_scaling=None, attention_C=1.0, warm_start=True),
    ]
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_scikit_learn_checks(estimator, check, monkeypatch):
    if estimator.attention_C == 1.0:  # free attention may take long; the defaults never do
        warnings.simplefilter("ignore", ConvergenceWarning)
    if check.func.__name__ in NEGATIVE_BLOBS:
        make_blobs = estimator_checks.make_blobs

        def make_non_negative_blobs(**options):
            X, y = make_blobs(**options)
            return X - X.min(), y

        monkeypatch.setattr(estimator_checks, "make_blobs", make_non_negative_blobs)
    check(estimator)
