r"""An exponential integrator for stiff gradient flows: exact where the flow is linear.

The method is exprb32 of M. Hochbruck, A. Ostermann, J. Schweitzer (2009), Exponential
Rosenbrock-type methods, SIAM J. Numer. Anal. 47, 786-803. With f the field at y, J its Jacobian
there and h the step,

.. math::

    U = y + h \varphi_1(hJ) f, \qquad D = f(U) - f - J (U - y), \qquad
    y_+ = U + 2 h \varphi_3(hJ) D,

of order 3, and the last term is the estimate of U's error, of order 2. Functions of J are those of
its projection H on one Krylov space a step, :math:`f, Jf, J^2 f, \dots`, whose products with J are
differences of the field: nothing of the Jacobian's size is stored, stiff directions are found as
they matter, and a step that is refused is tried again in the same space.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.linalg import expm

from .._types import Array

_LARGEST_SPACE = 40  # of the dimensions of a Krylov space, which grows ...
_LOOKS = {2, 3, 4, 6, 8, 11, 14, 18, 22, 27, 33, _LARGEST_SPACE}  # ... and is looked at here
_SHARE_OF_SPACE = 0.1  # of the error that a step may have, what the space may leave out
_FIRST_STEP = 0.1
# Length of differences, a power of the rounding: longer ones hide it better and cost accuracy.
_BLUR = 0.3
_MOST_GROWTH, _MOST_SHRINKING = 5.0, 0.1


class ExponentialIntegrator:
    """Integrates ``dy/dt = field(y)[0]`` from `y`, (2, n_unknowns), one step after another.

    The first row are unknowns a, the second c with a - a(0) = K c for a matrix K that is symmetric
    and has no negative eigenvalue: directions x have the inner product of the first row with the
    second, x' K^-1 x, for which the Jacobian of a gradient flow is symmetric. Errors and sizes are
    those of the first row. A step's local error is about ``tol * (1 + |a|)`` at most in every
    unknown, and its change about `largest_change`, by the speed at its start. `rounding` is the
    relative error of the field. What the field returns beside the derivative at `y` is `point`.
    """

    def __init__(
        self,
        field: Callable[[torch.Tensor], tuple[torch.Tensor, Any]],
        y: torch.Tensor,
        *,
        tol: float,
        largest_change: float,
        rounding: float,
    ) -> None:
        self.y, self._field, self._tol, self._largest_change = y, field, tol, largest_change
        self._difference = rounding**_BLUR
        self.derivative, self.point = field(y)
        self._size = _FIRST_STEP

    @property
    def speed(self) -> float:
        """Largest derivative of an unknown."""
        return float(self.derivative[0].abs().max())

    def step(self) -> float:
        """Advance; return the largest change of an unknown."""
        y, f = self.y, self.derivative
        length = math.sqrt(max(_inner(f, f), 0.0))
        if not length > 0:
            return 0.0
        size = min(self._size, self._largest_change / self.speed)
        allowed = self._tol * (1 + y[0].abs())
        space, H, size = self._krylov(f, length, size, allowed)
        basis, m = space[: H.shape[1]], H.shape[1]
        start = length * np.eye(m)[0]
        while True:
            way = size * _phi(size * H[:m], start)[0]
            forward = y + _combined(basis, way)
            change = self._field(forward)[0].sub_(f).sub_(_combined(space, H @ way))
            within = (basis[:, 1] @ change[0]).cpu().numpy()
            inside = _phi(size * H[:m], within)[2] - within / 6
            last = 2 * size * (change / 6 + _combined(basis, inside))
            error = float((last[0].abs() / allowed).max())
            if error <= 1:
                break
            factor = 0.8 * error ** (-1 / 3) if math.isfinite(error) else 0.0
            size *= max(_MOST_SHRINKING, factor)
        after = forward + last
        moved = float((after - y)[0].abs().max())
        self.y = after
        self.derivative, self.point = self._field(after)
        self._size = size * min(_MOST_GROWTH, 0.8 * max(error, 1e-6) ** (-1 / 3))
        return moved

    def _krylov(
        self, f: torch.Tensor, length: float, size: float, allowed: torch.Tensor
    ) -> tuple[torch.Tensor, Array, float]:
        """Return a basis, the projection H of the Jacobian on it, and the step that it is good for.

        The basis, (m + 1, 2, n_unknowns), has m directions and the one that the last product with J
        adds, if it adds one; H is (m + 1, m) then, else (m, m).
        """
        space = f.new_empty((_LARGEST_SPACE + 1, *f.shape))
        space[0] = f / length
        H = np.zeros((_LARGEST_SPACE + 1, _LARGEST_SPACE))
        for m in range(1, _LARGEST_SPACE + 1):
            v = space[m - 1]
            short = self._difference / float(v[0].abs().max())
            product = self._field(torch.add(self.y, v, alpha=short))[0].sub_(f).div_(short)
            before = math.sqrt(max(_inner(product, product), 0.0))
            for _ in range(2):  # a second time where little is left, which rounding blurs
                along = space[:m, 1] @ product[0]
                H[:m, m - 1] += along.cpu().numpy()
                product -= torch.tensordot(along, space[:m], dims=1)
                rest = math.sqrt(max(_inner(product, product), 0.0))
                if rest > 0.1 * before:
                    break
            if not rest > self._difference * before:
                return space[:m], H[:m, :m], size
            H[m, m - 1] = rest
            space[m] = product.div_(rest)
            if m in _LOOKS:
                most = float((space[m, 0].abs() / allowed).max()) * rest
                start = length * np.eye(m)[0]
                while True:
                    left_out = size**2 * abs(_phi(size * H[:m, :m], start)[1][-1]) * most
                    if left_out <= _SHARE_OF_SPACE:
                        return space[: m + 1], H[: m + 1, :m], size
                    if m < _LARGEST_SPACE:
                        break
                    size *= 0.5
        raise AssertionError("the last space is large enough for some step")


def _inner(x: torch.Tensor, y: torch.Tensor) -> float:
    """Return the inner product of two directions, (2, n): x' K^-1 y."""
    return float(x[1] @ y[0])


def _combined(space: torch.Tensor, factors: Array) -> torch.Tensor:
    """Return a linear combination of directions, (m, 2, n)."""
    return torch.tensordot(torch.from_numpy(factors).to(space), space, dims=1)


def _phi(Z: Array, b: Array) -> Array:
    """Return phi_1(Z) b, phi_2(Z) b and phi_3(Z) b, (3, m), of one exponential."""
    m = len(b)
    whole = np.zeros((m + 3, m + 3))
    whole[:m, :m], whole[:m, m] = Z, b
    whole[m, m + 1] = whole[m + 1, m + 2] = 1.0
    return np.asarray(expm(whole)[:m, m:].T)
