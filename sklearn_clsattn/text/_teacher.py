r"""Fits with other models' probabilities of texts without labels.

A text that teachers answer is a document with probabilities, whose weight is the share of those who
answer. A labelled text has its sample weight.
Labelled texts that are held out decide whether the teacher is believed: models are trained without
a fold of them, with the teacher's texts and without, and scored on the fold. The fit without the
teacher is taken where its loss is less. Its penalties take long to choose: first it has those of
the fit with the teacher, with gamma = 1, and if its loss is clearly larger then, they are not
chosen.

Several teachers become one, the mean of what they say (:mod:`._teacher_shares`).

**Sharpness.** What is learned from probabilities is less sure than it is right: words carry some of
what the teacher knows, and a penalty holds back their values. So all decisions are multiplied by a
factor s, which minimizes the mean loss of the labelled texts held out plus :math:`\ln(s)^2 / 4`:
the second term is there because a teacher may have seen the labels.

Labelled texts can judge a teacher only if it has not seen their labels. So a teacher that is not
fitted is fitted to the labelled texts of the other folds, for each fold again.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from .._bags import Bags
from .._base import prepared, sharpened
from .._targets import Targets
from .._threads import thread_pool
from .._types import Array, Numbers
from .._validation import checked_groups, checked_weights, has_columns, targets_of_labels
from ..training.fitted_model import log_probabilities
from ._context_vectorizer import ContextVectorizer
from ._teacher_answers import answers_of, in_classes, joined, learns_from_labels, listed, needs_fit
from ._teacher_shares import (
    accuracies_by_agreement,
    accuracy_interval,
    pooled,
    shares_by_agreement,
    shares_by_labels,
)

if TYPE_CHECKING:
    from .._classifier import ClsAttentionClassifier
    from ..training.documents import Documents

N_FOLDS = 4
_ENOUGH_LABELS = 4_000  # the number of folds that are held out: this, divided by that of labels
_MOST_TAUGHT = 2_000  # of the teacher's texts, while it is judged
_JUDGING_TOL = 1e-2
_CLEARLY_LESS = 0.75  # the loss with the teacher, relative to a cheap fit without
_TAUGHT_TOL = 1e-4  # by default; the probabilities say less than labels, and texts are many
_SHARPNESS_PENALTY = 0.25  # on the square of its logarithm, in nats per labelled text
_MOST_SHARPNESS = 4.0  # and its inverse is the least

Folds = list[tuple[Numbers, Numbers]]  # rows of labelled texts in training, and held out


class Lesson(NamedTuple):
    """The result of a fit with teachers.

    weights : (n_teachers,), the share of each in their mean; all 0 where they are not believed
    accuracies : (n_teachers, 3), how right each seems to be, with an interval
    n_answers : (n_teachers,), numbers of texts that each answers
    sharpness : the factor of all decisions
    class_sizes : (n_classes,), the weights of the classes in the fit
    vectorizer, classifier : the fitted steps
    """

    weights: Array
    accuracies: Array
    n_answers: Numbers
    sharpness: float
    class_sizes: Array
    vectorizer: ContextVectorizer
    classifier: ClsAttentionClassifier


class Teachers:
    """Several teachers, labelled texts, and what the teachers say of other texts.

    labelled_texts, labels : (n_labelled,)
    groups : (n_labelled,), the groups of labelled texts; None without groups
    classes : (n_classes,), those of the labels and of all teachers, sorted
    texts : those that a teacher answers
    answers : (n_teachers, n_texts, n_classes), probabilities, NaN where one does not answer
    """

    def __init__(
        self,
        teachers: list[Any],
        labelled_texts: list[str],
        labels: NDArray[Any],
        groups: Numbers | None,
        texts: list[str],
        log: Callable[[str], None] | None,
    ) -> None:
        self._teachers = teachers
        self.labelled_texts = labelled_texts
        self.labels = labels
        self.groups = groups
        frames = []
        for teacher in teachers:
            fitted = teacher
            if learns_from_labels(teacher):
                fitted = clone(teacher).fit(list(labelled_texts), labels.copy())
            elif needs_fit(teacher):
                fitted = clone(teacher).fit([*labelled_texts, *texts])
            frames.append(answers_of(fitted, texts, np.unique(labels), log))
        self.classes, answers = joined(frames)
        self._fitted_without: dict[tuple[int, bytes], Any] = {}  # by teacher and labelled rows
        rows = np.flatnonzero(~np.isnan(answers).all(axis=(0, 2)))
        if not len(rows):
            raise ValueError("No teacher answers any text of unlabeled.")
        self.texts = [texts[row] for row in rows]
        self.answers = answers[:, rows]

    def __len__(self) -> int:
        return len(self._teachers)

    def label_probabilities(self) -> Array:
        """Return the labels as probabilities, (n_labelled, n_classes)."""
        columns = np.searchsorted(self.classes, self.labels)
        return np.asarray(np.eye(len(self.classes))[columns])

    def learns(self, number: int) -> bool:
        """Return whether a teacher learns from the labels."""
        return learns_from_labels(self._teachers[number])

    def answers_without(self, number: int, labelled: Numbers) -> Array:
        """Return a teacher's probabilities of the texts, learned from some labels alone."""
        if not self.learns(number):
            return np.asarray(self.answers[number])
        labels = self.labels[labelled]
        key = number, labelled.tobytes()
        if key not in self._fitted_without:  # it may learn for minutes
            other = clone(self._teachers[number])
            some_texts = [self.labelled_texts[row] for row in labelled]
            self._fitted_without[key] = other.fit(some_texts, labels)
        frame = answers_of(self._fitted_without[key], self.texts, np.unique(labels))
        return in_classes(frame, self.classes)

    def pooled_without(self, shares: Array, labelled: Numbers) -> tuple[Array, Array]:
        """Return the teachers' mean of the texts then, and the shares of those who answer."""
        every_answer = [self.answers_without(at, labelled) for at in range(len(self))]
        return pooled(np.array(every_answer), shares)

    def with_texts(self, rows: Numbers) -> Teachers:
        """Return the same teachers and labels with some of the texts."""
        some = copy(self)
        some.texts = [self.texts[row] for row in rows]
        some.answers = self.answers[:, rows]
        return some

    def sample(self) -> Numbers:
        """Return the numbers of some of the texts, which do not depend on their order."""
        hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in self.texts]
        return np.sort(np.argsort(hashes, kind="stable")[:_MOST_TAUGHT])


def learn_from_teachers(
    vectorizer: ContextVectorizer,
    classifier: ClsAttentionClassifier,
    texts: list[str],
    y: Any,
    sample_weight: Any,
    unlabeled: list[str] | None,
    teacher: Any,
    groups: Any,
) -> Lesson:
    """Fit a vectorizer and a classifier with one or several teachers.

    The parameters are those of :meth:`~sklearn_clsattn.TextClassifier.fit`; the classifier has no
    class weights.
    """
    if not unlabeled:
        raise ValueError("A teacher needs unlabelled texts: pass unlabeled.")
    # 1) labels, if there are any, and what the teachers say
    texts, labels, weights, groups = _labelled(texts, y, sample_weight, groups)
    log = print if classifier.verbose else None
    teachers = Teachers(listed(teacher, len(unlabeled)), texts, labels, groups, unlabeled, log)
    n_answers = np.count_nonzero(~np.isnan(teachers.answers[:, :, 0]), axis=1)
    # 2) the labelled texts as without a teacher, and their folds
    plain = None
    folds: Folds = []
    if len(texts):
        plain_vectorizer = clone(vectorizer)
        plain = _fit_plain_texts(plain_vectorizer, teachers, weights, unlabeled)
        folds = list(_folds(plain))
    # 3) how much each teacher is believed
    shares, accuracies = _shares_and_accuracies(vectorizer, classifier, teachers, weights, folds)
    _, answering = pooled(teachers.answers, shares)
    teachers = teachers.with_texts(np.flatnonzero(answering))
    # 4) the fit with all of them
    every_text = _fit_taught_texts(vectorizer, teachers, shares, weights)
    model = _fitted(classifier, every_text)
    lesson = Lesson(shares, accuracies, n_answers, 1.0, every_text.class_sizes(), vectorizer, model)
    if plain is None:
        return lesson
    # 5) whether that is better than none, by labelled texts held out and some of the taught
    sample = teachers.sample()
    some = teachers.with_texts(sample)
    some_texts = every_text.rows(np.concatenate([np.arange(len(texts)), len(texts) + sample]))
    if len(teachers) == 1:
        alone = _taught_alone(model, some_texts, some, folds)
        lesson = lesson._replace(accuracies=_accuracies(alone, some_texts))
    judges = list(_judges(plain, folds))
    if not judges:
        return lesson
    n_each = len(teachers.texts) / len(sample)
    taught_logs = _taught_logs(model, some_texts, some, n_each, shares, judges)
    sharpness, loss = _sharpness_and_loss(taught_logs, plain, judges)
    plain_model = _better_without(classifier, model, plain, labels, judges, loss)
    if plain_model is None:
        return lesson._replace(sharpness=sharpness, classifier=sharpened(model, sharpness))
    return lesson._replace(
        weights=np.zeros(len(shares)),
        class_sizes=Targets.from_labels(labels).class_sums(weights),
        vectorizer=plain_vectorizer,
        classifier=plain_model,
    )


def _better_without(
    classifier: ClsAttentionClassifier,
    model: ClsAttentionClassifier,
    plain: Documents,
    labels: NDArray[Any],
    judges: Folds,
    loss: float,
) -> ClsAttentionClassifier | None:
    """Return the classifier fitted without teachers if the judges' loss is less than `loss`."""
    # 1) with the penalties of `model`: a clear answer costs no search for others
    logs = _plain_logs(model, plain, judges, vector_scale=1.0)
    if loss <= _CLEARLY_LESS * _loss(logs, plain, judges):
        return None
    # 2) with penalties of its own
    groups = plain.given_groups
    plain_model = clone(classifier).fit(plain.bags, labels, plain.weights, groups=groups)
    logs = _plain_logs(plain_model, plain, judges)
    return plain_model if loss > _loss(logs, plain, judges) else None


def _labelled(
    texts: list[str], y: Any, sample_weight: Any, groups: Any
) -> tuple[list[str], NDArray[Any], Array, Numbers | None]:
    """Return the labelled texts of positive weight, their labels, weights and groups."""
    if has_columns(y):
        raise ValueError("With a teacher, expected one label per text, got several columns of y.")
    labels = np.zeros(0)
    if len(texts) or np.size(y):
        targets = targets_of_labels(y)
        labels = targets.classes[targets.values]
    check_consistent_length(texts, labels)
    weights = checked_weights(labels, sample_weight) if len(texts) else np.zeros(0)
    rows = np.flatnonzero(weights > 0)
    numbers = checked_groups(labels, groups)
    given_groups = None if numbers is None else numbers[rows]
    return [texts[row] for row in rows], labels[rows], weights[rows], given_groups


def _shares_and_accuracies(
    vectorizer: ContextVectorizer,
    classifier: ClsAttentionClassifier,
    teachers: Teachers,
    weights: Array,
    folds: Folds,
) -> tuple[Array, Array]:
    """Return the teachers' shares in their mean, (n_teachers,), and accuracies, (n_teachers, 3).

    They are by agreement, and of several by labelled texts of these weights, if there are any.
    """
    by_agreement = accuracies_by_agreement(teachers.answers)
    accuracies = np.column_stack([by_agreement, np.full((len(teachers), 2), np.nan)])
    shares = shares_by_agreement(by_agreement, len(teachers.classes))
    if len(teachers) == 1 or not len(weights):
        return shares, accuracies
    some = teachers.with_texts(teachers.sample())
    even = np.full(len(teachers), 1.0 / len(teachers))
    texts = _fit_taught_texts(clone(vectorizer), some, even, weights)
    alone = _taught_alone(_fitted(classifier, texts), texts, some, folds)
    likelihoods = (alone * texts.targets.values[: len(weights)]).sum(axis=2)
    shares = shares_by_labels(likelihoods, weights, shares)
    return shares, _accuracies(alone, texts)


def _fit_plain_texts(
    vectorizer: ContextVectorizer, teachers: Teachers, weights: Array, unlabeled: list[str]
) -> Documents:
    """Fit a vectorizer to labelled texts as without teachers, and return their bags."""
    from ..training.documents import Documents  # PyTorch, which prediction does not need

    bags = vectorizer._fit_bags(
        teachers.labelled_texts,
        teachers.labels,
        sample_weight=weights,
        unlabeled=unlabeled,
        groups=teachers.groups,
    )
    targets = Targets(teachers.classes, teachers.label_probabilities())
    return Documents(bags, targets, weights, given_groups=teachers.groups)


def _fit_taught_texts(
    vectorizer: ContextVectorizer, teachers: Teachers, shares: Array, weights: Array
) -> Documents:
    """Fit a vectorizer to labelled texts, then those that are taught, and return their bags."""
    from ..training.documents import Documents

    probabilities, answering = pooled(teachers.answers, shares)
    values = np.vstack([teachers.label_probabilities(), probabilities])
    targets = Targets(teachers.classes, values)
    weights = np.append(weights, answering)
    groups = teachers.groups
    if groups is not None:  # each taught text is one of its own
        groups = np.append(groups, groups.max(initial=-1) + 1 + np.arange(len(teachers.texts)))
    texts = [*teachers.labelled_texts, *teachers.texts]
    bags = vectorizer._fit_bags(texts, targets, sample_weight=weights, groups=groups)
    return Documents(bags, targets, weights, given_groups=groups)


def _fitted(classifier: ClsAttentionClassifier, texts: Documents) -> ClsAttentionClassifier:
    """Return a clone of a classifier that is fitted to texts, some of them taught."""
    model = clone(classifier)
    if model.tol == "auto":
        model.set_params(tol=_TAUGHT_TOL)
    return model.fit(texts.bags, texts.targets, texts.weights, groups=texts.given_groups)


def _with_probabilities(
    texts: Documents, rows: Numbers, probabilities: Array, weights: Array | float
) -> Documents:
    """Return all texts, with other probabilities, (n_rows, n_classes), of those in `rows`."""
    values = texts.targets.values.copy()
    values[rows] = probabilities
    new_weights = texts.weights.copy()
    new_weights[rows] = weights
    return replace(texts, targets=Targets(texts.targets.classes, values), weights=new_weights)


def _taught_alone(
    model: ClsAttentionClassifier, texts: Documents, teachers: Teachers, folds: Folds
) -> Array:
    """Return the classes' probabilities of labelled texts by models taught by one teacher alone.

    They are (n_teachers, n_labelled, n_classes). A teacher that learns from the labels is asked
    without those of the texts that are predicted; where that is not possible, or the teacher knows
    one class alone, they are NaN.
    """
    n_labelled = len(teachers.labels)
    every_row = np.arange(n_labelled)
    alone = np.full((len(teachers), n_labelled, len(teachers.classes)), np.nan)
    for number in range(len(teachers)):
        asked = folds if teachers.learns(number) else [(every_row, every_row)]
        for labelled, held_out in asked:
            answers = teachers.answers_without(number, labelled)
            answered = np.flatnonzero(~np.isnan(answers[:, 0]))
            taught = n_labelled + answered
            training = _with_probabilities(texts, taught, answers[answered], 1.0).rows(taught)
            if np.count_nonzero(training.class_sizes()) > 1:
                logs = _quick_fit(model, training, texts.bags[held_out])
                alone[number, held_out] = np.exp(logs)
    return alone


def _accuracies(alone: Array, texts: Documents) -> Array:
    """Return the shares of labelled texts predicted rightly, with intervals, (n_teachers, 3)."""
    classes = texts.targets.values[: alone.shape[1]].argmax(axis=1)
    rows = []
    for probabilities in alone:
        is_known = ~np.isnan(probabilities[:, 0])
        is_right = probabilities[is_known].argmax(axis=1) == classes[is_known]
        rows.append(accuracy_interval(int(is_right.sum()), len(is_right)))
    return np.array(rows)


def _judges(labelled_texts: Documents, folds: Folds) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the rows of labelled texts in training, and those held out whose class is among them.

    Of another class, a model without the teacher knows nothing.
    """
    for labelled, held_out in folds:
        class_sizes = labelled_texts.rows(labelled).class_sizes()
        true_classes = labelled_texts.targets.values[held_out].argmax(axis=1)
        known = held_out[class_sizes[true_classes] > 0]
        if len(known):
            yield labelled, known


def _plain_logs(
    model: ClsAttentionClassifier,
    labelled_texts: Documents,
    judges: Folds,
    vector_scale: float | None = None,
) -> Array:
    """Return the classes' log probabilities of judges without teachers, (n_judges, n_classes)."""
    logs = []
    for labelled, held_out in judges:
        training = labelled_texts.rows(labelled)
        asked = labelled_texts.bags[held_out]
        logs.append(_quick_fit(model, training, asked, vector_scale))
    return np.vstack(logs)


def _taught_logs(
    model: ClsAttentionClassifier,
    texts: Documents,
    teachers: Teachers,
    n_each: float,
    shares: Array,
    judges: Folds,
) -> Array:
    """Return the classes' log probabilities of judges with teachers, (n_judges, n_classes).

    `texts` are the labelled ones, then those of the teachers, each of which stands for `n_each`.
    """
    taught = len(teachers.labels) + np.arange(len(teachers.texts))
    logs = []
    for labelled, held_out in judges:
        fold_texts = texts
        if any(map(teachers.learns, range(len(teachers)))):
            probabilities, answering = teachers.pooled_without(shares, labelled)
            fold_texts = _with_probabilities(texts, taught, probabilities, answering)
        training = fold_texts.rows(np.concatenate([labelled, taught]))
        training.weights[len(labelled) :] *= n_each
        logs.append(_quick_fit(model, training, texts.bags[held_out]))
    return np.vstack(logs)


def _loss(logs: Array, texts: Documents, judges: Folds) -> float:
    """Return the judges' mean log loss by log probabilities of the classes."""
    rows = np.concatenate([held_out for _, held_out in judges])
    losses = -(logs * texts.targets.values[rows]).sum(axis=1)
    return float(np.average(losses, weights=texts.weights[rows]))


def _sharpness_and_loss(logs: Array, texts: Documents, judges: Folds) -> tuple[float, float]:
    """Return the factor of decisions with the least penalized loss of the judges, and this loss."""

    def penalized_loss(log_factor: float) -> float:
        sharper = log_softmax(np.exp(log_factor) * logs, axis=1)
        return _loss(sharper, texts, judges) + _SHARPNESS_PENALTY * log_factor**2

    bound = math.log(_MOST_SHARPNESS)
    best = minimize_scalar(penalized_loss, bounds=(-bound, bound))
    return float(np.exp(best.x)), float(best.fun)


def _quick_fit(
    model: ClsAttentionClassifier,
    training: Documents,
    asked: Bags,
    vector_scale: float | None = None,
) -> Array:
    """Return the logarithms of the classes' probabilities of texts, (n_asked, n_classes).

    They are those of a fit to fewer texts, with the strengths of penalties that a fitted model has
    chosen. `vector_scale`, unless None, takes the place of the chosen gamma.
    """
    from ..training.fit import fit_attention
    from ..training.products import resolve_device

    if vector_scale is None:
        vector_scale = getattr(model, "token_vectors_scale_", 0.0)
    documents, dtype = prepared(training, None, damps_counts=False)
    with thread_pool():
        fit = fit_attention(
            documents,
            C=model.C_,
            attention_C=model.attention_C_,
            max_iter=model.max_iter,
            tol=_JUDGING_TOL,
            dtype=dtype,
            device=resolve_device(model.device),
            vectors=training.bags.vectors,
            vector_scale=vector_scale,
        )
    return log_probabilities(fit.model.outputs(asked))


def _folds(labelled_texts: Documents) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the rows of labelled texts in training and held out, fewer times for many labels."""
    from ..training.folds import assign_folds

    documents = replace(labelled_texts)  # near-copies among all are not those among some
    folds = assign_folds(documents.held_together, documents.targets, documents.weights, N_FOLDS)
    n_used = min(N_FOLDS, math.ceil(_ENOUGH_LABELS / len(labelled_texts.weights)))
    for fold in range(n_used):
        labelled = np.flatnonzero(folds != fold)
        held_out = np.flatnonzero(folds == fold)
        # Copies are in one fold, so that some may be empty.
        can_train = np.count_nonzero(labelled_texts.rows(labelled).class_sizes()) > 1
        if can_train and len(held_out):
            yield labelled, held_out
