"""Texts without some of their words.

Whatever is said of words is about a text that was edited and predicted again, because a text
without a word is another text: its neighbours become a pair, positions move, counts change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from unicodedata import category

import numpy as np

from ..text._characters import ALONE
from ..text._normalization import aligned, normalized
from ..text._tokens import WORDS_AND_PUNCTUATION, tokenize

Span = tuple[int, int]

_MARKS = frozenset(["Mn", "Mc", "Me", "Cf"])
_CLOSING = frozenset(".,;:!?)]}…。、，！？")  # no space stands before these


@dataclass(frozen=True)
class Word:
    """A distinct word of a text, in any case and in spellings that look the same."""

    name: str  # as it stands where it comes first
    spans: tuple[Span, ...]  # start and stop of each occurrence


@dataclass(frozen=True, eq=False)
class EditableText:
    """A text, and its words, which can be deleted."""

    text: str

    @cached_property
    def words(self) -> list[Word]:
        """The distinct words, in the order of their first occurrences."""
        spans: dict[str, list[Span]] = {}
        for start, stop in word_spans(self.text):
            key = normalized(self.text[start:stop], lowercase=True)
            spans.setdefault(key, []).append((start, stop))
        words = []
        for occurrences in spans.values():
            start, stop = occurrences[0]
            words.append(Word(self.text[start:stop], tuple(occurrences)))
        return words

    @cached_property
    def n_occurrences(self) -> int:
        """The number of all occurrences of words."""
        return sum(len(word.spans) for word in self.words)

    def spans_of(self, words: Iterable[int]) -> list[Span]:
        """Return the spans of some words, given by their numbers, in order."""
        spans: list[Span] = []
        for number in words:
            spans += self.words[number].spans
        return sorted(spans)

    def without(self, words: Iterable[int]) -> str:
        """Return the text without some words, given by their numbers."""
        return delete_spans(self.text, self.spans_of(words))

    def only(self, words: Iterable[int]) -> str:
        """Return the text reduced to some words, with spaces where others were left out."""
        parts: list[str] = []
        end = 0
        for start, stop in self.spans_of(words):
            between = self.text[end:start]
            if parts:
                parts.append(between if not between.strip() else " ")
            parts.append(self.text[start:stop])
            end = stop
        return "".join(parts)


def word_spans(text: str) -> list[Span]:
    """Return the start and stop of each word of a text; punctuation is no word.

    Words that share a character, such as those of a ligature of words, are one.
    """
    # 1) The words of the normalized text.
    form = aligned(text, lowercase=False)
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
        is_longer_break = "\n" in space_after and "\n" not in space_before
        return before if space_before and not is_longer_break else left + after
    if "\n" in space_before + space_after:
        space = space_before if "\n" in space_before else space_after
    elif right[0] in _CLOSING and not space_after:
        space = ""
    elif space_before or space_after:
        space = space_before or space_after
    else:
        space = " " if _would_join(left, right) else ""
    return left + space + right


def _would_join(left: str, right: str) -> bool:
    """Return whether two texts side by side share a word; what is no letter may be between."""
    last = next(filter(_is_base, reversed(left)), "")
    first = next(filter(_is_base, right), "")
    both = (last + first).replace("_", "a")
    return both.isalnum() and not ALONE.search(both)


def _is_base(character: str) -> bool:
    """Return whether a character is no mark of the one before, and has a glyph."""
    return category(character) not in _MARKS
