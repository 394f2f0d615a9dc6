"""The stabilised integrator, on systems whose solutions are known."""

import math

import numpy as np
import pytest
import torch

from sklearn_clsattn.paper._chebyshev import MOST_STAGES, ChebyshevIntegrator, _coefficients

ROUNDING = float(np.finfo(np.float64).eps)


def integrate(rates, tol, *, until=3.0):
    """Follow dy/dt = -rates y from 1, with the time as second row; return y, time and calls."""
    calls, rates = 0, torch.tensor(rates, dtype=torch.float64)

    def field(y):
        nonlocal calls
        calls += 1
        return torch.stack([-rates * y[0], torch.ones_like(rates)])

    start = torch.stack([torch.ones_like(rates), torch.zeros_like(rates)])
    integrator = ChebyshevIntegrator(field, start, tol=tol, largest_change=1.0, rounding=ROUNDING)
    steps = 0
    while float(integrator.y[1, 0]) < until:
        change = integrator.step()
        assert 0 < change <= 1.5
        steps += 1
    error = integrator.y[0] - torch.exp(-rates * integrator.y[1, 0])
    return float(error.abs().max()), calls, steps


@pytest.mark.parametrize("stiffness", [1.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_a_stiff_system_is_followed_to_the_tolerance(stiffness, tol):
    assert integrate([0.1, 1.0, stiffness], tol)[0] < 20 * tol


def test_work_grows_as_the_root_of_the_stiffness_and_steps_as_that_of_order_two():
    work = [integrate([1.0, stiffness], 1e-2)[1] for stiffness in (1e2, 1e6)]
    assert work[1] < 100 * work[0]  # an explicit method of fixed stages: 10,000 times
    steps = [integrate([1.0], tol)[2] for tol in (1e-4, 1e-7)]
    assert 5 < steps[1] / steps[0] < 15  # 1,000 ** (1 / 3)


@pytest.mark.parametrize("n_stages", [2, 3, 10, 100, MOST_STAGES])
def test_the_coefficients_are_of_order_two_and_stable_as_far_as_promised(n_stages):
    first, later = _coefficients(n_stages)

    def amplification(z):
        before, now = 1.0, 1.0 + first * z
        for mu, nu, mu_field, gamma in later:
            before, now = now, (1 - mu - nu) + mu * now + nu * before + z * (mu_field * now + gamma)
        return now

    for z in (-1e-3, -1e-2):
        assert amplification(z) == pytest.approx(math.exp(z), abs=abs(z) ** 3 + 1e-11)
    inside = np.linspace(-(n_stages**2 - 1) / 1.54, 0, 500)
    assert np.abs(amplification(inside)).max() <= 1 + 1e-9


def test_a_field_that_is_0():
    start = torch.ones(2, 3, dtype=torch.float64)
    integrator = ChebyshevIntegrator(
        torch.zeros_like, start, tol=1e-3, largest_change=1.0, rounding=ROUNDING
    )
    assert (integrator.step(), integrator.speed) == (0, 0)
