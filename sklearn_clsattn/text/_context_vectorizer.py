"""ContextVectorizer: bags in which a word counts by its position and by the word before it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._classifier import ClsAttentionClassifier
from .._pickling import SavedMixin, public
from .._training import all_or_nothing
from .._validation import check_labels, check_two_classes
from ._characters import frequent_characters, located_characters, spelling_matrix, sum_spelled
from ._gate_scores import MAX_SCORE, Labels, gather_evidence, learn_scores
from ._ngrams import count_ngrams, ngram_columns, remember_columns, stack_rows
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
    PATTERNS,
    WORDS_AND_PUNCTUATION,
    Tokens,
    batches,
    checked,
    document_number,
    matched_tokens,
    tokenize,
    words_between_spaces,
)

# Word n-grams never have two spaces in a row.
CHARACTER_PREFIX = "char:  "

_POWER = 0.5  # half of each score: the classifier learns a part of them again
_BATCH = 1 << 24  # characters whose words are looked up together
_BLOCK = 1 << 17  # tokens whose occurrences are summed together
_PREVIOUS_LEAST = 20.0  # weight of the documents with a word that gets a score as the word before
_EVIDENCE_LIMIT = 2e6  # entries times outputs that scores are learned from
# Documents with an n-gram: a number of them, or a share.
_DF = [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="both")]


@dataclass(frozen=True)
class Occurrences:
    """The occurrences of a vectorizer's features in one text, (n_occurrences,), and its words."""

    columns: NDArray[np.intp]  # the feature of each
    starts: NDArray[np.intp]  # each is text[start:stop]
    stops: NDArray[np.intp]
    weights: NDArray[np.float64]  # those of a column sum to the column's entry in the text's row
    words: NDArray[np.intp]  # (n_words, 2): where words start and stop, unknown ones included


class _Characters(NamedTuple):
    """The words between white space, and how often they have character n-grams."""

    spaced: Tokens
    firsts: NDArray[np.intp]  # (n_spaced,), the first token in each, -1 where there is none
    spelling: Any  # CSR (n_distinct_words, n_columns)


@public("sklearn_clsattn.text")
class ContextVectorizer(SavedMixin, TransformerMixin, BaseEstimator):
    r"""Turn texts into bags in which a word counts by its position and by the word before it.

    For use before a linear or attention classifier that takes the numbers as they are. Features are
    n-grams of words and punctuation, and character n-grams within words. The weight of an
    occurrence is multiplied by a gate, which depends on its distance from the start and the end of
    the document, on the number of its words, and on the word before it. The gates are learned from
    the labels, by a naive Bayes with attention that predicts every document from all others.

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
        Regular expression of a token, without white space or capturing groups. The default matches
        words, contractions as one token, and every other sign by itself.
    lowercase : bool, default=True
        Whether to convert texts to lower case first.
    characters : tuple (min_n, max_n) or None, default=(2, 5)
        The smallest and largest length of character n-grams within words, as with
        ``analyzer="char_wb"`` in `CountVectorizer`; ``None`` for none.
    character_min_df : int, float or "auto", default="auto"
        The same as `min_df` for character n-grams; "auto" is 1 or 3.
    character_weight : float, default=0.3
        Factor of the character n-grams' entries; words have 1.
    context : bool, default=True
        Whether to learn gates. Without them, a feature that occurs c times counts 1 + ln c.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the bags, in which this package's classifiers then train.

    Attributes
    ----------
    start_scores_, end_scores_ : ndarray of shape (n_orders, 10)
        Scores by the number of words of the n-gram, one row for each in `ngram_range`, and by the
        position of its first token, counted from 1 from the start and from the end: 1, 2 to 3,
        4 to 7, 8 to 15 and so on, 512 and beyond.
    previous_words_, previous_word_scores_ : ndarray of shape (n_previous,)
        The words with a score as the word before, those in documents of a total weight of at least
        20, and their scores.
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
    words alone.

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
        raw_documents : iterable of str
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
        self.fit_transform(raw_documents, y, sample_weight)
        return self

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
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
        for name in ("ngram_range", "characters"):
            bounds = getattr(self, name)
            if bounds is not None and not (
                [type(n) for n in bounds] == [int, int] and 1 <= bounds[0] <= bounds[1]
            ):
                raise ValueError(
                    f"{name} must be two integers (min_n, max_n) with 1 <= min_n <= max_n, got "
                    f"{bounds!r}."
                )
        texts = self._texts(raw_documents)
        labels = _checked_labels(texts, y, sample_weight) if self.context else None
        tokens = self._tokens(texts)

        low = document_number(self.min_df, len(texts), auto=2)
        high = document_number(self.max_df, len(texts))
        counts, names, columns = count_ngrams(
            tokens, self.ngram_range, low=low, high=high, dtype=np.float64
        )
        if not names:
            raise ValueError(
                f"No n-gram of {self.ngram_range[0]} to {self.ngram_range[1]} tokens is in "
                f"{low:g} to {high:g} of the {len(texts)} documents, as min_df={self.min_df} and "
                f"max_df={self.max_df} require: lower min_df, raise max_df, or pass more documents."
            )
        self.vocabulary_ = dict(zip(names, range(len(names)), strict=True))
        remember_columns(self, self.vocabulary_, columns)

        self.character_vocabulary_, characters = {}, None
        if self.characters is not None:
            spaced, firsts = words_between_spaces(tokens, texts, self.token_pattern)
            low = document_number(self.character_min_df, len(texts), auto=3)
            spelling, names = frequent_characters(spaced, self.characters, low)
            self.character_vocabulary_ = dict(zip(names, range(len(names)), strict=True))
            characters = _Characters(spaced, firsts, spelling) if names else None

        known = frequent_words(tokens, labels.weights, _PREVIOUS_LEAST) if labels else []
        self.previous_words_ = np.array(known, dtype=object)
        words = self._words(texts, tokens)
        shape = 2, len(words.columns), N_CELLS
        scores = np.zeros(math.prod(shape))
        self.__dict__.pop("classes_", None)  # of an earlier fit
        if labels:
            self.classes_ = labels.classes
            evidence = gather_evidence(counts, words, labels, len(known), _EVIDENCE_LIMIT)
            scores = learn_scores(evidence, len(scores))
        cells, self.previous_word_scores_ = np.split(scores, [math.prod(shape)])
        self.start_scores_, self.end_scores_ = cells.reshape(shape)
        return self._stacked(len(texts), [(words, characters)])

    def transform(self, raw_documents: Iterable[str]) -> Any:
        """Return the bags of documents.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts. Words that are not in the vocabulary are left out.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            The sums of the occurrences' weights, CSR of `dtype`.
        """
        check_is_fitted(self)
        texts = self._texts(raw_documents)
        return self._stacked(len(texts), map(self._read, batches(texts, _BATCH)))

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
        names = sorted(self.vocabulary_, key=self.vocabulary_.__getitem__)
        inside = sorted(self.character_vocabulary_, key=self.character_vocabulary_.__getitem__)
        return np.array(names + [CHARACTER_PREFIX + ngram for ngram in inside], dtype=object)

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
        words, characters = self._read(lower)
        tokens, gates = words.tokens, self._gates(words.positions)
        ngrams = []  # of every length, columns, starts, stops and gates
        for n, (column, gate) in enumerate(zip(words.columns, gates, strict=True)):
            at = np.flatnonzero(column >= 0)
            stops = tokens.stops[at + n + self.ngram_range[0] - 1]
            ngrams.append(np.stack([column[at], tokens.starts[at], stops, gate[at]]))
        weighted = [_weighted(np.concatenate(ngrams, axis=1), 1.0)]
        if characters is not None and self.characters is not None:
            spaced, firsts, _ = characters
            inside = [spaced.words[i] for i in spaced.ids.tolist()]
            known = located_characters(inside, self.characters, self.character_vocabulary_)
            at, column, starts, stops = known
            gate = np.append(gates[0], 1.0)[firsts[at]]
            edges = spaced.starts[at] + np.stack([starts, stops])
            found = np.stack([len(self.vocabulary_) + column, *edges, gate])
            weighted.append(_weighted(found, self.character_weight))
        columns, starts, stops, weights = np.concatenate(weighted, axis=1)
        starts, stops = _in_original(text, lower[0], np.stack([starts, stops]))
        spans = _in_original(text, lower[0], np.stack([tokens.starts, tokens.stops]))
        return Occurrences(columns.astype(np.intp), starts, stops, weights, spans.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = self.context
        return tags

    def _texts(self, raw_documents: Iterable[Any]) -> list[str]:
        """Return preprocessed documents."""
        if isinstance(raw_documents, str):
            raise ValueError("Expected an iterable of texts, got one text: pass [text].")
        texts = checked(raw_documents, texts=True)
        return [text.lower() if self.lowercase else text for text in texts]

    def _tokens(self, texts: list[str]) -> Tokens:
        """Return the tokens of preprocessed texts."""
        split = tokenize if self.token_pattern in PATTERNS else matched_tokens
        return split(texts, self.token_pattern)

    def _read(self, texts: list[str]) -> tuple[Words, _Characters | None]:
        """Return what the bags of preprocessed texts are made of."""
        tokens = self._tokens(texts)
        words = self._words(texts, tokens)
        if self.characters is None or not self.character_vocabulary_:
            return words, None
        spaced, firsts = words_between_spaces(tokens, texts, self.token_pattern)
        spelling = spelling_matrix(spaced.words, self.characters, self.character_vocabulary_)
        return words, _Characters(spaced, firsts, spelling)

    def _words(self, texts: list[str], tokens: Tokens) -> Words:
        """Return the words of preprocessed texts, whose tokens these are."""
        columns = list(ngram_columns(self).of(tokens, self.ngram_range[1]))
        known = {word: number for number, word in enumerate(self.previous_words_.tolist())}
        # The default's tokens include all punctuation: no break but a new line is between two.
        between = NEW_LINE if self.token_pattern == WORDS_AND_PUNCTUATION else BREAK
        positions = token_positions(tokens, texts, known, between)
        return Words(tokens, columns[self.ngram_range[0] - 1 :], positions)

    def _gates(self, positions: TokenPositions) -> NDArray[np.float64]:
        """Return the gates of the n-grams that begin at each token, (n_orders, n_tokens)."""
        scores = self.start_scores_[:, positions.from_start]
        scores += self.end_scores_[:, positions.from_end]
        scores += np.append(self.previous_word_scores_, 0.0)[positions.previous]
        return np.exp(_POWER * scores.clip(-MAX_SCORE, MAX_SCORE), out=scores)

    def _stacked(
        self, n_documents: int, batches: Iterable[tuple[Words, _Characters | None]]
    ) -> sparse.csr_matrix:
        """Return the bags of all documents, (n_documents, n_features)."""
        bags = (bag for words, characters in batches for bag in self._bags(words, characters))
        shape = n_documents, len(self.vocabulary_) + len(self.character_vocabulary_)
        return stack_rows(
            ((bag.data, bag.indices, bag.indptr[1:]) for bag in bags), shape, self.dtype
        )

    def _bags(self, words: Words, characters: _Characters | None) -> Iterator[sparse.csr_matrix]:
        """Yield the bags of some documents at a time.

        An occurrence with gate g is summed as the complex number 1 + g i: the real part of a sum is
        the number of occurrences, the imaginary part the sum of their gates.
        """
        dtype = np.result_type(self.dtype, np.complex64)
        for rows, here, indptr in words.tokens.blocks(_BLOCK):
            gates = self._gates(words.positions[here])
            column = np.stack([column[here] for column in words.columns], axis=1)
            present = column >= 0
            values = (1.0 + 1j * gates.T[present]).astype(dtype)
            ends = np.append(0, np.cumsum(present.sum(axis=1)))[indptr]
            shape = len(ends) - 1, len(self.vocabulary_)
            sums = sparse.csr_matrix((values, column[present], ends), shape=shape)
            sums.sum_duplicates()
            bag = _gated_bag(sums)
            if characters is not None:
                spaced, firsts, spelling = characters
                indptr = spaced.indptr[rows.start : rows.stop + 1]
                inside = slice(int(indptr[0]), int(indptr[-1]))
                at = np.maximum(firsts[inside] - here.start, -1)
                values = (1.0 + 1j * np.append(gates[0], 1.0)[at]).astype(dtype)
                sums = sum_spelled(spaced.ids[inside], indptr - inside.start, values, spelling)
                of_characters = _gated_bag(sums)
                of_characters.data *= self.character_weight
                bag = sparse.hstack([bag, of_characters], format="csr")
            yield bag


def make_text_classifier(**parameters: Any) -> Pipeline:
    """Return a classifier of texts, from words in context to calibrated probabilities.

    Parameters
    ----------
    **parameters
        Parameters of :class:`ContextVectorizer` and
        :class:`~sklearn_clsattn.ClsAttentionClassifier`, which have no name in common. The defaults
        are theirs, except ``sublinear_counts=False``: the vectorizer already damps the counts.

    Returns
    -------
    classifier : Pipeline
        With the steps "vectorizer" and "classifier". It takes texts and labels of any type.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.text import make_text_classifier
    >>> texts, labels = make_token_classification(n_samples=500, as_text=True, random_state=0)
    >>> model = make_text_classifier(characters=None).fit(texts[:400], labels[:400])
    >>> bool(model.score(texts[400:], labels[400:]) > 0.9)
    True
    >>> model.set_params(classifier__C=1.0, vectorizer__context=False)["classifier"].C
    1.0
    """
    vectorizer, classifier = ContextVectorizer(), ClsAttentionClassifier(sublinear_counts=False)
    known = {name: step for step in (vectorizer, classifier) for name in step.get_params()}
    for name, value in parameters.items():
        if name not in known:
            raise TypeError(
                f"make_text_classifier() has no parameter {name!r}: expected one of "
                f"{', '.join(sorted(known))}."
            )
        known[name].set_params(**{name: value})
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])


def _gated_bag(sums: Any) -> Any:
    """Return the bag of complex sums, CSR (n_documents, n_columns), in their precision.

    Entries are 1 + ln c times the mean gate, and a document's add up to its sum of 1 + ln c.
    """
    counts = sums.data.real
    damped = 1.0 + np.log(counts)
    values = damped / counts * sums.data.imag
    filled = np.diff(sums.indptr) > 0
    starts = sums.indptr[:-1][filled]
    whole, gated = (np.add.reduceat(one, starts, dtype=np.float64) for one in (damped, values))
    scale = (whole / gated).astype(values.dtype)
    values *= np.repeat(scale, np.diff(sums.indptr)[filled])
    return sparse.csr_matrix((values, sums.indices, sums.indptr), shape=sums.shape)


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
    classes, codes = np.unique(y, return_inverse=True)
    check_two_classes(classes, np.bincount(codes, weights).astype(np.float64))
    return Labels(classes, codes, weights)
