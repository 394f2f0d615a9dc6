"""Whatever is passed is answered, or refused in a sentence; nothing is half done."""

import inspect
import os
import pickle
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer, paper
from sklearn_clsattn._core.fitted import FittedAttention

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

MAGNITUDES = [5e-324, 1e-310, 1e-200, 1e-155, 1e-30, 1e-3, 1.0, 7.0, 1e8, 1e20, 1e100, 1e200]
MAGNITUDES += [1e300, 1.7e308]
FORMATS = ["array", "csr", "csr_matrix", "csc", "coo", "lil", "frame", "duplicates", "unsorted"]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int32, np.int8, np.uint8, np.bool_]
LABELS = [[0, 1, 2], [-1, 1, 7], ["ham", "spam", "eggs"], ["", "=1+1", "\x1b]0;x\x07"]]
LABELS += [[True, False], [0.0, 1.0, 2.0], [2**62, -(2**62), 0]]


# Inputs, usual and absurd


class Problem(NamedTuple):
    """What is fitted: entries (n_documents, n_tokens), the same in a format, labels, weights."""

    dense: Any
    X: Any
    y: Any
    weights: Any


@st.composite
def entries(draw):
    """Draw counts or weights of usual and absurd sizes, (n_documents, n_tokens)."""
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = rng.poisson(draw(st.sampled_from([0.0, 0.3, 1.0, 4.0])), shape).astype(float)
    kind = draw(st.sampled_from(["counts", "shares", "scaled", "by column", "by entry"]))
    if kind == "shares":
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    sizes = {"scaled": (), "by column": shape[1], "by entry": shape}
    factors = 1.0 if kind == "counts" else rng.choice(MAGNITUDES, sizes[kind])
    with np.errstate(over="ignore", under="ignore"):
        return np.minimum(counts * factors, np.finfo(np.float64).max)


def in_format(dense, form):
    """Return a matrix in one of FORMATS."""
    if form == "array":
        return dense
    if form == "frame":
        return pd.DataFrame(dense, columns=[f"word {at}" for at in range(dense.shape[1])])
    wide = dense.astype(np.float32) if dense.dtype == np.float16 else dense
    if form == "csr_matrix":
        return sp.csr_matrix(wide)
    if form == "duplicates" and wide.dtype.kind == "f":
        rows, columns = np.nonzero(wide)
        whole = wide[rows, columns]
        half = np.where(whole / 2 + whole / 2 == whole, whole / 2, 0)  # the smallest have none
        halves = np.concatenate([half, whole - half])
        return sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), wide.shape)
    X = sp.csr_array(wide)
    if form == "unsorted":
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            X.data[start:stop] = X.data[start:stop][::-1].copy()
            X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.has_sorted_indices = False
        return X
    return X if form in ("csr", "duplicates") else X.asformat(form)


@st.composite
def problems(draw):
    """Draw a problem."""
    dense, dtype = draw(entries()), draw(st.sampled_from(DTYPES))
    with np.errstate(all="ignore"):
        info = np.iinfo if np.dtype(dtype).kind in "iu" else np.finfo
        limit = 1.0 if dtype is np.bool_ else 0.999 * float(info(dtype).max)
        dense = np.minimum(dense, limit).astype(dtype)
    n = len(dense)
    labels = np.array(draw(st.sampled_from(LABELS)))
    codes = np.array(draw(st.lists(st.integers(0, len(labels) - 1), min_size=n, max_size=n)))
    weight = st.sampled_from([0.0, 1e-320, 1e-100, 1e-8, 1.0, 1.0, 1.0, 3.0, 1e8, 1e100, 1e308])
    weights = draw(st.none() | st.lists(weight, min_size=n, max_size=n))
    X = in_format(dense, draw(st.sampled_from(FORMATS)))
    return Problem(dense, X, labels[codes], None if weights is None else np.array(weights))


KINDS = {
    "joint": ClsAttentionClassifier,
    "one step": paper.OneStepClassifier,
    "embeddings": paper.EmbeddingClassifier,
    "network": paper.AttentionNetworkClassifier,
}
VALUES = {
    "class_weight": [None, None, "balanced"],
    "C": [1e-300, 1e-12, 1e-3, 0.03, 1.0, 100.0, 1e8, 1e300, "auto"],
    "attention_C": [1e-300, 1e-12, 1e-3, 0.03, 1.0, 100.0, 1e8, 1e300],
    "tol": [0.0, 1e-12, 1e-2, 1e300],
    "attend_cls": [True, False],
    "token_scaling": ["log_odds", None],
    "sublinear_counts": [True, False],
    "warm_start": [True, False],
    "step_size": [None, 1e-300, 1.0, 1e300],
    "embedding_dim": [4, 16, 10**12],
    "train_embeddings": [True, False],
    "learning_rate": [1e-300, 1e-3, 1.0, 1e300],
    "early_stopping": [True, False],
    "n_layers": [1, 2],
    "mlp": [True, False],
    "max_iter": [1, 5],
    "random_state": [0],
}


@st.composite
def classifiers(draw):
    """Draw a classifier with usual and absurd parameters."""
    kind = KINDS[draw(st.sampled_from(["joint", *KINDS]))]
    names = inspect.signature(kind).parameters.keys() & VALUES.keys()
    return kind(**{name: draw(st.sampled_from(VALUES[name])) for name in sorted(names)})


# What must hold


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


def assert_finite(model):
    """Require every array and number that a model has been given to be finite."""
    for name, value in vars(model).items():
        if name.endswith("_") and name != "cls_score_" and isinstance(value, float | np.ndarray):
            value = np.asarray(value)
            if value.dtype.kind == "f" and name != "classes_":
                assert np.isfinite(value).all(), name


def assert_answers(model, X, dense):
    """Require finite answers that agree with each other, alone and together."""
    decision, proba = model.decision_function(X), model.predict_proba(X)
    assert np.isfinite(decision).all()
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert np.isin(model.predict(X), model.classes_).all()
    assert_finite(model)
    # A network that was trained in single precision predicts in it.
    is_network = isinstance(model, paper.AttentionNetworkClassifier)
    tolerance = (1e-5 if is_network else 1e-8) * (1 + np.abs(decision).max())
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
    state, fresh = pickle.dumps(model), clone(model)
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
    assert_finite(model)


@tried
@given(
    entries(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, 1e-3, 2.0]),
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
