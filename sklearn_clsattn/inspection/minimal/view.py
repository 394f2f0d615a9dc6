"""The content of the smallest changes, for pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..formatting import label_text, percent, signed
from ..terms import DecisionTerms
from .minimal_set import MinimalSet, statement

SIGNS = {"tokens": "−", "words": "−", "add": "+", "keep": ""}


@dataclass(frozen=True)
class Step:
    """A token of the set, and what is left after it."""

    name: str
    number: str  # such as "57.1%"
    width: float  # of its bar, in percent
    is_other: bool  # whether another class is ahead


@dataclass(frozen=True)
class MarkedPiece:
    """A piece of a text, marked or not."""

    text: str
    is_marked: bool


@dataclass(frozen=True)
class MinimalView:
    """One document's smallest change."""

    number: int
    change: str
    sign: str
    before: str
    after: str | None  # None where the class stays
    statement: str
    unit: str  # what the steps' numbers are
    steps: list[Step]
    middle: float | None  # where the prediction of two classes changes, in percent of a bar
    more: int  # steps before the last that are not listed
    texts: list[tuple[str | None, list[MarkedPiece]]]


def minimal_views(
    sets: Sequence[MinimalSet], explanation: DecisionTerms, probability: float | None, top: int
) -> list[MinimalView]:
    """Return the views of the explanation's first documents."""
    views = []
    for at, one in enumerate(sets):
        document = explanation[at]
        steps = _steps(one, len(document.classes))
        more = len(steps) - 2 - top
        texts = [
            (text.name, _pieces(text.text, marks))
            for text, marks in zip(document.texts[0], one.marks, strict=False)
        ]
        views.append(
            MinimalView(
                number=one.document,
                change=one.change,
                sign=SIGNS[one.change],
                before=label_text(one.before),
                after=None if one.after == one.before else label_text(one.after),
                statement=statement(one, document, probability),
                unit=_unit(one, len(document.classes)),
                steps=steps if more <= 0 else [*steps[: top + 1], steps[-1]],
                middle=_middle(one, document, probability),
                more=max(more, 0),
                texts=texts,
            )
        )
    return views


def _middle(one: MinimalSet, document: DecisionTerms, probability: float | None) -> float | None:
    if len(document.classes) > 2:
        return None
    if probability is None:
        return 50.0
    is_explained = one.before == document.targets.tolist()[0]
    return 100.0 * (probability if is_explained else 1 - probability)


def _unit(one: MinimalSet, n_classes: int) -> str:
    before = label_text(one.before)
    if one.change != "keep":
        return f"probability of {before} after each"
    if n_classes == 2:
        return f"lowest probability of {before}, whatever becomes of the others"
    return f"lowest lead of {before} in log-odds, whatever becomes of the others"


def _steps(one: MinimalSet, n_classes: int) -> list[Step]:
    leads = one.leads
    if one.change != "keep":
        sizes, numbers = one.probabilities, [percent(share) for share in one.probabilities.tolist()]
    elif n_classes == 2:
        sizes = expit(leads)
        numbers = [percent(share) for share in sizes.tolist()]
    else:
        sizes = (leads - leads.min()) / (float(np.ptp(leads)) or 1.0)
        numbers = [signed(lead, "−") for lead in leads.tolist()]
    start = "none fixed" if one.change == "keep" else "as it is"
    if not one.tokens:
        return []
    return [
        Step(name, number, 100.0 * float(size), bool(lead <= 0))
        for name, number, size, lead in zip(
            [start, *one.tokens], numbers, sizes.tolist(), leads.tolist(), strict=True
        )
    ]


def _pieces(text: str, marks: NDArray[np.intp]) -> list[MarkedPiece]:
    inside = np.zeros(len(text) + 1, dtype=np.int64)
    for start, stop in marks.tolist():
        inside[start] += 1
        inside[stop] -= 1
    marked = np.cumsum(inside)[:-1] > 0
    edges = [0, *(np.flatnonzero(np.diff(marked)) + 1).tolist(), len(text)]
    return [
        MarkedPiece(text[start:stop], bool(marked[start]))
        for start, stop in pairwise(edges)
        if stop > start
    ]
