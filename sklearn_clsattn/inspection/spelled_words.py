"""Character n-grams of a document's texts, put together by the word that they are in."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .removal import row_sums
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
    # For each text, where its stretches between white space end but the last, and their words.
    # White space belongs to the stretch behind it, at the end of a text to the one before.
    places: list[tuple[list[int], dict[int, Word]]]


def spelled_words(texts: Iterable[DocumentText], numbers: NDArray[np.float64]) -> SpelledWords:
    """Return the words that character n-grams spell; `numbers` are (n_tokens, n_numbers)."""
    found = SpelledWords(set(), {}, [])
    for text in texts:
        stretches = list(re.finditer(r"\S+", text.text))
        ends, words = [stretch.end() for stretch in stretches[:-1]], dict[int, Word]()
        found.places.append((ends, words))
        if text.words is None or text.occurrences is None or text.shares is None or not stretches:
            continue
        inside = (text.occurrences[:, 1] == 0) & (text.occurrences[:, 2] >= 0)
        first, _, token = text.occurrences[inside].T
        found.tokens.update(token.tolist())
        at = np.searchsorted(ends, text.words[first, 0], side="right")
        family = "characters" if text.name is None else f"characters, {text.name}"
        known: dict[str, Word] = {}
        for stretch in np.flatnonzero(np.bincount(at)).tolist():
            word = stretches[stretch].group().lower()
            if word not in known:
                known[word] = Word(family, re.sub(r"^\W+|\W+$", "", word) or word)
            words[stretch] = known[word]
        order = {word: number for number, word in enumerate(dict.fromkeys(words.values()))}
        number = np.zeros(len(stretches), dtype=np.intp)
        number[list(words)] = [order[word] for word in words.values()]
        sums = row_sums(numbers[token] * text.shares[inside, None], number[at], len(order))
        for key, added in zip(order, sums, strict=True):
            found.sums[key] = found.sums.get(key, 0.0) + added
    return found
