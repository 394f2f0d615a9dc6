"""The positions of a vectorizer's tokens in a text, or None where they are unknown.

Words are found as the vectorizer does. Its preprocessor may change lengths (a dropped accent), so
positions are mapped back character by character; with custom ones, the tokens found are compared
with those of the vectorizer's own analyzer.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

# The form of a lower-case sigma depends on the next character, its length does not.
_FINAL_SIGMA = str.maketrans("ς", "σ")


@dataclass(frozen=True)
class Spans:
    """The words of a text, without stop words, and its tokens."""

    words: NDArray[np.int32]  # (n_words, 2): start and stop of each word in the text
    grams: dict[int, list[str]]  # by number of words, the tokens that begin at each word, in order

    def occurrences(self) -> tuple[Any, Any, list[str], Any]:
        """Return first words, numbers of words, tokens and weights of all tokens, each (n,)."""
        counts = [len(grams) for grams in self.grams.values()]
        first = np.concatenate([np.arange(count) for count in counts])
        terms = list(chain.from_iterable(self.grams.values()))
        return first, np.repeat(list(self.grams), counts), terms, np.ones(len(terms))


class SpanFinder:
    """Finds the positions of a fitted CountVectorizer's words in texts."""

    def __init__(self, vectorizer: CountVectorizer) -> None:
        self._pattern = _word_pattern(vectorizer)
        if self._pattern is None:
            return
        self._preprocessed = Preprocessed(vectorizer)
        self._analyze = vectorizer.build_analyzer()
        self._stop_words = vectorizer.get_stop_words() or frozenset()
        self._shortest, self._longest = vectorizer.ngram_range

    def find(self, text: str) -> Spans | None:
        """Return a text's words and tokens; None where the tokens' positions are unknown."""
        if self._pattern is None:
            return None
        processed, places = self._preprocessed.of(text)
        if places is None:
            return None
        group = 1 if self._pattern.groups else 0
        spans = [match.span(group) for match in self._pattern.finditer(processed)]
        if any(start == stop for start, stop in spans):  # an empty token has no position
            return None
        words = [processed[start:stop] for start, stop in spans]
        if self._stop_words:
            read = [at for at, word in enumerate(words) if word not in self._stop_words]
            words, spans = [words[at] for at in read], [spans[at] for at in read]
        if not places.same:
            spans = [(places.start(start), places.stop(stop)) for start, stop in spans]
        grams = {
            n: words
            if n == 1
            else [" ".join(words[first : first + n]) for first in range(len(words) - n + 1)]
            for n in range(self._shortest, self._longest + 1)
        }
        if self._preprocessed.own and Counter(chain(*grams.values())) != Counter(
            self._analyze(text)
        ):
            return None
        places_of_words = np.fromiter(chain.from_iterable(spans), dtype=np.int32)
        return Spans(places_of_words.reshape(-1, 2), grams)


class Preprocessed:
    """Texts after a vectorizer's preprocessor, with the origins of their characters."""

    def __init__(self, vectorizer: CountVectorizer) -> None:
        self._preprocess = vectorizer.build_preprocessor()
        self._plain = vectorizer.preprocessor is None and not callable(vectorizer.strip_accents)
        self.own = not (self._plain and is_inherited(vectorizer, "build_preprocessor"))
        self._pieces: dict[str, str] = {}

    def of(self, text: str) -> tuple[str, Places | None]:
        """Return a preprocessed text, and its characters' origins if they are known."""
        processed = self._preprocess(text)
        if not isinstance(processed, str):
            return "", None
        return processed, self._places(text, processed)

    def _places(self, text: str, processed: str) -> Places | None:
        """Return the map from positions in the processed text to those in the text."""
        if processed == text or (self._plain and text.isascii()):
            return Places(None, len(text)) if len(processed) == len(text) else None
        try:
            pieces = [self._piece(character) for character in text]
        except Exception:  # a custom preprocessor need not accept single characters
            return None
        joined = "".join(pieces)
        if joined != processed and (
            not self._plain or joined.translate(_FINAL_SIGMA) != processed.translate(_FINAL_SIGMA)
        ):
            return None
        return Places(pieces, len(text))

    def _piece(self, character: str) -> str:
        if character not in self._pieces:
            self._pieces[character] = self._preprocess(character)
        return self._pieces[character]


class Places:
    """Origins of the characters of a processed text; one to one without pieces."""

    def __init__(self, pieces: list[str] | None, length: int) -> None:
        self.same = pieces is None
        self._pieces = pieces
        self._length = length
        if pieces is not None:
            self._origins = [at for at, piece in enumerate(pieces) for _ in piece]

    def start(self, place: int) -> int:
        """Return where what begins at a place of the processed text begins in the text."""
        return place if self._pieces is None else self._origins[place]

    def stop(self, place: int) -> int:
        """Return where what stops at a place of the processed text stops in the text."""
        if self._pieces is None:
            return place
        stop = self._origins[place - 1] + 1
        # Dropped characters, such as an accent, belong to the character before them.
        while stop < self._length and not self._pieces[stop]:
            stop += 1
        return stop


def _word_pattern(vectorizer: Any) -> re.Pattern[str] | None:
    """Return the pattern of the vectorizer's words, None where it does not use one."""
    if vectorizer.analyzer != "word" or vectorizer.tokenizer is not None:
        return None
    if not all(is_inherited(vectorizer, name) for name in ("build_analyzer", "build_tokenizer")):
        return None
    if not isinstance(vectorizer.token_pattern, str | re.Pattern):
        return None
    pattern = re.compile(vectorizer.token_pattern)
    return pattern if isinstance(pattern.pattern, str) and pattern.groups <= 1 else None


def is_inherited(vectorizer: Any, method: str) -> bool:
    """Return whether a vectorizer has CountVectorizer's own method."""
    return getattr(type(vectorizer), method) is getattr(CountVectorizer, method)
