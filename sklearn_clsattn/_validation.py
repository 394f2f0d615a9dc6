"""Checks of the input of estimators: scikit-learn's, and ours where these would mislead."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_non_negative,
    column_or_1d,
    validate_data,
)

from ._bags import Bags
from ._matrices import as_csr
from ._sklearn import (
    _check_estimator_name,
    _check_sample_weight,
    _check_y,
    _get_feature_names,
)
from ._targets import Targets
from ._types import Array, Numbers

_PROBABILITY_ROUNDING = 1e-3  # of sums of probabilities


def validated(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    columns: bool = False,
) -> tuple[Bags, Targets, Array]:
    """Return validated documents: bags without negative entries and zeros, targets and weights.

    With `columns`, y may have several columns: labels, or probabilities of classes. The
    estimator stores the number and names of the tokens.
    """
    if y is None:
        name = _check_estimator_name(estimator)
        raise ValueError(f"{name} requires y to be passed, but the target y is None")
    bags = validated_bags(estimator, X, reset=True)
    targets = y
    if not isinstance(y, Targets):
        targets = checked_targets(y) if columns else targets_of_labels(y)
    check_consistent_length(bags.units, targets.values)
    return bags, targets, checked_weights(bags.units, sample_weight)


def validated_bags(estimator: Any, X: Any, *, reset: bool) -> Bags:
    """Return validated documents as bags; those of a vectorizer of this package are valid."""
    if isinstance(X, Bags):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    check_not_texts(X, _check_estimator_name(estimator))
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", accept_large_sparse=True)
    check_non_negative(X, _check_estimator_name(estimator))
    return Bags(as_csr(X))


def checked_part(
    X: Any, y: Any, sample_weight: Any, name: str
) -> tuple[Bags, Targets, Array, list[str] | None]:
    """Return documents of a larger set, perhaps none, with targets, weights and token names."""
    check_not_texts(X, name)
    names = _get_feature_names(X)
    options = {"ensure_min_samples": 0, "estimator": name, "input_name": "X"}
    X = check_array(X, accept_sparse="csr", accept_large_sparse=True, **options)
    check_non_negative(X, name)
    targets = checked_targets(y)
    check_consistent_length(X, targets.values)
    if X.shape[0] and (sample_weight is None or np.any(sample_weight)):
        weights = checked_weights(X, sample_weight)
    else:  # scikit-learn refuses weights of 0 alone
        weights = np.zeros(X.shape[0])
        check_consistent_length(X, weights if sample_weight is None else sample_weight)
    return Bags(as_csr(X)), targets, weights, None if names is None else names.tolist()


def check_not_texts(X: Any, name: str) -> None:
    """Raise a ValueError that suggests a vectorizer if X contains texts instead of counts."""
    first = None
    if isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1:
        first = next(iter(X), None)
    if isinstance(first, str):
        raise ValueError(
            f"X contains texts, such as {first[:40]!r}: expected token counts. Use a "
            f"TextClassifier, or a vectorizer, as in make_pipeline(CountVectorizer(), {name}())."
        )


def checked_weights(X: Any, sample_weight: ArrayLike | None) -> Array:
    """Return the weights of documents, (n_documents,), 1 for all by default."""
    weights: Array = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weights


def checked_groups(X: Any, groups: ArrayLike | None) -> Numbers | None:
    """Return the number of each document's group, None without groups."""
    if groups is None:
        return None
    labels = check_array(groups, input_name="groups", ensure_2d=False, dtype=None)
    labels = column_or_1d(labels)
    check_consistent_length(X, labels)
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def checked_targets(y: Any) -> Targets:
    """Return the targets of documents: labels, or columns of labels or probabilities."""
    return targets_of_columns(y) if has_columns(y) else targets_of_labels(y)


def has_columns(y: Any) -> bool:
    """Return whether y has several columns, as a matrix or a list of lists."""
    if isinstance(y, list | tuple):
        return bool(y) and isinstance(y[0], list | tuple | np.ndarray) and len(y[0]) > 1
    shape: Any = getattr(y, "shape", ())
    return len(shape) == 2 and shape[1] > 1


def targets_of_labels(y: Any) -> Targets:
    """Return the targets of documents with one label each."""
    labels = _check_y(y)
    if len(labels):
        check_classification_targets(labels)
    return Targets.from_labels(labels)


def targets_of_columns(y: Any, classes: ArrayLike | None = None) -> Targets:
    """Return the targets of documents with several labels, or with probabilities of classes.

    They are probabilities if any is neither 0 nor 1. A data frame's columns are the classes; other
    columns are those of `classes`, by default 0, 1, 2, ...
    """
    # 1) the columns and their names
    names: Any = getattr(y, "columns", classes)
    matrix = _check_y(y, multi_output=True)
    matrix = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
    names = np.arange(matrix.shape[1]) if names is None else np.asarray(list(names))
    if len(set(names.tolist())) != matrix.shape[1]:
        raise ValueError(
            f"y has {matrix.shape[1]} columns: expected as many different classes, got "
            f"{names.tolist()}."
        )
    # 2) several labels, or probabilities
    if np.isin(matrix, (0, 1)).all():
        return Targets(names, matrix.astype(np.float64), multilabel=True)
    probabilities = matrix.astype(np.float64)
    check_probabilities(probabilities)
    return Targets.from_probabilities(names, probabilities)


def as_probabilities(targets: Targets) -> Targets:
    """Return probabilities; a matrix of 0 and 1 are some if each row has one 1."""
    if not targets.multilabel:
        return targets
    check_probabilities(targets.values)
    return Targets.from_probabilities(targets.classes, targets.values)


def check_probabilities(probabilities: NDArray[Any]) -> None:
    """Raise ValueError unless the rows, (n_documents, n_classes), are probabilities."""
    sums = probabilities.sum(axis=1)
    is_negative = (probabilities < 0).any(axis=1)
    adds_up = np.abs(sums - 1.0) <= _PROBABILITY_ROUNDING  # False for NaN
    is_wrong = is_negative | ~adds_up
    if is_wrong.any():
        first = int(np.flatnonzero(is_wrong)[0])
        raise ValueError(
            "Expected probabilities in rows that add up to 1, or a matrix of 0 and 1 for several "
            f"labels: row {first} has a sum of {sums[first]:.4g}."
        )


def targets_of_batch(
    y: Any, classes: ArrayLike | None, earlier: NDArray[Any] | None, multilabel: bool = False
) -> Targets:
    """Return the targets of one batch among all classes.

    `classes` were passed to `partial_fit`, which needs them in the first call, where `earlier` is
    None; later, `earlier` has the classes of the batches before, which had several labels if
    `multilabel`. Columns of a data frame are matched by name.
    """
    is_table = not isinstance(y, Targets) and has_columns(y)
    named = _named_classes(classes, earlier)
    # 1) the batch alone
    if is_table:
        targets = targets_of_columns(y, named)
        if earlier is not None and not multilabel and targets.multilabel:  # of 0 and 1 by chance
            targets = as_probabilities(targets)
    elif named is None:
        raise ValueError(
            "The first call to partial_fit needs all labels that occur in any batch: pass them "
            "as classes=[...]."
        )
    else:
        targets = y if isinstance(y, Targets) else targets_of_labels(y)
    every_class = targets.classes if named is None else named
    # 2) several labels, in the order of `classes`, else of the first batch's columns
    if targets.multilabel:
        every_class = every_class if earlier is None else earlier
        order = _positions(every_class, targets.classes)
        return Targets(every_class, targets.values[:, order], multilabel=True)
    # 3) one label or probabilities, among all classes in ascending order
    ascending = np.unique(every_class)
    if is_table and not hasattr(y, "columns") and not np.array_equal(every_class, ascending):
        raise ValueError(
            "Columns without names are those of classes in ascending order, got "
            f"{every_class.tolist()}: pass a data frame, whose columns are matched by name."
        )
    check_two_classes(ascending, np.ones(len(ascending)))
    _positions(targets.classes, ascending)
    return targets.recoded(ascending)


def _named_classes(classes: Any, earlier: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the classes of a call, by default those of earlier ones, which they must equal."""
    if classes is None:
        return earlier
    named = np.asarray(sorted(classes) if isinstance(classes, set | frozenset) else classes)
    if earlier is not None and set(named.tolist()) != set(earlier.tolist()):
        raise ValueError(
            f"Expected the classes of the first call, {earlier.tolist()}, got {named.tolist()}."
        )
    return named


def _positions(labels: NDArray[Any], classes: Any) -> Numbers:
    """Return the position of each label among the classes, all of which must be there."""
    positions = encode_labels(labels, classes)
    unknown = labels[positions < 0]
    if len(unknown):
        raise ValueError(
            f"y has labels that are not among the classes {np.asarray(classes).tolist()}: "
            f"{unknown.tolist()}."
        )
    return positions


def encode_labels(labels: Any, classes: Any) -> Numbers:
    """Return the position of each label (n_labels,) among the classes, -1 for unknown labels."""
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([position.get(label, -1) for label in np.asarray(labels).tolist()], np.intp)


def check_two_classes(classes: NDArray[Any], class_sizes: Array) -> None:
    """Raise ValueError unless at least two classes (n_classes,) have positive weight."""
    present = classes[class_sizes > 0].tolist()
    if len(present) < 2:
        raise ValueError(
            "The number of classes of positive weight has to be greater than one; got "
            f"{len(present)} class: {present}."
        )


def checked_documents(X: Any, y: ArrayLike) -> tuple[sparse.csr_array, Targets]:
    """Return documents as :func:`checked_counts` does, and the targets of their labels."""
    counts = checked_counts(X)
    targets = targets_of_labels(y)
    check_consistent_length(counts, targets.values)
    return counts, targets


def checked_counts(X: Any) -> sparse.csr_array:
    """Return a non-negative matrix as a canonical CSR array without stored zeros."""
    X = check_array(X, accept_sparse=True, ensure_non_negative=True, input_name="X")
    return sparse.csr_array(as_csr(X)).sorted_indices()
