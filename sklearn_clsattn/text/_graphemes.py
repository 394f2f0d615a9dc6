"""Grapheme clusters: the characters that people see (Unicode Standard Annex 29)."""

from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

# The vowel signs of Burmese that the annex leaves alone belong to their letters here.
CLUSTER = regex.compile(r"\X(?:(?=\p{M})\X)*")
MARK = regex.compile(r"[\p{M}\p{GCB=Extend}\p{GCB=SpacingMark}\u200d]")  # joins any character
# The signs of Burmese and Khmer that put the next consonant under the one before.
STACKER = regex.compile(r"[\u1039\u17d2]")
# Other characters that can join the next one: joiners, and letters of flags and of Hangul.
LINK = regex.compile(r"[\u200d\p{Regional_Indicator}\p{GCB=L}\p{GCB=V}\p{GCB=T}]")
KEYCAP = "\u20e3"  # makes an emoji of the digit before it
# Characters that are tokens alone, with their marks: pictographs, and those of scripts without
# spaces between words or with many word endings.
ALONE = regex.compile(
    r"[\p{Extended_Pictographic}\p{Script=Thai}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Khmer}"
    r"\p{Script=Han}\p{Script=Hiragana}\p{Script_Extensions=Katakana}\p{Script=Hangul}]"
)


def whole_clusters(text: str, spans: NDArray[Any]) -> NDArray[Any]:
    """Return spans of a text, (n_spans, 2), enlarged so that they cut no cluster."""
    if text.isascii():
        return spans
    edges = np.array([*(cluster.start() for cluster in CLUSTER.finditer(text)), len(text)])
    starts = edges[np.searchsorted(edges, spans[:, 0], side="right") - 1]
    stops = edges[np.searchsorted(edges, spans[:, 1], side="left")]
    return np.stack([starts, stops], axis=1).astype(spans.dtype)
