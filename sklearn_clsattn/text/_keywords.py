"""Keywords: a classifier of texts that learns from lists of words in place of labels.

After the first model, each learns the texts, too, of which the one before is surest, in each class.
As each is surer than the one before, and not more often right, the probabilities of the last become
as sure as those of the first.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._base import sharpened
from .._estimators import SavedMixin, all_or_nothing
from .._types import Array, Numbers
from ._known_words import words_of_classes
from ._normalization import normalized_texts
from ._tokens import (
    WORDS_AND_PUNCTUATION,
    Tokens,
    checked_texts,
    has_letters,
    tokenize,
    tokens_of_tokenizer,
)

if TYPE_CHECKING:
    from .._text_classifier import TextClassifier

SHARES = 0.4, 0.6, 0.8
"""The shares of each class's texts that are learned, the surest ones, one after the other."""

N_FOLDS = 3  # of the words of a class
_LEAST_AGREEMENT = 0.65  # 1/2 is guessing; below, the fit warns
_SOME_TEXTS = 0.005  # a share of all texts: words in far fewer are not suggested

Phrases = list[tuple[str, ...]]  # each keyword as its tokens


class MarkedTexts(NamedTuple):
    """Texts with keywords of one class only.

    texts : the texts without these keywords
    classes : (n_marked,), the number of the class of each
    has_word : (n_marked, n_keywords), which keywords each has
    """

    texts: list[str]
    classes: Numbers
    has_word: NDArray[np.bool_]


def marked_texts(
    texts: list[str], tokens: Tokens, words: Phrases, classes_of_words: Numbers
) -> MarkedTexts:
    """Return the texts that have keywords of one class only, without them.

    `tokens` are those of the texts.
    """
    # 1) which tokens are of keywords, and which keywords each text has
    documents = tokens.documents
    number = {word: at for at, word in enumerate(tokens.words)}
    is_marked = np.zeros(len(tokens.ids), dtype=bool)
    has_word = np.zeros((tokens.n_documents, len(words)), dtype=bool)
    for column, word in enumerate(words):
        starts = np.arange(len(tokens.ids) - len(word) + 1)
        for step, token in enumerate(word):
            starts = starts[tokens.ids[starts + step] == number.get(token, -1)]
        starts = starts[documents[starts] == documents[starts + len(word) - 1]]
        has_word[documents[starts], column] = True
        for step in range(len(word)):
            is_marked[starts + step] = True
    # 2) the texts of one class, and what is between these tokens
    is_of_class = np.equal.outer(classes_of_words, np.unique(classes_of_words))
    has_class = has_word @ is_of_class
    rows = np.flatnonzero(has_class.sum(axis=1) == 1)
    is_deleted = is_marked & (tokens.stops >= 0)  # a tokenizer may return what is not in the text
    remaining = []
    for row in rows.tolist():
        here = slice(tokens.indptr[row], tokens.indptr[row + 1])
        starts_here = tokens.starts[here][is_deleted[here]].tolist()
        stops_here = tokens.stops[here][is_deleted[here]].tolist()
        edges = zip([0, *stops_here], [*starts_here, None], strict=True)
        remaining.append("".join(texts[row][start:stop] for start, stop in edges))
    return MarkedTexts(remaining, has_class[rows].argmax(axis=1), has_word[rows])


def folds_of_words(n_texts: Numbers, classes_of_words: Numbers) -> Numbers:
    """Return the fold of each keyword, (n_keywords,), and -1 of those in no text.

    The frequent ones of a class are in different folds. There are at most as many folds as words of
    the class with the fewest, but two at least.
    """
    in_texts = n_texts > 0
    fewest = int(np.bincount(classes_of_words[in_texts]).min())
    n_folds = min(max(fewest, 2), N_FOLDS)
    folds = np.full(len(n_texts), -1)
    for code in np.unique(classes_of_words).tolist():
        of_class = np.flatnonzero(in_texts & (classes_of_words == code))
        order = np.argsort(-n_texts[of_class], kind="stable")
        folds[of_class[order]] = np.arange(len(of_class)) % n_folds
    return folds


def agreements(log_probabilities: Array, classes: Numbers) -> Array:
    """Return each text's area under the ROC curve, (n_texts,), in the mean over other classes.

    Of one other class, it is the share of its texts for which the decision between the two classes
    is less; NaN if no other class has a text. 1/2 is guessing. Unlike accuracy, it does not depend
    on how frequent classes are.
    """
    shares = np.full(log_probabilities.shape, np.nan)
    for code, other in permutations(np.unique(classes).tolist(), 2):
        decisions = log_probabilities[:, code] - log_probabilities[:, other]
        of_class = np.flatnonzero(classes == code)
        others = np.sort(decisions[classes == other])
        less, not_more = (
            np.searchsorted(others, decisions[of_class], side) for side in ("left", "right")
        )
        shares[of_class, other] = (less + not_more) / (2 * len(others))
    return np.array([_known_mean(of_text) for of_text in shares])


class Keywords(SavedMixin, ClassifierMixin, BaseEstimator):
    """Classifier of texts that learns from a few words for each class, without labels.

    For people who can name words, but have no labels. Words are best for topics; feelings take more
    than words.

    Parameters
    ----------
    keywords : dict
        For each class its words or phrases, such as ``{"billing": ["refund", "bank account"]}``.
        Case is ignored.
    tokenizer : callable or None, default=None
        Returns the tokens of a text, as in :class:`~sklearn_clsattn.TextClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    model_ : TextClassifier
        The classifier in use. :func:`~sklearn_clsattn.inspection.explain` shows its reasons.
    coverage_ : float
        The share of the texts that have keywords of one class only.
    agreement_ : float
        How often texts with words that were held out get the class of these words, rather than
        another one: 1/2 is guessing. NaN with one word a class, of which nothing is known.
    word_agreements_ : dict
        For each class the same of each of its words. That of a word that means something else is
        low.

    Notes
    -----
    Texts that contain keywords of one class only are labelled by them; the keywords are deleted,
    and a :class:`~sklearn_clsattn.TextClassifier` learns the class from the other words. In three
    rounds, the texts that it is surest of are learned, too. All classes count the same.

    For `agreement_`, the words of each class are divided into at most three folds. A model learns
    the texts without words of a fold, and is asked for those with words of this fold only; all
    keywords are deleted. Of two such texts of two classes, it tells which is which in this share of
    all pairs (the area under the ROC curve), as the mean over the classes with two words in texts.
    The fit warns below 0.65, and of NaN.

    This is no accuracy: words can agree with one another and be wrong together, which texts without
    labels cannot show. With some labels, :class:`~sklearn_clsattn.TextClassifier` tells in
    `teacher_accuracies_` how right this estimator is as its teacher.

    Examples
    --------
    >>> from sklearn_clsattn.text import Keywords
    >>> texts = [
    ...     "The striker scored a late goal",
    ...     "A striker left the stadium",
    ...     "After the goal the match ended",
    ...     "The stadium was full at the match",
    ...     "The minister lost the vote",
    ...     "A minister left the parliament",
    ...     "After the vote the law was dead",
    ...     "The parliament debated the law",
    ... ]
    >>> words = {"sports": ["goal", "stadium"], "politics": ["vote", "parliament"]}
    >>> model = Keywords(words).fit(texts)
    >>> model.predict(["a striker", "the minister"]).tolist()
    ['sports', 'politics']
    >>> model.agreement_
    1.0
    """

    learns_without_labels = True  # as a teacher it is fitted to all texts

    _parameter_constraints: dict[str, list[Any]] = {
        "keywords": [dict],
        "tokenizer": [callable, None],
    }

    word_agreements_: dict[Any, dict[str, float]]

    def __init__(
        self,
        keywords: dict[Any, Any],
        *,
        tokenizer: Callable[[str], Iterable[Any]] | None = None,
    ) -> None:
        self.keywords = keywords
        self.tokenizer = tokenizer

    @all_or_nothing
    def fit(self, X: Iterable[str], y: Any = None) -> Self:
        """Learn from texts without labels.

        Parameters
        ----------
        X : iterable of str
            Texts.
        y : None
            Ignored.

        Returns
        -------
        self : Keywords
            The fitted classifier.
        """
        # 1) texts with words of one class only, in an order that is not that of X
        texts = sorted(checked_texts(X))
        if len(self.keywords) < 2:
            raise ValueError(f"Expected keywords of two classes or more, got {self.keywords!r}.")
        self.classes_ = np.array(sorted(self.keywords))
        words, names = self._words()
        classes_of_words = np.array([code for code, _ in names])
        normal = normalized_texts(texts, lowercase=True)
        marked = marked_texts(normal, self._tokens(normal), words, classes_of_words)
        labels = self.classes_[marked.classes]
        missing = np.setdiff1d(self.classes_, labels).tolist()
        if missing:
            raise ValueError(
                f"No text contains keywords of {missing} without those of another class: choose "
                "other words, or pass more texts."
            )
        self.coverage_ = len(marked.texts) / len(texts)
        # 2) a model of their other words, and whether the words agree
        model = self._new_model().fit(marked.texts, labels)
        C = model.C_
        folds = folds_of_words(marked.has_word.sum(axis=0), classes_of_words)
        of_texts = self._held_out_agreements(marked, folds, C)
        of_classes = [_known_mean(of_texts[labels == label]) for label in self.classes_]
        self.agreement_ = _known_mean(np.array(of_classes))
        self.word_agreements_ = {label: {} for label in self.classes_.tolist()}
        for (code, name), has_word in zip(names, marked.has_word.T, strict=True):
            label = self.classes_.tolist()[code]
            self.word_agreements_[label][name] = _known_mean(of_texts[has_word])
        if not self.agreement_ >= _LEAST_AGREEMENT:
            warnings.warn(
                "Words of a class do not agree, as far as is known: agreement_ is "
                f"{self.agreement_:.2f}, and guessing is 0.50. Choose others, or more, or label "
                "some texts.",
                stacklevel=4,
            )
        # 3) models of the texts of which the one before is surest, too
        probabilities = model.predict_proba(texts)
        sureness = probabilities.max(axis=1).mean()
        for share in SHARES:
            rows = surest(probabilities, share)
            found = self.classes_[probabilities[rows].argmax(axis=1)]
            sure_texts = [texts[row] for row in rows.tolist()]
            model = self._new_model(C=C)
            model.fit([*marked.texts, *sure_texts], np.append(labels, found))
            probabilities = model.predict_proba(texts)
        # 4) who learns what it believes becomes surer, but not more often right
        model.classifier_ = sharpened(model.classifier_, factor_of(probabilities, sureness))
        self.model_ = model
        return self

    def predict_proba(self, X: Iterable[str]) -> Array:
        """Return the probability of each class.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        probabilities : ndarray of shape (n_texts, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """Return the most probable class of each text.

        Parameters
        ----------
        X : iterable of str
            Texts.

        Returns
        -------
        labels : ndarray of shape (n_texts,)
            Labels from `classes_`.
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    def suggest(self, X: Iterable[str], n: int = 10) -> dict[Any, list[str]]:
        """Return words that may be keywords, too: a person should say yes or no to each.

        They are frequent in texts of their class, by the predictions, and rare in others.

        Parameters
        ----------
        X : iterable of str
            Texts.
        n : int, default=10
            Number of words of each class.

        Returns
        -------
        suggested : dict
            For each class at most n words, of which none is a keyword, best first.
        """
        check_is_fitted(self)
        texts = list(checked_texts(X))
        probabilities = self.predict_proba(texts)
        tokens = self._tokens(normalized_texts(texts, lowercase=True))
        known = {*self._words()[0]}
        is_new = np.array([has_letters(w) and (w,) not in known for w in tokens.words], bool)
        # The classes' shares of the texts with a word, and of some that are as all texts are.
        some = _SOME_TEXTS * probabilities.sum(axis=0)
        sums = (tokens.word_counts.T > 0).astype(np.float64) @ probabilities + some
        ratios = sums / sums.sum(axis=1, keepdims=True) / some
        suggested = {}
        for code, label in enumerate(self.classes_.tolist()):
            rows = np.flatnonzero(is_new & (ratios.argmax(axis=1) == code))
            names = [tokens.words[row] for row in rows.tolist()]
            ranked = sorted(zip(-ratios[rows, code], names, strict=True))
            suggested[label] = [name for _, name in ranked[:n]]
        return suggested

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags

    def _tokens(self, texts: list[str]) -> Tokens:
        """Return the tokens of texts in normal form."""
        if self.tokenizer is not None:
            return tokens_of_tokenizer(texts, self.tokenizer)
        return tokenize(texts, WORDS_AND_PUNCTUATION, scripts=True)

    def _words(self) -> tuple[Phrases, list[tuple[int, str]]]:
        """Return the tokens of each keyword, and the number of its class with the keyword."""
        labels = self.classes_.tolist()
        keywords = {label: self.keywords[label] for label in labels}
        phrases = words_of_classes(
            "keywords",
            keywords,
            lambda words: self._tokens(normalized_texts(words, lowercase=True)),
        )
        names = [(labels.index(label), name) for label, name in phrases.values()]
        return list(phrases), names

    def _new_model(self, **parameters: Any) -> TextClassifier:
        """Return a classifier, not fitted."""
        from .._text_classifier import TextClassifier  # which imports modules of this package

        return TextClassifier(tokenizer=self.tokenizer, class_weight="balanced", **parameters)

    def _held_out_agreements(self, marked: MarkedTexts, folds: Numbers, C: float) -> Array:
        """Return the agreement of each text whose keywords are all in one fold, else NaN."""
        results = np.full(len(marked.texts), np.nan)
        for fold in range(N_FOLDS):
            in_fold = marked.has_word[:, folds == fold].any(axis=1)
            in_others = marked.has_word[:, folds != fold].any(axis=1)
            training = np.flatnonzero(~in_fold)
            codes = np.unique(marked.classes[training])
            held_out = np.flatnonzero(in_fold & ~in_others & np.isin(marked.classes, codes))
            if len(codes) > 1 and len(held_out):
                texts = [marked.texts[row] for row in training.tolist()]
                model = self._new_model(C=C).fit(texts, marked.classes[training])
                logs = np.zeros((len(held_out), len(self.classes_)))
                texts = [marked.texts[row] for row in held_out.tolist()]
                logs[:, codes] = model.predict_log_proba(texts)
                results[held_out] = agreements(logs, marked.classes[held_out])
        return results


def _known_mean(values: Array) -> float:
    """Return the mean of the values that are known, NaN if none is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan


def factor_of(probabilities: Array, sureness: float) -> float:
    """Return the factor of decisions with which the largest probabilities have this mean."""
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))

    def error(log_factor: float) -> float:
        largest = softmax(np.exp(log_factor) * logs, axis=1).max(axis=1)
        return float((largest.mean() - sureness) ** 2)

    return float(np.exp(minimize_scalar(error, bounds=(-4, 4)).x))


def surest(probabilities: Array, share: float) -> Numbers:
    """Return the rows of the surest texts of each class, a share of those predicted."""
    predicted = probabilities.argmax(axis=1)
    rows = []
    for code in range(probabilities.shape[1]):
        of_class = np.flatnonzero(predicted == code)
        order = np.argsort(-probabilities[of_class, code], kind="stable")
        rows.append(of_class[order[: math.ceil(share * len(of_class))]])
    return np.sort(np.concatenate(rows))
