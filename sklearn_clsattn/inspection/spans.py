"""Where the tokens of a vectorizer stand in a text, or the plain statement that nobody can say.

Words are found as the vectorizer finds them: its public preprocessor, its token pattern, its
stop words and its range of n-grams. The preprocessor may change lengths (an accent that goes, a
ligature that becomes two letters), so places are mapped back character by character. Where code
of the user's own takes part, what is found is held against the vectorizer's own analyzer, and
given up if the two differ: no places are better than wrong ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

# What a lower-case sigma looks like depends on what follows it, its length does not.
_FINAL_SIGMA = str.maketrans("ς", "σ")


@dataclass(frozen=True)
class Spans:
    """The words of a text and the tokens that they make.

    Parameters
    ----------
    words : ndarray of shape (n_words, 2)
        Where each word starts and stops in the text; without stop words.
    grams : dict of int to list of str
        For each number of words, the tokens that begin at each word, in order.
    """

    words: NDArray[np.int32]
    grams: dict[int, list[str]]


class SpanFinder:
    """Finds the places of a vectorizer's tokens in texts.

    Parameters
    ----------
    vectorizer : CountVectorizer or TfidfVectorizer
        A fitted vectorizer.
    """

    def __init__(self, vectorizer: CountVectorizer) -> None:
        self._pattern = _word_pattern(vectorizer)
        if self._pattern is None:
            return
        self._preprocess = vectorizer.build_preprocessor()
        self._analyze = vectorizer.build_analyzer()
        self._stop_words = vectorizer.get_stop_words() or frozenset()
        self._shortest, self._longest = vectorizer.ngram_range
        self._plain = vectorizer.preprocessor is None and not callable(vectorizer.strip_accents)
        self._own = not self._plain or _defined_by(vectorizer, "build_preprocessor") is not (
            CountVectorizer.build_preprocessor
        )
        self._pieces: dict[str, str] = {}

    def find(self, text: str) -> Spans | None:
        """Return the words and tokens of a text.

        Parameters
        ----------
        text : str
            The text as the vectorizer is given it.

        Returns
        -------
        spans : Spans or None
            None where the tokens' places cannot be told.
        """
        if self._pattern is None:
            return None
        processed = self._preprocess(text)
        if not isinstance(processed, str):
            return None
        places = self._places(text, processed)
        if places is None:
            return None
        group = 1 if self._pattern.groups else 0
        spans = [match.span(group) for match in self._pattern.finditer(processed)]
        if any(start == stop for start, stop in spans):  # an empty token stands nowhere
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
        if self._own and Counter(chain(*grams.values())) != Counter(self._analyze(text)):
            return None
        places_of_words = np.fromiter(chain.from_iterable(spans), dtype=np.int32)
        return Spans(places_of_words.reshape(-1, 2), grams)

    def _places(self, text: str, processed: str) -> _Places | None:
        """Return the map from places in the processed text to places in the text."""
        if processed == text or (self._plain and text.isascii()):
            return _Places(None, len(text)) if len(processed) == len(text) else None
        try:
            pieces = [self._piece(character) for character in text]
        except Exception:  # a preprocessor of the user's own need not take single characters
            return None
        joined = "".join(pieces)
        if joined != processed and (
            not self._plain or joined.translate(_FINAL_SIGMA) != processed.translate(_FINAL_SIGMA)
        ):
            return None
        return _Places(pieces, len(text))

    def _piece(self, character: str) -> str:
        if character not in self._pieces:
            self._pieces[character] = self._preprocess(character)
        return self._pieces[character]


class _Places:
    """Where the characters of a processed text come from; one to one without pieces."""

    def __init__(self, pieces: list[str] | None, length: int) -> None:
        self.same = pieces is None
        self._pieces = pieces
        self._length = length
        if pieces is not None:
            self._origins = [at for at, piece in enumerate(pieces) for _ in piece]

    def start(self, place: int) -> int:
        return place if self._pieces is None else self._origins[place]

    def stop(self, place: int) -> int:
        if self._pieces is None:
            return place
        stop = self._origins[place - 1] + 1
        # What the preprocessor dropped after a letter, such as its accent, belongs to it.
        while stop < self._length and not self._pieces[stop]:
            stop += 1
        return stop


def _word_pattern(vectorizer: Any) -> re.Pattern[str] | None:
    """Return the pattern of the vectorizer's words, None where it finds them in another way."""
    if vectorizer.analyzer != "word" or vectorizer.tokenizer is not None:
        return None
    for method in ("build_analyzer", "build_tokenizer"):
        if _defined_by(vectorizer, method) is not _defined_by(CountVectorizer, method):
            return None
    if not isinstance(vectorizer.token_pattern, str | re.Pattern):
        return None
    pattern = re.compile(vectorizer.token_pattern)
    return pattern if isinstance(pattern.pattern, str) and pattern.groups <= 1 else None


def _defined_by(thing: Any, method: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(
        thing if isinstance(thing, type) else type(thing), method
    )
    return function
