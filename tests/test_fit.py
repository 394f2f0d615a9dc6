"""The default fit: when it stops, what it starts from, what bounds it, and the classifier's own."""

import numpy as np
import pytest
import torch
from helpers import data, documents, log_losses
from numpy.testing import assert_allclose
from reference import counts
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.documents import CorpusLoss
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.lbfgs import minimize_lbfgs
from sklearn_clsattn._core.objective import AttentionObjective
from sklearn_clsattn._core.path import AttentionPath
from sklearn_clsattn._core.prior_mean import PRIOR_DOCUMENTS, prior_mean
from sklearn_clsattn._core.shard import multiple_sums
from sklearn_clsattn._core.solve import solve
from sklearn_clsattn._core.statistics import Scaling, token_scaling
from sklearn_clsattn.datasets import load_requests, make_token_classification

CLASSES = pytest.mark.parametrize("n_classes", [2, 4])
ATTEND = pytest.mark.parametrize("attend_cls", [True, False])


def weighted(n_classes, seed=0, n_documents=60, n_tokens=15):
    X = counts(seed, n_documents, n_tokens)
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return X, np.arange(n_documents) % n_classes, weights


def fit(X, codes, weights, **options):
    settings = {"C": 1.0, "attention_C": 0.3, "max_iter": 300, "tol": 1e-6, **options}
    return fit_attention(documents(X, codes, weights), **settings)


def gap(result):
    return result.attributes["optimality_gap_"]


def objective_of(X, codes, weights, scaling, C=1.0, attention_C=0.3):
    given = documents(X, codes, weights)
    loss = CorpusLoss(given, np.float64, "cpu", scaling.cls_weight)
    return AttentionObjective(loss, given.statistics, scaling, C=C, attention_C=attention_C)


# Where training stops


@CLASSES
@ATTEND
@pytest.mark.parametrize("token", ["log_odds", None])
def test_training_converges_and_says_what_it_did(n_classes, attend_cls, token):
    X, codes, weights = weighted(n_classes)
    result = fit(X, codes, weights, attend_cls=attend_cls, scaling=token)
    assert not result.convergence_message
    assert gap(result) <= 1e-6
    assert len(result.loss_curve) == result.n_iter + 1
    assert (np.diff(result.loss_curve) < 0).all()
    assert (result.model.cls_weight > 0) == attend_cls
    # The curve, of penalised losses, starts at that of the class frequencies.
    priors = np.bincount(codes, weights=weights) / weights.sum()
    assert result.loss_curve[0] == pytest.approx(-(priors * np.log(priors)).sum())
    loss = np.average(log_losses(result.model.outputs(X), codes), weights=weights)
    assert loss < result.loss_curve[-1] < result.loss_curve[0]


@CLASSES
@ATTEND
def test_the_gap_bounds_what_other_values_could_gain(n_classes, attend_cls):
    """At the attention reached, no values bring the loss lower by more than the gap."""
    X, codes, weights = weighted(n_classes, 0, 30, 8)
    rng, shape = np.random.default_rng(0), (8, 1 if n_classes == 2 else n_classes)
    scales, cls_weight = np.exp(rng.normal(size=shape)), 3.0 if attend_cls else 0.0
    scaling = Scaling(rng.normal(size=8), scales, cls_weight, 2.0)
    objective = objective_of(X, codes, weights, scaling)
    point = torch.from_numpy(rng.normal(size=tuple(objective.start.shape)))
    for scale in (0.0, 0.3, 2.0):
        x = scale * point
        x[-1, 0] *= attend_cls
        value, gradient = objective(x)

        def of_values(t, x=x):
            full = x.clone()
            full[:-1, 1:] = t
            value, gradient = objective(full)
            return value, gradient[:-1, 1:].contiguous()

        def bound(gradient):
            return float(gradient.square().sum()) / (2 * objective.values.penalty)

        best = minimize_lbfgs(
            of_values,
            x[:-1, 1:].contiguous(),
            is_converged=lambda iterate: float(iterate.gradient.norm()) < 1e-8,
            max_iter=300,
        )
        assert 0 <= value - best.value <= bound(gradient[:-1, 1:]) * (1 + 1e-9)
        assert bound(gradient[:-1, 1:]) <= objective.gap(gradient)
        assert bound(best.gradient) < 1e-12  # at the best values it is sharp


@CLASSES
def test_a_loose_stop_is_within_its_gap_of_a_long_run(n_classes):
    problem = weighted(n_classes, 1)
    # With scores held at their start what remains is convex, and the gap nearly a bound: for
    # the intercepts it takes the curvature of the start, which falls as the model learns.
    long = fit(*problem, attention_C=1e-9, tol=1e-13, max_iter=2000)
    for tol in (1e-1, 1e-2, 1e-4, 1e-6):
        loose = fit(*problem, attention_C=1e-9, tol=tol)
        assert -1e-12 <= loose.loss_curve[-1] - long.loss_curve[-1] <= 5 * tol
        assert gap(loose) <= tol


def test_each_step_is_reported():
    problem, seen = weighted(3, 4), []
    result = fit(*problem, on_iteration=lambda *numbers: seen.append(numbers))
    assert [n_iter for n_iter, _, _ in seen] == [*range(result.n_iter + 1)]
    assert [loss for _, loss, _ in seen] == result.loss_curve
    assert seen[-1][2] == gap(result)


def test_too_few_iterations_warn_and_say_what_to_do():
    X, y = data()
    with pytest.warns(ConvergenceWarning) as caught:
        model = ClsAttentionClassifier(max_iter=1, tol=1e-12).fit(X, y)
    (warning,) = caught
    assert warning.filename == __file__
    words = ["max_iter=1", "optimality gap", "tol=1.0e-12", "Increase max_iter", "attention_C"]
    for word in [*words, f"{model.optimality_gap_:.1e}"]:
        assert word in str(warning.message)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match=r"in this precision.* pass X as float64"):
        ClsAttentionClassifier(tol=0.0, max_iter=300).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("C", ["auto", 3.6])
@CLASSES
def test_neither_more_steps_nor_the_order_of_tokens_change_probabilities(C, n_classes):
    X, y = make_token_classification(
        700, n_classes=n_classes, n_irrelevant=400, flip_y=0.05, random_state=0
    )
    X, y, X_test = X[:400], y[:400], X[400:]
    model = ClsAttentionClassifier(C=C).fit(X, y)
    probabilities = model.predict_proba(X_test)
    longer = ClsAttentionClassifier(C=model.C_, tol=1e-9, max_iter=3000).fit(X.astype(float), y)
    assert_allclose(probabilities, longer.predict_proba(X_test), atol=0.02)
    order = np.random.default_rng(0).permutation(X.shape[1])
    other = ClsAttentionClassifier(C=C).fit(X[:, order], y)
    assert_allclose(other.C_, model.C_, rtol=1e-2)
    assert_allclose(other.predict_proba(X_test[:, order]), probabilities, atol=0.02)


# What penalties do


@CLASSES
def test_logistic_regression_is_inside_the_model_class(n_classes):
    """With scores held at 0 and nearly all attention on <cls>, the outputs tend to its."""
    X, codes, weights = weighted(n_classes, 6)
    expected = LogisticRegression(C=0.5, tol=1e-10, max_iter=2000).fit(X, codes, weights)
    decision = expected.decision_function(X).reshape(len(codes), -1)
    distances = []
    for cls_weight in (1e2, 1e4, 1e6):
        scales = np.full((X.shape[1], decision.shape[1]), cls_weight)
        scaling = Scaling(np.zeros(X.shape[1]), scales, cls_weight, 1.0)
        objective = objective_of(X, codes, weights, scaling, C=0.5, attention_C=1e-12)
        objective.cls_score.penalty = objective.cls_score.curvature = 1e8
        outputs = solve(objective, max_iter=3000, tol=1e-12)[0].model.outputs(X)
        if n_classes > 2:  # a constant on all intercepts is free
            outputs -= outputs.mean(axis=1, keepdims=True)
        distances.append(np.abs(outputs - decision).max())
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-4


# Probabilities that cannot run away

STRENGTHS = (1e-4, 1e-2, 1.0)


def test_ten_documents_do_not_make_it_certain():
    texts, moods = map(np.array, load_requests(target="mood", return_X_y=True))
    order = np.random.default_rng(1).permutation(len(texts))
    X, train, test = CountVectorizer().fit_transform(texts[order]), slice(10), slice(-1000, None)
    moods = moods[order]

    def loss(C):
        model = ClsAttentionClassifier(C=C).fit(X[train], moods[train])
        return log_loss(moods[test], model.predict_proba(X[test]))

    assert loss("auto") < 1.0  # 12.27 without a bound; ln 2 is .69
    losses = [loss(C) for C in STRENGTHS]
    assert max(losses) < 1.2
    assert losses[0] == pytest.approx(np.log(2), abs=0.11)  # the classes' shares, 4 to 6


def texts_of(own, rng):
    """Return counts of a word of its class's own vocabulary for each of `own`, and of 9 others."""
    of_class, shared = (1.0 / np.arange(1, n + 1) for n in (300, 500))
    words = 300 * own + rng.choice(300, own.shape, p=of_class / of_class.sum())
    others = 600 + rng.choice(500, (len(own), 9), p=shared / shared.sum())
    return np.apply_along_axis(np.bincount, 1, np.hstack([words, others]), minlength=1100)


def test_words_of_both_classes_leave_it_in_doubt():
    rng, medians = np.random.default_rng(0), []
    y, truth = rng.integers(0, 2, 1000), rng.integers(0, 2, 2000)
    X, held_out = (texts_of(np.repeat(of[:, None], 3, axis=1), rng) for of in (y, truth))
    both = texts_of(np.tile([0, 1], (200, 1)), rng)
    flipped = np.where(rng.random(2000) < 0.05, 1 - truth, truth)
    for C in (*STRENGTHS, "auto"):
        model = ClsAttentionClassifier(C=C).fit(X, y)
        largest = model.predict_proba(both).max(axis=1)
        # Without a bound most are above .999, whatever C. "auto" is large: no held-out document
        # says otherwise.
        assert (largest > 0.999).mean() < (0.15 if C == "auto" else 0.01)
        assert log_loss(flipped, model.predict_proba(held_out)) < (0.6 if C == "auto" else 0.75)
        medians.append(np.median(largest))
    assert medians == sorted(medians)
    assert (np.array(medians[:3]) < [0.6, 0.9, 0.9]).all()


@CLASSES
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_multiple_is_the_least_of_its_penalised_loss(n_classes, C):
    X, y = data(n_classes)
    given = documents(X, y)
    multiple = AttentionPath(given, np.float64, "cpu", attention_C=0.03).mean
    value, _, hessian = multiple._at_start
    strength = PRIOR_DOCUMENTS * hessian[0, 0] / len(y) / min(C, 1.0)

    def penalised(x):
        return multiple._evidence.sum(multiple_sums, x)[0] + 0.5 * strength * x[0] ** 2

    found = minimize(penalised, np.array([0.1, *np.zeros(given.n_outputs)]), tol=1e-10)
    multiple.fit(C)
    assert multiple.scale == pytest.approx(found.x[0], rel=1e-3)
    assert (
        multiple.mean_loss * len(y) + 0.5 * strength * multiple.scale**2 <= found.fun + 1e-6 < value
    )


def test_a_prior_from_earlier_documents_is_where_the_multiple_stays_without_evidence():
    X, y = data(2)
    given = documents(0 * X, y)
    loss = CorpusLoss(given, np.float64, "cpu", 1.0)
    units = token_scaling(given.statistics, scaling="log_odds", attend_cls=True)
    mean = prior_mean(given, loss, units, earlier=(0.3, 4.0))
    assert (mean.scale, mean.precision) == (pytest.approx(0.3), 4.0)


# Other shares of classes.


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_for_other_shares_of_classes(n_classes):
    X, y = data(n_classes, n_documents=90)
    model = ClsAttentionClassifier().fit(X, y)
    assert_allclose(model.predict_proba(X, priors=model.class_prior_), model.predict_proba(X))
    new = np.array([0.8, *[0.2 / (n_classes - 1)] * (n_classes - 1)])
    joint = model.predict_proba(X) * new / model.class_prior_  # Bayes' rule
    expected = joint / joint.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(X, priors=new), expected, rtol=1e-9)
    for wrong in ([0.5] * n_classes + [0.1], [-0.5, *[1.5 / (n_classes - 1)] * (n_classes - 1)]):
        with pytest.raises(ValueError, match="priors must be"):
            model.predict_proba(X, priors=wrong)
    labels = np.eye(n_classes, dtype=int)[y]
    several = ClsAttentionClassifier().fit(X, labels)
    assert_allclose(several.predict_proba(X, several.class_prior_), several.predict_proba(X))
    assert (several.predict_proba(X, [0.9] * n_classes) > several.predict_proba(X)).all()
