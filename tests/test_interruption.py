"""A fit that fails or is interrupted, at any moment, leaves its estimator as it was."""

import inspect
import itertools
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import data
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from test_contract import CLASSIFIERS as TRAININGS

import sklearn_clsattn
from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer, paper, text
from sklearn_clsattn.text import ContextVectorizer, TokenVectorizer

ROOT = Path(sklearn_clsattn.__file__).parent
X, y = data(2, n_documents=24, n_tokens=8)
Z, z = data(3, seed=1, n_documents=24, n_tokens=5)
BOTH = [0, 1]  # the classes
TEXTS = np.array(["a good film", "a bad film", "good fun", "bad, dull fun"] * 6, dtype=object)

# An estimator, the call that is interrupted, and the arguments of the fit before.
CASES = {name: (estimator, "fit", (Z, z), (X, y)) for name, estimator in TRAININGS.items()}
BATCHES = "partial_fit", (X[:12], y[:12], BOTH), (X, y, BOTH)
CASES |= {
    "batches": (ClsAttentionClassifier(C=1.0), *BATCHES),
    "importance": (TokenImportanceTransformer(), *BATCHES),
    "context": (ContextVectorizer(min_df=1), "fit_transform", (TEXTS[:8], y[:8]), (TEXTS, y)),
    "tokens": (TokenVectorizer(), "fit_transform", (TEXTS[:2],), (TEXTS,)),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def state(estimator):
    """Return all that an estimator holds, as bytes, and the objects themselves."""
    return pickle.dumps(estimator), vars(estimator).copy()


def assert_unchanged(estimator, before):
    assert pickle.dumps(estimator) == before[0]
    assert vars(estimator).keys() == before[1].keys()
    assert all(value is before[1][name] for name, value in vars(estimator).items())


def interrupt_at_line(number, call):
    """Call a function, interrupted when the package comes to its line of some number, if it does.

    Return how many lines of the package were run.
    """
    count = 0

    def lines(frame, event, _):
        nonlocal count
        if event == "line":
            count += 1
            if count == number:
                raise KeyboardInterrupt
        return lines

    def calls(frame, event, _):
        code = frame.f_code
        # Where a lock is held: tracing would interrupt between the end of the block and the
        # release, as no signal can, and the lock would stay held.
        left_alone = code.co_name in ("fitting", "thread_pool", "__enter__", "__exit__")
        inside = code.co_filename.startswith(str(ROOT)) and not left_alone
        return lines if inside else None

    earlier = sys.gettrace()
    sys.settrace(calls)
    try:
        call()
    finally:
        sys.settrace(earlier)
    return count


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fitted", [False, True])
def test_any_line_of_the_package(name, fitted):
    estimator, method, earlier, data = CASES[name]
    model, rng = clone(estimator), np.random.default_rng(len(name))
    fit = getattr(model, method)
    if fitted:
        fit(*earlier)
    before = state(model)
    getattr(clone(estimator), method)(*data)  # a first call imports, which are lines as well
    expected = pickle.loads(before[0])
    total = interrupt_at_line(0, lambda: getattr(expected, method)(*data))
    for number in total * (np.arange(6) + rng.random(6)) / 6:
        with pytest.raises(KeyboardInterrupt):
            interrupt_at_line(1 + int(number), lambda: fit(*data))
        assert_unchanged(model, before)
    fit(*data)  # goes on as if nothing had been
    for attribute, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            assert_array_equal(getattr(model, attribute), value)


def test_all_estimators_are_guarded():
    modules = sklearn_clsattn, paper, text
    public = [getattr(module, name) for module in modules for name in module.__all__]
    found = [kind for kind in public if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]
    assert len(found) >= 7
    ours = {base for kind in found for base in kind.__mro__ if "clsattn" in base.__module__}
    for kind, method in itertools.product(ours, ["fit", "partial_fit", "fit_transform"]):
        if method not in vars(kind):
            continue
        function, names = inspect.getattr_static(kind, method), set()
        while function is not None:  # one wrapper after another
            function = getattr(function, "fn", function)  # of available_if
            names.add(function.__code__.co_name)
            function = getattr(function, "__wrapped__", None)
        assert "fitting" in names, (kind, method)


def test_a_warning_that_is_an_error_has_fitted_nothing():
    model = ClsAttentionClassifier(C=1.0, tol=1e-9).fit(X, y)
    before = state(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.set_params(tol=0.0).fit(Z, z)
    assert_unchanged(model.set_params(tol=1e-9), before)
