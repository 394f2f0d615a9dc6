"""Learning from batches: what partial_fit promises."""

import pickle

import numpy as np
import pytest
from helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import make_token_classification


def data(n=400, n_classes=2, seed=0):
    X, y = make_token_classification(
        n, n_classes=n_classes, delta=(0.1, 0.4), flip_y=0.05, random_state=seed
    )
    return X, np.array(["a", "b", "c", "d"])[y]


X, Y = data()
START, REST = slice(100), slice(100, 200)


def learned(*batches, of=(X, Y), weights=None, **parameters):
    """Return a model of batches, each some rows of the documents."""
    model, (X, y) = ClsAttentionClassifier(**parameters), of
    for rows in batches:
        of_rows = None if weights is None else weights[rows]
        model.partial_fit(X[rows], y[rows], np.unique(y), of_rows)
    return model


@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_batch_is_fit(n_classes, attend_cls):
    X, y = data(200, n_classes)
    X = X.astype(float)
    tight = ClsAttentionClassifier(tol=1e-10, max_iter=1000, attend_cls=attend_cls)
    whole, batch = clone(tight).fit(X, y), tight.partial_fit(X, y, np.unique(y))
    # A constant on all outputs changes no probability.
    assert_allclose(batch.predict_proba(X), whole.predict_proba(X), rtol=1e-4, atol=1e-5)
    assert_allclose(batch.token_importance_, whole.token_importance_)
    assert_array_equal(batch.selection_counts_, whole.selection_counts_)


def test_a_small_first_batch_does_not_choose_C_for_all():
    model = ClsAttentionClassifier().partial_fit(X[:20], Y[:20], classes=np.unique(Y))
    first, later = model.C_, model.partial_fit(X[20:], Y[20:]).C_
    assert pytest.approx(first, rel=0.01) != later
    assert later == model.partial_fit(X[:50], Y[:50]).C_


@pytest.mark.parametrize("n_classes", [2, 4])
def test_batches_come_close_to_all_at_once(n_classes):
    X, y = data(1400, n_classes)
    train, test = slice(1000), slice(1000, None)
    whole = ClsAttentionClassifier().fit(X[train], y[train])
    first = ClsAttentionClassifier().fit(X[:100], y[:100])
    streamed = learned(*(slice(i, i + 100) for i in range(0, 1000, 100)), of=(X, y))
    scores = [model.score(X[test], y[test]) for model in (first, streamed, whole)]
    assert scores[1] > scores[0] + 0.02
    assert scores[1] > scores[2] - 0.03
    # C and the unit of counts are those of the first batch.
    assert pytest.approx(first.C_, rel=1e-5) == streamed.C_
    assert streamed.entry_scale_ == first.entry_scale_
    # Losses are means over all documents, with penalties.
    codes = np.searchsorted(np.unique(y), y[train])
    seen = -streamed.predict_log_proba(X[train])[np.arange(1000), codes].mean()
    assert seen * 0.8 < streamed.loss_curve_[-1] < seen + 0.2


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_weights_are_repetition_and_documents_of_a_batch_have_no_order(seed):
    rng = np.random.default_rng(seed)
    X, y = data(60, seed=seed % 1000)
    y[[0, 1, 30, 31]] = ["a", "b", "a", "b"]
    weights = rng.integers(0, 3, size=60)
    weights[[0, 1, 30, 31]] = 1
    batches, tight = (np.arange(30), np.arange(30, 60)), {"tol": 1e-9, "max_iter": 2000}
    copies = [rng.permutation(np.repeat(rows, weights[rows])) for rows in batches]
    weighted = learned(*batches, of=(X, y), weights=weights, **tight)
    repeated = learned(*copies, of=(X, y), **tight)
    decisions = [model.decision_function(X) for model in (weighted, repeated)]
    assert_allclose(*decisions, rtol=1e-3, atol=1e-3)
    assert_allclose(weighted.token_importance_, repeated.token_importance_, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_class_that_comes_late_does_not_erase_the_others(n_classes):
    X, y = data(1200, n_classes)
    late = np.unique(y)[-1]
    before, after = np.flatnonzero(y != late)[:200], np.flatnonzero(y == late)
    model = ClsAttentionClassifier().partial_fit(X[before], y[before], np.unique(y))
    assert np.abs(model.intercept_).max() < 30
    model.partial_fit(X[after[:1]], y[after[:1]])
    assert model.score(X[before], y[before]) > 0.9
    rng = np.random.default_rng(0)
    for _ in range(5):
        mixed = np.concatenate([rng.choice(before, 60), rng.choice(after[:100], 60)])
        model.partial_fit(X[mixed], y[mixed])
    assert model.score(X[before], y[before]) > 0.9
    assert model.score(X[after[100:]], y[after[100:]]) > 0.65


def test_a_first_batch_may_have_one_label():
    first, rest = np.flatnonzero(Y == "a")[:20], np.arange(100, 300)
    model = learned(first, rest)
    assert model.score(X[300:], Y[300:]) > 0.75
    assert_allclose(model.predict_proba(X[300:]).sum(axis=1), 1.0)
    alone = ClsAttentionClassifier().partial_fit(X[first], Y[first], ["a", "b"])
    assert (alone.predict(X) == "a").all()


def test_what_cannot_be_learnt_is_refused_and_changes_nothing():
    for model in (ClsAttentionClassifier(), learned(START)):
        before = vars(model).copy()
        for batch, message in (
            ((X, Y, ["a", "b"], np.zeros(400)), "at least one non-zero number"),
            ((X[:2], ["a", "z"], ["a", "b"]), r"not among the classes .*: \['z'\]"),
        ):
            refused(message, model.partial_fit, *batch)
        assert vars(model) == before
    other = X[:2], ["a", "b"], ["a", "z"]
    refused("Expected the classes of the first call", model.partial_fit, *other)
    model.set_params(attend_cls=False)
    refused("attend_cls=False, but earlier batches", model.partial_fit, X, Y)


def test_what_the_memory_holds_is_its_own_and_is_pickled():
    model = learned(START)
    loaded = pickle.loads(pickle.dumps(model))
    model.token_values_ *= 0
    for one in (model, loaded):
        one.partial_fit(X[REST], Y[REST])
    assert_array_equal(model.token_values_, loaded.token_values_)
    assert_array_equal(model.token_values_, learned(START, REST).token_values_)


def test_fit_and_partial_fit_do_not_mix_silently():
    model, streamed = ClsAttentionClassifier().fit(X, Y), learned(START)
    assert hasattr(streamed, "partial_fit")
    assert_array_equal(streamed.fit(X, Y).token_values_, model.token_values_)
    assert_array_equal(clone(streamed).partial_fit(X, Y, ["a", "b"]).classes_, ["a", "b"])
    balanced = ClsAttentionClassifier(class_weight="balanced")
    whys = "fit keeps no memory of its documents", "needs all documents at once"
    for cannot, why in zip((streamed, balanced), whys, strict=True):
        assert not hasattr(cannot, "partial_fit")
        with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
            cannot.partial_fit(None, None)
        assert why in str(caught.value.__cause__)
