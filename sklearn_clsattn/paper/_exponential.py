r"""An exponential integrator for stiff gradient flows: exact where the flow is linear.

The method is exprb32 of M. Hochbruck, A. Ostermann, J. Schweitzer (2009), Exponential
Rosenbrock-type methods, SIAM J. Numer. Anal. 47, 786-803. With f the field at y, J its Jacobian
there and h the step,

.. math::

    U = y + h \varphi_1(hJ) f, \qquad D = f(U) - f - J (U - y), \qquad
    y_+ = U + 2 h \varphi_3(hJ) D,

:math:`y_+` is of order 3, U of order 2, and their difference estimates U's error. Functions of J
are those of its projection H on one Krylov space a step, :math:`f, Jf, J^2 f, \dots`, for which
products with J are differences of the field: nothing of the Jacobian's size is stored, stiff
directions are found as they matter, and a step that is refused is tried again in the same space.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import expm

from .._types import Array

Field = Callable[[torch.Tensor], tuple[torch.Tensor, Any]]

_LARGEST_SPACE = 40  # dimensions of a Krylov space
_CHECKED_DIMENSIONS = {2, 3, 4, 6, 8, 11, 14, 18, 22, 27, 33, _LARGEST_SPACE}  # it may stop here
_SPACE_ERROR = 0.1  # what the space may leave out, relative to the error that a step may have
_FIRST_STEP = 0.1
# Length of differences, a power of the rounding: the longer, the less rounding is in them, and the
# more of the field's curvature.
_DIFFERENCE_POWER = 0.3
_MOST_GROWTH = 5.0
_MOST_SHRINKING = 0.1
_SAFETY = 0.8  # of the next step, relative to the one that the error would allow


class ExponentialIntegrator:
    """Integrates ``dy/dt = field(y)[0]`` from `y`, (2, n_unknowns), one step after another.

    The first row are unknowns a, the second c with a - a(0) = K c for a matrix K that is symmetric
    and has no negative eigenvalue. A direction is such a pair, (K z, z), and the product of two is
    the first row of one times the second row of the other, z' K z, so that K is never needed.
    Errors and sizes are of the first row. A step's local error is about ``tol * (1 + |a|)`` at most
    in every unknown, and its change about `largest_change`, by the speed at its start; time is not
    kept. `rounding` is the relative error of the field, which returns a new, finite tensor, and
    beside it something that is kept as `point`.
    """

    def __init__(
        self, field: Field, y: torch.Tensor, *, tol: float, largest_change: float, rounding: float
    ) -> None:
        self.y = y
        self.derivative, self.point = field(y)
        self._field = field
        self._tol = tol
        self._largest_change = largest_change
        self._difference = rounding**_DIFFERENCE_POWER
        self._next_size = _FIRST_STEP

    @property
    def speed(self) -> float:
        """Largest derivative of an unknown."""
        return float(self.derivative[0].abs().max())

    def step(self) -> float:
        """Advance; return the largest change of an unknown."""
        y = self.y
        f = self.derivative
        f_norm = _norm(f)
        if not f_norm > 0:
            return 0.0
        # 1) a Krylov space, and the size of step that it is good for
        size = min(self._next_size, self._largest_change / self.speed)
        allowed = self._tol * (1 + y[0].abs())
        space, H, size = self._krylov(f, f_norm, size, allowed)
        m = H.shape[1]
        basis = space[:m]
        f_in_basis = f_norm * np.eye(m)[0]
        while True:
            # 2) U = y + h phi_1(hJ) f
            phi_1, _, _ = _phi(size * H[:m], f_in_basis)
            move = size * phi_1
            U = y + _combine(basis, move)
            # 3) D = f(U) - f - J (U - y)
            derivative, _ = self._field(U)
            D = derivative.sub_(f).sub_(_combine(space, H @ move))
            # 4) 2 h phi_3(hJ) D, the estimate of U's error; outside the space as if J were 0: D / 6
            D_within = (basis[:, 1] @ D[0]).cpu().numpy()
            _, _, phi_3 = _phi(size * H[:m], D_within)
            within = phi_3 - D_within / 6
            correction = 2 * size * (D / 6 + _combine(basis, within))
            error = float((correction[0].abs() / allowed).max())
            # 5) a smaller step, if this one is too long
            if error <= 1:
                break
            factor = _SAFETY * error ** (-1 / 3) if math.isfinite(error) else 0.0
            size *= max(_MOST_SHRINKING, factor)
        self.y = U + correction
        self.derivative, self.point = self._field(self.y)
        self._next_size = size * min(_MOST_GROWTH, _SAFETY * max(error, 1e-6) ** (-1 / 3))
        return float((self.y - y)[0].abs().max())

    def _krylov(
        self, f: torch.Tensor, f_norm: float, size: float, allowed: torch.Tensor
    ) -> tuple[torch.Tensor, Array, float]:
        """Return a basis, the projection H of the Jacobian on it, and the step that it is good for.

        The basis, (m + 1, 2, n_unknowns), has m directions and the one that the last product with J
        adds, if it adds one; H is (m + 1, m) then, else (m, m).
        """
        space = f.new_empty((_LARGEST_SPACE + 1, *f.shape))
        space[0] = f / f_norm
        H = np.zeros((_LARGEST_SPACE + 1, _LARGEST_SPACE))
        for m in range(1, _LARGEST_SPACE + 1):
            # 1) J v by a difference of the field
            v = space[m - 1]
            difference = self._difference / float(v[0].abs().max())
            derivative, _ = self._field(torch.add(self.y, v, alpha=difference))
            product = derivative.sub_(f).div_(difference)
            # 2) Arnoldi's orthogonalisation
            norm = _norm(product)
            for _ in range(2):  # a second time where little remains, which rounding blurs
                coefficients = space[:m, 1] @ product[0]
                H[:m, m - 1] += coefficients.cpu().numpy()
                product -= torch.tensordot(coefficients, space[:m], dims=1)
                rest = _norm(product)
                if rest > 0.1 * norm:
                    break
            # J may map the space to itself, but for the error of differences: it is large enough
            # for any step then.
            if not rest > self._difference * norm:
                return space[:m], H[:m, :m], size
            H[m, m - 1] = rest
            space[m] = product.div_(rest)
            # 3) what h phi_1(hJ) f has outside the space; in the largest one, steps get shorter
            if m not in _CHECKED_DIMENSIONS:
                continue
            largest_outside = float((space[m, 0].abs() / allowed).max()) * rest
            f_in_basis = f_norm * np.eye(m)[0]
            while True:
                _, phi_2, _ = _phi(size * H[:m, :m], f_in_basis)
                left_out = size**2 * abs(phi_2[-1]) * largest_outside
                if left_out <= _SPACE_ERROR:
                    return space[: m + 1], H[: m + 1, :m], size
                if m < _LARGEST_SPACE:
                    break
                size *= 0.5
        raise AssertionError("the last space is large enough for some step")


def _norm(x: torch.Tensor) -> float:
    """Return the norm of a direction, (2, n_unknowns), whose square is x' K^-1 x."""
    return math.sqrt(max(float(x[1] @ x[0]), 0.0))


def _combine(space: torch.Tensor, factors: Array) -> torch.Tensor:
    """Return a linear combination of directions, (m, 2, n_unknowns)."""
    return torch.tensordot(torch.from_numpy(factors).to(space), space, dims=1)


def _phi(Z: Array, b: Array) -> Array:
    """Return phi_1(Z) b, phi_2(Z) b and phi_3(Z) b, (3, m), by one exponential."""
    # Z with b and a chain of ones beside it: its exponential has the three as columns.
    m = len(b)
    augmented = np.zeros((m + 3, m + 3))
    augmented[:m, :m] = Z
    augmented[:m, m] = b
    augmented[m, m + 1] = 1.0
    augmented[m + 1, m + 2] = 1.0
    return np.asarray(expm(augmented)[:m, m:].T)
