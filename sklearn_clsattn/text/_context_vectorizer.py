"""ContextVectorizer: bags in which a word counts by its position and by the word before it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self

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

from .._pickling import SavedMixin, public
from .._training import all_or_nothing
from .._validation import check_labels, check_two_classes
from ._characters import RowStack, frequent_characters, located_ngrams, spelling_matrix, sum_spelled
from ._context_gates import context_gates, first_tokens, gated_bag, word_sums
from ._gate_scores import Labels, gather_evidence, learn_scores
from ._ngrams import count_ngrams, ngram_columns, remember_columns
from ._symbols import ranges
from ._token_positions import (
    BREAK,
    N_CELLS,
    NEW_LINE,
    TokenPositions,
    Words,
    frequent_words,
    token_positions,
)
from ._tokens import (
    BETWEEN_SPACES,
    PATTERNS,
    WORDS_AND_PUNCTUATION,
    Tokens,
    batches,
    checked,
    document_number,
    least_documents,
    matched_tokens,
    tokenize,
    words_between_spaces,
)

# Word n-grams never have two spaces in a row.
CHARACTER_PREFIX = "char:  "

_BATCH = 1 << 24  # characters whose words are looked up together
_BLOCK = 1 << 17  # tokens whose occurrences are summed together
_PREVIOUS_LEAST = 20.0  # weight of the documents with a word that gets a score as the word before
# Documents with an n-gram: a number of them, or a share.
_DF = [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="both")]
_EVIDENCE_LIMIT = 2e6  # entries times outputs that scores are learned from


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
        The weight of each: those of a column sum to the column's entry in the text's row.
    words : ndarray of shape (n_words, 2)
        Where the words of the text start and stop, unknown ones included.
    """

    columns: NDArray[np.intp]
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    weights: NDArray[np.float64]
    words: NDArray[np.intp]


class _Characters(NamedTuple):
    """The words between white space, and how often they have character n-grams."""

    spaced: Tokens
    firsts: NDArray[np.intp]  # (n_spaced,), the first token in each, -1 where there is none
    spelling: Any  # CSR (n_distinct_words, n_columns)


@public("sklearn_clsattn.text")
class ContextVectorizer(SavedMixin, TransformerMixin, BaseEstimator):
    r"""Turn texts into bags in which a word counts by its position and by the word before it.

    For use before a linear or attention classifier that takes the numbers as they are. Features are
    words and punctuation, their n-grams, and character n-grams within words. The weight of an
    occurrence is multiplied by a gate that depends only on its context: how far it is from the
    start and the end of the document, how many words it has, and which word comes before it. The
    gates are learned from the labels, by a naive Bayes with attention that predicts every document
    from all others. In a `Pipeline`, cross-validation learns them again in every fold.

    Parameters
    ----------
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        The smallest and largest number of words of an n-gram.
    min_df : int, float or "auto", default="auto"
        Word n-grams in fewer documents are left out. A float is a share of the documents, from 0
        to 1; "auto" is 1 for fewer than 5,000 documents, else 2.
    max_df : int or float, default=1.0
        Word n-grams in more documents are left out.
    token_pattern : str, default=r"\w+(?:['’]\w+)*|[^\w\s]"
        Regular expression of a token. It must not match white space or contain capturing groups.
        The default matches words, contractions as one token, and every other sign by itself.
    lowercase : bool, default=True
        Whether to convert texts to lower case first.
    characters : tuple (min_n, max_n) or None, default=(2, 5)
        The smallest and largest length of character n-grams within words, as with
        ``analyzer="char_wb"`` in `CountVectorizer`; ``None`` for none.
    character_min_df : int, float or "auto", default="auto"
        Character n-grams in fewer documents are left out. "auto" is 1 for fewer than 5,000
        documents, else 3.
    character_weight : float, default=0.3
        Factor of the character n-grams' entries; words have 1.
    context : bool, default=True
        Whether to learn gates. Without them, a feature that occurs c times counts 1 + ln c.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the bags, in which this package's classifiers then train. Single precision is
        faster, needs a third less memory and predicts as well.
    encoding, decode_error : str, default="utf-8" and "strict"
        How documents that are bytes are decoded, as in `CountVectorizer`.

    Attributes
    ----------
    start_scores_, end_scores_ : ndarray of shape (n_orders, 10)
        Scores by the number of words of the n-gram, one row for each in `ngram_range`, and by the
        position of its first token, counted from 1 from the start and from the end: 1, 2 to 3,
        4 to 7, 8 to 15 and so on, 512 and beyond.
    previous_words_, previous_word_scores_ : ndarray of shape (n_previous,)
        The words with a score as the word before, which are in documents of a total weight of 20 or
        more, and their scores.
    evidence_scale_ : float
        The weight of the gated naive Bayes.
    vocabulary_, character_vocabulary_ : dict
        The column of each word n-gram, and of each character n-gram, counted from the first one.
    classes_ : ndarray of shape (n_classes,)
        The class labels; not with ``context=False``.

    Notes
    -----
    An occurrence o of a word n-gram has the score :math:`e_o`: by its distance from the start, plus
    by that from the end, plus by the word before, unless one of ``. ! ? ; : ,`` or a new line is
    between. If the n-gram occurs c times in the document, the weight of o is

    .. math:: h\, \frac{1 + \ln c}{c}\, e^{e_o / 2}

    with a factor h that leaves the document's total weight as it is without gates. Characters have
    the gate of the first word between the same white space, and an h of their own.

    Sample weights act as repetition, except that `min_df` and `character_min_df` count every
    document once. On large sets, gates are learned from a part of the documents, chosen by their
    words alone and not by their order.

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
            Class labels of at least two classes; not used with ``context=False``.
        sample_weight : array-like of shape (n_documents,), default=None
            Weight of each document, which acts as repeating it; ``None`` means 1 for all.

        Returns
        -------
        self : object
            Fitted vectorizer.
        """
        self._learn(raw_documents, y, sample_weight)
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
        words, characters = self._learn(raw_documents, y, sample_weight)
        bags = RowStack((words.tokens.n_documents, self._n_features), self.dtype)
        self._add_bags(bags, words, characters)
        return bags.matrix()

    def transform(self, raw_documents: Iterable[str]) -> Any:
        """Return the bags of documents.

        Parameters
        ----------
        raw_documents : iterable of str or bytes
            Texts. Words that are not in the vocabulary are left out.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            The sums of the occurrences' weights, CSR of `dtype`.
        """
        check_is_fitted(self)
        texts = self._texts(raw_documents)
        bags = RowStack((len(texts), self._n_features), self.dtype)
        for batch in batches(texts, _BATCH):
            tokens = self._tokens(batch)
            self._add_bags(bags, self._words(batch, tokens), self._characters(batch, tokens))
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
            Word n-grams, with one space between words, then character n-grams after ``"char:  "``.
        """
        check_is_fitted(self)
        names = np.empty(self._n_features, dtype=object)
        names[: len(self.vocabulary_)] = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        for ngram, column in self.character_vocabulary_.items():
            names[len(self.vocabulary_) + column] = CHARACTER_PREFIX + ngram
        return names

    def occurrences(self, text: str) -> Occurrences:
        """Return all occurrences of features in a text, with their weights.

        Parameters
        ----------
        text : str
            A text.

        Returns
        -------
        occurrences : Occurrences
            Arrays `columns`, `starts`, `stops`, `weights` and `words`. Weights summed by column
            are the row of :meth:`transform`. The span of a character n-gram leaves out the white
            space around words.
        """
        check_is_fitted(self)
        lower = self._texts([text])
        text = self._decoded(text)
        tokens = self._tokens(lower)
        words = self._words(lower, tokens)
        gates = self._gates(words.positions)
        ngrams = []  # of every length, columns, starts, stops and gates
        for n, (column, gate) in enumerate(zip(words.columns, gates, strict=True)):
            at = np.flatnonzero(column >= 0)
            stops = tokens.stops[at + n + self.ngram_range[0] - 1]
            ngrams.append(np.stack([column[at], tokens.starts[at], stops, gate[at]]))
        weighted = [_weighted(np.concatenate(ngrams, axis=1), 1.0)]
        if self.character_vocabulary_:
            inside = self._character_occurrences(lower, tokens, gates[0])
            weighted.append(_weighted(inside, self.character_weight))
        columns, starts, stops, weights = np.concatenate(weighted, axis=1)
        starts, stops = _in_original(text, lower[0], np.stack([starts, stops]))
        spans = _in_original(text, lower[0], np.stack([tokens.starts, tokens.stops]))
        return Occurrences(columns.astype(np.intp), starts, stops, weights, spans.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = self.context
        return tags

    # Learning

    @_fit_context(prefer_skip_nested_validation=True)
    def _learn(
        self, raw_documents: Iterable[str], y: Any, sample_weight: Any
    ) -> tuple[Words, _Characters | None]:
        """Set all attributes; return what the documents' bags are made of."""
        for name in ("ngram_range", "characters"):
            _check_range(getattr(self, name), name)
        texts = self._texts(raw_documents)
        labels = _checked_labels(texts, y, sample_weight) if self.context else None
        tokens = self._tokens(texts)
        counts = self._learn_vocabulary(tokens)
        characters = self._learn_characters(texts, tokens)
        known = frequent_words(tokens, labels.weights, _PREVIOUS_LEAST) if labels else []
        self.previous_words_ = np.array([*known, ""], dtype=object)[:-1]
        words = self._words(texts, tokens)
        self._learn_scores(words, counts, labels)
        return words, characters

    def _learn_vocabulary(self, tokens: Tokens) -> Any:
        """Set `vocabulary_`; return the counts of its n-grams, CSR (n_documents, n_columns)."""
        n_documents = tokens.n_documents
        low = least_documents(self.min_df, n_documents, otherwise=2)
        high = document_number(self.max_df, n_documents)
        counts, names, columns = count_ngrams(
            tokens, self.ngram_range, low=low, high=high, dtype=np.float64
        )
        if not names:
            raise ValueError(
                f"No n-gram of {self.ngram_range[0]} to {self.ngram_range[1]} tokens is in "
                f"{low:g} to {high:g} of the {n_documents} documents, as min_df={self.min_df} and "
                f"max_df={self.max_df} require: lower min_df, raise max_df, or pass more documents."
            )
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        remember_columns(self, columns)
        return counts

    def _learn_characters(self, texts: list[str], tokens: Tokens) -> _Characters | None:
        """Set `character_vocabulary_`: the character n-grams of enough documents."""
        self.character_vocabulary_ = {}
        if self.characters is None:
            return None
        spaced, firsts = self._spaced(texts, tokens)
        low = least_documents(self.character_min_df, len(texts), otherwise=3)
        spelling, names = frequent_characters(spaced, self.characters, low=low)
        self.character_vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        return _Characters(spaced, firsts, spelling) if names else None

    def _learn_scores(self, words: Words, counts: Any, labels: Labels | None) -> None:
        """Set the scores of gates, to 0 without labels; `counts` are CSR, of word n-grams."""
        shape = 2, self.ngram_range[1] - self.ngram_range[0] + 1, N_CELLS
        n_cells = math.prod(shape)
        scores, self.evidence_scale_ = np.zeros(n_cells), 0.0
        self.__dict__.pop("classes_", None)  # of an earlier fit
        if labels is not None:
            n_previous = len(self.previous_words_)
            evidence = gather_evidence(counts, words, labels, n_previous, _EVIDENCE_LIMIT)
            scores, self.evidence_scale_ = learn_scores(evidence, n_cells)
            self.classes_ = labels.classes
        cells, self.previous_word_scores_ = np.split(scores, [n_cells])
        self.start_scores_, self.end_scores_ = cells.reshape(shape)

    # Reading texts

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
        pattern = self.token_pattern
        if pattern in PATTERNS:
            return tokenize(texts, pattern)
        expression = re.compile(pattern)
        if expression.groups:
            raise ValueError(f"token_pattern must have no capturing group, got {pattern!r}.")
        tokens = matched_tokens(texts, expression)
        spaced = next((word for word in tokens.words if word.split() != [word]), None)
        if spaced is not None:
            raise ValueError(
                f"token_pattern must match no white space, but {pattern!r} matched {spaced!r}."
            )
        return tokens

    def _words(self, texts: list[str], tokens: Tokens) -> Words:
        """Return the words of preprocessed texts, whose tokens these are."""
        columns = list(ngram_columns(self).of(tokens, self.ngram_range[1]))
        known = {word: number for number, word in enumerate(self.previous_words_.tolist())}
        # The default's tokens include all punctuation: no break but a new line is between two.
        between = NEW_LINE if self.token_pattern == WORDS_AND_PUNCTUATION else BREAK
        positions = token_positions(tokens, texts, known, between)
        return Words(tokens, columns[self.ngram_range[0] - 1 :], positions)

    def _characters(self, texts: list[str], tokens: Tokens) -> _Characters | None:
        """Return the character n-grams of preprocessed texts, None if there are no columns."""
        if self.characters is None or not self.character_vocabulary_:
            return None
        spaced, firsts = self._spaced(texts, tokens)
        spelling = spelling_matrix(spaced.words, self.characters, self.character_vocabulary_)
        return _Characters(spaced, firsts, spelling)

    def _spaced(self, texts: list[str], tokens: Tokens) -> tuple[Tokens, NDArray[np.intp]]:
        """Return the words between white space, and the first token in each, -1 without."""
        if self.token_pattern == WORDS_AND_PUNCTUATION:
            return words_between_spaces(tokens, texts)
        spaced = tokenize(texts, BETWEEN_SPACES)
        return spaced, first_tokens(spaced, tokens)

    # Bags

    def _gates(self, positions: TokenPositions) -> NDArray[np.float64]:
        """Return the gates of the n-grams that begin at each token, (n_orders, n_tokens)."""
        scores = self.start_scores_, self.end_scores_, self.previous_word_scores_
        return context_gates(positions, *scores)

    def _add_bags(self, bags: RowStack, words: Words, characters: _Characters | None) -> None:
        """Add the bags of documents to those before, some documents at a time."""
        tokens = words.tokens
        dtype = np.result_type(self.dtype, np.complex64)
        for first, last in tokens.blocks(_BLOCK):
            indptr = tokens.indptr[first : last + 1]
            here = slice(int(indptr[0]), int(indptr[-1]))
            gates = self._gates(words.positions[here])
            columns = [column[here] for column in words.columns]
            shape = last - first, len(self.vocabulary_)
            bag = gated_bag(word_sums(columns, gates, indptr - here.start, shape, dtype))
            if characters is not None:
                spaced, firsts, spelling = characters
                indptr = spaced.indptr[first : last + 1]
                inside = slice(int(indptr[0]), int(indptr[-1]))
                at = np.maximum(firsts[inside] - here.start, -1)
                values = (1.0 + 1j * np.append(gates[0], 1.0)[at]).astype(dtype)
                sums = sum_spelled(spaced.ids[inside], indptr - inside.start, values, spelling)
                of_characters = gated_bag(sums)
                of_characters.data *= self.character_weight
                bag = sparse.hstack([bag, of_characters], format="csr")
            bags.append(bag)

    def _character_occurrences(
        self, texts: list[str], tokens: Tokens, gates: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return columns, starts, stops and gates of one text's character n-grams, (4, n)."""
        assert self.characters is not None
        spaced, firsts = self._spaced(texts, tokens)
        known, lengths = [], []
        for word in spaced.words:
            rows = [
                (len(self.vocabulary_) + self.character_vocabulary_[ngram], start, stop)
                for ngram, start, stop in located_ngrams(word, self.characters)
                if ngram in self.character_vocabulary_
            ]
            known += rows
            lengths.append(len(rows))
        counts = np.array(lengths, dtype=np.intp)
        begins = (np.cumsum(counts) - counts)[spaced.ids]
        counts = counts[spaced.ids]
        columns, starts, stops = np.reshape(known, (-1, 3))[ranges(begins, counts)].T
        origins = np.repeat(spaced.starts, counts)
        gate = np.repeat(np.append(gates, 1.0)[firsts], counts)
        return np.stack([columns, origins + starts, origins + stops, gate])


def _in_original(text: str, lower: str, edges: NDArray[Any]) -> NDArray[np.intp]:
    """Return starts and stops, (2, n), in a text, given those in the text preprocessed."""
    edges = edges.astype(np.intp)
    if len(lower) == len(text):
        return edges
    # A few letters have two in lower case.
    origins = np.repeat(np.arange(len(text)), [len(one.lower()) for one in text])
    return np.stack([origins[edges[0]], origins[edges[1] - 1] + 1])


def _weighted(occurrences: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return columns, starts, stops and weights of a document's occurrences, given their gates."""
    columns, _, _, gates = occurrences
    _, number, counts = np.unique(columns, return_inverse=True, return_counts=True)
    factors = ((1.0 + np.log(counts)) / counts)[number]
    weights = factors * gates
    if len(weights):
        weights *= factor * factors.sum() / weights.sum()
    return np.stack([*occurrences[:3], weights])


def _checked_labels(texts: list[str], y: Any, sample_weight: Any) -> Labels:
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
    return Labels(classes, codes, weights)


def _check_range(bounds: Any, name: str) -> None:
    """Raise ValueError unless a parameter is None or two integers, from 1 on and in order."""
    if bounds is not None and not (
        len(bounds) == 2
        and all(isinstance(n, Integral) for n in bounds)
        and 1 <= bounds[0] <= bounds[1]
    ):
        raise ValueError(
            f"{name} must be two integers (min_n, max_n) with 1 <= min_n <= max_n, got {bounds!r}."
        )
