"""The tokens of texts as integers: word, document and character positions."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._validation import is_missing
from ._graphemes import (
    BREAK,
    KEYCAP,
    PICTOGRAPH,
    cluster_class,
    cluster_starts,
    joined_characters,
    may_join,
)
from ._symbols import SKIPPED, Alphabet, Symbols, distinct_runs, padded, ranges

WORDS = r"(?u)\b\w\w+\b"  # scikit-learn's default
WORDS_AND_PUNCTUATION = r"\w+(?:['’]\w+)*|[^\w\s]"
WORDS_AND_CONTRACTIONS = r"(?u)\b\w+(?:'\w+)?\b"
BETWEEN_SPACES = r"\S+"
PATTERNS = (WORDS, WORDS_AND_PUNCTUATION, WORDS_AND_CONTRACTIONS, BETWEEN_SPACES)

# Characters of scripts without spaces between words, or with many word endings: Thai, Lao,
# Burmese, Khmer, Kana, Han and Hangul.
ALONE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# Characters that are read together: few enough to stay in a processor's caches.
BLOCK = 1 << 18
_SEPARATOR = "\n"  # in no token
_FEW_DOCUMENTS = 5_000

Numbers = NDArray[np.int32]
_NONE: Numbers = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Tokens:
    """All occurrences of tokens in texts, in order.

    Occurrence j is the word ``words[ids[j]]`` at the characters ``starts[j]:stops[j]`` of its
    document; document i has the occurrences ``indptr[i]:indptr[i + 1]``.
    """

    ids: Numbers  # (n_occurrences,)
    indptr: NDArray[np.int64]  # (n_documents + 1,)
    starts: Numbers  # (n_occurrences,), or empty if not requested
    stops: Numbers
    words: list[str]  # distinct

    @property
    def n_documents(self) -> int:
        """The number of documents, including those without tokens."""
        return len(self.indptr) - 1

    @property
    def documents(self) -> Numbers:
        """The document of each occurrence, of shape (n_occurrences,)."""
        return np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(self.indptr))

    def blocks(self, size: int) -> Iterator[tuple[slice, slice, NDArray[np.int64]]]:
        """Yield blocks of consecutive documents with about `size` tokens together.

        A block is the slices of documents and of their tokens, and the documents' `indptr`.
        """
        first = 0
        while first < self.n_documents:
            after = np.searchsorted(self.indptr, self.indptr[first] + size, side="right")
            last = max(int(after) - 1, first + 1)
            indptr = self.indptr[first : last + 1]
            yield slice(first, last), slice(*indptr[[0, -1]].tolist()), indptr - indptr[0]
            first = last

    def without(self, words: frozenset[str]) -> Tokens:
        """Return the tokens without some words, and without character positions."""
        stays = np.array([word not in words for word in self.words], dtype=bool)[self.ids]
        indptr = np.append(0, np.cumsum(stays))[self.indptr]
        return Tokens(self.ids[stays], indptr, _NONE, _NONE, self.words)


def has_letters(word: str) -> bool:
    """Return whether a word contains a letter, a digit or an underscore."""
    return re.search(r"\w", word) is not None


def is_spelled(word: str) -> bool:
    """Return whether a word has character n-grams, unlike signs, emoji and Chinese characters."""
    if not has_letters(word):
        return False
    is_sign = ALONE.match(word) or KEYCAP in word or cluster_class(word[0]) == PICTOGRAPH
    return not (is_sign and len(cluster_starts(word)) == 1)


def words_differ(text: str) -> bool:
    """Return whether a text's words depend on `scripts` of :func:`tokenize`."""
    return ALONE.search(text) is not None or any(map(cluster_class, set(text)))


def tokenize(
    texts: Iterable[str], pattern: str = WORDS, *, positions: bool = True, scripts: bool = False
) -> Tokens:
    """Return the tokens that one of the `PATTERNS` matches in preprocessed texts, read once.

    With `scripts`, which needs the pattern of words and punctuation, no grapheme cluster is divided
    (emoji, letters with marks), and each cluster of scripts such as Chinese and Thai is a token.
    """
    alphabet = Alphabet({WORDS: r"\w", WORDS_AND_CONTRACTIONS: r"[\w']"}.get(pattern, r"\S"))
    # Words are numbered block by block, then all blocks' distinct words together.
    words: list[Symbols] = [np.zeros(0, np.uint8)]  # the symbols of each block's distinct words
    lengths = [np.zeros(0, np.int64)]
    counts = [np.zeros(1, np.int64)]  # of tokens, in each document
    numbers = [np.zeros(0, np.int32)]
    edges = [np.zeros((2, 0), np.int32)]
    n_words = 0
    for block in batches(texts, BLOCK):
        symbols = padded([alphabet.encode(_SEPARATOR.join(["", *block, ""]))])
        starts, stops = _token_runs(symbols, pattern, alphabet, scripts)
        sizes = np.fromiter(map(len, block), np.int64, len(block)) + 1
        origins = np.cumsum(sizes) - sizes + 1
        counts.append(np.diff(np.searchsorted(starts, np.append(origins, len(symbols)))))
        ids, examples = distinct_runs(symbols, starts, stops - starts)
        lengths.append((stops - starts)[examples])
        words.append(symbols[ranges(starts[examples], lengths[-1])])
        numbers.append((ids + n_words).astype(np.int32))
        if positions:
            shift = np.repeat(origins, counts[-1])
            edges.append(np.stack([starts - shift, stops - shift]).astype(np.int32))
        n_words += len(examples)
    symbols, length = padded(words), np.concatenate(lengths)
    at = np.cumsum(length) - length
    merged, examples = distinct_runs(symbols, at, length)
    merged = merged.astype(np.int32)
    starts, stops = np.concatenate(edges, axis=1)
    return Tokens(
        ids=np.concatenate([merged[one] for one in numbers]),
        indptr=np.cumsum(np.concatenate(counts)),
        starts=starts,
        stops=stops,
        words=alphabet.decode(symbols, at[examples], length[examples]),
    )


def _token_runs(
    symbols: Symbols, pattern: str, alphabet: Alphabet, scripts: bool
) -> tuple[Any, Any]:
    """Return where a block's tokens start and stop, two arrays of shape (n_occurrences,)."""
    word = signs = symbols > SKIPPED
    joins = None  # of the characters that belong to the one before them
    if pattern in (WORDS_AND_PUNCTUATION, WORDS_AND_CONTRACTIONS):
        word = np.array([re.match(r"\w", one) is not None for one in alphabet.characters])[symbols]
    if scripts and pattern == WORDS_AND_PUNCTUATION:
        alone = np.array([ALONE.fullmatch(one) is not None for one in alphabet.characters])
        classes = np.array(
            [cluster_class(one) if one else BREAK for one in alphabet.characters], dtype=np.uint8
        )
        word &= ~(alone | (classes == PICTOGRAPH))[symbols]
        may = may_join(classes)
        if may.any() and may[symbols].any():
            joins = joined_characters(classes[symbols])
            # A cluster is a sign or part of a word as its first character is.
            first = np.maximum.accumulate(np.where(joins, 0, np.arange(len(symbols))))
            keycap = np.array([one == KEYCAP for one in alphabet.characters])
            word[first[joins & keycap[symbols]]] = False
            word = word[first]
    if pattern == WORDS_AND_PUNCTUATION:
        apostrophe = np.array([one in ("'", "’") for one in alphabet.characters])[symbols]
        word[1:-1] |= apostrophe[1:-1] & word[:-2] & word[2:]
        signs &= ~word
        begins = ends = signs  # the first and the last characters of signs
        if joins is not None:
            begins, ends = signs & ~joins, signs & ~np.append(joins[1:], False)
        starts = np.flatnonzero((word[1:] & ~word[:-1]) | begins[1:]) + 1
        stops = np.flatnonzero((word[:-1] & ~word[1:]) | ends[:-1]) + 1
        return starts, stops
    edges = np.flatnonzero(word[1:] != word[:-1]) + 1
    starts, stops = edges[::2], edges[1::2]
    if pattern == WORDS_AND_CONTRACTIONS:
        joined = signs[stops[:-1]] & (starts[1:] - stops[:-1] == 1)
        # If apostrophes alternate with words, every other one belongs to a token.
        at = np.arange(len(joined))
        joined &= (at - np.maximum.accumulate(np.where(joined, -1, at))) % 2 == 1
        first, last = (np.insert(~joined, at, True)[: len(starts)] for at in (0, len(joined)))
        return starts[first], stops[last]
    long = stops - starts > (1 if pattern == WORDS else 0)
    return starts[long], stops[long]


def number_tokens(texts: Iterable[str], find: Callable[[str], Iterable[str]]) -> Tokens:
    """Return the tokens that a function finds in texts, without starts and stops."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    ids, ends = array("i"), [0]
    for text in texts:
        ids.extend(map(numbers.__getitem__, find(text)))
        ends.append(len(ids))
    return Tokens(np.array(ids, np.int32), np.array(ends), _NONE, _NONE, list(numbers))


def found_tokens(texts: Iterable[str], tokenizer: Callable[[str], Iterable[Any]]) -> Tokens:
    """Return the tokens that a function finds in texts, without blank ones.

    Their positions are found in the texts, in order; a token that is not there has the stop -1.
    """
    numbers: dict[str, int] = {}
    found, ends = [], [0]
    for text in texts:
        at = 0
        for token in tokenizer(text):
            word = str(token).strip()
            if len(word.split()) > 1:
                raise ValueError(
                    f"tokenizer must return tokens without white space, got {word!r}: "
                    "split them, or replace spaces by '_'."
                )
            if word:
                start, stop = text.find(word, at), -1
                if start < 0:
                    start = at
                else:
                    at = stop = start + len(word)
                found.append((numbers.setdefault(word, len(numbers)), start, stop))
        ends.append(len(found))
    ids, starts, stops = np.array(found, dtype=np.int32).reshape(-1, 3).T
    return Tokens(ids, np.array(ends), starts, stops, list(numbers))


def matched_tokens(texts: Iterable[str], pattern: str) -> Tokens:
    """Return the tokens that any regular expression matches in texts, without empty matches."""
    numbers: dict[str, int] = {}
    matches, ends = [], [0]
    for text in texts:
        for match in re.finditer(pattern, text):
            if word := match.group():
                matches.append((numbers.setdefault(word, len(numbers)), *match.span()))
        ends.append(len(matches))
    if re.compile(pattern).groups or any(word.split() != [word] for word in numbers):
        raise ValueError(
            f"token_pattern must not match white space or have a capturing group, got {pattern!r}."
        )
    ids, starts, stops = np.array(matches, dtype=np.int32).reshape(-1, 3).T
    return Tokens(ids, np.array(ends), starts, stops, list(numbers))


def batches(texts: Iterable[str], characters: int) -> Iterator[list[str]]:
    """Yield lists of consecutive texts, each of some `characters` characters."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text) + 1
        if size >= characters:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def checked(
    raw_documents: Iterable[Any], *, texts: bool = False, lowercase: bool = False
) -> Iterator[Any]:
    """Yield documents; raise ValueError for missing ones and, with `texts`, for non-strings.

    With `lowercase`, numbers and sequences are refused, which have no lower case.
    """
    check_text_container(raw_documents, one_text=texts)
    if hasattr(raw_documents, "to_pylist"):  # of pyarrow, whose items are no strings
        raw_documents = raw_documents.to_pylist()
    for at, document in enumerate(raw_documents):
        if is_missing(document):
            raise ValueError(
                f"Documents must be texts, but the one at position {at} is {document!r}: remove it "
                "and its label, or replace it by ''."
            )
        if (texts and not isinstance(document, str)) or (lowercase and not _can_be_text(document)):
            raise ValueError(
                f"Documents must be texts, but the one at position {at} is {_shown(document)}: "
                f"{_remedy(document)}."
            )
        yield document


def check_text_container(raw_documents: Any, *, one_text: bool) -> None:
    """Raise ValueError for what is not an iterable of texts, with `one_text` also for a text."""
    expected = "Expected an iterable of texts, got "
    if one_text and isinstance(raw_documents, str | bytes):
        raise ValueError(f"{expected}one text: pass [text].")
    columns = getattr(raw_documents, "columns", None)
    if columns is not None:  # whose names would be the texts
        if len(columns) != 1:
            raise ValueError(f"{expected}a data frame: pass a column of it.")
        name = next(iter(columns))
        raise ValueError(
            f"{expected}a data frame: pass a column of it, X[{name!r}]. In a "
            f"ColumnTransformer, select it by {name!r} instead of [{name!r}]."
        )
    if sparse.issparse(raw_documents):
        raise ValueError(
            f"{expected}a sparse matrix: pass texts, or leave out the vectorizer for counts."
        )
    if getattr(raw_documents, "ndim", 1) != 1:
        raise ValueError(
            f"{expected}an array of shape {raw_documents.shape}: pass one column, X[:, 0]. In a "
            "ColumnTransformer, select it by 0 instead of [0]."
        )
    if isinstance(raw_documents, Mapping):
        raise ValueError(f"{expected}a dictionary: pass its values, list(X.values()).")
    if not hasattr(raw_documents, "__iter__"):
        raise ValueError(f"{expected}{_shown(raw_documents)}: pass a list of texts.")


def _can_be_text(document: Any) -> bool:
    """Return whether a document is not a number or a sequence of words."""
    return not isinstance(document, int | float | np.number | list | tuple | set | dict)


def _shown(value: Any) -> str:
    """Return a value, shortened, with the name of its type."""
    return f"{value!r:.60}, of type {type(value).__name__}"


def _remedy(document: Any) -> str:
    """Return the remedy for a document that is not a text."""
    if isinstance(document, bytes):
        return "decode it, as in [text.decode() for text in X]"
    if isinstance(document, list | tuple | np.ndarray):
        return "join its words, as in [' '.join(words) for words in X]"
    return "replace it by a text, such as str(x), or by ''"


def check_any_texts(n_documents: int, n_tokens: int) -> None:
    """Raise ValueError if there is no document to learn from, or no token in any."""
    if not n_documents:
        raise ValueError("X has no documents: expected at least one text.")
    if not n_tokens:
        raise ValueError(
            f"The {n_documents:,} texts have no tokens: expected texts with words. Check that X is "
            "the column of the texts, and that the tokenizer or token_pattern finds words."
        )


def document_number(bound: Any, n_documents: int, auto: int = 1) -> float:
    """Return `min_df` or `max_df` as a number of documents.

    "auto" is 1 for few documents, else `auto`.
    """
    if bound == "auto":
        return 1 if n_documents < _FEW_DOCUMENTS else auto
    return float(bound if isinstance(bound, Integral) else bound * n_documents)
