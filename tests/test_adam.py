"""Adam's loop: its steps are PyTorch's, and when it stops and what it hands back is as said."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklearn_clsattn.paper._adam import minimize_adam
from sklearn_clsattn.paper._validation import hold_out

SETTINGS = {"max_iter": 100, "n_iter_no_change": 5, "tol": 1e-3}


def quadratic(x, target=1.0):
    def evaluate():
        x.grad = x - target
        return 0.5 * float((x - target).square().sum()), None

    return evaluate


def scripted(x, losses, *, validate):
    """Return an evaluation that reports `losses` one by one, and where x was each time."""
    places = []

    def evaluate():
        loss = losses[min(len(places), len(losses) - 1)]
        places.append(x.clone())
        x.grad = torch.ones_like(x)
        return (0.0, loss) if validate else (loss, None)

    return evaluate, places


def test_steps_are_those_of_torch():
    x, y = torch.linspace(-2, 2, 7).double(), torch.ones(3).double()
    ours = [x.clone(), y.clone()]

    def evaluate():
        for tensor in ours:
            tensor.grad = tensor**3
        return float(sum((tensor**4).sum() / 4 for tensor in ours)), None

    theirs = [tensor.clone().requires_grad_() for tensor in (x, y)]
    groups = [{"params": [t], "lr": lr} for t, lr in zip(theirs, (0.1, 0.02), strict=True)]
    optimizer = torch.optim.Adam(groups, eps=1e-4)
    losses = []
    for _ in range(31):
        loss = sum((tensor**4).sum() / 4 for tensor in theirs)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        if len(losses) < 31:
            optimizer.step()
    result = minimize_adam(
        ours, [0.1, 0.02], evaluate, max_iter=30, n_iter_no_change=99, tol=0.0, epsilon=1e-4
    )
    np.testing.assert_allclose(result.losses, losses, rtol=1e-12)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-12)
        assert one.grad is None
    assert (result.status, result.n_iter, result.best_iter) == ("max_iter", 30, 30)
    assert result.validation_losses is None


def test_the_best_is_restored():
    x = torch.zeros(3).double()
    losses = [1.0, 0.5, 0.4, 0.45, 0.3, 0.35, 0.31, 0.32, 0.2]
    evaluate, places = scripted(x, losses, validate=True)
    result = minimize_adam([x], [0.1], evaluate, **{**SETTINGS, "n_iter_no_change": 3})
    assert (result.status, result.best_iter, result.n_iter) == ("converged", 4, 7)
    assert result.validation_losses == losses[:8]
    torch.testing.assert_close(x, places[4], rtol=0, atol=0)


@pytest.mark.parametrize("reason", ["max_iter", "stopped"])
def test_the_best_is_restored_however_training_ends(reason):
    x = torch.zeros(2).double()
    evaluate, places = scripted(x, [1.0, 0.5, 0.8, 0.7], validate=True)
    callback = None if reason == "max_iter" else lambda n_iter, *losses: n_iter == 3
    settings = {**SETTINGS, "max_iter": 3} if reason == "max_iter" else SETTINGS
    result = minimize_adam([x], [0.1], evaluate, callback=callback, **settings)
    assert (result.status, result.best_iter, result.n_iter) == (reason, 1, 3)
    torch.testing.assert_close(x, places[1], rtol=0, atol=0)


def test_without_validation_small_improvements_add_up():
    """Each step gains 0.4 tol: three together more than tol, two not."""
    losses = (1.0 - 4e-4 * np.arange(200)).tolist()
    for patience, expected in ((3, ("max_iter", 100)), (2, ("converged", 2))):
        x = torch.zeros(1).double()
        evaluate, places = scripted(x, losses, validate=False)
        result = minimize_adam([x], [0.1], evaluate, **{**SETTINGS, "n_iter_no_change": patience})
        assert (result.status, result.n_iter) == expected
        assert result.best_iter == result.n_iter
        torch.testing.assert_close(x, places[-1], rtol=0, atol=0)


def test_a_quadratic_is_minimised():
    x = torch.zeros(4).double()
    result = minimize_adam([x], [0.1], quadratic(x), max_iter=500, n_iter_no_change=50, tol=1e-9)
    assert result.status == "converged"
    assert len(result.losses) == result.n_iter + 1
    assert float((x - 1).abs().max()) < 1e-3


def test_reports():
    x = torch.zeros(1).double()
    reports = []
    minimize_adam(
        [x],
        [0.1],
        quadratic(x),
        callback=lambda *report: reports.append(report),
        **{**SETTINGS, "max_iter": 3},
    )
    assert [report[0] for report in reports] == [0, 1, 2, 3]
    assert reports[0][1:] == (0.5, None)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_learning_rates_are_positive(rate):
    x = torch.zeros(1).double()
    with pytest.raises(ValueError, match="learning rate must be positive"):
        minimize_adam([x], [rate], quadratic(x), **SETTINGS)


@pytest.mark.parametrize("validate", [True, False])
def test_a_loss_that_is_no_number(validate):
    x = torch.zeros(1).double()
    evaluate, _ = scripted(x, [1.0, math.nan], validate=validate)
    with pytest.raises(ValueError, match=r"The loss is nan after 1 step\(s\) .* \(it was 0.5\)"):
        minimize_adam([x], [0.5], evaluate, **SETTINGS)


@given(
    sizes=st.lists(st.integers(2, 30), min_size=1, max_size=5),
    fraction=st.floats(0.01, 0.99),
    seed=st.integers(0, 99),
)
def test_hold_out_takes_its_fraction_of_every_class(sizes, fraction, seed):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    codes = np.random.default_rng(seed).permutation(codes)
    trained_on, held_out = hold_out(codes, np.ones(len(codes)), fraction, seed)
    assert_array_equal(np.sort(np.concatenate([trained_on, held_out])), np.arange(len(codes)))
    assert (np.diff(trained_on) > 0).all()
    assert (np.diff(held_out) > 0).all()
    held = np.bincount(codes[held_out], minlength=len(sizes))
    for size, number in zip(sizes, held, strict=True):
        assert 1 <= number <= size - 1
        assert abs(number - fraction * size) <= 1
    again = hold_out(codes, np.ones(len(codes)), fraction, seed)
    assert_array_equal(again[1], held_out)


def test_documents_of_weight_zero_are_not_held_out():
    codes = np.repeat([0, 1], 20)
    weights = np.tile([0.0, 1.0], 20)
    _, held_out = hold_out(codes, weights, 0.5, 0)
    assert (weights[held_out] > 0).all()
    assert len(held_out) == 10
    # A class of no weight is no class.
    _, held_out = hold_out(codes, 1.0 * (codes == 1), 0.25, 0)
    assert len(held_out) == 5


def test_too_few_documents_to_hold_out():
    codes = np.array([0, 0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"class number 2 has one document.*early_stopping=False"):
        hold_out(codes, np.ones(5), 0.1, 0)
    with pytest.raises(ValueError, match=r"class number 0 has one document"):
        hold_out(codes, np.array([1.0, 0.0, 1.0, 1.0, 1.0]), 0.1, 0)
    for fraction in (0.0, 1.0):
        with pytest.raises(ValueError, match="validation_fraction must be between 0 and 1"):
            hold_out(codes, np.ones(5), fraction, 0)
