"""A fitted model of texts as one file, which other languages read without Python.

The file is compressed by gzip. In it are

1. the number of bytes of the header, an unsigned integer of 4 bytes, little-endian;
2. the header, JSON in UTF-8 (:func:`_header`);
3. arrays of little-endian numbers, in the order of the header's `arrays`, each of which starts at
   the next multiple of 8 bytes after what is before it.

Terms are sorted by their UTF-16 code units. Of each, the array of `shared` numbers says how many
units it begins with that the term before it has as well, 0 for every :data:`BLOCK`-th term; the
rest of the terms stand one below the other in the header.

The header has

- `format`, `version`: "sklearn-clsattn" and 1; readers refuse others;
- `classes`, `labels`, `notLabels`, `severalLabels`: the classes, how they and their opposites are
  shown, and whether a text may have several;
- `lowercase`, `stopWords`: whether case is folded, and tokens that are left out first;
- `ngramRange`, `characters`, `characterWeight`, `longestSpelled`: lengths of n-grams of words, and
  of characters (or null); the weight of these, and the longest word that has some;
- `gatePower`, `largestGateScore`, `previousWords`: an occurrence weighs `exp(gatePower * score)`,
  the score within these bounds; the words that have a score as the word before;
- `clsWeight`, `clsScore`, `intercept`: those of the model (``docs/mathematics.md``);
- `terms`, `characterNgrams`, `block`: the vocabularies;
- `arrays`: `name`, `type`, `length`, `shift` and `scale` of each, whose numbers are
  ``shift + scale * stored``;
- `unicode`: what each character is, and what case folding and normal forms make of it. Browsers
  have other versions of Unicode than Python, and other rules: with the tables, a script needs none
  of its own.

The arrays are `sharedOfTerms` and `sharedOfCharacters`, a byte for each term; `startScores` and
`endScores`, doubles, for each length of n-grams ten distances (1, 2 to 3, 4 to 7, ... words);
`previousScores`, doubles; then `scores`, and `values0`, `values1`, ... for each decision, of the
terms and then of the character n-grams, floats of 32 or 16 bits.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple
from unicodedata import category, combining, decomposition, normalize

import numpy as np
import regex
from numpy.typing import NDArray

from .._writing import label_text
from ..text._characters import ALONE, LINK, MARK, STACKER
from ..text._context_vectorizer import GATE_POWER
from ..text._gate_positions import MAX_SCORE
from ..text._normalization import plain_forms
from ..text._tokens import LONGEST_SPELLED
from ..training.fitted_model import FittedAttention

_EVERY_CHARACTER = "".join(map(chr, range(0x110000)))

# Properties, each of which is a bit of a character's kind.
_PROPERTIES: dict[str, Any] = {
    "word": re.compile(r"\w"),
    "space": re.compile(r"\s"),
    "alone": ALONE,
    "mark": MARK,
    "stacker": STACKER,
    "link": LINK,
    "number": regex.compile(r"\p{No}"),
    "digit": regex.compile(r"\d"),
    "ignorable": regex.compile(r"\p{Default_Ignorable_Code_Point}"),
    "pictograph": regex.compile(r"\p{Extended_Pictographic}"),
    "emojiModifier": regex.compile(r"\p{Emoji_Modifier}"),
    "combining": regex.compile(r"\p{M}"),
    "conjunctConsonant": regex.compile(r"\p{InCB=Consonant}"),
    "conjunctLinker": regex.compile(r"\p{InCB=Linker}"),
    "conjunctExtend": regex.compile(r"\p{InCB=Extend}"),
}
# Classes of the rules of grapheme clusters; other characters have class 0.
_CLUSTER_CLASSES = [
    "CR",
    "LF",
    "Control",
    "Extend",
    "ZWJ",
    "Regional_Indicator",
    "Prepend",
    "SpacingMark",
    "L",
    "V",
    "T",
    "LV",
    "LVT",
]
FORMAT = "sklearn-clsattn"
VERSION = 1
BLOCK = 32  # terms of which the first is spelled out
_LONGEST_SHARED = 255  # code units, as they are counted in a byte
_LARGEST_INTEGER = 2**53  # that other languages tell from the next
_LEVEL = 9  # of compression


@cache
def unicode_tables() -> dict[str, Any]:
    """Return the tables.

    - `properties`: names of bits, from the lowest on
    - `clusterClasses`: names of the classes 1, 2, ... in the rules of grapheme clusters
    - `kinds`: different kinds of characters, [bits, cluster class, combining class]
    - `runs`: [number of characters, number of their kind] from U+0000 on, one after the other
    - `folded`: what case folding makes of characters that it changes
    - `plain`: by which characters others are replaced that look like them
    - `decomposed`: the canonical decompositions of other characters, by one step
    - `notComposed`: characters that are decomposed and not composed again

    `folded`, `plain` and `decomposed` have the `runs` of their characters, [number of other
    characters before, number of characters], and what they `become`, a line for each.
    """
    kinds = _kinds()
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    runs = [[len(list(run)), numbers[kind]] for kind, run in groupby(kinds)]
    folded = {one: one.casefold() for one in _EVERY_CHARACTER if one.casefold() != one}
    plain = plain_forms()
    decomposed = {}
    for character in _EVERY_CHARACTER:
        parts = decomposition(character)
        if parts and not parts.startswith("<") and character not in plain:
            decomposed[character] = "".join(chr(int(part, 16)) for part in parts.split())
    return {
        "properties": [*_PROPERTIES, "symbol", "attached"],
        "clusterClasses": _CLUSTER_CLASSES,
        "kinds": list(map(list, numbers)),
        "runs": runs,
        "folded": _in_runs(folded),
        "plain": _in_runs(plain),
        "decomposed": _in_runs(decomposed),
        "notComposed": "".join(one for one in decomposed if normalize("NFC", one) != one),
    }


def _in_runs(table: dict[str, str]) -> dict[str, Any]:
    """Return a table of characters as the runs of these, and a line for each."""
    runs: list[list[int]] = []
    after = 0  # the last run
    for code in map(ord, table):  # which are ascending
        if not runs or code > after:
            runs.append([code - after, 0])
        runs[-1][1] += 1
        after = code + 1
    return {"runs": runs, "become": "\n".join(table.values())}


def _kinds() -> list[tuple[int, int, int]]:
    """Return the bits, the cluster class and the combining class of every character."""
    # 1) the properties that expressions match, and those of categories
    bits = [0] * len(_EVERY_CHARACTER)
    for number, pattern in enumerate(_PROPERTIES.values()):
        for match in pattern.finditer(_EVERY_CHARACTER):
            bits[match.start()] |= 1 << number
    symbol = 1 << len(_PROPERTIES)
    attached = symbol << 1
    for at, character in enumerate(_EVERY_CHARACTER):
        of_character = category(character)
        if of_character[0] in "LNSM" or character == "_":
            bits[at] |= symbol
        if of_character in {"Mn", "Mc", "Me", "Cf"}:
            bits[at] |= attached
    # 2) the classes of grapheme clusters
    classes = [0] * len(_EVERY_CHARACTER)
    for number, name in enumerate(_CLUSTER_CLASSES, start=1):
        for match in regex.finditer(rf"\p{{GCB={name}}}", _EVERY_CHARACTER):
            classes[match.start()] = number
    return list(zip(bits, classes, map(combining, _EVERY_CHARACTER), strict=True))


class StoredNumbers(NamedTuple):
    """Numbers as they are stored, and how they are read: ``shift + scale * stored``."""

    stored: NDArray[Any]
    shift: float = 0.0
    scale: float = 1.0

    def read(self) -> NDArray[np.float64]:
        """Return the numbers as they are read."""
        return np.asarray(self.shift + self.scale * self.stored.astype(np.float64))


@dataclass(frozen=True)
class StoredModel:
    """A fitted model of tokens with its scores and values as they are stored.

    fitted : the model that these are
    scores : (n_tokens,)
    values : (n_tokens,) for each output
    """

    fitted: FittedAttention
    scores: StoredNumbers
    values: list[StoredNumbers]

    @classmethod
    def from_fitted(cls, fitted: FittedAttention, *, half: bool) -> StoredModel:
        """Return a model stored in 16 bits, if `half`, else in 32."""
        if half:
            scores = _in_half(fitted.scores, float(np.median(fitted.scores)))
            values = [_in_half(column) for column in fitted.values.T]
        else:
            scores = StoredNumbers(fitted.scores.astype("<f4"))
            values = [StoredNumbers(column.astype("<f4")) for column in fitted.values.T]
        columns = [column.read() for column in values]
        read = replace(fitted, scores=scores.read(), values=np.column_stack(columns))
        return cls(read, scores, values)


def _in_half(numbers: NDArray[Any], shift: float = 0.0) -> StoredNumbers:
    """Return numbers in 16 bits, after subtraction of a shift."""
    scale = float(np.abs(numbers - shift).max(initial=0.0)) or 1.0
    return StoredNumbers(((numbers - shift) / scale).astype("<f2"), shift, scale)


class SortedTerms(NamedTuple):
    """Terms as they are stored, in their order, and which of the tokens they are."""

    rest: str  # what the terms do not share with the ones before, each on a line
    shared: NDArray[np.uint8]  # (n_terms,)
    tokens: NDArray[np.intp]  # (n_terms,)


def sorted_terms(vocabulary: Mapping[str, int]) -> SortedTerms:
    """Return the terms of a vocabulary, sorted by code units; a new line is in no token."""
    terms = [term for term in vocabulary if "\n" not in term]
    encoded = sorted((term.encode("utf-16-be", "surrogatepass"), term) for term in terms)
    rest = []
    shared = np.zeros(len(encoded), dtype=np.uint8)
    before = b""
    for at, (code_units, _) in enumerate(encoded):
        n_shared = 0
        if at % BLOCK:
            n_shared = _n_shared(before, code_units)
        shared[at] = n_shared
        rest.append(code_units[2 * n_shared :].decode("utf-16-be", "surrogatepass"))
        before = code_units
    tokens = [vocabulary[term] for _, term in encoded]
    return SortedTerms("\n".join(rest), shared, np.array(tokens, dtype=np.intp))


def _n_shared(before: bytes, after: bytes) -> int:
    """Return the number of code units, of two bytes each, with which both terms begin."""
    longest = min(len(before), len(after), 2 * _LONGEST_SHARED)
    n_shared = 0
    while n_shared < longest and before[n_shared : n_shared + 2] == after[n_shared : n_shared + 2]:
        n_shared += 2
    return n_shared // 2


def model_file(
    vectorizer: Any, classifier: Any, model: StoredModel, stop_words: list[str]
) -> bytes:
    """Return the file of a fitted ContextVectorizer and of the classifier of its bags."""
    terms = sorted_terms(vectorizer.vocabulary_)
    ngrams = sorted_terms(vectorizer.character_vocabulary_)
    # The columns of character n-grams follow those of the vocabulary.
    tokens = np.append(terms.tokens, len(vectorizer.vocabulary_) + ngrams.tokens)
    arrays = {
        "sharedOfTerms": StoredNumbers(terms.shared),
        "sharedOfCharacters": StoredNumbers(ngrams.shared),
        "startScores": StoredNumbers(vectorizer.start_scores_.ravel().astype("<f8")),
        "endScores": StoredNumbers(vectorizer.end_scores_.ravel().astype("<f8")),
        "previousScores": StoredNumbers(vectorizer.previous_word_scores_.astype("<f8")),
        "scores": model.scores._replace(stored=model.scores.stored[tokens]),
    }
    for number, column in enumerate(model.values):
        arrays[f"values{number}"] = column._replace(stored=column.stored[tokens])
    header = _header(vectorizer, classifier, model.fitted, stop_words)
    header["terms"] = terms.rest
    header["characterNgrams"] = ngrams.rest
    # 1) the arrays, and what the header says of them
    parts = []
    header["arrays"] = []
    for name, numbers in arrays.items():
        stored = numbers.stored
        says = {"name": name, "type": stored.dtype.name, "length": len(stored)}
        header["arrays"].append(says | {"shift": numbers.shift, "scale": numbers.scale})
        parts.append(_padded(stored.tobytes()))
    # 2) the header; a half of a surrogate pair is escaped, as in JSON
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "backslashreplace")
    start = _padded(struct.pack("<I", len(encoded)) + encoded)
    return gzip.compress(b"".join([start, *parts]), _LEVEL, mtime=0)


def _padded(content: bytes) -> bytes:
    """Return bytes with zeros up to the next multiple of 8."""
    return content + bytes(-len(content) % 8)


def _header(
    vectorizer: Any, classifier: Any, fitted: FittedAttention, stop_words: list[str]
) -> dict[str, Any]:
    """Return the header: how texts are read, and the few numbers of the model."""
    classes = classifier.classes_.tolist()
    return {
        "format": FORMAT,
        "version": VERSION,
        "classes": list(map(_portable, classes)),
        "labels": list(map(label_text, classes)),
        "notLabels": [label_text(f"not {label}") for label in classes],
        "severalLabels": bool(classifier.multilabel_),
        "lowercase": bool(vectorizer.lowercase),
        "stopWords": stop_words,
        "ngramRange": list(map(int, vectorizer.ngram_range)),
        "characters": list(map(int, vectorizer.characters)) if vectorizer.characters else None,
        "characterWeight": float(vectorizer.character_weight),
        "block": BLOCK,
        "longestSpelled": LONGEST_SPELLED,
        "gatePower": GATE_POWER,
        "largestGateScore": MAX_SCORE,
        "previousWords": vectorizer.previous_words_.tolist(),
        "clsWeight": float(fitted.cls_weight),
        "clsScore": float(fitted.cls_score),
        "intercept": fitted.intercept.tolist(),
        "unicode": unicode_tables(),
    }


def _portable(label: Any) -> Any:
    """Return a class as it is if other languages have it, too, else as text."""
    is_exact = not isinstance(label, int) or abs(label) <= _LARGEST_INTEGER
    return label if isinstance(label, str | int | float) and is_exact else label_text(label)
