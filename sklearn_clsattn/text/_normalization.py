"""Texts that look the same are made the same, and positions are led back to the original.

1. Signs without a glyph are dropped: the characters with the property Default_Ignorable_Code_Point,
   as in toNFKC_Casefold of the Unicode Standard, except where they make one emoji of several.
2. Apostrophes, quotation marks and hyphens become ' " and -, as in the confusables of Unicode
   Technical Standard 39. Control characters 128 to 159 are read as Windows-1252, as in HTML.
3. The text is brought to a normalization form of Unicode Standard Annex 15.
4. With `lowercase`, case is folded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise, repeat
from typing import Literal, NamedTuple
from unicodedata import decomposition, normalize

import numpy as np
from numpy.typing import NDArray

from ._graphemes import (
    JOINER,
    PICTOGRAPH,
    PICTOGRAPHS,
    classes_of,
    cluster_starts,
    joined_characters,
    may_join,
    whole_clusters,
)

Form = Literal["NFKC", "NFC"] | None

_ZERO_WIDTH_JOINER = "\u200d"
# Soft hyphen, grapheme joiner, marks of direction, fillers of Hangul and Khmer, zero-width spaces,
# variation selectors, byte order mark, tags.
_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Emoji with the sign U+FE0F that would else become letters or other signs, such as TM and !!.
_SIGNED = "[\u203c\u2049\u2122\u2139\u24c2\u3297\u3299]\ufe0f"
_TAGGED = f"[{PICTOGRAPHS}][\U000e0020-\U000e007e]+\U000e007f"  # such as the flag of Scotland
_DROPPED = re.compile(f"(?P<kept>{_TAGGED}|{_SIGNED})|[{_IGNORABLE}]")

_APOSTROPHES = (
    "\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u0374\u0384\u055a\u05f3\u07f4\u07f5\u1fbd\u1fbf"
    "\u1ffd\u1ffe\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\ua78b\ua78c\uff07"
)
_QUOTATION_MARKS = "\u02ba\u02ee\u05f4\u201c\u201d\u201e\u201f\u275d\u275e\u301d\u301e\u301f\uff02"
_BREATHINGS_WITH_ACCENT = "\u1fcd\u1fce\u1fcf\u1fdd\u1fde\u1fdf"
_HYPHENS = "\u02d7\u2010\u2011\u2012\u2013\u2043\u2212\ufe63\uff0d"


def _replacements() -> dict[str, str]:
    """Return the replacement of each sign, by the sign (step 2 of the module's docstring)."""
    # 1) apostrophes, quotation marks and hyphens
    signs = dict.fromkeys(_APOSTROPHES, "'")
    for breathing in _BREATHINGS_WITH_ACCENT:
        accent = normalize("NFD", breathing)[1:]
        signs[breathing] = f"'{accent}"
    signs |= dict.fromkeys(_QUOTATION_MARKS, '"')
    signs |= dict.fromkeys(_HYPHENS, "-")
    signs["\u2015"] = "\u2014"  # the horizontal bar is a dash
    # 2) control characters, read as Windows-1252, which leaves some without a sign
    for byte in range(0x80, 0xA0):
        sign = bytes([byte]).decode("cp1252", "ignore")
        if sign:
            signs[chr(byte)] = sign
    # 3) narrow letters of Hangul, such as those of laughter, which NFKC would join to syllables
    for code in range(0xFFA1, 0xFFDD):
        letter = decomposition(chr(code))  # such as "<narrow> 3131", "" where there is none
        if letter:
            signs[chr(code)] = chr(int(letter.split()[1], 16))
    return signs


_SAME = _replacements()
# The vowel am of Thai and Lao, which NFKC divides.
_DIVIDED_AM = {"\u0e4d\u0e32": "\u0e33", "\u0ecd\u0eb2": "\u0eb3"}
_DOTTED = "i\u0307"  # looks like i, and is the small letter of the Turkish capital
_BACKTICK = re.compile(r"`(?<=\w`)(?=\w)")  # elsewhere it is no apostrophe

# Emoji, single letters of Hangul, and the vowel am, which no form changes here.
_KEPT = "\u0e33\u0eb3\u3131-\u318e\u3260-\u327e\U0001f200-\U0001f2ff"
_MAY_BE_KEPT = re.compile(f"[\ufe0f{_KEPT}]")
_UNCHANGED = re.compile(f"({_SIGNED}|[{_KEPT}])")
_INVISIBLE = re.compile(f"[{_IGNORABLE}{_ZERO_WIDTH_JOINER}]")
_ASCII = bytes(range(0x80))


class Aligned(NamedTuple):
    """A normalized text, and where each of its characters comes from in the original text."""

    text: str
    starts: NDArray[np.intp]  # (n_characters,)
    stops: NDArray[np.intp]

    def in_original(self, original: str, spans: NDArray[np.integer]) -> NDArray[np.intp]:
        """Return the spans of tokens in the original, (n_spans, 2), which cut no glyph.

        A stop of -1 means that the token is not in the text, and stays.
        """
        starts, stops = spans.astype(np.intp).T
        is_missing = stops < 0
        first = np.append(self.starts, len(original))[starts]
        last = np.append(self.stops, 0)[np.maximum(stops, 0) - 1]
        whole = whole_clusters(original, np.stack([first, last], axis=1))
        whole[is_missing, 1] = -1
        return whole


def normalized(text: str, form: Form, *, lowercase: bool) -> str:
    """Return a text in a normal form, which is the same for all texts that look the same.

    Texts in ASCII are only lower-cased, and without a form, so are all.
    """
    if form is None:
        return text.lower() if lowercase else text
    if not text.isascii():
        text = _stable(_visible(text), form, lowercase)
    elif lowercase:
        text = text.lower()
    return _BACKTICK.sub("'", text) if "`" in text else text


def normalized_texts(texts: Iterable[str], form: Form, *, lowercase: bool) -> list[str]:
    """Return texts in a normal form, as :func:`normalized` does one by one."""
    if form is None or not lowercase:
        return [normalized(text, form, lowercase=lowercase) for text in texts]
    results = []
    for text in texts:
        # Most texts are in ASCII, where a call takes longer than the work.
        if text.isascii() and "`" not in text:
            results.append(text.lower())
        else:
            results.append(normalized(text, form, lowercase=True))
    return results


def aligned(text: str, form: Form, *, lowercase: bool) -> Aligned:
    """Return a normalized text with the origins of its characters."""
    if form is None or text.isascii():
        result = normalized(text, form, lowercase=lowercase)
        parts = list(map(str.lower, text)) if lowercase else list(text)
        starts = np.arange(len(text))
        stops = starts + 1
    else:
        places = _visible_places(text)
        visible = _characters_at(text, places)
        # No step looks beyond a cluster.
        edges = np.append(cluster_starts(visible), len(visible))
        clusters = [visible[start:stop] for start, stop in pairwise(edges.tolist())]
        parts = [_stable(cluster, form, lowercase) for cluster in clusters]
        result = _BACKTICK.sub("'", "".join(parts))
        starts = places[edges[:-1]]
        stops = places[edges[1:] - 1] + 1
    # Each character of the result comes from the part around it.
    sizes = np.fromiter(map(len, parts), np.intp, len(parts))
    return Aligned(result, np.repeat(starts, sizes), np.repeat(stops, sizes))


def _stable(text: str, form: Literal["NFKC", "NFC"], lowercase: bool) -> str:
    """Return a text without invisible signs, normalized until nothing changes."""
    if _is_simple(text, form, lowercase):
        return text.casefold() if lowercase else text
    while (changed := _once(text, form, lowercase)) != text:
        text = changed
        if _is_simple(text, form, lowercase):
            break
    return text


def _once(text: str, form: Literal["NFKC", "NFC"], lowercase: bool) -> str:
    """Return a text after one pass of steps 2 to 4."""
    signs = set(_beyond_ascii(text)) & _SAME.keys()
    for sign in sorted(signs):
        text = text.replace(sign, _SAME[sign])
    for divided, whole in _DIVIDED_AM.items():
        text = text.replace(divided, whole)
    parts = [text]
    # Signs of step 2 may have become some that are kept.
    if _MAY_BE_KEPT.search(_beyond_ascii(text)):
        parts = _UNCHANGED.split(text)  # every other part stays as it is
    for i in range(0, len(parts), 2):
        parts[i] = normalize(form, parts[i])
        if lowercase:
            parts[i] = parts[i].casefold().replace(_DOTTED, "i")
    return "".join(parts)


def _is_simple(text: str, form: Literal["NFKC", "NFC"], lowercase: bool) -> bool:
    """Return whether nothing but the case of a text's characters needs to change."""
    characters = set(_beyond_ascii(text))
    return all(map(_is_simple_character, characters, repeat(form), repeat(lowercase)))


@cache
def _is_simple_character(character: str, form: Literal["NFKC", "NFC"], lowercase: bool) -> bool:
    """Return whether a character has no part in any step but the last, whatever is around it."""
    if may_join(classes_of(character)).any():
        return False
    folded = character.casefold() if lowercase else character
    return _once(character, form, lowercase) == _once(folded, form, lowercase) == folded


def _beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII."""
    encoded = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return encoded.decode("utf-8", "surrogatepass")


def _visible(text: str) -> str:
    """Return a text without the signs that have no glyph."""
    if not _INVISIBLE.search(_beyond_ascii(text)):
        return text
    return _characters_at(text, _visible_places(text))


def _characters_at(text: str, places: NDArray[np.intp]) -> str:
    """Return the characters of a text at some places, as a text."""
    return "".join(map(text.__getitem__, places.tolist()))


def _visible_places(text: str) -> NDArray[np.intp]:
    """Return the places of the characters that have a glyph or make one emoji of several."""
    # 1) without the signs that never have a glyph
    dropped = []
    for match in _DROPPED.finditer(text):
        if not match["kept"]:
            dropped.append(match.start())
    places = np.delete(np.arange(len(text)), dropped)
    if _ZERO_WIDTH_JOINER not in text:
        return places
    # 2) without joiners that no pictograph follows: in Persian and Indian words they only change
    # the forms of letters
    classes = classes_of(_characters_at(text, places))
    joins = joined_characters(classes)
    links = np.append((joins & (classes == PICTOGRAPH))[1:], False)
    return places[(classes != JOINER) | links]
