"""Whatever is passed is answered, or refused in a sentence; nothing is half done."""

import io
import os
import pickle
import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from strategies import FORMATS, classifiers, entries, in_format, problems

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn._core.fitted import FittedAttention
from sklearn_clsattn.cli.commands import guarded_cell
from sklearn_clsattn.cli.saying import say

# What training and the package's other regimes warn of; a warning of NumPy's is an error.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:X .*feature names:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*step_size:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Training stopped:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*least populated class:UserWarning"),
]

# A few inputs while testing, always the same; in `make fuzz` many, which are never the same.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
tried = settings(
    max_examples=EXAMPLES or 25,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def refused(call):
    """Call; return the sentence in which it refuses, None if it does not."""
    try:
        call()
    except ValueError as error:
        message = str(error)
        assert len(message) > 20, message
        event(f"refused: {message[:40]}")
        return message
    return None


def numbers(model):
    """Yield the arrays and numbers that a model has been given."""
    for name, value in vars(model).items():
        if name.endswith("_") and name != "cls_score_" and isinstance(value, float | np.ndarray):
            value = np.asarray(value)
            if value.dtype.kind == "f" and name != "classes_":
                yield name, value


def assert_answers(model, X, dense):
    """Require finite answers that agree with each other, alone and together."""
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert np.isfinite(decision).all()
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    assert np.isin(model.predict(X), model.classes_).all()
    for name, value in numbers(model):
        assert np.isfinite(value).all(), name
    # A network that was trained in single precision predicts in it.
    single = hasattr(model, "_network") and model._network.embedding_matrix.dtype == np.float32
    tolerance = (1e-5 if single else 1e-8) * (1 + np.abs(decision).max())
    alone = np.concatenate([model.decision_function(row[None]) for row in dense])
    assert_allclose(alone, decision, atol=tolerance)
    attention = model.attention(X)
    assert np.isfinite(attention.data).all()
    if not model.mlp:
        terms = model.contributions(X)
        terms = terms if isinstance(terms, list) else [terms]
        sums = np.column_stack([np.asarray(term.sum(axis=1)).ravel() for term in terms])
        total = (sums + model.intercept_).reshape(decision.shape)
        assert_allclose(total, decision, atol=tolerance)


@tried
@given(problems(), classifiers(), problems())
def test_a_fit_answers_or_refuses(problem, model, other):
    before = pickle.dumps(model)
    message = refused(lambda: model.fit(problem.X, problem.y, problem.weights))
    if message:
        assert pickle.dumps(model) == before
        return
    event(f"fitted: {type(model).__name__}")
    assert_answers(model, problem.X, problem.dense)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(problem.X), model.decision_function(problem.X))
    # A second fit, on other data, is the same as a first one, or changes nothing.
    state, fresh = pickle.dumps(model), clone(model).set_params(**model.get_params())
    message = refused(lambda: model.fit(other.X, other.y, other.weights))
    anew = refused(lambda: fresh.fit(other.X, other.y, other.weights))
    if message:
        assert pickle.dumps(model) == state
    if getattr(model, "warm_start", False):
        return  # it goes on from a model whose loss may be out of range with extreme penalties
    assert message == anew
    if not message:
        assert_array_equal(fresh.decision_function(other.X), model.decision_function(other.X))


@tried
@given(problems(), st.data())
def test_batches_are_answered_or_refused(problem, data):
    model = ClsAttentionClassifier(C=1.0, max_iter=5)
    classes = np.unique(problem.y)
    for _ in range(2):
        rows = np.array(data.draw(st.lists(st.integers(0, len(problem.y) - 1), min_size=1)))
        before = pickle.dumps(model)
        weights = None if problem.weights is None else problem.weights[rows]
        batch = (problem.dense[rows], problem.y[rows], classes, weights)
        if refused(partial(model.partial_fit, *batch)):
            assert pickle.dumps(model) == before
        else:
            event("learnt")
            assert_answers(model, problem.X, problem.dense)


@tried
@given(problems(), st.sampled_from(["signed_frequency", "posterior_difference", "log_odds"]))
def test_importances_are_finite_or_refused(problem, importance):
    model = TokenImportanceTransformer(importance)
    before = pickle.dumps(model)
    if refused(lambda: model.fit(problem.X, problem.y, problem.weights)):
        assert pickle.dumps(model) == before
        return
    event("fitted")
    for name, value in numbers(model):
        assert np.isfinite(value).all(), name


@tried
@given(
    entries(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, 1e-280, 1e-3, 2.0, 1e290]),
    st.sampled_from([0.0, 1e-280, 1.0, 1e300]),
    st.sampled_from([1.0, 300.0]),
)
def test_entries_of_any_size_are_answered(X, seed, entry_scale, cls_weight, spread):
    rng = np.random.default_rng(seed)
    fitted = FittedAttention(
        scores=rng.normal(size=X.shape[1]) * spread,
        values=rng.normal(size=(X.shape[1], 1)),
        intercept=rng.normal(size=1),
        cls_weight=cls_weight,
        cls_score=0.0 if cls_weight else -np.inf,
        entry_scale=entry_scale,
    )
    together = fitted.outputs(X)
    assert np.isfinite(together).all()
    assert_allclose(fitted.outputs(sp.csr_array(X)), together, atol=1e-9)
    for row, output in zip(X, together, strict=True):
        assert_allclose(fitted.outputs(sp.csr_array(row[None]))[0], output, atol=1e-9)


@tried
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([form for form in FORMATS if form != "duplicates"]),
    st.integers(-890, 890),
    st.integers(2, 3),
    st.booleans(),
)
def test_a_fit_is_the_same_in_every_format_and_unit(seed, form, exponent, n_classes, weighted):
    rng = np.random.default_rng(seed)
    dense = rng.poisson(rng.uniform(0.2, 2.0, 5), (12, 5)) * rng.choice([1.0, 0.3, 7.1], 5)
    y, weights = np.arange(12) % n_classes, rng.uniform(0.0, 2.0, 12) if weighted else None
    plain = ClsAttentionClassifier(C=1.0, max_iter=20).fit(dense, y, weights)
    scaled = clone(plain).fit(in_format(dense * 2.0**exponent, form), y, weights)
    assert_allclose(scaled.attention_scores_, plain.attention_scores_, rtol=1e-6, atol=1e-9)
    assert_allclose(scaled.token_values_, plain.token_values_, rtol=1e-6, atol=1e-9)


@tried
@given(st.text(), st.booleans())
def test_cells_and_terminals_are_guarded(label, styled):
    out = io.StringIO()
    say(label, out, styled=styled)
    colours = re.compile(r"\x1b\[[0-9;]*m") if styled else re.compile("(?!)")
    shown = colours.sub("", out.getvalue())
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in shown)
    cell = guarded_cell(label)
    assert cell in (label, f"'{label}")
    try:
        float(label)
    except ValueError:
        starts = ("=", "+", "-", "@", "\t", "\r", "\n")
        assert not cell.lstrip(" ").startswith(starts)
