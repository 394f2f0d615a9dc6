r"""Another model's probabilities of texts without labels, and the weight of these texts.

A teacher's probabilities are matched with the classes by name. The weight of its texts, beside 1
for a labelled text, is chosen on labelled texts that are held out: for each of :data:`CANDIDATES`,
models are trained without a fold of the labelled texts, with the teacher's texts, and scored on the
fold. The choice is the mean of the candidates' weights, weighted by :math:`\exp(-n L)`, with the
mean held-out loss L of n labelled texts, like the choice of gamma (:mod:`.._core.choose_c`): many
labelled texts decide for one weight, few do not. A power of the probabilities is chosen with it,
because many teachers are less sure than they are right.

Labelled texts can judge a teacher only if it has not seen their labels. So a teacher that is not
fitted is fitted to the labelled texts of the other folds, for each fold again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from .._classifier import ClsAttentionClassifier
from .._sklearn import _check_sample_weight
from .._targets import Targets
from .._training import warn_user
from .._types import Array, Numbers
from .._validation import check_probabilities, has_several_labels, plain_labels
from ._tokens import checked

if TYPE_CHECKING:
    from .._core.output_loss import OutputLoss


class TeacherUse(NamedTuple):
    """The weight of a teacher's texts, and the power of its probabilities.

    weight : of each text
    power : of the probabilities, which then are divided by their sum; above 1 they are surer
    """

    weight: float
    power: float = 1.0


CANDIDATES = TeacherUse(0.0), TeacherUse(0.1), TeacherUse(1.0, 1.5), TeacherUse(1.0)
"""The uses of a teacher; their mean, weighted by held-out losses, is chosen."""

LEAST_WEIGHT = 0.05
"""A smaller choice is 0: then the teacher is not used."""

N_FOLDS = 4
_ENOUGH_LABELS = 4_000  # the number of folds that are judged is this, divided by that of labels
SEEN = (
    "The teacher is much surer of the labelled texts than of others, so it seems to be fitted to "
    "their labels, which then cannot tell how much it should count: its texts count like labelled "
    "ones. Pass the teacher without a fit, or set teacher_weight."
)
_TEXTS_AT_ONCE = 256  # that a teacher is asked for
_MOST_TAUGHT = 2_000  # of the teacher's texts, while its weight is chosen
_SEARCH_TOL = 1e-3


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
    check_probabilities(frame, None)
    return frame.astype(np.float64)


class TaughtTexts(NamedTuple):
    """Bags of labelled texts, followed by bags of a teacher's texts.

    targets : probabilities of the classes, of all texts
    weights : (n_texts,), 1 for a teacher's text
    n_labelled : number of labelled texts
    """

    bags: Any
    targets: Targets
    weights: Array
    n_labelled: int

    def subset(self, rows: Numbers, n_labelled: int) -> TaughtTexts:
        """Return the texts in some rows, of which the first `n_labelled` are labelled."""
        return TaughtTexts(self.bags[rows], self.targets[rows], self.weights[rows], n_labelled)

    def with_probabilities(self, rows: Numbers, probabilities: Array) -> TaughtTexts:
        """Return all texts, with other probabilities, (n_rows, n_classes), of those in `rows`."""
        values = self.targets.values.copy()
        values[rows] = probabilities
        return self._replace(targets=Targets(self.targets.classes, values))


def fit_taught(
    classifier: ClsAttentionClassifier, texts: TaughtTexts, use: TeacherUse
) -> ClsAttentionClassifier:
    """Return a classifier, fitted to the texts with one use of the teacher."""
    by_teacher = slice(texts.n_labelled, None)
    probabilities = texts.targets.values.copy()
    taught = probabilities[by_teacher] ** use.power
    probabilities[by_teacher] = taught / taught.sum(axis=1, keepdims=True)
    weights = texts.weights.copy()
    weights[by_teacher] = use.weight
    classes = texts.targets.classes
    return clone(classifier).fit(texts.bags, probabilities, weights, classes=classes)


class _Split(NamedTuple):
    """The rows of labelled and of the teacher's texts, in training and held out."""

    labelled: Numbers
    labelled_out: Numbers
    taught: Numbers
    taught_out: Numbers


def choose_use(
    classifier: ClsAttentionClassifier,
    texts: TaughtTexts,
    candidates: tuple[TeacherUse, ...],
    teach_without: Callable[[Numbers, Numbers], Array] | None = None,
) -> tuple[TeacherUse, float]:
    """Return the use of a teacher, and how often models agree with it on texts held out, if any.

    With several `candidates`, it is their mean by held-out losses. `classifier` is fitted to the
    texts, with the last of them. `teach_without` fits a teacher to some of the labelled texts, and
    returns its probabilities of some of its texts; both are given by their rows.
    """
    import torch

    n_labelled = texts.n_labelled
    n_texts = len(texts.weights)
    # 1) texts in training and held out, fold by fold
    step = max(1, (n_texts - n_labelled) // _MOST_TAUGHT)
    taught = np.arange(n_labelled, n_texts, step)
    alone = texts.subset(np.arange(n_labelled), n_labelled)
    splits = _splits(alone, taught)
    # 2) settings of quick fits, with and without the teacher
    with_teacher = _settings_of(classifier)
    without_teacher = with_teacher
    if candidates[0].weight == 0:
        without_teacher = _settings_of(fit_taught(classifier, alone, candidates[0]))
    losses = np.zeros(len(candidates))
    agreement = np.zeros(len(candidates))
    for split in splits:
        # 3) a teacher that has not seen the labels that are held out
        fold_texts = texts
        if teach_without is not None:
            probabilities = teach_without(split.labelled, taught - n_labelled)
            fold_texts = texts.with_probabilities(taught, probabilities)
        loss = _held_out_loss(fold_texts, split)
        for number, use in enumerate(candidates):
            # 4) a model of the texts in training, with one use of the teacher
            rows = split.labelled
            settings = without_teacher
            if use.weight:
                rows = np.concatenate([rows, split.taught])
                settings = with_teacher
            quick = clone(classifier).set_params(**settings)
            use_for_all = use._replace(weight=use.weight * step)
            training = fold_texts.subset(rows, len(split.labelled))
            model = fit_taught(quick, training, use_for_all)
            # 5) its loss on labelled texts
            outputs = model.decision_function(texts.bags[split.labelled_out])
            outputs = outputs.reshape(len(split.labelled_out), -1)
            loss_of_fold, _ = loss(torch.from_numpy(outputs))
            losses[number] += loss_of_fold
            # 6) its agreement with the teacher
            predicted = model.predict_proba(texts.bags[split.taught_out]).argmax(axis=1)
            by_teacher = fold_texts.targets.values[split.taught_out].argmax(axis=1)
            agreement[number] += (predicted == by_teacher).mean() / len(splits)
    measured = float(agreement[losses.argmin()]) if splits else math.nan
    return _mean_use(candidates, losses), measured


def _splits(labelled_texts: TaughtTexts, taught: Numbers) -> list[_Split]:
    """Return the splits of labelled texts and rows of a teacher's texts, fewer for many labels."""
    from .._core.choose_c import assign_folds
    from .._core.documents import Documents

    bags, targets, weights, n_labelled = labelled_texts
    folds = assign_folds(Documents.from_arrays(bags, targets, weights), N_FOLDS)
    n_taught_folds = min(N_FOLDS, len(taught))
    taught_folds = np.arange(len(taught)) % n_taught_folds
    n_used = min(N_FOLDS, math.ceil(_ENOUGH_LABELS / n_labelled))
    splits = []
    for fold in range(n_used):
        is_out = folds == fold
        # Copies are in one fold, so that some may be empty.
        if is_out.any() and not is_out.all():
            taught_out = taught_folds == fold % n_taught_folds
            split = _Split(
                labelled=np.flatnonzero(~is_out),
                labelled_out=np.flatnonzero(is_out),
                taught=taught[~taught_out],
                taught_out=taught[taught_out],
            )
            splits.append(split)
    return splits


def _held_out_loss(texts: TaughtTexts, split: _Split) -> OutputLoss:
    """Return the loss of the labelled texts that are held out."""
    from .._core.output_loss import output_loss

    # Of a class without labelled texts, a model without the teacher knows nothing.
    training_weights = texts.weights[split.labelled]
    class_sums = texts.targets[split.labelled].class_sums(training_weights)
    has_labels = (class_sums > 0).astype(np.float64)
    targets = texts.targets[split.labelled_out]
    weights = texts.weights[split.labelled_out]
    return output_loss(*targets.weighted(has_labels, weights))


def _mean_use(candidates: tuple[TeacherUse, ...], losses: Array) -> TeacherUse:
    """Return the mean of uses, weighted by held-out losses; a power counts with a weight only."""
    portions = softmax(-losses)
    weights, powers = np.array(candidates).T
    power = 1.0
    with_weight = portions * (weights > 0)  # without a weight, a power has no effect
    if with_weight.sum() > 0:
        power = float(with_weight @ powers / with_weight.sum())
    return TeacherUse(float(portions @ weights), power)


def _settings_of(classifier: ClsAttentionClassifier) -> dict[str, Any]:
    """Return the parameters of a quick fit, as a fitted classifier has chosen them."""
    return {
        "C": classifier.C_,
        "attention_C": classifier.attention_C_,
        "token_vectors_scale": getattr(classifier, "token_vectors_scale_", 0.0),
        "tol": _SEARCH_TOL,
    }


class Lesson(NamedTuple):
    """The result of a fit with a teacher: its use and agreement, and the fitted steps.

    taught_by : the teacher and the number of its texts, in words
    """

    use: TeacherUse
    agreement: float
    taught_by: str
    vectorizer: Any
    classifier: Any


def learn_from_teacher(
    adapter: Any,
    classifier: ClsAttentionClassifier,
    X: Any,
    y: Any,
    sample_weight: Any,
    unlabeled: Any,
    teacher: Any,
    teacher_weight: float | str,
) -> Lesson:
    """Fit a vectorizer, in an `adapter` that makes bags, and a classifier with a teacher.

    The parameters are those of :meth:`TextClassifier.fit`.
    """
    check_teacher_weight(teacher_weight)
    texts, labels, weights, more = _checked_input(X, y, sample_weight, unlabeled)
    log = print if classifier.verbose else None
    # 1) the teacher's probabilities
    is_new = needs_fit(teacher)
    fitted = clone(teacher).fit(texts, labels) if is_new else teacher
    taught = taught_probabilities(fitted, more, np.unique(labels), log)
    targets = _joint_targets(labels, taught)
    # 2) bags of all texts
    adapter = clone(adapter)
    weights = np.append(weights, np.ones(len(more)))
    bags = adapter.fit_transform([*texts, *more], targets, sample_weight=weights)
    taught_texts = TaughtTexts(bags, targets, weights, len(texts))
    # 3) a classifier, and the choice of the teacher's use
    candidates: tuple[TeacherUse, ...] = CANDIDATES
    if teacher_weight != "auto":
        candidates = (TeacherUse(float(teacher_weight)),)
    elif not is_new and _has_seen(fitted, texts, taught):
        candidates = candidates[-1:]
        warn_user(SEEN)
    model = fit_taught(classifier, taught_texts, candidates[-1])

    def teach_without(rows: Numbers, rows_of_more: Numbers) -> Array:
        other = clone(teacher).fit([texts[row] for row in rows], labels[rows])
        some_more = [more[row] for row in rows_of_more]
        probabilities = taught_probabilities(other, some_more, np.unique(labels[rows]))
        return probabilities.reindex(columns=targets.classes, fill_value=0.0).to_numpy()

    use, agreement = choose_use(model, taught_texts, candidates, teach_without if is_new else None)
    # 4) the classifier with this use
    if use.weight < LEAST_WEIGHT:
        use = TeacherUse(0.0)
    elif use != candidates[-1]:
        scale = getattr(model, "token_vectors_scale_", 0.0)
        with_scale = clone(classifier).set_params(token_vectors_scale=scale)
        model = fit_taught(with_scale, taught_texts, use)
        model.set_params(token_vectors_scale=classifier.token_vectors_scale)
    taught_by = f"{_description(teacher)}, {len(more):,} texts"
    return Lesson(use, agreement, taught_by, adapter.vectorizer, model)


def _checked_input(
    X: Any, y: Any, sample_weight: Any, unlabeled: Any
) -> tuple[list[str], NDArray[Any], Array, list[str]]:
    """Return the texts, their labels and weights, (n_texts,), and the texts without labels."""
    texts = list(checked(X, texts=True))
    more = [] if unlabeled is None else list(checked(unlabeled, texts=True))
    if not more:
        raise ValueError(
            "A teacher needs texts of which it tells probabilities: pass them as unlabeled."
        )
    if y is None:
        raise ValueError("A teacher needs labels of the texts in X: expected y, got None.")
    if has_several_labels(y):
        raise ValueError("With a teacher, expected one label per text, got several columns of y.")
    labels = column_or_1d(plain_labels(y), warn=True)
    check_consistent_length(texts, labels)
    weights = _check_sample_weight(sample_weight, texts, dtype=np.float64)
    return texts, labels, weights, more


def _joint_targets(labels: NDArray[Any], taught: pd.DataFrame) -> Targets:
    """Return the targets of labelled texts, followed by a teacher's probabilities."""
    classes = np.sort(np.array(taught.columns.tolist()))
    n_labelled = len(labels)
    values = np.zeros((n_labelled + len(taught), len(classes)))
    values[np.arange(n_labelled), np.searchsorted(classes, labels)] = 1.0
    values[n_labelled:] = taught[classes.tolist()]
    return Targets(classes, values)


def _description(teacher: Any) -> str:
    """Return a teacher's description, in words."""
    if hasattr(teacher, "predict_proba"):
        steps = [type(step).__name__ for _, step in getattr(teacher, "steps", [])]
        return " and ".join(steps) or type(teacher).__name__
    if callable(teacher):
        return getattr(teacher, "__name__", type(teacher).__name__)
    return "probabilities"


def _has_seen(teacher: Any, texts: list[str], taught: pd.DataFrame) -> bool:
    """Return whether a fitted estimator is much surer of the labelled texts than of others.

    A function is not asked for more than the texts it is to teach.
    """
    if not hasattr(teacher, "predict_proba"):
        return False
    sample = texts[:: max(1, len(texts) // _TEXTS_AT_ONCE)]
    labelled = np.asarray(teacher.predict_proba(sample), dtype=np.float64).max(axis=1)
    others = taught.to_numpy().max(axis=1)
    difference = labelled.mean() - others.mean()
    standard_error = np.sqrt(labelled.var() / len(labelled) + others.var() / len(others))
    return bool(difference > max(0.05, 4.0 * standard_error))


def check_teacher_weight(teacher_weight: Any) -> None:
    """Raise ValueError unless a weight is "auto" or a number that is not negative."""
    is_number = isinstance(teacher_weight, Real) and 0 <= float(teacher_weight) < np.inf
    if not (is_number or teacher_weight == "auto"):
        raise ValueError(
            f"teacher_weight must be 'auto' or a number that is not negative, got "
            f"{teacher_weight!r}."
        )
