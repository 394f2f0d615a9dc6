"""Where names of points are written: which points, and at what heights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression


def tokens_to_name(
    importance: ArrayLike, difference: ArrayLike, n_names: int = 7
) -> list[NDArray[np.intp]]:
    """Return the tokens to name on either side: the most important ones that stand there.

    Parameters
    ----------
    importance : array-like of shape (n_tokens,)
        How important tokens are, with the sign of the side.
    difference : array-like of shape (n_tokens,)
        Where they stand. One on the other side of 0 would need a line across the picture.
    n_names : int, default=7
        How many to name on a side, at most.

    Returns
    -------
    tokens : list of two ndarray
        Indices of the tokens below 0 and above it, the most important first.

    Examples
    --------
    >>> from sklearn_clsattn.inspection.displays.name_places import tokens_to_name
    >>> below, above = tokens_to_name([-2.0, 1.0, 3.0, 5.0], [-0.9, 0.2, 0.7, -0.1])
    >>> below.tolist(), above.tolist()
    ([0], [2, 1])
    """
    importance, difference = np.asarray(importance), np.asarray(difference)
    chosen = []
    for sign in (-1, 1):
        own = np.flatnonzero((np.sign(importance) == sign) & (sign * difference > 0))
        chosen.append(own[np.argsort(-np.abs(importance[own]), kind="stable")[:n_names]])
    return chosen


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> NDArray[np.float64]:
    """Return ascending heights near the `wanted` ones, at least `gap` apart, within the range.

    Parameters
    ----------
    wanted : array-like of shape (n_names,)
        Where names would stand if each were alone.
    gap : float
        How far apart they should be. Where that is too far they get what there is.
    low, high : float
        The range.

    Returns
    -------
    heights : ndarray of shape (n_names,)
        The nearest such heights, in the sense of least squares but for the ends of the range.

    Examples
    --------
    >>> from sklearn_clsattn.inspection.displays.name_places import spread
    >>> spread([5.0, 5.0, 9.0], 2.0, 0.0, 10.0).tolist()
    [4.0, 6.0, 9.0]
    """
    heights = np.sort(np.asarray(wanted, dtype=np.float64))
    if len(heights) < 2:
        return heights.clip(low, high)
    gap = min(gap, (high - low) / (len(heights) - 1))
    steps = gap * np.arange(len(heights))
    heights = isotonic_regression(heights - steps) + steps
    heights = np.minimum(heights, high - steps[::-1])
    return np.maximum(heights, low + steps)
