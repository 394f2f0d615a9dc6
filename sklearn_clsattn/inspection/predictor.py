"""What a fitted estimator predicts, also for edited texts, and what each word changes in that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._types import Array, Numbers
from .._validation import encode_labels
from ..text._teacher_answers import to_numpy
from ..text._tokens import checked_texts
from .edited_text import EditableText
from .shown_classes import ShownClasses
from .terms import DecisionSum, Explained, Terms
from .token_positions import LocatedText, locate_words
from .word_search import REACHED

_LOG_OF_NOTHING = float(np.log(np.finfo(np.float64).tiny))  # of a probability of 0
_LEVEL = 1e-6  # classes that are no further apart may be level but for rounding
_AT_ONCE = 1_000  # edited texts that the estimator is asked for


@dataclass(frozen=True, eq=False)
class Predictions:
    """What an estimator predicts for documents."""

    numbers: Numbers  # (n_documents,), of the predicted classes
    scores: Array  # (n_documents, n_classes): decisions, or logarithms of probabilities
    probabilities: Array | None  # (n_documents, n_classes)

    @property
    def of_predicted(self) -> Array | None:
        """The probabilities of the predicted classes, (n_documents,)."""
        if self.probabilities is None:
            return None
        return self.probabilities[np.arange(len(self.numbers)), self.numbers]

    def margins(self, number: int) -> Array:
        """Return the lead of a class over the best other one, (n_documents,)."""
        others = np.delete(self.scores, number, axis=1)
        return np.asarray(self.scores[:, number] - others.max(axis=1))


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted estimator, asked for predictions.

    Of an estimator of several labels, `label` is the number of the one that is asked about; its
    classes are then without and with the label.
    """

    estimator: Any
    classes: NDArray[Any]  # (n_classes,)
    container: Callable[[list[str]], Any]  # makes a list of texts what the user's texts came in
    decision_sum: DecisionSum | None  # by which it predicts, if by one
    is_argmax: bool = False  # whether it is known to predict the most probable class
    label: int | None = None
    threshold: Any = None  # the estimator that changes the threshold, if one does

    def predict_texts(self, texts: list[str]) -> Predictions:
        """Return the predictions for texts."""
        return self.predict(self.container(texts))

    def predict(self, documents: Any) -> Predictions:
        """Return the predictions for documents."""
        if self.decision_sum is not None:
            read = self.decision_sum.read(documents)
            return self.predict_by_sum(documents, read, self.decision_sum.decisions(read))
        scores, probabilities = self.scores(documents)
        if self.threshold is not None:
            if self.threshold.response_method == "decision_function":
                scores, _ = self._by_class(self._decision_function(documents), None)
            number, least = _threshold(self.threshold, probabilities is not None)
            scores[:, number] -= least
        return self._predictions(documents, scores, probabilities, is_argmax=self.is_argmax)

    def predict_by_sum(self, documents: Any, read: Any, decisions: Array) -> Predictions:
        """Return the predictions for documents with these decisions, (n_documents, n_outputs)."""
        assert self.decision_sum is not None
        probabilities = self.decision_sum.probabilities(read, decisions)
        scores, probabilities = self._by_class(decisions, probabilities)
        return self._predictions(documents, scores, probabilities, is_argmax=True)

    def _predictions(
        self, documents: Any, scores: Array, probabilities: Array | None, *, is_argmax: bool
    ) -> Predictions:
        """Return predictions with these scores.

        The estimator is asked for the classes, unless it is known to predict the class with the
        highest score and no classes are level.
        """
        numbers = scores.argmax(axis=1)
        if is_argmax and not _are_level(scores):
            return Predictions(numbers, scores, probabilities)
        # What the estimator predicts is ahead, also where classes are level.
        numbers = self._predicted(documents)
        rows = np.arange(len(numbers))
        others = scores.copy()
        others[rows, numbers] = -np.inf
        ahead = scores.copy()
        ahead[rows, numbers] = np.maximum(scores[rows, numbers], others.max(axis=1) + 2 * REACHED)
        return Predictions(numbers, ahead, probabilities)

    def scores(self, documents: Any) -> tuple[Array, Array | None]:
        """Return the estimator's scores of classes, and its probabilities if it has some."""
        estimator = self.estimator
        if not hasattr(estimator, "predict_proba"):
            return self._by_class(self._decision_function(documents), None)
        with np.errstate(divide="ignore"):
            if hasattr(estimator, "predict_log_proba"):
                logs = np.asarray(estimator.predict_log_proba(documents), dtype=np.float64)
            else:
                logs = np.log(to_numpy(estimator.predict_proba(documents)), dtype=np.float64)
            if self.label is not None:
                with_label = logs[:, self.label]
                logs = np.column_stack([np.log(-np.expm1(with_label)), with_label])
        return logs.clip(min=_LOG_OF_NOTHING), np.exp(logs)

    def _decision_function(self, documents: Any) -> Array:
        """Return the estimator's own decisions, (n_documents, n_outputs)."""
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                f"{type(self.estimator).__name__} has neither predict_proba nor decision_function, "
                "from which effects of words are computed"
            )
        decisions = to_numpy(self.estimator.decision_function(documents)).astype(np.float64)
        return decisions.reshape(len(decisions), -1)

    def _predicted(self, documents: Any) -> Numbers:
        """Return the numbers of the classes that the estimator itself predicts, (n_documents,)."""
        predicted = to_numpy(self.estimator.predict(documents))
        if self.label is not None:
            return predicted[:, self.label].astype(np.intp)
        numbers = encode_labels(predicted, self.classes)
        if (numbers < 0).any():
            unknown = predicted[numbers < 0].tolist()[0]
            raise ValueError(f"{unknown!r} was predicted, which is none of {self.classes.tolist()}")
        return numbers

    def _by_class(
        self, decisions: Array, probabilities: Array | None
    ) -> tuple[Array, Array | None]:
        """Return decisions and probabilities for all classes, or without and with the label."""
        if self.label is not None:
            decisions = decisions[:, [self.label]]
            if probabilities is not None:
                with_label = probabilities[:, [self.label]]
                probabilities = np.hstack([1 - with_label, with_label])
        if decisions.shape[1] == 1:  # the first of two classes has the decision 0
            decisions = np.pad(decisions, ((0, 0), (1, 0)))
        return decisions, probabilities


@dataclass(frozen=True, eq=False)
class TextModel:
    """A fitted estimator of texts, and how it decides for the explained classes."""

    predictor: Predictor
    explained: Explained
    shown: ShownClasses

    def decisions(self, texts: list[str]) -> Array:
        """Return the decisions for the explained classes, (n_texts, n_targets)."""
        read = self.explained.read(self.predictor.container(texts))
        return self.shown.select(self.explained.decisions(read))


def _are_level(scores: Array) -> bool:
    """Return whether the two highest scores of a document may be level, but for rounding."""
    first_two = np.partition(scores, -2, axis=1)[:, -2:]
    return bool((np.diff(first_two) < _LEVEL).any())


def _threshold(wrapper: Any, has_probabilities: bool) -> tuple[int, float]:
    """Return the class to which a threshold applies, and the score from which on it wins."""
    threshold = getattr(wrapper, "best_threshold_", getattr(wrapper, "threshold", "auto"))
    if threshold == "auto":
        return 1, 0.0
    scorer = getattr(wrapper, "_curve_scorer", None)  # of a tuned threshold
    pos_label = (
        wrapper.pos_label if scorer is None else scorer._get_pos_label()  # no public name
    )
    number = 1 if pos_label is None else wrapper.classes_.tolist().index(pos_label)
    if has_probabilities and wrapper.response_method != "decision_function":
        tiny = np.finfo(np.float64).eps
        threshold = logit(np.clip(threshold, tiny, 1 - tiny))
    return number, float(threshold)


@dataclass(frozen=True, eq=False)
class WordEffects:
    """An estimator whose decisions are not sums: it is asked for each text without each word."""

    predictor: Predictor
    intercept: None = None

    def read(self, documents: Any) -> list[str]:
        """Return documents as a list of texts."""
        return list(checked_texts(documents))

    def decisions(self, read: list[str]) -> Array:
        """Return the numbers on which words have effects, (n_texts, n_outputs).

        Of two classes it is the probability of the second, less a half; without probabilities, it
        is the decision.
        """
        parts = []
        for start in range(0, max(len(read), 1), _AT_ONCE):
            documents = self.predictor.container(read[start : start + _AT_ONCE])
            scores, probabilities = self.predictor.scores(documents)
            by_class = scores if probabilities is None else probabilities
            if by_class.shape[1] > 2:
                parts.append(by_class)
            elif probabilities is None:
                parts.append(by_class[:, [1]] - by_class[:, [0]])
            else:
                parts.append(by_class[:, [1]] - 0.5)
        return np.concatenate(parts)

    def terms(self, read: list[str]) -> Terms:
        """Return the effects of the words of texts, in the order of their first occurrences."""
        # 1) Each text, and each without one of its words.
        versions = []
        names = []
        counts = []
        lengths = []
        for text in read:
            editable = EditableText(text)
            versions.append(text)
            for number, word in enumerate(editable.words):
                versions.append(editable.without([number]))
                names.append(word.name)
                counts.append(len(word.spans))
            lengths.append(len(editable.words))
        # 2) The differences of their decisions.
        n_words = np.array(lengths, dtype=np.intp)
        wholes = np.cumsum(n_words + 1) - n_words - 1
        is_edited = np.ones(len(versions), dtype=bool)
        is_edited[wholes] = False
        decisions = self.decisions(versions)
        effects = np.repeat(decisions[wholes], n_words, axis=0) - decisions[is_edited]
        return Terms(
            indptr=np.append(0, np.cumsum(n_words)),
            tokens=np.array(names, dtype=object),
            weights=np.array(counts, dtype=np.float64),
            contributions=effects,
        )

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its words, which are the tokens."""
        return locate_words(text)
