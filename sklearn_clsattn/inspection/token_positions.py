"""Where the tokens of a document stand in its texts, and the texts in segments to be shaded.

Words are found as scikit-learn's vectorizers find them, and positions in the
preprocessed text are mapped back character by character: a dropped accent changes its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise
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
    inputs = _vectorized_texts(origins, documents)
    texts = []
    for i in range(X.shape[0]):
        columns = names[X.indices[X.indptr[i] : X.indptr[i + 1]]]
        # The numbers of each token in the document: a union may have it in several columns.
        numbers: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, token in enumerate(zip(columns.sources.tolist(), columns.terms, strict=True)):
            numbers[token].append(number)
        texts_of_document = []
        for text_input, contents, sources in inputs:
            text = contents[i]
            if isinstance(text, str):
                editable_index = _editable_index(text_input, text, editable[i])
                texts_of_document.append(
                    _document_text(text_input.name, text, editable_index, sources, numbers)
                )
        texts.append(tuple(texts_of_document))
    return tuple(texts)


def _vectorized_texts(
    origins: FeatureOrigins, documents: Any
) -> list[tuple[TextInput, list[Any], dict[int, Source]]]:
    """Return each text input, its texts (n_documents), and the vectorizers that read it."""
    inputs: dict[Any, tuple[TextInput, list[Any], dict[int, Source]]] = {}
    for number, source in enumerate(origins.sources):
        vectorizer = source.vectorizer
        if getattr(vectorizer, "input", "content") == "file":  # which is read once
            continue
        key = source.input.key
        if key not in inputs:
            contents = source.input.read(documents)
            if hasattr(vectorizer, "decode"):
                contents = [vectorizer.decode(content) for content in contents]
            inputs[key] = (source.input, contents, {})
        _, _, sources = inputs[key]
        sources[number] = source
    return list(inputs.values())


def _editable_index(
    text_input: TextInput, text: str, document: EditableDocument | None
) -> int | None:
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
    editable_index: int | None,
    sources: dict[int, Source],
    numbers: dict[Any, list[int]],
) -> DocumentText:
    """Return a text with the occurrences of the document's tokens in it."""
    spans: list[Integers] = []
    occurrences = []
    weights = []
    n_spans = 0
    for source_number, source in sources.items():
        # 1) The occurrences that a vectorizer finds.
        vectorizer = source.vectorizer
        if isinstance(vectorizer, ContextVectorizer):
            located: Located | None = _in_context(vectorizer, text)
        else:
            located = locate(vectorizer, text)
        if located is None:
            continue
        # 2) A row for each occurrence and each number of its token in the document.
        tokens: list[int] = []
        n_tokens = []  # of each occurrence
        for term in located.terms:
            columns = numbers.get((source_number, source.column_term(term)), [])
            tokens += columns
            n_tokens.append(len(columns))
        at = np.repeat(np.arange(len(n_tokens)), n_tokens)
        first = located.first[at] + n_spans
        rows: list[Any] = [first, located.lengths[at], tokens]
        occurrences.append(np.column_stack(rows).astype(np.int32))
        weights.append(located.weights[at])
        spans.append(located.spans)
        n_spans += len(located.spans)
    if not spans:
        return DocumentText(name, text, None, None, None, editable_index)
    # 3) The occurrences of all vectorizers together, and what each has of its token's weight.
    words = whole_clusters(text, np.concatenate(spans).astype(np.int32))
    joined = np.concatenate(occurrences)
    counted = np.concatenate(weights)
    token = joined[:, 2]
    shares = counted / np.bincount(token, counted)[token]
    return DocumentText(name, text, words, joined, shares, editable_index)


def locate(vectorizer: CountVectorizer, text: str) -> Located | None:
    """Return the tokens of a text; None where they are not words as scikit-learn reads them."""
    if not _reads_words(vectorizer):
        return None
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
            return None
        spans.append((start, stop))
        words.append(word)
    # 2) The n-grams of words, by their first words and numbers of words.
    shortest, longest = vectorizer.ngram_range
    sizes = np.arange(shortest, longest + 1)
    counts = (len(words) - sizes + 1).clip(min=0)
    first = ranges(np.zeros_like(counts), counts)
    lengths = np.repeat(sizes, counts)
    terms = []
    for at, length in zip(first.tolist(), lengths.tolist(), strict=True):
        terms.append(" ".join(words[at : at + length]))
    # 3) The words in the text. Dropped characters, such as an accent, belong to the character
    # before them.
    sizes_of = {character: len(preprocess(character)) for character in set(text)}
    n_made = np.fromiter(map(sizes_of.__getitem__, text), np.intp, len(text))
    present = np.flatnonzero(n_made)
    edges = np.append(present, len(text))
    origin = np.repeat(np.arange(len(present)), n_made[present])
    starts, stops = np.array(spans, dtype=np.intp).reshape(-1, 2).T
    in_text = np.column_stack([edges[origin[starts]], edges[origin[stops - 1] + 1]])
    return Located(in_text, first, lengths, terms, np.ones(len(terms)))


def _reads_words(vectorizer: CountVectorizer) -> bool:
    """Return whether a vectorizer reads words by scikit-learn's own methods."""
    kind = type(vectorizer)
    for name in _READING:
        if getattr(kind, name) is not getattr(CountVectorizer, name):
            return False
    if vectorizer.preprocessor is not None or vectorizer.tokenizer is not None:
        return False
    return vectorizer.analyzer == "word" and not callable(vectorizer.strip_accents)


def _in_context(vectorizer: ContextVectorizer, text: str) -> Located | None:
    """Return the words and n-grams of words of a text; None where the text does not have them."""
    occurrences = vectorizer.occurrences(text)
    if (occurrences.words < 0).any():
        return None
    terms = occurrences.terms.tolist()
    lengths = np.array([term.count(" ") + 1 for term in terms], dtype=np.intp)
    return Located(occurrences.words, occurrences.first_words, lengths, terms, occurrences.weights)


def cut(text: DocumentText, contributions: Array, attention: Array) -> list[Segment]:
    """Return a text as segments that end where its words do; as one without positions.

    A token's contribution is shared among its occurrences by what each counts, and an n-gram's
    equally among its words: segments add up to the tokens.
    """
    if text.words is None or text.occurrences is None or text.shares is None:
        return [Segment(text.text)]
    # 1) Every word of every occurrence, with the occurrence's number.
    first, length, tokens = text.occurrences.T
    occurrence = np.repeat(np.arange(len(tokens)), length)
    starts, stops = text.words[ranges(first, length)].T
    # 2) The edges of segments: of words, and of runs of words that overlap.
    n_characters = len(text.text)
    changes = np.bincount(starts, minlength=n_characters + 1)
    changes -= np.bincount(stops, minlength=n_characters + 1)
    is_read = np.cumsum(changes) > 0
    runs = np.flatnonzero(np.diff(is_read, prepend=False))
    edges = np.unique(np.concatenate([[0, n_characters], starts, stops, runs])).astype(np.intp)
    # 3) Every segment of every word, with the part of the token that it has.
    low = np.searchsorted(edges, starts, side="right") - 1
    n_segments = np.searchsorted(edges, stops) - low
    segment = ranges(low, n_segments)
    word = np.repeat(np.arange(len(starts)), n_segments)
    token = tokens[occurrence[word]]
    part_starts = np.maximum(starts[word], edges[segment])
    part_stops = np.minimum(stops[word], edges[segment + 1])
    inside = part_stops - part_starts
    word_share = (text.shares / length)[occurrence[word]]
    share = word_share * inside / (stops - starts)[word]
    # 4) The sums over each segment, and its tokens.
    added = np.bincount(segment, share * contributions[token], len(edges)).tolist()
    attended = np.bincount(segment, share * attention[token], len(edges)).tolist()
    n_tokens = len(contributions)
    pairs = np.unique(segment * n_tokens + token)
    ends = np.searchsorted(pairs, np.arange(len(edges) + 1) * n_tokens).tolist()
    pair_tokens = (pairs % max(n_tokens, 1)).tolist()
    segments = []
    for at, (start, stop) in enumerate(pairwise(edges.tolist())):
        members = tuple(pair_tokens[ends[at] : ends[at + 1]])
        segments.append(Segment(text.text[start:stop], members, added[at], attended[at]))
    return segments


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
