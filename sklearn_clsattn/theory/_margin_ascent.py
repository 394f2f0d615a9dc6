"""The max-margin direction on a fixed list of token pairs, certified, without other packages.

The method of multipliers with semismooth Newton steps (Rockafellar 1976; Li, Sun & Toh 2018):
minimise ||p||^2 / 2 subject to z_i.p >= 1. With multipliers lambda >= 0 and a penalty sigma,

    phi(p) = ||p||^2 / 2 + ||r||^2 / (2 sigma),   r = max(0, lambda + sigma (1 - Z p))

has the gradient p - Z'r and the generalised Hessian I + sigma Z_J' Z_J, J the pairs with r > 0.
Conjugate gradients solve it in a few passes over J; then lambda <- r, and sigma grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from ._ascent import Ascent, AscentProgress, MarginAscent, PairMaps
from ._token_embeddings import ExplicitEmbeddings, LimitEmbeddings, TokenEmbeddings

_MAX_OUTER = 60
_MAX_NEWTON = 60
_MAX_CG = 500
_CG_REDUCTION = 1e-3
_SUFFICIENT_DECREASE = 1e-4
_MAX_HALVINGS = 30

# The penalty grows by the larger factor where the last subproblem was easy.
_EASY = 6
_GROWTH_IF_EASY, _GROWTH = 10.0, 3.0

# In units of 1 / mean ||z_i||^2. Beyond the largest penalty rounding takes over.
_FIRST_PENALTY, _LARGEST_PENALTY = 2.0, 1e9


def maximise_margin(
    embeddings: TokenEmbeddings,
    better: torch.Tensor,
    worse: torch.Tensor,
    *,
    start: torch.Tensor | None = None,
    max_iter: int = 10_000,
    tol: float = 1e-8,
    callback: Callable[[AscentProgress], bool | None] | None = None,
) -> MarginAscent:
    r"""Maximise the smallest score difference of token pairs over directions of norm 1.

    The direction is that of :func:`max_margin_direction`, found without PIQP and on any device.

    Parameters
    ----------
    embeddings : TokenEmbeddings
        The frozen embeddings E, ``ExplicitEmbeddings`` or ``LimitEmbeddings`` for example, on
        the device where the work is to be done. Single precision is converted to double.
    better, worse : torch.Tensor of shape (n_pairs,)
        Token s and token s' of each pair, int64, on the same device: E_s is to score higher
        than E_s'. Distinct pairs, as :func:`token_pairs` finds them, are enough.
    start : torch.Tensor of shape (dimension,), default=None
        A direction to start from. None starts from 0.
    max_iter : int, default=10000
        At most this many passes over the pairs. A Newton step takes several.
    tol : float, default=1e-8
        Ends when 1 less the cosine to the solution is certified to be at most this.
    callback : callable, default=None
        Called with an :class:`AscentProgress` after each step; True ends the ascent.

    Returns
    -------
    result : MarginAscent
        The best direction with its certificate and history.

    Raises
    ------
    ValueError
        If the pairs are not two int64 vectors of one length, if `start` has the wrong shape or
        is not finite, or if `max_iter` or `tol` is not positive.

    See Also
    --------
    max_margin_direction : The same by a quadratic programme, with infeasibility explained.

    Notes
    -----
    *The certificate.* Let :math:`z_i = E_s - E_{s'}` be the pairs' differences and
    :math:`p_\infty` the vector of least norm in the convex set
    :math:`C = \{p : p^\top z_i \ge 1\}`, the solution in Theorem 4.3 of [1]_. Weights
    :math:`q \ge 0` of sum 1 give
    :math:`1 \le \sum_i q_i\, p_\infty^\top z_i \le \|p_\infty\| \, \|\sum_i q_i z_i\|`, so
    :math:`\|p_\infty\| \ge 1 / b` with :math:`b = \|\sum_i q_i z_i\|`. A p whose smallest
    difference is m > 0 has p / m in C. As :math:`p_\infty` is the projection of 0 on C,
    :math:`(p/m - p_\infty)^\top p_\infty \ge 0`, so that

    .. math:: \cos(p, p_\infty) \ge \frac{\|p_\infty\|}{\|p/m\|} \ge \frac{m / \|p\|}{b}.

    The best p and the best q need not come from the same step. The angle's error is the square
    root of the certified one; the true one is often much smaller than certified.

    *The method* of multipliers iterates
    :math:`\lambda \leftarrow \max(0, \lambda + \sigma (1 - p^\top z))` with p minimising
    :math:`\tfrac12 \|p\|^2 + \tfrac1{2\sigma} \|\max(0, \lambda + \sigma(1 - p^\top z))\|^2`
    and :math:`\sigma` growing. The subproblems are solved by a semismooth Newton method [2]_ with
    conjugate gradients over the pairs that matter.

    On 98,000 pairs of 5,000 tokens in deep chains an error of 1e-8 takes about half a minute of one
    CPU core (5,000 passes), for which :func:`max_margin_direction` takes less than a second; on
    data of one relevant token a document it takes tens of passes.

    Results are deterministic on CPUs; on CUDA sums over pairs are added in no fixed order.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.
    .. [2] X. Li, D. Sun, K.-C. Toh (2018). A highly efficient semismooth Newton augmented
       Lagrangian method for solving Lasso problems. SIAM Journal on Optimization 28.

    Examples
    --------
    >>> import torch
    >>> from sklearn_clsattn.theory._token_embeddings import ExplicitEmbeddings
    >>> from sklearn_clsattn.theory import maximise_margin
    >>> embeddings = ExplicitEmbeddings(torch.eye(3, dtype=torch.float64))
    >>> result = maximise_margin(embeddings, torch.tensor([0, 2]), torch.tensor([1, 1]))
    >>> result.status
    'converged'
    >>> result.direction
    tensor([ 0.3333, -0.6667,  0.3333], dtype=torch.float64)
    """
    if max_iter < 1:
        raise ValueError(f"max_iter must be 1 or more, got {max_iter!r}.")
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}.")
    for name, tokens in (("better", better), ("worse", worse)):
        if tokens.ndim != 1 or tokens.dtype != torch.int64 or len(tokens) != len(better):
            raise ValueError(
                "better and worse must be int64 vectors of one length, a token each for every "
                f"pair, but {name} has shape {tuple(tokens.shape)} and type {tokens.dtype}."
            )
    embeddings = _in_double(embeddings)
    dimension = embeddings.dimension
    if start is None:
        start = torch.zeros(dimension, dtype=torch.float64, device=better.device)
    if start.shape != (dimension,) or not bool(torch.isfinite(start).all()):
        raise ValueError(
            f"start must be finite and have shape ({dimension},), a number for each coordinate "
            f"of p, got shape {tuple(start.shape)}."
        )
    start = start.detach().to(torch.float64)
    if not len(better):
        zeros = torch.zeros_like(start)
        nothing = torch.empty(0, dtype=torch.float64, device=start.device)
        return MarginAscent(
            zeros, embeddings.scores(zeros), math.inf, 0.0, nothing, [], 0, "converged"
        )
    n_tokens = len(embeddings.scores(start))
    lowest = int(torch.minimum(better.min(), worse.min()))
    highest = int(torch.maximum(better.max(), worse.max()))
    if lowest < 0 or highest >= n_tokens:
        raise ValueError(
            f"better and worse must hold tokens from 0 to {n_tokens - 1}, the rows of the "
            f"embeddings, got {lowest} to {highest}."
        )
    ascent = Ascent(PairMaps(embeddings, better, worse), max_iter, tol, callback)
    _augmented_lagrangian(ascent, start)
    return ascent.result()


def _in_double(embeddings: TokenEmbeddings) -> TokenEmbeddings:
    """Return the embeddings in float64, those of other classes as they are."""
    if isinstance(embeddings, ExplicitEmbeddings):
        return ExplicitEmbeddings(embeddings.matrix.to(torch.float64))
    if isinstance(embeddings, LimitEmbeddings):
        return LimitEmbeddings(embeddings.shifts.to(torch.float64))
    return embeddings


def _augmented_lagrangian(ascent: Ascent, start: torch.Tensor) -> None:
    """Run the method from `start` until the ascent ends."""
    maps = ascent.maps
    p = start
    differences = maps.differences(p)
    smallest = float(differences.min())
    if smallest > 0:  # start on the scale of the solution
        p, differences = p / smallest, differences / smallest
    penalty = _FIRST_PENALTY / ascent.squared_length
    multipliers = torch.zeros_like(differences)
    for outer in range(_MAX_OUTER):
        accuracy = 1e-2 / (1 + outer) ** 2
        for newton in range(_MAX_NEWTON):
            r = (multipliers + penalty * (1.0 - differences)).clamp_(min=0.0)
            combined = maps.combine(r)
            gradient = p - combined
            ascent.n_iter += 1
            ascent.offer_direction(p, float(differences.min()))
            ascent.offer_weights(r, combined)
            if ascent.ends():
                return
            size = float(torch.linalg.vector_norm(gradient))
            length = float(torch.linalg.vector_norm(p))
            if newton and size <= max(accuracy, 1e-13) * length:
                break
            step = _newton_step(ascent, maps.subset(torch.nonzero(r)[:, 0]), penalty, gradient)
            change = maps.differences(step)
            ascent.n_iter += 1
            fraction = _line_search(p, step, multipliers, differences, change, penalty, gradient)
            if fraction == 0.0:
                break
            p = p + fraction * step
            differences = differences + fraction * change
        # Rounding adds up over the changes, so the differences are computed anew.
        differences = maps.differences(p)
        multipliers = (multipliers + penalty * (1.0 - differences)).clamp_(min=0.0)
        growth = _GROWTH_IF_EASY if newton <= _EASY else _GROWTH
        penalty = min(penalty * growth, _LARGEST_PENALTY / ascent.squared_length)
    ascent.status = "no_progress"


def _newton_step(
    ascent: Ascent, active: PairMaps, penalty: float, gradient: torch.Tensor
) -> torch.Tensor:
    """Return -(I + penalty Z_J'Z_J)^-1 gradient, up to a thousandth, by conjugate gradients."""
    step = torch.zeros_like(gradient)
    residual = -gradient
    direction = residual
    squared = float(residual @ residual)
    target = squared * _CG_REDUCTION**2
    share = len(active) / len(ascent.maps)
    passes = 0
    while passes < _MAX_CG and squared > target:
        passes += 1
        product = direction + penalty * active.combine(active.differences(direction))
        length = squared / float(direction @ product)
        step = step + length * direction
        residual = residual - length * product
        previous, squared = squared, float(residual @ residual)
        direction = residual + (squared / previous) * direction
    # Passes over a part of the pairs count in proportion, one at least.
    ascent.n_iter += max(1, round(passes * share)) if passes else 0
    return step


def _line_search(
    p: torch.Tensor,
    step: torch.Tensor,
    multipliers: torch.Tensor,
    differences: torch.Tensor,
    change: torch.Tensor,
    penalty: float,
    gradient: torch.Tensor,
) -> float:
    """Return the largest power of 1/2 that lowers phi enough, 0 where none does."""

    def phi(fraction: float) -> float:
        r = (multipliers + penalty * (1.0 - differences - fraction * change)).clamp_(min=0.0)
        trial = p + fraction * step
        return 0.5 * float(trial @ trial) + 0.5 / penalty * float(r @ r)

    value, slope = phi(0.0), float(gradient @ step)
    rounding = 1e-14 * abs(value)
    fraction = 1.0
    for _ in range(_MAX_HALVINGS):
        if phi(fraction) <= value + _SUFFICIENT_DECREASE * fraction * slope + rounding:
            return fraction
        fraction /= 2.0
    return 0.0
