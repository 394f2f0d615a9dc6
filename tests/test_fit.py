"""The default training: what its stopping rule promises, starts, stops, and logistic regression."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from reference import counts
from sklearn.linear_model import LogisticRegression

from sklearn_clsattn._core.documents import Documents
from sklearn_clsattn._core.fit import fit_attention
from sklearn_clsattn._core.lbfgs import minimize_lbfgs
from sklearn_clsattn._core.objective import AttentionObjective
from sklearn_clsattn._core.solve import solve
from sklearn_clsattn._core.statistics import Scaling

CLASSES = pytest.mark.parametrize("n_classes", [2, 4])


def data(n_classes, seed=0, n_documents=60, n_tokens=15):
    X = counts(seed, n_documents, n_tokens)
    codes = np.arange(n_documents) % n_classes
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, n_documents)
    return X, codes, weights


def documents(X, codes, weights):
    return Documents.of(X, codes, weights, int(codes.max()) + 1)


def fit(X, codes, weights, **options):
    settings = {"C": 1.0, "attention_C": 0.3, "max_iter": 300, "tol": 1e-6, **options}
    return fit_attention(documents(X, codes, weights), **settings)


def gap(result):
    return result.attributes["optimality_gap_"]


def mean_log_loss(fitted, X, codes, weights):
    outputs = fitted.outputs(X)
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    losses = np.logaddexp.reduce(outputs, axis=1) - outputs[np.arange(len(codes)), codes]
    return np.average(losses, weights=weights)


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("token", ["log_odds", None])
def test_training_converges_and_says_what_it_did(n_classes, attend_cls, token):
    X, codes, weights = data(n_classes)
    result = fit(X, codes, weights, attend_cls=attend_cls, scaling=token)
    assert result.status == "converged"
    assert gap(result) <= 1e-6
    assert len(result.loss_curve) == result.n_iter + 1
    assert (np.diff(result.loss_curve) < 0).all()
    fitted = result.model
    n_outputs = 1 if n_classes == 2 else n_classes
    assert fitted.scores.shape == (X.shape[1],)
    assert fitted.values.shape == (X.shape[1], n_outputs)
    assert fitted.intercept.shape == (n_outputs,)
    assert (fitted.cls_weight > 0) == attend_cls
    # The loss curve starts at the loss of the class frequencies, which know nothing of X.
    priors = np.bincount(codes, weights=weights) / weights.sum()
    assert result.loss_curve[0] == pytest.approx(-(priors * np.log(priors)).sum())
    # It is the penalised loss, so above that of the model, which is below the start's.
    loss = mean_log_loss(fitted, X, codes, weights)
    assert loss < result.loss_curve[-1] < result.loss_curve[0]


def random_problem(n_classes, seed, attend_cls):
    """Return a problem as training makes it, in random units."""
    X, codes, weights = data(n_classes, seed, 30, 8)
    n_outputs = 1 if n_classes == 2 else n_classes
    rng = np.random.default_rng(seed)
    scaling = Scaling(
        rng.normal(size=X.shape[1]),
        np.exp(rng.normal(size=(X.shape[1], n_outputs))),
        3.0 if attend_cls else 0.0,
        2.0,
    )
    return objective_of(X, codes, weights, scaling, C=1.0, attention_C=0.3)


def objective_of(X, codes, weights, scaling, **strengths):
    given = documents(X, codes, weights).trained_in(np.float64, "cpu")
    loss = given.loss(np.float64, "cpu", scaling.cls_weight)
    return AttentionObjective(loss, np.bincount(codes, weights), scaling, **strengths)


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_bounds_what_other_values_could_gain(n_classes, attend_cls, seed):
    """At the attention reached, no values bring the loss lower by more than the gap."""
    objective = random_problem(n_classes, seed, attend_cls)
    value_penalty = objective.blocks[1].penalty
    generator = torch.Generator().manual_seed(seed)
    point = torch.randn(objective.start.shape, generator=generator, dtype=torch.float64)
    for scale in (0.0, 0.3, 2.0):
        x = scale * point
        if not attend_cls:
            x[-1, 0] = 0.0
        value, gradient = objective(x)

        def on_values_alone(t, x=x):
            full = x.clone()
            full[:-1, 1:] = t
            value, gradient = objective(full)
            return value, gradient[:-1, 1:].contiguous()

        best = minimize_lbfgs(
            on_values_alone,
            x[:-1, 1:].contiguous(),
            is_converged=lambda iterate: float(iterate.gradient.norm()) < 1e-8,
            max_iter=300,
        )
        gain = value - best.value
        of_values = float(gradient[:-1, 1:].square().sum()) / (2 * value_penalty)
        assert 0 <= gain <= of_values * (1 + 1e-9)
        assert of_values <= objective.gap(gradient)
        # At the best values that part is 0, so the bound is sharp there.
        at_best = on_values_alone(best.x)[1]
        assert float(at_best.square().sum()) / (2 * value_penalty) < 1e-12


@CLASSES
def test_the_value_part_of_the_gap_is_primal_minus_dual(n_classes):
    """|grad_t|^2 / (2 lambda) is the Fenchel duality gap of the loss over the values.

    With u the dual variables -dLoss/dF, the dual is -(conjugate of the loss at -u)
    - |X'^T u|^2 / (2 lambda), X' being the linear map from values to outputs.
    """
    objective = random_problem(n_classes, 5, True)
    score_penalty, lam = (block.penalty for block in objective.blocks[:2])
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(objective.start.shape, generator=generator, dtype=torch.float64)
    x[-1] = 0.0
    value, gradient = objective(x)
    t = x[:-1, 1:]
    pull = lam * t - gradient[:-1, 1:]  # X'^T u
    primal = value - float(0.5 * score_penalty * x[:-1, 0].square().sum())
    loss = primal - 0.5 * lam * float(t.square().sum())
    # By Fenchel's equality at the dual variables: conjugate = <dLoss/dF, F> - loss.
    conjugate = -float((pull * t).sum()) - loss
    dual = -conjugate - float(pull.square().sum()) / (2 * lam)
    expected = float(gradient[:-1, 1:].square().sum()) / (2 * lam)
    assert primal - dual == pytest.approx(expected, rel=1e-9)


@CLASSES
def test_a_loose_stop_is_within_its_gap_of_a_long_run(n_classes):
    X, codes, weights = data(n_classes, 1)
    # With scores held at their start what remains is convex, and the gap nearly a bound: for
    # the intercepts it takes the curvature of the start, which falls as the model learns.
    long = fit(X, codes, weights, attention_C=1e-9, tol=1e-13, max_iter=2000)
    assert long.status in ("converged", "no_progress")
    for tol in (1e-1, 1e-2, 1e-4, 1e-6):
        loose = fit(X, codes, weights, attention_C=1e-9, tol=tol)
        assert loose.status == "converged"
        excess = loose.loss_curve[-1] - long.loss_curve[-1]
        assert -1e-12 <= excess <= 5 * tol
        assert gap(loose) <= tol


def test_running_out_of_iterations():
    X, codes, weights = data(3)
    result = fit(X, codes, weights, max_iter=2, tol=0.0)
    assert (result.status, result.n_iter, len(result.loss_curve)) == ("max_iter", 2, 3)
    assert gap(result) > 0


@CLASSES
@pytest.mark.parametrize("attend_cls", [True, False])
def test_starting_at_the_end_of_a_fit_takes_no_step(n_classes, attend_cls):
    X, codes, weights = data(n_classes, 2)
    first = fit(X, codes, weights, attend_cls=attend_cls)
    again = fit(X, codes, weights, attend_cls=attend_cls, start=first.model)
    assert (again.n_iter, again.status) == (0, "converged")
    assert again.loss_curve == [pytest.approx(first.loss_curve[-1], rel=1e-12)]
    assert_allclose(again.model.outputs(X), first.model.outputs(X), rtol=1e-9)


@CLASSES
def test_a_start_from_other_units_is_the_same_model(n_classes):
    """Another scaling and another weight of <cls>: the outputs are carried over exactly."""
    X, codes, weights = data(n_classes, 3)
    first = fit(X, codes, weights)
    seen = []
    n_tokens, n_outputs = first.model.values.shape
    other = Scaling(np.ones(n_tokens), np.full((n_tokens, n_outputs), 7.0), 0.4, 2.0)

    def stop_at_once(progress):
        seen.append(progress.model())
        return True

    objective = objective_of(X, codes, weights, other, C=1.0, attention_C=0.3)
    objective.start_from(first.model)
    solve(objective, max_iter=1, tol=0.0, callback=stop_at_once)
    assert_allclose(seen[0].outputs(X), first.model.outputs(X), rtol=1e-9)
    assert seen[0].cls_weight == 0.4


def test_each_step_is_reported_and_can_stop_the_fit():
    X, codes, weights = data(3, 4)
    free = fit(X, codes, weights)
    reports = []

    models = []

    def stop_at_three(progress):
        reports.append(progress)
        models.append(progress.model())
        return progress.n_iter == 3

    result = fit(X, codes, weights, callback=stop_at_three)
    assert (result.status, result.n_iter) == ("stopped", 3)
    assert [report.n_iter for report in reports] == [0, 1, 2, 3]
    assert [report.loss for report in reports] == result.loss_curve == free.loss_curve[:4]
    assert reports[-1].criterion == gap(result)
    assert_array_equal(models[-1].scores, result.model.scores)
    losses = [mean_log_loss(model, X, codes, weights) for model in models]
    assert losses[0] > losses[-1]

    listening = fit(X, codes, weights, callback=lambda progress: False)
    assert (listening.status, listening.loss_curve) == ("converged", free.loss_curve)


@CLASSES
def test_logistic_regression_is_inside_the_model_class(n_classes):
    """With scores held at 0 and nearly all attention on <cls>, the outputs tend to its."""
    X, codes, weights = data(n_classes, 6)
    n_tokens, n_outputs = X.shape[1], 1 if n_classes == 2 else n_classes
    expected = LogisticRegression(C=0.5, tol=1e-10, max_iter=2000).fit(X, codes, weights)
    decision = expected.decision_function(X).reshape(len(codes), n_outputs)
    distances = []
    for cls_weight in (1e2, 1e4, 1e6):
        scaling = Scaling(
            starting_scores=np.zeros(n_tokens),
            value_scales=np.full((n_tokens, n_outputs), cls_weight),
            cls_weight=cls_weight,
            C_unit=1.0,
        )
        objective = objective_of(X, codes, weights, scaling, C=0.5, attention_C=1e-12)
        objective.cls_score.penalty = objective.cls_score.curvature = 1e8
        outputs = solve(objective, max_iter=3000, tol=1e-12)[0].model.outputs(X)
        if n_outputs > 1:  # a constant on all intercepts is free
            outputs -= outputs.mean(axis=1, keepdims=True)
        distances.append(np.abs(outputs - decision).max())
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-4


def test_the_model_has_more_to_say_than_logistic_regression():
    """Letting attention learn lowers the penalised loss further."""
    X, codes, weights = data(2, 7)
    held, free = (fit(X, codes, weights, attention_C=C) for C in (1e-9, 1.0))
    assert free.loss_curve[-1] < held.loss_curve[-1] - 1e-4


def test_single_precision_reaches_the_same_loss():
    X, codes, weights = data(3, 8)
    double, single = fit(X, codes, weights), fit(X, codes, weights, dtype=np.float32)
    assert single.model.scores.dtype == np.float64
    assert single.loss_curve[-1] == pytest.approx(double.loss_curve[-1], abs=1e-5)


def test_documents_without_any_token():
    X, codes, weights = data(3)
    X.data[:] = 0
    X.eliminate_zeros()
    for attend_cls in (True, False):
        result = fit(X, codes, weights, attend_cls=attend_cls)
        priors = np.bincount(codes, weights=weights) / weights.sum()
        probabilities = np.exp(result.model.intercept) / np.exp(result.model.intercept).sum()
        assert_allclose(probabilities, priors, atol=1e-3)
        assert_array_equal(result.model.outputs(X), np.tile(result.model.intercept, (60, 1)))
