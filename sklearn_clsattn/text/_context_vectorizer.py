"""ContextVectorizer: bags in which a word counts by where it stands and what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._documents import check_two_classes
from .._saved import SavedMixin, public
from .._transaction import all_or_nothing
from .._validation import check_labels
from ._characters import frequent_characters, spelling_matrix, sum_parts
from ._context import Learned, learn_scores
from ._evidence import gather_evidence
from ._gates import first_tokens, gated_bag, multipliers, word_sums
from ._ngrams import NgramColumns, count_ngrams
from ._places import BREAK, N_CELLS, NEW_LINE, Places, known_words
from ._raw import checked, document_number, least_documents
from ._row_stack import RowStack
from ._symbols import ranges
from ._tokens import (
    BETWEEN_SPACES,
    PATTERNS,
    WORDS_AND_PUNCTUATION,
    Tokens,
    batches,
    stretches,
    tokenize,
)

# Tokens have no white space in them, and word n-grams one space between words: never two.
CHARACTER_PREFIX = "char:  "

_BATCH = 1 << 24  # characters whose words are looked up together
_BLOCK = 1 << 17  # tokens whose occurrences are added up together
_PREVIOUS_LEAST = 20.0  # weight of the documents with a word that gets a score as the word before
# Documents with an n-gram: a number of them, or a share.
_DF = [
    Interval(Integral, 1, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="both"),
]
_EVIDENCE_LIMIT = 2e6  # entries times outputs that scores are learned from

# What looking up needs of each vectorizer's vocabulary; not pickled with it.
_COLUMNS: WeakKeyDictionary[Any, tuple[Any, NgramColumns]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Occurrences:
    """The occurrences of a vectorizer's features in one text.

    Attributes
    ----------
    columns : ndarray of shape (n_occurrences,)
        The feature of each occurrence.
    starts, stops : ndarray of shape (n_occurrences,)
        The occurrence is ``text[start:stop]``.
    weights : ndarray of shape (n_occurrences,)
        What it counts: the weights of a column add up to the column's entry of the text's row.
    """

    columns: NDArray[np.intp]
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    weights: NDArray[np.float64]


class _Labels(NamedTuple):
    """Class labels (n_classes,), and the documents' class codes and weights, (n_documents,)."""

    classes: NDArray[Any]
    codes: NDArray[np.intp]
    weights: NDArray[np.float64]


class _Words(NamedTuple):
    """The words of preprocessed texts."""

    tokens: Tokens
    columns: list[NDArray[Any]]  # for each number of words, of the n-grams that begin at tokens
    places: Places


class _Characters(NamedTuple):
    """The words between white space, and how often they have character n-grams."""

    spaced: Tokens
    firsts: NDArray[np.intp]  # (n_spaced,), the first token in each, -1 where there is none
    parts: Any  # CSR (n_distinct_words, n_columns)


@public("sklearn_clsattn.text")
class ContextVectorizer(SavedMixin, TransformerMixin, BaseEstimator):
    r"""Turn texts into bags in which a word counts by where it stands and what stands before it.

    For use before a linear or attention classifier that takes the numbers as they are. Features are
    words with punctuation, their n-grams, and character n-grams within words. An occurrence counts
    by a gate that depends on its place alone: how far from the start and the end of the document it
    stands, of how many words it is, and which word is before it. The gates are learned from the
    labels, by a naive Bayes with attention that judges every document by all others; in a
    `Pipeline`, cross-validation learns them anew in every fold.

    Parameters
    ----------
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        The numbers of words of the n-grams.
    min_df : int, float or "auto", default="auto"
        Word n-grams in fewer documents are left out. A float is a share of the documents, from 0
        to 1; "auto" is 1 for fewer than 5,000 documents, else 2.
    max_df : int or float, default=1.0
        Word n-grams in more documents are left out.
    token_pattern : str, default=WORDS_AND_PUNCTUATION
        Regular expression of a token, without white space and without groups that capture. The
        default finds words, contractions in one piece, and every other sign by itself.
    lowercase : bool, default=True
        Whether to convert texts to lower case first.
    characters : tuple (min_n, max_n) or None, default=(2, 5)
        The lengths of character n-grams within words between white space, as with
        ``analyzer="char_wb"`` of `CountVectorizer`; ``None`` for none.
    character_min_df : int, float or "auto", default="auto"
        Character n-grams in fewer documents are left out. "auto" is 1 for fewer than 5,000
        documents, else 3.
    character_weight : float, default=0.3
        Factor of the character n-grams' entries, beside 1 for words.
    context : bool, default=True
        Whether to learn gates. Without them, a feature that occurs c times has 1 + ln c.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the bags. This package's classifiers train on either in its own precision:
        single is faster, takes a third less memory and predicts as well.
    encoding, decode_error : str, default="utf-8" and "strict"
        How documents that are bytes are decoded, as with `CountVectorizer`.

    Attributes
    ----------
    start_scores_, end_scores_ : ndarray of shape (n_orders, 10)
        Scores by the number of words of the n-gram, one row for each in `ngram_range`, and by the
        position of its first token, counted from 1 from the start and from the end: 1, 2 to 3,
        4 to 7, 8 to 15 and so on, 512 and beyond.
    previous_words_ : ndarray of shape (n_previous,)
        The words that have a score as the word before: those in documents of a weight of 20 or
        more.
    previous_word_scores_ : ndarray of shape (n_previous,)
        Their scores.
    evidence_scale_ : float
        How strongly the gated naive Bayes spoke, the alpha of the notes.
    vocabulary_, character_vocabulary_ : dict
        The column of each word n-gram; of each character n-gram, less the number of the former.
    classes_ : ndarray of shape (n_classes,)
        The class labels that gates were learned from; not with ``context=False``.

    See Also
    --------
    TokenVectorizer : Counts without context.
    sklearn_clsattn.inspection.ContextDisplay : A picture of what places do.

    Notes
    -----
    An occurrence o of a word n-gram has the score :math:`e_o`, the sum of the three scores of its
    place; that of the word before is 0 where one of ``. ! ? ; : ,`` or a new line stands between,
    or where the word is rare. With c occurrences of the n-gram in the document, it counts

    .. math:: h\, \frac{1 + \ln c}{c}\, e^{e_o / 2}

    with a factor h that leaves the document's total weight as it is without gates. Characters have
    the gate of the first word in their stretch between white space, and an h of their own.

    The scores minimise the summed log loss of :math:`\beta + \alpha N_i / d_i` plus a small
    penalty. :math:`N_i` is the document's evidence, :math:`\frac{1 + \ln c}{c} e^{e_o}` times the
    n-gram's log-odds between the classes **by all other documents**, summed over its occurrences;
    :math:`d_i` is its attention mass. Documents with the same words are left out together.

    Sample weights act as repetition: with the same columns, a weight of 2 gives the scores that the
    document twice does, up to rounding. Only `min_df` and `character_min_df` count every document
    once, whatever its weight. On large sets gates are learned from a part of the documents, chosen
    by their words alone and not by their order.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn.text import ContextVectorizer
    >>> texts = ["a good film", "good fun", "a bad film", "not good, but dull"]
    >>> vectorizer = ContextVectorizer(min_df=1, characters=None)
    >>> model = make_pipeline(vectorizer, LogisticRegression())
    >>> model = model.fit(texts, ["pos", "pos", "neg", "neg"])
    >>> occurrences = model[0].occurrences("Good film")
    >>> names = model[0].get_feature_names_out()
    >>> names[occurrences.columns]
    array(['good', 'film', 'good film'], dtype=object)
    >>> float(occurrences.weights.sum().round(6))
    3.0
    """

    start_scores_: NDArray[np.float64]
    end_scores_: NDArray[np.float64]
    previous_words_: NDArray[np.object_]
    previous_word_scores_: NDArray[np.float64]
    evidence_scale_: float
    vocabulary_: dict[str, int]
    character_vocabulary_: dict[str, int]
    classes_: NDArray[Any]

    _unsaved_parameters = {"dtype": np.float64}
    _parameter_constraints: dict[str, list[Any]] = {
        "ngram_range": [tuple, list],
        "min_df": [*_DF, StrOptions({"auto"})],
        "max_df": _DF,
        "token_pattern": [str],
        "lowercase": ["boolean"],
        "characters": [tuple, list, None],
        "character_min_df": [*_DF, StrOptions({"auto"})],
        "character_weight": [Interval(Real, 0, None, closed="neither")],
        "context": ["boolean"],
        "dtype": [Options(type, {np.float32, np.float64})],
        "encoding": [str],
        "decode_error": [StrOptions({"strict", "ignore", "replace"})],
    }

    def __init__(
        self,
        *,
        ngram_range: tuple[int, int] = (1, 2),
        min_df: float | Literal["auto"] = "auto",
        max_df: float = 1.0,
        token_pattern: str = WORDS_AND_PUNCTUATION,
        lowercase: bool = True,
        characters: tuple[int, int] | None = (2, 5),
        character_min_df: float | Literal["auto"] = "auto",
        character_weight: float = 0.3,
        context: bool = True,
        dtype: type[np.floating[Any]] = np.float32,
        encoding: str = "utf-8",
        decode_error: str = "strict",
    ) -> None:
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.characters = characters
        self.character_min_df = character_min_df
        self.character_weight = character_weight
        self.context = context
        self.dtype = dtype
        self.encoding = encoding
        self.decode_error = decode_error

    @all_or_nothing
    def fit(
        self,
        raw_documents: Iterable[str],
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the features and the gates of their occurrences.

        Parameters
        ----------
        raw_documents : iterable of str or bytes
            Texts.
        y : array-like of shape (n_documents,)
            Class labels, of two classes or more; not used with ``context=False``.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each document, which acts as repeating it; ``None`` means 1 for all.

        Returns
        -------
        self : object
            Fitted vectorizer.

        Raises
        ------
        TypeError
            If a document is no string.
        ValueError
            If a document or a label is None or NaN, if no word n-gram is in as many documents as
            `min_df` and `max_df` ask, if y is missing or has a single class, if the lengths
            disagree, or if a parameter is out of its range.
        """
        self._fit(raw_documents, y, sample_weight)
        return self

    @all_or_nothing
    def fit_transform(
        self,
        raw_documents: Iterable[str],
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Learn features and gates, and return the documents' bags.

        Parameters
        ----------
        raw_documents, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            As of :meth:`transform`, CSR.
        """
        words, characters = self._fit(raw_documents, y, sample_weight)
        bags = self._no_bags(words.tokens.n_documents)
        self._add_bags(bags, words, characters)
        return bags.matrix()

    def transform(self, raw_documents: Iterable[str]) -> Any:
        """Return the bags of documents.

        Parameters
        ----------
        raw_documents : iterable of str or bytes
            Texts. Words that were not in the training documents are left out.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            The sums of the occurrences' weights, CSR of `dtype`.
        """
        check_is_fitted(self)
        texts = self._texts(raw_documents)
        bags = self._no_bags(len(texts))
        for batch in batches(texts, _BATCH):
            words = self._words(batch)
            self._add_bags(bags, words, self._spelled(batch, words.tokens))
        return bags.matrix()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        names : ndarray of shape (n_features,)
            Word n-grams, with one space between the words, then character n-grams after
            ``"char:  "``, which no word n-gram begins with.
        """
        check_is_fitted(self)
        names = np.empty(self._n_features, dtype=object)
        names[: len(self.vocabulary_)] = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        for ngram, column in self.character_vocabulary_.items():
            names[len(self.vocabulary_) + column] = CHARACTER_PREFIX + ngram
        return names

    def occurrences(self, text: str) -> Occurrences:
        """Return all occurrences of features in a text, with what each counts.

        Parameters
        ----------
        text : str
            A text.

        Returns
        -------
        occurrences : Occurrences
            Arrays `columns`, `starts`, `stops` and `weights`. Weights added up by column are the
            row of :meth:`transform`: a linear classifier's decision is a sum over occurrences.
            Of a character n-gram, the white space around words is not in ``text[start:stop]``.
        """
        check_is_fitted(self)
        lower = self._texts([text])
        text = self._decoded(text)
        words = self._words(lower)
        tokens, gates = words.tokens, self._gates(words.places)
        parts = []
        for n, (column, gate) in enumerate(zip(words.columns, gates, strict=True)):
            at = np.flatnonzero(column >= 0)
            stops = tokens.stops[at + n + self.ngram_range[0] - 1]
            parts.append(np.stack([column[at], tokens.starts[at], stops, gate[at]]))
        found = [_weighted(np.concatenate(parts, axis=1), 1.0)]
        if self.character_vocabulary_:
            spaced, firsts = self._spaced(lower, tokens)
            known, lengths = [], []
            for word in spaced.words:
                rows = [
                    (len(self.vocabulary_) + self.character_vocabulary_[ngram], start, stop)
                    for ngram, start, stop in self._character_ngrams(word)
                    if ngram in self.character_vocabulary_
                ]
                known += rows
                lengths.append(len(rows))
            counts = np.array(lengths, dtype=np.intp)
            begins = (np.cumsum(counts) - counts)[spaced.ids]
            counts = counts[spaced.ids]
            columns, starts, stops = np.reshape(known, (-1, 3))[ranges(begins, counts)].T
            places = np.repeat(spaced.starts, counts)
            gate = np.repeat(np.append(gates[0], 1.0)[firsts], counts)
            inside = np.stack([columns, places + starts, places + stops, gate])
            found.append(_weighted(inside, self.character_weight))
        joined = np.concatenate(found, axis=1)
        columns = joined[0].astype(np.intp)
        starts, stops = _within(text, lower[0], joined[1:3].astype(np.intp))
        return Occurrences(columns, starts, stops, joined[3])

    def _word_places(self, text: str) -> NDArray[np.intp]:
        """Return where all tokens of a text start and stop, known or not, (n_tokens, 2)."""
        lower = self._texts([text])
        tokens = self._tokens(lower)
        places = np.stack([tokens.starts, tokens.stops]).astype(np.intp)
        return _within(text, lower[0], places).T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = self.context
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def _fit(
        self, raw_documents: Iterable[str], y: Any, sample_weight: Any
    ) -> tuple[_Words, _Characters | None]:
        """Set all attributes; return what the documents' bags are made of."""
        for name in ("ngram_range", "characters"):
            _check_range(getattr(self, name), name)
        texts = self._texts(raw_documents)
        labels = _labels(texts, y, sample_weight) if self.context else None
        tokens = self._tokens(texts)
        counts: Any = None
        names: list[str] = []
        low = least_documents(self.min_df, len(texts), otherwise=2)
        high = document_number(self.max_df, len(texts))
        if len(tokens.ids):
            counts, names, columns = count_ngrams(
                tokens, self.ngram_range, low=low, high=high, dtype=np.float64
            )
        if not names:
            raise ValueError(
                f"No n-gram of {self.ngram_range[0]} to {self.ngram_range[1]} tokens is in "
                f"{low:g} to {high:g} of the {len(texts)} documents, as min_df={self.min_df} and "
                f"max_df={self.max_df} ask: lower min_df, raise max_df, or pass more documents."
            )
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        _COLUMNS[self] = self.vocabulary_, columns
        characters = self._fit_characters(texts, tokens)
        known = known_words(tokens, labels.weights, _PREVIOUS_LEAST) if labels else []
        self.previous_words_ = np.array([*known, ""], dtype=object)[:-1]
        words = self._words(texts, tokens)
        self._fit_scores(words, counts, labels)
        return words, characters

    def _fit_scores(self, words: _Words, counts: Any, labels: _Labels | None) -> None:
        """Set the scores of places, to 0 without labels; `counts` are CSR, of word n-grams."""
        n_orders = self.ngram_range[1] - self.ngram_range[0] + 1
        n_positions = 2 * n_orders * N_CELLS
        learned = Learned(np.zeros(n_positions), 0.0)
        self.__dict__.pop("classes_", None)
        if labels is not None:
            evidence = gather_evidence(
                counts,
                words.tokens.documents,
                words.columns,
                words.places,
                len(self.previous_words_),
                labels.codes,
                labels.weights,
                n_classes=len(labels.classes),
                limit=_EVIDENCE_LIMIT,
            )
            learned = learn_scores(evidence, n_positions)
            self.classes_ = labels.classes
        positions, self.previous_word_scores_ = np.split(learned.scores, [n_positions])
        self.start_scores_, self.end_scores_ = positions.reshape(2, n_orders, N_CELLS)
        self.evidence_scale_ = learned.scale

    def _fit_characters(self, texts: list[str], tokens: Tokens) -> _Characters | None:
        """Set `character_vocabulary_`: the character n-grams of enough documents."""
        self.character_vocabulary_ = {}
        if self.characters is None:
            return None
        spaced, firsts = self._spaced(texts, tokens)
        low = least_documents(self.character_min_df, len(texts), otherwise=3)
        parts, names = frequent_characters(spaced, self.characters, low=low)
        self.character_vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        return _Characters(spaced, firsts, parts) if names else None

    def _spelled(self, texts: list[str], tokens: Tokens) -> _Characters | None:
        """Return the character n-grams of preprocessed texts, None if there are no columns."""
        if self.characters is None or not self.character_vocabulary_:
            return None
        spaced, firsts = self._spaced(texts, tokens)
        parts = spelling_matrix(spaced.words, self.characters, self.character_vocabulary_)
        return _Characters(spaced, firsts, parts)

    def _spaced(self, texts: list[str], tokens: Tokens) -> tuple[Tokens, NDArray[np.intp]]:
        """Return the words between white space, and the first token in each, -1 without."""
        if self.token_pattern == WORDS_AND_PUNCTUATION:
            return stretches(tokens, texts)
        spaced = tokenize(texts, BETWEEN_SPACES)
        return spaced, first_tokens(spaced, tokens)

    def _no_bags(self, n_documents: int) -> RowStack:
        """Return a matrix that waits for the bags of documents."""
        return RowStack((n_documents, self._n_features), self.dtype)

    @property
    def _n_features(self) -> int:
        return len(self.vocabulary_) + len(self.character_vocabulary_)

    def _texts(self, raw_documents: Iterable[Any]) -> list[str]:
        """Return documents decoded and preprocessed."""
        if isinstance(raw_documents, str | bytes):
            raise ValueError("Expected an iterable of texts, got one text: pass [text].")
        texts = [self._decoded(document) for document in checked(raw_documents)]
        wrong = next((at for at, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise TypeError(
                f"Documents must be texts, but the one at position {wrong} is {texts[wrong]!r}: "
                "leave it out, or convert it to str."
            )
        return [text.lower() for text in texts] if self.lowercase else texts

    def _decoded(self, text: Any) -> Any:
        """Return a text that is bytes as a string, anything else as it is."""
        return text.decode(self.encoding, self.decode_error) if isinstance(text, bytes) else text

    def _tokens(self, texts: list[str]) -> Tokens:
        """Return the tokens of preprocessed texts."""
        if self.token_pattern in PATTERNS:
            return tokenize(texts, self.token_pattern)
        return _tokens_of_any_pattern(texts, self.token_pattern)

    def _columns_of(self, tokens: Tokens) -> list[NDArray[Any]]:
        """Return the columns of the n-grams that begin at each token, one array a length."""
        vocabulary, columns = _COLUMNS.get(self, (None, None))
        if columns is None or vocabulary is not self.vocabulary_:
            columns = NgramColumns.of_vocabulary(self.vocabulary_)
            _COLUMNS[self] = self.vocabulary_, columns
        return list(columns.of(tokens, self.ngram_range[1]))[self.ngram_range[0] - 1 :]

    def _words(self, texts: list[str], tokens: Tokens | None = None) -> _Words:
        """Return the words of preprocessed texts; `tokens` are theirs, if they are known."""
        tokens = self._tokens(texts) if tokens is None else tokens
        return _Words(tokens, self._columns_of(tokens), self._places(texts, tokens))

    def _places(self, texts: list[str], tokens: Tokens) -> Places:
        """Return where tokens stand."""
        known = {word: number for number, word in enumerate(self.previous_words_.tolist())}
        # These tokens have all signs in them: no break but a new line is between two.
        between = NEW_LINE if self.token_pattern == WORDS_AND_PUNCTUATION else BREAK
        return Places.of(tokens, texts, known, between)

    def _gates(self, places: Places) -> NDArray[np.float64]:
        """Return the gates of the n-grams that begin at each token, (n_orders, n_tokens)."""
        scores = self.start_scores_, self.end_scores_, self.previous_word_scores_
        return multipliers(places, *scores)

    def _add_bags(self, bags: RowStack, words: _Words, characters: _Characters | None) -> None:
        """Add the bags of documents to those before, some documents at a time."""
        tokens = words.tokens
        dtype = np.result_type(self.dtype, np.complex64)
        for first, last in tokens.spans(_BLOCK):
            indptr = tokens.indptr[first : last + 1]
            here = slice(int(indptr[0]), int(indptr[-1]))
            gates = self._gates(words.places[here])
            columns = [column[here] for column in words.columns]
            shape = last - first, len(self.vocabulary_)
            bag = gated_bag(word_sums(columns, gates, indptr - here.start, shape, dtype))
            if characters is not None:
                spaced, firsts, parts = characters
                indptr = spaced.indptr[first : last + 1]
                inside = slice(int(indptr[0]), int(indptr[-1]))
                at = np.maximum(firsts[inside] - here.start, -1)
                values = (1.0 + 1j * np.append(gates[0], 1.0)[at]).astype(dtype)
                sums = sum_parts(spaced.ids[inside], indptr - inside.start, values, parts)
                of_characters = gated_bag(sums)
                of_characters.data *= self.character_weight
                bag = sparse.hstack([bag, of_characters], format="csr")
            bags.append(bag)

    def _character_ngrams(self, word: str) -> Iterable[tuple[str, int, int]]:
        """Yield the character n-grams of a word between spaces, and where in it they are."""
        length, spaced = len(word), f" {word} "
        assert self.characters is not None
        for n in range(self.characters[0], self.characters[1] + 1):
            for first in range(max(len(spaced) - n, 0) + 1):
                # A space alone is placed on the character beside it.
                start, stop = min(max(first - 1, 0), length - 1), max(min(first - 1 + n, length), 1)
                yield spaced[first : first + n], start, stop
            if len(spaced) <= n:  # a short word counts once
                break


def _within(text: str, lower: str, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return starts and stops, (2, n), in a text, given those in the text preprocessed."""
    if len(lower) == len(text):
        return places
    # A few letters have two in lower case.
    origins = np.repeat(np.arange(len(text)), [len(one.lower()) for one in text])
    return np.stack([origins[places[0]], origins[places[1] - 1] + 1])


def _weighted(occurrences: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return columns, starts, stops and weights of a document's occurrences, given their gates."""
    columns, _, _, gates = occurrences
    _, number, counts = np.unique(columns, return_inverse=True, return_counts=True)
    factors = ((1.0 + np.log(counts)) / counts)[number]
    weights = factors * gates
    if len(weights):
        weights *= factor * factors.sum() / weights.sum()
    return np.stack([*occurrences[:3], weights])


def _labels(texts: list[str], y: Any, sample_weight: Any) -> _Labels:
    """Return checked labels and sample weights of documents."""
    if y is None:
        raise ValueError(
            "ContextVectorizer learns gates from class labels: expected y, got None. Pass y, or "
            "context=False for a bag without gates."
        )
    check_labels(y)
    y = column_or_1d(y, warn=True)
    check_consistent_length(texts, y)
    check_classification_targets(y)
    weights = _check_sample_weight(sample_weight, texts, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    classes, codes = np.unique(y, return_inverse=True)
    check_two_classes(classes, np.bincount(codes, weights).astype(np.float64))
    return _Labels(classes, codes, weights)


def _check_range(bounds: Any, name: str) -> None:
    """Raise ValueError unless a parameter is None or two integers, from 1 on and in order."""
    if bounds is None:
        return
    if not (
        len(bounds) == 2
        and all(isinstance(n, Integral) for n in bounds)
        and 1 <= bounds[0] <= bounds[1]
    ):
        raise ValueError(
            f"{name} must be two integers (min_n, max_n) with 1 <= min_n <= max_n, got {bounds!r}."
        )


def _tokens_of_any_pattern(texts: list[str], pattern: str) -> Tokens:
    """Return the tokens that a regular expression finds in texts."""
    expression = re.compile(pattern)
    if expression.groups:
        raise ValueError(f"token_pattern must have no group that captures, got {pattern!r}.")
    numbers: dict[str, int] = {}
    found, indptr = [], [0]
    for text in texts:
        for match in expression.finditer(text):
            if match.group():
                word = numbers.setdefault(match.group(), len(numbers))
                found.append((word, match.start(), match.end()))
        indptr.append(len(found))
    spaced = next((word for word in numbers if word.split() != [word]), None)
    if spaced is not None:
        raise ValueError(
            f"token_pattern must find no white space, but {pattern!r} found {spaced!r}."
        )
    ids, starts, stops = np.array(found, dtype=np.int32).reshape(-1, 3).T
    return Tokens(ids, np.array(indptr), starts, stops, list(numbers))
