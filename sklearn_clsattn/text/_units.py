"""Units that a ContextVectorizer counts (words and word n-grams), and the columns of each.

A word has its own column, if it is in the vocabulary, and the columns of its character n-grams.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._bags import Bags
from .._matrices import drop_empty_columns
from ._character_ngrams import spelling_matrix
from ._tokens import is_spelled, look_up


class SpelledWords(NamedTuple):
    """Words with letters or digits, and the character n-grams in them.

    numbers : the number of each word
    ngrams : names of the columns
    counts : CSR (n_words, n_ngrams)
    """

    numbers: Mapping[str, int]
    ngrams: list[str]
    counts: sp.csr_array


class Units:
    """The word n-grams of a vocabulary, and other words that have known character n-grams.

    `vocabulary` and `characters` number word n-grams and character n-grams, `ngram_range` is that
    of the latter, and `weight` the factor of their entries. `names` are those of the vocabulary,
    and `table`, CSR (n_names, n_columns), has the columns of each. The character n-grams of
    `spelled_words` are counted already.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        characters: Mapping[str, int],
        ngram_range: tuple[int, int],
        weight: float,
        dtype: type[np.floating[Any]],
        spelled_words: SpelledWords | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.characters = characters
        self._ngram_range = ngram_range
        self._weight = weight
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        n_names = len(names)
        self.names = np.array(names, dtype=object)
        # 1) the character n-grams of words; n-grams of several words have empty rows
        is_word = np.array([" " not in name for name in names], dtype=bool)
        spelled = self.spelled(self.names[is_word].tolist(), spelled_words)
        row_sizes = np.zeros(n_names, dtype=spelled.indptr.dtype)
        row_sizes[is_word] = np.diff(spelled.indptr)
        indptr = np.append(0, np.cumsum(row_sizes)).astype(row_sizes.dtype)
        arrays = spelled.data, spelled.indices, indptr
        character_entries = sp.csr_array(arrays, shape=(n_names, len(characters)))
        # 2) beside the columns of the n-grams themselves
        word_entries = sp.eye_array(n_names, format="csr")
        self.table = sp.hstack([word_entries, character_entries], format="csr", dtype=dtype)

    def spelled(self, words: list[str], spelled_words: SpelledWords | None = None) -> Any:
        """Return the entries of words' character n-grams, CSR (n_words, n_ngrams).

        A word without letters or digits, or a character of scripts such as Chinese, has none.
        """
        numbers = {} if spelled_words is None else spelled_words.numbers
        rows = look_up(words, numbers)
        # 1) the counts in words that are not spelled yet
        new = np.flatnonzero(rows < 0)
        new_words = [words[i] for i in new.tolist()]
        counts = spelling_matrix(new_words, self._ngram_range, self.characters)
        factors = np.array([is_spelled(word) for word in new_words], dtype=counts.dtype)
        counts.data *= np.repeat(factors, np.diff(counts.indptr))
        # 2) the entries of all words
        if spelled_words is not None:
            rows[new] = len(numbers) + np.arange(len(new))
            counts = sp.vstack([spelled_words.counts, counts], format="csr")[rows]
        spelled = sp.csr_array(counts * self._weight)
        spelled.eliminate_zeros()
        return spelled


class UnitNumbers:
    """Numbers of the units of some texts: first the vocabulary, then other words in order.

    The character n-grams of `spelled_words` are counted already.
    """

    def __init__(self, units: Units, spelled_words: SpelledWords | None = None) -> None:
        self.units = units
        self._spelled_words = spelled_words
        self._others: dict[str, int] = {}  # the number of each other word
        self._spelled: list[Any] = []  # their character n-grams, some rows at a time

    def __len__(self) -> int:
        return len(self.units.names) + len(self._others)

    def number(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return the units of distinct words, (n_words,), -1 for those without columns."""
        # 1) the numbers of units
        vocabulary = self.units.vocabulary
        others = self._others
        units = [vocabulary.get(word, others.get(word, -1)) for word in words]
        numbers = np.array(units, dtype=np.int32)
        new = np.flatnonzero(numbers < 0)
        if not len(new):
            return numbers
        # 2) new words, which become units if they have known character n-grams
        new_words = [words[i] for i in new.tolist()]
        spelled = self.units.spelled(new_words, self._spelled_words)
        has_columns = np.diff(spelled.indptr) > 0
        new = new[has_columns]
        numbers[new] = len(self) + np.arange(len(new))
        for i in new.tolist():
            others[words[i]] = int(numbers[i])
        self._spelled.append(spelled[has_columns])
        return numbers

    def bags(self, left: Any) -> Bags:
        """Return bags, given documents' units, CSR (n_documents, n_units)."""
        n_names = len(self.units.names)
        table = self.units.table
        # 1) the units that are in use, of the vocabulary and others
        left, used = drop_empty_columns(left)
        known = used[used < n_names]
        others = used[used >= n_names] - n_names
        other_names = np.array(list(self._others), dtype=object)[others]
        names = np.concatenate([self.units.names[known], other_names])
        # 2) their columns
        right = table[known]
        if len(others):
            spelled = sp.vstack(self._spelled, format="csr")[others]
            # The columns of character n-grams follow those of the vocabulary.
            entries = spelled.data.astype(table.dtype)
            columns = spelled.indices + n_names
            arrays = entries, columns, spelled.indptr
            of_others = sp.csr_array(arrays, shape=(len(others), table.shape[1]))
            right = sp.vstack([right, of_others], format="csr")
        return Bags(left, right, names, is_damped=True)


# The data from which each vectorizer's units were last built, and the units; not pickled.
_UNITS: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Units]] = WeakKeyDictionary()


def units_of(vectorizer: Any, spelled_words: SpelledWords | None = None) -> Units:
    """Return the units of a vectorizer, built on first use, with words that are spelled already."""
    parts = (
        vectorizer.vocabulary_,
        vectorizer.character_vocabulary_,
        vectorizer.characters,
        vectorizer.character_weight,
        vectorizer.dtype,
    )
    if vectorizer in _UNITS:
        last_parts, units = _UNITS[vectorizer]
        if all(map(operator.is_, last_parts, parts)):
            return units
    units = Units(*parts, spelled_words=spelled_words)
    _UNITS[vectorizer] = parts, units
    return units
