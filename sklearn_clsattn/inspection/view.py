"""The content of one document's explanation for one class, for pages and terminals alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from .edited_text import EditableText
from .formatting import (
    MINUS,
    class_name,
    count_text,
    label_text,
    level,
    percent,
    rounds_to_nothing,
    signed,
    token_text,
    visible,
)
from .shown_classes import class_pairs, difference
from .token_positions import Segment, cut

N_SHADES = 5
MAX_UNFOLDED = 20  # more documents than this are folded to a line each
MAX_CLASSES = 6  # to name
SMALLEST_SHOWN = 0.0005  # probability of a class to name beyond the first two
_MAX_REASONS = 3  # tokens of each side in a sentence
_MAX_DELETED = 12  # words to list
_LONGEST_SEARCHED = 2_000  # words of a text; in longer ones a search takes seconds
_MAX_NEAR = 3  # tokens that are said to be near others
_OPENING = 60  # characters of a folded document's first words
_NOISE = 1e-8  # contributions below are rounding
_FAINT = 0.05  # least contribution, in log-odds, that the strongest shade stands for


@dataclass(eq=False)
class Token:
    """A token of a document: numbers for the class shown."""

    number: int  # in the document
    name: str
    weight: float
    attention: float | None  # None for models without attention
    contribution: float  # or its effect, where there is no sum
    own: float | None = None  # of a word with character n-grams, what it adds without them
    by_vector: Any = None  # what of the contribution its vector adds
    without: float | None = None  # the decision for the text without it, if it is listed

    @property
    def note(self) -> str:
        """A remark on the token, "" for most."""
        is_unknown = self.own is not None and isnan(self.own)
        return "unknown word, scored by its letters" if is_unknown else ""


class Side(NamedTuple):
    """The contributions of one sign."""

    sign: int
    label: str  # such as "for good"
    total: float  # the sum over all tokens of this sign
    tokens: list[Token]  # the strongest, to be listed
    more: int  # the number of others
    more_total: float  # their sum


class ClassRow(NamedTuple):
    """A class with its probability and decision."""

    label: str
    probability: float | None
    decision: float
    shown: bool  # whether the document is explained for it


class Reason(NamedTuple):
    """The tokens to name of one sign, as the subject of a clause, and the clause's end."""

    sign: int
    tokens: list[Token]
    verb: str  # such as "favour"
    label: str  # such as "good", or "good over bad"


class View:
    """One document, explained for the class at position k, against that at j unless -1.

    `document` is an Explanation of one document. `top` tokens of each side are listed; for a text,
    by default with the decisions without them. Which words change the prediction is searched if
    `with_deletion`.
    """

    def __init__(
        self,
        document: Any,
        k: int,
        j: int,
        top: int,
        with_decision_without: bool = True,
        with_deletion: bool = False,
    ) -> None:
        self.document = document
        self.k = k
        self.j = j
        self._name_classes()
        self.number = int(document.index[0])
        self.probability: float | None = None
        if document.predicted_probability is not None:
            self.probability = float(document.predicted_probability[0])
        self.is_sum: bool = document.is_sum
        self.start = 0.0
        if self.is_sum:
            self.start = float(difference(document.intercept[None], k, j)[0])
        self.has_attention: bool = document.attention is not None
        self.end = float(difference(document.decision, k, j)[0])
        # 1) The tokens, in the order of the columns, and the text in segments; None for a matrix.
        self.tokens = _tokens(document, k, j)
        self.text: str | None = None
        self.segments: list[Segment] = []
        self.has_ngrams = False
        self.has_ignored = False
        placed: set[int] = set()
        located = document.located_text
        if located is not None:
            contributions = difference(document.contributions, k, j)
            self.text = located.text
            self.has_ignored = len(located.ignored) > 0
            self.segments = cut(located, contributions, document.attention)
            placed = {occurrence.token for occurrence in located.occurrences}
            self.has_ngrams = any(occurrence.n_words > 1 for occurrence in located.occurrences)
        self.is_located = len(placed) > 0
        self.unplaced = [token for token in self.tokens if token.number not in placed]
        # 2) The strongest shades.
        parts: list[Segment | Token] = [*self.unplaced, *self.segments]
        self.largest = max(_FAINT, _largest(parts))
        self.most = max((part.attention or 0.0 for part in parts), default=0.0)
        # 3) The contributions of each sign, that for the predicted class first.
        minus = f"for {self._other_name}" if self.is_binary else f"against {self._target_name}"
        self.plus = _side(1, f"for {self._target_name}", self.tokens, top)
        self.minus = _side(-1, minus, self.tokens, top)
        self.sides = (self.plus, self.minus)
        if self.other == self.predicted:
            self.sides = (self.minus, self.plus)
        self.listed = self.plus.tokens + self.minus.tokens
        self.reasons = self._reasons()
        # 4) The predictions of edited texts.
        self.has_without = with_decision_without and self.is_located and self.is_sum
        if self.has_without:
            self._predict_without()
        self.deletion = _deletion(document) if with_deletion else ""

    def _name_classes(self) -> None:
        """Set the names of the classes, and how two of them are compared."""
        # 1) The class shown, and the classes that it may be compared with.
        document = self.document
        labels = document.targets.tolist()
        classes = document.classes.tolist()
        target = labels[self.k]
        if self.j >= 0:
            rivals = [labels[self.j]]
        else:
            rivals = [label for label in classes if label != target]
        # 2) The predicted class and the true one.
        predicted = document.predicted.tolist()[0]
        self.predicted = label_text(predicted)
        self.predicted_name = class_name(predicted)
        self.true = None
        self.is_right = False
        if document.true is not None:
            true = document.true.tolist()[0]
            self.true = label_text(true)
            self.is_right = bool(true == predicted)
        # 3) How the sum and its sides are called.
        self.target = label_text(target)
        self._target_name = class_name(target)
        # The other one of two classes, or the one compared with.
        self.other: str | None = None
        self._other_name = ""
        if len(rivals) == 1:
            self.other = label_text(rivals[0])
            self._other_name = class_name(rivals[0])
        # Whether the sign of the decision says which of two classes is ahead.
        self.is_binary = self.other is not None
        self.is_compared = self.is_binary and len(classes) > 2
        self.decision_name = f"lead over {self._other_name}" if self.is_compared else "decision"
        self.adds_name = "adds" if document.is_sum else "effect"

    def _predict_without(self) -> None:
        """Set the decisions for the text without each listed token that has a position."""
        numbers = np.array([token.number for token in self.listed], dtype=np.intp)
        by_class = self.document.predict_without(numbers)
        decisions = difference(by_class, self.k, self.j).tolist()
        for token, decision in zip(self.listed, decisions, strict=True):
            if not isnan(decision):
                token.without = decision

    @property
    def nothing(self) -> str:
        """A sentence instead of tokens, where there are none."""
        if self.is_sum:
            return "The model knows none of its tokens: the decision is the intercept."
        return "The text has no words."

    @property
    def effects_note(self) -> str:
        """A sentence on what the numbers beside a token of a text are."""
        if not self.is_sum:
            measure = "decision" if self.probability is None else "probability"
            of_class = self._target_name
            if self.is_compared:
                of_class = f"{of_class} less that of {self._other_name}"
            return (
                f"effect: how much higher the {measure} of {of_class} is than for the text without "
                "the word, predicted again; effects do not add up, as no sum over words decides"
            )
        if not self.has_without or not self.listed:
            return ""
        return (
            "adds: the exact term of the decision for this document; without: the decision for the "
            "text without the words of that token, predicted again"
        )

    def _reasons(self) -> list[Reason]:
        """Return the strongest tokens of each side, those of the predicted class first."""
        reasons: list[Reason] = []
        for side in self.sides:
            named = self._named_tokens(side.sign)
            if not named:
                continue
            preposition, label = side.label.split(" ", maxsplit=1)
            is_single = len(named) == 1
            if preposition == "for":
                verb = "favours" if is_single else "favour"
            else:
                verb = "speaks against" if is_single else "speak against"
            if self.is_compared and not reasons:
                rival = self._other_name if side.sign > 0 else self._target_name
                label = f"{label} over {rival}"
            reasons.append(Reason(side.sign, named, verb, label))
        return reasons

    def _named_tokens(self, sign: int) -> list[Token]:
        """Return the strongest tokens of one sign that have no word in common."""
        named: list[Token] = []
        words: set[str] = set()
        for token in _strongest(self.tokens, sign):
            if len(named) == _MAX_REASONS or not self.shade(token.contribution):
                break
            # A pair says nothing new beside its words, nor a word beside its pairs.
            token_words = {word for word in token.name.split() if word.isalnum()}
            if not words & token_words:
                named.append(token)
                words |= token_words
        return named

    def shade(self, contribution: float) -> int:
        """Return the level of shading of a contribution, from 0 to `N_SHADES`."""
        return level(contribution, self.largest, N_SHADES)

    def marked(self, segments: Iterable[Segment], by: str = "contribution") -> Markup:
        """Return segments of a text as HTML: a long text has too many for a template."""
        elements = []
        for segment in segments:
            element = str(escape(visible(segment.text, keep_lines=True)))
            if segment.tokens:
                tokens = [self.tokens[at] for at in segment.tokens]
                tokens.sort(key=lambda token: -abs(token.contribution))
                element = f"<span {self.mark(segment, tokens, by)}>{element}</span>"
            elif segment.is_ignored:
                element = f"<s>{element}</s>"
            elements.append(element)
        return Markup("".join(elements))

    def mark(
        self, part: Segment | Token, tokens: Sequence[Token], by: str = "contribution"
    ) -> Markup:
        """Return the attributes of a word, or a token without a position, that has these tokens.

        It is shaded by its contribution or its attention.
        """
        if by == "attention":
            attention = part.attention or 0.0
            shade = level(attention, self.most, N_SHADES)
            if not shade:
                return Markup('class="t"')
            return Markup(f'class="t k{shade}" title="{percent(attention)}"')
        shade = self.shade(part.contribution)
        if not shade:
            return Markup('class="t"')
        letter = "p" if part.contribution > 0 else "n"
        title = escape(self.tooltip(tokens, part))
        return Markup(f'class="t {letter}{shade}" title="{title}"')

    @staticmethod
    def tooltip(tokens: Iterable[Token], part: Segment | Token | None = None) -> str:
        """Return a part's tokens, and what it adds where it stands if they do not say so."""
        # 1) The whole part, unless its only token says the same.
        added = [signed(token.contribution, MINUS) for token in tokens]
        lines = []
        if part is not None and added != [signed(part.contribution, MINUS)]:
            here = signed(part.contribution, MINUS)
            has_attention = any(token.attention is not None for token in tokens)
            attention = f", attention {percent(part.attention or 0.0)}" if has_attention else ""
            lines.append(f"here {here}{attention}, of:")
        # 2) A line for each token.
        for token, adds in zip(tokens, added, strict=True):
            line = f"{token_text(token.name)} ×{count_text(token.weight)}: {adds}"
            if token.attention is not None:
                line += f", attention {percent(token.attention)}"
            if token.without is not None:
                line += f", decision without {signed(token.without, MINUS)}"
            if token.own is not None and not token.note and token.own != token.contribution:
                by_characters = token.contribution - token.own
                line += f"; {signed(by_characters, MINUS)} of it by its characters"
            if token.note:
                line += f"; {token.note}"
            if token.by_vector:
                line += f"; {signed(token.by_vector, MINUS)} of it by its vector"
            lines.append(line)
        return "\n".join(lines)

    @property
    def opening(self) -> str:
        """The first words of the document's text."""
        beginning = (self.text or "")[: 4 * _OPENING]
        return shorten(beginning, _OPENING, placeholder=" …")

    def classes(self) -> tuple[list[ClassRow], int]:
        """Return the most probable of the explained classes, if several, and how many others."""
        labels = self.document.targets.tolist()
        decisions = self.document.decision[0].tolist()
        n = len(labels)
        if n == 1:
            return [], 0
        likely_first = self.document.decision[0]
        probabilities = [None] * n
        if self.document.probability is not None:
            likely_first = self.document.probability[0]
            probabilities = likely_first.tolist()
        # 1) The classes to show, in their order or, of many, the most probable first.
        order = list(range(n))
        if n > MAX_CLASSES:
            likely = np.argsort(-likely_first, kind="stable")[:MAX_CLASSES].tolist()
            # Probabilities that round to nothing say nothing; the class shown and the next stay.
            kept = {*likely[:2], self.k}
            order = []
            for at in likely:
                probability = probabilities[at]
                if at in kept or probability is None or probability >= SMALLEST_SHOWN:
                    order.append(at)
        # 2) Their numbers.
        shown = []
        for at in order:
            is_shown = at == self.k
            name = label_text(labels[at])
            shown.append(ClassRow(name, probabilities[at], decisions[at], is_shown))
        return shown, n - len(shown)

    def unplaced_title(self) -> str:
        """Return the title above the tokens without a position in a text."""
        if self.text is None:
            return "Tokens, in the order of the columns"
        if self.is_located:
            return "Tokens without a position in the text"
        return "Tokens, whose positions in the text are unknown"

    def remarks(self, minus: str = "-") -> list[str]:
        """Return the sum's other terms, as parts of a sentence, with this minus sign."""
        remarks = []
        # 1) The tokens beyond the list.
        largest = _largest(self.tokens)
        for side in self.sides:
            if side.more:
                remarks.append(_others(side, largest, minus, self.is_sum))
        # 2) The listed tokens to which vectors add most.
        by_vector = [token for token in self.listed if token.by_vector]
        by_vector.sort(key=lambda token: -abs(token.by_vector))
        for token in by_vector[:_MAX_NEAR]:
            near = self._near(token)
            if near:
                part = f"{signed(token.by_vector, minus)} of {signed(token.contribution, minus)}"
                name = token_text(token.name)
                remarks.append(f'"{name}" adds {part} because its vector is near {near}')
        # 3) The attention of <cls>.
        if self.has_attention and self.document.cls_attention[0]:
            share = percent(float(self.document.cls_attention[0]))
            remarks.append(f"{share} of the attention goes to no word")
        # 4) Whose decision it is.
        if self.document.inside and self.is_sum:
            remark = f"the sum is the decision of the {self.document.inside}"
            if self.probability is not None:
                remark += "; probabilities are those of the whole"
            remarks.append(remark)
        return remarks

    def _near(self, token: Token) -> str:
        """Return the tokens from which a token has most of its vector's contribution."""
        if self.document.likeness is None:
            return ""
        direction = np.zeros(len(self.document.targets))
        direction[self.k] = np.sign(token.by_vector)
        if self.j >= 0:
            direction[self.j] = -direction[self.k]
        names = self.document.likeness.near(token.name, direction)
        return ", ".join(map(token_text, names))


def views(
    explanation: Any,
    target: Any,
    top: int,
    with_decision_without: bool = True,
    with_deletion: bool = False,
) -> list[View]:
    """Return the views of an Explanation's documents, each for a class and perhaps its rival."""
    shown, rivals = class_pairs(explanation, target)
    document_views = []
    for document, k, j in zip(explanation, shown.tolist(), rivals.tolist(), strict=True):
        document_views.append(View(document, k, j, top, with_decision_without, with_deletion))
    return document_views


def _deletion(document: Any) -> str:
    """Return a statement on the fewest words whose removal changes the prediction of a text."""
    # 1) Texts without an answer, or too long to search.
    if document.texts is None or not len(document.tokens):
        return ""
    if EditableText(document.texts[0]).n_occurrences > _LONGEST_SEARCHED:
        return ""
    # 2) The answer, with the first words of a long one.
    (found,) = document.counterfactual()
    if found.all_are_named:
        return str(found.statement)
    words = [f'"{token_text(word)}"' for word in found.words[:_MAX_DELETED]]
    n_more = len(found.words) - len(words)
    last = f"{n_more:,} more" if n_more else words.pop()
    result = f"{found.result[0].upper()}{found.result[1:]}"
    return f"{found.removal}: {', '.join(words)} and {last}. {result}"


def _tokens(document: Any, k: int, j: int) -> list[Token]:
    """Return the tokens of one document in order, for the class at k against that at j."""
    nothing = [None] * len(document.tokens)
    columns = [
        map(str, document.tokens),
        document.weights.tolist(),
        nothing if document.attention is None else document.attention.tolist(),
    ]
    for by_class in (
        document.contributions,
        document.own_contributions,
        document.vector_contributions,
    ):
        columns.append(nothing if by_class is None else difference(by_class, k, j).tolist())
    return [Token(at, *row) for at, row in enumerate(zip(*columns, strict=True))]


def _others(side: Side, largest: float, minus: str, is_sum: bool) -> str:
    """Return a remark on the tokens of a side beyond the list: their number, and their sum."""
    preposition, label = side.label.split(" ", maxsplit=1)
    verb = "favour" if preposition == "for" else "speak"
    direction = label if preposition == "for" else side.label
    number = f"{side.more:,} other token{'s' if side.more > 1 else ''}"
    if side.more == 1:
        verb += "s"
    if not is_sum:
        return f"{number} {verb} {direction}"
    adds = signed(side.more_total, minus)
    if rounds_to_nothing(side.more_total, largest):
        adds = "about 0"
    total = "" if side.more == 1 else " in total"
    return f"{number} {verb} {direction} ({adds}{total})"


def _side(sign: int, label: str, tokens: Sequence[Token], top: int) -> Side:
    """Return the tokens of one sign; those that round to nothing are not listed."""
    largest = _largest(tokens)
    strongest = _strongest(tokens, sign)
    listed = [one for one in strongest[:top] if not rounds_to_nothing(one.contribution, largest)]
    total = _total(strongest)
    n_more = len(strongest) - len(listed)
    return Side(sign, label, total, listed, n_more, total - _total(listed))


def _largest(parts: Sequence[Segment | Token]) -> float:
    """Return the largest size of a contribution, 0 without any."""
    return max((abs(part.contribution) for part in parts), default=0.0)


def _total(tokens: Sequence[Token]) -> float:
    """Return the sum of the contributions."""
    return sum(token.contribution for token in tokens)


def _strongest(tokens: Sequence[Token], sign: int) -> list[Token]:
    """Return the tokens of one sign, those with the largest contributions first."""
    order = sorted(tokens, key=lambda token: -token.contribution)[::sign]
    return [token for token in order if sign * token.contribution > _NOISE]
