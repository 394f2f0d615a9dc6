"""Learning from batches: the expansion against brute force, and what partial_fit promises."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.bag import TokenBag
from sklearn_clsattn._core.fitted import FittedAttention
from sklearn_clsattn._core.loss import AttentionLoss, encode_targets
from sklearn_clsattn._core.memory import add_batch, parameters_of
from sklearn_clsattn.datasets import make_token_classification


def random_model(rng, n_tokens, n_outputs, cls_weight):
    return FittedAttention(
        rng.normal(size=n_tokens),
        3 * rng.normal(size=(n_tokens, n_outputs)),
        rng.normal(size=n_outputs),
        cls_weight,
        0.3 if cls_weight else -np.inf,
    )


def loss_derivatives(model, X, codes, weights):
    n_outputs = model.values.shape[1]
    targets = encode_targets(codes, max(n_outputs, 2))
    weights, cls_weight = torch.from_numpy(weights), model.cls_weight
    loss = AttentionLoss(TokenBag(X), targets, weights, n_outputs, cls_weight=cls_weight)
    matrix = torch.from_numpy(model.token_matrix())
    value, gradient = loss(matrix)
    return value, gradient.numpy(), loss.bound(matrix).numpy()


def moved(model, parameters):
    """Return the model at other parameters, laid out as the derivatives are."""
    mass = parameters[-1, 0]
    return FittedAttention(
        parameters[:-1, 0],
        parameters[:-1, 1:],
        parameters[-1, 1:],
        model.cls_weight,
        mass - np.log(model.cls_weight) if model.cls_weight else -np.inf,
    )


def output_of(model, x):
    """Return the outputs for one document, token by token."""
    weights = [count * np.exp(score) for count, score in zip(x, model.scores, strict=True)]
    total = sum(weights)
    if model.cls_weight:
        total += model.cls_weight * np.exp(model.cls_score)
    output = model.intercept.copy()
    for weight, value in zip(weights, model.values, strict=True):
        if weight:
            output += weight / total * value
    return output


def loss_of(output, code):
    logits = np.array([0.0, output[0]]) if len(output) == 1 else output
    return -log_softmax(logits)[code]


def bound(output, k):
    """Return the curvature of the lowest parabola over the loss that touches it, along output k."""
    others = logsumexp(np.delete(output, k)) if len(output) > 1 else 0.0
    size = abs(output[k] - others)
    return np.tanh(size / 2) / (2 * size)


def slow_derivatives(model, X, codes, weights, step=1e-5):
    """Differentiate every document's loss and outputs by every parameter, numerically."""
    center = parameters_of(model)
    gradient, curvature = np.zeros_like(center), np.zeros_like(center)
    for place in np.ndindex(center.shape):
        if place == (len(center) - 1, 0) and not model.cls_weight:
            continue
        up, down = center.copy(), center.copy()
        up[place] += step
        down[place] -= step
        for x, code, weight in zip(X.toarray(), codes, weights, strict=True):
            above, below = output_of(moved(model, up), x), output_of(moved(model, down), x)
            slope = (above - below) / (2 * step)
            gradient[place] += weight * (loss_of(above, code) - loss_of(below, code)) / (2 * step)
            output = output_of(model, x)
            bends = np.array([bound(output, k) for k in range(len(output))])
            curvature[place] += weight * bends @ slope**2
    return gradient, curvature


@pytest.mark.parametrize("cls_weight", [0.0, 1.7])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_derivatives_against_finite_differences(n_classes, cls_weight):
    rng = np.random.default_rng(n_classes)
    X = sp.csr_array(rng.poisson(0.7, size=(9, 5)).astype(float))
    codes, weights = rng.integers(n_classes, size=9), rng.uniform(0, 2, size=9)
    model = random_model(rng, 5, 1 if n_classes == 2 else 3, cls_weight)
    loss, *found = loss_derivatives(model, X, codes, weights)
    for mine, slow in zip(found, slow_derivatives(model, X, codes, weights), strict=True):
        assert_allclose(mine, slow, rtol=1e-5, atol=1e-7)
    losses = [loss_of(output_of(model, x), y) for x, y in zip(X.toarray(), codes, strict=True)]
    assert_allclose(loss, weights @ losses)


@settings(deadline=None)
@given(
    output=st.lists(st.floats(-30, 30), min_size=2, max_size=4),
    code=st.integers(0, 1),
    step=st.floats(-40, 40),
)
def test_the_curvature_bounds_the_loss_along_each_output(output, code, step):
    output = np.array(output)
    for k in range(len(output)):
        if abs(output[k] - logsumexp(np.delete(output, k))) < 1e-3:
            continue  # 1/4, but for rounding
        there = output.copy()
        there[k] += step
        slope = np.exp(log_softmax(output))[k] - (k == code)
        parabola = loss_of(output, code) + slope * step + bound(output, k) * step**2 / 2
        assert loss_of(there, code) <= parabola + 1e-9


def test_memory_is_the_sum_of_expansions():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.7, size=(12, 5)).astype(float))
    codes, weights = rng.integers(2, size=12), rng.uniform(0, 2, size=12)
    first, second = (random_model(rng, 5, 1, 1.2) for _ in range(2))

    def derivatives(model, rows):
        return loss_derivatives(model, X[rows], codes[rows], weights[rows])

    memory = add_batch(None, first, derivatives(first, slice(7)))
    both = add_batch(memory, second, derivatives(second, slice(7, None)))
    old, new = derivatives(first, slice(7)), derivatives(second, slice(7, None))
    way = both.center - memory.center
    assert_allclose(both.loss, old[0] + (old[1] * way + old[2] * way**2 / 2).sum() + new[0])
    assert_allclose(both.gradient, old[1] + old[2] * way + new[1])
    assert_allclose(both.curvature, old[2] + new[2])
    # What was handed in is not changed.
    assert_allclose(memory.gradient, old[1])


def data(n=400, n_classes=2, seed=0):
    X, y = make_token_classification(
        n, n_classes=n_classes, delta=(0.1, 0.4), flip_y=0.05, random_state=seed
    )
    return X, np.array(["a", "b", "c", "d"])[y]


def in_batches(model, X, y, size, **parameters):
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        model.partial_fit(X[rows], y[rows], classes=np.unique(y), **parameters)
    return model


@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_batch_is_fit(n_classes, attend_cls):
    X, y = data(n_classes=n_classes)
    X = X.astype(float)
    tight = ClsAttentionClassifier(tol=1e-10, max_iter=1000, attend_cls=attend_cls)
    whole, batch = clone(tight).fit(X, y), clone(tight).partial_fit(X, y)
    # A constant on all outputs changes no probability.
    assert_allclose(batch.predict_proba(X), whole.predict_proba(X), rtol=1e-4, atol=1e-5)
    assert_allclose(batch.token_importance_, whole.token_importance_)
    assert_array_equal(batch.selected_tokens_, whole.selected_tokens_)
    assert_array_equal(batch.selection_counts_, whole.selection_counts_)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_batches_come_close_to_all_at_once(n_classes):
    X, y = data(2400, n_classes)
    train, test = slice(2000), slice(2000, None)
    whole = ClsAttentionClassifier().fit(X[train], y[train])
    first = ClsAttentionClassifier().fit(X[:100], y[:100])
    streamed = in_batches(ClsAttentionClassifier(), X[train], y[train], 100)
    scores = [model.score(X[test], y[test]) for model in (first, streamed, whole)]
    assert scores[1] > scores[0] + 0.02
    assert scores[1] > scores[2] - 0.03
    assert streamed._stream.statistics.total_weight == 2000
    # C and the unit of counts are those of the first batch.
    assert pytest.approx(first.C_, rel=1e-5) == streamed.C_
    assert streamed.entry_scale_ == first.entry_scale_


def test_the_order_of_documents_in_a_batch_does_not_matter():
    X, y = data()
    order = np.random.default_rng(0).permutation(200)
    one = in_batches(ClsAttentionClassifier(tol=1e-8), X, y, 200)
    other = ClsAttentionClassifier(tol=1e-8).partial_fit(X[:200][order], y[:200][order])
    other.partial_fit(X[200:], y[200:])
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-4, atol=1e-5)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_weights_are_repetition(seed):
    rng = np.random.default_rng(seed)
    X, y = data(60, seed=seed % 1000)
    y[:4] = ["a", "b", "a", "b"]
    weights = rng.integers(0, 3, size=60)
    weights[[0, 1, 30, 31]] = 1
    tight = ClsAttentionClassifier(tol=1e-9, max_iter=2000)
    weighted, repeated = clone(tight), clone(tight)
    for rows in (np.arange(30), np.arange(30, 60)):
        weighted.partial_fit(X[rows], y[rows], ["a", "b"], sample_weight=weights[rows])
        copies = np.repeat(rows, weights[rows])
        repeated.partial_fit(X[copies], y[copies], ["a", "b"])
    assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-3
    )
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
    assert model.score(X[after[100:]], y[after[100:]]) > 0.7


def test_batches_of_one_class_each_in_turn():
    X, y = data(1200)
    train, test = slice(1000), slice(1000, None)
    whole = ClsAttentionClassifier().fit(X[train], y[train]).score(X[test], y[test])
    model = ClsAttentionClassifier()
    for start in range(0, 500, 50):
        for label in ("a", "b"):
            rows = np.flatnonzero(y[train] == label)[start : start + 50]
            if len(rows):
                model.partial_fit(X[rows], y[rows], classes=["a", "b"])
    assert model.score(X[test], y[test]) > whole - 0.1


def test_a_batch_of_no_tokens():
    X, y = data(300)
    model = ClsAttentionClassifier().partial_fit(X, y)
    before = model.predict_proba(X)
    model.partial_fit(sp.csr_matrix((2, X.shape[1])), ["a", "b"])
    assert_allclose(model.predict_proba(X), before, atol=0.05)


def test_losses_are_means_over_all_documents():
    X, y = data(600)
    model = in_batches(ClsAttentionClassifier(), X, y, 100)
    seen = -model.predict_log_proba(X)[np.arange(600), (y == "b").astype(int)].mean()
    assert seen * 0.8 < model.loss_curve_[-1] < seen + 0.2  # with penalties


def test_weightless_batches_are_refused():
    X, y = data(200)
    model = ClsAttentionClassifier()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"one non-zero number|no document of positive weight"):
            model.partial_fit(X, y, sample_weight=np.zeros(200))
        model.set_params(class_weight={"a": 0})
        with pytest.raises(ValueError, match="no document of positive weight"):
            model.partial_fit(X[y == "a"], y[y == "a"], ["a", "b"])
        model.set_params(class_weight=None).partial_fit(X, y)


def test_a_pickled_model_goes_on():
    X, y = data(300)
    model = ClsAttentionClassifier().partial_fit(X[:100], y[:100])
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(
        model.partial_fit(X[100:], y[100:]).token_values_,
        loaded.partial_fit(X[100:], y[100:]).token_values_,
    )


def test_refused_batches_leave_the_model_as_it_was():
    X, y = data(200)
    model = ClsAttentionClassifier().partial_fit(X[:100], y[:100])
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match=r"not among the classes .*: \['z'\]"):
        model.partial_fit(X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="but at first they were"):
        model.partial_fit(X[:2], ["a", "b"], classes=["a", "z"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :-1], y)
    with pytest.raises(ValueError, match="Negative values"):
        model.partial_fit(-X[100:], y[100:])
    assert_array_equal(model.predict_proba(X), before)
    assert model._stream.statistics.total_weight == 100


def test_settings_that_earlier_batches_do_not_bear():
    X, y = data(200)
    model = ClsAttentionClassifier().partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="attend_cls=False, but earlier batches"):
        model.set_params(attend_cls=False).partial_fit(X[100:], y[100:])
    with pytest.raises(ValueError, match="add up to infinity"):
        ClsAttentionClassifier().partial_fit(X, y, sample_weight=np.full(200, 1e308))


def test_what_the_memory_holds_is_its_own():
    X, y = data(200)
    one, other = (ClsAttentionClassifier().partial_fit(X[:100], y[:100]) for _ in range(2))
    one.token_values_ *= 0
    one.partial_fit(X[100:], y[100:])
    assert_array_equal(one.token_values_, other.partial_fit(X[100:], y[100:]).token_values_)


def test_fit_and_partial_fit_do_not_mix_silently():
    X, y = data(200)
    model = ClsAttentionClassifier().fit(X, y)
    assert not hasattr(model, "partial_fit")
    streamed = ClsAttentionClassifier().partial_fit(X[:50], y[:50])
    assert hasattr(streamed, "partial_fit")
    assert_array_equal(streamed.fit(X, y).token_values_, model.token_values_)
    assert not hasattr(streamed, "partial_fit")
    assert_array_equal(clone(streamed).partial_fit(X, y).classes_, ["a", "b"])


def test_class_weight():
    X, y = data(200)
    by_class = in_batches(ClsAttentionClassifier(class_weight={"b": 3}), X, y, 100)
    only_a = y == "a"  # a batch need not have the classes that are named
    clone(by_class).partial_fit(X, y).partial_fit(X[only_a], y[only_a])
    weights = np.where(y == "b", 3.0, 1.0)
    by_document = ClsAttentionClassifier()
    for rows in (slice(100), slice(100, None)):
        by_document.partial_fit(X[rows], y[rows], sample_weight=weights[rows])
    assert_allclose(by_class.token_values_, by_document.token_values_)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (ClsAttentionClassifier(class_weight="balanced"), "needs all documents at once"),
        (ClsAttentionClassifier().fit(*data(60)), "fit remembers no documents"),
    ],
    ids=["balanced", "fitted"],
)
def test_where_batches_cannot_be_learnt_it_says_why(model, why):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        model.partial_fit(None, None)
    assert why in str(caught.value.__cause__)


def test_what_is_fitted():
    X, y = data(200)
    model = ClsAttentionClassifier()
    with pytest.raises(NotFittedError):
        model.predict(X)
    in_batches(model, X, y, 100)
    assert model.selection_counts_.sum() >= 200
    assert model.n_iter_ == len(model.loss_curve_) - 1
    assert np.all(np.diff(model.loss_curve_) <= 1e-12)
    contributions = np.asarray(model.contributions(X).sum(axis=1)).ravel()
    assert_allclose(contributions + model.intercept_, model.decision_function(X))
    as_they_are = ClsAttentionClassifier(sublinear_counts=False)
    streamed = in_batches(clone(as_they_are), X, y, 100).token_importance_
    assert_allclose(streamed, as_they_are.fit(X, y).token_importance_, rtol=1e-12)
