"""The optimiser alone: known minima, preconditioning, and how it ends."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sklearn_clsattn.training.lbfgs import Iterate, minimize_lbfgs


def minimized(function, start, tol, max_iter=500, **how):
    """Minimise until no coordinate of the gradient is above `tol`, lower with every step."""
    values, kept = [], start.clone()

    def is_converged(iterate):
        assert iterate.n_iter == len(values)
        values.append(iterate.value)
        return tol is not None and float(iterate.gradient.abs().max()) <= tol

    first = Iterate(start, *function(start))
    result = minimize_lbfgs(function, first, is_converged=is_converged, max_iter=max_iter, **how)
    assert torch.equal(start, kept)
    assert len(values) == result.n_iter + 1
    assert all(after < before for before, after in pairwise(values))
    assert values[-1] == result.value
    result.values = values
    return result


def rosenbrock(x):
    """Return the value and the gradient for a tensor of any shape."""
    leaf = x.clone().requires_grad_()
    y = leaf.reshape(-1)
    value = (100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2).sum()
    return float(value.detach()), torch.autograd.grad(value, leaf)[0]


def quadratic(hessian, minimum):
    """Return a function of a Hessian, or of its diagonal."""

    def evaluate(x):
        change = x - minimum
        pull = hessian @ change if hessian.ndim == 2 else hessian * change
        return float(0.5 * (pull * change).sum()), pull

    return evaluate


@pytest.mark.parametrize("shape", [(2,), (10,), (5, 2)])
def test_rosenbrock(shape):
    start = torch.full(shape, -1.2, dtype=torch.float64)
    start.view(-1)[1::2] = 1.0
    result = minimized(rosenbrock, start, 1e-8)
    assert result.status == "converged"
    expected = minimize(
        lambda x: rosenbrock(torch.from_numpy(x))[0], start.numpy().ravel(), method="L-BFGS-B"
    )
    assert result.value <= expected.fun + 1e-9


@settings(max_examples=30)
@given(
    st.integers(1, 12),
    st.integers(0, 10**6),
    st.floats(0, 3),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_quadratics_whatever_the_preconditioner(dimension, seed, log_condition, conditioned, dtype):
    rng = np.random.default_rng(seed)
    log_condition = log_condition if dtype == torch.float64 else 0.3 * log_condition
    eigenvalues = torch.from_numpy(10 ** rng.uniform(0, log_condition, dimension)).to(dtype)
    minimum, start = (torch.from_numpy(rng.normal(size=dimension)).to(dtype) for _ in range(2))
    root = torch.from_numpy(rng.normal(size=(dimension, dimension)))
    matrix = (root @ root.T + 0.1 * torch.eye(dimension)).to(dtype)
    inverse_curvature = (lambda tensor: matrix @ tensor) if conditioned else None
    tol = 1e-7 if dtype == torch.float64 else 1e-3

    def run():
        function = quadratic(eigenvalues, minimum)
        return minimized(function, start, tol, 1000, inverse_curvature=inverse_curvature)

    result = run()
    assert result.status == "converged"
    assert result.x.dtype == dtype
    assert_allclose(result.x, minimum, atol=10 * tol)
    assert run().values == result.values


def test_no_progress_where_the_gradient_is_a_lie():
    result = minimized(lambda x: (float((x**2).sum()), -2 * x), torch.ones(2).double(), None)
    assert (result.status, result.n_iter, result.value) == ("no_progress", 0, 2.0)


@pytest.mark.parametrize("beyond", [math.nan, math.inf])
@pytest.mark.parametrize("start", [0.01, 5.0])
def test_stepping_out_of_the_domain_is_stepping_too_far(beyond, start):
    """x - log x, undefined for x <= 0: the first full step from 0.01 leads out."""

    def function(x):
        if float(x.min()) <= 0:
            return beyond, torch.full_like(x, math.nan)
        return float((x - torch.log(x)).sum()), 1 - 1 / x

    start = torch.full((4,), start).double()
    result = minimized(function, start, 1e-8, inverse_curvature=lambda tensor: 10.0 * tensor)
    assert result.status == "converged"
    assert_allclose(result.x, np.ones(4), rtol=1e-7)
