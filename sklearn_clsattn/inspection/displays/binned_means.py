"""Means of points in bins of equal width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_MIN_POINTS = 5  # of a bin whose mean is told: that of fewer is chance


@dataclass(frozen=True)
class BinnedMeans:
    """Points along one axis, grouped; only bins that have enough points, from left to right.

    Parameters
    ----------
    centres : ndarray of shape (n_bins,)
        Middle of each bin.
    means : ndarray of shape (n_bins,)
        Mean of what its points have.
    deviations : ndarray of shape (n_bins,)
        Standard deviation of it.
    counts : ndarray of shape (n_bins,)
        Number of its points.
    places : ndarray of shape (n_bins,)
        Which of all bins it is, those left out counted as well.
    """

    centres: NDArray[np.float64]
    means: NDArray[np.float64]
    deviations: NDArray[np.float64]
    counts: NDArray[np.intp]
    places: NDArray[np.intp]


def binned_means(
    x: ArrayLike, y: ArrayLike, n_bins: int = 20, min_points: int = _MIN_POINTS
) -> BinnedMeans:
    """Group points into bins of equal width, from the smallest x to the largest.

    Parameters
    ----------
    x, y : array-like of shape (n_points,)
        The points, at least one.
    n_bins : int, default=20
        Number of bins. A point on the border of two is in the right one.
    min_points : int, default=5
        Bins of fewer points are left out; there may be none left.

    Returns
    -------
    bins : BinnedMeans
        The bins that have enough points.

    Examples
    --------
    >>> from sklearn_clsattn.inspection.displays.binned_means import binned_means
    >>> bins = binned_means([0.0, 0.1, 0.9, 1.0], [1.0, 3.0, 5.0, 6.0], n_bins=2, min_points=2)
    >>> bins.centres.tolist(), bins.means.tolist()
    ([0.25, 0.75], [2.0, 5.5])
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)
    counts = np.bincount(which, minlength=n_bins)
    kept = np.flatnonzero(counts >= max(min_points, 1))
    divisors = np.maximum(counts, 1)
    means = np.bincount(which, y, n_bins) / divisors
    variances = np.bincount(which, (y - means[which]) ** 2, n_bins) / divisors
    centres = (edges[1:] + edges[:-1]) / 2
    return BinnedMeans(centres[kept], means[kept], np.sqrt(variances[kept]), counts[kept], kept)
