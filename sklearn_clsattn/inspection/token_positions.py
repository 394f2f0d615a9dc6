"""Where the tokens of a document stand in its text, and the text in segments to be shaded.

Words are found as scikit-learn's vectorizers find them, and positions in the
preprocessed text are mapped back character by character: a dropped accent changes its length.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from .._types import Array
from ..text._characters import whole_clusters
from ..text._context_vectorizer import ContextVectorizer
from .edited_text import EditableText, Span

_AROUND = 40  # characters on either side of a strong word


class Occurrence(NamedTuple):
    """An occurrence of a token in a text."""

    token: int  # its number among the document's tokens
    first_word: int
    n_words: int
    share: float  # of the token's weight, and so of its attention and contributions


@dataclass(frozen=True)
class LocatedText:
    """A text, its words as a vectorizer reads them, and where the document's tokens occur.

    The shares of a token's occurrences sum to 1; they are equal unless the vectorizer weights
    occurrences. Without known positions there are neither words nor occurrences. The words that the
    vectorizer leaves out are `ignored`.
    """

    text: str
    words: tuple[Span, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    ignored: tuple[Span, ...] = ()

    def token_spans(self) -> dict[int, list[Span]]:
        """Return the spans of the words of each token that occurs, in order."""
        spans: dict[int, set[Span]] = defaultdict(set)
        for token, first_word, n_words, _ in self.occurrences:
            spans[token].update(self.words[first_word : first_word + n_words])
        return {token: sorted(of_token) for token, of_token in spans.items()}


class _Term(NamedTuple):
    """A term that a vectorizer counts, where it stands, and what it counts there."""

    name: str
    first_word: int
    n_words: int
    weight: float


class Segment(NamedTuple):
    """A segment of a text, all of whose characters belong to the same tokens."""

    text: str
    tokens: tuple[int, ...] = ()  # numbers of the document's tokens
    contribution: float = 0.0  # its share of the tokens' contributions
    attention: float = 0.0
    is_ignored: bool = False  # a stop word


class Passage(NamedTuple):
    """A part of a long text."""

    place: float  # where it starts, as a share of the text's characters
    segments: list[Segment]


def locate(vectorizer: Any, text: str, tokens: Sequence[str]) -> LocatedText:
    """Return a text with the occurrences of tokens in it, as a vectorizer reads it."""
    words, terms, ignored = read_terms(vectorizer, text)
    numbers = {token: number for number, token in enumerate(tokens)}
    # 1) What all occurrences of each token count.
    totals: dict[str, float] = defaultdict(float)
    for term in terms:
        totals[term.name] += term.weight
    # 2) The occurrences of the tokens that the model knows.
    occurrences = []
    for name, first_word, n_words, weight in terms:
        if name in numbers:
            share = weight / totals[name]
            occurrences.append(Occurrence(numbers[name], first_word, n_words, share))
    return LocatedText(text, words, tuple(occurrences), ignored)


def locate_words(text: str) -> LocatedText:
    """Return a text with the occurrences of its words, which are its tokens."""
    places = []
    for token, word in enumerate(EditableText(text).words):
        for span in word.spans:
            places.append((span, token, 1 / len(word.spans)))
    places.sort()
    occurrences = []
    for at, (_, token, share) in enumerate(places):
        occurrences.append(Occurrence(token, at, 1, share))
    return LocatedText(text, tuple(span for span, _, _ in places), tuple(occurrences))


def read_terms(
    vectorizer: Any, text: str
) -> tuple[tuple[Span, ...], list[_Term], tuple[Span, ...]]:
    """Return the words of a text, the terms that a vectorizer counts, and words that it ignores.

    There are none if they are unknown.
    """
    ignored = np.empty((0, 2), dtype=np.intp)
    if isinstance(vectorizer, ContextVectorizer):
        words, terms, ignored = _terms_in_context(vectorizer, text)
    elif isinstance(vectorizer, CountVectorizer) and _reads_as_usual(vectorizer):
        by_words = vectorizer.analyzer == "word"
        counted = _counted_terms if by_words else _counted_characters
        words, terms = counted(vectorizer, text)
    else:
        words, terms = np.empty((0, 2), dtype=np.intp), []
    return _spans(text, words), terms, _spans(text, ignored)


def _spans(text: str, words: NDArray[np.intp]) -> tuple[Span, ...]:
    """Return words, (n_words, 2), as spans of whole grapheme clusters."""
    return tuple(map(tuple, whole_clusters(text, words).tolist()))


def _terms_in_context(
    vectorizer: ContextVectorizer, text: str
) -> tuple[NDArray[np.intp], list[_Term], NDArray[np.intp]]:
    """Return the words, terms and stop words of a text; none if it does not have its tokens."""
    occurrences = vectorizer.occurrences(text)
    if (occurrences.words < 0).any() or (occurrences.ignored < 0).any():
        nothing = np.empty((0, 2), dtype=np.intp)
        return nothing, [], nothing
    terms = []
    for name, first_word, weight in zip(
        occurrences.terms.tolist(),
        occurrences.first_words.tolist(),
        occurrences.weights.tolist(),
        strict=True,
    ):
        terms.append(_Term(name, first_word, name.count(" ") + 1, weight))
    return occurrences.words, terms, occurrences.ignored


def _reads_as_usual(vectorizer: CountVectorizer) -> bool:
    """Return whether a vectorizer reads words or characters by scikit-learn's own methods."""
    kind = type(vectorizer)
    for name in ("build_analyzer", "build_preprocessor", "build_tokenizer"):
        if getattr(kind, name) is not getattr(CountVectorizer, name):
            return False
    if vectorizer.preprocessor is not None or vectorizer.tokenizer is not None:
        return False
    reads_units = vectorizer.analyzer in {"word", "char", "char_wb"}
    return reads_units and not callable(vectorizer.strip_accents)


def _counted_terms(vectorizer: CountVectorizer, text: str) -> tuple[NDArray[np.intp], list[_Term]]:
    """Return the words and terms of a text; none if an empty token is among them."""
    # 1) The words of the preprocessed text.
    preprocess = vectorizer.build_preprocessor()
    processed = preprocess(text)
    pattern = re.compile(vectorizer.token_pattern)
    stop_words = vectorizer.get_stop_words() or ()
    spans = []
    words = []
    for match in pattern.finditer(processed):
        start, stop = match.span(pattern.groups)
        word = processed[start:stop]
        if word in stop_words:
            continue
        if not word:  # an empty token has no position
            return np.empty((0, 2), dtype=np.intp), []
        spans.append((start, stop))
        words.append(word)
    # 2) The n-grams of words.
    terms = []
    shortest, longest = vectorizer.ngram_range
    for n_words in range(shortest, longest + 1):
        for first_word in range(len(words) - n_words + 1):
            name = " ".join(words[first_word : first_word + n_words])
            terms.append(_Term(name, first_word, n_words, 1.0))
    return _in_original(preprocess, text, spans), terms


def _counted_characters(
    vectorizer: CountVectorizer, text: str
) -> tuple[NDArray[np.intp], list[_Term]]:
    """Return the words between spaces, and the character n-grams, which stand at whole words."""
    # 1) The words of the preprocessed text, and of that which has single spaces.
    preprocess = vectorizer.build_preprocessor()
    processed = preprocess(text)
    single = re.sub(r"\s\s+", " ", processed)  # as scikit-learn does
    spans = [match.span() for match in re.finditer(r"\S+", processed)]
    words = [match.span() for match in re.finditer(r"\S+", single)]
    # 2) The n-grams, at the words that they share characters with.
    shortest, longest = vectorizer.ngram_range
    parts = [(0, single)]
    if vectorizer.analyzer == "char_wb":  # words between a space on either side
        parts = [(start - 1, f" {single[start:stop]} ") for start, stop in words]
    starts = [start for start, _ in words]
    stops = [stop for _, stop in words]
    terms = []
    for offset, part in parts:
        # scikit-learn counts a word that is shorter than an n-gram once, as it is.
        for n in range(shortest, longest + 1):
            for start in range(max(len(part) - n, 0) + 1):
                name = part[start : start + n]
                first = bisect_right(stops, offset + start)
                last = bisect_left(starts, offset + start + len(name))
                if last > first:
                    terms.append(_Term(name, first, last - first, 1.0))
            if len(part) <= n:
                break
    return _in_original(preprocess, text, spans), terms


def _in_original(
    preprocess: Callable[[str], str], text: str, spans: list[Span]
) -> NDArray[np.intp]:
    """Return spans of a preprocessed text as spans of the text itself, (n_spans, 2).

    Dropped characters, such as an accent, belong to the character before them.
    """
    sizes = {character: len(preprocess(character)) for character in set(text)}
    n_made = np.array([sizes[character] for character in text], dtype=np.intp)
    present = np.flatnonzero(n_made)
    edges = np.append(present, len(text))
    origin = np.repeat(np.arange(len(present)), n_made[present])
    starts, stops = np.array(spans, dtype=np.intp).reshape(-1, 2).T
    return np.column_stack([edges[origin[starts]], edges[origin[stops - 1] + 1]])


def cut(
    located: LocatedText, contributions: Array, attention: Array | None = None
) -> list[Segment]:
    """Return a text as segments: its words, and what is between them.

    A token's contribution is shared among its occurrences by what each counts, and an n-gram's
    equally among its words: segments add up to the tokens.
    """
    # 1) What each word has of the tokens that it belongs to.
    n_words = len(located.words)
    tokens_of_words: list[set[int]] = [set() for _ in range(n_words)]
    added = [0.0] * n_words
    attended = [0.0] * n_words
    token_contributions = contributions.tolist()
    token_attention = np.zeros_like(contributions) if attention is None else attention
    for token, first_word, length, share in located.occurrences:
        for word in range(first_word, first_word + length):
            tokens_of_words[word].add(token)
            added[word] += share / length * token_contributions[token]
            attended[word] += share / length * float(token_attention[token])
    # 2) The segments; words that overlap, such as those of a ligature, are one.
    segments: list[Segment] = []
    text = located.text
    end = 0
    for word, (start, stop) in enumerate(located.words):
        segments += _between(located, end, start)
        tokens = tokens_of_words[word]
        if start < end:
            before = segments.pop()
            start = end - len(before.text)
            tokens |= set(before.tokens)
            added[word] += before.contribution
            attended[word] += before.attention
        end = max(end, stop)
        members = tuple(sorted(tokens))
        segments.append(Segment(text[start:end], members, added[word], attended[word]))
    return segments + _between(located, end, len(text))


def _between(located: LocatedText, start: int, stop: int) -> list[Segment]:
    """Return a part of a text without words as segments: its ignored words, and the others."""
    segments = []
    ignored = located.ignored
    for first, last in ignored[bisect_left(ignored, (start, 0)) : bisect_left(ignored, (stop, 0))]:
        if first < start:  # a character that is several ignored words
            continue
        segments.append(Segment(located.text[start:first]))
        segments.append(Segment(located.text[first:last], is_ignored=True))
        start = last
    segments.append(Segment(located.text[start:stop]))
    return [segment for segment in segments if segment.text]


def strongest_passages(segments: Sequence[Segment], limit: int) -> list[Passage]:
    """Return the segments that add most with text around them, `limit` characters or so."""
    texts = [segment.text for segment in segments]
    text = "".join(texts)
    starts = [0, *accumulate(map(len, texts))]
    # 1) The characters to show: strong segments, and the words around them.
    is_shown = bytearray(len(text))
    n_left = limit
    order = sorted(range(len(segments)), key=lambda at: -abs(segments[at].contribution))
    for at in order:
        start = max(starts[at] - _AROUND, 0)
        if start:  # not from the middle of a word
            start = max(start, text.find(" ", start, starts[at]) + 1)
        stop = min(starts[at + 1], starts[at] + limit) + _AROUND
        space = text.rfind(" ", starts[at + 1], stop)
        if space >= 0 and stop < len(text):
            stop = space
        n_left -= is_shown.count(0, start, stop)
        n_shown = len(is_shown[start:stop])  # fewer at the end of the text
        is_shown[start:stop] = b"\1" * n_shown
        if n_left <= 0:
            break
    # 2) Neighbouring characters as passages, and passages as parts of segments.
    passages = []
    for run in re.finditer(b"\1+", is_shown):
        parts = []
        for at in range(bisect_right(starts, run.start()) - 1, len(segments)):
            if starts[at] >= run.end():
                break
            start = max(run.start(), starts[at])
            stop = min(run.end(), starts[at + 1])
            parts.append(segments[at]._replace(text=text[start:stop]))
        passages.append(Passage(run.start() / len(text), parts))
    return passages
