"""TokenVectorizer: scikit-learn's CountVectorizer, with the counting done on integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from .._saved import SavedMixin, public
from .._transaction import all_or_nothing
from ._characters import count_characters, count_parts, spelling_matrix
from ._ngrams import NgramColumns, count_ngrams
from ._raw import MIN_SIZE, checked, document_number, fast_pattern, peek, stop_words, texts
from ._tokens import PATTERNS, Tokens, number_tokens, tokenize

# How many more characters are worth it for each term that has to be made ready for looking up.
_SIZE_PER_TERM = 2

# What looking up needs of the vocabulary of each vectorizer that has looked up.
_COLUMNS: WeakKeyDictionary[CountVectorizer, tuple[Any, NgramColumns]] = WeakKeyDictionary()


class _Pruned(dict[str, int]):
    """A vocabulary numbered alphabetically, less its terms of too few or too many documents."""

    columns: NgramColumns | None = None  # what finds its word n-grams


@public("sklearn_clsattn.text")
class TokenVectorizer(SavedMixin, CountVectorizer):
    r"""Count words, word n-grams or character n-grams, several times faster.

    A drop-in replacement for scikit-learn's `CountVectorizer`: parameters, vocabulary and matrix
    are the same, with the columns of every row in order. Words and their n-grams are counted as
    integers, in whole arrays.

    Parameters
    ----------
    input, encoding, decode_error : str
        As in `CountVectorizer`, like all parameters.
    strip_accents, lowercase, preprocessor, tokenizer, stop_words : various
        How texts are cut into tokens.
    token_pattern : str or None, default=r"(?u)\\b\\w\\w+\\b"
        The default, `WORDS_AND_PUNCTUATION` and ``r"(?u)\\b\\w+(?:'\\w+)?\\b"`` are found in whole
        arrays, which is fastest.
    ngram_range, analyzer : various
        What is counted.
    max_df, min_df, max_features, vocabulary : various
        Which n-grams are columns.
    binary, dtype : various
        How counts are given.

    See Also
    --------
    HashingTokenVectorizer : Counts without a vocabulary, for streams.

    Notes
    -----
    Where integers do not apply (a `tokenizer`, tokens with spaces, a callable `analyzer`,
    ``analyzer="char"``) or do not pay (few documents), scikit-learn's own code counts.

    Examples
    --------
    >>> from sklearn_clsattn.text import WORDS_AND_PUNCTUATION, TokenVectorizer
    >>> vectorizer = TokenVectorizer(token_pattern=WORDS_AND_PUNCTUATION)
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
            _COLUMNS[self] = self.vocabulary_, vocabulary.columns
        return counts

    # scikit-learn calls the three methods below from fit_transform and transform, which check
    # parameters, warn and raise. Should a release call them no more, only speed is lost.

    def _count_vocab(self, raw_documents: Iterable[Any], fixed_vocab: bool) -> tuple[Any, Any]:
        """Return the vocabulary, and the counts of documents."""
        if self.input == "content" and self.preprocessor is None and not callable(self.analyzer):
            raw_documents = checked(raw_documents)
        pattern, enough = fast_pattern(self), False
        if pattern is not None:
            least = MIN_SIZE
            if fixed_vocab and self.analyzer == "word" and self._known_columns() is None:
                least += _SIZE_PER_TERM * len(self.vocabulary_)
            enough, raw_documents = peek(self, raw_documents, least)
        if pattern is None or not enough:
            return super()._count_vocab(raw_documents, fixed_vocab)
        self.build_analyzer()  # which warns of stop words that no token equals
        characters = self.analyzer == "char_wb"
        if characters or pattern in PATTERNS:
            tokens = tokenize(texts(self, raw_documents), pattern, positions=False)
        else:
            raw_documents = list(raw_documents)
            tokens = number_tokens(texts(self, raw_documents), self.build_tokenizer())
            if any(" " in word for word in tokens.words):  # n-grams' names do not tell them apart
                return super()._count_vocab(raw_documents, fixed_vocab)
        tokens = tokens.without(stop_words(self))
        if fixed_vocab:
            return self.vocabulary_, self._look_up(tokens)
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
            # Entries of n-grams that many documents have lie together in the dictionary: looking
            # up those of a document reads less memory.
            order = np.argsort(-np.bincount(counts.indices, minlength=len(names)), kind="stable")
        vocabulary = _Pruned((names[i], i) for i in order.tolist())
        vocabulary.columns = columns[0] if columns else None
        return vocabulary, counts

    def _limit_features(
        self,
        X: Any,
        vocabulary: dict[str, int],
        high: Any = None,
        low: Any = None,
        limit: Any = None,
    ) -> Any:
        """Return the counts less columns of too few or too many documents, and beyond `limit`."""
        if isinstance(vocabulary, _Pruned) and vocabulary and limit is None:
            return X
        return super()._limit_features(X, vocabulary, high, low, limit)

    def _sort_features(self, X: Any, vocabulary: dict[str, int]) -> Any:
        """Return the counts with columns in alphabetical order."""
        return X if isinstance(vocabulary, _Pruned) else super()._sort_features(X, vocabulary)

    def _look_up(self, tokens: Tokens) -> Any:
        """Return how often documents have each term of the vocabulary, (n_documents, n_columns)."""
        if self.analyzer == "char_wb":
            spelling = spelling_matrix(tokens.words, self.ngram_range, self.vocabulary_)
            return count_parts(tokens, spelling, self.dtype)
        columns = self._known_columns()
        if columns is None:
            columns = NgramColumns.of_vocabulary(self.vocabulary_)
            _COLUMNS[self] = self.vocabulary_, columns
        return columns.count(tokens, self.ngram_range, self.dtype)

    def _known_columns(self) -> NgramColumns | None:
        """Return what looking up needs, if the vocabulary is still that of the last time."""
        known = _COLUMNS.get(self)
        if known and known[0] is self.vocabulary_ and known[1].n_columns == len(known[0]):
            return known[1]
        return None
