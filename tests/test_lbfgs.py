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
from sklearn.linear_model import LogisticRegression

from sklearn_clsattn._core.lbfgs import Pairs, add_curvature
from sklearn_clsattn._core.lbfgs import minimize_lbfgs as minimize_alone


def minimize_lbfgs(function, start, *, is_converged, **how):
    """Minimise, and keep the values of all iterates."""
    values = []

    def noting(iterate):
        values.append(iterate.value)
        return is_converged(iterate)

    result = minimize_alone(function, start, is_converged=noting, **how)
    result.values = values
    return result


def gradient_below(tolerance):
    return lambda iterate: float(iterate.gradient.abs().max()) <= tolerance


def with_autograd(function):
    def evaluate(x):
        leaf = x.detach().clone().requires_grad_()
        value = function(leaf)
        return float(value.detach()), torch.autograd.grad(value, leaf)[0]

    return evaluate


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def quadratic(eigenvalues, minimum):
    def evaluate(x):
        pull = eigenvalues * (x - minimum)
        return float(0.5 * (pull * (x - minimum)).sum()), pull

    return evaluate


def assert_monotone(result):
    assert len(result.values) == result.n_iter + 1
    assert all(after < before for before, after in pairwise(result.values))
    assert result.values[-1] == result.value


@pytest.mark.parametrize("dimension", [2, 10])
def test_rosenbrock(dimension):
    start = torch.full((dimension,), -1.2, dtype=torch.float64)
    start[1::2] = 1.0
    result = minimize_lbfgs(
        with_autograd(rosenbrock), start, is_converged=gradient_below(1e-8), max_iter=500
    )
    assert result.status == "converged"
    expected = minimize(
        lambda x: float(rosenbrock(torch.from_numpy(x))), start.numpy(), method="L-BFGS-B"
    )
    assert result.value <= expected.fun + 1e-9
    assert_monotone(result)


def test_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    y = (X @ rng.normal(size=6) + rng.normal(size=80) > 0).astype(int)
    signs = torch.from_numpy(2.0 * y - 1)

    def loss(w):
        margins = signs * (torch.from_numpy(X) @ w[:-1] + w[-1])
        return torch.nn.functional.softplus(-margins).sum() + 0.5 * (w[:-1] ** 2).sum()

    result = minimize_lbfgs(
        with_autograd(loss),
        torch.zeros(7, dtype=torch.float64),
        is_converged=gradient_below(1e-7),
        max_iter=200,
    )
    expected = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(X, y)
    assert_allclose(result.x[:-1], expected.coef_[0], rtol=1e-5)
    assert_allclose(result.x[-1:], expected.intercept_, rtol=1e-5)
    assert_monotone(result)


def test_any_shape_and_the_start_is_kept():
    start = torch.arange(12.0, dtype=torch.float64).reshape(4, 3)
    kept = start.clone()
    result = minimize_lbfgs(
        with_autograd(lambda x: ((x - 2) ** 4).sum()),
        start,
        is_converged=gradient_below(1e-9),
        max_iter=200,
    )
    assert result.x.shape == (4, 3)
    assert torch.equal(start, kept)
    assert_allclose(result.x, np.full((4, 3), 2.0), atol=1e-2)


def test_an_exact_preconditioner_that_is_no_diagonal_takes_one_step():
    rng = np.random.default_rng(0)
    rotation = torch.from_numpy(np.linalg.qr(rng.normal(size=(10, 10)))[0])
    # The inverse is exact to rounding times the condition number, which has to stay far from the
    # tolerance: one step leaves a gradient of some 1e-10 where 1e-6 is asked for.
    eigenvalues = torch.logspace(0, 3, 10, dtype=torch.float64)
    hessian = rotation @ torch.diag(eigenvalues) @ rotation.T
    inverse = rotation @ torch.diag(1 / eigenvalues) @ rotation.T

    def function(x):
        pull = hessian @ (x - 1)
        return float(0.5 * (x - 1) @ pull), pull

    def run(**how):
        return minimize_lbfgs(
            function,
            torch.zeros(10).double(),
            is_converged=gradient_below(1e-6),
            max_iter=500,
            **how,
        )

    exact = run(inverse_curvature=lambda tensor: inverse @ tensor)
    assert (exact.status, exact.n_iter) == ("converged", 1)
    assert_allclose(exact.x, np.ones(10), rtol=1e-8)
    assert run().n_iter > 5


@settings(max_examples=30)
@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(0, 3), st.booleans())
def test_quadratics_whatever_the_preconditioner(dimension, seed, log_condition, preconditioned):
    rng = np.random.default_rng(seed)
    eigenvalues = torch.from_numpy(10 ** rng.uniform(0, log_condition, dimension))
    minimum, start = (torch.from_numpy(rng.normal(size=dimension)) for _ in range(2))
    root = torch.from_numpy(rng.normal(size=(dimension, dimension)))
    matrix = root @ root.T + 0.1 * torch.eye(dimension, dtype=torch.float64)

    def run():
        return minimize_lbfgs(
            quadratic(eigenvalues, minimum),
            start,
            is_converged=gradient_below(1e-7),
            max_iter=1000,
            inverse_curvature=(lambda tensor: matrix @ tensor) if preconditioned else None,
        )

    result = run()
    assert result.status == "converged"
    assert_allclose(result.x, minimum, atol=1e-6)
    assert_monotone(result)
    assert run().values == result.values


def test_max_iter_and_nothing_to_do():
    function = with_autograd(rosenbrock)
    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    seen = []

    def never(iterate):
        seen.append((iterate.n_iter, iterate.value))
        return False

    result = minimize_lbfgs(function, start, is_converged=never, max_iter=3)
    assert (result.status, result.n_iter) == ("max_iter", 3)
    assert [n for n, _ in seen] == [0, 1, 2, 3]
    assert [value for _, value in seen] == result.values
    assert result.value == pytest.approx(function(result.x)[0])

    done = minimize_lbfgs(function, start, is_converged=lambda iterate: True, max_iter=3)
    assert (done.status, done.n_iter) == ("converged", 0)
    assert torch.equal(done.x, start)


@pytest.mark.parametrize("constant", [1.0, 1e8])
def test_no_progress_where_the_value_no_longer_falls(constant):
    """A step that leaves the value as it is lowers nothing, however small the slope."""
    minimum = torch.from_numpy(np.random.default_rng(0).normal(size=10))
    function = quadratic(torch.logspace(0, 2, 10).double(), minimum)
    result = minimize_lbfgs(
        lambda x: (constant + function(x)[0], function(x)[1]),
        torch.zeros(10).double(),
        is_converged=lambda iterate: False,
        max_iter=200,
    )
    assert result.status == "no_progress"
    assert math.isfinite(result.value)
    assert_monotone(result)


def test_no_progress_where_the_gradient_is_a_lie():
    result = minimize_lbfgs(
        lambda x: (float((x**2).sum()), -2 * x),
        torch.ones(2).double(),
        is_converged=lambda iterate: False,
        max_iter=10,
    )
    assert (result.status, result.n_iter, result.value) == ("no_progress", 0, 2.0)


@pytest.mark.parametrize("beyond", [math.nan, math.inf])
def test_stepping_out_of_the_domain_is_stepping_too_far(beyond):
    """x - log x, undefined for x <= 0: the first full step from 0.01 leads out."""

    def function(x):
        if float(x.min()) <= 0:
            return beyond, torch.full_like(x, math.nan)
        return float((x - torch.log(x)).sum()), 1 - 1 / x

    for start in (0.01, 5.0):
        result = minimize_lbfgs(
            function,
            torch.full((4,), start).double(),
            is_converged=gradient_below(1e-8),
            max_iter=100,
            inverse_curvature=lambda tensor: 10.0 * tensor,
        )
        assert result.status == "converged"
        assert_allclose(result.x, np.ones(4), rtol=1e-7)
        assert_monotone(result)


def test_single_precision():
    eigenvalues = torch.logspace(0, 2, 8)
    result = minimize_lbfgs(
        quadratic(eigenvalues, torch.ones(8)),
        torch.zeros(8),
        is_converged=gradient_below(1e-3),
        max_iter=200,
    )
    assert result.x.dtype == torch.float32
    assert result.status == "converged"
    assert_allclose(result.x, np.ones(8), atol=2e-3)


def test_curvature_pairs_serve_the_next_function():
    """They know the curvature of the function with a penalty added, and save iterations."""
    rng = np.random.default_rng(0)
    eigenvalues = torch.from_numpy(np.concatenate([10 ** rng.uniform(0, 3, 5), np.ones(15)]))
    minimum = torch.from_numpy(rng.normal(size=20))
    how = {"is_converged": gradient_below(1e-6), "max_iter": 200}
    pairs = Pairs()
    start = torch.zeros(20).double()
    first = minimize_lbfgs(quadratic(eigenvalues, minimum), start, pairs=pairs, **how)
    assert 0 < len(pairs) <= 10
    more = torch.zeros(20).double()
    more[:7] = 0.5
    add_curvature(pairs, slice(7), 0.5)
    for change, gradient_change, product in pairs:
        torch.testing.assert_close(gradient_change, (eigenvalues + more) * change)
        assert product == pytest.approx(float(change @ gradient_change))
    following = quadratic(eigenvalues + more, -minimum)
    with_pairs = minimize_lbfgs(following, first.x, pairs=pairs, **how)
    without = minimize_lbfgs(following, first.x, **how)
    assert_allclose(with_pairs.x, -minimum, atol=1e-6)
    assert with_pairs.n_iter < without.n_iter


def test_pairs_without_positive_curvature_are_dropped():
    pairs = Pairs([(torch.ones(2), torch.ones(2), 2.0), (torch.ones(2), 3 * torch.ones(2), 6.0)])
    add_curvature(pairs, slice(None), -2.0)
    assert [product for *_, product in pairs] == [2.0]
