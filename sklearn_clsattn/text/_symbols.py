"""Characters as small integers, and exact search for equal runs without hashing text."""

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._types import Integers

Symbols = NDArray[Any]  # of the smallest unsigned integer type that can number the alphabet

SKIPPED = 1  # the symbol of characters outside tokens; 0 stands for no character

_N_CODE_POINTS = 0x110000
_WORD = 8  # bytes that are read at once
_MAX_READS = 16  # of one run; longer ones are compared as bytes


class Alphabet:
    """The characters of a corpus that a regular expression matches, numbered from 2 on sight."""

    def __init__(self, wanted: str) -> None:
        self._wanted = re.compile(wanted)
        self._symbols: Symbols = np.zeros(_N_CODE_POINTS, dtype=np.uint8)
        self.characters = ["", ""]  # of each symbol

    def encode(self, text: str) -> Symbols:
        """Return the symbols of a text's characters, of shape (n_characters,)."""
        try:
            codes: Symbols = np.frombuffer(text.encode("latin-1"), np.uint8)
        except UnicodeEncodeError:
            codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        symbols = np.take(self._symbols, codes)
        if len(symbols) and not symbols.min():
            self._learn(np.unique(codes[symbols == 0]))
            symbols = np.take(self._symbols, codes)
        return symbols

    def _learn(self, codes: Symbols) -> None:
        """Number new characters, given by their code points."""
        new = [chr(code) for code in codes.tolist()]
        wanted = np.array([self._wanted.fullmatch(character) is not None for character in new])
        first = len(self.characters)
        self.characters += [new[i] for i in np.flatnonzero(wanted)]
        wide = np.min_scalar_type(len(self.characters))
        if wide.itemsize > self._symbols.itemsize:
            self._symbols = self._symbols.astype(wide)
        self._symbols[codes[~wanted]] = SKIPPED
        self._symbols[codes[wanted]] = np.arange(first, len(self.characters))

    def decode(self, symbols: Symbols, starts: Integers, lengths: Integers) -> list[str]:
        """Return the texts of runs of symbols, each of `lengths` from `starts` on."""
        text = "".join([self.characters[i] for i in symbols[ranges(starts, lengths)].tolist()])
        stops = np.cumsum(lengths)
        pairs = zip((stops - lengths).tolist(), stops.tolist(), strict=True)
        return [text[start:stop] for start, stop in pairs]


def ranges(starts: NDArray[Any], lengths: NDArray[Any]) -> Integers:
    """Return start, start + 1, ..., `lengths` numbers for each start in turn."""
    stops = np.cumsum(lengths)
    n = int(stops[-1]) if len(stops) else 0
    return np.arange(n) + np.repeat(starts - stops + lengths, lengths)


def distinct_runs(
    symbols: Symbols, starts: NDArray[Any], lengths: NDArray[Any]
) -> tuple[Integers, Integers]:
    """Give equal runs of symbols equal numbers; `symbols` are `padded`.

    Return the number of each run (n_runs,) and the first position of each number (n_distinct,).
    Runs are read 8 bytes at a time; two have the same number only if all bytes agree.
    """
    size = symbols.itemsize
    step = _WORD // size
    reads: NDArray[Any] = np.ndarray(
        (len(symbols) - step + 1,), dtype="<u8", buffer=symbols.data, strides=(size,)
    )
    masks = np.array([(1 << 8 * size * n) - 1 for n in range(step + 1)], dtype=np.uint64)

    def keys(at: NDArray[Any], left: NDArray[Any]) -> NDArray[np.uint64]:
        key: NDArray[np.uint64] = reads[at].astype(np.uint64, copy=False)
        key &= masks[np.minimum(left, step)]
        return key

    codes, distinct = pd.factorize(keys(starts, lengths))
    codes = codes.astype(np.int64, copy=False)
    n_codes, done = len(distinct), step
    longer = np.flatnonzero(lengths > done)
    while len(longer) and done < _MAX_READS * step:
        ends, distinct = pd.factorize(keys(starts[longer] + done, lengths[longer] - done))
        pairs, distinct_pairs = pd.factorize(codes[longer] * len(distinct) + ends)
        codes[longer] = pairs + n_codes
        n_codes += len(distinct_pairs)
        done += step
        longer = longer[lengths[longer] > done]
    longest: dict[bytes, int] = {}
    for i in longer.tolist():
        run = symbols[starts[i] : starts[i] + lengths[i]].tobytes()
        codes[i] = n_codes + longest.setdefault(run, len(longest))
    firsts = np.full(n_codes + len(longest), -1)
    firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    used = firsts >= 0  # the beginnings of longer runs are not
    if not used.all():
        codes = (np.cumsum(used) - 1)[codes]
    return codes, firsts[used]


def padded(arrays: list[Symbols]) -> Symbols:
    """Join arrays in the widest dtype, with the padding that `distinct_runs` reads."""
    dtype = max((one.dtype for one in arrays), key=lambda kind: kind.itemsize, default=np.uint8)
    return np.concatenate([*arrays, np.zeros(_WORD, dtype)])
