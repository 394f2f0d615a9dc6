"""Margin maximisation: the products with token pairs, the certificate and the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from ._token_embeddings import TokenEmbeddings

Status = Literal["converged", "max_iter", "stopped", "infeasible", "no_progress"]

NOTHING_CERTIFIED = 2.0  # 1 less the cosine is never more than this

# No unit vector has a margin above the dual bound. A bound of at most this, in units of the
# typical length of E_s - E_s', means that no direction has a margin.
_NO_MARGIN = 1e-8


@dataclass(frozen=True)
class AscentProgress:
    """Where a margin ascent stands.

    Attributes
    ----------
    n_iter : int
        Passes over the pairs so far.
    error : float
        The certified upper bound on 1 less the cosine between `direction` and the solution.
    margin : float
        The margin of `direction` divided by its norm; not above 0 where it violates a pair.
    direction : torch.Tensor of shape (dimension,)
        The best direction so far, with a smallest score difference of 1 where its margin is
        positive.
    """

    n_iter: int
    error: float
    margin: float
    direction: torch.Tensor


@dataclass(frozen=True)
class MarginAscent:
    """How a margin ascent ended.

    Attributes
    ----------
    direction : torch.Tensor of shape (dimension,)
        The best direction p, with a smallest score difference of 1 where its margin is positive.
    scores : torch.Tensor of shape (n_tokens,)
        Attention scores E p.
    margin : float
        The geometric margin: the smallest score difference divided by ||p||; inf without pairs.
    error : float
        The certified upper bound on 1 less the cosine between `direction` and the exact solution: 0
        without pairs, 2 where no direction that satisfies all pairs was found.
    multipliers : torch.Tensor of shape (n_pairs,)
        Non-negative weights of the pairs, of sum 1, that prove it: the norm of their weighted
        sum of E_s - E_s' is an upper bound on every margin.
    history : list of float
        The certified error after each step, never increasing.
    n_iter : int
        Passes over the pairs: each is one product with E, one with its transpose, and the
        pairs' differences and sums between them.
    status : {"converged", "max_iter", "stopped", "infeasible", "no_progress"}
        "converged": the certified error reached `tol`. "stopped": `callback` returned True.
        "infeasible": no unit vector has a margin above 1e-8 of the typical length of
        E_s - E_s'. "no_progress": rounding is reached before `tol`.
    """

    direction: torch.Tensor
    scores: torch.Tensor
    margin: float
    error: float
    multipliers: torch.Tensor
    history: list[float]
    n_iter: int
    status: Status


class PairMaps:
    """The two products with the rows z_i = E_s - E_s' of token pairs (s, s'), each (n_pairs,)."""

    def __init__(
        self, embeddings: TokenEmbeddings, better: torch.Tensor, worse: torch.Tensor
    ) -> None:
        self.embeddings, self.better, self.worse = embeddings, better, worse
        zero = torch.zeros(embeddings.dimension, dtype=torch.float64, device=better.device)
        self._no_totals = torch.zeros_like(embeddings.scores(zero))

    def __len__(self) -> int:
        return len(self.better)

    def differences(self, direction: torch.Tensor) -> torch.Tensor:
        """Return z_i.p for every pair, (n_pairs,)."""
        scores = self.embeddings.scores(direction)
        return scores.index_select(0, self.better).sub_(scores.index_select(0, self.worse))

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """Return the sum of weights, (n_pairs,), times z_i: (dimension,)."""
        totals = self._no_totals.index_add(0, self.better, weights)
        return self.embeddings.pull_back(totals.index_add_(0, self.worse, weights, alpha=-1.0))

    def subset(self, which: torch.Tensor) -> PairMaps:
        """Return the maps of the pairs at these indices."""
        subset = object.__new__(PairMaps)
        subset.embeddings, subset._no_totals = self.embeddings, self._no_totals
        subset.better, subset.worse = self.better[which], self.worse[which]
        return subset

    def mean_squared_length(self) -> float:
        """Return an unbiased estimate of the mean of ||z_i||^2, from random signs."""
        generator = torch.Generator().manual_seed(0)
        total = 0.0
        for _ in range(4):
            signs = torch.randint(0, 2, (len(self),), generator=generator) * 2.0 - 1.0
            combined = self.combine(signs.to(self.better.device, torch.float64))
            total += float(combined @ combined)
        return total / (4 * len(self))


class Ascent:
    """Keeps the best direction and the best bound of a run, and decides when it ends."""

    def __init__(
        self,
        maps: PairMaps,
        max_iter: int,
        tol: float,
        callback: Callable[[AscentProgress], bool | None] | None,
    ) -> None:
        self.maps, self.max_iter, self.tol = maps, max_iter, tol
        self.squared_length = max(maps.mean_squared_length(), 1e-300)
        self.n_iter = 0
        self.status: Status = "max_iter"
        self._callback = callback
        self._margin, self._smallest = -math.inf, 0.0
        self._direction = torch.zeros(maps.embeddings.dimension, dtype=torch.float64)
        self._bound = math.inf
        ones = torch.ones(len(maps), dtype=torch.float64, device=maps.better.device)
        self._weights = ones
        self.offer_weights(ones, maps.combine(ones))
        self._history: list[float] = []

    @property
    def error(self) -> float:
        """The certified upper bound on 1 less the cosine."""
        if not self._margin > 0:
            return NOTHING_CERTIFIED
        # Rounding may put the margin above its bound.
        return max(0.0, 1.0 - self._margin / self._bound)

    def offer_direction(self, direction: torch.Tensor, smallest: float) -> None:
        """Keep a direction if its margin is the best; its memory is not copied."""
        norm = float(torch.linalg.vector_norm(direction))
        if norm > 0 and smallest / norm > self._margin:
            self._margin, self._smallest, self._direction = smallest / norm, smallest, direction

    def offer_weights(self, weights: torch.Tensor, combined: torch.Tensor) -> None:
        """Keep non-negative weights of the pairs, of any sum, if their bound is the best."""
        total = float(weights.sum())
        if not total > 0:
            return
        bound = float(torch.linalg.vector_norm(combined)) / total
        if bound < self._bound:
            self._bound, self._weights = bound, weights

    def ends(self) -> bool:
        """Record a step; return whether it was the last, with the reason in `status`."""
        self._history.append(self.error)
        stopped = self._callback is not None and self._callback(
            AscentProgress(self.n_iter, self.error, self._margin, self._scaled())
        )
        if self.error <= self.tol:
            self.status = "converged"
        elif self._bound <= _NO_MARGIN * math.sqrt(self.squared_length):
            self.status = "infeasible"
        elif stopped:
            self.status = "stopped"
        else:
            return self.n_iter >= self.max_iter
        return True

    def _scaled(self) -> torch.Tensor:
        return self._direction / self._smallest if self._smallest > 0 else self._direction

    def result(self) -> MarginAscent:
        """Return what was found."""
        direction = self._scaled().to(self.maps.better.device)
        weights = self._weights
        return MarginAscent(
            direction=direction,
            scores=self.maps.embeddings.scores(direction),
            margin=self._margin,
            error=self.error,
            multipliers=weights / weights.sum(),
            history=self._history,
            n_iter=self.n_iter,
            status=self.status,
        )
