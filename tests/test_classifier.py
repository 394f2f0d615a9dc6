"""ClsAttentionClassifier: attributes, weights, determinism, warm starts, what it says."""

import numpy as np
import pytest
from helpers import ARRAYS, assert_same_fit, data, settled
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._documents import damped
from sklearn_clsattn.importance import class_totals, signed_frequency

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
def test_fitted_attributes(n_classes, attend_cls):
    """What the contract of all estimators does not say of this one."""
    X, y = data(n_classes)
    model = ClsAttentionClassifier(C=1.0, attend_cls=attend_cls).fit(X, y)
    d = 2 if n_classes == 2 else 1 + n_classes
    assert model.token_embeddings_.shape == (X.shape[1], d)
    assert "token_embeddings_" not in vars(model)  # made when asked for, never stored
    assert (np.diff(model.loss_curve_) < 0).all()
    assert 0 <= model.optimality_gap_ <= 2e-6
    basis = np.vstack([model.cls_embedding_, model.output_vector_])
    assert_allclose(basis @ basis.T, np.eye(d), atol=1e-15)
    shares = class_totals(damped(X, model.entry_scale_), y, n_classes, kind="shares")
    assert_allclose(model.token_importance_, signed_frequency(shares, np.bincount(y)), atol=1e-12)
    assert (np.diff(model.selection_counts_) <= 0).all()
    assert_allclose(np.log(model.predict_proba(X)), model.predict_log_proba(X))
    assert model.score(X, y) >= 0.8


def test_class_weights_are_document_weights():
    X, y = data(3)
    by_class = settled(class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    by_document = settled().fit(X, y, sample_weight=np.array([2.0, 0.5, 1.0])[y])
    assert_same_fit(by_class, by_document)


@CLASSES
def test_the_choice_of_C_does_not_depend_on_the_order_of_documents(n_classes):
    X, y = data(n_classes)
    rows = np.random.default_rng(0).permutation(X.shape[0])
    chosen, again = settled().fit(X, y), settled().fit(X[rows], y[rows])
    assert pytest.approx(chosen.C_, rel=1e-3) == again.C_
    assert_allclose(again.decision_function(X), chosen.decision_function(X), atol=1e-3)


def test_balanced_class_weights_balance():
    X, y = data(2, n_documents=80)
    X, y = X[(y == 0) | (np.arange(80) < 20)], y[(y == 0) | (np.arange(80) < 20)]
    sizes = np.bincount(y)
    balanced = settled(class_weight="balanced").fit(X, y)
    by_hand = settled().fit(X, y, sample_weight=(len(y) / (2 * sizes))[y])
    for name in ARRAYS:  # up to rounding: class sums are weighted after they are summed
        assert_allclose(getattr(balanced, name), getattr(by_hand, name), rtol=1e-8, atol=1e-10)


def test_balanced_class_weights_take_sample_weights_as_repetition():
    X, y = data(2)
    repeats = np.where(y == 1, 3, 1)
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted = settled(class_weight="balanced").fit(X, y, sample_weight=repeats)
    repeated = settled(class_weight="balanced").fit(X[rows], y[rows])
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


@CLASSES
def test_a_fit_twice_is_bit_identical(n_classes):
    X, y = data(n_classes)
    first, second = (ClsAttentionClassifier().fit(X, y) for _ in range(2))
    assert_same_fit(first, second)
    assert_same_fit(first.fit(X, y), second)  # a second fit of the same object, too


def test_too_few_iterations_warn_and_say_what_to_do():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = ClsAttentionClassifier(max_iter=1, tol=1e-12).fit(X, y)
    (warning,) = caught
    assert warning.filename == __file__
    message = str(warning.message)
    for word in ("max_iter=1", "optimality gap", "tol=1.0e-12", "Increase max_iter", "attention_C"):
        assert word in message
    assert model.n_iter_ == 1
    assert f"{model.optimality_gap_:.1e}" in message
    assert model.predict(X).shape == y.shape


def test_a_tolerance_that_rounding_cannot_reach():
    X, y = data()
    with pytest.warns(ConvergenceWarning, match=r"in this precision.* pass X as float64"):
        ClsAttentionClassifier(tol=0.0, max_iter=300).fit(X.astype(np.float32), y)


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
def test_warm_start_continues(n_classes, attend_cls):
    X, y = data(n_classes)
    cold = settled(attend_cls=attend_cls).fit(X, y)
    model = ClsAttentionClassifier(warm_start=True, attend_cls=attend_cls, tol=1e-4).fit(X, y)
    first = model.n_iter_
    model.set_params(tol=1e-12, max_iter=3000).fit(X, y)
    assert first + model.n_iter_ < 2 * cold.n_iter_
    assert_allclose(model.decision_function(X), cold.decision_function(X), atol=1e-3)
    assert model.loss_curve_[-1] == pytest.approx(cold.loss_curve_[-1], abs=1e-8)
    # From the end, there is nothing left to do.
    end = model.decision_function(X)
    model.fit(X, y)
    assert model.n_iter_ == 1
    assert_allclose(model.decision_function(X), end, atol=1e-3)


@pytest.mark.parametrize("other", ["tokens", "classes", "labels"])
def test_a_warm_start_on_other_data_starts_anew(other):
    X, y = data(3)
    model = ClsAttentionClassifier(warm_start=True).fit(X, y)
    if other == "tokens":
        X = X[:, :-2]
    elif other == "classes":
        X, y = X[y < 2], y[y < 2]
    else:
        y = y + 1
    assert_same_fit(model.fit(X, y), ClsAttentionClassifier().fit(X, y))


def test_stronger_penalties_fit_less_closely():
    X, y = data()
    losses = [
        -np.mean(model.predict_log_proba(X)[np.arange(len(y)), y])
        for model in (settled(C=C).fit(X, y) for C in (0.01, 1.0, 100.0))
    ]
    assert losses[0] > losses[1] > losses[2]
    moved = [
        np.ptp(settled(attention_C=C, token_scaling=None).fit(X, y).attention_scores_)
        for C in (1e-6, 0.01, 1.0)
    ]
    assert moved[0] < moved[1] < moved[2]
