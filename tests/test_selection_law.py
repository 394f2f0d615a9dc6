"""The law of selection: its parts against slow ones, its edges, and what flows do."""

import warnings

import numpy as np
import pytest
import torch
from helpers import core_documents, refused, single_relevant
from scipy.optimize import minimize_scalar

from benchmarks.paper.mean_field import mean_field_leads
from benchmarks.paper.selection_law import LARGEST_LEAD, one_class_root, selection_law
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import (
    OneStepClassifier,
    check_single_relevant_token,
    one_step_embeddings,
    selected_tokens,
)
from sklearn_clsattn.paper._gradient_flow import gradient_flow
from sklearn_clsattn.paper._selective import SelectiveObjective


def step_of(X, y, value):
    return value / np.abs(one_step_embeddings(X, y, step_size=1.0).shifts).max()


def equal(value, n_relevant=5, length=10, dimension=1024):
    """Return the arguments of the mean field of equal tokens."""
    n = 2 * n_relevant
    sides = np.repeat([-1.0, 1.0], n_relevant)
    return np.full(n, value), sides, np.full(n, 1 / n), length - 1.0, 50, dimension


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_of_one_class_is_the_least(seed):
    own = np.random.default_rng(seed).uniform(0.3, 6.0, 7)

    def cost(w):
        return w**2 + (np.maximum(1 - own * w, 0) ** 2).sum()

    w = minimize_scalar(cost, bounds=(0, 1 / own.min()), options={"xatol": 1e-10}).x
    assert one_class_root(own) == pytest.approx(w, rel=1e-6)


@pytest.mark.parametrize("length", [10, 20, 40])
def test_the_upper_edge_in_closed_form(length):
    edge = 2 * np.log(length - 1) + np.log(2)
    below, above = (
        max(mean_field_leads(*equal(value, length=length))) for value in (edge - 1, edge + 1)
    )
    assert below > LARGEST_LEAD > above


@pytest.mark.parametrize("value", [1 / 64, 16.0, 2000.0])
def test_the_mean_field_ends_after_extreme_steps_too(value):
    """A class that is never behind leads by 0; both get all the attention."""
    assert mean_field_leads(*equal(value, dimension=None)) == (0, 0)


@pytest.mark.parametrize("value", [2.0, 4.0, 8.0])
def test_verdicts_without_a_dimension_are_what_the_flow_does(value):
    for seed in range(500, 504):
        X, y = single_relevant(seed=seed)
        step_size = step_of(X, y, value)
        law = selection_law(X, y, step_size=step_size)
        model = quiet_fit(X, y, step_size, max_iter=600)
        relevant = check_single_relevant_token(X, y).relevant_tokens
        selects = model.select_tokens(X).multiply(relevant).sum() == len(y)
        assert law.verdict == ("selects" if selects else "fails")
        assert selects or law.bad_optimum > 1


def quiet_fit(X, y, step_size, **parameters):
    with warnings.catch_warnings():  # of large steps, and of flows that do not settle
        warnings.simplefilter("ignore")
        return OneStepClassifier(step_size=step_size, **parameters).fit(X, y)


@pytest.mark.parametrize(("seed", "lost"), [(101, True), (111, True), (102, False)])
def test_the_steps_of_the_proof(seed, lost):
    """The flow pushes relevant tokens up and others down, and a lost token has a_j w >= 1."""
    X, y = single_relevant(seed=seed)
    step_size = step_of(X, y, 4.0)
    values = one_step_embeddings(X, y, step_size=step_size).shifts
    loss = core_documents(X, y).attention_loss(np.float64, "cpu")
    objective = SelectiveObjective(X, loss, torch.from_numpy(values))
    flow = gradient_flow(objective, None, torch.zeros(X.shape[1]))
    relevant = np.arange(X.shape[1]) < 10
    for _ in range(150):
        flow.step()
        scores, pushed = flow.y.numpy()
        assert (pushed[relevant] >= 0).all()
        assert (pushed[~relevant] <= 0).all()
        np.testing.assert_allclose(scores, pushed + values[:, 0] * (pushed @ values[:, 0]))
    a, sides = np.abs(values[relevant, 0]), np.sign(values[relevant, 0])
    selected = selected_tokens(scores, X).toarray().any(axis=0)[relevant]
    assert selected.all() != lost
    for j in np.flatnonzero(~selected):
        assert a[j] * one_class_root(a[sides != sides[j]]) >= 1


@pytest.mark.parametrize("value", [0.5, 2.0, 8.0, 64.0])
def test_tokens_of_equal_value_are_all_selected_after_any_step(value):
    """w a = K a^2 / (1 + K a^2): below 1 for every step, so that no token can be lost."""
    n_relevant, length = 4, 8
    rng = np.random.default_rng(0)
    X, y = np.zeros((8 * n_relevant, 2 * n_relevant + 30)), np.repeat([0, 1], 4 * n_relevant)
    for i, others in enumerate(rng.integers(0, 30, (4 * n_relevant, length - 1))):
        for k in (0, 1):  # pairs of documents that differ in the relevant token
            row = i + 4 * n_relevant * k
            X[row, i % n_relevant + n_relevant * k] = 1
            np.add.at(X[row], 2 * n_relevant + others, 1)
    step_size = step_of(X, y, value)
    law = selection_law(X, y, step_size=step_size)
    share = n_relevant * value**2
    assert law.token_loss == law.bad_optimum == pytest.approx(share / (1 + share))
    assert (law.verdict, "proved" in law.reason) == ("selects", True)
    model = quiet_fit(X, y, step_size)
    assert model.select_tokens(X)[:, : 2 * n_relevant].sum() == len(y)


def test_numbers_and_the_noise_of_few_dimensions():
    X, y = single_relevant()
    law = selection_law(X, y, step_size=step_of(X, y, 2.0), embedding_dim=4096)
    assert law.largest_value == pytest.approx(2.0)
    shifts = one_step_embeddings(X, y, step_size=law.step_size).shifts
    assert law.strength == pytest.approx(np.square(shifts).sum())
    assert law.upper_edge == pytest.approx(2 * np.log(9) + np.log(2), abs=1.0)
    few = selection_law(X, y, step_size=step_of(X, y, 0.05), embedding_dim=16)
    assert few.verdict == "fails"
    assert "noise" in few.reason


def test_other_documents_are_refused():
    X, y = make_token_classification(60, n_classes=3, delta=0, single_relevant=True, random_state=0)
    refused(r"two classes .* 3 classes", selection_law, X, y, step_size=1.0)
    X, y = make_token_classification(60, random_state=0)
    refused("does not hold", selection_law, X, y, step_size=1.0)
