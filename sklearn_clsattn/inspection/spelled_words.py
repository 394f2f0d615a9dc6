"""Character n-grams of a document's texts, put together by the word that they are in."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .terms import DocumentText


class Word(NamedTuple):
    """A word in lower case, and the family of n-grams that spell it, with the text's name."""

    family: str
    text: str

    @property
    def name(self) -> str:
        """As explanations list it."""
        return f"{self.text} ({self.family})"


class SpelledWords(NamedTuple):
    """What character n-grams add up to, word by word."""

    tokens: set[int]  # those that have places in words
    sums: dict[Word, NDArray[np.float64]]  # of the tokens' numbers, in the order of the texts
    # For each text, where its stretches between white space end, and the words in them.
    places: list[tuple[list[int], dict[int, Word]]]


def spelled_words(texts: Iterable[DocumentText], numbers: NDArray[np.float64]) -> SpelledWords:
    """Return the words that character n-grams spell; `numbers` are (n_tokens, n_numbers)."""
    found = SpelledWords(set(), {}, [])
    for text in texts:
        stretches = list(re.finditer(r"\S+", text.text))
        ends, words = [stretch.end() for stretch in stretches], dict[int, Word]()
        found.places.append((ends, words))
        if text.words is None or text.occurrences is None or text.shares is None:
            continue
        inside = (text.occurrences[:, 1] == 0) & (text.occurrences[:, 2] >= 0)
        first, _, token = text.occurrences[inside].T
        found.tokens.update(token.tolist())
        shares = numbers[token] * text.shares[inside, None]
        at = np.searchsorted(ends, text.words[first, 0], side="right")
        family = "characters" if text.name is None else f"characters, {text.name}"
        for number in np.unique(at).tolist():
            word = stretches[number].group().lower()
            words[number] = key = Word(family, re.sub(r"^\W+|\W+$", "", word) or word)
            found.sums[key] = found.sums.get(key, 0.0) + shares[at == number].sum(axis=0)
    return found
