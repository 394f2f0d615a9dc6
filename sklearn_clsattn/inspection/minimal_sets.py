"""The fewest words that change predictions or keep them, as data, text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._types import Array
from .edited_text import EditableText, Span
from .formatting import label_text, percent, shortened, signed, token_text, visible
from .pages import framed, render
from .predictor import Predictor
from .word_search import WordSearchResult, WordSet, fewest_words

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_MAX_NAMED = 3  # words in a sentence


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSet:
    """The fewest words found that change a text's prediction, or keep it.

    Attributes
    ----------
    document : int
        The position of the text among those that were explained.
    is_kept : bool
        Whether the words keep the prediction, rather than change it by their removal.
    found : bool
        Whether a set was found.
    words : tuple of str
        The words, as they stand in the text; the most effective first.
    at_least : int or None
        No smaller set will do: all were tried. None if no set will do.
    before, after : label
        The predicted class of the text, and of the edited text.
    probability : float
        The predicted probability of `after` for the edited text; NaN if the estimator has none.
    margins : ndarray of shape (n_words + 1,)
        The lead of `before` over the best other class, in log-odds or else in decisions, with none
        of the words chosen, the first of them, the first two, and so on.
    probabilities : ndarray of shape (n_words + 1,)
        The same for the probability of `before`; NaN if the estimator has none.
    text, edited_text : str
        The text, and the text without the words, or reduced to them: what was predicted.
    spans : list of tuple (start, stop)
        Where the words stand in the text.
    """

    document: int
    is_kept: bool
    found: bool
    words: tuple[str, ...]
    at_least: int | None
    before: Any
    after: Any
    probability: float
    margins: Array
    probabilities: Array
    text: str
    edited_text: str
    spans: list[Span]

    def __repr__(self) -> str:
        return f"<MinimalSet of document {self.document}: {self.words}>"

    @property
    def size(self) -> int | None:
        """The number of words; None if no set was found."""
        return len(self.words) if self.found else None

    @property
    def margin(self) -> float:
        """The lead in log-odds or decisions that results, of the new class or the one kept."""
        return float(self.margins[-1] if self.is_kept else -self.margins[-1])

    @property
    def all_are_named(self) -> bool:
        """Whether the statement names all words."""
        return len(self.words) <= _MAX_NAMED

    @property
    def removal(self) -> str:
        """Which words to remove, as a main clause."""
        return f"Remove {self._these_words}"

    @property
    def result(self) -> str:
        """The prediction for the edited text and the other sets tried, from a clause on."""
        more = self._tried if len(self.words) > 1 else ""
        after = label_text(self.after)
        return f"the prediction becomes {after}{self._odds}.{more}"

    @property
    def statement(self) -> str:
        """The prediction for the edited text and the other sets tried, as one or two sentences."""
        before = label_text(self.before)
        n = len(self.words)
        odds = self._odds
        if not self.found and self.is_kept:
            return f"No words were found that alone keep the prediction {before}.{self._tried}"
        if not self.found and self.at_least is None:
            return "Removing words does not change the prediction (all sets of words were tried)."
        if not self.found:
            return f"No words were found whose removal changes the prediction.{self._tried}"
        if n == 0 and self.is_kept:
            return f"Remove all words and the prediction is still {before}{odds}."
        if n == 0:
            return f"The prediction is already {before}{odds}."
        if self.is_kept:
            more = self._tried if n > 1 else ""
            kept = f"Keep only {self._these_words}"
            return f"{kept} and the prediction is still {before}{odds}.{more}"
        return f"{self.removal} and {self.result}"

    @property
    def _odds(self) -> str:
        """The probability of the new class in brackets, if there is one."""
        return "" if np.isnan(self.probability) else f" ({percent(self.probability)})"

    @property
    def _these_words(self) -> str:
        """The words by name, or the number of many."""
        if not self.all_are_named:
            return f"these {len(self.words)} words"
        quoted = [f'"{token_text(word)}"' for word in self.words]
        if len(quoted) == 1:
            return quoted[0]
        return f"{', '.join(quoted[:-1])} and {quoted[-1]}"

    @property
    def _tried(self) -> str:
        """A sentence on the sizes of which all sets were tried, "" without any."""
        n_tried = (self.at_least or 0) - 1
        if n_tried < 1:
            return ""
        if n_tried == 1:
            return " No single word is enough (all were tried)."
        if n_tried == 2:
            return " No set of one or two words is enough (all were tried)."
        return f" No set of up to {n_tried} words is enough (all were tried)."


@dataclass(frozen=True, eq=False)
class WordQuestion:
    """Which words of a text to remove, or to keep alone, so that a class is ahead.

    `present` is the number of the predicted class, `to` that of the class to reach, None for any
    other. Where not all words can be tried, those of the highest `suspicion`, (n_words,), are.
    """

    text: EditableText
    predictor: Predictor
    present: int
    to: int | None
    is_kept: bool
    suspicion: Array

    def edited(self, words: WordSet) -> str:
        """Return the text without some words, or reduced to them."""
        return self.text.only(words) if self.is_kept else self.text.without(words)

    def margins(self, choices: Sequence[WordSet]) -> Array:
        """Return the leads of the class to reach in the texts edited by choices, (n_choices,)."""
        edited = [self.edited(choice) for choice in choices]
        predictions = self.predictor.predict_texts(edited)
        if self.is_kept:
            return predictions.margins(self.present)
        if self.to is None:
            return -predictions.margins(self.present)
        return predictions.margins(self.to)

    def search(self, time_limit: float) -> WordSearchResult:
        """Return the fewest words that were found."""
        if self.to == self.present:
            return WordSearchResult((), -1)
        n_words = len(self.text.words)
        # Of the sets of words to keep, most that are tried have a few words.
        length = min(n_words, 4) if self.is_kept else self.text.n_occurrences
        return fewest_words(self.margins, n_words, length, self.suspicion, time_limit)

    def answer(self, document: int, labels: list[Any], time_limit: float) -> MinimalSet:
        """Return the fewest words that were found, and the predictions of the edited texts."""
        # 1) The words, and the number of which all smaller sets were tried.
        result = self.search(time_limit)
        words = result.words or ()
        at_least: int | None = result.n_tried + 1
        if result.words is not None:
            at_least = min(result.n_tried + 1, len(words))
        elif result.n_tried == len(self.text.words):
            at_least = None  # all sets were tried
        # 2) The predictions with none of the words chosen, the first, the first two, ...
        steps = [self.edited(words[:n]) for n in range(len(words) + 1)]
        if result.words is None:
            steps = [self.text.text]
        predictions = self.predictor.predict_texts(steps)
        after = int(predictions.numbers[-1])
        probabilities = predictions.probabilities
        if probabilities is None:
            probabilities = np.full_like(predictions.scores, np.nan)
        return MinimalSet(
            document=document,
            is_kept=self.is_kept,
            found=result.words is not None,
            words=tuple(self.text.words[number].name for number in words),
            at_least=at_least,
            before=labels[self.present],
            after=labels[after],
            probability=float(probabilities[-1, after]),
            margins=predictions.margins(self.present),
            probabilities=probabilities[:, self.present],
            text=self.text.text,
            edited_text=steps[-1],
            spans=self.text.spans_of(words),
        )


class _Step(NamedTuple):
    """The probability of the predicted class after a word."""

    name: str  # of the word, or of the start
    number: str  # the probability, in percent, or the lead
    width: float  # of the probability's bar, in percent
    is_other: bool  # whether another class is predicted


class _SetView(NamedTuple):
    """The content of a text's part of the page."""

    set: MinimalSet
    # As in the explanation: blue for a single explained class, orange for the other.
    is_orange: bool
    steps: list[_Step]
    more: int  # the number of words left out before the last step
    segments: list[tuple[str, bool]]  # of the text, and whether each is marked


@dataclass(frozen=True, eq=False, repr=False)
class MinimalSets(Sequence[MinimalSet]):
    """The fewest words of several texts that change or keep their predictions.

    A sequence of :class:`MinimalSet`; its slices are :class:`MinimalSets`.
    """

    sets: tuple[MinimalSet, ...]
    is_kept: bool
    classes: NDArray[Any]  # of the model
    targets: NDArray[Any]  # that were explained

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return MinimalSets(self.sets[key], self.is_kept, self.classes, self.targets)
        return self.sets[key]

    def __repr__(self) -> str:
        return f"<MinimalSets of {len(self):,} document{'' if len(self) == 1 else 's'}>"

    __str__ = shortened

    @property
    def sizes(self) -> Array:
        """The sizes of the sets, (n_documents,); NaN if none was found."""
        return np.array([one.size for one in self], dtype=np.float64)

    def statement(self, number: int) -> str:
        """Return the result for the text at position `number` as one or two sentences."""
        return self.sets[number].statement

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with one row per text; NaN means that there is no set."""
        names = ["document", "before", "after", "probability", "size", "at_least", "words"]
        names += ["margin", "edited_text"]
        columns = {}
        for name in names:
            columns[name] = [getattr(one, name) for one in self]
        frame = pd.DataFrame(columns)
        frame = frame.astype({"size": np.float64, "at_least": np.float64})
        frame["margin"] = frame["margin"].where(frame["size"].notna())
        return frame

    def to_text(self, *, top: int = 12) -> str:
        """Return statements, each with at most `top` words and the probabilities after them.

        The edited text that was predicted follows.
        """
        check_scalar(top, "top", Integral, min_val=0)
        parts = []
        for one in self:
            lines = [f"Document {one.document}  {label_text(one.before)}", visible(one.statement)]
            lines += _step_lines(one, top)
            if one.words:
                edited = visible(one.edited_text, keep_lines=True) or "(empty)"
                lines.append(f"Edited text: {edited}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts) or "No documents."

    def to_html(self, *, top: int = 12, fragment: bool = False) -> str:
        """Return a page, or an element for another page, without scripts, that needs no network.

        The chosen words are marked in the texts, and edited texts stand below; at most `top` words
        are listed for each set.
        """
        check_scalar(top, "top", Integral, min_val=0)
        return self._html(len(self), top, fragment)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown, 12), repr(self), 60 + 300 * n_shown)

    def _html(self, n_shown: int, top: int, fragment: bool = False) -> str:
        """Return a page, or a part of one, of the first texts."""
        title = "The fewest words whose removal changes the prediction"
        if self.is_kept:
            title = "The fewest words that alone keep the prediction"
        # Whether the more probable class was always predicted.
        by_half = all(((one.margins > 0) == (one.probabilities > 0.5)).all() for one in self.sets)
        return render(
            "minimal.html",
            title=title if self.sets else "No documents",
            views=[self._view(one, top) for one in self.sets[:n_shown]],
            has_bars=not any(np.isnan(one.probabilities).any() for one in self.sets),
            # Where the prediction of two classes changes, in percent of a bar.
            middle=50.0 if len(self.classes) == 2 and by_half else None,
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )

    def _view(self, one: MinimalSet, top: int) -> _SetView:
        """Return the content of a text's part of the page."""
        # 1) The steps: the first ones, and the last.
        steps = _steps(one) if one.words else []
        n_hidden = max(len(one.words) - top - 1, 0)
        if n_hidden:
            steps = [*steps[: top + 1], steps[-1]]
        # 2) The text, with the chosen words marked.
        targets = self.targets.tolist()
        is_orange = len(targets) == 1 and targets[0] != one.before
        return _SetView(one, is_orange, steps, n_hidden, _segments(one.text, one.spans))


def _steps(one: MinimalSet) -> list[_Step]:
    """Return the start and the words of a set, with the probability after each."""
    steps = []
    start = "no word" if one.is_kept else "as it is"
    for name, probability, margin in zip(
        [start, *one.words], one.probabilities.tolist(), one.margins.tolist(), strict=True
    ):
        number = signed(margin) if isnan(probability) else percent(probability)
        steps.append(_Step(name, number, 100.0 * probability, margin <= 0))
    return steps


def _step_lines(one: MinimalSet, top: int) -> list[str]:
    """Return a line for each of the first words, with the old class's probability after it."""
    steps = _steps(one)[1:]
    label = label_text(one.before)
    names = [token_text(step.name) for step in steps[:top]]
    width = max(map(len, names), default=0)
    sign = "=" if one.is_kept else "-"
    lines = []
    for name, step in zip(names, steps, strict=False):
        lines.append(f"  {sign} {name:{width}}  {label} {step.number}")
    if len(steps) > top:
        lines.append(f"  and {len(steps) - top} more: {label} {steps[-1].number}")
    return lines


def _segments(text: str, spans: Sequence[Span]) -> list[tuple[str, bool]]:
    """Return a text in segments, and whether each is marked."""
    marked = np.zeros(len(text), dtype=bool)
    for start, stop in spans:
        marked[start:stop] = True
    changes = np.flatnonzero(np.diff(marked)) + 1
    segments = []
    for start, stop in pairwise([0, *changes.tolist(), len(text)]):
        if stop > start:
            segments.append((text[start:stop], bool(marked[start])))
    return segments
