"""The positions of a vectorizer's character n-grams in a text, or None where they are unknown.

Around words ("char_wb") the vectorizer adds spaces that are not in the text: an n-gram with one
stands where its other characters are, and the space alone at the word's nearest character.
"""

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from .spans import Preprocessed, is_inherited
from .weighted_spans import WeightedSpans


class CharacterSpanFinder:
    """Finds the positions of a fitted CountVectorizer's character n-grams in texts."""

    def __init__(self, vectorizer: CountVectorizer) -> None:
        self._preprocessed = Preprocessed(vectorizer)
        self._analyze = vectorizer.build_analyzer()
        self._within_words = vectorizer.analyzer == "char_wb"
        self._shortest, self._longest = vectorizer.ngram_range

    @staticmethod
    def reads(vectorizer: CountVectorizer) -> bool:
        """Whether a vectorizer counts character n-grams in scikit-learn's way."""
        return vectorizer.analyzer in ("char", "char_wb") and is_inherited(
            vectorizer, "build_analyzer"
        )

    def find(self, text: str) -> WeightedSpans | None:
        """Return a text's n-grams and their places; None where these are unknown."""
        processed, places = self._preprocessed.of(text)
        if places is None:
            return None
        found = list((self._in_words if self._within_words else self._in_text)(processed))
        terms = [term for term, _, _ in found]
        if Counter(terms) != Counter(self._analyze(text)):
            return None
        rows = [(places.start(start), places.stop(stop)) for _, start, stop in found]
        n = len(rows)
        return WeightedSpans(
            np.array(rows, dtype=np.int32).reshape(-1, 2),
            np.arange(n, dtype=np.int32),
            np.zeros(n, dtype=np.int32),
            terms,
            np.ones(n),
        )

    def _in_words(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the n-grams of every word and a space on either side, with start and stop."""
        for word in re.finditer(r"\S+", text):
            spaced, (begin, end) = f" {word.group()} ", word.span()
            for n in range(self._shortest, self._longest + 1):
                last = max(0, len(spaced) - n)
                for at in range(last + 1):
                    start = min(max(begin + at - 1, begin), end - 1)
                    stop = max(min(begin + at - 1 + n, end), begin + 1)
                    yield spaced[at : at + n], start, stop
                if not last:  # the word as a whole is counted once
                    break

    def _in_text(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the n-grams of a text in which white space is single, with start and stop."""
        spans = [one.span() for one in re.finditer(r"\s\s+|[\s\S]", text)]
        single = "".join(" " if b > a + 1 else text[a] for a, b in spans)
        for n in range(self._shortest, self._longest + 1):
            for at in range(len(spans) - n + 1):
                yield single[at : at + n], spans[at][0], spans[at + n - 1][1]
