r"""Another model's probabilities of texts without labels, and the weight of these texts.

A text of the teacher is a document with probabilities and a weight; that of a labelled text is 1.
The weight is chosen on labelled texts that are held out: for each of :data:`WEIGHTS`, models are
trained without a fold of the labelled texts, with the teacher's texts, and scored on the fold.
Weight 0 is the fit without the teacher. The choice is the mean of these weights, weighted by
exp(-loss), where the loss is the sum over the texts held out: many labelled texts decide for one
weight, few do not.

Labelled texts can judge a teacher only if it has not seen their labels. So a teacher that is not
fitted is fitted to the labelled texts of the other folds, for each fold again.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._bags import Bags
from .._fitting import prepared
from .._targets import Targets
from .._types import Array, Numbers
from .._validation import check_probabilities, checked_weights, has_columns, targets_of_labels
from ..training.forward import log_probabilities
from ..training.threads import thread_pool
from ._context_vectorizer import ContextVectorizer, fit_bags

if TYPE_CHECKING:
    from .._classifier import ClsAttentionClassifier

WEIGHTS = 0.0, 0.1, 1.0
"""The weights of a teacher's text that are tried."""

N_FOLDS = 4
_ENOUGH_LABELS = 4_000  # the number of folds that are held out: this, divided by that of labels
_TEXTS_AT_ONCE = 256  # that a teacher is asked for
_MOST_TAUGHT = 2_000  # of the teacher's texts, while their weight is chosen
_SEARCH_TOL = 1e-3


class Lesson(NamedTuple):
    """The result of a fit with a teacher: the weight of its texts, and the fitted steps."""

    weight: float
    vectorizer: ContextVectorizer
    classifier: ClsAttentionClassifier


@dataclass(frozen=True)
class TaughtTexts:
    """Bags of labelled texts, followed by bags of a teacher's texts.

    targets : probabilities of the classes, of all texts
    weights : (n_texts,), 1 for a teacher's text
    n_labelled : number of labelled texts
    """

    bags: Bags
    targets: Targets
    weights: Array
    n_labelled: int

    def __getitem__(self, rows: Numbers) -> TaughtTexts:
        """Return the texts in some rows, labelled ones first."""
        n_labelled = int(np.count_nonzero(rows < self.n_labelled))
        return TaughtTexts(self.bags[rows], self.targets[rows], self.weights[rows], n_labelled)

    def with_weight(self, weight: float) -> TaughtTexts:
        """Return all texts, with a weight of the teacher's."""
        weights = self.weights.copy()
        weights[self.n_labelled :] = weight
        return replace(self, weights=weights)

    def with_probabilities(self, rows: Numbers, probabilities: Array) -> TaughtTexts:
        """Return all texts, with other probabilities, (n_rows, n_classes), of those in `rows`."""
        values = self.targets.values.copy()
        values[rows] = probabilities
        return replace(self, targets=Targets(self.targets.classes, values))

    def class_sums(self) -> Array:
        """Return the weights of the classes, (n_classes,)."""
        return self.targets.class_sums(self.weights)


def learn_from_teacher(
    vectorizer: ContextVectorizer,
    classifier: ClsAttentionClassifier,
    texts: list[str],
    y: Any,
    sample_weight: Any,
    unlabeled: list[str] | None,
    teacher: Any,
) -> Lesson:
    """Fit a vectorizer and a classifier with a teacher.

    The parameters are those of :meth:`~sklearn_clsattn.TextClassifier.fit`.
    """
    more = unlabeled or []
    if not more:
        raise ValueError("A teacher needs texts of which it tells probabilities: pass unlabeled.")
    if has_columns(y):
        raise ValueError("With a teacher, expected one label per text, got several columns of y.")
    label_targets = targets_of_labels(y)
    labels = label_targets.classes[label_targets.values]
    check_consistent_length(texts, labels)
    weights = checked_weights(texts, sample_weight)
    # 1) the teacher's probabilities
    log = print if classifier.verbose else None
    is_new = needs_fit(teacher)
    fitted = clone(teacher).fit(list(texts), labels.copy()) if is_new else teacher
    taught = taught_probabilities(fitted, more, np.unique(labels), log)
    targets = _joint_targets(labels, taught)
    # 2) bags of all texts
    weights = np.append(weights, np.ones(len(more)))
    bags = fit_bags(vectorizer, [*texts, *more], targets, sample_weight=weights)
    every_text = TaughtTexts(bags, targets, weights, len(texts))
    # 3) the weight

    def teach_without(rows: Numbers, rows_of_more: Numbers) -> Array:
        some_labels = labels[rows]
        other = clone(teacher).fit([texts[row] for row in rows], some_labels)
        some_more = [more[row] for row in rows_of_more]
        probabilities = taught_probabilities(other, some_more, np.unique(some_labels))
        return probabilities.reindex(columns=targets.classes, fill_value=0.0).to_numpy()

    sample = _sample_by_content(more)
    with_teacher = _fitted(classifier, every_text)
    weight = choose_weight(with_teacher, every_text, sample, teach_without if is_new else None)
    # 4) the classifier with this weight
    model = with_teacher
    if 0 < weight < 1:
        model = _fitted(classifier, every_text.with_weight(weight))
    return Lesson(weight, vectorizer, model)


def _fitted(classifier: ClsAttentionClassifier, texts: TaughtTexts) -> ClsAttentionClassifier:
    """Return a clone of a classifier that is fitted to texts."""
    return clone(classifier).fit(texts.bags, texts.targets, texts.weights)


def needs_fit(teacher: Any) -> bool:
    """Return whether a teacher is an estimator that is not fitted."""
    if not isinstance(teacher, BaseEstimator):
        return False
    try:
        check_is_fitted(teacher)
    except NotFittedError:
        return True
    return False


def taught_probabilities(
    teacher: Any, texts: list[str], classes: NDArray[Any], log: Callable[[str], None] | None = None
) -> pd.DataFrame:
    """Return a teacher's probabilities of texts, (n_texts, n_classes), with the classes' names.

    A teacher is an estimator, a function of a list of texts, or the probabilities. `classes` are
    the sorted labels: names for probabilities without any. `log` prints progress.
    """
    if hasattr(teacher, "predict_proba"):
        names = _classes_of(teacher, classes)
        parts = _predictions(teacher.predict_proba, texts, log)
        return _checked_probabilities(parts, texts, names, classes)
    if callable(teacher):
        parts = _predictions(teacher, texts, log)
        return _checked_probabilities(parts, texts, classes, classes)
    return _checked_probabilities([teacher], texts, classes, classes)


def _predictions(
    predict: Callable[[list[str]], Any], texts: list[str], log: Callable[[str], None] | None
) -> Iterator[Any]:
    """Yield a function's results for some texts at a time."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        stop = min(start + _TEXTS_AT_ONCE, len(texts))
        yield predict(texts[start:stop])
        if log is not None:
            log(f"teacher: {stop:,} of {len(texts):,} texts")


def _classes_of(teacher: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the names of a fitted teacher's classes; `classes` if it does not name any."""
    for owner in (teacher, getattr(teacher, "model_head", None)):
        for name in ("classes_", "labels"):
            names = getattr(owner, name, None)
            if names is not None:
                return np.asarray(names)
    return classes


def _checked_probabilities(
    parts: Iterable[Any], texts: list[str], names: NDArray[Any], classes: NDArray[Any]
) -> pd.DataFrame:
    """Return parts of probabilities as one data frame of float64; its columns include `classes`."""
    frames = []
    for part in parts:
        if not isinstance(part, pd.DataFrame):
            if hasattr(part, "cpu"):  # a tensor
                part = part.cpu()
            values = np.asarray(part, dtype=np.float64)
            if values.ndim != 2 or values.shape[1] != len(names):
                raise ValueError(
                    f"The teacher's probabilities have shape {values.shape}: expected a column for "
                    f"each of {names.tolist()}. Pass a data frame whose columns name its classes."
                )
            part = pd.DataFrame(values, columns=names)
        frames.append(part)
    frame = pd.concat(frames, ignore_index=True)
    if len(frame) != len(texts):
        raise ValueError(
            f"The teacher has probabilities of {len(frame):,} texts, but unlabeled has "
            f"{len(texts):,}: expected one row for each of these."
        )
    missing = [name for name in classes.tolist() if name not in frame.columns]
    if missing:
        raise ValueError(
            f"The teacher has the classes {frame.columns.tolist()}, which do not include the "
            f"labels {missing}: expected the names of all labels in y among them."
        )
    frame = frame.astype(np.float64)
    check_probabilities(frame.to_numpy())
    return frame


def _joint_targets(labels: NDArray[Any], taught: pd.DataFrame) -> Targets:
    """Return the targets of labelled texts, followed by a teacher's probabilities."""
    classes = np.sort(np.array(taught.columns.tolist()))
    n_labelled = len(labels)
    values = np.zeros((n_labelled + len(taught), len(classes)))
    values[np.arange(n_labelled), np.searchsorted(classes, labels)] = 1.0
    values[n_labelled:] = taught.reindex(columns=classes)
    return Targets(classes, values)


def _sample_by_content(texts: list[str]) -> Numbers:
    """Return the numbers of some of the texts, which do not depend on their order."""
    hashes = [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
    return np.sort(np.argsort(hashes, kind="stable")[:_MOST_TAUGHT])


def choose_weight(
    with_teacher: ClsAttentionClassifier,
    texts: TaughtTexts,
    sample: Numbers,
    teach_without: Callable[[Numbers, Numbers], Array] | None = None,
) -> float:
    """Return the mean of :data:`WEIGHTS`, weighted by losses of labelled texts that are held out.

    `with_teacher` is fitted to all texts with weight 1, and `sample` numbers the teacher's texts
    that are learned meanwhile. `teach_without` fits a teacher to some of the labelled texts, and
    returns its probabilities of some of its texts; both are given by their rows.
    """
    n_labelled = texts.n_labelled
    n_taught = len(texts.weights) - n_labelled
    taught = n_labelled + sample
    every_label = texts[np.arange(n_labelled)]
    # 1) quick fits, with and without the teacher
    fit_with = _QuickFit(with_teacher)
    fit_without = _QuickFit(_fitted(with_teacher, every_label))
    # 2) the losses of labelled texts that are held out
    losses = np.full((n_labelled, len(WEIGHTS)), np.nan)
    for labelled, held_out in _folds(every_label):
        fold_texts = texts
        if teach_without is not None:  # a teacher that has not seen the labels that are held out
            fold_texts = texts.with_probabilities(taught, teach_without(labelled, sample))
        known = _of_known_classes(texts, labelled, held_out)
        losses[known, 0] = fit_without.losses(texts[labelled], texts[known])
        training = fold_texts[np.concatenate([labelled, taught])]
        for number, weight in enumerate(WEIGHTS[1:], start=1):
            weighted = training.with_weight(weight * n_taught / len(sample))
            losses[known, number] = fit_with.losses(weighted, texts[known])
    # 3) the mean of the weights, by these losses
    is_judge = ~np.isnan(losses).any(axis=1) & (every_label.weights > 0)
    if not is_judge.any():
        return WEIGHTS[-1]
    total_losses = every_label.weights[is_judge] @ losses[is_judge]
    return round(float(softmax(-total_losses) @ WEIGHTS), 3)  # 0 is the fit without the teacher


class _QuickFit:
    """Fits to fewer texts, with the strengths of penalties that a fitted classifier has chosen."""

    def __init__(self, classifier: ClsAttentionClassifier) -> None:
        from ..training.products import resolve_device  # PyTorch, which prediction does not need

        self._class_weight = classifier.class_weight
        self._settings = {
            "C": classifier.C_,
            "attention_C": classifier.attention_C_,
            "vector_scale": getattr(classifier, "token_vectors_scale_", 0.0),
            "max_iter": classifier.max_iter,
            "tol": _SEARCH_TOL,
            "device": resolve_device(classifier.device),
        }

    def losses(self, training: TaughtTexts, held_out: TaughtTexts) -> Array:
        """Return the log losses of labelled texts that are held out, (n_held_out,)."""
        from ..training.documents import Documents
        from ..training.fit import fit_attention

        documents = Documents(training.bags, training.targets, training.weights)
        documents, dtype = prepared(documents, self._class_weight, damps_counts=False)
        vectors = training.bags.vectors
        with thread_pool():
            fit = fit_attention(documents, dtype=dtype, vectors=vectors, **self._settings)
        outputs = fit.model.outputs(held_out.bags)
        return -(log_probabilities(outputs) * held_out.targets.values).sum(axis=1)


def _folds(labelled_texts: TaughtTexts) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the rows of labelled texts in training and held out, fewer times for many labels."""
    from ..training.documents import Documents
    from ..training.folds import assign_folds

    documents = Documents(labelled_texts.bags, labelled_texts.targets, labelled_texts.weights)
    folds = assign_folds(documents.groups, documents.targets, documents.weights, N_FOLDS)
    n_used = min(N_FOLDS, math.ceil(_ENOUGH_LABELS / labelled_texts.n_labelled))
    for fold in range(n_used):
        labelled = np.flatnonzero(folds != fold)
        held_out = np.flatnonzero(folds == fold)
        # Copies are in one fold, so that some may be empty.
        can_train = np.count_nonzero(labelled_texts[labelled].class_sums()) > 1
        if can_train and len(held_out):
            yield labelled, held_out


def _of_known_classes(texts: TaughtTexts, labelled: Numbers, held_out: Numbers) -> Numbers:
    """Return the rows held out whose class has labelled texts in training.

    Of another class, a model without the teacher knows nothing.
    """
    class_sums = texts[labelled].class_sums()
    true_classes = texts.targets.values[held_out].argmax(axis=1)
    return held_out[class_sums[true_classes] > 0]
