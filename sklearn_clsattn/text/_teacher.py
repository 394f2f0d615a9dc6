r"""Another model's probabilities on texts without labels, and how much they count.

A teacher's probabilities are matched with the classes by name. How much its texts count, beside the
labelled texts of weight 1, is chosen on labelled texts that are held out: for each of
:data:`CANDIDATES`, models are trained without a fold of the labelled texts, with the teacher's
texts, and scored on the fold. The choice is the mean of these weights, weighted by
:math:`\exp(-n L)`, with the mean held-out loss L of n labelled texts, as of gamma
(:mod:`.._core.choose_c`): many labelled texts decide for one weight, few do not. A power of the
probabilities is chosen with it, because many teachers are less sure than they are right.

Labelled texts can judge a teacher only if it has not seen their labels. So a teacher that is not
fitted is fitted to the labelled texts of the other folds, for each fold again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._classifier import ClsAttentionClassifier
from .._sklearn import _check_sample_weight
from .._targets import Targets
from .._types import Array
from .._validation import check_probabilities, has_several_labels, plain_labels
from ._tokens import checked


class TeacherUse(NamedTuple):
    """How a teacher is used.

    weight : of each of its texts
    power : of its probabilities, which then are divided by their sum; above 1 they are surer
    """

    weight: float
    power: float = 1.0


CANDIDATES = TeacherUse(0.0), TeacherUse(0.1), TeacherUse(1.0, 1.5), TeacherUse(1.0)
"""The uses of a teacher whose mean, weighted by held-out losses, is chosen."""

LEAST_WEIGHT = 0.05
"""A smaller choice is 0: then the teacher is not used."""

N_FOLDS = 4
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
    those of labelled texts, sorted: names for probabilities without any. `log` is told of progress.
    """
    if hasattr(teacher, "predict_proba"):
        names = _classes_of(teacher, classes)
        return _checked(_asked(teacher.predict_proba, texts, log), texts, names, classes)
    if callable(teacher):
        return _checked(_asked(teacher, texts, log), texts, classes, classes)
    return _checked([teacher], texts, classes, classes)


def _asked(
    ask: Callable[[list[str]], Any], texts: list[str], log: Callable[[str], None] | None
) -> Iterator[Any]:
    """Yield a function's results for some texts at a time."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        yield ask(texts[start : start + _TEXTS_AT_ONCE])
        if log is not None:
            log(f"teacher: {min(start + _TEXTS_AT_ONCE, len(texts)):,} of {len(texts):,} texts")


def _classes_of(teacher: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the names of a fitted teacher's classes; `classes` if it does not name any."""
    for owner in (teacher, getattr(teacher, "model_head", None)):
        for name in ("classes_", "labels"):
            found = getattr(owner, name, None)
            if found is not None:
                return np.asarray(found)
    return classes


def _checked(
    parts: Any, texts: list[str], names: NDArray[Any], classes: NDArray[Any]
) -> pd.DataFrame:
    """Return parts of probabilities as one data frame of float64; its columns include `classes`."""
    frames = []
    for part in parts:
        if not isinstance(part, pd.DataFrame):
            values = np.asarray(part.cpu() if hasattr(part, "cpu") else part, dtype=np.float64)
            if values.ndim != 2 or values.shape[1] != len(names):
                raise ValueError(
                    f"The teacher's probabilities have shape {values.shape}: expected a column for "
                    f"each of {names.tolist()}. Pass a data frame whose columns name its classes."
                )
            part = pd.DataFrame(values, columns=names)
        frames.append(part)
    frame = pd.concat(frames, ignore_index=True) if len(frames) != 1 else frames[0]
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
    """Bags of labelled texts, followed by those of a teacher's texts.

    targets : of all, shares
    weights : (n_texts,), 1 for a teacher's text
    n_labelled : number of labelled texts
    """

    bags: Any
    targets: Targets
    weights: Array
    n_labelled: int

    def some(self, rows: NDArray[np.intp], n_labelled: int) -> TaughtTexts:
        """Return some of the texts, of which the first `n_labelled` are labelled."""
        return TaughtTexts(self.bags[rows], self.targets[rows], self.weights[rows], n_labelled)


def fit_taught(
    classifier: ClsAttentionClassifier, texts: TaughtTexts, use: TeacherUse
) -> ClsAttentionClassifier:
    """Return a classifier that is fitted to the texts with some use of the teacher's."""
    classes, shares = texts.targets.classes, texts.targets.values.copy()
    taught = shares[texts.n_labelled :] ** use.power
    shares[texts.n_labelled :] = taught / taught.sum(axis=1, keepdims=True)
    weights = texts.weights.copy()
    weights[texts.n_labelled :] *= use.weight
    return clone(classifier).fit(texts.bags, shares, weights, classes=classes)


def choose_use(
    classifier: ClsAttentionClassifier,
    texts: TaughtTexts,
    candidates: tuple[TeacherUse, ...],
    teach_without: Callable[[NDArray[np.intp], NDArray[np.intp]], Array] | None = None,
) -> tuple[TeacherUse, float]:
    """Return the use of a teacher, and how often models agree with it on texts held out.

    With several `candidates`, it is their mean by held-out losses. `classifier` is fitted to the
    texts, with the last of them. `teach_without` returns the probabilities of some of
    the teacher's texts by a teacher fitted to some of the labelled texts, given by their rows.
    """
    import torch

    from .._core.choose_c import ENOUGH_DOCUMENTS, assign_folds
    from .._core.documents import Documents
    from .._core.output_loss import output_loss

    n_labelled = texts.n_labelled
    labelled = np.arange(n_labelled)
    alone = texts.some(labelled, n_labelled)
    known = Documents.from_arrays(alone.bags, alone.targets, alone.weights)
    # 1) folds of the labelled texts, and of some of the teacher's
    folds = assign_folds(known, N_FOLDS)
    taught = np.arange(n_labelled, len(texts.weights))
    step = max(1, len(taught) // _MOST_TAUGHT)
    taught = taught[::step]
    taught_folds = np.arange(len(taught)) % N_FOLDS
    n_used = int(np.clip(np.ceil(ENOUGH_DOCUMENTS / n_labelled), 1, N_FOLDS))
    with_teacher = without_teacher = _settings_of(classifier)
    if candidates[0].weight == 0:
        without_teacher = _settings_of(fit_taught(classifier, alone, candidates[0]))
    losses = np.zeros(len(candidates))
    agreement = np.zeros(len(candidates))
    # Copies are in one fold, so that some may be empty.
    used = [fold for fold in range(n_used) if 0 < np.count_nonzero(folds == fold) < n_labelled]
    for fold in used:
        # 2) texts of this fold are held out
        out, others = labelled[folds == fold], labelled[folds != fold]
        rows, rows_out = taught[taught_folds != fold], taught[taught_folds == fold]
        told = texts
        if teach_without is not None:
            values = texts.targets.values.copy()
            values[taught] = teach_without(others, taught - n_labelled)
            told = texts._replace(targets=Targets(texts.targets.classes, values))
        targets = told.targets
        # Of a class without labelled texts, a model without the teacher knows nothing.
        is_known = (targets[others].class_sums(texts.weights[others]) > 0).astype(np.float64)
        loss = output_loss(*targets[out].weighted(is_known, texts.weights[out]))
        for number, use in enumerate(candidates):
            # 3) a model of the others, with one use of the teacher
            kept = np.concatenate([others, rows]) if use.weight else others
            setting = with_teacher if use.weight else without_teacher
            quick = clone(classifier).set_params(**setting)
            for_all = use._replace(weight=use.weight * step)
            model = fit_taught(quick, told.some(kept, len(others)), for_all)
            # 4) its loss on labelled texts, and its agreement with the teacher
            outputs = model.decision_function(texts.bags[out]).reshape(len(out), -1)
            losses[number] += loss(torch.from_numpy(outputs))[0]
            predicted = model.predict_proba(texts.bags[rows_out]).argmax(axis=1)
            same = predicted == targets.values[rows_out].argmax(axis=1)
            agreement[number] += same.mean() / len(used)
    # 5) the mean of the candidates; without a weight, a power does not count
    shares = softmax(-losses)
    weights, powers = np.array(candidates).T
    of_powers = shares * (weights > 0)
    power = float(of_powers @ powers / of_powers.sum()) if of_powers.sum() > 0 else 1.0
    nearest = int(losses.argmin())
    return TeacherUse(float(shares @ weights), power), float(agreement[nearest])


def _settings_of(classifier: ClsAttentionClassifier) -> dict[str, Any]:
    """Return parameters for a quick fit with what a fitted classifier has chosen."""
    return {
        "C": classifier.C_,
        "attention_C": classifier.attention_C_,
        "token_vectors_scale": getattr(classifier, "token_vectors_scale_", 0.0),
        "tol": _SEARCH_TOL,
    }


class Lesson(NamedTuple):
    """What was learned with a teacher: its use and agreement, and the fitted steps.

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
    labels = np.asarray(plain_labels(y))
    check_consistent_length(texts, labels)
    weights = _check_sample_weight(sample_weight, texts, dtype=np.float64)
    log = print if classifier.verbose else None
    classes = np.unique(labels)
    # 1) the teacher's probabilities
    is_new = needs_fit(teacher)
    fitted = clone(teacher).fit(texts, labels) if is_new else teacher
    taught = taught_probabilities(fitted, more, classes, log)
    classes = np.sort(np.array(taught.columns.tolist()))
    values = np.zeros((len(texts) + len(more), len(classes)))
    values[np.arange(len(texts)), np.searchsorted(classes, labels)] = 1.0
    values[len(texts) :] = taught[classes.tolist()]
    targets = Targets(classes, values)
    weights = np.append(weights, np.ones(len(more)))
    # 2) bags of all texts
    every = [*texts, *more]
    adapter = clone(adapter)
    bags = adapter.fit_transform(every, targets, sample_weight=weights)
    lesson = TaughtTexts(bags, targets, weights, len(texts))
    # 3) a classifier, and the teacher's weight
    candidates: tuple[TeacherUse, ...] = CANDIDATES
    if teacher_weight != "auto":
        candidates = (TeacherUse(float(teacher_weight)),)
    if teacher_weight == "auto" and _has_seen(fitted, texts, taught) and not is_new:
        candidates = candidates[-1:]
        warnings.warn(SEEN, stacklevel=4)
    model = fit_taught(classifier, lesson, candidates[-1])

    def teach_without(rows: NDArray[np.intp], asked: NDArray[np.intp]) -> Array:
        other = clone(teacher).fit([texts[row] for row in rows], labels[rows])
        found = taught_probabilities(other, [more[row] for row in asked], np.unique(labels[rows]))
        return found.reindex(columns=classes, fill_value=0.0).to_numpy()

    use, agreement = choose_use(model, lesson, candidates, teach_without if is_new else None)
    if use.weight < LEAST_WEIGHT:
        use = TeacherUse(0.0)
    elif use != candidates[-1]:
        scale = getattr(model, "token_vectors_scale_", 0.0)
        model = fit_taught(clone(classifier).set_params(token_vectors_scale=scale), lesson, use)
        model.set_params(token_vectors_scale=classifier.token_vectors_scale)
    taught_by = f"{_described(teacher)}, {len(more):,} texts"
    return Lesson(use, agreement, taught_by, adapter.vectorizer, model)


def _described(teacher: Any) -> str:
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
    some = texts[:: max(1, len(texts) // _TEXTS_AT_ONCE)]
    confidence = np.asarray(teacher.predict_proba(some), dtype=np.float64).max(axis=1)
    elsewhere = taught.to_numpy().max(axis=1)
    error = np.sqrt(confidence.var() / len(confidence) + elsewhere.var() / len(elsewhere))
    return bool(confidence.mean() - elsewhere.mean() > max(0.05, 4.0 * error))


def check_teacher_weight(teacher_weight: Any) -> None:
    """Raise ValueError unless a weight is "auto" or a number that is not negative."""
    is_number = isinstance(teacher_weight, Real) and 0 <= float(teacher_weight) < np.inf
    if not (is_number or teacher_weight == "auto"):
        raise ValueError(
            f"teacher_weight must be 'auto' or a number that is not negative, got "
            f"{teacher_weight!r}."
        )
