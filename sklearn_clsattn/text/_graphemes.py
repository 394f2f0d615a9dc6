"""Extended grapheme clusters: the characters that people see (Unicode Standard Annex 29).

Rules are taken from general categories, so that they know all characters of this Python's Unicode.
Where the annex is stricter, clusters are larger here: all combining marks belong to the character
before them, and consonants under others to those. No cluster of the annex is ever cut.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from unicodedata import category, combining

import numpy as np
from numpy.typing import NDArray

Classes = NDArray[np.uint8]

# Pictographs, as ranges of a regular expression: the blocks that contain all of Unicode's.
PICTOGRAPHS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\U0001fc00-\U0001fffd"
)
KEYCAP = "\u20e3"  # makes an emoji of the digit before it

# The classes of characters.
_OTHER, BREAK, _EXTEND, JOINER, _PREPEND, _FLAG, PICTOGRAPH = range(7)
_L, _V, _T, _LV, _LVT = range(7, 12)  # Hangul: leading consonants, vowels, trailing ones, both
_NIKHAHIT, _AA = 12, 13  # the two halves of the Thai and Lao vowel am
_VIRAMA, _CONSONANT = 14, 15  # of Indian scripts: what puts a consonant under another, and these
_N_CLASSES = 16

_CLASSES = [
    (re.compile(pattern), number)
    for pattern, number in (
        ("\u200d", JOINER),
        ("[\u0e4d\u0ecd]", _NIKHAHIT),
        ("[\u0e32\u0eb2]", _AA),
        ("\u103a", _EXTEND),  # the asat of Burmese, a virama that ends a syllable
        # Vowels of Thai and Lao, the non-joiner, voicing marks, skin tones, the letters of tags.
        ("[\u0e33\u0eb3\u200c\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]", _EXTEND),
        ("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd]", _PREPEND),
        ("[\U000111c2\U000111c3\U0001193f\U00011941\U00011a3a\U00011a84-\U00011a89]", _PREPEND),
        ("[\U00011d46\U00011f02]", _PREPEND),
        ("[\U0001f1e6-\U0001f1ff]", _FLAG),
        (f"[{PICTOGRAPHS}]", PICTOGRAPH),
        ("[\u1100-\u115f\ua960-\ua97c]", _L),
        ("[\u1160-\u11a7\ud7b0-\ud7c6\U00016d63\U00016d67-\U00016d6a]", _V),
        ("[\u11a8-\u11ff\ud7cb-\ud7fb]", _T),
    )
]
_MARKS = _EXTEND, JOINER, _NIKHAHIT, _VIRAMA
_INDIAN = re.compile(
    "[\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1a00-\u1bff\ua980-\ua9ff\uaa60-\uaaff"
    "\U00010a00-\U00010a5f\U00011000-\U00011fff]"
)
_VIRAMA_ORDER = 9  # the canonical combining class of all viramas


def _pairs() -> NDArray[np.bool_]:
    """Return which class joins which class before it, (n_classes, n_classes): before, then it."""
    joins = np.zeros((_N_CLASSES, _N_CLASSES), dtype=bool)
    joins[:, _MARKS] = True
    joins[_PREPEND] = True
    # Letters of Hangul that make a syllable, then those of am.
    joins[_L, [_L, _V, _LV, _LVT]] = True
    joins[_LV, [_V, _T]] = True
    joins[_V, [_V, _T]] = True
    joins[_LVT, _T] = True
    joins[_T, _T] = True
    joins[_NIKHAHIT, _AA] = True
    # Nothing joins a break, and no break anything.
    joins[BREAK] = False
    joins[:, BREAK] = False
    return joins


_PAIRS = _pairs()
# No cluster has several characters without one of these classes.
_JOINING = np.isin(np.arange(_N_CLASSES), [*_MARKS, _PREPEND, _FLAG, _L, _V, _T])


@cache
def cluster_class(character: str) -> int:
    """Return the class of a character, 0 for one that is a cluster unless another joins it."""
    for pattern, number in _CLASSES:
        if pattern.fullmatch(character):
            return number
    if "\uac00" <= character <= "\ud7a3":  # of each 28 syllables, one has no trailing consonant
        return _LVT if (ord(character) - 0xAC00) % 28 else _LV
    if "\x80" <= character <= "\x9f":  # signs of Windows-1252
        return _OTHER
    kind = category(character)
    if kind in ("Cc", "Cf", "Zl", "Zp"):
        return BREAK
    if _INDIAN.fullmatch(character):
        if kind == "Lo":
            return _CONSONANT
        if combining(character) == _VIRAMA_ORDER:
            return _VIRAMA
    return _EXTEND if kind[0] == "M" else _OTHER


def may_join(classes: Classes) -> NDArray[np.bool_]:
    """Return which characters can make a cluster of several, (n_characters,)."""
    return _JOINING[classes]


def joined_characters(classes: Classes) -> NDArray[np.bool_]:
    """Return which characters belong to the cluster of the one before them, (n_characters,)."""
    joins = np.zeros(len(classes), dtype=bool)
    joins[1:] = _PAIRS[classes[:-1], classes[1:]]
    joins |= _linked(classes, PICTOGRAPH, JOINER)
    joins |= _linked(classes, _CONSONANT, _VIRAMA)
    flags = classes == _FLAG
    if flags.any():  # two letters make a flag
        at = np.arange(len(classes))
        before = np.maximum.accumulate(np.where(flags, -1, at))
        joins |= flags & ((at - before) % 2 == 0)
    return joins


def _linked(classes: Classes, kind: int, link: int) -> NDArray[np.bool_]:
    """Return which characters of a kind follow another, with a link and other marks between."""
    links = classes == link
    if not links.any():
        return links
    at = np.arange(len(classes))
    base = np.maximum.accumulate(np.where(np.isin(classes, _MARKS), 0, at))
    last_link = np.maximum.accumulate(np.where(links, at, -1))
    linked = classes == kind
    linked[0] = False
    linked[1:] &= (classes[base[:-1]] == kind) & (last_link[:-1] > base[:-1])
    return linked


def classes_of(text: str) -> Classes:
    """Return the class of each character of a text, (n_characters,)."""
    return np.fromiter(map(cluster_class, text), np.uint8, len(text))


def cluster_starts(text: str) -> NDArray[np.intp]:
    """Return the starts of the clusters of a text, (n_clusters,)."""
    return np.flatnonzero(~joined_characters(classes_of(text)))


def whole_clusters(text: str, spans: NDArray[Any]) -> NDArray[Any]:
    """Return spans of a text, (n_spans, 2), enlarged so that they cut no cluster."""
    if text.isascii():
        return spans
    edges = np.append(cluster_starts(text), len(text))
    starts = edges[np.searchsorted(edges, spans[:, 0], side="right") - 1]
    stops = edges[np.searchsorted(edges, spans[:, 1], side="left")]
    return np.stack([starts, stops], axis=1).astype(spans.dtype)
