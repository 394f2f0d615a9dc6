"""Characters as people see them, and as small integers, for exact search without hashing text."""

import re
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import regex
from numpy.typing import NDArray

from .._types import Integers

# Grapheme clusters (Unicode Standard Annex 29); the vowel signs of Burmese that the annex leaves
# alone belong to their letters here.
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

Symbols = NDArray[Any]  # of the smallest unsigned integer type that can number the alphabet

SKIPPED = 1  # the symbol of characters outside tokens; 0 stands for no character

_N_CODE_POINTS = 0x110000
_WORD = 8  # bytes that are read at once
_MAX_READS = 16  # of one run; longer ones are compared as bytes


def whole_clusters(text: str, spans: NDArray[Any]) -> NDArray[Any]:
    """Return spans of a text, (n_spans, 2), enlarged so that they cut no cluster."""
    if text.isascii():
        return spans
    edges = np.array([*(cluster.start() for cluster in CLUSTER.finditer(text)), len(text)])
    starts = edges[np.searchsorted(edges, spans[:, 0], side="right") - 1]
    stops = edges[np.searchsorted(edges, spans[:, 1], side="left")]
    return np.stack([starts, stops], axis=1).astype(spans.dtype)


class Alphabet:
    """The characters of a corpus that a regular expression matches, numbered from 2 on sight."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)
        # The symbol of each code point, 0 for one that was not seen yet.
        self._symbols: Symbols = np.zeros(_N_CODE_POINTS, dtype=np.uint8)
        self.characters = ["", ""]  # of each symbol

    def encode(self, text: str) -> Symbols:
        """Return the symbols of the characters of a text, which is not empty, (n_characters,)."""
        try:  # one byte a character, which most texts need
            codes: Symbols = np.frombuffer(text.encode("latin-1"), np.uint8)
        except UnicodeEncodeError:
            codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        symbols = np.take(self._symbols, codes)
        if not symbols.min():
            self._learn(np.unique(codes[symbols == 0]))
            symbols = np.take(self._symbols, codes)
        return symbols

    def _learn(self, codes: Symbols) -> None:
        """Number new characters, given by their code points."""
        characters = list(map(chr, codes.tolist()))
        is_matched = _matches(self._pattern, "".join(characters))
        first = len(self.characters)
        self.characters += compress(characters, is_matched)
        # More of them may need a larger type.
        dtype = np.min_scalar_type(len(self.characters))
        self._symbols = self._symbols.astype(dtype, copy=False)
        self._symbols[codes[~is_matched]] = SKIPPED
        self._symbols[codes[is_matched]] = np.arange(first, len(self.characters))

    def matches(self, pattern: Any) -> NDArray[np.bool_]:
        """Return which symbols' characters a compiled expression matches, (n_symbols,)."""
        # The first two symbols have none.
        return np.append([False, False], _matches(pattern, "".join(self.characters)))

    def decode(self, symbols: Symbols, starts: Integers, lengths: Integers) -> list[str]:
        """Return the texts of runs of symbols, each of `lengths` from `starts` on."""
        # 1) all runs as one text
        run_symbols = symbols[ranges(starts, lengths)].tolist()
        text = "".join(map(self.characters.__getitem__, run_symbols))
        # 2) its parts
        stops = np.cumsum(lengths)
        text_starts = stops - lengths
        edges = zip(text_starts.tolist(), stops.tolist(), strict=True)
        return [text[start:stop] for start, stop in edges]


def _matches(pattern: Any, text: str) -> NDArray[np.bool_]:
    """Return which characters of a text an expression of one character matches, (n_characters,)."""
    matched = [match.start() for match in pattern.finditer(text)]
    is_matched = np.zeros(len(text), dtype=bool)
    is_matched[matched] = True
    return is_matched


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> Integers:
    """Return start, start + 1, ..., `lengths` numbers for each start in turn."""
    stops = np.cumsum(lengths)
    n = int(stops[-1]) if len(stops) else 0
    shifts = starts - stops + lengths
    return np.arange(n) + np.repeat(shifts, lengths)


def distinct_runs(
    symbols: Symbols, starts: NDArray[Any], lengths: NDArray[Any]
) -> tuple[Integers, Integers]:
    """Give equal runs of symbols equal numbers; `symbols` are `padded`.

    Return the number of each run (n_runs,) and a run with each number (n_distinct,). Runs are read
    8 bytes at a time; two have the same number only if all bytes agree.
    """
    step = _WORD // symbols.itemsize  # symbols that are read at once
    # 1) numbers by the first 8 bytes
    numbers, distinct = pd.factorize(_read(symbols, starts, lengths))
    numbers = numbers.astype(np.int64, copy=False)
    n_numbers = len(distinct)
    # 2) longer runs get new numbers, by their present ones and the next 8 bytes
    n_read = step
    longer = np.flatnonzero(lengths > n_read)
    while len(longer) and n_read < _MAX_READS * step:
        next_bytes = _read(symbols, starts[longer] + n_read, lengths[longer] - n_read)
        next_numbers, distinct = pd.factorize(next_bytes)
        keys = numbers[longer] * len(distinct) + next_numbers
        pairs, distinct_pairs = pd.factorize(keys)
        numbers[longer] = n_numbers + pairs
        n_numbers += len(distinct_pairs)
        n_read += step
        longer = longer[lengths[longer] > n_read]
    # 3) very long runs, by all of their bytes
    number_of_bytes: dict[bytes, int] = {}
    for i in longer.tolist():
        stop = starts[i] + lengths[i]
        run = symbols[starts[i] : stop].tobytes()
        numbers[i] = n_numbers + number_of_bytes.setdefault(run, len(number_of_bytes))
    n_numbers += len(number_of_bytes)
    # 4) a run with each number, without numbers of mere beginnings of longer runs
    examples = np.full(n_numbers, -1)
    examples[numbers] = np.arange(len(numbers))
    is_used = examples >= 0
    if not is_used.all():
        new_numbers = np.cumsum(is_used) - 1
        numbers = new_numbers[numbers]
    return numbers, examples[is_used]


def _read(symbols: Symbols, starts: NDArray[Any], lengths: NDArray[Any]) -> NDArray[np.uint64]:
    """Return 8 bytes from each start on, as an integer, with 0 for bytes beyond a run's length."""
    # 1) all runs of 8 bytes, which overlap, as a view
    size = symbols.itemsize
    step = _WORD // size
    n_starts = len(symbols) - step + 1
    windows: NDArray[Any] = np.ndarray(
        (n_starts,), dtype="<u8", buffer=symbols.data, strides=(size,)
    )
    # 2) those that are read, without the bytes beyond their lengths
    masks = np.empty(step + 1, dtype=np.uint64)  # of the first 0, 1, 2, ... symbols
    for n in range(step + 1):
        n_bits = 8 * size * n
        masks[n] = (1 << n_bits) - 1
    values: NDArray[np.uint64] = windows[starts].astype(np.uint64, copy=False)
    values &= masks[np.minimum(lengths, step)]
    return values


def padded(arrays: list[Symbols]) -> Symbols:
    """Join arrays in the widest dtype, with the padding that `distinct_runs` reads."""
    return np.concatenate([*arrays, np.zeros(_WORD, dtype=np.uint8)])
