"""Units that a ContextVectorizer counts (words and word n-grams), and the columns of each.

A word has its own column, if it is in the vocabulary, and the columns of its character n-grams. So
a bag is the product of a matrix of documents by words and a matrix of words by columns.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._bags import Bags, TokenVectors, without_unused_columns
from ._characters import spelling_matrix
from ._tokens import is_spelled


class Units:
    """The word n-grams of a vocabulary, and other words that have known character n-grams.

    `vocabulary` and `characters` number word n-grams and character n-grams, `ngram_range` is that
    of the latter, and `weight` the factor of their entries. `names` are those of the vocabulary,
    and `table`, CSR (n_names, n_columns), has the columns of each.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        characters: Mapping[str, int],
        ngram_range: tuple[int, int],
        weight: float,
        dtype: type[np.floating[Any]],
    ) -> None:
        self.vocabulary, self.characters = vocabulary, characters
        self._ngram_range, self._weight = ngram_range, weight
        self.names = np.array(sorted(vocabulary, key=vocabulary.__getitem__), dtype=object)
        words = [at for at, name in enumerate(self.names.tolist()) if " " not in name]
        spelled = self.spelled([self.names[at] for at in words])
        # One row for each n-gram; n-grams of several words have no characters.
        indptr = np.zeros(len(self.names) + 1, dtype=spelled.indptr.dtype)
        indptr[np.array(words, dtype=np.intp) + 1] = np.diff(spelled.indptr)
        arrays = spelled.data, spelled.indices, np.cumsum(indptr, dtype=indptr.dtype)
        inside = sp.csr_array(arrays, shape=(len(self.names), len(characters)))
        own = sp.eye_array(len(self.names), format="csr")
        self.table = sp.hstack([own, inside], format="csr", dtype=dtype)

    def spelled(self, words: list[str]) -> Any:
        """Return the entries of words' character n-grams, CSR (n_words, n_ngrams).

        A word without letters or digits, or a character of scripts such as Chinese, has none.
        """
        with_letters = list(map(is_spelled, words))
        counts = spelling_matrix(words, self._ngram_range, self.characters)
        kept = sp.dia_array(([np.multiply(with_letters, self._weight)], [0]), (len(words),) * 2)
        spelled = sp.csr_array(kept @ counts)
        spelled.eliminate_zeros()
        return spelled


class UnitNumbers:
    """Numbers of the units of some texts: first the vocabulary, then other words in order."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self._others: dict[str, int] = {}
        self._spelled: list[Any] = []

    def __len__(self) -> int:
        return len(self._units.names) + len(self._others)

    @property
    def names(self) -> NDArray[np.object_]:
        """Names of the units, (n_units,)."""
        return np.concatenate([self._units.names, np.array(list(self._others), dtype=object)])

    def of(self, words: list[str]) -> NDArray[np.int32]:
        """Return the units of distinct words, (n_words,), -1 for those without columns."""
        known, others = self._units.vocabulary, self._others
        numbers = np.array([known.get(word, others.get(word, -1)) for word in words], np.int32)
        new = np.flatnonzero(numbers < 0)
        if not len(new):
            return numbers
        spelled = self._units.spelled([words[at] for at in new.tolist()])
        has_columns = np.diff(spelled.indptr) > 0
        numbers[new[has_columns]] = len(self) + np.arange(np.count_nonzero(has_columns))
        for at in new[has_columns].tolist():
            self._others[words[at]] = int(numbers[at])
        self._spelled.append(spelled[has_columns])
        return numbers

    def bags(self, left: Any, vectors: TokenVectors | None) -> Bags:
        """Return bags, given documents' units, CSR (n_documents, n_units)."""
        table, names = self._units.table, self._units.names
        left, used = without_unused_columns(left)
        split = np.searchsorted(used, len(names))
        right, others = table[used[:split]], np.array(list(self._others), dtype=object)
        names = np.concatenate([names[used[:split]], others[used[split:] - len(names)]])
        if split < len(used):
            spelled = sp.vstack(self._spelled, format="csr")[used[split:] - table.shape[0]]
            columns = spelled.indices + (table.shape[1] - spelled.shape[1])
            shape = len(used) - split, table.shape[1]
            entries = spelled.data.astype(table.dtype)
            spelled = sp.csr_array((entries, columns, spelled.indptr), shape=shape)
            right = sp.vstack([right, spelled], format="csr")
        return Bags(left, right, names, vectors)


# The data from which each vectorizer's units were last built, and the units; not pickled.
_UNITS: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Units]] = WeakKeyDictionary()


def units_of(vectorizer: Any) -> Units:
    """Return the units of a fitted vectorizer, built on first use."""
    names = "vocabulary_", "character_vocabulary_", "characters", "character_weight", "dtype"
    parts = tuple(getattr(vectorizer, name) for name in names)
    known, units = _UNITS.get(vectorizer, ((None,) * len(parts), None))
    if units is None or not all(map(operator.is_, known, parts)):
        units = Units(*parts)
        _UNITS[vectorizer] = parts, units
    return units
