"""Where the tokens of a document stand in its texts, and the texts in segments to be shaded.

Words are found as scikit-learn's vectorizers find them, and positions in the
preprocessed text are mapped back character by character: a dropped accent changes its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from .._types import Array
from ..text._context_vectorizer import ContextVectorizer
from ..text._graphemes import whole_clusters
from ..text._symbols import ranges
from .edited_text import EditableDocument
from .feature_origins import Columns, FeatureOrigins, Source, TextInput
from .terms import DocumentText

Integers = NDArray[Any]

_AROUND = 40  # characters on either side of a strong word
# The methods of a vectorizer that positions depend on.
_READING = ["build_analyzer", "build_preprocessor", "build_tokenizer"]


class Located(NamedTuple):
    """The occurrences of a vectorizer's tokens in a text, as a `DocumentText` has them."""

    spans: Integers  # (n_words, 2)
    first: Integers  # (n_occurrences,): the occurrence's first row of `spans`
    lengths: Integers
    terms: list[str]
    weights: Array


class Segment(NamedTuple):
    """A segment of a text, all of whose characters belong to the same tokens."""

    text: str
    tokens: tuple[int, ...] = ()  # numbers of the document's tokens
    contribution: float = 0.0  # its share of the tokens' contributions
    attention: float = 0.0


class Passage(NamedTuple):
    """A part of a long text."""

    place: float  # where it starts, as a share of the text's characters
    segments: list[Segment]


def document_texts(
    origins: FeatureOrigins,
    names: Columns,
    documents: Any,
    editable: tuple[EditableDocument | None, ...],
    X: sp.csr_array,
) -> tuple[tuple[DocumentText, ...], ...]:
    """Return each document's texts with its tokens' positions, an empty tuple without text.

    `names` are those of the columns of X, and `editable` the documents as they can be edited.
    """
    # Vectorizers of the same text are located together.
    inputs: dict[Any, tuple[TextInput, list[Any], dict[int, Source]]] = {}
    for number, source in enumerate(origins.sources):
        key, vectorizer = source.input.key, source.vectorizer
        if getattr(vectorizer, "input", "content") == "file":  # which is read once
            continue
        if key not in inputs:
            decode = getattr(vectorizer, "decode", lambda text: text)
            contents = [decode(text) for text in source.input.of(documents)]
            inputs[key] = source.input, contents, {}
        inputs[key][2][number] = source
    texts = []
    for i in range(X.shape[0]):
        columns = names[X.indices[X.indptr[i] : X.indptr[i + 1]]]
        # A union may have a token in several columns.
        numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, token in enumerate(zip(columns.sources.tolist(), columns.terms, strict=True)):
            numbers[token].append(number)
        found = []
        for text_input, contents, sources in inputs.values():
            if isinstance(contents[i], str):
                field = _field(text_input, contents[i], editable[i])
                found.append(_document_text(text_input.name, contents[i], field, sources, numbers))
        texts.append(tuple(found))
    return tuple(texts)


def _field(text_input: TextInput, text: str, document: EditableDocument | None) -> int | None:
    """Return the number of a text in the editable document, None if it was changed before."""
    if document is None:
        return None
    number = 0
    if document.columns:
        if text_input.column not in document.columns:
            return None
        number = document.columns.index(text_input.column)
    return number if document.texts[number] == text else None


def _document_text(
    name: str | None,
    text: str,
    field: int | None,
    sources: dict[int, Source],
    numbers: dict[Any, list[int]],
) -> DocumentText:
    """Return a text with the occurrences of the document's tokens in it."""
    spans: list[Integers] = []
    occurrences, weights, n_spans = [], [], 0
    for number, source in sources.items():
        vectorizer = source.vectorizer
        if isinstance(vectorizer, ContextVectorizer):
            located: Located | None = _in_context(vectorizer, text)
        else:
            located = locate(vectorizer, text)
        if located is None:
            continue
        terms = map(source.column_term, located.terms)
        of_terms = [numbers.get((number, term), []) for term in terms]
        at = np.repeat(np.arange(len(of_terms)), list(map(len, of_terms)))
        rows: list[Any] = [located.first[at] + n_spans, located.lengths[at], list(chain(*of_terms))]
        occurrences.append(np.column_stack(rows).astype(np.int32))
        weights.append(located.weights[at])
        spans.append(located.spans)
        n_spans += len(located.spans)
    if not spans:
        return DocumentText(name, text, None, None, None, field)
    joined, counted = np.concatenate(occurrences), np.concatenate(weights)
    shares = counted / np.bincount(joined[:, 2], counted)[joined[:, 2]]
    words = whole_clusters(text, np.concatenate(spans).astype(np.int32))
    return DocumentText(name, text, words, joined, shares, field)


def locate(vectorizer: CountVectorizer, text: str) -> Located | None:
    """Return the tokens of a text; None where they are not words as scikit-learn reads them."""
    kind, custom = type(vectorizer), (vectorizer.preprocessor, vectorizer.tokenizer)
    if (
        vectorizer.analyzer != "word"
        or any(one is not None for one in custom)
        or callable(vectorizer.strip_accents)
        or any(getattr(kind, name) is not getattr(CountVectorizer, name) for name in _READING)
    ):
        return None
    preprocess = vectorizer.build_preprocessor()
    processed = preprocess(text)
    shortest, longest = vectorizer.ngram_range
    pattern = re.compile(vectorizer.token_pattern)
    stop_words = vectorizer.get_stop_words() or ()
    spans = [match.span(pattern.groups) for match in pattern.finditer(processed)]
    spans = [span for span in spans if processed[slice(*span)] not in stop_words]
    if any(start == stop for start, stop in spans):  # an empty token has no position
        return None
    words = [processed[start:stop] for start, stop in spans]
    sizes = np.arange(shortest, longest + 1)
    counts = (len(words) - sizes + 1).clip(min=0)
    first, lengths = ranges(np.zeros_like(counts), counts), np.repeat(sizes, counts)
    pairs = zip(first.tolist(), lengths.tolist(), strict=True)
    terms = [" ".join(words[at : at + n]) for at, n in pairs]
    # Dropped characters, such as an accent, belong to the character before them.
    sizes_of = {character: len(preprocess(character)) for character in set(text)}
    made = np.array([sizes_of[character] for character in text], dtype=np.intp)
    present = np.flatnonzero(made)
    starts, stops = np.array(spans, dtype=np.intp).reshape(-1, 2).T
    edges = np.append(present, len(text))
    origin = np.repeat(np.arange(len(present)), made[present])
    places = np.column_stack([edges[origin[starts]], edges[origin[stops - 1] + 1]])
    return Located(places, first, lengths, terms, np.ones(len(terms)))


def _in_context(vectorizer: ContextVectorizer, text: str) -> Located | None:
    """Return the words and n-grams of words of a text; None where the text does not have them."""
    found = vectorizer.occurrences(text)
    if (found.words < 0).any():
        return None
    lengths = np.array([term.count(" ") + 1 for term in found.terms], dtype=np.intp)
    first = found.first_words
    return Located(found.words, first, lengths, found.terms.tolist(), found.weights)


def cut(text: DocumentText, contributions: Array, attention: Array) -> list[Segment]:
    """Return a text as segments that end where its words do; as one without positions.

    A token's contribution is shared among its occurrences by what each counts, and an n-gram's
    equally among its words: segments add up to the tokens.
    """
    if text.words is None or text.occurrences is None or text.shares is None:
        return [Segment(text.text)]
    words, (first, length, tokens) = text.words, text.occurrences.T
    # Every word of every occurrence, with the occurrence's number.
    occurrence = np.repeat(np.arange(len(tokens)), length)
    starts, stops = words[ranges(first, length)].T
    n_characters = len(text.text)
    changes = np.bincount(starts, minlength=n_characters + 1)
    changes -= np.bincount(stops, minlength=n_characters + 1)
    read = np.flatnonzero(np.diff(np.cumsum(changes) > 0, prepend=False))
    ends = [[0, n_characters], starts, stops, read]
    edges = np.unique(np.concatenate(ends)).astype(np.intp)
    # Every segment of every word.
    low = np.searchsorted(edges, starts, side="right") - 1
    n_segments = np.searchsorted(edges, stops) - low
    segment, word = ranges(low, n_segments), np.repeat(np.arange(len(starts)), n_segments)
    token = tokens[occurrence[word]]
    inside = np.minimum(stops[word], edges[segment + 1]) - np.maximum(starts[word], edges[segment])
    share = (text.shares / length)[occurrence[word]] * inside / (stops - starts)[word]
    added, attended = (
        np.bincount(segment, share * amounts[token], len(edges)).tolist()
        for amounts in (contributions, attention)
    )
    members = np.unique(segment * len(contributions) + token)
    until = np.searchsorted(members, np.arange(len(edges) + 1) * len(contributions)).tolist()
    of_segments = (members % max(len(contributions), 1)).tolist()
    return [
        Segment(
            text.text[start:stop],
            tuple(of_segments[until[at] : until[at + 1]]),
            added[at],
            attended[at],
        )
        for at, (start, stop) in enumerate(pairwise(edges.tolist()))
    ]


def strongest_passages(segments: Sequence[Segment], limit: int) -> list[Passage]:
    """Return the segments that add most with text around them, `limit` characters or so."""
    text = "".join(segment.text for segment in segments)
    starts = [0, *accumulate(len(segment.text) for segment in segments)]
    # 1) The characters to show: strong segments, and the words around them.
    chosen = bytearray(len(text))
    left = limit
    for at in sorted(range(len(segments)), key=lambda at: -abs(segments[at].contribution)):
        start = max(starts[at] - _AROUND, 0)
        stop = min(starts[at + 1], starts[at] + limit) + _AROUND
        if start:  # not from the middle of a word
            start = max(start, text.find(" ", start, starts[at]) + 1)
        end = text.rfind(" ", starts[at + 1], stop)
        stop = end if end >= 0 and stop < len(text) else stop
        left -= chosen.count(0, start, stop)
        chosen[start:stop] = b"\1" * len(chosen[start:stop])
        if left <= 0:
            break
    # 2) Neighbouring characters as passages, and passages as parts of segments.
    passages = []
    for run in re.finditer(b"\1+", chosen):
        parts = []
        for at in range(bisect_right(starts, run.start()) - 1, len(segments)):
            if starts[at] >= run.end():
                break
            start = max(run.start(), starts[at])
            stop = min(run.end(), starts[at + 1])
            parts.append(segments[at]._replace(text=text[start:stop]))
        passages.append(Passage(run.start() / len(text), parts))
    return passages
