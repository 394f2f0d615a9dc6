"""ClsAttentionClassifier: attributes, weights, determinism, warm starts, what it says."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import ARRAYS, assert_same_fit, data, settled
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._documents import damped
from sklearn_clsattn.importance import class_totals, signed_frequency

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
def test_fitted_attributes(n_classes, attend_cls):
    X, y = data(n_classes)
    model = ClsAttentionClassifier(C=1.0, attend_cls=attend_cls).fit(X, y)
    n, d = X.shape[1], 2 if n_classes == 2 else 1 + n_classes
    per_token = (n,) if n_classes == 2 else (n_classes, n)
    assert model.token_importance_.shape == model.token_values_.shape == per_token
    assert model.attention_scores_.shape == (n,)
    assert model.intercept_.shape == ((1,) if n_classes == 2 else (n_classes,))
    assert model.cls_embedding_.shape == (d,)
    assert model.output_vector_.shape == ((d,) if n_classes == 2 else (n_classes, d))
    assert model.token_embeddings_.shape == (n, d)
    assert model.n_features_in_ == n
    assert model.loss_curve_.shape == (model.n_iter_ + 1,)
    assert (np.diff(model.loss_curve_) < 0).all()
    assert 0 <= model.optimality_gap_ <= 2e-6
    assert_array_equal(model.classes_, range(n_classes))
    assert "token_embeddings_" not in vars(model)  # made when asked for, never stored
    assert (np.isfinite(model.cls_score_), model.cls_weight_ > 0) == (attend_cls, attend_cls)

    E, p, v = model.token_embeddings_, model.cls_embedding_, model.output_vector_
    assert_allclose(E @ p, model.attention_scores_, rtol=1e-12)
    assert_allclose(E @ v.T, model.token_values_.T, rtol=1e-12)
    assert_allclose(np.vstack([p, v]) @ np.vstack([p, v]).T, np.eye(d), atol=1e-15)

    shares = class_totals(damped(X, model.entry_scale_), y, n_classes, kind="shares")
    assert_allclose(model.token_importance_, signed_frequency(shares, np.bincount(y)), atol=1e-12)
    counts = np.asarray(model.select_tokens(X).sum(axis=0)).ravel()
    assert_array_equal(np.sort(model.selected_tokens_), np.flatnonzero(counts))
    assert_array_equal(model.selection_counts_, counts[model.selected_tokens_])
    assert (np.diff(model.selection_counts_) <= 0).all()


@CLASSES
def test_predictions_belong_together(n_classes):
    X, y = data(n_classes)
    model = ClsAttentionClassifier().fit(X, y)
    decision, probabilities = model.decision_function(X), model.predict_proba(X)
    assert decision.shape == ((60,) if n_classes == 2 else (60, n_classes))
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_allclose(np.log(probabilities), model.predict_log_proba(X))
    assert_array_equal(model.predict(X), probabilities.argmax(axis=1))
    terms = model.contributions(X)
    terms = [terms] if n_classes == 2 else terms
    sums = np.column_stack([np.asarray(term.sum(axis=1)).ravel() for term in terms])
    assert_allclose(np.squeeze(sums + model.intercept_), decision, rtol=1e-10)
    assert model.score(X, y) >= 0.8
    assert all(isinstance(a, sp.csr_array) for a in [*terms, model.attention(X)])


def test_weights_are_repetitions_and_class_weights_are_weights():
    X, y = data(3)
    repeats = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), repeats)
    weighted = settled().fit(X, y, sample_weight=repeats)
    repeated = settled().fit(X[rows], y[rows])
    kept = np.flatnonzero(repeats)
    dropped = settled().fit(X[kept], y[kept], sample_weight=repeats[kept])
    for other in (repeated, dropped):
        assert_allclose(weighted.decision_function(X), other.decision_function(X), atol=1e-4)
        assert_allclose(weighted.token_importance_, other.token_importance_, atol=1e-14)
    by_class = settled(class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    by_document = settled().fit(X, y, sample_weight=np.array([2.0, 0.5, 1.0])[y])
    assert_same_fit(by_class, by_document)
    assert_same_fit(settled().fit(X, y, sample_weight=np.ones(len(y))), settled().fit(X, y))


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


@CLASSES
def test_the_order_of_documents_and_tokens_does_not_matter(n_classes):
    X, y = data(n_classes)
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    model = settled(C=1.0).fit(X, y)
    permuted = settled(C=1.0).fit(X[rows][:, columns], y[rows])
    assert_allclose(
        permuted.decision_function(X[:, columns]), model.decision_function(X), atol=1e-4
    )
    assert_allclose(permuted.attention_scores_, model.attention_scores_[columns], atol=1e-4)
    # The choice of C does not depend on the order of documents either.
    chosen, again = settled().fit(X, y), settled().fit(X[rows], y[rows])
    assert pytest.approx(chosen.C_, rel=1e-3) == again.C_
    assert_allclose(again.decision_function(X), chosen.decision_function(X), atol=1e-3)


@CLASSES
def test_single_and_double_precision_predict_alike(n_classes):
    X, y = data(n_classes)
    double, single = (ClsAttentionClassifier(tol=1e-5).fit(X.astype(t), y) for t in ("f8", "f4"))
    assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=3e-3)


def test_too_few_iterations_warn_and_say_what_to_do():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = ClsAttentionClassifier(max_iter=1, tol=1e-12).fit(X, y)
    (warning,) = caught
    message = str(warning.message)
    for word in ("max_iter=1", "optimality gap", "tol=1.0e-12", "Increase max_iter", "attention_C"):
        assert word in message
    assert model.n_iter_ == 1
    assert f"{model.optimality_gap_:.1e}" in message
    assert model.predict(X).shape == y.shape


def test_warnings_point_at_the_caller():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        ClsAttentionClassifier(max_iter=1, tol=1e-12).fit(X, y)
    assert caught[0].filename == __file__


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


def test_a_warm_start_on_nearby_data_is_shorter():
    X, y = data(n_documents=200)
    model = ClsAttentionClassifier(C=1.0, tol=1e-6, warm_start=True).fit(X, y)
    first = model.n_iter_
    model.set_params(C=1.1).fit(X, y)
    cold = ClsAttentionClassifier(C=1.1, tol=1e-6).fit(X, y)
    assert model.n_iter_ < min(first, cold.n_iter_)
    assert model.loss_curve_[-1] == pytest.approx(cold.loss_curve_[-1], abs=1e-5)


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


def test_without_warm_start_a_fit_forgets_the_last():
    X, y = data(2)
    Z, z = data(3, seed=1)
    assert_same_fit(
        ClsAttentionClassifier().fit(X, y).fit(Z, z), ClsAttentionClassifier().fit(Z, z)
    )


@pytest.mark.parametrize("verbose", [1, True, 3])
def test_verbose_prints_iterations(verbose, capsys):
    X, y = data()
    silent = ClsAttentionClassifier(C=1.0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    model = ClsAttentionClassifier(C=1.0, verbose=verbose).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    shown = [re.fullmatch(r"iteration +(\d+) +loss (\S+) +gap (\S+)", line) for line in lines]
    iterations = [int(match[1]) for match in shown]
    assert iterations == list(range(0, model.n_iter_ + 1, int(verbose)))
    losses = [float(match[2]) for match in shown]
    assert_allclose(losses, model.loss_curve_[iterations], atol=1e-6)
    assert_same_fit(model, silent)


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
