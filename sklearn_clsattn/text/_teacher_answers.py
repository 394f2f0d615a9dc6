"""What other models, as teachers, say of texts: probabilities or labels, and names of classes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._types import Array
from .._validation import check_probabilities

_TEXTS_AT_ONCE = 256  # that a teacher is asked for


def listed(teacher: Any, n_texts: int) -> list[Any]:
    """Return the teachers in a list, or the only one.

    A list of as many rows of numbers, or labels, as there are texts is one.
    """
    if not isinstance(teacher, list | tuple):
        return [teacher]
    if any(map(_is_teacher, teacher)):
        return list(teacher)
    sizes = {np.shape(each) for each in teacher}
    has_answers = sizes == {(n_texts,)} and len(teacher) != n_texts
    return list(teacher) if has_answers else [teacher]


def _is_teacher(value: Any) -> bool:
    """Return whether an item of a list is a teacher, not a row of numbers or a label."""
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1:
        return any(isinstance(each, str) for each in value)
    is_table = isinstance(value, pd.Series) or getattr(value, "ndim", 0) > 1
    return is_table or callable(value) or hasattr(value, "predict")


def needs_fit(teacher: Any) -> bool:
    """Return whether a teacher is an estimator that is not fitted."""
    if not isinstance(teacher, BaseEstimator):
        return False
    try:
        check_is_fitted(teacher)
    except NotFittedError:
        return True
    return False


def learns_from_labels(teacher: Any) -> bool:
    """Return whether a teacher is to be fitted to labelled texts; :class:`Keywords` needs none."""
    return needs_fit(teacher) and not getattr(teacher, "learns_without_labels", False)


def answers_of(
    teacher: Any, texts: list[str], classes: NDArray[Any], log: Callable[[str], None] | None = None
) -> pd.DataFrame:
    """Return a teacher's probabilities of texts, (n_texts, n_classes), with the classes' names.

    A teacher is an estimator, which says labels if it has no probabilities, a function of a list of
    texts, or what it says. Rows of texts without an answer are NaN. `classes` are the sorted
    labels: names for probabilities without any. `log` prints progress.
    """
    predict = getattr(teacher, "predict_proba", getattr(teacher, "predict", None))
    if predict is not None:
        names = classes_of(teacher, classes)
        parts = list(_in_parts(predict, texts, log))
        return _checked(_frame(parts, names), texts, classes)
    parts = list(_in_parts(teacher, texts, log)) if callable(teacher) else [teacher]
    return _checked(_frame(parts, classes), texts, classes)


def _in_parts(
    predict: Callable[[list[str]], Any], texts: list[str], log: Callable[[str], None] | None
) -> Iterator[Any]:
    """Yield a function's results for some texts at a time."""
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        stop = min(start + _TEXTS_AT_ONCE, len(texts))
        yield predict(texts[start:stop])
        if log is not None:
            log(f"teacher: {stop:,} of {len(texts):,} texts")


def to_numpy(answer: Any) -> NDArray[Any]:
    """Return the answer of a model as an array, also one on a device or a sparse one."""
    if isinstance(answer, list) and any(isinstance(each, str) for each in answer):
        return np.array(answer, dtype=object)  # None and NaN stay what they are
    if hasattr(answer, "toarray"):
        return np.asarray(answer.toarray())
    return np.asarray(answer.cpu() if hasattr(answer, "cpu") else answer)


def classes_of(model: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the names of a fitted model's classes; `classes` if it does not name any."""
    for owner in (model, getattr(model, "model_head", None)):
        for name in ("classes_", "labels"):
            names = getattr(owner, name, None)
            if names is not None:
                return np.asarray(names)
    return classes


def _frame(parts: list[Any], names: NDArray[Any]) -> pd.DataFrame:
    """Return parts of what a teacher says as probabilities, in columns with the classes' names."""
    if all(hasattr(part, "columns") for part in parts):
        frames = []
        for part in parts:
            is_pandas = isinstance(part, pd.DataFrame)
            frames.append(part if is_pandas else pd.DataFrame(to_numpy(part), columns=part.columns))
        return pd.concat(frames, ignore_index=True).astype(np.float64)
    arrays = list(map(to_numpy, parts))
    if all(array.ndim == 1 for array in arrays):
        return _one_hot(np.concatenate([array.astype(object) for array in arrays]), names)
    values = np.concatenate(arrays).astype(np.float64)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(
            f"The teacher's probabilities have shape {values.shape}: expected a column for each of "
            f"{names.tolist()}. Pass a data frame whose columns name its classes."
        )
    return pd.DataFrame(values, columns=names)


def _one_hot(labels: NDArray[np.object_], names: NDArray[Any]) -> pd.DataFrame:
    """Return labels as probabilities of 0 and 1; None and NaN are no answer."""
    is_answer = ~pd.isna(labels)
    said = labels[is_answer].tolist()
    known = names.tolist()
    if said:
        check_classification_targets(said)
    if said and known and set(known).isdisjoint(said):
        raise ValueError(f"The teacher says {sorted(set(said))}: expected labels of y, {known}.")
    columns = list(dict.fromkeys([*known, *said]))
    values = np.full((len(labels), len(columns)), np.nan)
    values[is_answer] = labels[is_answer, None] == np.array(columns, dtype=object)
    return pd.DataFrame(values, columns=columns)


def _checked(frame: pd.DataFrame, texts: list[str], classes: NDArray[Any]) -> pd.DataFrame:
    """Return probabilities of as many texts as there are; columns include all `classes`."""
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
    no_answer = frame.isna().all(axis=1)
    if not no_answer.all():
        check_probabilities(frame.mask(no_answer, 1.0 / frame.shape[1], axis=0).to_numpy())
    return frame


def joined(frames: list[pd.DataFrame]) -> tuple[NDArray[Any], Array]:
    """Return the sorted classes of several teachers, and (n_teachers, n_texts, n_classes)."""
    names = {name for frame in frames for name in frame.columns.tolist()}
    classes = np.array(sorted(names))
    return classes, np.array([in_classes(frame, classes) for frame in frames])


def in_classes(frame: pd.DataFrame, classes: NDArray[Any]) -> Array:
    """Return probabilities of these classes, (n_texts, n_classes); NaN where there is no answer."""
    is_answer = ~frame.isna().all(axis=1).to_numpy()
    values = frame.reindex(columns=classes, fill_value=0.0).to_numpy(np.float64)
    return np.where(is_answer[:, None], values, np.nan)
