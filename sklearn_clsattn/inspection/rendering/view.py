"""What is shown of one document, seen from one class: the same for screens, paper and terminals.

Nothing here knows how it will look: :mod:`.html` and :mod:`.text` write what is gathered here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..explanation import DocumentText, Explanation
from .legible import FAINT, label_text, percent, shown_target, sides, signed, strongest
from .pieces import Piece, cut, tokens_in

Array = NDArray[np.float64]

# As many classes as are named beside the predicted one.
_MAX_CLASSES = 6


@dataclass(frozen=True)
class Side:
    """What moves the decision one way.

    Parameters
    ----------
    sign : {1, -1}
        Whether it adds or takes away.
    said : str
        Such as "for good".
    total : float
        The sum of all contributions of this sign, those of the others among them.
    tokens : list of int
        The strongest tokens, the first one first.
    more : int
        How many more tokens there are.
    more_total : float
        What they add together.
    """

    sign: int
    said: str
    total: float
    tokens: list[int]
    more: int
    more_total: float


@dataclass(frozen=True)
class ShownClass:
    """A class and how probable it is.

    Parameters
    ----------
    label : str
        The class.
    probability, decision : float
        Of this document.
    shown : bool
        Whether the document is seen from this class.
    """

    label: str
    probability: float
    decision: float
    shown: bool


@dataclass(frozen=True)
class ShownText:
    """A text in pieces.

    Parameters
    ----------
    name : str or None
        What the text is called, where a document has several.
    pieces : list of Piece
        In order; together they are the text.
    """

    name: str | None
    pieces: list[Piece]


@dataclass(frozen=True)
class View:
    """One document, seen from one class.

    Parameters
    ----------
    one : Explanation
        The document.
    k : int
        The class: its place among the explained ones.
    top : int
        How many tokens of each side are listed.
    contributions : ndarray of shape (n_tokens,)
        To the decision for this class.
    start, end : float
        The intercept and the decision.
    plus, minus : Side
        What speaks for the class and against it.
    texts : list of ShownText
        The document's texts.
    unplaced : list of int
        Tokens that stand in none of them.
    largest : float
        What is shaded most: the largest contribution of a piece or token without place. It is
        the same in all texts of the document, so that their shades can be compared.
    most : float
        What is outlined most: the highest attention of such a piece.
    """

    one: Explanation
    k: int
    top: int
    contributions: Array
    start: float
    end: float
    plus: Side
    minus: Side
    texts: list[ShownText]
    unplaced: list[int]
    largest: float
    most: float

    @property
    def predicted(self) -> str:
        """The predicted class."""
        return label_text(self.one.predicted.tolist()[0])

    @property
    def probability(self) -> float:
        """The predicted class's probability."""
        return float(self.one.predicted_probability[0])

    @property
    def true(self) -> str | None:
        """The true class, where it is known."""
        return None if self.one.true is None else label_text(self.one.true.tolist()[0])

    @property
    def is_right(self) -> bool:
        """Whether the predicted class is the true one."""
        return self.one.true is not None and bool(
            self.one.true.tolist()[0] == self.one.predicted.tolist()[0]
        )

    @property
    def said(self) -> str:
        """The class shown."""
        return label_text(self.target)

    @property
    def is_binary(self) -> bool:
        """Whether there are two classes, so that the decision's sign tells the predicted one."""
        return len(self.one.classes) == 2

    @property
    def target(self) -> Any:
        """The class shown."""
        return self.one.targets.tolist()[self.k]

    @property
    def other(self) -> Any:
        """The other one of two classes."""
        return next(label for label in self.one.classes.tolist() if label != self.target)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides; of two classes the predicted one's first, because it explains more."""
        if self.is_binary and self.one.predicted.tolist()[0] != self.target:
            return self.minus, self.plus
        return self.plus, self.minus

    @property
    def knows_nothing(self) -> bool:
        """Whether the document has no token that the model knows."""
        return not len(self.one.tokens) and not self.one.others_count[0]

    @property
    def has_lines(self) -> bool:
        """Whether n-grams have lines below their words."""
        return any(piece.lines for text in self.texts for piece in text.pieces)

    @property
    def has_prefixes(self) -> bool:
        """Whether all tokens are named after their vectorizer, as in "title__film"."""
        parts = [str(name).partition("__") for name in self.one.tokens]
        return bool(parts) and all(before and after for before, _, after in parts)

    def name(self, token: int) -> tuple[str, str]:
        """Return the vectorizer's part of a token's name, such as "title", and the rest."""
        name = str(self.one.tokens[token])
        if not self.has_prefixes:
            return "", name
        prefix, _, term = name.partition("__")
        return prefix, term

    def without(self, token: int) -> float | None:
        """Return the decision without a token, where it was computed."""
        if self.one.decision_without is None:
            return None
        return float(self.one.decision_without[token, self.k])

    def classes(self) -> tuple[list[ShownClass], int]:
        """Return the explained classes if they are several, and how many more there are.

        They keep their order, which may have a meaning, as stars have; of many only the most
        probable are returned, those first.
        """
        one = self.one
        n = len(one.targets)
        if n == 1:
            return [], 0
        order = list(range(n))
        if n > _MAX_CLASSES:
            order = np.argsort(-one.probability[0], kind="stable")[:_MAX_CLASSES].tolist()
        labels = one.targets.tolist()
        shown = [
            ShownClass(
                label_text(labels[at]),
                float(one.probability[0, at]),
                float(one.decision[0, at]),
                at == self.k,
            )
            for at in order
        ]
        return shown, n - len(order)

    def unplaced_title(self) -> str:
        """Return what to say above the tokens that stand in no text."""
        if not self.texts:
            return "Its tokens, in the order of the columns"
        if len(self.unplaced) < len(self.one.tokens):
            return "Tokens that have no place in the text"
        return "Its tokens, whose places in the text cannot be told"

    def remarks(self, minus: str = "-") -> list[str]:
        """Return what else belongs to the sum.

        Parameters
        ----------
        minus : str, default="-"
            The minus sign.

        Returns
        -------
        remarks : list of str
            Parts of a sentence.
        """
        one = self.one
        remarks = [
            f"{side.more:,} more {side.said} ({signed(side.more_total, minus)})"
            for side in self.sides
            if side.more
        ]
        if one.others_count[0]:
            remarks.append(
                f"{one.others_count[0]} others, left out by top "
                f"({signed(float(one.others_contributions[0, self.k]), minus)}, "
                f"attention {percent(float(one.others_attention[0]))})"
            )
        if one.cls_attention[0]:
            remarks.append(
                f"<cls>, the classifier's own token, keeps "
                f"{percent(float(one.cls_attention[0]))} of the attention and adds 0"
            )
        return remarks + self._next(minus)

    def _next(self, minus: str) -> list[str]:
        """Return how far the next class is, because the decision alone does not tell."""
        decisions, labels = self.one.decision[0], self.one.targets.tolist()
        if len(labels) < 3 or self.target != self.one.predicted.tolist()[0]:
            return []
        at = int(np.argsort(-decisions, kind="stable")[1])
        number = signed(float(decisions[at]), minus)
        return [f"the next highest decision is {number} for {label_text(labels[at])}"]


def view(one: Explanation, target: Any, top: int) -> View:
    """Gather what is shown of a document.

    Parameters
    ----------
    one : Explanation
        Of one document.
    target : label or None
        The class to show; None for the predicted class where it was explained.
    top : int
        How many tokens for and against to list.

    Returns
    -------
    view : View
        What is shown.

    Raises
    ------
    ValueError
        If the class was not explained.
    """
    k = shown_target(one, 0, target)
    contributions: Array = one.contributions[:, k]
    texts = [ShownText(text.name, _pieces(text, contributions, one.attention)) for text in _of(one)]
    placed = set[int]().union(*(tokens_in(text) for text in _of(one)))
    unplaced = [token for token in range(len(one.tokens)) if token not in placed]
    pieces = [piece for text in texts for piece in text.pieces]
    added = [abs(piece.contribution) for piece in pieces]
    added += np.abs(contributions[unplaced]).tolist()
    attended = [piece.attention for piece in pieces] + one.attention[unplaced].tolist()
    plus, minus = _sides(one, k, contributions, top)
    return View(
        one=one,
        k=k,
        top=top,
        contributions=contributions,
        start=float(one.intercept[k]),
        end=float(one.decision[0, k]),
        plus=plus,
        minus=minus,
        texts=texts,
        unplaced=unplaced,
        largest=max([FAINT, *added]),
        most=max(attended, default=0.0),
    )


def _of(one: Explanation) -> tuple[DocumentText, ...]:
    return one.texts[0]


def _pieces(text: DocumentText, contributions: Array, attention: Array) -> list[Piece]:
    if text.words is None:
        return [Piece(text.text, (), 0.0, 0.0, ())]
    return cut(text, contributions, attention)


def _sides(one: Explanation, k: int, contributions: Array, top: int) -> tuple[Side, Side]:
    rest = float(one.others_contributions[0, k])
    made = []
    for sign, said, tokens in zip(
        (1, -1), sides(one, k), strongest(contributions, top), strict=True
    ):
        on_side = contributions[sign * contributions > 0]
        listed = contributions[tokens]
        made.append(
            Side(
                sign=sign,
                said=said,
                total=float(on_side.sum()) + sign * max(sign * rest, 0.0),
                tokens=tokens,
                more=len(on_side) - len(tokens),
                more_total=float(on_side.sum() - listed.sum()),
            )
        )
    return made[0], made[1]
