"""ContextVectorizer: bags of words, weighted by position and by the word before."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, compress
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._bags import Bags
from .._estimators import CallbackSupportMixin, SavedMixin, all_or_nothing, fit_task
from .._matrices import as_configured, sums_by_entry
from .._sklearn import Interval, Options, RealNotInt, StrOptions
from .._targets import Targets
from .._threads import in_background, map_in_threads, thread_pool
from .._types import Integers, Numbers
from .._validation import checked_groups, checked_targets, checked_weights
from ._character_ngrams import CHARACTER_PREFIX, frequent_characters
from ._gate_positions import (
    MAX_SCORE,
    N_CELLS,
    GatePositions,
    PlacedTokens,
    frequent_words,
    token_positions,
)
from ._known_words import (
    StopWord,
    StopWords,
    TrustedWords,
    checked_stop_words,
    checked_trusted_words,
    trusted_tokens,
)
from ._ngrams import (
    NgramCounts,
    RowsPart,
    count_ngrams,
    ngram_columns,
    remember_columns,
    stack_rows,
)
from ._normalization import aligned, normalized_texts
from ._tokens import (
    NO_IDS,
    PATTERNS,
    WORDS_AND_PUNCTUATION,
    Ids,
    Tokens,
    TooFewWordsError,
    batches,
    check_any_texts,
    checked_texts,
    document_number,
    is_spelled,
    tokenize,
    tokens_of_pattern,
    tokens_of_tokenizer,
)
from ._units import SpelledWords, UnitNumbers, units_of
from ._word_vectors import WordVectors, side_by_side, vectors_of

# Character n-grams are dropped that are in more different words than both of these: on average per
# document, and in all. In long texts they are half of all entries and carry no information.
_COMMON = 0.1
_COMMON_IN_ALL = 200.0
GATE_POWER = 0.5  # half of each score, because the classifier learns part of them again
_BATCH = 1 << 24  # characters whose words are looked up together
_BLOCK = 1 << 18  # tokens whose occurrences are summed together
_PREVIOUS_LEAST = 20.0  # weight of the documents with a word that gets a score as the word before
_EVIDENCE_LIMIT = 2e6  # entries times outputs that scores are learned from
# Documents with an n-gram: a number of them, or a share.
_DF = [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="both")]


@dataclass(frozen=True)
class Occurrences:
    """The occurrences of words and word n-grams in a text, (n_occurrences,), and its words.

    Stop words are no words of the text.
    """

    terms: NDArray[np.object_]  # the word or word n-gram of each
    starts: NDArray[np.intp]  # each is text[start:stop]
    stops: NDArray[np.intp]
    weights: NDArray[np.float64]
    first_words: NDArray[np.intp]  # the row of each one's first word
    words: NDArray[np.intp]  # (n_words, 2): starts and stops of words, including unknown ones
    ignored: NDArray[np.intp]  # (n_ignored, 2): those of stop words


class _UnitsOfLength(NamedTuple):
    """The units of one length that start at tokens.

    units : (n_tokens,), -1 for none
    length : number of tokens
    order : row of their gates
    """

    units: NDArray[Any]
    length: int
    order: int


class ContextVectorizer(  # type: ignore[call-arg]
    SavedMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    r"""Turn texts into bags of words, weighted by position and by the word before.

    Use it before a linear or attention classifier, without further scaling: the counts are damped
    already. A :class:`~sklearn_clsattn.TextClassifier` takes them so; in a Pipeline, a
    :class:`~sklearn_clsattn.ClsAttentionClassifier` damps them once more, and may be somewhat less
    accurate. Features are n-grams of words and punctuation, and the character n-grams in words,
    which represent words that are not in the vocabulary. The weight of an occurrence is multiplied
    by a gate. The gate depends on the distance from the start and the end of the document, on the
    number of words in the n-gram, and on the word before it. The gates are learned from the labels,
    by naive Bayes with attention that predicts each document from others, no copies of it among
    them.

    Parameters
    ----------
    ngram_range : tuple (min_n, max_n), default=(1, 2)
        The smallest and largest number of words in an n-gram.
    min_df : int, float or "auto", default="auto"
        Word n-grams in fewer documents are dropped. A float is a fraction of the documents, from 0
        to 1; "auto" is 1 for fewer than 5,000 documents, else 2.
    max_df : int or float, default=1.0
        Word n-grams in more documents are dropped.
    token_pattern : str, default=r"\w+(?:['’]\w+)*|[^\w\s]"
        Regular expression of a token, without white space or capturing groups. The default matches
        words, contractions as one token, and each other sign as a token, such as an emoji. In
        Chinese, Japanese, Korean, Thai, Lao, Burmese and Khmer each character is a token, with its
        marks.
    tokenizer : callable or None, default=None
        Returns the tokens of a text and replaces `token_pattern`, such as ``jieba.lcut``, or a
        function that calls spaCy or MeCab. It gets the text in its normal form (see Notes), in
        lower case if `lowercase`. None uses the pattern.
    lowercase : bool, default=True
        Whether to ignore case, by case folding: ß becomes ss.
    stop_words : list, tuple or set, default=None
        Words, and compiled patterns of whole words, that are left out of every text before anything
        is counted: a text has the same bag as without them. A word is one token: ``"linux"`` does
        not match ``linux's``, but ``re.compile("linux('s)?")`` does both.
    trusted_words : dict, or list, tuple or set, default=None
        Words, and phrases that are n-grams, which the classifier should use: for each class a list
        of those that speak for it, or some without classes. All of them become columns. Only
        :class:`~sklearn_clsattn.TextClassifier` learns from what they say.
    characters : tuple (min_n, max_n) or None, default=(2, 5)
        The smallest and largest length of character n-grams within words with a space at each end;
        ``None`` turns them off. Signs that are not words have none, nor have words of more than 40
        characters, such as the lines of an encoded file.
    character_min_df : int, float or "auto", default="auto"
        Like `min_df`, for character n-grams; "auto" is 1 or 3. Very common n-grams are dropped:
        those that occur more than 200 times, and more than once per ten documents on average,
        counted once for each different word of a document.
    character_weight : float, default=0.3
        Weight of a character n-gram relative to its word, which has weight 1.
    context : bool, default=True
        Whether to learn gates. Without them, a feature that occurs c times has weight 1 + ln c.
    word_vectors : WordVectors or None, default=None
        Word vectors for a :class:`~sklearn_clsattn.ClsAttentionClassifier`, to which
        :class:`~sklearn_clsattn.TextClassifier` passes them on; else pass `token_vectors_` to its
        `fit`.
        All of their words are in the vocabulary. Unfitted vectors are learned in `fit`, from all
        texts that it gets.
    dtype : {np.float32, np.float64}, default=np.float32
        Precision of the bags, which this package's classifiers also use for training.

    Attributes
    ----------
    start_scores_, end_scores_ : ndarray of shape (n_orders, 10)
        Scores by the number of words in the n-gram (rows) and by the position of its first token,
        counted from 1 from the start or the end (columns): 1, 2 to 3, 4 to 7, 8 to 15 and so on,
        up to 512 and beyond.
    previous_words_, previous_word_scores_ : ndarray of shape (n_previous,)
        The words that have a score as the word before (their documents have a total weight of at
        least 20), and the scores.
    vocabulary_, character_vocabulary_ : dict
        The column of each word n-gram, and of each character n-gram, counted from the first one.
    word_vectors_ : WordVectors or None
        The vectors in use: `word_vectors`, and those learned from texts without labels.
    token_vectors_ : ndarray of shape (n_features, d)
        The vectors of the columns, 0 for a column without one; absent without vectors.

    Notes
    -----
    The score :math:`e_o` of an occurrence o of a word n-gram is the sum of a score for its distance
    from the start, one for its distance from the end, and one for the word before, unless one of
    ``. ! ? ; : ,`` or a new line is between. If the n-gram occurs c times in the document, the
    weight of o is

    .. math:: h\, \frac{1 + \ln c}{c}\, e^{e_o / 2}

    with a factor h that keeps the document's total weight as it is without gates. The entry of a
    character n-gram is `character_weight` times the sum, over words, of the word's weight times the
    n-gram's count in the word. So the bags are a product of two matrices, documents by words and
    words by n-grams. :meth:`transform` returns the product;
    :class:`~sklearn_clsattn.TextClassifier` trains and predicts with the two matrices, which have a
    tenth of its entries.

    Texts that look the same are made the same, by the Unicode normalization form NFKC. Ligatures,
    full-width and styled letters, and numbers such as ² and ½ become plain ones: x² is the token
    ``x2``, and ½ the three tokens ``1 ⁄ 2``. Such numbers stay apart from digits beside them (10²
    has the tokens of 10 ²). Signs without a glyph are dropped (soft hyphens, zero-width spaces and
    joiners, marks of direction), and curly apostrophes and quotation marks and hyphens become
    ``'``, ``"`` and ``-``. Other ASCII characters stay as they are.

    Sample weights act as repetition, and documents of weight 0 are left out, except that `min_df`,
    `max_df` and `character_min_df` count each document of positive weight once: so the vocabulary
    does not depend on the unit of the weights. On large sets, gates are learned from some of the
    documents, chosen only by their words.

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
    >>> occurrences.terms
    array(['good', 'film', 'good film'], dtype=object)
    >>> float(occurrences.weights.sum().round(6))
    3.0
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "ngram_range": [tuple, list],
        "min_df": [*_DF, StrOptions({"auto"})],
        "max_df": _DF,
        "token_pattern": [str],
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
        "stop_words": [list, tuple, set, None],
        "trusted_words": [dict, list, tuple, set, None],
        "characters": [tuple, list, None],
        "character_min_df": [*_DF, StrOptions({"auto"})],
        "character_weight": [Interval(Real, 0, None, closed="neither")],
        "context": ["boolean"],
        "word_vectors": [WordVectors, None],
        "dtype": [Options(type, {np.float32, np.float64})],
    }
    __metadata_request__fit = {"unlabeled": True}

    def __init__(
        self,
        *,
        ngram_range: tuple[int, int] = (1, 2),
        min_df: float | Literal["auto"] = "auto",
        max_df: float = 1.0,
        token_pattern: str = WORDS_AND_PUNCTUATION,
        tokenizer: Callable[[str], Iterable[Any]] | None = None,
        lowercase: bool = True,
        stop_words: Collection[StopWord] | None = None,
        trusted_words: TrustedWords | None = None,
        characters: tuple[int, int] | None = (2, 5),
        character_min_df: float | Literal["auto"] = "auto",
        character_weight: float = 0.3,
        context: bool = True,
        word_vectors: WordVectors | None = None,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> None:
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.token_pattern = token_pattern
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.trusted_words = trusted_words
        self.characters = characters
        self.character_min_df = character_min_df
        self.character_weight = character_weight
        self.context = context
        self.word_vectors = word_vectors
        self.dtype = dtype

    @all_or_nothing
    def fit(
        self,
        raw_documents: Iterable[str],
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn the features, and the gates of their occurrences.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts.
        y : array-like of shape (n_documents,) or (n_documents, n_labels)
            Class labels of at least two classes, or probabilities of the classes; not used with
            ``context=False``. With several labels, gates are learned from the rarest label of each
            document.
        sample_weight : array-like of shape (n_documents,), default=None
            Non-negative weight of each document, which acts as repetition; ``None`` means 1 for
            all. With ``context=False`` as well, documents of weight 0 are left out.
        unlabeled : iterable of str, default=None
            More texts of the same kind, without labels. Word vectors (:class:`WordVectors`) are
            learned from all texts together, in addition to `word_vectors` if these are fitted.
        groups : array-like of shape (n_documents,), default=None
            What texts belong to, such as their author or thread. Gates are learned from the
            predictions of each document by the other groups.

        Returns
        -------
        self : object
            Fitted vectorizer.
        """
        with fit_task(self, raw_documents, y, sample_weight):
            self._learn(raw_documents, y, sample_weight, unlabeled, groups)
        return self

    @all_or_nothing
    def fit_transform(
        self,
        raw_documents: Iterable[str],
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        unlabeled: Iterable[str] | None = None,
        groups: ArrayLike | None = None,
    ) -> Any:
        """Learn features and gates, and return the bags of the documents.

        Parameters
        ----------
        raw_documents, y, sample_weight, unlabeled, groups
            As in :meth:`fit`.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            As in :meth:`transform`.
        """
        with fit_task(self, raw_documents, y, sample_weight):
            placed, numbers = self._learn(raw_documents, y, sample_weight, unlabeled, groups)
        if self.word_vectors_ is not None:
            warnings.warn(
                "The matrix does not have the word vectors: use a TextClassifier, or pass "
                "token_vectors=vectorizer.token_vectors_ to the classifier's fit.",
                stacklevel=2,
            )
        bags = self._bags(placed.tokens.n_documents, [placed], numbers)
        return as_configured(bags.matrix())

    def _fit_bags(
        self,
        raw_documents: Any,
        y: Any,
        sample_weight: Any = None,
        unlabeled: Any = None,
        groups: Any = None,
    ) -> Any:
        """Fit, and return the bags of the documents, with trusted tokens and word vectors."""
        placed, numbers = self._learn(raw_documents, y, sample_weight, unlabeled, groups)
        bags = self._bags(placed.tokens.n_documents, [placed], numbers)
        trusted_terms = self._checked_trusted_words()
        if trusted_terms:
            weights = checked_weights(bags.units, sample_weight)
            names = self.get_feature_names_out()
            spelled = sparse.eye_array(len(names), format="csr")
            if numbers is not None:
                spelled = numbers.units.table
            bags.trusted = trusted_tokens(trusted_terms, names, bags, weights, spelled)
        if self.word_vectors_ is not None:
            bags.vectors = vectors_of(self.word_vectors_, self.get_feature_names_out())
        return bags

    def _learn(
        self, raw_documents: Any, y: Any, sample_weight: Any, unlabeled: Any, groups: Any
    ) -> tuple[PlacedTokens, UnitNumbers | None]:
        """Learn features and gates; return the documents' tokens, and their units' numbers."""
        self._check_parameters()
        # 1) what is given, of which only documents of positive weight teach
        every_text = self._texts(raw_documents)
        check_any_texts(len(every_text), 1)
        every_weight = checked_weights(every_text, sample_weight)
        targets = _checked_targets(every_text, y, every_weight) if self.context else None
        every_group = checked_groups(every_weight, groups)
        self._stop_words = checked_stop_words(
            self.stop_words or (), self._tokens_of_words, lowercase=self.lowercase
        )
        is_used = every_weight > 0
        texts = list(compress(every_text, is_used))
        weights = every_weight[is_used]
        given_groups = None if every_group is None else every_group[is_used]
        # 2) features and gates
        placed, numbers = self._learn_from(texts, weights, targets, given_groups)
        # 3) words that become features whether they occur or not
        self.word_vectors_ = self._combined_vectors(texts, weights, unlabeled)
        if self._add_named_words():
            placed = placed._replace(columns=self._columns(placed.tokens))
            numbers = self._unit_numbers()
        if len(texts) < len(every_text):
            placed = self._read(every_text)
        return placed, numbers

    def _learn_from(
        self,
        texts: list[str],
        weights: NDArray[np.float64],
        targets: Targets | None,
        groups: Numbers | None,
    ) -> tuple[PlacedTokens, UnitNumbers | None]:
        """Learn features and gates from texts of positive weight."""
        tokens = self._tokens(texts)
        check_any_texts(len(texts), len(tokens.ids))
        previous = [] if targets is None else frequent_words(tokens, weights, _PREVIOUS_LEAST)
        self.previous_words_ = np.array(previous, dtype=object)
        if targets is not None:
            import torch  # noqa: F401 - the pool gives it one thread only if it is loaded
        with thread_pool():
            placed, counts, spelled_words = self._learn_features(texts, tokens, weights)
            del tokens  # frees their places in the texts, which nothing needs any more
            # Another thread numbers the units of the texts while gates are learned.
            numbered = in_background(lambda: self._unit_numbers(placed.tokens.words, spelled_words))
            self._learn_gates(placed, counts, targets, weights, groups)
            return placed, numbered()

    def _add_named_words(self) -> bool:
        """Make columns of trusted words and of words with vectors; return whether there are any."""
        named = list(self._checked_trusted_words())
        if self.word_vectors_ is not None:
            stop_words = StopWords(self._stop_words)
            named += [word for word in self.word_vectors_.words_.tolist() if word not in stop_words]
        if named:
            vocabulary = dict(self.vocabulary_)  # of which units and columns are remembered
            for term in named:
                vocabulary.setdefault(term, len(vocabulary))
            self.vocabulary_: dict[str, int] = vocabulary
        return bool(named)

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters of the wrong type, and ranges that are no pairs."""
        self._validate_params()  # which scikit-learn leaves out within other estimators
        for name in ("ngram_range", "characters"):
            bounds = getattr(self, name)
            if bounds is None:
                continue
            are_integers = len(bounds) == 2 and all(isinstance(n, Integral) for n in bounds)
            if not (are_integers and 1 <= bounds[0] <= bounds[1]):
                raise ValueError(
                    f"{name} must be two integers (min_n, max_n) with 1 <= min_n <= max_n, got "
                    f"{bounds!r}."
                )

    def _learn_features(
        self, texts: list[str], tokens: Tokens, weights: NDArray[np.float64]
    ) -> tuple[PlacedTokens, sparse.csr_array, SpelledWords | None]:
        """Learn the vocabularies; return the texts' tokens, n-gram counts and spelled words."""
        # Another thread counts characters and finds positions while n-grams are counted.
        others = in_background(
            lambda: (self._spelled_words(tokens, weights), self._positions(texts, tokens))
        )
        # 1) word n-grams
        ngrams = self._learn_vocabulary(tokens)
        # 2) character n-grams
        spelled_words, positions = others()
        characters = [] if spelled_words is None else spelled_words.ngrams
        self.character_vocabulary_ = dict(zip(characters, range(len(characters)), strict=True))
        # Nothing needs the tokens' word counts and places in the texts any more.
        rest = replace(tokens, starts=NO_IDS, stops=NO_IDS)
        placed = PlacedTokens(rest, ngrams.columns_at_tokens(), positions)
        return placed, ngrams.counts, spelled_words

    def _learn_vocabulary(self, tokens: Tokens) -> NgramCounts:
        """Learn the word n-grams, and return their counts."""
        n_documents = tokens.n_documents
        low = document_number(self.min_df, n_documents, auto=2)
        high = document_number(self.max_df, n_documents)
        ngrams = count_ngrams(tokens, self.ngram_range, low=low, high=high, dtype=np.int32)
        if not ngrams.names:
            raise ValueError(
                f"No n-gram of {self.ngram_range[0]} to {self.ngram_range[1]} tokens occurs in "
                f"{low:g} to {high:g} of the {n_documents} documents (min_df={self.min_df}, "
                f"max_df={self.max_df}): lower min_df, raise max_df, or pass more documents."
            )
        self.vocabulary_ = dict(zip(ngrams.names, range(len(ngrams.names)), strict=True))
        remember_columns(self, self.vocabulary_, ngrams.columns)
        return ngrams

    def _spelled_words(self, tokens: Tokens, weights: NDArray[np.float64]) -> SpelledWords | None:
        """Return words with their frequent character n-grams, in documents of these weights."""
        if self.characters is None:
            return None
        is_word = np.array([is_spelled(word) for word in tokens.words], dtype=bool)
        words = list(compress(tokens.words, is_word))
        low = document_number(self.character_min_df, tokens.n_documents, auto=3)
        high = max(_COMMON * weights.sum(), _COMMON_IN_ALL)
        counts, ngrams = frequent_characters(
            words, tokens.word_counts[:, is_word], self.characters, low, high, weights
        )
        numbers = {word: number for number, word in enumerate(words)}
        return SpelledWords(numbers, ngrams, counts)

    def _learn_gates(
        self,
        placed: PlacedTokens,
        counts: Any,
        targets: Targets | None,
        weights: NDArray[np.float64],
        groups: Numbers | None,
    ) -> None:
        """Learn the scores of gates, which are 0 without targets of two classes."""
        shape = 2, len(placed.columns), N_CELLS
        n_cells = math.prod(shape)
        n_previous = len(self.previous_words_)
        if targets is None or targets.n_classes < 2:
            scores = np.zeros(n_cells + n_previous)
        else:
            from ._gate_scores import gather_evidence, learn_scores  # needs PyTorch

            evidence = gather_evidence(
                counts, placed, targets, weights, n_previous, _EVIDENCE_LIMIT, groups
            )
            scores = learn_scores(evidence, n_cells)
        self.start_scores_, self.end_scores_ = scores[:n_cells].reshape(shape)
        self.previous_word_scores_ = scores[n_cells:]

    def _combined_vectors(
        self, texts: list[str], weights: NDArray[np.float64], unlabeled: Any
    ) -> WordVectors | None:
        """Return the fitted `word_vectors`, beside vectors that are learned from all texts."""
        # 1) all texts, of which one without a label has weight 1
        given = self.word_vectors
        more = [] if unlabeled is None else self._texts(unlabeled)
        every_text = [*texts, *more]
        weights = np.append(weights, np.ones(len(more)))
        # 2) the vectors that are given, and those that are learned
        if given is not None and not given.__sklearn_is_fitted__():
            return clone(given).fit(every_text, sample_weight=weights)
        learned = None
        if unlabeled is not None:
            vectors = WordVectors(tokenizer=self.tokenizer)
            with suppress(TooFewWordsError):
                learned = vectors.fit(every_text, sample_weight=weights)
        return side_by_side(given, learned)

    def transform(self, raw_documents: Iterable[str]) -> Any:
        """Return the bags of documents.

        Parameters
        ----------
        raw_documents : iterable of str
            Texts. Words that are not in the vocabulary are counted by their character n-grams.

        Returns
        -------
        X : sparse matrix of shape (n_documents, n_features)
            Sums of the weights of occurrences, CSR of `dtype`, in the container of scikit-learn's
            `sparse_interface`.
        """
        return as_configured(self._bags_of(raw_documents).matrix())

    def _bags_of(self, raw_documents: Any) -> Any:
        """Return the bags of texts."""
        check_is_fitted(self)
        texts = self._texts(raw_documents)
        placed = map(self._read, batches(texts, _BATCH))
        return self._bags(len(texts), placed, self._unit_numbers())

    @property
    def token_vectors_(self) -> NDArray[np.float32]:
        """The vectors of the columns, (n_features, d); absent without word vectors."""
        vectors = getattr(self, "word_vectors_", None)
        if vectors is None:
            raise AttributeError("The vectorizer is not fitted, or has no word vectors.")
        return vectors_of(vectors, self.get_feature_names_out()).rows()

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
        characters = self.character_vocabulary_
        for ngram in sorted(characters, key=characters.__getitem__):
            names.append(CHARACTER_PREFIX + ngram)
        return np.array(names, dtype=object)

    def occurrences(self, text: str) -> Occurrences:
        """Return all occurrences of features in a text, with their weights.

        Parameters
        ----------
        text : str
            A text.

        Returns
        -------
        occurrences : Occurrences
            Arrays `terms`, `starts`, `stops`, `weights`, `first_words`, `words` and `ignored`.
            Terms are normalized; their positions are those in the text as it was given, and cut no
            glyph. The weights of a term that is a column add up to its entry of :meth:`transform`.
            A token of the `tokenizer` that does not occur unchanged in the normalized text has the
            stop -1.
        """
        check_is_fitted(self)
        (text,) = checked_texts([text])
        normal = aligned(text, lowercase=self.lowercase)
        every_token = self._every_token([normal.text])
        stop_words = StopWords(self._stop_words)
        placed = self._placed([normal.text], every_token.without(stop_words))
        tokens = placed.tokens
        numbers = self._unit_numbers()
        # 1) occurrences of each length, at each token
        by_length = self._units(placed, numbers)
        gates_of_orders = self._gates(placed.positions)
        n_tokens = len(tokens.ids)
        units = np.concatenate([one.units for one in by_length])
        gates = np.concatenate([gates_of_orders[one.order] for one in by_length])
        first = np.tile(np.arange(n_tokens), len(by_length))
        last = first + np.repeat([one.length - 1 for one in by_length], n_tokens)
        # 2) those in the vocabulary
        is_term = units >= 0
        units = units[is_term]
        first = first[is_term]
        last = last[is_term]
        # 3) as parts of the text, and of the original one
        read = [tokens.words[number] for number in tokens.ids.tolist()]
        terms = []
        for first_word, last_word in zip(first.tolist(), last.tolist(), strict=True):
            terms.append(" ".join(read[first_word : last_word + 1]))
        spans = normal.in_original(text, tokens.spans)
        ignored = every_token.only(stop_words)
        return Occurrences(
            terms=np.array(terms, dtype=object),
            starts=spans[first, 0],
            stops=spans[last, 1],
            weights=_occurrence_weights(units, gates[is_term]),
            first_words=first,
            words=spans,
            ignored=normal.in_original(text, ignored.spans),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = self.context
        return tags

    def _texts(self, raw_documents: Iterable[Any]) -> list[str]:
        """Return preprocessed documents."""
        texts = checked_texts(raw_documents)
        return normalized_texts(texts, lowercase=self.lowercase)

    def _tokens(self, texts: list[str]) -> Tokens:
        """Return the tokens of preprocessed texts that are no stop words."""
        tokens = self._every_token(texts)
        return tokens.without(StopWords(self._stop_words)) if self._stop_words else tokens

    def _checked_trusted_words(self) -> dict[str, Any]:
        """Return the trusted words as n-grams, with their classes."""
        if not self.trusted_words:
            return {}
        stop_words = StopWords(self._stop_words)
        return checked_trusted_words(
            self.trusted_words, self._tokens_of_words, stop_words, self.ngram_range
        )

    def _tokens_of_words(self, words: list[str]) -> Tokens:
        """Return the tokens of words as a parameter names them."""
        return self._every_token(self._texts(words))

    def _every_token(self, texts: list[str]) -> Tokens:
        """Return the tokens of preprocessed texts."""
        if self.tokenizer is not None:
            return tokens_of_tokenizer(texts, self.tokenizer)
        if self.token_pattern in PATTERNS:
            return tokenize(texts, self.token_pattern, scripts=True)
        return tokens_of_pattern(texts, self.token_pattern)

    def _read(self, texts: list[str]) -> PlacedTokens:
        """Return the tokens of preprocessed texts, with columns and positions."""
        return self._placed(texts, self._tokens(texts))

    def _placed(self, texts: list[str], tokens: Tokens) -> PlacedTokens:
        """Return the tokens of preprocessed texts with columns and positions."""
        return PlacedTokens(tokens, self._columns(tokens), self._positions(texts, tokens))

    def _columns(self, tokens: Tokens) -> list[Ids]:
        """Return, for each length, the columns of the n-grams that start at tokens."""
        columns = list(ngram_columns(self).at_tokens(tokens, self.ngram_range[1]))
        return columns[self.ngram_range[0] - 1 :]

    def _positions(self, texts: list[str], tokens: Tokens) -> GatePositions:
        """Return the positions of the tokens of preprocessed texts."""
        is_default = self.token_pattern == WORDS_AND_PUNCTUATION and self.tokenizer is None
        numbers = self._previous_numbers(tokens.words)
        return token_positions(tokens, texts, numbers, with_punctuation=is_default)

    def _previous_numbers(self, words: list[str]) -> dict[str, int]:
        """Return the numbers of `previous_words_`, at least of those in a list."""
        previous = self.previous_words_  # in alphabetical order
        if len(previous) <= len(words):
            return {word: number for number, word in enumerate(previous.tolist())}
        # The words of a few texts are looked up sooner than all words are numbered.
        sought = np.array(words, dtype=object)
        places = np.searchsorted(previous, sought).clip(max=len(previous) - 1)
        is_previous = previous[places] == sought
        return dict(zip(sought[is_previous], places[is_previous].tolist(), strict=True))

    def _gates(self, positions: GatePositions) -> NDArray[np.float64]:
        """Return the gates of the n-grams that start at each token, (n_orders, n_tokens)."""
        # The scores of both distances, (n_orders, N_CELLS, N_CELLS).
        by_distances = self.start_scores_[:, :, np.newaxis] + self.end_scores_[:, np.newaxis, :]
        scores = by_distances[:, positions.from_start, positions.from_end]
        scores += np.append(self.previous_word_scores_, 0.0)[positions.previous]
        return np.exp(GATE_POWER * scores.clip(-MAX_SCORE, MAX_SCORE), out=scores)

    def _bags(
        self, n_documents: int, placed: Iterable[PlacedTokens], numbers: UnitNumbers | None
    ) -> Bags:
        """Return the bags of all documents."""
        parts = chain.from_iterable(self._parts(one, numbers) for one in placed)
        arrays = stack_rows(parts, n_documents, self.dtype)
        n_units = len(self.vocabulary_) if numbers is None else len(numbers)
        counts = sparse.csr_array(arrays, shape=(n_documents, n_units))
        return Bags(counts, is_damped=True) if numbers is None else numbers.bags(counts)

    def _unit_numbers(
        self, words: Sequence[str] = (), spelled_words: SpelledWords | None = None
    ) -> UnitNumbers | None:
        """Return numbers of units, also of words, None without characters: columns are units."""
        if not self.character_vocabulary_:
            return None
        numbers = UnitNumbers(units_of(self, spelled_words), spelled_words)
        numbers.number(words)
        return numbers

    def _parts(self, placed: PlacedTokens, numbers: UnitNumbers | None) -> Iterator[RowsPart]:
        """Yield the entries, units and ends of rows of some documents at a time.

        An occurrence with gate g is summed as the complex number 1 + g i: the real part of a sum is
        the number of occurrences, the imaginary part the sum of their gates.
        """
        dtype = np.result_type(self.dtype, np.complex64)
        by_length = self._units(placed, numbers)
        n_units = len(self.vocabulary_) if numbers is None else len(numbers)

        def part(block: tuple[slice, slice, Integers]) -> RowsPart:
            # 1) the row, unit and gate of each occurrence
            documents, here, indptr = block
            n_rows = documents.stop - documents.start
            numbers_of_rows = np.arange(n_rows, dtype=np.int32)
            rows_of_tokens = np.repeat(numbers_of_rows, np.diff(indptr))
            gates_of_orders = self._gates(placed.positions[here])
            rows = []
            units = []
            gates = []
            for one in by_length:
                units_at_tokens = one.units[here]
                at = np.flatnonzero(units_at_tokens >= 0)
                rows.append(rows_of_tokens.take(at))
                units.append(units_at_tokens.take(at))
                gates.append(gates_of_orders[one.order].take(at))
            # 2) their sums by row and unit
            row = np.concatenate(rows)
            unit = np.concatenate(units)
            values = np.ones(len(row), dtype=dtype)
            values.imag = np.concatenate(gates)
            sums = sums_by_entry(values, row, unit, (n_rows, n_units))
            return _gated(sums), sums.indices, sums.indptr[1:]

        return map_in_threads(part, placed.tokens.blocks(_BLOCK))

    def _units(self, placed: PlacedTokens, numbers: UnitNumbers | None) -> list[_UnitsOfLength]:
        """Return the units that start at tokens, by their lengths."""
        shortest = self.ngram_range[0]
        units = []
        for order, columns in enumerate(placed.columns):
            units.append(_UnitsOfLength(columns, shortest + order, order))
        if numbers is None:
            return units
        # Words outside the vocabulary are units, too, with the gates of the shortest n-grams.
        of_tokens = numbers.number(placed.tokens.words)[placed.tokens.ids]
        longer = units[1:] if shortest == 1 else units
        return [_UnitsOfLength(of_tokens, 1, 0), *longer]


def _gated(sums: Any) -> NDArray[np.floating[Any]]:
    """Return the entries of a bag, given complex sums, CSR (n_documents, n_units).

    Entries are 1 + ln c times the mean gate, and a document's add up to its sum of 1 + ln c.
    """
    # 1) 1 + ln c times the mean gate
    counts = sums.data.real
    damped = 1.0 + np.log(counts)
    values = damped / counts * sums.data.imag
    # 2) rescaled, document by document
    row_sizes = np.diff(sums.indptr)
    is_filled = row_sizes > 0
    starts = sums.indptr[:-1][is_filled]
    totals_without_gates = np.add.reduceat(damped, starts, dtype=np.float64)
    totals = np.add.reduceat(values, starts, dtype=np.float64)
    scale = (totals_without_gates / totals).astype(values.dtype)
    values *= np.repeat(scale, row_sizes[is_filled])
    return np.asarray(values)


def _occurrence_weights(units: NDArray[Any], gates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of a document's occurrences, (n_occurrences,)."""
    _, number, counts = np.unique(units, return_inverse=True, return_counts=True)
    factors_of_units = (1.0 + np.log(counts)) / counts
    factors = factors_of_units[number]
    weights = factors * gates
    if len(weights):
        weights *= factors.sum() / weights.sum()
    return weights


def _checked_targets(texts: list[str], y: Any, weights: NDArray[np.float64]) -> Targets:
    """Return the targets of the texts with positive weight, by which gates are learned."""
    if y is None:
        raise ValueError("y is None: expected labels, by which gates are learned (context=True).")
    targets = y if isinstance(y, Targets) else checked_targets(y)
    check_consistent_length(texts, targets.values)
    # Of several labels, gates are learned from the rarest one of each document.
    if targets.multilabel:
        targets = Targets.from_labels(targets.strata(weights))
    targets = targets[weights > 0]
    if targets.has_codes:
        return Targets.from_labels(targets.classes[targets.values])
    class_sizes = targets.class_sums(weights[weights > 0])
    is_present = class_sizes > 0
    return Targets(targets.classes[is_present], targets.values[:, is_present])
