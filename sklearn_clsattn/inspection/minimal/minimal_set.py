"""The smallest change of one document, and what is known of it in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..formatting import label_text, percent, signed, token_text
from ..terms import DecisionTerms

Array = NDArray[np.float64]

_KINDS = {"tokens": "token", "words": "word", "add": "token", "keep": "token"}


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSet:
    """The smallest set of tokens of one document that changes its prediction, or guarantees it.

    Made by :meth:`Explanation.counterfactual` and :meth:`Explanation.sufficient`.

    Parameters
    ----------
    document : int
        The document's position among those that were explained.
    change : {"tokens", "words", "add", "keep"}
        What is done with the set: tokens are removed, words are removed, tokens are added, or
        tokens are kept while anything may become of the others.
    found : bool
        Whether there is a set, and it was found.
    tokens : tuple of str
        The tokens, or words, the most effective first.
    entries : ndarray of shape (n_chosen,)
        Their numbers: among the document's tokens; columns where tokens are added; the text's
        distinct words, in order of their places, where words are removed.
    at_least : int or None
        No smaller set than this will do: proved. It is the size where the set is the smallest.
        None where no set at all will do.
    before : label
        The predicted class of the document.
    after : label
        That of the changed document; the same where no set was found.
    margins : ndarray of shape (n_chosen + 1,)
        The margin of the class `before` over the best of the others in log-odds, with none of the
        tokens, the first of them, the first two, ... With "keep", the lowest it can have whatever
        becomes of the others.
    probabilities : ndarray of shape (n_chosen + 1,)
        The probability of the class `before` likewise; NaN with "keep".
    marks : tuple of ndarray of shape (n_marks, 2)
        For each text of the document, where the chosen tokens start and stop.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_clsattn.inspection.minimal.minimal_set import MinimalSet
    >>> nothing = np.arange(0)
    >>> MinimalSet(0, "tokens", True, (), nothing, 0, "a", "a", np.ones(1), np.ones(1), ()).size
    0
    """

    document: int
    change: Literal["tokens", "words", "add", "keep"] | str
    found: bool
    tokens: tuple[str, ...]
    entries: NDArray[np.intp]
    at_least: int | None
    before: Any
    after: Any
    margins: Array
    probabilities: Array
    marks: tuple[NDArray[np.intp], ...]

    def __repr__(self) -> str:
        return f"<MinimalSet of document {self.document}: {self.tokens}>"

    @property
    def size(self) -> int | None:
        """The number of tokens or words; None where no set was found."""
        return len(self.tokens) if self.found else None

    @property
    def is_minimal(self) -> bool:
        """Whether no smaller set will do, or none at all: proved."""
        return self.at_least == self.size

    @property
    def margin(self) -> float:
        """The margin in log-odds that the set leaves: of the new class, or the guaranteed one."""
        return float(self.margins[-1] if self.change == "keep" else -self.margins[-1])


def statement(one: MinimalSet, document: DecisionTerms, probability: float | None) -> str:
    """Return what is known of one document in a sentence."""
    kind, n = _KINDS[one.change], len(one.tokens)
    before, after = label_text(one.before), label_text(one.after)
    if not one.found:
        return _not_found(one, before, kind)
    if not n:
        if one.change == "keep":
            return f"It is {before} whatever becomes of its tokens."
        return f"It is {before} already."
    these = f'the {kind} "{token_text(one.tokens[0])}"' if n == 1 else f"these {n} {kind}s"
    if n > 1 and one.change in ("tokens", "keep"):
        these += f" of its {len(document.tokens):,}"
    binary, fewer = len(document.classes) == 2, _fewer(one)
    if one.change == "keep":
        how = f"by at least {signed(one.margin)} in log-odds"
        if binary and probability is None:
            how = f"with at least {percent(float(expit(one.margin)))}"
        verb = "guarantees" if n == 1 else "guarantee"
        return (
            f"{these[0].upper()}{these[1:]} {verb} {before}, {how}, whatever becomes of the "
            f"others{fewer}."
        )
    start = f"With {these} added" if one.change == "add" else f"Without {these}"
    share = float(one.probabilities[-1])
    if probability is not None:
        explained = document.targets.tolist()[0]
        its = share if one.before == explained else 1 - share
        return (
            f"{start}, the probability of {label_text(explained)} is {percent(its)}, across "
            f"{percent(probability)}{fewer}."
        )
    odds = f" ({percent(1 - share)})" if binary else ""
    return f"{start}, it is {after}{odds}{fewer}."


def _fewer(one: MinimalSet) -> str:
    """Return what is known of smaller sets than one with tokens."""
    n, least = len(one.tokens), one.at_least or 0
    if one.is_minimal:
        return "" if n == 1 else f"; no {n - 1} would do" if n > 2 else "; no single one would do"
    known = f"fewer than {least} would not do, " if least > 1 else ""
    return f"; {known}whether {n - 1} would do is open"


def _not_found(one: MinimalSet, before: str, kind: str) -> str:
    if one.change == "keep":
        return f"Two classes are level: no tokens guarantee {before}."
    what = "added tokens change" if one.change == "add" else f"removal of {kind}s changes"
    if one.at_least is None:
        return f"No {what} the prediction: proved."
    return f"None was found in the time allowed: it takes {one.at_least} or more, if any will do."
