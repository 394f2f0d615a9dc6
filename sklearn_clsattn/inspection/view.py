"""The content of one document's explanation for one class, for pages and terminals alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray
from scipy.special import expit

from ..text._context_vectorizer import CHARACTER_PREFIX
from .class_table import ClassTable, class_table
from .comparing import between, pairs
from .formatting import (
    MINUS,
    count_text,
    label_text,
    level,
    percent,
    rounds_to_nothing,
    signed,
    token_text,
    visible,
)
from .pieces import Piece, cut, placed
from .spelled_words import spelled_words
from .terms import DecisionTerms, DocumentText

Array = NDArray[np.float64]

N_SHADES = 5  # by contribution
N_OUTLINES = 2  # by attention
MAX_CLASSES = 6  # to name
SMALLEST_SHOWN = 0.0005  # probability of a class to name beyond the first two
_MAX_SEGMENTS = 6  # of tokens on each side of a bar; more would be too short to read
_FAINT = 0.05  # least contribution, in log-odds, that the strongest shade stands for


@dataclass(frozen=True)
class Token:
    """A token of a document, or its character n-grams in a word: numbers for the class shown."""

    name: str
    prefix: str  # "title" for "title__film", else ""
    term: str  # the rest of the name
    count: float
    attention: float
    contribution: float
    without: float | None  # the decision without the token, where it was computed
    is_characters: bool  # whether it is a character n-gram


@dataclass(frozen=True)
class Side:
    """The contributions of one sign."""

    sign: int
    label: str  # such as "for good"
    total: float  # the sum over all tokens of this sign, also those that `top` left out
    tokens: list[Token]  # the strongest, to be listed
    more: int  # the number of others
    more_total: float  # their sum


@dataclass(frozen=True)
class ShownClass:
    """A class, its probability and decision, and whether it is the class shown."""

    label: str
    probability: float
    decision: float
    shown: bool


@dataclass(frozen=True)
class ShownText:
    """A text in pieces, named where a document has several texts."""

    name: str | None
    pieces: list[Piece]

    @property
    def length(self) -> int:
        """How many characters it has."""
        return sum(len(piece.text) for piece in self.pieces)


@dataclass(frozen=True)
class Segment:
    """A segment of a bar, in percent; without a token it is all others together."""

    left: float
    width: float
    token: Token | None


@dataclass(frozen=True)
class Bar:
    """The decision as a bar, in percent of its width."""

    start: float
    end: float
    zero: float | None  # where two classes are level, or the prediction changes
    rows: list[tuple[int, list[Segment]]]  # their signs and segments


@dataclass(frozen=True)
class View:
    """One document, explained for one class."""

    one: DecisionTerms  # the document, with all explained classes
    shown: DecisionTerms  # the same with the decision that is shown alone
    k: int  # position of the class among the explained ones
    number: int  # of the document among the explained ones
    predicted: str
    probability: float  # of the predicted class
    true: str | None  # the true class, where it is known
    is_right: bool
    target: str  # the class shown
    other: str | None  # the other one of two classes, or the one compared with
    n_classes: int  # of the model
    has_without: bool  # whether the decisions without the tokens are known
    knows_nothing: bool  # whether the document has no token of the vocabulary
    has_text: bool
    has_lines: bool  # whether n-grams have lines below their words
    tokens: list[Token]  # all of the document, in the order of the columns
    terms: list[Token]  # the same, with character n-grams that have places put together by word
    start: float  # the intercept
    end: float  # the decision
    plus: Side  # contributions for the class
    minus: Side  # contributions against it
    texts: list[ShownText]
    unplaced: list[Token]  # tokens without a position in any text
    # The largest contribution and attention of a piece or unplaced token, which have the strongest
    # shade and outline: the same in all texts of the document, so that they can be compared.
    largest: float
    most: float
    table: ClassTable | None  # all classes side by side, where it was asked for

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides, that of the predicted one of two classes first."""
        if self.other == self.predicted:
            return self.minus, self.plus
        return self.plus, self.minus

    @property
    def is_binary(self) -> bool:
        """Whether the decision is between two classes, so that its sign says which is ahead."""
        return self.other is not None

    @property
    def is_compared(self) -> bool:
        """Whether these are two of several classes, and the decision the difference of theirs."""
        return self.is_binary and self.n_classes > 2

    @property
    def decision_name(self) -> str:
        """What the sum of the contributions is."""
        return f"lead over {self.other}" if self.is_compared else "decision"

    @property
    def listed(self) -> list[Token]:
        """The tokens that are listed, those for the class first."""
        return self.plus.tokens + self.minus.tokens

    @property
    def bar(self) -> Bar | None:
        """The decision as a bar; None where there are no contributions."""
        sides = [side for side in (self.plus, self.minus) if side.total]
        if not sides:
            return None
        highest = self.start + self.plus.total
        level = self.shown.threshold
        values = [self.start, self.end, highest] + [level] * self.is_binary
        low, width = min(values), (max(values) - min(values)) or 1.0

        def at(value: float) -> float:
            return 1.0 + 98.0 * (value - low) / width

        rows = []
        strongest = _strongest(self.terms, _MAX_SEGMENTS)
        for side in sides:
            here, stop = (self.start, highest) if side.sign > 0 else (highest, self.end)
            segments = []
            for token in strongest[side.sign]:
                there = here + token.contribution
                segments.append(_segment(at(here), at(there), token))
                here = there
            if abs(stop - here) > 1e-9 * max(1.0, abs(stop)):
                segments.append(_segment(at(here), at(stop), None))
            rows.append((side.sign, segments))
        zero = at(level) if self.is_binary else None
        return Bar(start=at(self.start), end=at(self.end), zero=zero, rows=rows)

    def shade(self, contribution: float) -> int:
        """Return the level of shading of a contribution, from 0 to `N_SHADES`."""
        return level(contribution, self.largest, N_SHADES)

    def outline(self, attention: float) -> int:
        """Return the level of outlining of an attention share, from 0 to `N_OUTLINES`."""
        # Attention varies less than contributions: its lower half has no outlines.
        over = 2 * attention / self.most - 1 if self.most else -1.0
        return min(N_OUTLINES, 1 + int(N_OUTLINES * over)) if over >= 0 else 0

    def marked(self, pieces: Iterable[Piece]) -> Markup:
        """Return pieces of a text as HTML: a long text has too many for a template."""
        made = []
        for piece in pieces:
            written = str(escape(visible(piece.text, keep_lines=True)))
            if piece.tokens:
                tokens = [self.tokens[at] for at in piece.tokens if at >= 0]
                words = [token for token in tokens if not token.is_characters]
                words.sort(key=lambda token: -abs(token.contribution))
                mark = self.mark(piece, words, len(tokens) - len(words))
                written = f"<span {mark}>{written}</span>"
            for lane, token in piece.lines:
                minus = " minus" if self.tokens[token].contribution < 0 else ""
                written = f'<span class="g l{lane}{minus}">{written}</span>'
            made.append(written)
        return Markup("".join(made))

    def mark(self, part: Piece | Token, tokens: Sequence[Token], n_characters: int = 0) -> Markup:
        """Return the attributes of a word, or a token without a place, that has these tokens.

        It is shaded by what it adds and outlined by its attention.
        """
        shade, outline = self.shade(part.contribution), self.outline(part.attention)
        made = "t"
        if shade:
            made += f" {'p' if part.contribution > 0 else 'n'}{shade}"
        if outline:
            made += f" a{outline}"
        if not (shade or outline) or not (tokens or n_characters):
            return Markup(f'class="{made}"')
        title = escape(self.tooltip(tokens, part, n_characters))
        return Markup(f'class="{made}" title="{title}"')

    @staticmethod
    def tooltip(
        tokens: Iterable[Token], part: Piece | Token | None = None, n_characters: int = 0
    ) -> str:
        """Return a part's tokens, and what it adds where it stands if they do not say so."""
        added = [signed(token.contribution, MINUS) for token in tokens]
        lines = []
        if part is not None and (n_characters or added != [signed(part.contribution, MINUS)]):
            here = signed(part.contribution, MINUS)
            lines.append(f"here {here}, attention {percent(part.attention)}, of:")
        for token, adds in zip(tokens, added, strict=True):
            line = f"{token_text(token.name)} ×{count_text(token.count)}: {adds}, attention "
            line += percent(token.attention)
            if token.without is not None:
                line += f", decision without {signed(token.without, MINUS)}"
            lines.append(line)
        if n_characters:
            lines.append(f"{n_characters} character n-gram{'s' if n_characters > 1 else ''}")
        return "\n".join(lines)

    def classes(self) -> tuple[list[ShownClass], int]:
        """Return the most probable of the explained classes, if several, and how many others."""
        one = self.one
        n = len(one.targets)
        if n == 1:
            return [], 0
        order = list(range(n))
        if n > MAX_CLASSES:
            order = np.argsort(-one.probability[0], kind="stable")[:MAX_CLASSES].tolist()
            # Probabilities that round to nothing say nothing; the class shown and the next stay.
            order = [
                at
                for place, at in enumerate(order)
                if place < 2 or at == self.k or one.probability[0, at] >= SMALLEST_SHOWN
            ]
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
        """Return the title above the tokens without a position in a text."""
        if not self.texts:
            return "Its tokens, in the order of the columns"
        if len(self.unplaced) < len(self.tokens):
            return "Tokens without a position in the text"
        return "Its tokens, whose positions in the text are unknown"

    def remarks(self, minus: str = "-") -> list[str]:
        """Return the sum's other terms, as parts of a sentence, with this minus sign."""
        one = self.shown
        remarks = [
            f"{side.more:,} more {side.label} ({signed(side.more_total, minus)})"
            for side in self.sides
            if side.more and self.table is None
        ]
        if self.terms != self.tokens:
            remarks.append('"characters": all character n-grams in the word together')
        if one.others_count[0]:
            remarks.append(
                f"{one.others_count[0]} others, left out by top "
                f"({signed(float(one.others_contributions[0, 0]), minus)}, "
                f"attention {percent(float(one.others_attention[0]))})"
            )
        if one.cls_attention[0]:
            remarks.append(
                f"<cls>, the classifier's own token, keeps "
                f"{percent(float(one.cls_attention[0]))} of the attention and adds 0"
            )
        if one.threshold:
            share = percent(float(expit(one.threshold)))
            remarks.append(
                f"{self.target} is predicted from {signed(one.threshold, minus)} on, "
                f"a probability of {share}"
            )
        return remarks


def views(
    explanation: DecisionTerms,
    target: Any,
    top: int,
    against: Any = None,
    every_class: bool = False,
) -> list[View]:
    """Return the views of all documents, each for a class and its rival, as `pairs` says."""
    shown, rivals = pairs(explanation, target, against)
    return [
        _view(one, k, j, top, every_class)
        for one, k, j in zip(explanation, shown.tolist(), rivals.tolist(), strict=True)
    ]


def view(one: DecisionTerms, target: Any, top: int) -> View:
    """Return the view of one document for a class, by default the predicted one."""
    return views(one, target, top)[0]


def _view(one: DecisionTerms, k: int, j: int, top: int, every_class: bool) -> View:
    shown_one = between(one, k, j)
    of_document = one.texts[0]
    tokens = _tokens(shown_one)
    contributions, attention = shown_one.contributions[:, 0], one.attention
    label = label_text(one.targets.tolist()[k])
    other = _other(one, k) if j < 0 else label_text(one.targets.tolist()[j])
    texts = [
        ShownText(
            text.name,
            [Piece(text.text, (), 0.0, 0.0, ())]
            if text.words is None
            else cut(text, contributions, attention),
        )
        for text in of_document
    ]
    with_places = placed(of_document)
    unplaced = [token for at, token in enumerate(tokens) if at not in with_places]
    shown: list[Piece | Token] = [piece for text in texts for piece in text.pieces]
    shown += unplaced
    terms = _by_word(tokens, of_document, contributions, attention)
    plus, minus = _sides(shown_one, label, other, terms, top)
    (predicted,), (true,) = (
        one.predicted.tolist(),
        [None] if one.true is None else one.true.tolist(),
    )
    return View(
        one=one,
        shown=shown_one,
        k=k,
        number=int(one.index[0]),
        predicted=label_text(predicted),
        probability=float(one.predicted_probability[0]),
        true=None if one.true is None else label_text(true),
        is_right=one.true is not None and bool(true == predicted),
        target=label,
        other=other,
        n_classes=len(one.classes),
        has_without=one.decision_without is not None,
        knows_nothing=not tokens and not one.others_count[0],
        has_text=any(text.pieces for text in texts),
        has_lines=any(piece.lines for text in texts for piece in text.pieces),
        tokens=tokens,
        terms=terms,
        start=float(shown_one.intercept[0]),
        end=float(shown_one.decision[0, 0]),
        plus=plus,
        minus=minus,
        texts=texts,
        unplaced=unplaced,
        largest=max([_FAINT, *(abs(part.contribution) for part in shown)]),
        most=max((part.attention for part in shown), default=0.0),
        table=class_table(one, top) if every_class and len(one.targets) > 1 else None,
    )


def _tokens(one: DecisionTerms) -> list[Token]:
    """Return the tokens of one document and one decision, in order."""
    names = [str(name) for name in one.tokens]
    parts = [name.partition("__") for name in names]
    # Names have a prefix where all are such as those of a ColumnTransformer.
    has_prefixes = all(before and after for before, _, after in parts)
    n = len(names)
    without = [None] * n if one.decision_without is None else one.decision_without[:, 0].tolist()
    characters = np.array([CHARACTER_PREFIX in name for name in names], dtype=bool)
    for text in one.texts[0]:
        if text.occurrences is not None:
            _, length, token = text.occurrences.T
            characters[token[(length == 0) & (token >= 0)]] = True
    return [
        Token(name, before if has_prefixes else "", after if has_prefixes else name, *numbers)
        for name, (before, _, after), *numbers in zip(
            names,
            parts,
            one.counts.tolist(),
            one.attention.tolist(),
            one.contributions[:, 0].tolist(),
            without,
            characters.tolist(),
            strict=True,
        )
    ]


def _by_word(
    tokens: list[Token], texts: Iterable[DocumentText], contributions: Array, attention: Array
) -> list[Token]:
    """Return the tokens, with character n-grams that have places put together by word."""
    counts = np.array([token.count for token in tokens])
    spelled = spelled_words(texts, np.column_stack([counts, attention, contributions]))
    return [token for at, token in enumerate(tokens) if at not in spelled.tokens] + [
        Token(word.name, word.family, word.text, count, attended, added, None, False)
        for word, (count, attended, added) in spelled.sums.items()
    ]


def _sides(
    one: DecisionTerms, label: str, other: str | None, tokens: list[Token], top: int
) -> tuple[Side, Side]:
    """Return both sides of one decision; tokens that round to nothing are not listed."""
    against = f"against {label}" if other is None else f"for {other}"
    others = float(one.others_contributions[0, 0])
    largest = max((abs(token.contribution) for token in tokens), default=0.0)
    listable = [one for one in tokens if not rounds_to_nothing(one.contribution, largest)]
    strongest = _strongest(listable, top)
    made = []
    for sign, words in ((1, f"for {label}"), (-1, against)):
        listed = strongest[sign]
        on_side = [token for token in tokens if sign * token.contribution > 0]
        total = _sum(on_side)
        made.append(
            Side(
                sign=sign,
                label=words,
                total=total + sign * max(sign * others, 0.0),
                tokens=listed,
                more=len(on_side) - len(listed),
                more_total=total - _sum(listed),
            )
        )
    return made[0], made[1]


def _sum(tokens: Iterable[Token]) -> float:
    return float(np.sum([token.contribution for token in tokens]))


def _other(one: DecisionTerms, k: int) -> str | None:
    """Return the other one of two classes; None of more."""
    others = [label for label in one.classes.tolist() if label != one.targets.tolist()[k]]
    return label_text(others[0]) if len(others) == 1 else None


def _strongest(tokens: Sequence[Token], top: int) -> dict[int, list[Token]]:
    """Return the `top` tokens of each sign with the largest contributions, the largest first."""
    order = sorted(tokens, key=lambda token: -token.contribution)
    return {
        1: [token for token in order if token.contribution > 0][:top],
        -1: [token for token in reversed(order) if token.contribution < 0][:top],
    }


def _segment(one: float, other: float, token: Token | None) -> Segment:
    return Segment(min(one, other), abs(one - other), token)
