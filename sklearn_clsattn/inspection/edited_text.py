"""Documents without some of their words, and a model's predictions for them.

Whatever is said of words is about a text that was edited and predicted again, because a text
without a word is another text: its neighbours become a pair, positions move, counts change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unicodedata import category

import numpy as np
import pandas as pd

from .._core.fitted import probabilities
from .._types import Array
from ..text._normalization import aligned, normalized
from ..text._tokens import ALONE, WORDS_AND_PUNCTUATION, tokenize

Span = tuple[int, int]

_CLOSING = frozenset(".,;:!?)]}…。、，！？")  # no space stands before these


@dataclass(frozen=True)
class Word:
    """A distinct word of a document, in any case and in spellings that look the same."""

    name: str  # as it stands where it comes first
    text: int  # number of the text that has it
    spans: tuple[Span, ...]  # start and stop of each occurrence


@dataclass(frozen=True, eq=False)
class EditableDocument:
    """A document as the model's input, and its texts, whose words can be deleted.

    The document is one text, or a row of a table some of whose columns are texts.
    """

    texts: tuple[str, ...]
    columns: tuple[Any, ...] = ()  # of the texts in the row, empty if the document is a text
    row: Any = None  # a table of one row, None if the document is a text
    container: Any = None  # without entries: the series or array that the text came in, if any

    @cached_property
    def words(self) -> list[Word]:
        """The distinct words of all texts, in the order of their first occurrences."""
        spans: dict[tuple[int, str], list[Span]] = {}
        for number, text in enumerate(self.texts):
            for start, stop in word_spans(text):
                key = normalized(text[start:stop], "NFKC", lowercase=True)
                spans.setdefault((number, key), []).append((start, stop))
        words = []
        for (number, _), occurrences in spans.items():
            start, stop = occurrences[0]
            name = self.texts[number][start:stop]
            words.append(Word(name, number, tuple(occurrences)))
        return words

    @cached_property
    def n_occurrences(self) -> int:
        """The number of all occurrences of words."""
        return sum(len(word.spans) for word in self.words)

    def without(self, words: Iterable[int]) -> tuple[str, ...]:
        """Return the texts without some words, given by their numbers."""
        deleted = self._spans(words)
        return tuple(map(delete_spans, self.texts, deleted))

    def only(self, words: Iterable[int]) -> tuple[str, ...]:
        """Return the texts reduced to some words, given by their numbers."""
        kept = self._spans(words)
        return tuple(map(keep_spans, self.texts, kept))

    def without_spans(self, text: int, spans: Sequence[Span]) -> tuple[str, ...]:
        """Return the texts without some spans of one of them, given by its number."""
        texts = list(self.texts)
        texts[text] = delete_spans(texts[text], spans)
        return tuple(texts)

    def _spans(self, words: Iterable[int]) -> list[list[Span]]:
        """Return the spans of some words in each text, in order."""
        spans: list[list[Span]] = [[] for _ in self.texts]
        for number in words:
            word = self.words[number]
            spans[word.text] += word.spans
        for text_spans in spans:
            text_spans.sort()
        return spans

    def as_input(self, versions: Sequence[tuple[str, ...]]) -> Any:
        """Return the model's input with the document in several versions of its texts."""
        if self.row is None:
            return self._contained([text for (text,) in versions])
        # 1) The row, once for each version.
        rows = np.zeros(len(versions), dtype=np.intp)
        if isinstance(self.row, pd.DataFrame):
            table = self.row.iloc[rows].reset_index(drop=True)
        else:
            table = self.row[rows]
        # 2) Its columns of texts.
        for at, column in enumerate(self.columns):
            texts = [version[at] for version in versions]
            if isinstance(self.row, pd.DataFrame):
                number: Any = column
                if isinstance(column, str):
                    number = table.columns.get_loc(column)
                table.isetitem(number, texts)
            else:
                table[:, column] = texts
        return table

    def _contained(self, texts: list[str]) -> Any:
        """Return texts as the model was given them: in a series, an array or a list."""
        if isinstance(self.container, pd.Series):
            dtype: Any = self.container.dtype
            if isinstance(dtype, pd.CategoricalDtype):  # edited texts are no categories
                dtype = object
            return pd.Series(texts, dtype=dtype, name=self.container.name)
        if isinstance(self.container, np.ndarray):
            return np.array(texts, dtype=object if self.container.dtype == object else str)
        return texts


def word_spans(text: str) -> list[Span]:
    """Return the start and stop of each word of a text; punctuation is no word.

    Words that share a character, such as those of a ligature of words, are one.
    """
    # 1) The words of the normalized text.
    form = aligned(text, "NFKC", lowercase=False)
    tokens = tokenize([form.text], WORDS_AND_PUNCTUATION, scripts=True)
    is_word = np.array([_is_word(token) for token in tokens.words], dtype=bool)
    chosen = is_word[tokens.ids]
    spans = np.stack([tokens.starts[chosen], tokens.stops[chosen]], axis=1)
    # 2) The words of the text itself, joined where they overlap.
    words: list[Span] = []
    for start, stop in form.in_original(text, spans).tolist():
        last_start, last_stop = words[-1] if words else (0, 0)
        if start < last_stop:
            words[-1] = (last_start, max(stop, last_stop))
        else:
            words.append((start, stop))
    return words


def _is_word(token: str) -> bool:
    """Return whether a token has letters, digits or symbols, such as emoji."""
    return any(category(character)[0] in "LNSM" or character == "_" for character in token)


def delete_spans(text: str, spans: Sequence[Span]) -> str:
    """Return a text without some spans, which are in order, and with its spaces mended.

    One space stays where there were two, none before closing punctuation, and words that would
    become one are kept apart.
    """
    if not spans:
        return text
    # 1) What stays of the text.
    pieces = []
    end = 0
    for start, stop in spans:
        pieces.append(text[end:start])
        end = stop
    rest = text[end:]
    # 2) The pieces joined one by one.
    edited = pieces[0]
    for piece in [*pieces[1:], rest]:
        edited = _joined(edited, piece)
    return edited if rest.strip() else edited.rstrip()


def _joined(before: str, after: str) -> str:
    """Return the texts before and after a deletion as one."""
    left = before.rstrip()
    right = after.lstrip()
    if not left:  # at the start of the text
        return before + right
    space_before = before[len(left) :]
    space_after = after[: len(after) - len(right)]
    if not right:  # before another deletion, or at the end
        return before if space_before else left + after
    if "\n" in space_before + space_after:
        space = space_before if "\n" in space_before else space_after
    elif right[0] in _CLOSING and not space_after:
        space = ""
    elif space_before or space_after:
        space = space_before or space_after
    else:
        space = " " if _would_join(left[-1], right[0]) else ""
    return left + space + right


def _would_join(left: str, right: str) -> bool:
    """Return whether two characters side by side belong to one word."""
    both = (left + right).replace("_", "a")
    return both.isalnum() and not ALONE.search(both)


def keep_spans(text: str, spans: Sequence[Span]) -> str:
    """Return some spans of a text, which are in order, with spaces where others were left out."""
    parts: list[str] = []
    end = 0
    for start, stop in spans:
        between = text[end:start]
        if parts:
            parts.append(between if not between.strip() else " ")
        parts.append(text[start:stop])
        end = stop
    return "".join(parts)


@dataclass(frozen=True, eq=False)
class TextModel:
    """A fitted estimator that predicts documents, as its user has it.

    Of a model of several labels, `label` is the number of the one that is asked about; its classes
    are then without and with the label.
    """

    estimator: Any
    label: int | None = None

    def decisions(self, documents: Any) -> Array:
        """Return the decision for every class, (n_documents, n_classes).

        Of two classes, the first has the decision 0.
        """
        decisions = np.asarray(self.estimator.decision_function(documents), dtype=np.float64)
        if self.label is not None:
            decisions = decisions[:, self.label]
        if decisions.ndim == 2:
            return decisions
        return np.column_stack([np.zeros_like(decisions), decisions])

    @staticmethod
    def probabilities(decisions: Array) -> Array:
        """Return the probabilities of all classes, (n_documents, n_classes), for decisions."""
        return probabilities(decisions[:, 1] if decisions.shape[1] == 2 else decisions)


def leads(decisions: Array, number: int) -> Array:
    """Return the lead of a class over the best other one, in log-odds, (n_documents,)."""
    others = np.delete(decisions, number, axis=1)
    return np.asarray(decisions[:, number] - others.max(axis=1))
