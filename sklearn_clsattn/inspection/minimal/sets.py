"""The smallest changes of documents as data, text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.utils import check_scalar

from ..formatting import MINUS, label_text, percent, shortened, signed, token_text, visible
from ..pages import framed, render
from ..terms import DecisionTerms
from .search import Array, Found, Integers, fewest, units_of

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_NOTHING: Found = np.arange(0), 0
_TITLES = {
    "tokens": "The fewest tokens whose removal changes the prediction",
    "words": "The fewest words whose removal changes the prediction",
    "add": "The fewest added tokens that change the prediction",
    "keep": "The fewest tokens that guarantee the prediction",
}


def minimal_sets(
    many: DecisionTerms,
    change: str = "tokens",
    to: Any = None,
    time_limit: float = 10.0,
    is_kept: bool = False,
) -> MinimalSets:
    """Return the smallest changes of all documents, or if `is_kept` the smallest guarantees.

    The parameters are those of `Explanation.counterfactual`.
    """
    labels = many.classes.tolist()
    question = "a sufficient set" if is_kept else "a counterfactual"
    if many.model is None:
        raise ValueError(
            f"{question} needs a model with one layer of attention; this model has two"
        )
    if len(labels) > 2 and len(many.targets) < len(labels):
        raise ValueError(
            f"{question} compares classes, but only {many.targets.tolist()[0]!r} was explained: "
            "call explain without target"
        )
    check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")
    if change not in ("tokens", "words", "add"):
        raise ValueError(f"change must be one of 'tokens', 'words', 'add', got {change!r}")
    if to is not None and (np.ndim(to) != 0 or to not in labels):
        raise ValueError(f"to must be None or one of the classes {labels}, got {to!r}")
    target = None if to is None else labels.index(to)
    change = "keep" if is_kept else change
    return MinimalSets(many, tuple(_minimal_set(one, change, target, time_limit) for one in many))


def _minimal_set(one: DecisionTerms, change: str, to: int | None, time_limit: float) -> MinimalSet:
    """Return the smallest set of one document; `to` is a number of a class."""
    units = units_of(one, change)
    # Of classes that tie, the first is predicted.
    present = int(units.of_classes(one.decision[0]).argmax())
    margin = units.margin(present if to is None else to)
    chosen, at_least = _NOTHING
    if to is None and change != "keep":
        of_rivals = replace(margin, base=-margin.base, gains=-margin.gains)
        chosen, at_least = fewest(units, of_rivals, time_limit, over_any=True)
    elif to != present:
        chosen, at_least = fewest(units, margin, time_limit)
    numbers = np.arange(0) if chosen is None else chosen
    if change == "keep":
        margins, after = margin.lowest(numbers), present
        probabilities = np.full(len(margins), np.nan)
    else:
        decisions = units.decisions(numbers)
        after = int(decisions[-1].argmax()) if len(numbers) else present
        margins = decisions[:, present] - np.delete(decisions, present, axis=1).max(axis=1)
        probabilities = softmax(decisions, axis=1)[:, present]
    labels = one.classes.tolist()
    return MinimalSet(
        document=int(one.index[0]),
        change=change,
        found=chosen is not None,
        tokens=tuple(map(str, units.names[numbers])),
        entries=numbers,
        at_least=at_least,
        before=labels[present],
        after=labels[after],
        margins=margins,
        probabilities=probabilities,
        marks=tuple(np.unique(at[np.isin(at[:, 2], numbers), :2], axis=0) for at in units.spans),
    )


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSet:
    """The smallest set of tokens of one document that changes its prediction, or guarantees it."""

    document: int  # its position among those that were explained
    change: str  # what is done: "tokens" or "words" are removed, tokens are "add"ed, or "keep"
    found: bool  # whether there is a set, and it was found
    tokens: tuple[str, ...]  # tokens, or words, the most effective first
    # (n_chosen,), their numbers: of the document's tokens; columns where tokens are added; of the
    # text's distinct words, in order of their places, where words are removed.
    entries: Integers
    at_least: int | None  # no smaller set will do: proved; None where no set at all will do
    before: Any  # the predicted class of the document
    after: Any  # that of the changed one
    # (n_chosen + 1,): the margin of `before` over the best other class in log-odds, and its
    # probability, with none of the tokens, the first of them, the first two, ... With "keep", the
    # lowest margin it can have whatever happens to the others, and NaN.
    margins: Array
    probabilities: Array
    marks: tuple[Integers, ...]  # for each text, starts and stops of the chosen, (n, 2)

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


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSets(Sequence[MinimalSet]):
    """The smallest sets of several documents that change or guarantee their predictions.

    A sequence of :class:`MinimalSet`; its slices are :class:`MinimalSets`.
    """

    explanation: DecisionTerms
    sets: tuple[MinimalSet, ...]

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return MinimalSets(self.explanation[key], self.sets[key])
        return self.sets[key]

    def __repr__(self) -> str:
        return f"<MinimalSets of {len(self):,} document{'' if len(self) == 1 else 's'}>"

    __str__ = shortened

    @property
    def sizes(self) -> Array:
        """The sizes of the sets, (n_documents,); NaN if none was found."""
        return np.array([one.size for one in self], dtype=np.float64)

    def statement(self, number: int) -> str:
        """Return the result for the document at position `number` as one or two sentences."""
        one, document = self.sets[number], self.explanation[number]
        kind, is_kept = "word" if one.change == "words" else "token", one.change == "keep"
        n, before, after = len(one.tokens), label_text(one.before), label_text(one.after)
        if not one.found and is_kept:
            return f"Two classes are level: no tokens guarantee {before}."
        if not one.found and one.at_least is None:
            what = "added tokens change" if one.change == "add" else f"removal of {kind}s changes"
            return f"No {what} the prediction: proved."
        if not one.found:
            least = one.at_least
            return f"None was found in the time allowed: it takes {least} or more, if any will do."
        if not n:
            return f"It is {before} {'whatever happens to its tokens' if is_kept else 'already'}."
        these = f'the {kind} "{token_text(one.tokens[0])}"' if n == 1 else f"these {n} {kind}s"
        if n > 1 and one.change in ("tokens", "keep"):
            these += f" of its {len(document.tokens):,}"
        fewer, least = "" if n == 1 else f"; no {n - 1 if n > 2 else 'single one'} would do", 0
        if not one.is_minimal:
            least = one.at_least or 0
            known = f"fewer than {least} would not do, " if least > 1 else ""
            fewer = f"; {known}whether {n - 1} would do is open"
        if is_kept:
            how = f"by at least {signed(one.margin)} in log-odds"
            if self._is_binary:
                how = f"with at least {percent(float(expit(one.margin)))}"
            guarantee = f"{these[0].upper()}{these[1:]} guarantee{'s' if n == 1 else ''} {before}"
            return f"{guarantee}, {how}, whatever happens to the others{fewer}."
        start = f"With {these} added" if one.change == "add" else f"Without {these}"
        odds = f" ({percent(1 - float(one.probabilities[-1]))})" if self._is_binary else ""
        return f"{start}, it is {after}{odds}{fewer}."

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per document; NaN means that there is no set."""
        names = ["document", "before", "after", "size", "at_least", "tokens", "margin"]
        frame = pd.DataFrame({name: [getattr(one, name) for one in self] for name in names})
        frame = frame.astype({"size": np.float64, "at_least": np.float64})
        return frame.assign(margin=frame["margin"].where(frame["size"].notna()))

    def to_text(self, *, top: int = 12) -> str:
        """Return statements, each with at most `top` tokens and the probabilities after them."""
        check_scalar(top, "top", Integral, min_val=0)
        parts = []
        for at, one in enumerate(self):
            title = f"Document {one.document}  {label_text(one.before)}"
            lines = [title, visible(self.statement(at))]
            sign = {"add": "+", "keep": "="}.get(one.change, "-")
            after = [step["number"].replace(MINUS, "-") for step in self._steps(one)]
            if one.change == "keep":
                ahead = "" if self._is_binary else "ahead by "
                after = [f"{ahead}{number} at least" for number in after]
            names = [token_text(name) for name in one.tokens[:top]]
            width = max(map(len, names), default=0)
            for name, number in zip(names, after[1:], strict=False):
                lines.append(f"  {sign} {name:{width}}  {number}")
            if len(one.tokens) > top:
                lines.append(f"  and {len(one.tokens) - top} more: {after[-1]}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts) or "No documents."

    def to_html(self, *, top: int = 12, fragment: bool = False) -> str:
        """Return a page, or an element for another page, without scripts, that needs no network.

        The chosen words are marked in the texts; at most `top` tokens are listed for each set.
        """
        check_scalar(top, "top", Integral, min_val=0)
        return self._html(len(self), top, fragment)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown, 12), repr(self), 60 + 300 * n_shown)

    def _html(self, n_shown: int, top: int, fragment: bool = False) -> str:
        return render(
            "minimal.html",
            title=_TITLES[self.sets[0].change] if self.sets else "No documents",
            views=[self._view(at, top) for at in range(n_shown)],
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )

    @property
    def _is_binary(self) -> bool:
        return len(self.explanation.classes) == 2

    def _view(self, at: int, top: int) -> dict[str, Any]:
        """Return what the template shows of a document."""
        one, document = self.sets[at], self.explanation[at]
        before, steps = label_text(one.before), self._steps(one) if one.tokens else []
        more = max(len(one.tokens) - top - 1, 0)
        unit = f"probability of {before} after each"
        if one.change == "keep":
            what, odds = ("probability", "") if self._is_binary else ("lead", " in log-odds")
            unit = f"lowest {what} of {before}{odds}, whatever happens to the others"
        texts = zip(document.texts[0], one.marks, strict=False)
        return {
            "set": one,
            "sign": {"add": "+", "keep": ""}.get(one.change, MINUS),
            "statement": self.statement(at),
            "unit": unit,
            "steps": [*steps[: top + 1], steps[-1]] if more else steps,
            # Where the prediction of two classes changes, in percent of a bar.
            "middle": 50.0 if self._is_binary else None,
            "more": more,
            "texts": [(text.name, _segments(text.text, marks)) for text, marks in texts],
        }

    def _steps(self, one: MinimalSet) -> list[dict[str, Any]]:
        """Return the tokens of a set, and the probability or margin that is left after each."""
        is_kept, margins = one.change == "keep", one.margins
        widths = expit(margins) if is_kept else one.probabilities
        numbers = [percent(share) for share in widths.tolist()]
        if is_kept and not self._is_binary:
            widths = (margins - margins.min()) / (np.ptp(margins) or 1.0)
            numbers = [signed(margin, MINUS) for margin in margins.tolist()]
        names = ["none fixed" if is_kept else "as it is", *one.tokens]
        each = zip(names, numbers, widths.tolist(), margins.tolist(), strict=True)
        return [
            {"name": name, "number": number, "width": 100.0 * width, "is_other": margin <= 0}
            for name, number, width, margin in each
        ]


def _segments(text: str, marks: Integers) -> list[tuple[str, bool]]:
    """Return a text in segments, and whether each is marked."""
    marked = np.zeros(len(text), dtype=bool)
    for start, stop in marks:
        marked[start:stop] = True
    edges = [0, *(np.flatnonzero(np.diff(marked)) + 1).tolist(), len(text)]
    return [(text[i:j], bool(marked[i])) for i, j in pairwise(edges) if j > i]
