"""scikit-learn's own tests of comparable estimators, run against ours by name.

What does not apply: its tests of metadata routing are of meta-estimators, and of estimators that
record an argument `metadata`; ours consume `sample_weight` and route nothing (groups cannot be
passed to the splitter of ClsAttentionClassifierCV). Its other tests of callbacks are of
meta-estimators, of regressors, or of processes that cannot import a class of these tests. Array
API support is not claimed.
"""

import importlib
import inspect
import warnings

import numpy as np
import pytest
import sklearn.feature_extraction.tests.test_text as vectorizer_tests
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tests.metadata_routing_common import assert_request_is_empty
from sklearn.utils import estimator_checks
from test_trainings import TRAININGS

from sklearn_clsattn import (
    ClsAttentionClassifier,
    ClsAttentionClassifierCV,
    TokenImportanceTransformer,
)
from sklearn_clsattn._callbacks import HAS_CALLBACKS
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


# Metadata routing


@config_context(enable_metadata_routing=True)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_is_requested_by_default(name):
    assert_request_is_empty(clone(ESTIMATORS[name]).get_metadata_routing())


@config_context(enable_metadata_routing=True)
def test_weights_are_routed_through_a_search():
    rng = np.random.default_rng(0)
    X, y, weights = rng.poisson(1.0, (60, 8)), np.arange(60) % 2, rng.integers(1, 4, 60)
    model = ClsAttentionClassifier(C=1.0)
    steps = Pipeline([("model", model)])
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        steps.fit(X, y, sample_weight=weights)
    model.set_fit_request(sample_weight=True)
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    search = GridSearchCV(steps, {"model__C": [1.0]}, cv=2, scoring=scorer)
    search.fit(X, y, sample_weight=weights)
    alone = ClsAttentionClassifier(C=1.0).fit(X, y, sample_weight=weights)
    assert_array_equal(search.best_estimator_["model"].token_values_, alone.token_values_)


# Callbacks


class MaxIterEstimator(ClsAttentionClassifier):
    """Ours as scikit-learn's tests call theirs: without data, for all of its iterations."""

    def __init__(self, max_iter=20):
        super().__init__(C=1.0, tol=0.0, max_iter=max_iter)

    def fit(self, X=None, y=None):
        rng = np.random.default_rng(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(rng.poisson(1.0, (200, 20)), rng.integers(0, 2, 200))


CALLBACK_TESTS = {
    "test_callback_support": [
        "test_set_callbacks",
        "test_set_callbacks_error",
        "test_set_callback_empty",
        "test_callback_error",
        "test_teardown_matches_setup_calls_on_partial_setup_failure",
        "test_multiple_teardown_errors_are_grouped",
    ],
    "test_callback_context": [
        "test_callback_hooks_called",
        "test_hook_calling_invalid_kwargs_out",
        "test_hook_calling_return_value",
        "test_hook_calling_lazy_evaluation",
        "test_hook_calling_lazy_evaluation_reconstruction_attributes",
        "test_from_reconstruction_attributes",
        "test_subcontext_task_id_ordering",
        "test_subcontext_task_id_ordering_error",
        "test_callback_context_repr",
    ],
    "test_pickle": [
        "test_estimator_with_callback_pickle_roundtrip_pre_fit",
        "test_estimator_with_callback_pickle_roundtrip_post_fit",
    ],
}
if HAS_CALLBACKS:
    for home, names in CALLBACK_TESTS.items():
        module = importlib.import_module(f"sklearn.callback.tests.{home}")
        for name in names:  # collected here, with scikit-learn's parameters
            globals()[name] = getattr(module, name)


@pytest.fixture(autouse=True)
def ours_for_theirs(request, monkeypatch):
    """Put our estimator in the place of theirs in scikit-learn's tests of callbacks."""
    theirs = request.function.__globals__
    if theirs["__name__"].startswith("sklearn.callback"):
        monkeypatch.setitem(theirs, "MaxIterEstimator", MaxIterEstimator)
