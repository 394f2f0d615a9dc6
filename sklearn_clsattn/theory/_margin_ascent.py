"""The max-margin direction without a solver, on a fixed list of token pairs, certified.

Two iterative methods stand behind one function and one certificate. Both see the embeddings
only through the maps ``E @ p`` and ``E.T @ c``, and work in float64 on any device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch

from ..model.token_embeddings import ExplicitEmbeddings, LimitEmbeddings, TokenEmbeddings
from ._ascent import Ascent, AscentProgress, MarginAscent, PairMaps
from ._augmented_lagrangian import augmented_lagrangian
from ._dual_acceleration import dual_acceleration

Method = Literal["augmented_lagrangian", "dual_acceleration"]


def maximise_margin(
    embeddings: TokenEmbeddings,
    better: torch.Tensor,
    worse: torch.Tensor,
    *,
    start: torch.Tensor | None = None,
    method: Method = "augmented_lagrangian",
    max_iter: int = 10_000,
    tol: float = 1e-8,
    on_step: Callable[[AscentProgress], bool | None] | None = None,
) -> MarginAscent:
    r"""Maximise the smallest score difference of token pairs over directions of norm 1.

    The direction is that of :func:`max_margin_direction`, found without a solver.

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

    method : {"augmented_lagrangian", "dual_acceleration"}, default="augmented_lagrangian"
        "augmented_lagrangian" (our choice, as it certifies 1e-8 in far fewer passes): the method
        of multipliers, its subproblems solved by a semismooth Newton method with conjugate
        gradients over the pairs that matter. "dual_acceleration": the first-order method of
        [1]_, whose steps are cheap and alike, with momentum restarts (ours).

    max_iter : int, default=10000
        At most this many passes over the pairs. A Newton step takes several.

    tol : float, default=1e-8
        Ends when 1 less the cosine to the solution is certified to be at most this.

    on_step : callable, default=None
        Called with an :class:`AscentProgress` after each step; True ends the ascent.

    Returns
    -------
    result : MarginAscent
        The best direction with its certificate and history.

    Raises
    ------
    ValueError
        If the pairs are not two int64 vectors of one length, if `start` has the wrong shape or
        is not finite, or if `method`, `max_iter` or `tol` is not one that can be used.

    See Also
    --------
    max_margin_direction : The same by a quadratic programme, with infeasibility explained.

    Notes
    -----
    *The certificate.* Let :math:`z_i = E_s - E_{s'}` be the pairs' differences and
    :math:`p_\infty` the vector of least norm in the convex set
    :math:`C = \{p : p^\top z_i \ge 1\}`, the solution in Theorem 4.3 of [2]_. Weights
    :math:`q \ge 0` of sum 1 give
    :math:`1 \le \sum_i q_i\, p_\infty^\top z_i \le \|p_\infty\| \, \|\sum_i q_i z_i\|`, so
    :math:`\|p_\infty\| \ge 1 / b` with :math:`b = \|\sum_i q_i z_i\|`. A p whose smallest
    difference is m > 0 has p / m in C. As :math:`p_\infty` is the projection of 0 on C,
    :math:`(p/m - p_\infty)^\top p_\infty \ge 0`, so that

    .. math:: \cos(p, p_\infty) \ge \frac{\|p_\infty\|}{\|p/m\|} \ge \frac{m / \|p\|}{b}.

    The best p and the best q need not come from the same step. The angle's error is the square
    root of the certified one; the true one is often much smaller than certified.

    *The methods.* In the dual, :math:`\tfrac12 \|\sum_i q_i z_i\|^2` is minimised over the
    simplex. With q the softmax of :math:`-p^\top z_i` (taken in the log domain), [1]_ adds
    momentum to gradient descent on p, and the margin is within :math:`O(1/t^2)` of the best
    after t steps. The weighted sum :math:`\sum q_i z_i` itself is a direction too, and near the
    solution a better one. The method of multipliers iterates
    :math:`\lambda \leftarrow \max(0, \lambda + \sigma (1 - p^\top z))` with p minimising
    :math:`\tfrac12 \|p\|^2 + \tfrac1{2\sigma} \|\max(0, \lambda + \sigma(1 - p^\top z))\|^2`
    and :math:`\sigma` growing.

    Results are deterministic on CPUs; on CUDA sums over pairs are added in no fixed order.

    References
    ----------
    .. [1] Z. Ji, N. Srebro, M. Telgarsky (2021). Fast margin maximization via dual acceleration.
       Proceedings of ICML 2021.
    .. [2] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. arXiv:2505.17282.

    Examples
    --------
    >>> import torch
    >>> from sklearn_clsattn.model.token_embeddings import ExplicitEmbeddings
    >>> from sklearn_clsattn.theory import maximise_margin
    >>> embeddings = ExplicitEmbeddings(torch.eye(3, dtype=torch.float64))
    >>> result = maximise_margin(embeddings, torch.tensor([0, 2]), torch.tensor([1, 1]))
    >>> result.status
    'converged'
    >>> result.direction
    tensor([ 0.3333, -0.6667,  0.3333], dtype=torch.float64)
    """
    if method not in ("augmented_lagrangian", "dual_acceleration"):
        raise ValueError(
            f"method must be 'augmented_lagrangian' or 'dual_acceleration', got {method!r}."
        )
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
            zeros, embeddings.scores(zeros), math.inf, 1.0, 0.0, nothing, [], [], 0, "converged"
        )
    n_tokens = len(embeddings.scores(start))
    lowest = int(torch.minimum(better.min(), worse.min()))
    highest = int(torch.maximum(better.max(), worse.max()))
    if lowest < 0 or highest >= n_tokens:
        raise ValueError(
            f"better and worse must hold tokens from 0 to {n_tokens - 1}, the rows of the "
            f"embeddings, got {lowest} to {highest}."
        )
    ascent = Ascent(PairMaps(embeddings, better, worse), max_iter, tol, on_step)
    run = augmented_lagrangian if method == "augmented_lagrangian" else dual_acceleration
    run(ascent, start)
    return ascent.result()


def _in_double(embeddings: TokenEmbeddings) -> TokenEmbeddings:
    """Return the embeddings in float64, those of other classes as they are."""
    if isinstance(embeddings, ExplicitEmbeddings):
        return ExplicitEmbeddings(embeddings.matrix.to(torch.float64))
    if isinstance(embeddings, LimitEmbeddings):
        return LimitEmbeddings(embeddings.shifts.to(torch.float64))
    return embeddings
