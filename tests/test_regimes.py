"""The classifiers of the paper: their parameters, what they refuse, warnings, odd data."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_same_fit, data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_clsattn import ClsAttentionClassifier, paper
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.importance import class_totals, signed_frequency
from sklearn_clsattn.paper import (
    AttentionNetworkClassifier,
    EmbeddingClassifier,
    FrozenEmbeddingClassifier,
    OneStepClassifier,
    PenalizedOneStepClassifier,
)

ADAM = {"max_iter": 20, "early_stopping": False, "random_state": 0}
NETWORK = {"embedding_dim": 8, "learning_rate": 0.05, **ADAM}
FINITE = {"embedding_dim": 64, "random_state": 0}
TRAININGS = {
    "joint": ClsAttentionClassifier(),
    "one step": OneStepClassifier(max_iter=20, random_state=0),
    "one step, d = 64": OneStepClassifier(max_iter=20, **FINITE),
    "penalized": PenalizedOneStepClassifier(random_state=0),
    "penalized, d = 64": PenalizedOneStepClassifier(**FINITE),
    "frozen": FrozenEmbeddingClassifier(embedding_dim=16, random_state=0),
    "adam": EmbeddingClassifier(**ADAM),
    "adam, d = 8": EmbeddingClassifier(embedding_dim=8, learning_rate=0.05, **ADAM),
    "two layers": AttentionNetworkClassifier(n_layers=2, **NETWORK),
    "mlp": AttentionNetworkClassifier(mlp=True, **NETWORK),
}
FINITE_TRAININGS = [
    name for name, model in TRAININGS.items() if getattr(model, "embedding_dim", None)
]
ONE_STEP = pytest.mark.parametrize("kind", [OneStepClassifier, PenalizedOneStepClassifier])
PER_TRAINING = pytest.mark.parametrize("name", TRAININGS)
CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
UNCONVERGED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def classifier(name, **parameters):
    return clone(TRAININGS[name]).set_params(**parameters)


def is_by_adam(model):
    return hasattr(model, "early_stopping")


def assert_finite(model, X):
    for array in (
        model.predict_proba(X),
        model.decision_function(X),
        model.attention_scores_,
        model.token_values_,
        model.intercept_,
        model.token_embeddings_,
        model.cls_embedding_,
        model.output_vector_,
        model.loss_curve_,
    ):
        assert np.isfinite(array).all()


# Parameters

COMMON = "class_weight max_iter tol verbose device"
PENALTIES = "C attention_C attend_cls"
ADAMS = (
    "learning_rate fit_intercept attend_cls early_stopping validation_fraction n_iter_no_change "
    "random_state"
)
PARAMETERS = {
    ClsAttentionClassifier: f"{PENALTIES} token_scaling sublinear_counts warm_start",
    OneStepClassifier: "step_size embedding_dim solver flow_tol random_state",
    PenalizedOneStepClassifier: f"{PENALTIES} fit_intercept step_size embedding_dim random_state",
    FrozenEmbeddingClassifier: f"{PENALTIES} fit_intercept embedding_dim random_state",
    EmbeddingClassifier: f"{ADAMS} embedding_dim train_embeddings solver step_size",
    AttentionNetworkClassifier: f"{ADAMS} n_layers mlp embedding_dim batch_size",
}
OUT_OF_RANGE = {
    "C": 0,
    "attention_C": -1,
    "attend_cls": "yes",
    "fit_intercept": "yes",
    "train_embeddings": "yes",
    "token_scaling": "idf",
    "sublinear_counts": "yes",
    "step_size": 0,
    "solver": "newton",
    "flow_tol": 0,
    "embedding_dim": 1,
    "learning_rate": 0,
    "n_layers": 3,
    "mlp": "yes",
    "batch_size": 0,
    "early_stopping": 2,
    "validation_fraction": 1.0,
    "n_iter_no_change": 0,
    "class_weight": 3,
    "max_iter": 0,
    "tol": -1e-3,
    "warm_start": "yes",
    "random_state": "seed",
    "verbose": -1,
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_every_classifier_has_only_the_parameters_that_mean_something(kind):
    assert sorted(kind().get_params()) == sorted(f"{COMMON} {PARAMETERS[kind]}".split())


def test_the_paper_has_these_classifiers():
    kinds = [kind.__name__ for kind in PARAMETERS]
    assert sorted(["ClsAttentionClassifier", *paper.__all__]) == sorted(kinds)
    assert {type(model) for model in TRAININGS.values()} == set(PARAMETERS)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, name, OUT_OF_RANGE[name])
        for kind in PARAMETERS
        for name in kind().get_params()
        if name != "device"
    ]
    + [
        (FrozenEmbeddingClassifier, "embedding_dim", None),
        (AttentionNetworkClassifier, "embedding_dim", None),
        (AttentionNetworkClassifier, "learning_rate", None),
    ],
)
def test_parameters_out_of_range(kind, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}"):
        kind(**{name: value}).fit(*data())


@pytest.mark.parametrize("name", FINITE_TRAININGS)
def test_every_output_vector_needs_a_dimension(name):
    with pytest.raises(ValueError, match=r"at least 4 .*3 output vector\(s\).*, got 3"):
        classifier(name, embedding_dim=3).fit(*data(3))


@UNCONVERGED
@pytest.mark.filterwarnings("ignore:.*importance is drowned")  # small dimensions are all noise
@pytest.mark.parametrize("name", FINITE_TRAININGS)
@CLASSES
def test_the_least_dimension_is_enough(name, n_classes):
    X, y = data(n_classes)
    least = 2 if n_classes == 2 else 4
    model = classifier(name, embedding_dim=least).fit(X, y)
    assert_finite(model, X)
    assert model.token_embeddings_.shape == (X.shape[1], least)


@PER_TRAINING
def test_one_class_is_no_problem_to_learn(name):
    X, y = data()
    with pytest.raises(ValueError, match=r"at least two classes.*one class only: 'spam'"):
        classifier(name).fit(X, ["spam"] * len(y))
    with pytest.raises(ValueError, match=r"positive weight.*\[1\].*sample_weight"):
        classifier(name).fit(X, y, sample_weight=y)


# Warnings


def test_a_selection_that_does_not_settle():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = OneStepClassifier(max_iter=12).fit(X, y)
    (warning,) = caught
    assert re.search(
        r"stopped at max_iter=12: the selected tokens have not settled \(they changed in "
        r"\d+ of 12 steps\).*Theorem 4.3 does not apply.*PenalizedOneStepClassifier",
        str(warning.message),
    )
    assert warning.filename == __file__
    assert model.direction_curve_.shape == (0,)
    assert model.n_iter_ == 12


def test_a_selection_that_stays_but_does_not_have_all_the_attention():
    # Scores have to outgrow the logarithm of a count, by two at a step.
    X, y = sp.csr_matrix([[1, 0, 0], [0, 1, 0], [1, 0, 1e80], [0, 1, 1e80]]), [0, 1, 0, 1]
    with pytest.warns(ConvergenceWarning, match="settled .some document still attends to others"):
        OneStepClassifier(max_iter=60, solver="descent").fit(X, y)
    for solver in ("flow", "descent"):
        OneStepClassifier(max_iter=300, solver=solver).fit(X, y)


def single_relevant(n_classes=2):
    return make_token_classification(
        60 * n_classes, n_classes=n_classes, delta=0, single_relevant=True, random_state=0
    )


def test_a_direction_that_is_not_certified():
    X, y = single_relevant()
    with pytest.warns(ConvergenceWarning) as caught:
        model = OneStepClassifier(tol=0.0).fit(X, y)
    (warning,) = caught
    message = str(warning.message)
    assert "The direction of p is not certified" in message
    assert "tol=0.0e+00. Increase max_iter or raise tol." in message
    assert f"{model.direction_curve_[-1]:.1e}" in message
    assert 0 < model.direction_curve_[-1] < 1e-10


@CLASSES
def test_a_direction_that_is(n_classes):
    X, y = single_relevant(n_classes)
    model = OneStepClassifier(tol=1e-6).fit(X, y)  # and no warning
    assert 0 <= model.direction_curve_[-1] <= 1e-6
    assert model.score(X, y) == 1.0
    assert_array_equal(model.intercept_, 0)
    assert np.asarray(model.attention(X)[:, model.selected_tokens_].sum(axis=1)).min() > 0.99


def test_documents_of_weight_0_take_no_part_in_the_selection():
    X, y = single_relevant()
    others = np.random.default_rng(0).permutation(len(y))
    X_all, y_all = sp.vstack([X, X + X[others]]).tocsr(), np.append(y, y)  # all tokens mixed
    weights = np.repeat([1.0, 0.0], len(y))
    expected = OneStepClassifier(tol=1e-9).fit(X, y)
    model = OneStepClassifier(tol=1e-9).fit(X_all, y_all, sample_weight=weights)
    assert model.n_iter_ == expected.n_iter_
    assert_allclose(model.attention_scores_, expected.attention_scores_, atol=1e-9)
    assert_allclose(model.direction_curve_, expected.direction_curve_, atol=1e-12)
    assert_array_equal(model.selected_tokens_, expected.selected_tokens_)
    assert model.selection_counts_.sum() == expected.selection_counts_.sum()


@pytest.mark.parametrize("X", [np.ones((6, 4)), np.zeros((6, 4)), np.eye(6)], ids=str)
def test_documents_in_which_there_is_nothing_to_select(X):
    with pytest.warns(ConvergenceWarning, match=r"gradient of p is 0.*same value"):
        model = OneStepClassifier().fit(X, [0, 1] * 3)
    assert_finite(model, X)


@pytest.mark.parametrize("name", ["joint", "frozen", "penalized", "penalized, d = 64"])
def test_lbfgs_that_does_not_arrive(name):
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = classifier(name, max_iter=2, tol=1e-12).fit(X, y)
    (warning,) = caught
    message = str(warning.message)
    assert "Training stopped at max_iter=2" in message
    assert f"optimality gap of {model.optimality_gap_:.1e} > tol=1.0e-12" in message
    assert warning.filename == __file__
    if "penalized" in name:
        return  # goes on for long where there is nothing to gain but rounding
    with pytest.warns(ConvergenceWarning, match=r"in this precision.* pass X as float64"):
        classifier(name, max_iter=1000, tol=0.0).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("name", ["adam", "adam, d = 8", "two layers", "mlp"])
@pytest.mark.parametrize("early_stopping", [True, False])
def test_adam_that_does_not_arrive(name, early_stopping):
    X, y = data(n_documents=200)
    with pytest.warns(ConvergenceWarning) as caught:
        model = classifier(name, early_stopping=early_stopping, max_iter=3).fit(X, y)
    (warning,) = caught
    message = str(warning.message)
    unit = "steps" if "adam" in name else "epochs"
    measure = "validation" if early_stopping else "training"
    assert f"Adam stopped at max_iter=3 {unit} while the {measure} loss was still" in message
    assert "Increase max_iter or learning_rate" in message
    assert ("set early_stopping=True" in message) == (not early_stopping)
    assert warning.filename == __file__
    assert model.n_iter_ == 3


@UNCONVERGED
@ONE_STEP
@CLASSES
def test_step_sizes_that_do_not_work(kind, n_classes):
    X, y = data(n_classes)
    for embedding_dim in (None, 64):
        model = kind(embedding_dim=embedding_dim, max_iter=20, random_state=0)
        usual = model.fit(X, y).step_size_  # of which nothing is said
        with pytest.warns(UserWarning, match="the logistic loss saturates") as caught:
            model.set_params(step_size=8 * usual).fit(X, y)
        assert caught[0].filename == __file__
        message = str(caught[0].message)
        said = re.search(r"^step_size=(\S+) makes token values of up to (\S+): above 5", message)
        assert said[1] == f"{8 * usual:.3g}"
        assert 5 < float(said[2]) <= 8
        assert f"leave step_size=None, which is {usual:.3g} here" in message
        assert model.step_size_ == 8 * usual
        model.set_params(step_size=0.1 * usual)
        if embedding_dim is None:
            model.fit(X, y)  # nothing is drawn, so there is no noise
        else:
            with pytest.warns(UserWarning, match="importance is drowned by it"):
                model.fit(X, y)


@ONE_STEP
@pytest.mark.parametrize("embedding_dim", [None, 64])
def test_a_step_out_of_range(kind, embedding_dim):
    X, y = data()
    model = kind(step_size=1e100, embedding_dim=embedding_dim)
    with pytest.raises(ValueError, match=r"step_size=1e\+100 makes token values.*smaller one"):
        model.fit(X.astype(np.float32), y)


# Without intercepts, and with embeddings that stay as drawn


@UNCONVERGED
@PER_TRAINING
@CLASSES
def test_without_intercepts(name, n_classes):
    """As in the paper's model: the output of a document is a weighted mean of values alone."""
    if "fit_intercept" not in TRAININGS[name].get_params():
        return
    X, y = data(n_classes)
    keep = (y > 0) | (np.arange(len(y)) < 30)  # classes of unequal size
    X, y = X[keep], y[keep]
    model = classifier(name, fit_intercept=False).fit(X, y)
    assert_array_equal(model.intercept_, 0)
    assert model.loss_curve_[-1] < model.loss_curve_[0]
    if name != "mlp":  # whose hidden layer has a bias of its own
        assert_allclose(model.decision_function(sp.csr_matrix((2, X.shape[1]))), 0, atol=1e-12)
    assert np.abs(classifier(name).fit(X, y).intercept_).max() > 1e-3


@UNCONVERGED
@CLASSES
def test_embeddings_that_stay_as_drawn(n_classes):
    X, y = data(n_classes)
    frozen = classifier("adam, d = 8", train_embeddings=False).fit(X, y)
    same = FrozenEmbeddingClassifier(embedding_dim=8, random_state=0).fit(X, y)
    assert_array_equal(frozen.token_embeddings_, same.token_embeddings_)
    assert frozen.loss_curve_[-1] < frozen.loss_curve_[0]
    trained = classifier("adam, d = 8").fit(X, y)
    assert trained.loss_curve_[-1] < frozen.loss_curve_[-1]
    with pytest.raises(ValueError, match=r"train_embeddings=False.*set embedding_dim"):
        classifier("adam", train_embeddings=False).fit(X, y)


# Odd data


@UNCONVERGED
@PER_TRAINING
def test_a_class_without_weight(name):
    X, y = data(3)
    model = classifier(name).fit(X, y, sample_weight=(y != 1).astype(float))
    assert_array_equal(model.classes_, [0, 1, 2])
    assert_finite(model, X)
    if "one step" not in name:  # which has no intercept to say so
        assert (model.predict_proba(X)[:, 1] < 1e-3).all()
    same = classifier(name, class_weight={1: 0}).fit(X, y)
    assert_same_fit(same, model)


@pytest.mark.parametrize("embedding_dim", [None, 64])
def test_the_step_gives_the_weight_of_all_to_the_classes_that_have_any(embedding_dim):
    X, y = data(3, n_documents=80)
    weights = np.where(y == 1, 0.0, 1.0 + y)  # 1 for class 0, 3 for class 2
    model = PenalizedOneStepClassifier(embedding_dim=embedding_dim, random_state=0)
    model.fit(X, y, sample_weight=weights)
    balanced = weights / np.maximum(np.bincount(y, weights), 1)[y]
    shares = class_totals(X, y, 3, balanced, kind="shares")
    importance = signed_frequency(shares, np.bincount(y, balanced))
    assert model.step_size_ == pytest.approx(1 / np.abs(importance).max(), rel=1e-12)
    if embedding_dim is not None:
        return
    values = np.abs(model.token_values_)  # in proportion to what the step wrote
    largest = values.max(axis=1, keepdims=True)
    expected = np.abs(importance) / np.abs(importance).max(axis=1, keepdims=True)
    assert_allclose(values / largest, expected, atol=1e-12)


@UNCONVERGED
@PER_TRAINING
@CLASSES
def test_documents_without_tokens_only(name, n_classes):
    y = np.arange(60) % n_classes
    y[: 10 * n_classes] = 0  # classes of unequal size
    X = sp.csr_matrix((60, 5))
    model = classifier(name).fit(X, y)
    assert_finite(model, X)
    assert_finite(model, np.ones((2, 5)))
    assert len(model.selected_tokens_) == 0
    frequencies = np.bincount(y) / 60 if "one step" not in name else 1 / n_classes
    assert_allclose(
        model.predict_proba(X), np.broadcast_to(frequencies, (60, n_classes)), atol=0.05
    )


@UNCONVERGED
@PER_TRAINING
@CLASSES
def test_tokens_of_which_none_tells_anything(name, n_classes):
    X, y = np.ones((60, 5)), np.arange(60) % n_classes
    model = classifier(name).fit(X, y)
    assert_finite(model, X)
    assert_finite(model, np.eye(5))
    if name not in ("one step, d = 64", "two layers", "mlp", "adam, d = 8"):
        assert_allclose(model.predict_proba(X), 1 / n_classes, atol=0.01)


@UNCONVERGED
@PER_TRAINING
def test_two_documents(name):
    X, y = sp.csr_matrix([[1.0, 0, 2], [0, 3, 1]]), np.array(["a", "b"])
    model = classifier(name).fit(X, y)
    assert_finite(model, X)
    if name not in ("two layers", "mlp"):
        assert_array_equal(model.predict(X), y)
    if is_by_adam(model):
        with pytest.raises(ValueError, match=r"one document only.*early_stopping=False"):
            classifier(name, early_stopping=True).fit(X, y)


@UNCONVERGED
@PER_TRAINING
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("weight", [1e40, 1e-30])
def test_very_large_and_very_small_weights(name, dtype, weight):
    X, y = data()
    X = X.astype(dtype)
    model = classifier(name, max_iter=20).fit(X, y, sample_weight=np.full(len(y), weight))
    assert_finite(model, X)
    if is_by_adam(model):  # nothing is penalised: weights matter relative to each other
        plain = classifier(name).fit(X.astype(np.float64), y)
        assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-9)


def test_weights_whose_sum_is_no_number():
    X, y = data()
    with pytest.raises(ValueError, match=r"add up to infinity.*divide sample_weight"):
        ClsAttentionClassifier().fit(X, y, sample_weight=np.full(len(y), 1e308))


@UNCONVERGED
@PER_TRAINING
def test_class_weights_are_weights(name):
    X, y = data(3, n_documents=80)
    keep = (y > 0) | (np.arange(len(y)) < 40)
    X, y = X[keep], y[keep]
    by_class = classifier(name, max_iter=5, class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    by_document = classifier(name, max_iter=5).fit(X, y, sample_weight=np.array([2.0, 0.5, 1.0])[y])
    assert_same_fit(by_class, by_document)
    balanced = classifier(name, max_iter=5, class_weight="balanced").fit(X, y)
    by_hand = classifier(name, max_iter=5).fit(
        X, y, sample_weight=(len(y) / (3 * np.bincount(y)))[y]
    )
    assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-6)


def test_one_step_makes_the_same_step_whatever_the_class_weights():
    X, y = data(2, n_documents=80)
    keep = (y > 0) | (np.arange(len(y)) < 40)
    X, y = X[keep], y[keep]
    models = [
        PenalizedOneStepClassifier(class_weight=weights).fit(X, y)
        for weights in (None, "balanced", {0: 5.0, 1: 1.0})
    ]
    for model in models:
        assert model.step_size_ == pytest.approx(models[0].step_size_, rel=1e-12)
        values = model.token_values_ / models[0].token_values_[0]
        assert_allclose(values / values[0], models[0].token_values_ / models[0].token_values_[0])
    # The importance said of them is the paper's all the same, under these weights.
    assert not np.allclose(models[0].token_importance_, models[1].token_importance_)


@UNCONVERGED
@PER_TRAINING
@CLASSES
@pytest.mark.parametrize("factor", [1e-6, 7.0])
def test_a_multiple_of_X_gives_the_same_predictions(name, n_classes, factor):
    X, y = data(n_classes)
    expected = classifier(name, max_iter=20).fit(X, y)
    scaled = classifier(name, max_iter=20).fit(X * factor, y)
    assert_allclose(scaled.predict_proba(X * factor), expected.predict_proba(X), atol=1e-6)


# One regime and another


def test_scores_and_values_by_adam_tend_to_explicit_embeddings():
    """Scores and values trained by themselves predict as embeddings of many dimensions do."""
    X, y = data(n_documents=200)
    adam = {"early_stopping": False, "attend_cls": False, "tol": 0, "max_iter": 40}
    with pytest.warns(ConvergenceWarning, match="max_iter=40"):
        without = EmbeddingClassifier(**adam).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter=40"):
        explicit = EmbeddingClassifier(embedding_dim=2048, random_state=0, **adam).fit(X, y)
    decisions = [model.decision_function(X) for model in (without, explicit)]
    assert np.corrcoef(*decisions)[0, 1] > 0.95
    assert np.mean(without.predict(X) == explicit.predict(X)) > 0.9
