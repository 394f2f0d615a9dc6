"""The tokens of texts as integers: word, document and character positions."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core.threads import stream_in_threads
from .._matrices import index_type
from .._types import Integers
from .._validation import is_missing
from ._graphemes import (
    BREAK,
    KEYCAP,
    PICTOGRAPH,
    classes_of,
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

Ids = NDArray[np.int32]
NO_IDS: Ids = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Tokens:
    """All occurrences of tokens in texts, in order.

    Occurrence j is the word ``words[ids[j]]`` at the characters ``starts[j]:stops[j]`` of its
    document; document i has the occurrences ``indptr[i]:indptr[i + 1]``.
    """

    ids: Ids  # (n_occurrences,)
    indptr: NDArray[np.int64]  # (n_documents + 1,)
    starts: Ids  # (n_occurrences,), or empty if not requested
    stops: Ids
    words: list[str]  # distinct

    @property
    def n_documents(self) -> int:
        """The number of documents, including those without tokens."""
        return len(self.indptr) - 1

    @property
    def documents(self) -> Ids:
        """The document of each occurrence, of shape (n_occurrences,)."""
        return np.repeat(np.arange(self.n_documents, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def word_counts(self) -> sparse.csc_array:
        """The counts of words in documents, CSC (n_documents, n_words)."""
        return count_words(self.ids, self.indptr, len(self.words))

    def blocks(self, size: int) -> Iterator[tuple[slice, slice, NDArray[np.int64]]]:
        """Yield blocks of consecutive documents with about `size` tokens together.

        A block is the slices of documents and of their tokens, and the documents' `indptr`.
        """
        first = 0
        while first < self.n_documents:
            after = np.searchsorted(self.indptr, self.indptr[first] + size, side="right")
            last = max(int(after) - 1, first + 1)
            indptr = self.indptr[first : last + 1]
            tokens = slice(int(indptr[0]), int(indptr[-1]))
            yield slice(first, last), tokens, indptr - indptr[0]
            first = last

    def without(self, words: frozenset[str]) -> Tokens:
        """Return the tokens without some words, and without character positions."""
        is_kept = np.array([word not in words for word in self.words], dtype=bool)
        stays = is_kept[self.ids]
        n_before = np.append(0, np.cumsum(stays))  # that stay, before each occurrence
        indptr = n_before[self.indptr]
        return Tokens(self.ids[stays], indptr, NO_IDS, NO_IDS, self.words)


def count_words(ids: Ids, indptr: Integers, n_words: int) -> sparse.csc_array:
    """Return the counts of words in documents, CSC (n_documents, n_words), int32."""
    ones = np.ones(len(ids), dtype=np.int32)
    kind = index_type(len(ids))
    arrays = ones, ids.astype(kind, copy=False), indptr.astype(kind, copy=False)
    # Conversion to columns puts the occurrences of a word in the order of their documents.
    counts = sparse.csr_array(arrays, shape=(len(indptr) - 1, n_words)).tocsc()
    counts.sum_duplicates()
    return counts


def look_up(words: Collection[str], numbers: Mapping[str, int]) -> Ids:
    """Return the number of each word, (n_words,), -1 for a word without one."""
    return np.fromiter(map(numbers.get, words, repeat(-1)), np.int32, len(words))


def has_letters(word: str) -> bool:
    """Return whether a word contains a letter, a digit or an underscore."""
    return re.search(r"\w", word) is not None


def is_spelled(word: str) -> bool:
    """Return whether a word has character n-grams, unlike signs, emoji and Chinese characters."""
    if word.isascii() and word.isalnum():
        return True  # most words, without the expressions below
    if not has_letters(word):
        return False
    may_be_sign = ALONE.match(word) or KEYCAP in word or cluster_class(word[0]) == PICTOGRAPH
    is_sign = may_be_sign and len(cluster_starts(word)) == 1
    return not is_sign


def words_differ(text: str) -> bool:
    """Return whether a text's words depend on `scripts` of :func:`tokenize`."""
    return ALONE.search(text) is not None or any(map(cluster_class, set(text)))


class _EncodedTexts(NamedTuple):
    """Some consecutive texts, one after the other, with a separator before and after each."""

    symbols: Symbols  # (n_characters,)
    sizes: Integers  # (n_texts,), numbers of characters


class _Block(NamedTuple):
    """The tokens of some consecutive texts, whose distinct words are numbered in the block."""

    ids: Ids  # (n_occurrences,)
    counts: Integers  # (n_documents,), numbers of tokens
    starts: Ids  # (n_occurrences,), in their documents
    stops: Ids
    symbols: Symbols  # of the distinct words, one after the other
    lengths: Integers  # (n_words,)


def tokenize(
    texts: Iterable[str], pattern: str = WORDS, *, positions: bool = True, scripts: bool = False
) -> Tokens:
    """Return the tokens that one of the `PATTERNS` matches in preprocessed texts, read once.

    With `scripts`, which needs the pattern of words and punctuation, no grapheme cluster is divided
    (emoji, letters with marks), and each cluster of scripts such as Chinese and Thai is a token.
    """
    in_tokens = {WORDS: r"\w", WORDS_AND_CONTRACTIONS: r"[\w']"}.get(pattern, r"\S")
    alphabet = Alphabet(in_tokens)

    def encode(batch: list[str]) -> _EncodedTexts:
        sizes = np.fromiter(map(len, batch), np.int64, len(batch))
        text = _SEPARATOR.join(["", *batch, ""])
        return _EncodedTexts(alphabet.encode(text), sizes)

    def tokenize_block(block: _EncodedTexts) -> _Block:
        return _tokenize_block(block, alphabet, pattern, positions, scripts)

    # 1) tokens of each block of texts; its symbols, of which the alphabet learns, come first
    encoded = map(encode, batches(texts, BLOCK))
    blocks = list(stream_in_threads(tokenize_block, encoded))
    if not blocks:
        blocks = [tokenize_block(encode([]))]
    # 2) distinct words of all blocks
    symbols = padded([block.symbols for block in blocks])
    lengths = np.concatenate([block.lengths for block in blocks])
    starts = np.cumsum(lengths) - lengths
    numbers, examples = distinct_runs(symbols, starts, lengths)
    words = alphabet.decode(symbols, starts[examples], lengths[examples])
    # 3) numbers in a block become numbers in all blocks
    ids = []
    start = 0
    for block in blocks:
        stop = start + len(block.lengths)
        block_numbers = numbers[start:stop].astype(np.int32)
        ids.append(block_numbers[block.ids])
        start = stop
    counts = np.concatenate([block.counts for block in blocks])
    return Tokens(
        ids=np.concatenate(ids),
        indptr=np.append(0, np.cumsum(counts)),
        starts=np.concatenate([block.starts for block in blocks]),
        stops=np.concatenate([block.stops for block in blocks]),
        words=words,
    )


def _tokenize_block(
    texts: _EncodedTexts, alphabet: Alphabet, pattern: str, positions: bool, scripts: bool
) -> _Block:
    """Return the tokens of some texts."""
    symbols = padded([texts.symbols])
    # 1) where tokens start and stop
    if pattern == WORDS_AND_PUNCTUATION:
        starts, stops = _words_and_punctuation(symbols, alphabet, scripts)
    elif pattern == WORDS_AND_CONTRACTIONS:
        starts, stops = _words_and_contractions(symbols, alphabet)
    else:
        starts, stops = _true_runs(symbols > SKIPPED)
        if pattern == WORDS:
            is_long = stops - starts > 1
            starts = starts[is_long]
            stops = stops[is_long]
    # 2) their texts, which stand one after the other, after a separator each
    sizes = texts.sizes + 1
    origins = np.cumsum(sizes) - sizes + 1
    first_tokens = np.searchsorted(starts, np.append(origins, len(symbols)))
    counts = np.diff(first_tokens)
    # 3) their words
    lengths = stops - starts
    ids, examples = distinct_runs(symbols, starts, lengths)
    word_lengths = lengths[examples]
    words = symbols[ranges(starts[examples], word_lengths)]
    # 4) their positions in the texts
    starts_in_text = NO_IDS
    stops_in_text = NO_IDS
    if positions:
        origin = np.repeat(origins, counts)
        starts_in_text = (starts - origin).astype(np.int32)
        stops_in_text = (stops - origin).astype(np.int32)
    return _Block(ids.astype(np.int32), counts, starts_in_text, stops_in_text, words, word_lengths)


def _true_runs(is_inside: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Return the starts and stops of runs of True, each (n_runs,); both end entries are False."""
    edges = np.flatnonzero(is_inside[1:] != is_inside[:-1]) + 1
    return edges[::2], edges[1::2]


def _words_and_contractions(symbols: Symbols, alphabet: Alphabet) -> tuple[Integers, Integers]:
    """Return the starts and stops of words, each (n_words,); an apostrophe joins two words."""
    starts, stops = _true_runs(alphabet.matches(r"\w").take(symbols))
    # Of the characters outside words, only apostrophes are not skipped.
    is_joined = (symbols[stops[:-1]] > SKIPPED) & (starts[1:] - stops[:-1] == 1)
    # If apostrophes alternate with words, every other one belongs to a token.
    at = np.arange(len(is_joined))
    last_apart = np.maximum.accumulate(np.where(is_joined, -1, at))
    is_joined &= (at - last_apart) % 2 == 1
    is_first = np.append(True, ~is_joined)[: len(starts)]
    is_last = np.append(~is_joined, True)[: len(starts)]
    return starts[is_first], stops[is_last]


def _words_and_punctuation(
    symbols: Symbols, alphabet: Alphabet, scripts: bool
) -> tuple[Integers, Integers]:
    """Return the starts and stops of words and of single signs, each (n_tokens,)."""
    if scripts:
        is_word, joins = _clusters(symbols, alphabet)
    else:
        is_word = alphabet.matches(r"\w").take(symbols)
        joins = np.zeros(len(symbols), dtype=bool)  # characters that belong to the one before them
    is_apostrophe = alphabet.matches("['’]").take(symbols)
    is_word[1:-1] |= is_apostrophe[1:-1] & is_word[:-2] & is_word[2:]
    is_sign = (symbols > SKIPPED) & ~is_word
    sign_starts = is_sign & ~joins
    sign_ends = is_sign & ~np.append(joins[1:], False)
    starts = np.flatnonzero((is_word[1:] & ~is_word[:-1]) | sign_starts[1:]) + 1
    stops = np.flatnonzero((is_word[:-1] & ~is_word[1:]) | sign_ends[:-1]) + 1
    return starts, stops


def _clusters(symbols: Symbols, alphabet: Alphabet) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which characters are in words, by clusters, and which join the one before them.

    Clusters of scripts such as Chinese, pictographs and keycaps are signs.
    """
    # The first symbols stand for no character and for skipped ones.
    characters = "".join(alphabet.characters[SKIPPED + 1 :])
    classes = np.append([BREAK, BREAK], classes_of(characters)).astype(np.uint8)
    is_sign = alphabet.matches(ALONE.pattern) | (classes == PICTOGRAPH)
    is_word = (alphabet.matches(r"\w") & ~is_sign).take(symbols)
    is_joining = may_join(classes)
    if not (is_joining.any() and is_joining.take(symbols).any()):
        return is_word, np.zeros(len(symbols), dtype=bool)
    joins = joined_characters(classes.take(symbols))
    # A cluster is a sign or part of a word as its first character is.
    first = np.maximum.accumulate(np.where(joins, 0, np.arange(len(symbols))))
    is_keycap = alphabet.matches(KEYCAP).take(symbols)
    is_word[first[joins & is_keycap]] = False
    return is_word[first], joins


def number_tokens(texts: Iterable[str], find: Callable[[str], Iterable[str]]) -> Tokens:
    """Return the tokens that a function finds in texts, without starts and stops."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__  # a new token gets the next number
    ids = array("i")
    ends = [0]
    for text in texts:
        ids.extend(map(numbers.__getitem__, find(text)))
        ends.append(len(ids))
    return Tokens(np.array(ids, np.int32), np.array(ends), NO_IDS, NO_IDS, list(numbers))


def tokens_of_tokenizer(texts: Iterable[str], tokenizer: Callable[[str], Iterable[Any]]) -> Tokens:
    """Return the tokens that a function finds in texts, without blank ones.

    Their positions are found in the texts, in order; a token that is not there has the stop -1.
    """

    def spans(text: str) -> Iterator[tuple[str, int, int]]:
        end = 0  # of the last token that is in the text
        for token in tokenizer(text):
            word = str(token).strip()
            if len(word.split()) > 1:
                raise ValueError(
                    f"tokenizer must return tokens without white space, got {word!r}: "
                    "split them, or replace spaces by '_'."
                )
            if not word:
                continue
            start = text.find(word, end)
            if start < 0:
                yield word, end, -1
            else:
                end = start + len(word)
                yield word, start, end

    return _from_spans(map(spans, texts))


def tokens_of_pattern(texts: Iterable[str], pattern: str) -> Tokens:
    """Return the tokens that any regular expression matches in texts, without empty matches."""
    compiled = re.compile(pattern)

    def spans(text: str) -> Iterator[tuple[str, int, int]]:
        for match in compiled.finditer(text):
            if match.group():
                yield match.group(), match.start(), match.end()

    tokens = _from_spans(map(spans, texts))
    if compiled.groups or any(word.split() != [word] for word in tokens.words):
        raise ValueError(
            f"token_pattern must not match white space or have a capturing group, got {pattern!r}."
        )
    return tokens


def _from_spans(spans_of_texts: Iterable[Iterable[tuple[str, int, int]]]) -> Tokens:
    """Return tokens, given the word, the start and the stop of each, text by text."""
    numbers: dict[str, int] = {}
    occurrences = []
    ends = [0]
    for spans in spans_of_texts:
        for word, start, stop in spans:
            occurrences.append((numbers.setdefault(word, len(numbers)), start, stop))
        ends.append(len(occurrences))
    ids, starts, stops = np.array(occurrences, dtype=np.int32).reshape(-1, 3).T
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
            batch = []
            size = 0
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
        if type(document) is not str:  # most are, and a call for each takes a tenth of counting
            _check_document(document, at, texts, lowercase)
        yield document


def _check_document(document: Any, at: int, texts: bool, lowercase: bool) -> None:
    """Raise ValueError for a document at position `at` that :func:`checked` refuses."""
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
    if isinstance(bound, Integral):
        return float(bound)
    return float(bound * n_documents)
