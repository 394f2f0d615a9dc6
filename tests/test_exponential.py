"""The exponential integrator, on systems whose solutions are known."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from scipy.stats import ortho_group

from sklearn_clsattn.paper import _exponential
from sklearn_clsattn.paper._exponential import ExponentialIntegrator, _phi

ROUNDING = float(np.finfo(np.float64).eps)


def integrate(speeds, start, *, until, tol, largest_change=100.0):
    """Follow da/dt = speeds(a), the kernel being the identity; return a, calls and steps.

    The last unknown is the time: only the step that passes `until` is too long, and is cut.
    """
    calls = 0

    def field(y):
        nonlocal calls
        calls += 1
        c = torch.cat([speeds(y[0, :-1]), torch.ones(1, dtype=torch.float64)])
        return torch.stack([c, c]), calls

    start = torch.cat([start, torch.zeros(1, dtype=torch.float64)])
    integrator = ExponentialIntegrator(
        field,
        torch.stack([start, torch.zeros_like(start)]),
        tol=tol,
        largest_change=largest_change,
        rounding=ROUNDING,
    )
    steps = 0
    while (left := until - float(integrator.y[0, -1])) > 1e-9:
        integrator._next_size = min(integrator._next_size, left)
        assert 0 < integrator.step() < 2 * largest_change
        steps += 1
    assert integrator.point <= calls
    return integrator.y[0, :-1].numpy(), calls, steps


@pytest.mark.parametrize("stiffness", [1.0, 1e3, 1e6])
def test_a_linear_system_is_followed_exactly_whatever_its_stiffness(stiffness):
    """One stiff direction among thirty, as the kernel has it, and decays of many rates."""
    rates = np.concatenate([[stiffness], np.geomspace(1e-3, 1.0, 29)])
    basis = ortho_group.rvs(30, random_state=0)
    A = basis * rates @ basis.T
    start = np.random.default_rng(0).normal(size=30)
    matrix = torch.from_numpy(A)
    found, calls, _ = integrate(lambda a: -matrix @ a, torch.from_numpy(start), until=5.0, tol=1e-4)
    assert np.abs(found - expm(-5.0 * A) @ start).max() < 1e-4
    assert calls < 1000  # an explicit method of fixed stages takes `stiffness` times 5


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_a_system_that_is_not_linear_is_followed_to_the_tolerance(tol):
    """Logistic growth of several rates, one of which is stiff."""
    rates = torch.tensor([0.5, 1.0, 3.0, 1000.0], dtype=torch.float64)
    start = torch.tensor([0.1, 0.01, 1e-3, 0.5], dtype=torch.float64)
    found, _, _ = integrate(lambda a: rates * a * (1 - a), start, until=6.0, tol=tol)
    expected = 1 / (1 + (1 / start - 1) * torch.exp(-6.0 * rates))
    assert np.abs(found - expected.numpy()).max() < tol


def test_it_is_of_order_three_and_its_steps_follow_an_estimate_of_order_two(monkeypatch):
    monkeypatch.setattr(_exponential, "_SPACE_ERROR", 1e-6)
    start = torch.tensor([0.1, 0.01], dtype=torch.float64)
    expected = 1 / (1 + (1 / start.numpy() - 1) * np.exp(-6.0))
    errors, steps = [], []
    for tol in (1e-3, 1e-6):
        found, _, n = integrate(lambda a: a * (1 - a), start, until=6.0, tol=tol)
        errors.append(np.abs(found - expected).max())
        steps.append(n)
    assert 6 < steps[1] / steps[0] < 16  # 1,000 ** (1 / 3)
    assert math.log(errors[0] / errors[1]) / math.log(steps[1] / steps[0]) > 2.5


def test_functions_of_a_matrix_are_their_series():
    """phi_k(Z) = sum_j Z^j / (j + k)!."""
    rng = np.random.default_rng(0)
    Z, b = rng.normal(size=(5, 5)) / 2, rng.normal(size=5)
    for k, found in enumerate(_phi(Z, b), start=1):
        terms = [np.linalg.matrix_power(Z, j) @ b / math.factorial(j + k) for j in range(30)]
        np.testing.assert_allclose(found, np.sum(terms, axis=0), rtol=1e-12)


def test_no_step_changes_an_unknown_by_much_more_than_is_allowed():
    start = torch.zeros(3, dtype=torch.float64)
    _, _, steps = integrate(torch.ones_like, start, until=50.0, tol=1e-3, largest_change=2.0)
    assert 25 <= steps < 40


def test_a_field_that_is_0():
    start = torch.ones(2, 3, dtype=torch.float64)
    integrator = ExponentialIntegrator(
        lambda y: (torch.zeros_like(y), None),
        start,
        tol=1e-3,
        largest_change=1.0,
        rounding=ROUNDING,
    )
    assert (integrator.step(), integrator.speed) == (0, 0)
