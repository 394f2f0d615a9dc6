"""What the figures show, as numbers: means over bins, their order, and the scatter around them.

The 20 bins of equal width along the difference of posteriors are the paper's. Ours: which tokens
and bins count, classes of equal weight, so that a token that says nothing stands at 0, and what
"monotone" and "U-shaped" mean (:func:`order`, :func:`arms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import spearmanr

from sklearn_clsattn._matrices import sums_by_class
from sklearn_clsattn._transformer import posterior_difference

N_BINS = 20
MIN_COUNT = 10
MIN_TOKENS = 5
MIN_ARM = 3  # bins, the lowest one included: fewer have an order by chance

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Bins:
    """Bins with enough tokens, from left to right; all arrays are (n_bins,)."""

    centres: Array
    means: Array
    deviations: Array
    counts: NDArray[np.int64]  # of tokens

    @property
    def scatter(self) -> float:
        """Mean over bins of the standard deviation within."""
        return float(self.deviations.mean())

    @property
    def span(self) -> float:
        """Range of the bins' means."""
        return float(np.ptp(self.means))

    @property
    def relative_scatter(self) -> float:
        """Scatter over the range of the means."""
        return self.scatter / self.span if self.span > 0 else float("nan")


@dataclass(frozen=True)
class Arms:
    """A U: order on either side of its lowest bin, and where that is (nan: too short an arm)."""

    left: float
    right: float
    lowest_at: float

    @property
    def worse(self) -> float:
        """The less orderly arm."""
        return float(np.min([self.left, self.right]))


def binned(x: ArrayLike, y: ArrayLike, n_bins: int = N_BINS, min_tokens: int = MIN_TOKENS) -> Bins:
    """Group points into bins of equal width; those with fewer than `min_tokens` are left out."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)
    centres = (edges[1:] + edges[:-1]) / 2
    counts = np.bincount(which, minlength=n_bins)
    kept = counts >= max(min_tokens, 1)
    divisors = np.maximum(counts, 1)
    means = np.bincount(which, y, n_bins) / divisors
    variances = np.bincount(which, (y - means[which]) ** 2, n_bins) / divisors
    return Bins(centres[kept], means[kept], np.sqrt(variances[kept]), counts[kept])


def order(values: ArrayLike) -> float:
    """Return Spearman's correlation of values with their places: 1 where each is larger.

    Nan for fewer than `MIN_ARM` values, and for values that are all the same.
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) < MIN_ARM or np.ptp(values) == 0:
        return float("nan")
    # Rounded: perfect order shall be 1, not a hair less.
    return round(float(spearmanr(np.arange(len(values)), values).statistic), 9)


def arms(centres: ArrayLike, means: ArrayLike) -> Arms:
    """Split at the lowest mean, and return how orderly values fall towards it and rise from it."""
    centres, means = np.asarray(centres, dtype=np.float64), np.asarray(means, dtype=np.float64)
    lowest = int(np.argmin(means))
    return Arms(-order(means[: lowest + 1]), order(means[lowest:]), float(centres[lowest]))


def share_on_line(x: Array, y: Array) -> float:
    """Return the share of the squares about 0 on the best line through the origin."""
    return float(1 - np.sum((y - x @ y / (x @ x) * x) ** 2) / (y @ y))


def frequent_tokens(X: Any, least: int = MIN_COUNT) -> NDArray[np.int64]:
    """Return the columns whose counts add up to at least `least`."""
    return np.flatnonzero(X.T @ np.ones(X.shape[0]) >= least)


def token_posterior_difference(X: Any, codes: NDArray[np.int64], n_classes: int = 2) -> Array:
    """Return the difference of posteriors per occurrence, with classes of equal total weight."""
    sizes = np.bincount(codes, minlength=n_classes)
    weights = (len(codes) / (n_classes * np.maximum(sizes, 1)))[codes]
    return posterior_difference(sums_by_class(X, codes, n_classes, weights))
