"""Checks of the input of estimators, in addition to scikit-learn's."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_X_y,
    column_or_1d,
    validate_data,
)

from ._bags import Bags, is_sparse
from ._matrices import as_csr, canonical
from ._sklearn import _check_estimator_name, _check_sample_weight, _get_feature_names
from ._targets import Targets

_LEAST_ENTRY = 1e-19
_LARGEST_ENTRY = 1e19  # all positive integers are smaller
_LEAST_TOTAL = 1e-100
_LARGEST_TOTAL = 1e100
_PROBABILITY_ROUNDING = 1e-3  # of sums of probabilities


def validated(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
    classes: ArrayLike | None = None,
) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
    """Validate the input of an estimator; return documents as CSR, labels and weights.

    The result has no negative entries and no explicit zeros. Without `y`, as for prediction, there
    are no labels. `classes` name the columns of probabilities. With `reset`, the estimator stores
    the number and names of the tokens; otherwise they must match.
    """
    check_any_documents(X)
    if not isinstance(y, str):
        check_not_swapped(X, y)
    check_not_texts(X, estimator)
    if isinstance(y, str) and y == "no_validation":
        X = _by_scikit_learn(estimator, X, y, reset)
        check_non_negative(X, estimator)
        return as_csr(X), np.empty(0), np.empty(0)
    if isinstance(y, Targets):  # which another part of this package has made
        X = _by_scikit_learn(estimator, X, "no_validation", reset)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return as_csr(X), y.values, weights
    # 1) what y has: probabilities, several labels or one
    has_columns = has_several_labels(y) and getattr(estimator, "_accepts_columns", False)
    are_probabilities = has_columns and has_probabilities(y, classes)
    if are_probabilities:
        check_probabilities(y, classes)
    elif has_columns:
        check_multilabel(estimator, y)
    elif classes is not None:
        raise ValueError(
            "classes are for y with a column of probabilities for each class; with one label "
            "per document, leave classes out."
        )
    else:
        y = plain_labels(y)
    # 2) scikit-learn's checks, and ours of what passes them
    X, y = _by_scikit_learn(estimator, X, y, reset, multi_output=has_columns)
    check_non_negative(X, estimator)
    check_not_documents(np.asarray(y))
    if not are_probabilities:
        check_classification_targets(y)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return as_csr(X), np.asarray(y), weights


def _by_scikit_learn(
    estimator: Any, X: Any, y: Any, reset: bool, *, multi_output: bool = False
) -> Any:
    """Return the result of `validate_data`; of bags, both matrices are checked."""
    options = {"accept_sparse": "csr", "accept_large_sparse": True}
    label_options: dict[str, Any] = {}
    if multi_output:
        label_options["multi_output"] = True
        y = label_array(y)
    if not isinstance(X, Bags):
        return validate_data(estimator, X, y, reset=reset, **options, **label_options)
    # The number of columns is that of the right matrix, the number of documents of the left one.
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    check_array(X.right, ensure_min_samples=0, **options)
    if isinstance(y, str) and y == "no_validation":
        check_array(X.left, **options)
        return X
    _, y = check_X_y(X.left, y, **options, **label_options)
    return X, y


def checked_part(
    X: Any, y: Any, sample_weight: Any, name: str, classes: ArrayLike | None = None
) -> tuple[Any, Targets, NDArray[np.float64], list[str] | None]:
    """Return documents, perhaps none, as canonical CSR, with targets, weights and token names.

    They are part of a larger set, so one class or weights of 0 are allowed. `classes` name the
    columns of probabilities; without, several columns are several labels.
    """
    # 1) documents
    check_not_texts(X, name)
    names = _get_feature_names(X)
    options = {"ensure_min_samples": 0, "estimator": name, "input_name": "X"}
    X = check_array(X, accept_sparse="csr", accept_large_sparse=True, **options)
    check_non_negative(X, name)
    # 2) targets
    targets, weights = _checked_targets(X, y, sample_weight, classes)
    token_names = None if names is None else names.tolist()
    return canonical(as_csr(X)), targets, weights, token_names


def _checked_targets(
    X: Any, y: Any, sample_weight: Any, classes: ArrayLike | None
) -> tuple[Targets, NDArray[np.float64]]:
    """Return targets and document weights, (n_documents,), of documents of a larger set."""
    if classes is None and not has_several_labels(y):
        y, weights = checked_labels(X, y, sample_weight)
        return Targets.from_labels(y), weights
    if classes is not None:
        check_probabilities(y, classes)
    elif has_probabilities(y):
        raise ValueError(
            "y has a probability for each class: pass the names of these, in the order of the "
            "columns, as classes=[...], because some of the documents alone may have 0 and 1 only."
        )
    else:
        check_multilabel(None, y)
    labels = label_array(y)
    check_consistent_length(X, labels)
    weights = np.ones(0)  # scikit-learn refuses to check those of no documents
    if len(labels):
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return encode_targets(y, labels, classes), weights


def checked_labels(X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return labels, one per document of X, and document weights, both (n_documents,)."""
    y = column_or_1d(plain_labels(y), warn=True)
    check_consistent_length(X, y)
    if not len(y):
        return y, np.ones(0)
    # Each label three times: scikit-learn warns if there are many labels for few documents.
    different = np.array(list(dict.fromkeys(y.tolist())), y.dtype)
    check_classification_targets(np.repeat(different, 3))
    return y, _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def check_non_negative(X: Any, estimator: BaseEstimator | str) -> None:
    """Raise ValueError for negative values in X (n_documents, n_tokens)."""
    if isinstance(X, Bags):
        values = np.append(X.left.data.min(initial=0), X.right.data.min(initial=0))
    else:
        values = X.data if sparse.issparse(X) else X
    if values.size and (minimum := values.min()) < 0:
        raise ValueError(
            f"Negative values in data passed to {_check_estimator_name(estimator)}: expected "
            f"non-negative token counts, got a minimum of {minimum:.6g}. Use counts or TF-IDF. "
            "HashingVectorizer needs alternate_sign=False and norm=None, and MinMaxScaler needs "
            "clip=True; replace StandardScaler by MaxAbsScaler; drop TruncatedSVD, PCA, embeddings."
        )


def check_not_texts(X: Any, estimator: BaseEstimator | str) -> None:
    """Raise a ValueError that suggests a vectorizer if X contains texts instead of counts."""
    if is_sparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUS"):
        return
    # 1) the first entry of the first row, of however many dimensions
    first = X
    with suppress(TypeError, ValueError, IndexError, KeyError):  # scikit-learn says what is wrong
        while not isinstance(first, str):
            first = first.iloc[0] if hasattr(first, "iloc") else first[0]
    # 2) whether it is a text: strings of numbers are left to scikit-learn
    with suppress(TypeError, ValueError):
        float(first)
        return
    if isinstance(first, str):
        raise ValueError(
            f"X contains texts, such as {first[:40]!r}: expected token counts. Add a vectorizer, "
            f"as in make_pipeline(CountVectorizer(), {_check_estimator_name(estimator)}()), or use "
            "sklearn_clsattn.TextClassifier()."
        )


def check_any_documents(X: Any) -> None:
    """Raise ValueError for documents without rows."""
    n_rows = None
    if getattr(X, "shape", None):
        n_rows = X.shape[0]
    elif isinstance(X, list):
        n_rows = len(X)
    if n_rows == 0:
        raise ValueError("X has no documents (0 samples): expected at least one row.")


def check_not_swapped(X: Any, y: Any) -> None:
    """Raise ValueError if labels are passed as documents, and documents as labels."""
    labels = _plain_list(X)
    if y is None or not labels or isinstance(y, str):
        return
    if sparse.issparse(y) or getattr(y, "ndim", 1) == 2:
        # A matrix of counts as y, and as X words that come again and again.
        are_words = all(isinstance(one, str) and " " not in one.strip() for one in labels)
        is_swapped = y.shape[1] > 1 and are_words and len(set(labels)) <= len(labels) / 2
        what = f"a matrix of shape {y.shape}"
    else:
        # Texts as y, and as X labels.
        texts = _plain_list(y)
        is_swapped = texts is not None and _are_texts(texts) and _are_labels(labels, texts)
        what = f"texts, such as {texts[0]!r:.40}" if texts else ""
    if is_swapped:
        raise ValueError(
            f"X and y seem to be swapped: y is {what}, and X has labels, such as "
            f"{labels[0]!r:.40}. Pass the documents first, then their labels."
        )


def check_not_documents(y: NDArray[Any]) -> None:
    """Raise ValueError if labels (n_documents,) are texts: of many words, and nearly all differ."""
    items = y.tolist() if y.ndim == 1 and y.dtype.kind in "OU" else []
    if len(items) < 10 or not all(isinstance(one, str) for one in items):
        return
    n_long = sum(one.strip().count(" ") > 1 for one in items)
    n_different = len(set(items))
    if min(n_long, n_different) > len(items) / 2:
        raise ValueError(
            f"y has {n_different:,} different texts for {len(items):,} documents, such as "
            f"{items[0]!r:.40}: expected labels of a few classes. Are X and y swapped?"
        )


def _plain_list(values: Any) -> list[Any] | None:
    """Return the items of a list, array or column, None for anything else."""
    if isinstance(values, list | tuple):
        return list(values)
    has_items = hasattr(values, "tolist") and getattr(values, "ndim", 1) == 1
    return list(values.tolist()) if has_items and not sparse.issparse(values) else None


def _are_texts(items: list[Any]) -> bool:
    """Return whether items are strings, most of them of several words."""
    if not items or not all(isinstance(one, str) for one in items):
        return False
    n_of_several_words = sum(" " in one.strip() for one in items)
    return n_of_several_words > len(items) / 2


def _are_labels(items: list[Any], texts: list[str]) -> bool:
    """Return whether items are numbers, or strings that are shorter and more alike than texts."""
    if not all(isinstance(one, str) for one in items):
        return all(isinstance(one, int | float) and not is_missing(one) for one in items)
    is_shorter = sum(map(len, items)) < sum(map(len, texts))
    return is_shorter and len(set(items)) < len(set(texts))


def has_several_labels(y: Any) -> bool:
    """Return whether there are several columns of labels, or several labels in a row."""
    if isinstance(y, list | tuple) and len(y):
        kinds = list | tuple | set | np.ndarray
        if not isinstance(y[0], kinds):
            return False
        return any(isinstance(row, kinds) and len(row) != 1 for row in y)
    shape = getattr(y, "shape", None)
    return shape is not None and len(shape) == 2 and shape[1] > 1


def label_array(y: Any) -> NDArray[Any]:
    """Return labels as an array (n_documents,) or (n_documents, n_labels).

    They may be a sparse matrix, a data frame or a column of one, also with pandas' nullable types.
    """
    array = np.asarray(y.toarray() if sparse.issparse(y) else y)
    if array.ndim == 2 and array.dtype == object:  # a data frame of nullable numbers
        return np.array(array.tolist())
    return array


def check_multilabel(estimator: Any, y: Any) -> None:
    """Raise ValueError unless y is a matrix of 0 and 1 with a column for each label."""
    import pandas as pd  # takes as long as the rest of the package

    # 1) the kind of y, and no missing values
    kind = ""
    with suppress(ValueError, TypeError):  # lists of different lengths raise
        kind = type_of_target(label_array(y))
    if not sparse.issparse(y) and len(getattr(y, "shape", ())) == 2:
        check_none_missing(np.asarray(pd.DataFrame(y).isna().to_numpy().any(axis=1)), "y")
    # 2) 0 and 1
    if kind != "multilabel-indicator" or not np.isin(label_array(y), (0, 1)).all():
        raise ValueError(
            "y has several labels per document: expected a matrix of 0 and 1 with a column for "
            "each label, such as MultiLabelBinarizer().fit_transform(y), or of probabilities that "
            "add up to 1."
        )
    if getattr(estimator, "class_weight", None) is not None:
        raise ValueError(
            "class_weight supports only one label per document: with several, use sample_weight "
            "instead."
        )


def encode_targets(y: Any, labels: NDArray[Any], classes: ArrayLike | None = None) -> Targets:
    """Return the targets of `labels`, which are `y` as :func:`validated` returned it.

    `classes`, or a data frame's columns, name several labels, or classes with probabilities, which
    are then sorted.
    """
    if isinstance(y, Targets):
        return y
    if labels.ndim == 1:
        return Targets.from_labels(labels)
    names = np.asarray(column_names(y) if classes is None else list(np.asarray(classes)))
    if not has_probabilities(labels, classes):
        return Targets.from_several_labels(names, labels)
    # Rows that were checked up to rounding add up exactly, and columns are in sorted order.
    probabilities = labels / labels.sum(axis=1, keepdims=True)
    order = np.argsort(names, kind="stable")
    return Targets(names[order], np.ascontiguousarray(probabilities[:, order]))


def has_probabilities(y: Any, classes: ArrayLike | None = None) -> bool:
    """Return whether y of several columns has probabilities instead of several labels.

    It has if `classes` name its columns, or if it has numbers other than 0 and 1 in floating point.
    """
    if classes is not None:
        return True
    try:
        values = label_array(y)
    except (TypeError, ValueError):  # lists of different lengths
        return False
    return values.ndim == 2 and values.dtype.kind == "f" and not np.isin(values, (0, 1)).all()


def check_probabilities(y: Any, classes: ArrayLike | None) -> None:
    """Raise ValueError unless the rows of y are probabilities of at least two different classes."""
    # 1) numbers in columns
    expected = "y has a probability for each class: expected rows that add up to 1"
    values = label_array(y)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise ValueError(
            f"{expected}, one column for each of the classes, got an array of shape "
            f"{values.shape} of type {values.dtype}."
        )
    values = values.astype(np.float64)
    check_none_missing(np.isnan(values).any(axis=1), "y")
    # 2) rows that add up to 1
    sums = values.sum(axis=1)
    wrong = (values < 0).any(axis=1) | ~(np.abs(sums - 1.0) <= _PROBABILITY_ROUNDING)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        row = ", ".join(f"{value:.4g}" for value in values[first, :5].tolist())
        row += ", ..." if values.shape[1] > 5 else ""
        raise ValueError(
            f"{expected}, but {np.count_nonzero(wrong)} of {len(values)} do not, the first at "
            f"position {first}: [{row}], with a sum of {sums[first]:.4g}. Divide rows by their "
            "sums; for several labels per document, pass a matrix of 0 and 1."
        )
    # 3) names of the columns
    names = column_names(y) if classes is None else list(np.asarray(classes).tolist())
    if len(names) != values.shape[1] or len(set(names)) < len(names):
        raise ValueError(
            f"y has {values.shape[1]} columns of probabilities: expected as many different names "
            f"of classes, got {names}."
        )


def column_names(y: Any) -> list[Any]:
    """Return the names of the columns of y, which are 0, 1, 2, ... without any."""
    names = getattr(y, "columns", None)
    if names is None:
        return list(range(label_array(y).shape[1]))
    return list(names)


def plain_labels(y: Any, name: str = "y") -> Any:
    """Return labels, one per document, as an array or list that scikit-learn keeps as they are.

    Columns of pandas, polars and pyarrow become arrays of numbers, booleans or objects. Missing
    labels, or several labels per document, raise ValueError.
    """
    import pandas as pd  # takes as long as the rest of the package

    # 1) one label per document
    is_column = getattr(y, "ndim", 1) == 1 or getattr(y, "shape", (0,))[-1] == 1
    values = _column_values(y) if is_column else y
    has_collections = False
    if is_column:
        one_of_each_type = {type(value): value for value in values}
        has_collections = any(map(_is_collection, one_of_each_type.values()))
    if has_collections or has_several_labels(y):
        raise ValueError(
            f"{name} has several labels per document, expected one. For several classes at once, "
            "apply MultiLabelBinarizer to it and wrap the classifier in OneVsRestClassifier; for "
            "several targets, wrap it in MultiOutputClassifier."
        )
    if not is_column:
        return y
    # 2) none missing
    check_none_missing(np.asarray(pd.isna(values), dtype=bool), name)
    # 3) types of NumPy: what scikit-learn keeps as it is, else numbers, booleans or objects
    is_numpy = isinstance(y, list | tuple | np.ndarray) or not hasattr(y, "dtype")
    if is_numpy and not hasattr(y, "to_pylist"):  # which a column of pyarrow has
        return y
    if isinstance(getattr(y, "dtype", None), np.dtype):  # such as a Series of NumPy's types
        return y
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind in ("integer", "boolean", "floating"):
        return np.array(values.tolist())
    return values


def check_none_missing(missing: NDArray[np.bool_], name: str) -> None:
    """Raise ValueError with the first position of missing labels (n_documents,), if there are."""
    positions = np.flatnonzero(missing)
    if len(positions):
        raise ValueError(
            f"{name} has {len(positions)} missing labels (None, NaN, NaT or NA), the first at "
            f"position {positions[0]}: remove these documents, or give them a class of their own, "
            "such as 'none'."
        )


def _column_values(y: Any) -> NDArray[np.object_]:
    """Return the labels of any column as Python objects (n_documents,)."""
    import pandas as pd  # takes as long as the rest of the package

    # 1) a list of labels
    if hasattr(y, "to_pylist"):  # of pyarrow
        y = y.to_pylist()
    elif not isinstance(y, list | tuple):
        array = np.asarray(y)
        if array.dtype.kind in "Mm":  # whose objects would be integers
            return pd.Series(array.reshape(-1)).astype(object).to_numpy()
        y = array.reshape(-1).tolist() if array.ndim else []
    # 2) an array of them; a column may be a list of lists of one label
    values = np.empty(len(y), dtype=object)
    for position, label in enumerate(y):
        is_nested = isinstance(label, list | tuple | np.ndarray) and len(label) == 1
        values[position] = label[0] if is_nested and isinstance(y, list | tuple) else label
    return values


def _is_collection(label: Any) -> bool:
    return isinstance(label, Collection) and not isinstance(label, str | bytes)


def is_missing(value: Any) -> bool:
    """Return whether a label or text is None, NaN or pandas' NA."""
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
    )


def encode_labels(labels: Any, classes: Any) -> NDArray[np.intp]:
    """Return the position of each label (n_labels,) among the classes, -1 for unknown labels."""
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([position.get(label, -1) for label in np.asarray(labels).tolist()], np.intp)


def check_first_classes(classes: ArrayLike | None) -> None:
    """Raise ValueError if the first call to `partial_fit` does not name the classes."""
    if classes is None:
        raise ValueError(
            "The first call to partial_fit needs all labels that occur in any batch: pass them as "
            "classes=[...]."
        )


def encode_batch(
    y: NDArray[Any], classes: ArrayLike | None, earlier_classes: NDArray[Any] | None
) -> Targets:
    """Return the targets of the labels of one batch, (n_documents,), among all classes.

    `classes` were passed to `partial_fit`; in the first call, `earlier_classes` are None.
    """
    # 1) the classes of this call, in the first call those of all batches
    targets = Targets.from_labels(y)
    passed = targets.classes
    if classes is not None:
        named = list(classes) if isinstance(classes, set | frozenset) else classes
        passed = np.unique(np.asarray(plain_labels(named, "classes")))
    all_classes = passed if earlier_classes is None else earlier_classes
    names = all_classes.tolist()
    # 2) what does not fit
    if len(names) < 2:
        raise ValueError(
            f"Expected at least 2 classes; got {len(names)} class: {names}. Pass all labels that "
            "occur in any batch to partial_fit as classes=[...]."
        )
    if classes is not None and not np.array_equal(passed, all_classes):
        raise ValueError(f"Expected the classes of the first call, {names}, got {passed.tolist()}.")
    unknown = targets.classes[encode_labels(targets.classes, all_classes) < 0]
    if len(unknown):
        raise ValueError(
            f"y has labels that are not among the classes {names}: {unknown.tolist()}. "
            "Pass all labels to the first call to partial_fit as classes=[...]."
        )
    return targets.among(all_classes)


def encode_columns(
    y: Any,
    labels: NDArray[Any],
    classes: ArrayLike | None,
    earlier_classes: NDArray[Any] | None,
) -> Targets:
    """Return the targets of one batch of several labels, or of probabilities if it has `classes`.

    `labels` are `y` as :func:`validated` returned it; in the first call, `earlier_classes` are
    None.
    """
    targets = encode_targets(y, labels, classes)
    if earlier_classes is not None and not np.array_equal(targets.classes, earlier_classes):
        raise ValueError(
            "Expected columns of y for the classes of the first call, "
            f"{earlier_classes.tolist()}, got {targets.classes.tolist()}."
        )
    return targets


def check_entries(least: float, largest: float) -> None:
    """Raise ValueError if positive entries of X are too small or too large for training."""
    if largest > _LARGEST_ENTRY or least < _LEAST_ENTRY:
        raise ValueError(
            f"Training leaves the range of floating-point numbers: expected positive entries of X "
            f"from {_LEAST_ENTRY:.0e} to {_LARGEST_ENTRY:.0e}, got {least:.2g} to {largest:.2g}. "
            "Multiply X or its columns by constants, and set negligible entries to 0."
        )


def check_total_weight(class_weights: NDArray[np.float64]) -> None:
    """Raise ValueError if the sum of class weights (n_classes,) is too extreme for training."""
    with np.errstate(over="ignore"):
        total = float(class_weights.sum())
    if not _LEAST_TOTAL <= total <= _LARGEST_TOTAL:
        raise ValueError(
            f"Document weights add up to {total:.2g}, expected {_LEAST_TOTAL:.0e} to "
            f"{_LARGEST_TOTAL:.0e}: divide sample_weight (or class_weight) by a constant, or make "
            "some weights positive."
        )


def check_two_classes(
    classes: NDArray[Any],
    class_weights: NDArray[np.float64],
    earlier_class_weights: NDArray[np.float64] | None = None,
) -> None:
    """Raise ValueError unless at least two classes (n_classes,) have positive weight.

    For a batch after others, whose classes had the `earlier_class_weights`, one class is enough.
    """
    # 1) the classes of these documents
    present = classes[class_weights > 0].tolist()
    if earlier_class_weights is not None and not present:
        raise ValueError(
            "The batch has no document of positive weight: check sample_weight and class_weight, "
            "or skip this batch."
        )
    if earlier_class_weights is None and len(present) < 2:
        if present:
            qualification = " of positive weight" if len(classes) > 1 else ""
            content = f"one class{qualification} ({present[0]!r})"
        else:
            content = "no class of positive weight"
        raise ValueError(
            f"y has {content}; at least two are needed. Add documents of another class, or check "
            "sample_weight and class_weight."
        )
    # 2) the weight of all documents
    if earlier_class_weights is not None:
        class_weights = earlier_class_weights + class_weights
    check_total_weight(class_weights)
