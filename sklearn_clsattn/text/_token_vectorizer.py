"""TokenVectorizer: scikit-learn's CountVectorizer, with the counting done on integers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from .._pickling import SavedMixin, public
from .._training import all_or_nothing
from ._characters import count_characters, count_spelled, spelling_matrix
from ._ngrams import NgramColumns, count_ngrams, known_columns, ngram_columns, remember_columns
from ._tokens import (
    BETWEEN_SPACES,
    PATTERNS,
    checked,
    document_number,
    number_tokens,
    tokenize,
)

# Characters of all documents from which on counting integers is faster than scikit-learn's code,
# and how many more are worth it for each term whose lookup has to be made.
MIN_SIZE = 20_000
_SIZE_PER_TERM = 2
_UNKNOWN_SIZE = 1_000  # characters of a file that has not been read


class _Pruned(dict[str, int]):
    """A vocabulary numbered alphabetically, less its terms of too few or too many documents."""

    columns: NgramColumns | None = None  # the lookup of its word n-grams


@public("sklearn_clsattn.text")
class TokenVectorizer(SavedMixin, CountVectorizer):
    r"""Count words, word n-grams or character n-grams, several times faster.

    A drop-in replacement for scikit-learn's `CountVectorizer`: parameters, vocabulary and matrix
    are the same, with the columns of every row in order.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer : various
        As in `CountVectorizer`, like all parameters.
    stop_words, ngram_range, analyzer, max_df, min_df, max_features, vocabulary : various
        What is counted.
    binary, dtype : various
        How counts are returned.
    token_pattern : str or None, default=r"(?u)\\b\\w\\w+\\b"
        The default, that of :class:`ContextVectorizer` and ``r"(?u)\\b\\w+(?:'\\w+)?\\b"`` are
        fastest.

    Notes
    -----
    Words are counted as integers, in whole arrays. scikit-learn's own code counts where that does
    not apply (a `tokenizer` that returns tokens with spaces, a callable `analyzer`,
    ``analyzer="char"``) or is not faster (few documents).

    Examples
    --------
    >>> from sklearn_clsattn.text import TokenVectorizer
    >>> vectorizer = TokenVectorizer(token_pattern=r"\w+(?:['’]\w+)*|[^\w\s]")
    >>> vectorizer.fit_transform(["I don't like it.", "I do!"]).toarray()
    array([[0, 1, 0, 1, 1, 1, 1],
           [1, 0, 1, 0, 1, 0, 0]])
    >>> vectorizer.get_feature_names_out()
    array(['!', '.', 'do', "don't", 'i', 'it', 'like'], dtype=object)
    """

    @all_or_nothing
    def fit_transform(self, raw_documents: Iterable[Any], y: Any = None) -> Any:
        """Learn the vocabulary of documents and count their n-grams.

        Parameters
        ----------
        raw_documents : iterable
            Texts, bytes, files or file names, as `input` says; a generator is read once.
        y : None
            Ignored.

        Returns
        -------
        counts : sparse matrix of shape (n_documents, n_features)
            Of `dtype`.
        """
        counts = super().fit_transform(raw_documents, y)
        vocabulary = self.vocabulary_
        self.vocabulary_: dict[Any, int] = dict(vocabulary)
        if isinstance(vocabulary, _Pruned) and vocabulary.columns is not None:
            remember_columns(self, vocabulary.columns)
        return counts

    # scikit-learn calls the three methods below from fit_transform and transform, which check
    # parameters, warn and raise. Should a release no longer call them, only speed is lost.

    def _count_vocab(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any]:
        """Return the vocabulary, and the counts of documents."""
        if self.input == "content" and self.preprocessor is None and not callable(self.analyzer):
            raw_documents = checked(raw_documents)
        pattern, enough = _fast_pattern(self), False
        if pattern is not None:
            least = MIN_SIZE
            if fixed_vocab and self.analyzer == "word" and known_columns(self) is None:
                least += _SIZE_PER_TERM * len(self.vocabulary_)
            enough, raw_documents = _peek(self, raw_documents, least)
        if pattern is None or not enough:
            return super()._count_vocab(raw_documents, fixed_vocab)
        self.build_analyzer()  # which warns of stop words that no token equals
        characters = self.analyzer == "char_wb"
        if characters or pattern in PATTERNS:
            tokens = tokenize(_texts(self, raw_documents), pattern, positions=False)
        else:
            raw_documents = list(raw_documents)
            tokens = number_tokens(_texts(self, raw_documents), self.build_tokenizer())
            if any(" " in word for word in tokens.words):  # n-grams' names would be ambiguous
                return super()._count_vocab(raw_documents, fixed_vocab)
        if not characters:
            tokens = tokens.without(self.get_stop_words() or ())
        if fixed_vocab:
            if characters:
                spelling = spelling_matrix(tokens.words, self.ngram_range, self.vocabulary_)
                return self.vocabulary_, count_spelled(tokens, spelling, self.dtype)
            counts = ngram_columns(self).count(tokens, self.ngram_range, self.dtype)
            return self.vocabulary_, counts
        longest = np.diff(tokens.indptr).max(initial=0)
        if longest < (1 if characters else self.ngram_range[0]):
            return super()._count_vocab([], fixed_vocab)  # raises: the vocabulary is empty
        low, high = (
            document_number(bound, tokens.n_documents) for bound in (self.min_df, self.max_df)
        )
        count = count_characters if characters else count_ngrams
        counts, names, *columns = count(
            tokens, self.ngram_range, low=low, high=high, dtype=self.dtype
        )
        order = np.arange(len(names))
        if characters:
            # Frequent n-grams come first in the dictionary, and so lie together in memory: looking
            # up those of a document is faster.
            order = np.argsort(-np.bincount(counts.indices, minlength=len(names)), kind="stable")
        vocabulary = _Pruned((names[i], i) for i in order.tolist())
        vocabulary.columns = columns[0] if columns else None
        return vocabulary, counts

    def _limit_features(
        self, X: Any, vocabulary: Any, high: Any = None, low: Any = None, limit: Any = None
    ) -> Any:
        """Return the counts without columns of too few or too many documents, or beyond `limit`."""
        pruned = isinstance(vocabulary, _Pruned) and vocabulary and limit is None
        return X if pruned else super()._limit_features(X, vocabulary, high, low, limit)

    def _sort_features(self, X: Any, vocabulary: dict[str, int]) -> Any:
        """Return the counts with columns in alphabetical order."""
        return X if isinstance(vocabulary, _Pruned) else super()._sort_features(X, vocabulary)


def _fast_pattern(vectorizer: Any) -> str | None:
    """Return the pattern of the tokens to count for a vectorizer; None if scikit-learn counts."""
    pattern: str | None = vectorizer.token_pattern
    if vectorizer.analyzer == "char_wb":
        pattern = BETWEEN_SPACES
    elif (
        vectorizer.analyzer != "word"
        or vectorizer.tokenizer is not None
        or (pattern not in PATTERNS and vectorizer.input != "content")  # files are read once
    ):
        return None
    bounds = vectorizer.ngram_range
    if len(bounds) != 2 or not all(isinstance(n, Integral) for n in bounds):
        return None
    dtype = vectorizer.dtype
    usual = dtype is not None and np.dtype(dtype).char in "?bBhHiIlLqQfd"
    return pattern if usual and 1 <= bounds[0] <= bounds[1] else None


def _peek(
    vectorizer: Any, raw_documents: Iterable[Any], min_size: int
) -> tuple[bool, Iterable[Any]]:
    """Return whether documents have `min_size` characters, and all of them, from the first on."""
    size = 0
    documents = iter(raw_documents)
    seen = []
    for document in documents:
        seen.append(document)
        known = vectorizer.input == "content" and isinstance(document, str | bytes)
        size += len(document) if known else _UNKNOWN_SIZE
        if size >= min_size:
            return True, chain(seen, documents)
    return False, seen


def _texts(vectorizer: Any, raw_documents: Iterable[Any]) -> Iterator[str]:
    """Yield documents decoded and preprocessed as a vectorizer does it."""
    preprocess = vectorizer.build_preprocessor()
    for document in raw_documents:
        text = preprocess(vectorizer.decode(document))
        if not isinstance(text, str):
            re.search("", text)  # raises as scikit-learn does: a string is expected
        yield text
