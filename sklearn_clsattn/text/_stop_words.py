"""Words that a vectorizer leaves out of every text."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from ._tokens import Tokens

StopWord = str | re.Pattern[str]


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
