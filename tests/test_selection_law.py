"""The law of selection: its verdicts are what flows do, and its numbers."""

import warnings

import numpy as np
import pytest
from helpers import refused, single_relevant

from benchmarks.paper.selection_law import selection_law
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.paper import (
    OneStepClassifier,
    check_single_relevant_token,
    one_step_embeddings,
)


def step_of(X, y, value):
    return value / np.abs(one_step_embeddings(X, y, step_size=1.0).shifts).max()


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
