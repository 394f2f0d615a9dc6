"""WordVectors: word vectors, learned from texts without labels or read from elsewhere."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils import check_scalar
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from .._bags import TokenVectors
from .._estimators import SavedMixin, all_or_nothing
from .._sklearn import Interval
from .._validation import checked_weights
from ._ngrams import count_ngrams
from ._normalization import normalized
from ._tokens import (
    WORDS_AND_PUNCTUATION,
    Ids,
    Tokens,
    TooFewWordsError,
    check_any_texts,
    checked_texts,
    has_letters,
    look_up,
    tokenize,
    tokens_of_tokenizer,
)

Vectors = NDArray[np.float32]

_MANY_WORDS = 50.0  # different words in a text, above which most pairs of words are unrelated
_POWER_ITERATIONS = 4
_MOST_CHARACTERS = 100_000_000  # some 75,000 reviews; with more, vectors hardly change


class WordVectors(SavedMixin, BaseEstimator):
    """Word vectors: words that occur in similar texts have similar vectors.

    They help :class:`~sklearn_clsattn.TextClassifier` to learn from few labels: a word that occurs
    in no labelled text is valued by its similarity to others. :meth:`fit` learns vectors from texts
    without labels; :meth:`from_file` and :meth:`from_mapping` read existing vectors. Texts and
    words have the normal form of :class:`ContextVectorizer`, and case is ignored. Fitted vectors
    stay fitted in clones.

    Parameters
    ----------
    n_components : int, default=50
        Maximum dimension of the vectors.
    min_df : int, default=3
        Words in fewer texts have no vector.
    max_words : int, default=20000
        Maximum number of words with a vector; the words in most texts are kept.
    tokenizer : callable or None, default=None
        Returns the words of a text; by default the words of :class:`ContextVectorizer`.

    Attributes
    ----------
    words_ : ndarray of shape (n_words,)
        The words.
    vectors_ : ndarray of shape (n_words, n_components)
        Their vectors, of length 1.

    Notes
    -----
    For short texts, a truncated singular value decomposition is applied to the positive pointwise
    mutual information of words in the same text [1]_; for texts with more than 50 different words
    on average, to the document-term matrix, weighted by inverse document frequencies [2]_. If the
    texts have more than 100 million characters together, evenly spaced texts are used.

    References
    ----------
    .. [1] O. Levy, Y. Goldberg (2014). Neural Word Embedding as Implicit Matrix Factorization.
       Advances in Neural Information Processing Systems 27.
    .. [2] S. Deerwester, S. T. Dumais, G. W. Furnas, T. K. Landauer, R. Harshman (1990). Indexing
       by Latent Semantic Analysis. Journal of the American Society for Information Science 41.

    Examples
    --------
    >>> from sklearn_clsattn import TextClassifier
    >>> from sklearn_clsattn.text import WordVectors
    >>> vectors = WordVectors.from_mapping({"good": [1, 0], "fine": [0.9, 0.1], "bad": [-1, 0]})
    >>> vectors.most_similar("good", k=1)[0][0]
    'fine'
    >>> model = TextClassifier(word_vectors=vectors)
    >>> model.fit(["good film", "bad film"], ["pos", "neg"]).predict(["fine"]).tolist()
    ['pos']
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "min_df": [Interval(Integral, 1, None, closed="left")],
        "max_words": [Interval(Integral, 1, None, closed="left")],
        "tokenizer": [callable, None],
    }

    def __init__(
        self,
        n_components: int = 50,
        *,
        min_df: int = 3,
        max_words: int = 20_000,
        tokenizer: Callable[[str], Iterable[Any]] | None = None,
    ) -> None:
        self.n_components = n_components
        self.min_df = min_df
        self.max_words = max_words
        self.tokenizer = tokenizer

    @all_or_nothing
    def fit(
        self, texts: Iterable[str], y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the vectors of the words in texts.

        Parameters
        ----------
        texts : iterable of str
            Texts, with or without labels.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_texts,), default=None
            Non-negative weights, which act as repetition, except that `min_df` counts each text of
            positive weight once.

        Returns
        -------
        self : object
            The fitted vectors.
        """
        normal = [_normalized(text) for text in checked_texts(texts)]
        check_any_texts(len(normal), 1)
        weights = checked_weights(normal, sample_weight)
        # 1) evenly spaced texts of positive weight
        step = max(1, round(sum(map(len, normal)) / _MOST_CHARACTERS))
        rows = np.flatnonzero(weights > 0)[::step]
        weights = weights[rows]
        tokens = self._words_in([normal[row] for row in rows.tolist()])
        check_any_texts(len(rows), len(tokens.ids))
        # 2) counts of the most frequent words
        ngrams = count_ngrams(tokens, (1, 1), low=self.min_df, dtype=np.float64)
        counts = ngrams.counts
        names = ngrams.names
        frequencies = _weighted_frequencies(counts, weights)
        most_frequent = np.argsort(-frequencies, kind="stable")[: self.max_words]
        columns = np.sort(most_frequent)
        if len(columns) < 2:
            raise TooFewWordsError(
                f"Only {len(columns)} words occur in at least {self.min_df} texts: pass more texts "
                "or lower min_df."
            )
        counts = counts[:, columns]
        # 3) a decomposition that suits the texts' lengths
        is_short = weights @ np.diff(counts.indptr) <= _MANY_WORDS * weights.sum()
        matrix = _associations(counts, weights) if is_short else _weighted_texts(counts, weights)
        size = min(self.n_components, min(matrix.shape) - 1)
        _, sizes, components = randomized_svd(
            matrix, size, n_iter=_POWER_ITERATIONS, random_state=0
        )
        vectors = components.T * (np.sqrt(sizes) if is_short else sizes)
        self._store(np.array(names, dtype=object)[columns], vectors)
        return self

    def _words_in(self, texts: list[str]) -> Tokens:
        """Return the tokens of normalized texts that have letters."""
        if self.tokenizer is None:
            tokens = tokenize(texts, WORDS_AND_PUNCTUATION, positions=False, scripts=True)
        else:
            tokens = tokens_of_tokenizer(texts, self.tokenizer)
        signs = frozenset(word for word in tokens.words if not has_letters(word))
        return tokens.without(signs)

    @classmethod
    def from_mapping(cls, mapping: Any) -> Self:
        """Return word vectors from a mapping.

        Parameters
        ----------
        mapping : mapping of str to array-like of shape (d,), or object
            A dictionary of word vectors, gensim's ``KeyedVectors`` or model2vec's ``StaticModel``.

        Returns
        -------
        vectors : WordVectors
            Fitted, with words in lower case. If words become equal, the first one is kept.
        """
        if hasattr(mapping, "index_to_key"):
            words = mapping.index_to_key
            vectors = mapping.vectors
        elif hasattr(mapping, "embedding") and hasattr(mapping, "tokens"):
            words = mapping.tokens
            vectors = mapping.embedding
        elif isinstance(mapping, Mapping):
            words = list(mapping)
            vectors = np.array(list(mapping.values()), dtype=np.float32)
        else:
            raise TypeError(
                "Expected a mapping of words to vectors, gensim's KeyedVectors or model2vec's "
                f"StaticModel, got {type(mapping).__name__}."
            )
        fitted = cls()
        fitted._store(words, vectors)
        return fitted

    @classmethod
    def from_file(cls, path: str | Path, *, words: Collection[str] | None = None) -> Self:
        """Read word vectors from a text file in the format of GloVe, word2vec and fastText.

        Parameters
        ----------
        path : str or path-like
            The file, with a word and its numbers on each line. It may be compressed with gzip, and
            may have a first line of two numbers.
        words : collection of str, default=None
            The words to read; None for all.

        Returns
        -------
        vectors : WordVectors
            Fitted, with words in lower case.
        """
        path = Path(path).expanduser()
        vectors: dict[str, NDArray[Any]] = {}
        size = None
        wanted = None if words is None else set(map(_normalized, words))
        opened: Any = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                # 1) the word, and the text of its numbers
                line = line.rstrip()
                word, _, rest = line.partition(" ")
                if number == 1 and word.isdecimal() and rest.strip().isdecimal():
                    continue  # number of words, and dimension
                if size and line.count(" ") > size:  # GloVe has some words with spaces
                    word = line.rsplit(" ", size)[0]
                    rest = line[len(word) :]
                if wanted is not None and _normalized(word) not in wanted:
                    continue
                # 2) its vector
                vector = np.fromstring(rest, dtype=np.float32, sep=" ")
                size = len(vector) if size is None else size
                if not size or len(vector) != size:
                    raise ValueError(
                        f"line {number} of {path} has {len(vector)} numbers after the word "
                        f"{word!r}, expected {size or 'some'}"
                    )
                vectors.setdefault(word, vector)
        return cls.from_mapping(vectors)

    def of(self, words: Iterable[str]) -> Vectors:
        """Return the vectors of words.

        Parameters
        ----------
        words : iterable of str
            Words; they are normalized like those of the vectors.

        Returns
        -------
        vectors : ndarray of shape (n_words, n_components)
            Of length 1; 0 for a word without a vector.
        """
        check_is_fitted(self)
        places = _places(self, map(_normalized, checked_texts(words)))
        return np.where(places[:, None] < 0, np.float32(0), self.vectors_[places])

    def most_similar(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """Return the words nearest to a word, with the cosines of their vectors.

        Parameters
        ----------
        word : str
            A word that has a vector.
        k : int, default=10
            Maximum number of words.

        Returns
        -------
        words : list of (str, float)
            The nearest first.
        """
        check_scalar(k, "k", Integral, min_val=1)
        word = _normalized(word)
        vector = self.of([word])[0]
        if not vector.any():
            raise ValueError(f"{word!r} has no vector: pass one of words_.")
        cosines = self.vectors_ @ vector
        order = np.argsort(-cosines, kind="stable")
        nearest = order[self.words_[order] != word][:k]
        return list(zip(self.words_[nearest], cosines[nearest].tolist(), strict=True))

    def __sklearn_clone__(self) -> Self:
        # Fitted vectors are kept.
        return self if hasattr(self, "vectors_") else type(self)(**self.get_params())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vectors_")

    def _store(self, words: Iterable[str], vectors: ArrayLike) -> None:
        """Keep the normalized vectors, (n_words, d), of words; of equal words, the first."""
        matrix = np.asarray(vectors, dtype=np.float32)
        names = [_normalized(str(word)) for word in words]
        if matrix.ndim != 2 or len(matrix) != len(names) or not np.isfinite(matrix).all():
            raise ValueError(
                f"Expected finite vectors of equal length for {len(names)} words, got an array of "
                f"shape {matrix.shape}."
            )
        # Of a word with vectors of length 0 only, nothing is known: it has none.
        lengths = np.linalg.norm(matrix, axis=1)
        row_of_name: dict[str, int] = {}
        for row, name in enumerate(names):
            if name and lengths[row] > 0:
                row_of_name.setdefault(name, row)
        rows = np.array(list(row_of_name.values()), dtype=np.intp)
        self.words_ = np.array(list(row_of_name), dtype=object)
        self.vectors_ = matrix[rows] / lengths[rows, None]


def _normalized(text: str) -> str:
    """Return a text or word in the normal form of the words."""
    return normalized(text, lowercase=True)


def vectors_of(vectors: WordVectors, names: Iterable[str]) -> TokenVectors:
    """Return the vectors of the columns with these names that are words with a vector."""
    places = _places(vectors, names)
    has_vector = places >= 0
    matrix = vectors.vectors_[places[has_vector]]
    return TokenVectors(np.flatnonzero(has_vector), matrix, len(places))


def _places(vectors: WordVectors, words: Iterable[str]) -> Ids:
    """Return the row of each word's vector, (n_words,), -1 for a word without one."""
    row_of_word = {word: row for row, word in enumerate(vectors.words_.tolist())}
    return look_up(list(words), row_of_word)


def side_by_side(one: WordVectors | None, other: WordVectors | None) -> WordVectors | None:
    """Concatenate two kinds of vectors, for all words that have at least one of them."""
    if one is None or other is None:
        return one or other
    words = list(dict.fromkeys([*one.words_.tolist(), *other.words_.tolist()]))
    both = np.hstack([one.of(words), other.of(words)])
    return WordVectors.from_mapping(dict(zip(words, both, strict=True)))


def _weighted_frequencies(counts: Any, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weight of the texts with each word, (n_words,), from CSR (n_texts, n_words)."""
    weight_of_entry = np.repeat(weights, np.diff(counts.indptr))
    return np.bincount(counts.indices, weight_of_entry, counts.shape[1]).astype(np.float64)


def _weighted_texts(counts: Any, weights: NDArray[np.float64]) -> Any:
    """Return the document-term matrix (n_texts, n_words), weighted by document frequencies.

    Rows of texts with a weight w are multiplied by the root of w: so they count as w rows in the
    sums of squares of a singular value decomposition.
    """
    tfidf = TfidfTransformer(smooth_idf=False, sublinear_tf=True).fit(counts)
    tfidf.idf_ = np.log(weights.sum() / _weighted_frequencies(counts, weights)) + 1.0
    return sp.diags_array(np.sqrt(weights)) @ tfidf.transform(counts)


def _associations(counts: Any, weights: NDArray[np.float64]) -> sp.csr_array:
    """Return the positive pointwise mutual information of words, (n_words, n_words).

    `weights` are those of the texts, (n_texts,).
    """
    # 1) weight of the texts with two different words
    present = sp.csr_array(counts, dtype=np.float32, copy=True)
    present.data[:] = 1.0
    weighted = present.copy()
    weighted.data *= np.repeat(weights, np.diff(present.indptr))
    together = (present.T @ weighted).tocoo()
    is_pair = together.row != together.col
    row = together.row[is_pair]
    column = together.col[is_pair]
    weight = together.data[is_pair]
    # 2) compared with chance
    totals = np.bincount(row, weight, present.shape[1])
    by_chance = totals[row] * totals[column]
    information = np.log(weight * totals.sum() / by_chance)
    is_positive = information > 0
    pairs = row[is_positive], column[is_positive]
    return sp.csr_array((information[is_positive], pairs), shape=together.shape)
