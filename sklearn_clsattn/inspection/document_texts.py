"""The texts of documents, with the positions of the model's tokens in them."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..text._context_vectorizer import ContextVectorizer
from .character_spans import CharacterSpanFinder
from .spans import SpanFinder, Spans
from .terms import DocumentText
from .trace import Trace
from .weighted_spans import WeightedSpanFinder, WeightedSpans

Finder = SpanFinder | CharacterSpanFinder | WeightedSpanFinder


def document_texts(
    traced: Trace, documents: Any, X: sp.csr_array, kept: NDArray[np.bool_]
) -> tuple[tuple[DocumentText, ...], ...]:
    """Return each document's texts with its tokens' positions, an empty tuple without text."""
    if not traced.sources:
        return ((),) * X.shape[0]
    # Numbers of the kept entries in their document, -1 for those summed up as others.
    before = np.concatenate([[0], np.cumsum(kept)])
    numbers = np.where(kept, before[:-1] - np.repeat(before[X.indptr[:-1]], np.diff(X.indptr)), -1)
    terms, sources = traced.columns.terms[X.indices], traced.columns.sources[X.indices]
    fields: dict[tuple[Any, ...], dict[int, Finder]] = {}
    for source, (vectorizer, reads) in enumerate(traced.sources):
        finder = _finder(vectorizer)
        if finder is not None:
            fields.setdefault(reads.key, {})[source] = finder
    inputs = {reads.key: reads for _, reads in traced.sources}
    contents = {key: inputs[key].of(documents) for key in fields}
    texts = []
    for i in range(X.shape[0]):
        own = slice(X.indptr[i], X.indptr[i + 1])
        known = _Known(sources[own], terms[own], numbers[own])
        parts = []
        for key, finders in fields.items():
            vectorizer = traced.sources[next(iter(finders))][0]
            text = contents[key][i]
            if not isinstance(vectorizer, ContextVectorizer):
                text = vectorizer.decode(text)
            if isinstance(text, str):
                parts.append(_located(inputs[key].name, text, finders, known))
        texts.append(tuple(parts))
    return tuple(texts)


def _finder(vectorizer: Any) -> Finder | None:
    if isinstance(vectorizer, ContextVectorizer):
        return WeightedSpanFinder(vectorizer)
    if vectorizer.input == "file":  # which cannot be read twice
        return None
    if CharacterSpanFinder.reads(vectorizer):
        return CharacterSpanFinder(vectorizer)
    return SpanFinder(vectorizer)


class _Known:
    """The tokens of one document, by vectorizer and by its names of them."""

    def __init__(
        self, sources: NDArray[np.intp], terms: NDArray[np.object_], numbers: NDArray[np.intp]
    ) -> None:
        self._layers: dict[int, list[dict[str, int]]] = {}
        for source in np.unique(sources).tolist():
            here = sources == source
            pairs = list(zip(terms[here].tolist(), numbers[here].tolist(), strict=True))
            layers = [dict(pairs)]
            if len(layers[0]) < len(pairs):  # a union has the token in several columns
                layers = []
                for term, number in pairs:
                    layer = next((one for one in layers if term not in one), None)
                    if layer is None:
                        layers.append(layer := {})
                    layer[term] = number
            self._layers[source] = layers

    def occurrences(self, source: int, spans: Spans | WeightedSpans) -> tuple[Any, Any]:
        """Return each occurrence's first word, number of words and token, (n, 3), and count."""
        first, lengths, terms, weights = spans.occurrences()
        rows, counts = [np.zeros((0, 3), dtype=np.int32)], [np.zeros(0)]
        for layer in self._layers.get(source, ()):
            absent = -2
            numbers = np.fromiter((layer.get(term, absent) for term in terms), np.int32)
            here = numbers != absent
            rows.append(np.stack([first, lengths, numbers], axis=1)[here].astype(np.int32))
            counts.append(weights[here])
        return np.concatenate(rows), np.concatenate(counts)


def _located(
    name: str | None, text: str, finders: dict[int, Finder], known: _Known
) -> DocumentText:
    words: list[NDArray[np.int32]] = []
    occurrences: list[NDArray[np.int32]] = []
    weights: list[NDArray[np.float64]] = []
    n_words = 0
    for source, finder in finders.items():
        spans = finder.find(text)
        if spans is None:
            continue
        found, counts = known.occurrences(source, spans)
        found[:, 0] += n_words
        occurrences.append(found)
        weights.append(counts)
        words.append(spans.words)
        n_words += len(spans.words)
    if not words:
        return DocumentText(name, text, None, None, None)
    joined = np.concatenate(occurrences)
    numbers, counted = joined[:, 2], np.concatenate(weights)
    shares = counted / np.bincount(numbers + 1, counted)[numbers + 1]
    shares[numbers < 0] = 0.0
    return DocumentText(name, text, np.concatenate(words), joined, shares)
