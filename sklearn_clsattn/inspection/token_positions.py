"""Where the tokens of a document stand in its texts; nowhere rather than in a wrong place.

Words and characters are found as the vectorizer finds them. Its preprocessor may change lengths (a
dropped accent), so positions are mapped back character by character, and with custom
preprocessing the tokens found are compared with those of the vectorizer's own analyzer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from ..text._context_vectorizer import ContextVectorizer
from .feature_origins import FeatureOrigins, vectorizer_terms
from .removal import row_sums
from .terms import DocumentText

Integers = NDArray[Any]

# The form of a lower-case sigma depends on the next character, its length does not.
_FINAL_SIGMA = str.maketrans("ς", "σ")


class Located(NamedTuple):
    """The occurrences of a vectorizer's tokens in a text."""

    spans: Integers  # (n_words, 2): start and stop of every word, or character n-gram
    first: Integers  # (n_occurrences,): the occurrence's first row of `spans`
    lengths: Integers  # (n_occurrences,): its number of words, 0 for a character n-gram
    terms: list[str]
    weights: NDArray[np.float64]  # (n_occurrences,): what it counts


class CountLocator:
    """Locates the words or character n-grams of a fitted CountVectorizer."""

    def __init__(self, vectorizer: CountVectorizer) -> None:
        def inherits(*methods: str) -> bool:
            kind = type(vectorizer)
            return all(getattr(kind, name) is getattr(CountVectorizer, name) for name in methods)

        self._vectorizer = vectorizer
        self._preprocess = vectorizer.build_preprocessor()
        self._analyze = vectorizer.build_analyzer()
        self._stop_words = vectorizer.get_stop_words()
        self._is_by_character = vectorizer.analyzer in ("char", "char_wb") and inherits(
            "build_analyzer"
        )
        self._pattern = None  # of words; None where the vectorizer does not use one
        reads_words = vectorizer.analyzer == "word" and vectorizer.tokenizer is None
        if reads_words and inherits("build_analyzer", "build_tokenizer"):
            self._pattern = _word_pattern(vectorizer.token_pattern)
        self._is_plain = not (vectorizer.preprocessor or callable(vectorizer.strip_accents))
        # scikit-learn's own words need no comparison with the analyzer's.
        self._is_checked = self._is_by_character or not (
            self._is_plain and inherits("build_preprocessor")
        )

    def locate(self, text: str) -> Located | None:
        """Return the tokens of a text; None where their positions are unknown."""
        if self._pattern is None and not self._is_by_character:
            return None
        processed = self._preprocess(text)
        origins = self._origins(text, processed) if isinstance(processed, str) else None
        if origins is None:
            return None
        if self._is_by_character:
            ngrams = list(self._character_ngrams(processed))
            terms, spans = [one[0] for one in ngrams], [one[1:] for one in ngrams]
            first, lengths = np.arange(len(terms)), np.zeros(len(terms), dtype=np.intp)
        else:
            spans = self._words(processed)
            if any(start == stop for start, stop in spans):  # an empty token has no position
                return None
            terms, first, lengths = self._word_ngrams([processed[a:b] for a, b in spans])
        if self._is_checked and Counter(terms) != Counter(self._analyze(text)):
            return None
        places = np.array(spans, dtype=np.intp).reshape(-1, 2)
        starts, stops = origins
        places = np.column_stack([starts[places[:, 0]], stops[places[:, 1] - 1]])
        return Located(places, first, lengths, terms, np.ones(len(terms)))

    def _origins(self, text: str, processed: str) -> tuple[Integers, Integers] | None:
        """Return where the origin of each processed character starts and stops in the text."""
        n = len(text)
        if processed == text or (self._is_plain and text.isascii()):
            every = np.arange(n)
            return (every, every + 1) if len(processed) == n else None
        try:
            made = {character: self._preprocess(character) for character in set(text)}
        except Exception:  # a custom preprocessor need not accept single characters
            return None
        joined = "".join([made[character] for character in text])
        if joined != processed and (
            not self._is_plain
            or joined.translate(_FINAL_SIGMA) != processed.translate(_FINAL_SIGMA)
        ):
            return None
        lengths = np.array([len(made[character]) for character in text], dtype=np.intp)
        # Dropped characters, such as an accent, belong to the character before them.
        present = np.flatnonzero(lengths)
        lengths = lengths[present]
        return np.repeat(present, lengths), np.repeat(np.append(present, n)[1:], lengths)

    def _words(self, text: str) -> list[tuple[int, int]]:
        """Return start and stop of the words of a text, without stop words."""
        assert self._pattern is not None
        group = 1 if self._pattern.groups else 0
        spans = [match.span(group) for match in self._pattern.finditer(text)]
        if self._stop_words:
            spans = [span for span in spans if text[slice(*span)] not in self._stop_words]
        return spans

    def _word_ngrams(self, words: list[str]) -> tuple[list[str], Integers, Integers]:
        """Return the n-grams of words, the first word of each and its number of words."""
        shortest, longest = self._vectorizer.ngram_range
        sizes = range(shortest, longest + 1)
        counts = [max(len(words) - n + 1, 0) for n in sizes]
        terms = [
            " ".join(words[at : at + n])
            for n, count in zip(sizes, counts, strict=True)
            for at in range(count)
        ]
        first = np.concatenate([np.arange(count) for count in counts])
        return terms, first, np.repeat(sizes, counts)

    def _character_ngrams(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield the character n-grams of a text, with start and stop."""
        shortest, longest = self._vectorizer.ngram_range
        if self._vectorizer.analyzer == "char":  # of the text, with white space made single
            spans = [one.span() for one in re.finditer(r"\s\s+|[\s\S]", text)]
            single = "".join(" " if b > a + 1 else text[a] for a, b in spans)
            for n in range(shortest, longest + 1):
                for at in range(len(spans) - n + 1):
                    yield single[at : at + n], spans[at][0], spans[at + n - 1][1]
            return
        # Around words there are spaces that are not in the text: an n-gram with one stands where
        # its other characters are, and the space alone at the word's nearest character.
        for word in re.finditer(r"\S+", text):
            spaced, (begin, end) = f" {word.group()} ", word.span()
            for n in range(shortest, longest + 1):
                last = max(0, len(spaced) - n)
                for at in range(last + 1):
                    start = min(max(begin + at - 1, begin), end - 1)
                    stop = max(min(begin + at - 1 + n, end), begin + 1)
                    yield spaced[at : at + n], start, stop
                if not last:  # the word as a whole is counted once
                    break


class ContextLocator:
    """Locates the features of a fitted ContextVectorizer."""

    def __init__(self, vectorizer: ContextVectorizer) -> None:
        self._vectorizer = vectorizer
        self._terms = vectorizer_terms(vectorizer)

    def locate(self, text: str) -> Located:
        """Return the features of a text."""
        found = self._vectorizer.occurrences(text)
        terms = self._terms[found.columns].tolist()
        n = int(np.count_nonzero(found.columns < len(self._vectorizer.vocabulary_)))
        lengths = np.zeros(len(terms), dtype=np.intp)  # character n-grams come last
        lengths[:n] = [term.count(" ") + 1 for term in terms[:n]]
        first = np.searchsorted(found.words[:, 0], found.starts[:n])
        # Where a letter becomes two in lower case, two words may begin at it.
        first += found.words[first + lengths[:n] - 1, 1] != found.stops[:n]
        first = np.append(first, len(found.words) + np.arange(len(terms) - n))
        ngrams = np.stack([found.starts[n:], found.stops[n:]], axis=1)
        spans = np.concatenate([found.words, ngrams])
        return Located(spans, first, lengths, terms, found.weights)


def document_texts(
    origins: FeatureOrigins, documents: Any, X: sp.csr_array, is_listed: NDArray[np.bool_]
) -> tuple[tuple[DocumentText, ...], ...]:
    """Return each document's texts with its tokens' positions, an empty tuple without text."""
    # Vectorizers of the same text are located together.
    inputs, locators = {}, dict[Any, dict[int, CountLocator | ContextLocator]]()
    for source, (vectorizer, text_input) in enumerate(origins.sources):
        weighted = isinstance(vectorizer, ContextVectorizer)
        if weighted or vectorizer.input != "file":  # which cannot be read twice
            inputs[text_input.key] = text_input.name, vectorizer, text_input.of(documents)
            locator = ContextLocator(vectorizer) if weighted else CountLocator(vectorizer)
            locators.setdefault(text_input.key, {})[source] = locator
    # Numbers of the listed entries in their document, -1 for those summed up as others.
    before = np.concatenate([[0], np.cumsum(is_listed)])
    first = np.repeat(before[X.indptr[:-1]], np.diff(X.indptr))
    numbers = np.where(is_listed, before[:-1] - first, -1).tolist()
    sources = origins.columns.sources[X.indices].tolist()
    terms = origins.columns.terms[X.indices].tolist()
    texts = []
    for i in range(X.shape[0]):
        # By source and term; a union may have a token in several columns.
        tokens: list[dict[str, tuple[int, ...]]] = [{} for _ in origins.sources]
        for entry in range(X.indptr[i], X.indptr[i + 1]):
            if sources[entry] >= 0:
                of_source, term = tokens[sources[entry]], terms[entry]
                of_source[term] = (*of_source.get(term, ()), numbers[entry])
        parts = []
        for key, (name, vectorizer, contents) in inputs.items():
            text = contents[i]
            if not isinstance(vectorizer, ContextVectorizer):
                text = vectorizer.decode(text)
            if isinstance(text, str):
                parts.append(_document_text(name, text, locators[key], tokens))
        texts.append(tuple(parts))
    return tuple(texts)


def _document_text(
    name: str | None,
    text: str,
    locators: dict[int, CountLocator | ContextLocator],
    tokens: list[dict[str, tuple[int, ...]]],
) -> DocumentText:
    """Return a text with the occurrences of the document's tokens in it."""
    spans: list[Integers] = []
    occurrences, weights, n_spans = [], [], 0
    for source, locator in locators.items():
        located = locator.locate(text)
        if located is None:
            continue
        numbers = [tokens[source].get(term, ()) for term in located.terms]
        at = np.repeat(np.arange(len(numbers)), list(map(len, numbers)))
        rows: list[Any] = [located.first[at] + n_spans, located.lengths[at], list(chain(*numbers))]
        occurrences.append(np.column_stack(rows).astype(np.int32))
        weights.append(located.weights[at])
        spans.append(located.spans)
        n_spans += len(located.spans)
    if not spans:
        return DocumentText(name, text, None, None, None)
    joined, counted = np.concatenate(occurrences), np.concatenate(weights)
    shares = counted / np.bincount(joined[:, 2] + 1, counted)[joined[:, 2] + 1]
    shares[joined[:, 2] < 0] = 0.0
    return DocumentText(name, text, np.concatenate(spans).astype(np.int32), joined, shares)


def spelled_words(
    texts: Iterable[DocumentText], numbers: NDArray[np.float64]
) -> tuple[set[int], dict[tuple[str, str], NDArray[np.float64]]]:
    """Return the character n-grams with positions in texts, and their sums by word.

    `numbers` of tokens, (n_tokens, n_numbers), are added up, in the order of the texts, by the word
    in lower case and the family of n-grams that spell it, which has the text's name where there are
    several. White space belongs to the word behind it, at the end of a text to the one before.
    """
    tokens, sums = set[int](), dict[tuple[str, str], NDArray[np.float64]]()
    for text in texts:
        words = list(re.finditer(r"\S+", text.text))
        if text.words is None or text.occurrences is None or text.shares is None or not words:
            continue
        inside = (text.occurrences[:, 1] == 0) & (text.occurrences[:, 2] >= 0)
        first, _, token = text.occurrences[inside].T
        tokens.update(token.tolist())
        ends = [word.end() for word in words[:-1]]
        at = np.searchsorted(ends, text.words[first, 0], side="right")
        family = "characters" if text.name is None else f"characters, {text.name}"
        spelled = dict[tuple[str, str], int]()  # in the order of the text
        of_word = np.zeros(len(words), dtype=np.intp)
        for number in np.flatnonzero(np.bincount(at)).tolist():
            word = words[number].group().lower()
            key = re.sub(r"^\W+|\W+$", "", word) or word, family
            of_word[number] = spelled.setdefault(key, len(spelled))
        added = row_sums(numbers[token] * text.shares[inside, None], of_word[at], len(spelled))
        for key, amounts in zip(spelled, added, strict=True):
            sums[key] = sums.get(key, 0.0) + amounts
    return tokens, sums


def _word_pattern(given: Any) -> re.Pattern[str] | None:
    """Return a token pattern compiled, None where it is not one of words."""
    pattern = re.compile(given) if isinstance(given, str | re.Pattern) else None
    usable = pattern is not None and isinstance(pattern.pattern, str) and pattern.groups <= 1
    return pattern if usable else None
