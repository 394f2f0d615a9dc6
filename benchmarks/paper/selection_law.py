r"""When one step and the flow on p select every relevant token: a law with edges in closed form.

After the step a relevant token r has the value :math:`\pm a_r`, :math:`a_r = \eta_0 |\alpha_r| /
2`, and along v the kernel :math:`E^1 {E^1}^\top = I + \beta \beta^\top` of the flow's scores has
the eigenvalue 1 + S, :math:`S = \sum_r a_r^2`: what one class gains the other loses. One class's
tokens may run ahead, and the other's fall behind the irrelevant ones, from where they come back in
time, late, or never. ``law.md`` has the derivations, and what was tried to break the law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from sklearn_clsattn.paper import check_single_relevant_token, one_step_embeddings

from .mean_field import Array, mean_field_leads

Verdict = Literal["selects", "may fail", "fails"]

LARGEST_LEAD = 9.0
"""Lead of the class ahead, in score units, above which the other mostly comes back too late."""
UNCERTAIN_LEADS = 6.0, 15.0
"""Leads between which some random starts select every relevant token and others do not."""


@dataclass(frozen=True, eq=False)
class SelectionLaw:
    """The prediction of the law for documents, a step size and a dimension.

    Attributes
    ----------
    verdict : {"selects", "may fail", "fails"}
        Whether the flow on p selects the relevant token of every document.
    reason : str
        The reason for the verdict, as text.
    step_size : float
        eta_0.
    strength : float
        S, the sum of the squares of the relevant tokens' values.
    largest_value : float
        The largest a_r.
    upper_edge : float
        The value above which a trailing class is pulled back, 2 ln(T - 1) + ln 2 for documents of
        T tokens.
    token_loss : float
        The maximum, over the two classes, of w times the largest value of the other class. If it is
        below 1, provably no relevant token can be lost without a dimension.
    bad_optimum : float
        The same with the smallest value of the other class. If it is at most 1, no class can be
        lost as a whole.
    leads : tuple of float
        A, the largest lead of the leading class over the irrelevant tokens in the mean field before
        the trailing class recovers, if the first or the second class leads at the start. It is 0 if
        the other class never trails by more than 1, and infinite if it never recovers. Without a
        dimension both are equal.
    noise : float
        The smallest value divided by the noise of the dimensions, sqrt(2 ln K / d); infinite
        without a dimension.
    """

    verdict: Verdict
    reason: str
    step_size: float
    strength: float
    largest_value: float
    upper_edge: float
    token_loss: float
    bad_optimum: float
    leads: tuple[float, float]
    noise: float


def selection_law(
    X: Any, y: ArrayLike, *, step_size: float, embedding_dim: int | None = None
) -> SelectionLaw:
    """Return the law's prediction for documents of two classes that satisfy Assumption 1.

    `X` has shape (n_documents, n_tokens). `embedding_dim` None is the limit of infinitely many
    dimensions. Other documents are a ValueError.
    """
    check = check_single_relevant_token(X, y)
    n_classes = len(np.unique(y))
    if n_classes != 2 or not check.holds:
        raise ValueError(
            "The law needs two classes and documents with one relevant token each, got "
            f"{n_classes} classes. {check}"
        )
    relevant = np.flatnonzero(check.token_kind == "relevant")
    n_irrelevant = int((check.token_kind == "irrelevant").sum())
    return law_of(X, y, relevant, n_irrelevant, step_size, embedding_dim)


def law_of(
    X: Any,
    y: ArrayLike,
    tokens: NDArray[np.intp],
    n_irrelevant: int,
    step_size: float,
    embedding_dim: int | None,
) -> SelectionLaw:
    """Return the law's prediction for documents whose relevant tokens are taken to be `tokens`.

    `X` has shape (n_documents, n_tokens).
    """
    signed = one_step_embeddings(X, y, step_size=step_size).shifts[tokens, 0]
    X = sp.csr_array(X)
    present = X[:, tokens] > 0
    frequency = np.asarray(present.sum(axis=0), dtype=np.float64).ravel() / X.shape[0]
    counts = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    own = np.asarray(X[:, tokens].sum(axis=1), dtype=np.float64).ravel()
    rivals = float(np.exp(np.mean(np.log(np.maximum(counts / own - 1.0, 1e-3)))))
    values, sides = np.abs(signed), np.sign(signed)
    roots = {k: one_class_root(values[sides == k]) for k in (-1, 1)}
    token_loss, bad = (
        max(root * of(values[sides != k]) for k, root in roots.items()) for of in (np.max, np.min)
    )
    leads = mean_field_leads(values, sides, frequency, rivals, n_irrelevant, embedding_dim)
    upper, noise = 2 * np.log(max(rivals, 1.0)) + np.log(2.0), np.inf
    if embedding_dim is not None:
        noise = float(values.min() / np.sqrt(2 * np.log(max(len(tokens), 2)) / embedding_dim))
    verdict, reason = _verdict(token_loss, bad, leads, noise, embedding_dim)
    return SelectionLaw(
        verdict=verdict,
        reason=reason,
        step_size=float(step_size),
        strength=float(values @ values),
        largest_value=float(values.max()),
        upper_edge=float(upper),
        token_loss=float(token_loss),
        bad_optimum=float(bad),
        leads=leads,
        noise=noise,
    )


def _verdict(
    token_loss: float,
    bad: float,
    leads: tuple[float, float],
    noise: float,
    embedding_dim: int | None,
) -> tuple[Verdict, str]:
    """Return the verdict, and what it rests on."""
    if noise < 1:
        return "fails", f"the least value is {noise:.2g} times the noise of the dimensions"
    if embedding_dim is None and token_loss < 1:
        return "selects", f"no token can be lost: w max a = {token_loss:.2g}, below 1 (proved)"
    if embedding_dim is None and bad <= 1:
        return "selects", f"no class has an optimum of its own: w min a = {bad:.2g}, at most 1"
    said = f"the class ahead leads by {max(leads):.3g} at most before the other comes back"
    if embedding_dim is None:
        if np.isfinite(max(leads)):
            return "selects", f"{said}, as it does"
        return "fails", "the class that is behind never comes back"
    low, high = UNCERTAIN_LEADS
    if max(leads) <= low:
        return "selects", f"{said}, up to {low:g}"
    if min(leads) > high:
        return "fails", f"{said}, above {high:g}"
    return "may fail", f"{said}: from {low:g} to {high:g} it depends on the random start"


def one_class_root(values: Array) -> float:
    r"""Return w, which minimises :math:`w^2 + \sum_i (1 - a_i w)_+^2` over a class's values a_i."""

    def slope(w: float) -> float:
        return float(w - (values * np.maximum(1.0 - values * w, 0.0)).sum())

    return float(brentq(slope, 0.0, 1.0 / values.min()))
