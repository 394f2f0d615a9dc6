r"""The margin of a class over others, as a function of which tokens of the document are present.

With attention shares q, that of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a
document that keeps the tokens S has a margin of the sign of

.. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta).

Margins within rounding of 0, `TOLERANCE` of their absolute terms, count as a tie. Attention is kept
as logarithms, for without the tokens that have nearly all of it the others decide, however little
they have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Array = NDArray[np.float64]

TOLERANCE = 1e-12  # the share of a margin's absolute terms that is rounding
_SMALLEST = 1e-100  # a margin that predictions may lose to underflow
_LARGEST = 1e250  # units, which no sum of others comes near


@dataclass(frozen=True, eq=False)
class Margin:
    """The margin of one class over R others in a document of m tokens; the last row is <cls>."""

    base: Array  # (R,), the margin of a document of <cls> alone
    logs: Array  # (m + 1, 1 or R), logarithms of the attention, not divided by its sum
    gains: Array  # (m + 1, R), what a unit of attention adds to the margin: 0 for <cls>
    sizes: Array  # (m + 1, R), the absolute terms of a document of that alone

    @property
    def net(self) -> Array:
        """What a unit of attention does for the sign of the margin, (m + 1, R)."""
        return self.gains + self.base - TOLERANCE * self.sizes - _SMALLEST

    def linear(self, deciding: Any = True) -> tuple[Array, Array]:
        """Return the linear form's constants (R,) and the tokens' terms (m, R).

        They are in units of the largest constant, or term of those `deciding` (m, R). Where these
        are all 0, only the signs of the others are known.
        """
        net, logs = self.net, np.broadcast_to(self.logs, self.gains.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            sizes = logs + np.log(np.abs(net))
            sizes[:-1] = np.where(deciding, sizes[:-1], -inf)
            unit = sizes.argmax(axis=0), np.arange(net.shape[1])
            terms = np.exp(logs - logs[unit]) * net / np.abs(net[unit])
        terms = np.where(sizes[unit] > -inf, terms.clip(-_LARGEST, _LARGEST), np.sign(net))
        terms[logs == -inf] = 0.0
        return terms[-1], terms[:-1]

    def over(self, rival: int) -> Margin:
        """Return the margin over one of the others alone."""
        one = [rival]
        return Margin(self.base[one], self.logs, self.gains[:, one], self.sizes[:, one])

    def of_rivals(self) -> Margin:
        """Return the margins of the others over the class."""
        return replace(self, base=-self.base, gains=-self.gains)

    def weighted(self, weights: Any) -> Margin:
        """Return the margin where every token has these times its weight, (m, 1 or R)."""
        of_all = np.vstack([weights, np.ones(weights.shape[1])])
        with np.errstate(divide="ignore"):
            return replace(self, logs=self.logs + np.log(of_all))

    def now(self) -> Array:
        """Return the margin (R,) of all tokens."""
        with np.errstate(invalid="ignore"):
            means = (softmax(self.logs, axis=0) * self.gains).sum(axis=0)
        return self.base + np.where(self._is_empty, 0.0, means)

    def is_ahead(self) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        constant, terms = self.linear()
        return bool((np.where(self._is_empty, self.base, constant + terms.sum(axis=0)) > 0).all())

    @property
    def _is_empty(self) -> NDArray[np.bool_]:
        return np.asarray((self.logs == -inf).all(axis=0))

    def lowest(self, fixed: NDArray[np.intp]) -> Array:
        """Return the lowest margins over all subsets that have none of `fixed`, its first, two, ...

        Others join in the order of their gains as long as these are below the margin so far;
        (n + 1,), the lowest of the R.
        """
        margins = np.empty((len(fixed) + 1, len(self.base)))
        logs = self.logs[:, 0].tolist()
        for rival, gains in enumerate(self.gains.T.tolist()):
            others = np.argsort(gains[:-1], kind="stable")[::-1].tolist()
            joined, total, level = set(), -inf, 0.0
            for n, new in enumerate([len(others), *fixed.tolist()]):
                while True:
                    if new not in joined and logs[new] > -inf:
                        total = float(np.logaddexp(total, logs[new]))
                        level += exp(logs[new] - total) * (gains[new] - level)
                    joined.add(new)
                    if not others or gains[others[-1]] >= level:
                        break
                    new = others.pop()
                margins[n, rival] = self.base[rival] + level
        return np.asarray(margins.min(axis=1))


def running_means(logs: Array, values: Array) -> Array:
    """Return the mean values (n, K) of the first token, the first two, ...; of nothing, 0."""
    total = np.logaddexp.accumulate(logs)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = [
            np.logaddexp.accumulate(logs[:, None] + np.log(part.clip(min=0.0)), axis=0)
            for part in (values, -values)
        ]
        return np.nan_to_num(np.exp(sums[0] - total) - np.exp(sums[1] - total))
