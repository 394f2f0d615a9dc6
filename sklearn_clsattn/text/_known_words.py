"""Words that people know: those that no text has, trusted ones, and keywords of classes."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._bags import Bags, TrustedTokens
from .._types import Array
from ._character_ngrams import CHARACTER_PREFIX
from ._tokens import Tokens

StopWord = str | re.Pattern[str]
TrustedWords = Mapping[Any, Collection[str]] | Collection[str]
Phrase = tuple[str, ...]

NO_CLASS = object()
"""In place of a label, where words are trusted without one."""

ENOUGH_WORDS = 3.0
"""With so many trusted words in a text, other words are evidence for half."""


class StopWords:
    """Tokens, and patterns of whole tokens, that are left out."""

    def __init__(self, words: Iterable[StopWord]) -> None:
        every_word = list(words)
        self._words = frozenset(word for word in every_word if isinstance(word, str))
        self._patterns = [word for word in every_word if isinstance(word, re.Pattern)]

    def __contains__(self, token: object) -> bool:
        return token in self._words or any(one.fullmatch(str(token)) for one in self._patterns)


def checked_stop_words(
    stop_words: Iterable[Any], tokens_of: Callable[[list[str]], Tokens], *, lowercase: bool
) -> list[StopWord]:
    """Return the tokens that stop words are, and patterns, which ignore case if `lowercase`.

    `tokens_of` returns the tokens of texts.
    """
    every_word = list(stop_words)
    words = [word for word in every_word if isinstance(word, str)]
    patterns = [word for word in every_word if isinstance(word, re.Pattern)]
    for word in every_word:
        if not isinstance(word, str | re.Pattern):
            raise TypeError(f"stop_words are words or compiled patterns, got {word!r}.")
    # 1) words
    tokens = tokens_of(words)
    checked: list[StopWord] = []
    for word, start, stop in zip(words, tokens.indptr[:-1], tokens.indptr[1:], strict=True):
        names = [tokens.words[number] for number in tokens.ids[start:stop]]
        if len(names) != 1:
            which = f"the tokens {', '.join(names)}: pass them one by one" if names else "no token"
            raise ValueError(f"A stop word is one token of a text, but {word!r} is {which}.")
        checked += names
    # 2) patterns
    for pattern in patterns:
        if pattern.fullmatch(""):
            raise ValueError(f"The pattern {pattern.pattern!r} of stop_words matches no character.")
        flags = pattern.flags | re.IGNORECASE if lowercase else pattern.flags
        checked.append(re.compile(pattern.pattern, flags))
    return checked


def words_of_classes(
    parameter: str, words: Mapping[Any, Any], tokens_of: Callable[[list[str]], Tokens]
) -> dict[Phrase, tuple[Any, str]]:
    """Return the tokens of each word or phrase, with its label and as it was given.

    `tokens_of` returns the tokens of texts, and `parameter` is whose value `words` are.
    """
    found: dict[Phrase, tuple[Any, str]] = {}
    for label, given in words.items():
        where = parameter if label is NO_CLASS else f"{parameter} of {label!r}"
        is_list = isinstance(given, Iterable) and not isinstance(given, str)
        if not is_list or not len(given) or not all(isinstance(name, str) for name in given):
            raise ValueError(f"{where} must be a list of words, got {given!r}.")
        tokens = tokens_of(list(given))
        every_token = [tokens.words[number] for number in tokens.ids.tolist()]
        for name, (start, stop) in zip(given, pairwise(tokens.indptr.tolist()), strict=True):
            if start == stop:
                raise ValueError(f"{name!r} in {where} has no token.")
            other, _ = found.setdefault(tuple(every_token[start:stop]), (label, name))
            if other != label:
                raise ValueError(f"{name!r} is in {parameter} of both {other!r} and {label!r}.")
    return found


def checked_trusted_words(
    trusted_words: TrustedWords,
    tokens_of: Callable[[list[str]], Tokens],
    stop_words: StopWords,
    ngram_range: tuple[int, int],
) -> dict[str, Any]:
    """Return the n-grams that trusted words are, with the label of each, or `NO_CLASS`."""
    by_class = trusted_words
    if not isinstance(by_class, Mapping):
        by_class = {NO_CLASS: list(trusted_words)}
    terms = {}
    for phrase, (label, name) in words_of_classes("trusted_words", by_class, tokens_of).items():
        shortest, longest = ngram_range
        if not shortest <= len(phrase) <= longest:
            raise ValueError(
                f"{name!r} in trusted_words has {len(phrase)} tokens: choose an ngram_range with "
                f"n-grams of so many, got {ngram_range}."
            )
        if any(token in stop_words for token in phrase):
            raise ValueError(f"{name!r} is in trusted_words, and in stop_words, or a word of it.")
        terms[" ".join(phrase)] = label
    return terms


def trusted_tokens(
    terms: Mapping[str, Any], names: NDArray[np.object_], bags: Bags, weights: Array, spelled: Any
) -> TrustedTokens:
    """Return the trusted tokens among columns with these names.

    `bags` are those of documents of these weights, in which the mean weight of trusted n-grams
    counts. `spelled`, CSR (n_some, n_tokens), are the columns of the first ones by themselves,
    with their character n-grams.
    """
    labels = [label for label in dict.fromkeys(terms.values()) if label is not NO_CLASS]
    # 1) the columns that speak for classes
    is_term = np.array([name in terms for name in names.tolist()], dtype=bool)
    numbers = np.full(len(names), -1)
    if labels:
        numbers[is_term] = [labels.index(terms[name]) for name in names[is_term].tolist()]
    spoken_for = np.flatnonzero(numbers >= 0)
    # 2) the factor of all that have no trusted n-gram in them
    n_terms = float(weights @ bags.dot(is_term.astype(np.float32)) / weights.sum())
    lengths = {name.count(" ") + 1 for name in terms}
    is_trusted = np.array([_has_part(name, terms, lengths) for name in names.tolist()], bool)
    factors = np.where(is_trusted, 1.0, ENOUGH_WORDS / (ENOUGH_WORDS + n_terms))
    return TrustedTokens(labels, numbers, factors, spelled[spoken_for])


def _has_part(name: str, terms: Mapping[str, Any], lengths: Collection[int]) -> bool:
    """Return whether an n-gram of words has a part, of one of some lengths, among terms."""
    if name.startswith(CHARACTER_PREFIX):
        return False
    words = name.split(" ")
    return any(
        " ".join(words[start : start + length]) in terms
        for length in lengths
        for start in range(len(words) - length + 1)
    )
