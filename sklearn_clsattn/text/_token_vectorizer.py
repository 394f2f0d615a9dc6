"""TokenVectorizer: scikit-learn's CountVectorizer, counting integers instead of strings."""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from .._estimators import CallbackSupportMixin, SavedMixin, all_or_nothing, fit_task
from .._matrices import as_configured
from ._character_ngrams import count_spelled, frequent_characters, spelling_matrix
from ._ngrams import count_ngrams, is_remembered, ngram_columns, remember_columns
from ._tokens import BETWEEN_SPACES, PATTERNS, Tokens, document_number, tokenize

# Total number of characters above which counting integers is faster than scikit-learn's code.
MIN_SIZE = 20_000


class TokenVectorizer(SavedMixin, CallbackSupportMixin, CountVectorizer):
    r"""Count words, word n-grams or character n-grams, several times faster.

    A drop-in replacement for scikit-learn's `CountVectorizer`, with the same parameters, vocabulary
    and matrix. The entries of each row are sorted by column.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer : various
        As in `CountVectorizer`, like all parameters.
    stop_words, ngram_range, analyzer, max_df, min_df, max_features, vocabulary : various
        Which tokens are counted.
    binary, dtype : various
        The form of the counts.
    token_pattern : str or None, default=r"(?u)\\b\\w\\w+\\b"
        These patterns are fast: the default, that of :class:`ContextVectorizer`, and ``r"\\S+"``.

    Notes
    -----
    Words are counted as integers, in whole arrays. scikit-learn's own code runs with other patterns
    or analyzers, a `tokenizer`, files, and for few documents, where it is as fast.

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
    @wraps(CountVectorizer.fit_transform)
    def fit_transform(self, raw_documents: Any, y: Any = None) -> Any:
        with fit_task(self, raw_documents, y):
            return super().fit_transform(raw_documents, y)

    # scikit-learn calls the three methods below from fit_transform and transform, which check
    # parameters, warn and raise. If a release stops calling them, only speed is lost.

    def _count_vocab(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any]:
        """Return the vocabulary, and the counts of documents."""
        is_fast = _is_fast(self)
        if is_fast:
            is_fast, raw_documents = _peek(raw_documents)
        if not is_fast:
            return super()._count_vocab(raw_documents, fixed_vocab)
        # 1) tokens
        self.build_analyzer()  # which warns of stop words that no token equals
        characters = self.analyzer == "char_wb"
        pattern = BETWEEN_SPACES if characters else self.token_pattern
        preprocess = self.build_preprocessor()
        texts = (preprocess(self.decode(document)) for document in raw_documents)
        tokens = tokenize(texts, pattern, positions=False)
        stop_words = None if characters else self.get_stop_words()
        if stop_words:
            tokens = tokens.without(frozenset(stop_words))
        # 2) counts of known terms
        if fixed_vocab:
            counts = self._count_known(tokens)
            return self.vocabulary_, as_configured(counts)
        # 3) counts of all terms in enough documents
        longest = np.diff(tokens.indptr).max(initial=0)
        if longest < (1 if characters else self.ngram_range[0]):
            return super()._count_vocab([], fixed_vocab)  # raises: the vocabulary is empty
        low = document_number(self.min_df, tokens.n_documents)
        high = document_number(self.max_df, tokens.n_documents)
        columns = None
        if characters:
            vocabulary, counts = self._count_characters(tokens, low, high)
        else:
            ngrams = count_ngrams(tokens, self.ngram_range, low=low, high=high, dtype=self.dtype)
            counts = ngrams.counts
            columns = ngrams.columns
            vocabulary = dict(zip(ngrams.names, range(len(ngrams.names)), strict=True))
        remember_columns(self, vocabulary, columns)
        return vocabulary, as_configured(counts)

    def _count_known(self, tokens: Tokens) -> csr_array:
        """Return the counts of the terms of the vocabulary, (n_documents, n_terms)."""
        if self.analyzer == "char_wb":
            spelling = spelling_matrix(tokens.words, self.ngram_range, self.vocabulary_)
            return count_spelled(tokens, spelling, self.dtype)
        return ngram_columns(self).count(tokens, self.ngram_range, self.dtype)

    def _count_characters(
        self, tokens: Tokens, low: float, high: float
    ) -> tuple[dict[str, int], csr_array]:
        """Return the character n-grams in `low` to `high` documents, and their counts."""
        spelling, names = frequent_characters(
            tokens.words, tokens.word_counts, self.ngram_range, low
        )
        counts = count_spelled(tokens, spelling, self.dtype)
        frequencies = np.bincount(counts.indices)
        kept = np.flatnonzero(frequencies <= high)
        if len(kept) < len(names):
            counts = counts[:, kept]
        # Frequent n-grams come first in the dictionary, and so lie together in memory, which
        # makes looking up those of a document faster.
        order = np.argsort(-frequencies[kept], kind="stable")
        vocabulary = {names[kept[column]]: column for column in order.tolist()}
        return vocabulary, counts

    def _limit_features(
        self, X: Any, vocabulary: Any, high: Any = None, low: Any = None, limit: Any = None
    ) -> Any:
        """Return the counts without columns that are too rare, too frequent, or beyond `limit`."""
        if vocabulary and limit is None and is_remembered(self, vocabulary):
            return X
        return super()._limit_features(X, vocabulary, high, low, limit)

    def _sort_features(self, X: Any, vocabulary: dict[str, int]) -> Any:
        """Return the counts with columns in alphabetical order."""
        if is_remembered(self, vocabulary):
            return X
        return super()._sort_features(X, vocabulary)


def _is_fast(vectorizer: TokenVectorizer) -> bool:
    """Return whether counting integers is faster for many documents of a vectorizer."""
    min_n, max_n = vectorizer.ngram_range
    if not 1 <= min_n <= max_n or vectorizer.input != "content":
        return False
    if vectorizer.analyzer == "word":
        return vectorizer.tokenizer is None and vectorizer.token_pattern in PATTERNS
    return vectorizer.analyzer == "char_wb"


def _peek(raw_documents: Iterable[Any]) -> tuple[bool, Iterable[Any]]:
    """Return whether the first documents are texts of `MIN_SIZE` characters, and all documents."""
    size = 0
    seen = []
    documents = iter(raw_documents)
    for document in documents:
        seen.append(document)
        if not isinstance(document, str | bytes):
            break
        size += len(document)
        if size >= MIN_SIZE:
            return True, chain(seen, documents)
    return False, chain(seen, documents)
