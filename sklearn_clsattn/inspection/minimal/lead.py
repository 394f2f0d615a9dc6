r"""The lead of a class over others, as a function of which tokens of the document are present.

Its sign is linear in these (see `Explanation.counterfactual`). An empty document without ``<cls>``
has the lead of the intercepts. Sums within rounding of 0, `TOLERANCE` of their terms, count as
level, which is neither ahead nor behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..terms import DecisionTerms

Array = NDArray[np.float64]

TOLERANCE = 1e-12  # the share of a sum's absolute terms that is rounding


@dataclass(frozen=True, eq=False)
class Lead:
    """The lead of one class over R others in one document of m tokens."""

    shares: Array  # (m,), attention shares of the tokens
    cls_share: float  # that of <cls>
    base: Array  # (R,), the lead of a document of <cls> alone
    gaps: Array  # (m, R), what a unit of attention on the token adds to the lead

    @property
    def constant(self) -> Array:
        """The constants of the linear form, (R,)."""
        return self.cls_share * self.base

    @property
    def terms(self) -> Array:
        """The tokens' terms in the linear form, (m, R)."""
        return self.shares[:, None] * (self.gaps + self.base)

    def over(self, rival: int) -> Lead:
        """Return the lead over one of the others alone."""
        return Lead(self.shares, self.cls_share, self.base[[rival]], self.gaps[:, [rival]])

    def at(self, weights: Array) -> Array:
        """Return the lead (R,) where every token has these times its weight, (m,)."""
        masses = weights * self.shares
        total = masses.sum() + self.cls_share
        return self.base + (masses @ self.gaps / total if total > 0 else 0.0)

    def is_ahead(self, weights: Array) -> bool:
        """Return whether the class is ahead of all others by more than rounding."""
        masses = weights * self.shares
        if masses.sum() + self.cls_share <= 0:
            return bool((self.base > 0).all())
        terms = np.vstack([masses[:, None] * (self.gaps + self.base), self.constant])
        return bool((terms.sum(axis=0) > TOLERANCE * np.abs(terms).sum(axis=0)).all())

    def lowest(self, fixed: NDArray[np.bool_]) -> Array:
        """Return the lowest lead (R,) over all subsets of the tokens that have those `fixed`.

        The others join in the order of their gaps as long as these are below the lead so far.
        """
        lowest = np.empty(len(self.base))
        own, free = self.shares[fixed], ~fixed
        for rival, gaps in enumerate(self.gaps.T):
            order = np.argsort(gaps[free], kind="stable")
            shares = self.shares[free][order]
            mass = self.cls_share + own.sum() + np.concatenate([[0.0], np.cumsum(shares)])
            sums = own @ gaps[fixed] + np.concatenate(
                [[0.0], np.cumsum(shares * gaps[free][order])]
            )
            means = np.divide(sums, mass, out=np.zeros_like(sums), where=mass > 0)
            lowest[rival] = self.base[rival] + means.min()
        return lowest


def of_class(one: DecisionTerms, number: int, log_odds: float = 0.0) -> Lead:
    """Return the lead of a class by its number; of two, `log_odds` is where the other begins."""
    shares, cls_share = one.attention, float(one.cls_attention[0])
    if len(one.classes) == 2:
        sign = 1.0 if one.classes[number] == one.targets[0] else -1.0
        return Lead(shares, cls_share, sign * (one.intercept - log_odds), sign * one.values)
    others = np.arange(len(one.classes)) != number
    return Lead(
        shares,
        cls_share,
        one.intercept[number] - one.intercept[others],
        one.values[:, [number]] - one.values[:, others],
    )


def present_class(one: DecisionTerms, log_odds: float = 0.0) -> int:
    """Return the number of the class that is ahead in one document."""
    if len(one.classes) > 2:
        return int(one.decision[0].argmax())
    explained = int(one.classes.tolist().index(one.targets.tolist()[0]))
    if one.decision[0, 0] == log_odds:  # level: predicted is the first class
        return 0
    return explained if one.decision[0, 0] > log_odds else 1 - explained


def checked(many: DecisionTerms, question: str) -> None:
    """Raise ValueError unless an explanation has what exact answers need."""
    if many.model is None:
        raise ValueError(
            f"{question} is exact for one layer of attention alone; this model has two"
        )
    if many.others_count.any():
        raise ValueError(
            f"{question} needs all tokens of the documents: explain them without top "
            f"(here {int(many.others_count.sum()):,} tokens were left out)"
        )
    if len(many.classes) > 2 and len(many.targets) < len(many.classes):
        raise ValueError(
            f"{question} compares classes, but only {many.targets.tolist()[0]!r} was explained: "
            "explain without target"
        )
