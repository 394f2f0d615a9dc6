"""The smallest changes of documents, as data, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import check_scalar

from ..formatting import label_text, percent, signed, token_text, visible
from ..pages import framed, render
from ..terms import DecisionTerms
from .minimal_set import MinimalSet, statement
from .view import minimal_views

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

    def to_frame(self, rows: Literal["documents", "tokens"] = "documents") -> pd.DataFrame:
        """Return the sets as a data frame.

        Parameters
        ----------
        rows : {"documents", "tokens"}, default="documents"
            "documents": a row for each document. "tokens": a row for each token of each set, with
            the lead and the probability of the class `before` after it.

        Returns
        -------
        frame : DataFrame
            Sizes and bounds are NaN where there is no set.

        Raises
        ------
        ValueError
            If `rows` is neither.
        """
        if rows == "documents":
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
        if rows != "tokens":
            raise ValueError(f"rows must be 'documents' or 'tokens', got {rows!r}")
        columns = ["document", "step", "token", "lead", "probability"]
        return pd.DataFrame(
            [
                (one.document, at + 1, token, one.leads[at + 1], one.probabilities[at + 1])
                for one in self
                for at, token in enumerate(one.tokens)
            ],
            columns=columns,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the sets as nested dictionaries and lists of plain Python values.

        Returns
        -------
        sets : dict
            With the list `documents`. It can be written as JSON, where the labels can.
        """
        return {
            "probability": self.probability,
            "documents": [
                {
                    "document": one.document,
                    "change": one.change,
                    "found": one.found,
                    "tokens": list(one.tokens),
                    "at_least": one.at_least,
                    "before": _plain(one.before),
                    "after": _plain(one.after),
                    "leads": one.leads.tolist(),
                    "statement": self.statement(at),
                }
                for at, one in enumerate(self)
            ],
        }

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
                after = _after_each(one, self.explanation)
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
            views=minimal_views(self.sets[:n_shown], self.explanation, self.probability, top),
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _after_each(one: MinimalSet, explanation: DecisionTerms) -> list[str]:
    """Return the probability, or the guaranteed one or lead, after each number of tokens."""
    if one.change != "keep":
        return [percent(number) for number in one.probabilities.tolist()]
    if len(explanation.classes) == 2:
        return [f"{percent(float(expit(lead)))} at least" for lead in one.leads]
    return [f"ahead by {signed(lead)} at least" for lead in one.leads.tolist()]
