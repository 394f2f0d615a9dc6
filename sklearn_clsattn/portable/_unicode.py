r"""What this Python knows of Unicode's characters, as tables for another language.

Browsers have other versions of Unicode than Python, and other rules: their lower case is not case
folding, and their words are not those of ``\w``. With the tables, a script needs none of its own.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from typing import Any
from unicodedata import category, combining, decomposition, normalize

import regex

from ..text._graphemes import ALONE, LINK, MARK, STACKER
from ..text._normalization import plain_forms

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
