"""scikit-learn's own tests of comparable estimators, run against ours by name."""

import inspect

import pytest
import sklearn.feature_extraction.tests.test_text as vectorizer_tests
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils import estimator_checks
from test_trainings import TRAININGS

from sklearn_clsattn import ClsAttentionClassifierCV, TokenImportanceTransformer
from sklearn_clsattn.text import TokenVectorizer, _raw, _token_vectorizer

# What scikit-learn runs on its own estimators beside check_estimator.
CHECKS = [
    "check_param_validation",
    "check_dataframe_column_names_consistency",
    "check_all_zero_sample_weights_error",
]
ESTIMATORS = {
    **TRAININGS,
    "cross-validation": ClsAttentionClassifierCV(Cs=2, cv=2),
    "importance": TokenImportanceTransformer(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_checks_beside_check_estimator(name, check):
    estimator = clone(ESTIMATORS[name])
    function = getattr(estimator_checks, check, None)
    if function is None:
        pytest.skip(f"this scikit-learn has no {check}")
    function(type(estimator).__name__, estimator)


def vectorizer_cases():
    """Yield scikit-learn's tests of CountVectorizer that take no parameters, by name."""
    for name, function in vars(vectorizer_tests).items():
        if not (name.startswith("test_") and inspect.isfunction(function)):
            continue
        if inspect.signature(function).parameters:
            continue
        if "CountVectorizer" in inspect.getsource(function):
            yield name


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", sorted(vectorizer_cases()))
@pytest.mark.parametrize("fast", [True, False])
def test_of_count_vectorizer(name, fast, monkeypatch):
    assert issubclass(TokenVectorizer, CountVectorizer)
    monkeypatch.setattr(vectorizer_tests, "CountVectorizer", TokenVectorizer)
    if fast:  # however few documents
        for module in (_raw, _token_vectorizer):
            monkeypatch.setattr(module, "MIN_SIZE", 0)
        monkeypatch.setattr(_token_vectorizer, "_SIZE_PER_TERM", 0)
    getattr(vectorizer_tests, name)()
