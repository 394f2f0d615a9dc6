"""What a fitted estimator predicts, as its user has it, also for edited texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from .._types import Array, Numbers
from .._validation import encode_labels
from ..text._answers import to_numpy
from .terms import Decision
from .word_search import REACHED

_LOG_OF_NOTHING = float(np.log(np.finfo(np.float64).tiny))  # of a probability of 0
_LEVEL = 1e-9  # classes that are no further apart may be level but for rounding


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

    def leads(self, number: int) -> Array:
        """Return the lead of a class over the best other one, (n_documents,)."""
        others = np.delete(self.scores, number, axis=1)
        leads = self.scores[:, number] - others.max(axis=1)
        # Where the estimator predicts another class than its scores, what it predicts counts.
        is_other = self.scores.argmax(axis=1) != self.numbers
        least = np.where(self.numbers == number, 2 * REACHED, np.minimum(leads, -2 * REACHED))
        return np.where(is_other, least, leads)


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted estimator, asked for predictions.

    Of an estimator of several labels, `label` is the number of the one that is asked about; its
    classes are then without and with the label.
    """

    estimator: Any
    classes: NDArray[Any]  # (n_classes,)
    container: Callable[[list[str]], Any]  # makes a list of texts what the user's texts came in
    decision: Decision | None  # by which it predicts, if by a sum
    is_most_probable: bool  # whether it predicts what is most probable, as far as is known
    label: int | None = None
    threshold: Any = None  # an estimator with a threshold, if that decides

    def predict_texts(self, texts: list[str]) -> Predictions:
        """Return the predictions for texts."""
        return self.predict(self.container(texts))

    def predict(self, documents: Any) -> Predictions:
        """Return the predictions for documents."""
        if self.decision is not None:
            read = self.decision.read(documents)
            return self.predict_by_sum(documents, read, self.decision.decisions(read))
        scores, probabilities = self._scores(documents)
        if self.threshold is not None:
            number, least = _threshold(self.threshold, probabilities is not None)
            scores[:, number] -= least
        return Predictions(self._numbers(documents, scores), scores, probabilities)

    def predict_by_sum(self, documents: Any, read: Any, decisions: Array) -> Predictions:
        """Return the predictions for documents with these decisions, (n_documents, n_outputs)."""
        assert self.decision is not None
        probabilities = self.decision.probabilities(read, decisions)
        scores, probabilities = self._by_class(decisions, probabilities)
        return Predictions(self._numbers(documents, scores), scores, probabilities)

    def _numbers(self, documents: Any, scores: Array) -> Numbers:
        """Return the numbers of the predicted classes, (n_documents,).

        The estimator is asked, unless it is known to predict the class with the highest score.
        """
        if self.decision is not None or self.is_most_probable:
            first_two = np.partition(scores, -2, axis=1)[:, -2:]
            if (np.diff(first_two) > _LEVEL).all():
                return scores.argmax(axis=1)
        predicted = to_numpy(self.estimator.predict(documents))
        if self.label is None:
            return encode_labels(predicted, self.classes)
        return predicted[:, self.label].astype(np.intp)

    def _scores(self, documents: Any) -> tuple[Array, Array | None]:
        """Return the estimator's scores of classes, and its probabilities if it has some."""
        estimator = self.estimator
        if not hasattr(estimator, "predict_proba"):
            decisions = to_numpy(estimator.decision_function(documents)).astype(np.float64)
            return self._by_class(decisions.reshape(len(decisions), -1), None)
        with np.errstate(divide="ignore"):
            if hasattr(estimator, "predict_log_proba"):
                logs = np.asarray(estimator.predict_log_proba(documents), dtype=np.float64)
            else:
                logs = np.log(to_numpy(estimator.predict_proba(documents)), dtype=np.float64)
            if self.label is not None:
                with_label = logs[:, self.label]
                logs = np.column_stack([np.log(-np.expm1(with_label)), with_label])
        return logs.clip(min=_LOG_OF_NOTHING), np.exp(logs)

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


def _threshold(wrapper: Any, has_probabilities: bool) -> tuple[int, float]:
    """Return the class to which a threshold applies, and the score from which on it wins."""
    threshold = getattr(wrapper, "best_threshold_", getattr(wrapper, "threshold", "auto"))
    if threshold == "auto":
        return 1, 0.0
    number = 1
    if getattr(wrapper, "pos_label", None) is not None:
        number = wrapper.classes_.tolist().index(wrapper.pos_label)
    if has_probabilities and wrapper.response_method != "decision_function":
        tiny = np.finfo(np.float64).eps
        threshold = logit(np.clip(threshold, tiny, 1 - tiny))
    return number, float(threshold)
