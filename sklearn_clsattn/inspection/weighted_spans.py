"""The places of a ContextVectorizer's features in a text, and what each counts there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..text._context_vectorizer import ContextVectorizer
from .trace import vectorizer_terms


@dataclass(frozen=True)
class WeightedSpans:
    """The words of a text, then the places of character n-grams, and all occurrences."""

    words: NDArray[np.int32]  # (n_places, 2): start and stop of each in the text
    first: NDArray[np.int32]  # (n_occurrences,): the occurrence's first word, or its place
    lengths: NDArray[np.int32]  # (n_occurrences,): its number of words, 0 for characters
    terms: list[str]
    weights: NDArray[np.float64]  # (n_occurrences,)

    def occurrences(self) -> tuple[Any, Any, list[str], Any]:
        """Return first words, numbers of words, tokens and weights, each (n_occurrences,)."""
        return self.first, self.lengths, self.terms, self.weights


class WeightedSpanFinder:
    """Finds the occurrences of a fitted ContextVectorizer's features in texts."""

    def __init__(self, vectorizer: ContextVectorizer) -> None:
        self._vectorizer = vectorizer
        self._terms = vectorizer_terms(vectorizer)

    def find(self, text: str) -> WeightedSpans:
        """Return a text's words and occurrences."""
        found = self._vectorizer.occurrences(text)
        words = self._vectorizer._word_places(text)
        starts, stops = words.T.tolist()
        shortest, longest = self._vectorizer.ngram_range
        firsts = {
            (n, start, stop): at
            for n in range(shortest, longest + 1)
            for at, (start, stop) in enumerate(zip(starts, stops[n - 1 :], strict=False))
        }
        terms = self._terms[found.columns].tolist()
        inside = found.columns >= len(self._vectorizer.vocabulary_)
        n_inside = np.count_nonzero(inside)
        lengths = np.zeros(len(terms), dtype=np.int32)
        lengths[~inside] = [term.count(" ") + 1 for term in terms[: len(terms) - n_inside]]
        places = np.stack([found.starts, found.stops], axis=1)
        first = np.arange(len(terms)) - (len(terms) - n_inside) + len(words)
        keys = zip(lengths.tolist(), *places.T.tolist(), strict=True)
        first[~inside] = [firsts[key] for key in keys if key[0]]
        return WeightedSpans(
            np.concatenate([words, places[inside]]).astype(np.int32),
            first.astype(np.int32),
            lengths,
            terms,
            found.weights,
        )
