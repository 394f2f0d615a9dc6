"""scikit-learn's own tests pass with our classifier in the place of LogisticRegression.

Each suite runs in a process of pytest, whose plugin this file is. Of its tests, those run that
mention LogisticRegression, or the estimator that the tests of callbacks have.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LogisticRegression

from sklearn_clsattn import ClsAttentionClassifier, _validation
from sklearn_clsattn._matrices import as_csr

RESULTS = "RESULTS_OF_SUITE"  # the file that the plugin writes, in the environment
ITS_NAMES = re.compile(r"\b(LogisticRegression|MaxIterEstimator)\b")

# Tests of LogisticRegressionCV, of CuPy, of a Python without the plugin, and two that take long.
LEFT_OUT = re.compile(
    r"logistic.py::\w*(cv|CV|path|array_api|vs_l1)|outside_main|threading_backend"
)

SUITES = {  # modules of scikit-learn
    "logistic": "linear_model.tests.test_logistic",
    "callbacks": "callback",
    "ensembles": "ensemble.tests.test_voting ensemble.tests.test_stacking",
    "bagging": "ensemble.tests.test_bagging",
    "selection": """model_selection.tests.test_search model_selection.tests.test_validation
        feature_selection.tests.test_from_model feature_selection.tests.test_rfe""",
    "probabilities": """model_selection.tests.test_classification_threshold tests.test_calibration
        semi_supervised.tests.test_self_training frozen""",
    "outputs": "tests.test_multiclass tests.test_multioutput",
    "pipelines": "tests.test_pipeline tests.test_metaestimators",
    "metrics": "metrics.tests.test_score_objects metrics._plot",
    "inspection": "inspection",
    "representations": """utils._repr_html utils.tests.test_response utils.tests.test_pprint
        utils.tests.test_class_weight utils.tests.test_plotting""",
}
NOT_OURS = {  # tests that do not apply, as patterns of their names after "test_"
    "logistic": {
        "LogisticRegression's numbers": """logistic_glmnet write_parameters elastic_net_coeffs
            logistic_regression_solvers_multiclass LogisticRegression_elastic_net_objective
            elastic_net_versus_sgd scores_attribute_layout_elasticnet
            multinomial_identifiability_on_iris""",
        "its choice of solvers and penalties": """check_solver_option:LogisticRegression
            elasticnet_l1_ratio_err_*:LogisticRegression-* liblinear_dual_* liblinear_with_*
            liblinear_multiclass_raises:LogisticRegression l1_ratio_* penalty_none
            penalty_deprecated:LogisticRegression large_sparse_matrix:*-[ls]*
            newton_cholesky_fallback_* logisticregression_warns_with_n_jobs lr_penalty_*
            *_callback_support_warning""",
        "the name of a solver in the warning": "max_iter",
        "C=inf or max_iter=0, which we refuse": """c_inf_no_warning zero_max_iter *_unpenalized
            logistic_regression_callback_support:0""",
        "it counts an empty iteration more": "logistic_regression_callback_support:2",
        "class_weight: ours changes intercepts alone": """*_solver_class_weights
            sample_and_class_weight_equivalence_liblinear logistic_regression_class_weights""",
        "there is always an intercept": "logreg_intercept_scaling_zero liblinear_decision_*",
        "warm_start": "warm_start:*-True-True-* warm_start:*-False-True-* warm_start_newton_solver",
        "n_iter_ is a number": "n_iter",
        "coef_ is float64 of float32, too": "dtype_match",
        "sparsify, or a private method": "sparsify logreg_predict_proba_multinomial",
        "callbacks see no model between iterations": "*_callback_fitted_estimator",
    },
    "callbacks": {
        "callbacks see no model between iterations": """score_after_fit logged_values*
            get_logs_include_lineage_ancestor_retrieval scoring_monitor_no_callback_support"""
    },
    "selection": {
        "LogisticRegression's numbers": "sample_weight",
        "sparsify": "feature_importance_sparse rfe_sparse_coef",
        "halving wants 8 samples for a classifier": "search_callbacks_*:search[23]*",
    },
    "probabilities": {"C=inf, which we refuse": "temperature_scaling"},
    "outputs": {
        "LogisticRegression has no partial_fit": "multiclass_estimator_attribute_error",
        "LogisticRegression's numbers": """multiclass_multioutput_estimator_predict_proba
            classifier_chain_vs_independent_models""",
    },
    "metrics": {
        "LogisticRegression's numbers": """display_from_cv_results_legend_label
            roc_curve_display_plotting_from_cv_results"""
    },
    "inspection": {"LogisticRegression's numbers": "permutation_importance_mixed_types"},
    "representations": {"class_weight: ours changes intercepts alone": "*_weight_invariance"},
}


class InItsPlace(ClsAttentionClassifier):
    """Our classifier with the parameters of LogisticRegression, most of which it ignores."""

    attention_C, attend_cls, token_scaling, device = 0.03, True, "log_odds", "cpu"

    def __init__(
        self, penalty="deprecated", *, C=1.0, l1_ratio=0.0, dual=False, tol=1e-4,
        fit_intercept=True, intercept_scaling=1, class_weight=None, random_state=None,
        solver="lbfgs", max_iter=100, verbose=0, warm_start=False, n_jobs=None,
    ):  # fmt: skip
        self.penalty, self.l1_ratio, self.dual, self.solver = penalty, l1_ratio, dual, solver
        self.fit_intercept, self.intercept_scaling = fit_intercept, intercept_scaling
        self.random_state, self.warm_start, self.n_jobs = random_state, warm_start, n_jobs
        self.C, self.tol, self.class_weight = C, tol, class_weight
        self.max_iter, self.verbose = max_iter, verbose

    @property
    def coef_(self):
        """What tests compare that want two fits to be the same; here the values alone."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("coef_")
        positive, negative = np.split(np.atleast_2d(self.token_values_), 2, axis=1)
        return positive - negative

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


class Iterations(InItsPlace):
    """Our classifier as the tests of callbacks have their estimator, which needs no data."""

    def __init__(self, max_iter=20, computation_intensity=0.001):
        super().__init__(max_iter=max_iter, tol=0)
        self.computation_intensity = computation_intensity

    def fit(self, X=None, y=None, *, sample_weight=None):
        X = [[1, 2], [0, 2], [3, 0], [1, 4]] if X is None else X
        y = [1, 1, 0, 1] if y is None else y > np.median(y)
        return super().fit(X, y, sample_weight)


# As they are printed, and named in messages; a pickle has the qualified names.
InItsPlace.__name__, Iterations.__name__ = "LogisticRegression", "MaxIterEstimator"


def in_two_parts(validate_data):
    """Return a `validate_data` that returns a column twice: its positive and negative part."""

    def validated(estimator, X, **options):
        X = validate_data(estimator, X, **options)
        if options.get("skip_check_array"):
            return X
        X = as_csr(X)
        return sp.hstack([X.multiply(X > 0), abs(X).multiply(X < 0)], format="csr")

    return validated


def take_its_place():
    """Replace LogisticRegression in every module but its own, before tests are imported."""
    utils = import_module("sklearn.callback.tests._utils")
    utils.MaxIterEstimator = Iterations
    import_module("sklearn.ensemble")  # which has a LogisticRegression by default
    import_module("sklearn_clsattn.training.fit")  # or the first fit takes a second more
    _validation.validate_data = in_two_parts(_validation.validate_data)
    for name, module in list(sys.modules.items()):
        is_other = name not in (__name__, "sklearn.linear_model._logistic")
        if is_other and vars(module).get("LogisticRegression") is LogisticRegression:
            module.LogisticRegression = InItsPlace


def mentions_it(value, module):
    """Return whether the classifier is named where a module defines a value."""
    is_own = getattr(value, "__module__", None) == module.__name__ and hasattr(value, "__name__")
    text = inspect.getsource(value) if is_own else "" if callable(value) else repr(value)
    return ITS_NAMES.search(text) is not None


@cache
def names_in(module):
    """Return a pattern of the names by which a module of tests reaches the classifier."""
    names = [name for name, value in vars(module).items() if mentions_it(value, module)]
    return re.compile(rf"\b({'|'.join([ITS_NAMES.pattern, *names])})\b")


def applies(item):
    """Return whether a test, or a parameter of it, mentions the classifier."""
    text = inspect.getsource(item.function) + repr(getattr(item, "callspec", ""))
    return names_in(item.module).search(text) and not LEFT_OUT.search(item.nodeid)


if RESULTS in os.environ:  # in the process of a suite, and in those that joblib starts for it
    take_its_place()
    outcomes = {}

    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if applies(item)]

    def pytest_runtest_logreport(report):
        if report.when == "call" or report.outcome != "passed":
            outcomes[report.nodeid] = report.outcome

    def pytest_sessionfinish():
        Path(os.environ[RESULTS]).write_text(json.dumps(outcomes), "utf-8")


def is_listed(test, pattern):
    """Return whether a pattern has a test: its function or, after a colon, its parameters."""
    function, _, parameters = test.partition("::")[2].rstrip("]").partition("[")
    return any(fnmatch(name, f"test_{pattern}") for name in (function, f"{function}:{parameters}"))


@pytest.mark.long
@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="tests of release 1.9")
@pytest.mark.parametrize("suite", SUITES)
def test_what_applies_passes(suite, tmp_path):
    here, installed = Path(__file__), Path(sklearn.__file__).parents[1]
    options = ["-q", "--tb=line", "-c", os.devnull, "--rootdir", str(installed)]
    options += ["-p", "no:cacheprovider", "-p", here.stem, "--pyargs"]
    modules = [f"sklearn.{module}" for module in SUITES[suite].split()]
    results = tmp_path / "results.json"
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *modules],
        env={**os.environ, RESULTS: str(results), "PYTHONPATH": str(here.parent)},
        cwd=tmp_path,
    )
    outcomes = json.loads(results.read_text("utf-8"))
    failed = [test for test, outcome in outcomes.items() if outcome == "failed"]
    patterns = " ".join(NOT_OURS.get(suite, {}).values()).split()
    assert not [test for test in failed if not any(is_listed(test, p) for p in patterns)]
    assert not [p for p in patterns if not any(is_listed(test, p) for test in failed)]
    assert "passed" in outcomes.values()
