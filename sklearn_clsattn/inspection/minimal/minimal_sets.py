"""The smallest changes of documents, as data, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_scalar

from ..formatting import MINUS, label_text, percent, signed, token_text, visible
from ..pages import framed, render
from ..terms import DecisionTerms
from .minimal_set import MinimalSet, statement

Array = NDArray[np.float64]

# The maximum number of documents in a notebook's cell.
_SHOWN_IN_NOTEBOOK = 10
_TITLES = {
    "tokens": "The fewest tokens whose removal changes the prediction",
    "words": "The fewest words whose removal changes the prediction",
    "add": "The fewest added tokens that change the prediction",
    "keep": "The fewest tokens that guarantee the prediction",
}


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSets:
    """The smallest changes of several documents that change their predictions, or keep them.

    A sequence of :class:`MinimalSet`: ``sets[i]`` is that of document i, and slices are
    :class:`MinimalSets` again.

    Parameters
    ----------
    explanation : Explanation
        The documents' explanation.
    sets : tuple of MinimalSet
        One for each document.
    probability : float, default=None
        The probability of the explained one of two classes that is crossed, if not one half.

    See Also
    --------
    Explanation.counterfactual : The fewest tokens whose removal changes a prediction.
    Explanation.sufficient : The fewest tokens that guarantee it.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import explain
    >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
    >>> model = ClsAttentionClassifier().fit(X, ["good", "good", "bad", "bad"])
    >>> sets = explain(model, X).counterfactual()
    >>> len(sets), sets[0].tokens, sets[0].after
    (4, ('x0',), 'bad')
    """

    explanation: DecisionTerms
    sets: tuple[MinimalSet, ...]
    probability: float | None = None

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[MinimalSet]:
        return iter(self.sets)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return MinimalSets(self.explanation[key], self.sets[key], self.probability)
        return self.sets[key]

    def __repr__(self) -> str:
        return f"<MinimalSets of {len(self):,} document{'' if len(self) == 1 else 's'}>"

    @property
    def sizes(self) -> Array:
        """The sets' sizes, (n_documents,); NaN where none was found."""
        return np.array([np.nan if one.size is None else one.size for one in self])

    def statement(self, number: int) -> str:
        """Return what is known of a document in a sentence or two.

        Parameters
        ----------
        number : int
            The document's position in these sets.

        Returns
        -------
        statement : str
            Such as "Without these 3 of its 120 tokens it is negative (57.1%); no 2 would do."
        """
        return statement(self.sets[number], self.explanation[number], self.probability)

    def to_frame(self) -> pd.DataFrame:
        """Return the sets as a data frame.

        Returns
        -------
        frame : DataFrame
            A row for each document; sizes, bounds and margins are NaN where there is no set.
        """
        return pd.DataFrame(
            {
                "document": [one.document for one in self],
                "before": [one.before for one in self],
                "after": [one.after for one in self],
                "size": self.sizes,
                "at_least": [np.nan if one.at_least is None else one.at_least for one in self],
                "tokens": [one.tokens for one in self],
                "margin": [one.margin if one.found else np.nan for one in self],
            }
        )

    def to_text(self, *, top: int = 12) -> str:
        """Return the sets as text for a terminal: a statement for each document, and its tokens.

        Parameters
        ----------
        top : int, default=12
            How many tokens of each set to list.

        Returns
        -------
        text : str
            With the probability of the predicted class after each token.
        """
        check_scalar(top, "top", Integral, min_val=0)
        parts = []
        for at, one in enumerate(self):
            head = f"Document {one.document}  {label_text(one.before)}"
            lines = [head, visible(self.statement(at))]
            if one.tokens:
                names = [token_text(name) for name in one.tokens[:top]]
                width = max(map(len, names), default=0)
                after = self._numbers(one)
                if one.change == "keep":
                    ahead = "" if self._is_binary else "ahead by "
                    after = [f"{ahead}{number} at least" for number in after]
                sign = {"add": "+", "keep": "="}.get(one.change, "-")
                lines += [
                    f"  {sign} {name:{width}}  {number}"
                    for name, number in zip(names, after[1:], strict=False)
                ]
                if len(one.tokens) > top:
                    lines.append(f"  and {len(one.tokens) - top} more: {after[-1]}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts) or "No documents."

    def to_html(self, *, top: int = 12, fragment: bool = False) -> str:
        """Return the sets as HTML that needs no scripts and no network, with texts marked.

        Parameters
        ----------
        top : int, default=12
            How many tokens of each set to list; all are marked in the text.
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.

        Returns
        -------
        html : str
            To be written in UTF-8.
        """
        return self._html(len(self), top=top, fragment=fragment)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        page = self._html(n_shown, top=12, fragment=False)
        return framed(page, repr(self), 60 + 300 * n_shown)

    def _html(self, n_shown: int, *, top: int, fragment: bool) -> str:
        check_scalar(top, "top", Integral, min_val=0)
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

    def _numbers(self, one: MinimalSet, minus: str = "-") -> list[str]:
        """Return the probability, or the guaranteed one or margin, after each step."""
        if one.change == "keep" and not self._is_binary:
            return [signed(margin, minus) for margin in one.margins.tolist()]
        shares = expit(one.margins) if one.change == "keep" else one.probabilities
        return [percent(share) for share in shares.tolist()]

    def _view(self, at: int, top: int) -> dict[str, Any]:
        """Return what the template shows of a document."""
        one, document = self.sets[at], self.explanation[at]
        before, steps = label_text(one.before), self._steps(one)
        more = max(len(steps) - 2 - top, 0)
        unit = f"probability of {before} after each"
        if one.change == "keep":
            what, odds = ("probability", "") if self._is_binary else ("lead", " in log-odds")
            unit = f"lowest {what} of {before}{odds}, whatever becomes of the others"
        middle = None  # where the prediction of two classes changes, in percent of a bar
        if self._is_binary:
            share = 0.5 if self.probability is None else self.probability
            middle = 100.0 * (share if one.before == document.targets.tolist()[0] else 1 - share)
        return {
            "number": one.document,
            "change": one.change,
            "sign": {"add": "+", "keep": ""}.get(one.change, MINUS),
            "before": before,
            "after": None if one.after == one.before else label_text(one.after),
            "statement": self.statement(at),
            "unit": unit,
            "steps": [*steps[: top + 1], steps[-1]] if more else steps,
            "middle": middle,
            "more": more,
            "texts": [
                (text.name, _segments(text.text, marks))
                for text, marks in zip(document.texts[0], one.marks, strict=False)
            ],
        }

    def _steps(self, one: MinimalSet) -> list[dict[str, Any]]:
        """Return the tokens of a set, and what is left after each."""
        if not one.tokens:
            return []
        margins, widths = one.margins, one.probabilities
        if one.change == "keep":
            span = float(np.ptp(margins)) or 1.0
            widths = expit(margins) if self._is_binary else (margins - margins.min()) / span
        names = ["none fixed" if one.change == "keep" else "as it is", *one.tokens]
        numbers = self._numbers(one, MINUS)
        return [
            {"name": name, "number": number, "width": 100.0 * width, "is_other": margin <= 0}
            for name, number, width, margin in zip(
                names, numbers, widths.tolist(), margins.tolist(), strict=True
            )
        ]


def _segments(text: str, marks: NDArray[np.intp]) -> list[tuple[str, bool]]:
    """Return a text in segments, and whether each is marked."""
    depth = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(depth, marks[:, 0], 1)
    np.add.at(depth, marks[:, 1], -1)
    marked = np.cumsum(depth)[:-1] > 0
    edges = [0, *(np.flatnonzero(np.diff(marked)) + 1).tolist(), len(text)]
    return [(text[i:j], bool(marked[i])) for i, j in pairwise(edges) if j > i]
