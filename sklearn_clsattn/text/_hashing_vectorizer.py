"""HashingTokenVectorizer: scikit-learn's HashingVectorizer, with raw counts and fast characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32

from .._saved import SavedMixin, public
from ._characters import character_ngrams, count_parts, spelled
from ._raw import MIN_SIZE, fast_pattern, peek, texts
from ._tokens import BETWEEN_SPACES, tokenize


@public("sklearn_clsattn.text")
class HashingTokenVectorizer(SavedMixin, HashingVectorizer):
    r"""Count words or n-grams in columns that hashing gives: no vocabulary, no fit, for streams.

    scikit-learn's `HashingVectorizer`, with the same columns and signs. By default it returns
    counts as they are, which are not negative: what classifiers of counts, those of this package
    among them, take. With ``analyzer="char_wb"`` it is several times faster, as each distinct
    n-gram of the documents is hashed once; for words, scikit-learn's own code is fast.

    Parameters
    ----------
    input, encoding, decode_error : str
        As in `HashingVectorizer`, like all parameters; defaults differ in the last line.
    strip_accents, lowercase, preprocessor, tokenizer, stop_words : various
        How texts are cut into tokens.
    token_pattern : str or None, default=r"(?u)\\b\\w\\w+\\b"
        Any, such as `WORDS_AND_PUNCTUATION`.
    ngram_range, analyzer : various
        What is counted.
    n_features : int, default=2**20
        How many columns there are.
    binary, dtype : various
        How counts are given.
    norm : {'l1', 'l2'} or None, default=None
        How rows are scaled.
    alternate_sign : bool, default=False
        Whether half of the n-grams are counted negatively.

    See Also
    --------
    TokenVectorizer : Counts with a vocabulary, whose columns have names.

    Examples
    --------
    >>> from sklearn_clsattn.text import HashingTokenVectorizer
    >>> vectorizer = HashingTokenVectorizer(n_features=8)
    >>> vectorizer.transform(["good, very good", "not good"]).toarray().sum(axis=1)
    array([3., 2.])
    """

    def __init__(
        self,
        *,
        input: Literal["content", "file", "filename"] = "content",
        encoding: str = "utf-8",
        decode_error: Literal["strict", "ignore", "replace"] = "strict",
        strip_accents: Literal["ascii", "unicode"] | Callable[[str], str] | None = None,
        lowercase: bool = True,
        preprocessor: Callable[[Any], str] | None = None,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
        stop_words: Literal["english"] | list[str] | None = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: Literal["word", "char", "char_wb"] | Callable[[Any], Iterable[str]] = "word",
        n_features: int = 2**20,
        binary: bool = False,
        norm: Literal["l1", "l2"] | None = None,
        alternate_sign: bool = False,
        dtype: DTypeLike = np.float64,
    ) -> None:
        super().__init__(
            input=input,
            encoding=encoding,
            decode_error=decode_error,
            strip_accents=strip_accents,
            lowercase=lowercase,
            preprocessor=preprocessor,
            tokenizer=tokenizer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngram_range=ngram_range,
            analyzer=analyzer,
            n_features=n_features,
            binary=binary,
            norm=norm,
            alternate_sign=alternate_sign,
            dtype=dtype,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # which older releases do not say
        return tags

    def transform(self, X: Iterable[Any]) -> Any:
        """Count the n-grams of documents.

        Parameters
        ----------
        X : iterable
            Texts, bytes, files or file names, as `input` says; a generator is read once.

        Returns
        -------
        counts : sparse matrix of shape (n_documents, n_features)
            Of `dtype`.
        """
        enough = False
        if (
            self.analyzer == "char_wb"  # words' hashes alone are quick: scikit-learn's own code
            and fast_pattern(self) is not None
            and np.dtype(self.dtype).kind in "if"
            and not isinstance(X, str)
        ):
            enough, X = peek(self, X, MIN_SIZE)
        if not enough:
            return super().transform(X)
        self.build_analyzer()  # which warns of what scikit-learn warns of
        tokens = tokenize(texts(self, X), BETWEEN_SPACES, positions=False)
        rows, numbers, names = character_ngrams(tokens.words, self.ngram_range)
        hashes = np.array([murmurhash3_32(name) for name in names], dtype=np.int64)
        columns = np.abs(hashes) % self.n_features
        order = np.argsort(columns, kind="stable")
        spelling = spelled(len(tokens.words), rows, numbers, order)
        counts = count_parts(tokens, spelling, self.dtype)
        data, indices = counts.data, columns[order].astype(np.int32)[counts.indices]
        if self.alternate_sign:
            data *= np.where(hashes < 0, -1, 1).astype(data.dtype)[order][counts.indices]
        # scikit-learn's matrix or array, whichever it returns
        kind = type(FeatureHasher(1, input_type="string").transform([[]]))
        shape = tokens.n_documents, self.n_features
        hashed = kind((data, indices, counts.indptr), shape=shape)
        hashed.has_sorted_indices = True
        hashed.sum_duplicates()
        if self.binary:
            hashed.data.fill(1)
        return hashed if self.norm is None else normalize(hashed, norm=self.norm, copy=False)
