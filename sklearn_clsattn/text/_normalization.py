"""Texts that look the same are made the same, and positions are mapped back to the original.

1. Signs without a glyph are dropped, except the joiners of emoji.
2. Numbers such as ½ and ² are separated from digits beside them by a space.
3. With `lowercase`, case is folded.
4. Each character is replaced by its normal form, in which apostrophes, quotation marks and hyphens
   are those of ASCII. Control characters 128 to 159 are read as Windows-1252, as in HTML.
5. Letters and their marks are composed.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import regex
from numpy.typing import NDArray

from ._characters import CLUSTER, whole_clusters

# Soft hyphens, zero-width spaces, marks of direction, variation selectors and so on, and joiners
# that join no pictographs, as in Persian and Indian words.
_INVISIBLE = regex.compile(
    r"[\p{Default_Ignorable_Code_Point}--\u200d]|\u200d(?!\p{Extended_Pictographic})"
    r"|(?<!\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]?)\u200d",
    regex.VERSION1,
)
_BETWEEN_NUMBERS = regex.compile(r"(?<=\d)(?=\p{No})|(?<=\p{No})(?=\d)")
_INVISIBLE_OR_NUMBER = regex.compile(r"[\p{Default_Ignorable_Code_Point}\p{No}]")

# The signs that look like each of ours, as in the confusables of Unicode Technical Standard 39.
_LOOK_ALIKES = {
    "'": "\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\u0384\u055a\u05f3\u07f4\u07f5\u1fbd\u1fbf"
    "\u1ffe\u2018\u2019\u201a\u201b\u2032\u2035\u275b\u275c\ua78b\ua78c\uff07",
    '"': "\u02ba\u02ee\u05f4\u201c\u201d\u201e\u201f\u275d\u275e\u301d\u301e\u301f\uff02",
    "-": "\u02d7\u2010\u2011\u2012\u2013\u2043\u2212\ufe63\uff0d",
    "\u2014": "\u2015",
}
_PLAIN_SIGNS = {ord(sign): ours for ours, signs in _LOOK_ALIKES.items() for sign in signs}
_PLAIN_SIGNS |= enumerate(bytes(range(0x80, 0xA0)).decode("cp1252", "replace"), start=0x80)
_BACKTICK = re.compile(r"`(?<=\w`)(?=\w)")  # elsewhere it is no apostrophe
_DOTTED = "i\u0307"  # looks like i, and is the small letter of the Turkish capital
# NFKC would make other letters of pictographs, join single letters of Hangul, and divide the Thai
# and Lao vowel am.
_KEPT = regex.compile(r"[\p{Extended_Pictographic}\p{Script=Hangul}\u0e33\u0eb3]")
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


def normalized(text: str, *, lowercase: bool) -> str:
    """Return a text in the normal form, which is the same for all texts that look the same.

    In ASCII, only letters are lower-cased and backticks between them made apostrophes.
    """
    if not text.isascii():
        if _INVISIBLE_OR_NUMBER.search(_beyond_ascii(text)):
            text, _ = _visible(text)
        text = _in_form(text, lowercase)
    elif lowercase:
        text = text.lower()
    return _BACKTICK.sub("'", text) if "`" in text else text


def normalized_texts(texts: Iterable[str], *, lowercase: bool) -> list[str]:
    """Return texts in the normal form, as :func:`normalized` does one by one."""
    return [normalized(text, lowercase=lowercase) for text in texts]


def aligned(text: str, *, lowercase: bool) -> Aligned:
    """Return a normalized text with the origins of its characters."""
    if text.isascii():
        result = normalized(text, lowercase=lowercase)
        parts = list(map(str.lower, text)) if lowercase else list(text)
        starts = np.arange(len(text))
        stops = starts + 1
    else:
        visible, places = _visible(text)
        # No other step looks beyond a cluster.
        clusters = CLUSTER.findall(visible)
        parts = [_in_form(cluster, lowercase) for cluster in clusters]
        result = _BACKTICK.sub("'", "".join(parts))
        edges = np.cumsum([0, *map(len, clusters)])
        starts = places[edges[:-1]]
        stops = places[edges[1:] - 1] + 1
    # Each character of the result comes from the part around it.
    sizes = np.fromiter(map(len, parts), np.intp, len(parts))
    return Aligned(result, np.repeat(starts, sizes), np.repeat(stops, sizes))


def plain_forms() -> dict[str, str]:
    """Return the forms of characters that change in texts whose case counts, by code points."""
    forms = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        if normalize("NFKD", character) != character or ord(character) in _PLAIN_SIGNS:
            plain = _plain(character, False)
            if plain != character:
                forms[character] = plain
    return forms


def _visible(text: str) -> tuple[str, NDArray[np.intp]]:
    """Return a text without invisible signs, numbers apart, and its characters' places in it."""
    dropped = [match.start() for match in _INVISIBLE.finditer(text)]
    places = np.delete(np.arange(len(text)), dropped)
    visible = _INVISIBLE.sub("", text)
    gaps = [match.start() for match in _BETWEEN_NUMBERS.finditer(visible)]
    return _BETWEEN_NUMBERS.sub(" ", visible), np.insert(places, gaps, places[gaps])


def _in_form(text: str, lowercase: bool) -> str:
    """Return a text in lower case, with look-alikes replaced, in the normal form."""
    if lowercase:
        text = text.casefold().replace(_DOTTED, "i")
    for character in set(_beyond_ascii(text)):
        plain = _plain(character, lowercase)
        if plain != character:
            text = text.replace(character, plain)
    return normalize("NFC", text)


@cache
def _plain(character: str, lowercase: bool) -> str:
    """Return the normal form of a character, which may be several."""
    if _KEPT.match(character):
        return character
    # Look-alikes are parts of some signs, and of the normal form of others, such as ŉ.
    text = normalize("NFD", character).translate(_PLAIN_SIGNS)
    text = normalize("NFKC", text).translate(_PLAIN_SIGNS)
    if len(text) > 1 and text.startswith(" "):  # a mark on a space, for an accent without a letter
        return character
    return text.casefold() if lowercase else text


def _beyond_ascii(text: str) -> str:
    """Return the characters of a text that are not ASCII."""
    encoded = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return encoded.decode("utf-8", "surrogatepass")
