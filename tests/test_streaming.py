"""Learning from batches: the expansion against brute force, and what partial_fit promises."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import targets
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.fitted import FittedAttention
from sklearn_clsattn._core.loss import AttentionLoss
from sklearn_clsattn._core.memory import Memory
from sklearn_clsattn._core.objective import RememberedLoss
from sklearn_clsattn._core.output_loss import output_loss
from sklearn_clsattn._core.products import TokenBag
from sklearn_clsattn.datasets import make_token_classification


def random_model(rng, n_tokens, n_outputs, cls_weight):
    scores, values = rng.normal(size=n_tokens), 3 * rng.normal(size=(n_tokens, n_outputs))
    cls_score = 0.3 if cls_weight else -np.inf
    return FittedAttention(scores, values, rng.normal(size=n_outputs), cls_weight, cls_score)


def parameters_of(model):
    """Return the token matrix with the logarithm of the mass of <cls> for its score."""
    matrix = model.token_matrix()
    matrix[-1, 0] += np.log(model.cls_weight) if model.cls_weight else 0.0
    return matrix


def loss_derivatives(model, X, codes, weights):
    n_outputs, cls_weight = model.values.shape[1], model.cls_weight
    loss_of_outputs = output_loss(targets(codes, max(2, n_outputs)), weights)
    loss = AttentionLoss(TokenBag(X), loss_of_outputs, n_outputs, cls_weight=cls_weight)
    matrix = torch.from_numpy(model.token_matrix())
    value, gradient = loss(matrix)
    return value, gradient.numpy(), loss.bound(matrix).numpy()


def output_of(parameters, has_cls, x):
    """Return one document's outputs at parameters that are laid out as the derivatives are."""
    weights = x * np.exp(parameters[:-1, 0])
    total = weights.sum() + (np.exp(parameters[-1, 0]) if has_cls else 0.0)
    shares = weights / total if total else weights
    return parameters[-1, 1:] + shares @ parameters[:-1, 1:]


def loss_of(output, code):
    logits = np.array([0.0, output[0]]) if len(output) == 1 else output
    return -log_softmax(logits)[code]


def bound(output, k):
    """Return the curvature of the lowest parabola over the loss that touches it, along output k."""
    others = logsumexp(np.delete(output, k)) if len(output) > 1 else 0.0
    size = abs(output[k] - others)
    return np.tanh(size / 2) / (2 * size)


@pytest.mark.parametrize("cls_weight", [0.0, 1.7])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_derivatives_against_finite_differences(n_classes, cls_weight):
    rng, step = np.random.default_rng(n_classes), 1e-5
    X = counts(n_classes, 9, 5)
    codes, weights = rng.integers(n_classes, size=9), rng.uniform(0, 2, size=9)
    model = random_model(rng, 5, 1 if n_classes == 2 else 3, cls_weight)
    loss, *found = loss_derivatives(model, X, codes, weights)
    center = parameters_of(model)
    expected, slow = 0.0, np.zeros((2, *center.shape))  # gradient and curvature
    for x, code, weight in zip(X.toarray(), codes, weights, strict=True):
        output = output_of(center, cls_weight, x)
        bends = np.array([bound(output, k) for k in range(len(output))])
        expected += weight * loss_of(output, code)
        for place in np.ndindex(center.shape):
            change = np.zeros_like(center)
            change[place] = step
            above, below = (output_of(center + s * change, cls_weight, x) for s in (1, -1))
            slope = (loss_of(above, code) - loss_of(below, code)) / (2 * step)
            slow[:, *place] += weight * slope, weight * bends @ ((above - below) / (2 * step)) ** 2
    assert loss == pytest.approx(expected)
    assert_allclose(found, slow, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("cls_weight", [0.0, 0.4])
def test_remembered_losses_are_their_expansion_whatever_the_weight_of_cls(cls_weight):
    rng = np.random.default_rng(0)
    center, gradient, change = rng.normal(size=(3, 6, 2))
    memory = Memory(center, 3.0, gradient, rng.uniform(size=(6, 2)), bool(cls_weight))
    matrix = center + change
    matrix[-1, 0] -= np.log(cls_weight) if cls_weight else 0.0
    loss = SimpleNamespace(cls_weight=cls_weight, device="cpu")
    found = RememberedLoss(memory, loss)(torch.from_numpy(matrix))
    expected = 3.0 + (gradient * change + memory.curvature * change**2 / 2).sum()
    assert found[0] == pytest.approx(expected)
    assert_allclose(found[1], gradient + memory.curvature * change)


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
    X, y = data(n_classes=n_classes)
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
    assert streamed._stream.statistics.total_weight == 1000
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


def test_what_cannot_be_learnt_is_refused_and_changes_nothing():
    for model in (ClsAttentionClassifier(), learned(START)):
        before = vars(model).copy()
        for batch, message in (
            ((X, Y, ["a", "b"], np.zeros(400)), "one non-zero number|no document of positive w"),
            ((X, Y, ["a", "b"], np.full(400, 1e308)), "add up to inf"),
            ((X[:2], ["a", "z"], ["a", "b"]), r"not among the classes .*: \['z'\]"),
        ):
            with pytest.raises(ValueError, match=message):
                model.partial_fit(*batch)
        model.set_params(class_weight={"a": 0})
        with pytest.raises(ValueError, match="no document of positive weight"):
            model.partial_fit(X[Y == "a"], Y[Y == "a"], ["a", "b"])
        assert vars(model.set_params(class_weight=None)) == before
    with pytest.raises(ValueError, match="Expected the classes of the first call"):
        model.partial_fit(X[:2], ["a", "b"], ["a", "z"])
    with pytest.raises(ValueError, match="attend_cls=False, but earlier batches"):
        model.set_params(attend_cls=False).partial_fit(X, Y)
    assert model._stream is before["_stream"]


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
