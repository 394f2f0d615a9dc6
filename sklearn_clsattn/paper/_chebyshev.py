r"""Runge-Kutta-Chebyshev integration: an explicit method of order 2 for stiff gradient flows.

Its stability interval grows as the square of the number of stages, so that stages grow as the root
of the stiffness, and no Jacobian is stored: B. P. Sommeijer, L. F. Shampine, J. G. Verwer (1998),
RKC: An explicit solver for parabolic PDEs, J. Comput. Appl. Math. 88, 315-326. Step sizes follow an
estimate of the local error, stages one of the spectral radius.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import torch

MOST_STAGES = 1000
_DAMPING = 2.0 / 13.0
_REACH = 1 / 1.54  # of s stages, as a share of s ** 2 - 1
_MARGIN = 1.25  # on the estimate of the spectral radius
_FIRST_ITERATIONS, _ITERATIONS_AFTER_FAILURE = 10, 5
_FIRST_STEP = 0.1
_SLOWEST = 1e-3


class ChebyshevIntegrator:
    """Integrates ``dy/dt = field(y)`` from `y`, (m, n_unknowns), one step after another.

    Errors, sizes and stiffness are those of the first row alone; the others are functions of it,
    integrated along. A step's local error is at most ``tol * (1 + |y|)`` in every unknown, and its
    change about `largest_change` at most, by the speed at its start.
    """

    def __init__(
        self,
        field: Callable[[torch.Tensor], torch.Tensor],
        y: torch.Tensor,
        *,
        tol: float,
        largest_change: float,
        rounding: float,
    ) -> None:
        self.y, self._field, self._tol, self._largest_change = y, field, tol, largest_change
        self._difference = math.sqrt(rounding)
        self.derivative = field(y)
        self._size = _FIRST_STEP
        self._vector = self.derivative[0].clone()
        self._radius = self._spectral_radius(_FIRST_ITERATIONS)

    @property
    def speed(self) -> float:
        """Largest derivative of an unknown."""
        return float(self.derivative[0].abs().max())

    def step(self) -> float:
        """Advance; return the largest change of an unknown."""
        while True:
            size = min(self._size, self._largest_change / max(self.speed, _SLOWEST))
            reach = size * self._radius * _MARGIN
            if reach > _REACH * (MOST_STAGES**2 - 1):
                size *= _REACH * (MOST_STAGES**2 - 1) / reach
                n_stages = MOST_STAGES
            else:
                n_stages = max(2, 1 + int(math.sqrt(1 + reach / _REACH)))
            after = self._advanced(size, n_stages)
            derivative = self._field(after)
            local = 0.8 * (self.y - after)[0] + 0.4 * size * (self.derivative + derivative)[0]
            error = float((local.abs() / (self._tol * (1 + after[0].abs()))).max())
            if error <= 1:
                break
            self._size = size * (max(0.1, 0.8 * error ** (-1 / 3)) if math.isfinite(error) else 0.1)
            self._radius = self._spectral_radius(_ITERATIONS_AFTER_FAILURE)
        change = float((after - self.y)[0].abs().max())
        self.y, self.derivative = after, derivative
        self._size = size * min(5.0, 0.8 * max(error, 1e-6) ** (-1 / 3))
        # Falls slowly: one iteration may meet a small eigenvalue.
        self._radius = max(self._spectral_radius(1), 0.8 * self._radius)
        return change

    def _advanced(self, size: float, n_stages: int) -> torch.Tensor:
        """Return y after a step of this size by the Chebyshev recursion."""
        first, later = _coefficients(n_stages)
        y, derivative = self.y, self.derivative
        before, now = y, y + first * size * derivative
        for mu, nu, mu_field, gamma in later:
            change = mu_field * self._field(now) + gamma * derivative
            before, now = now, (1 - mu - nu) * y + mu * now + nu * before + size * change
        return now

    def _spectral_radius(self, n_iterations: int) -> float:
        """Return an estimate of the largest eigenvalue's size, by power iteration."""
        radius, vector = 0.0, self._vector
        for _ in range(n_iterations):
            largest = float(vector.abs().max())
            if not largest > 0:
                return radius
            scale = self._difference * (1 + float(self.y[0].abs().max())) / largest
            moved = self.y.clone()
            moved[0] += scale * vector
            product = (self._field(moved) - self.derivative)[0] / scale
            radius = float(torch.linalg.vector_norm(product) / torch.linalg.vector_norm(vector))
            vector = product / radius if radius > 0 else vector
        self._vector = vector
        return radius


@lru_cache(maxsize=4096)
def _coefficients(n_stages: int) -> tuple[float, list[tuple[float, float, float, float]]]:
    """Return the coefficient of the first stage, and mu, nu and the two of the field of others."""
    w0 = 1 + _DAMPING / n_stages**2
    t, dt, ddt = [1.0, w0], [0.0, 1.0], [0.0, 0.0]
    for j in range(2, n_stages + 1):
        t.append(2 * w0 * t[-1] - t[-2])
        ddt.append(4 * dt[-1] + 2 * w0 * ddt[-1] - ddt[-2])
        dt.append(2 * t[j - 1] + 2 * w0 * dt[-1] - dt[-2])
    w1 = dt[-1] / ddt[-1]
    b = [0.0, 0.0] + [ddt[j] / dt[j] ** 2 for j in range(2, n_stages + 1)]
    b[0], b[1] = b[2], 1 / w0
    later = []
    for j in range(2, n_stages + 1):
        mu_field = 2 * b[j] * w1 / b[j - 1]
        gamma = -(1 - b[j - 1] * t[j - 1]) * mu_field
        later.append((2 * b[j] * w0 / b[j - 1], -b[j] / b[j - 2], mu_field, gamma))
    return b[1] * w1, later
