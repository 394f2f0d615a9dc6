"""Checks of input that several estimators and functions need, beyond scikit-learn's."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _get_feature_names,
    check_array,
    column_or_1d,
    validate_data,
)

from ._documents import as_csr, canonical


def validated(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    sample_weight: ArrayLike | None = None,
    *,
    reset: bool = True,
) -> tuple[Any, NDArray[Any], NDArray[np.float64]]:
    """Return documents as CSR, labels and weights: the door for what estimators are given.

    X is not negative and has no zeros among its entries. Where `y` is not given, as for a
    prediction, there are no labels. `reset` says whether the estimator learns number and names of
    the tokens or has to know them.
    """
    check_not_texts(X, estimator)
    options = {"accept_sparse": "csr", "accept_large_sparse": True, "reset": reset}
    if isinstance(y, str) and y == "no_validation":
        X = validate_data(estimator, X, **options)
        check_non_negative(X, estimator)
        return as_csr(X), np.empty(0), np.empty(0)
    check_labels(y)
    X, labels = validate_data(estimator, X, y, **options)
    check_non_negative(X, estimator)
    check_classification_targets(labels)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return as_csr(X), np.asarray(labels), weights


def checked_part(
    X: Any, y: Any, sample_weight: Any, name: str
) -> tuple[Any, NDArray[Any], NDArray[np.float64], list[str] | None]:
    """Return documents, perhaps none, as canonical CSR, with labels, weights and tokens' names.

    They are a part of more documents: of one class, or with weights of 0, they may be as well.
    """
    check_not_texts(X, name)
    check_labels(y)
    names = _get_feature_names(X)
    options = {"ensure_min_samples": 0, "estimator": name}
    X = check_array(X, accept_sparse="csr", accept_large_sparse=True, input_name="X", **options)
    check_non_negative(X, name)
    y = column_or_1d(y, warn=True)
    if y.shape != (X.shape[0],):
        raise ValueError(f"X has {X.shape[0]} documents, but y is of shape {y.shape}.")
    if len(y):  # each label thrice: scikit-learn warns of few documents for the labels
        check_classification_targets(np.repeat(np.unique(y), 3))
    weights = np.ones(len(y))
    if sample_weight is not None:
        if isinstance(sample_weight, Real):
            sample_weight = np.full(len(y), sample_weight)
        weights = check_array(
            sample_weight, dtype=np.float64, ensure_2d=False, input_name="sample_weight", **options
        )
        if weights.shape != y.shape:
            raise ValueError(f"sample_weight is of shape {weights.shape}, and y of {y.shape}.")
        if weights.min(initial=0.0) < 0:
            raise ValueError(f"sample_weight must not be negative, got {weights.min():.6g}.")
    return canonical(as_csr(X)), y, weights, None if names is None else names.tolist()


def check_non_negative(X: Any, estimator: BaseEstimator | str) -> None:
    """Raise ValueError for negative values in X (n_documents, n_tokens), dense or sparse."""
    values = X.data if sparse.issparse(X) else X
    if values.size and (minimum := values.min()) < 0:
        raise ValueError(
            f"Negative values in data passed to {_name(estimator)}: expected "
            f"non-negative token counts, got a minimum of {minimum:.6g}. {_cause(X)}"
        )


def _name(estimator: BaseEstimator | str) -> str:
    return estimator if isinstance(estimator, str) else type(estimator).__name__


def _cause(X: Any) -> str:
    """Return what probably made values of X (n_documents, n_tokens) negative, and the cure."""
    rows = sparse.csr_array(X[:1000].astype(np.float64))
    filled = rows.data[rows.data != 0]
    negative, is_dense = np.mean(filled < 0), len(filled) > 0.9 * np.prod(rows.shape)
    if is_dense and rows.shape[0] > 2:
        sample = rows.toarray()
        deviations = sample.std(axis=0)
        varying = deviations > 1e-9 * np.abs(sample).max()
        if max(*np.abs(deviations[varying] - 1), *np.abs(sample.mean(axis=0)), 0, 0) < 1e-2:
            return (
                "Its columns have mean 0 and variance 1, as StandardScaler makes them: leave the "
                "scaler out, or use MaxAbsScaler."
            )
    if is_dense and negative > 0.1:
        return (
            "Almost no value is 0, as in what TruncatedSVD, PCA, an embedding of texts or "
            "StandardScaler returns: pass the token counts that went into it."
        )
    lengths = np.sqrt(np.asarray((rows * rows).sum(axis=1)))
    is_hashed = np.isin(np.round(lengths, 6), [0, 1]).all() or (filled == np.round(filled)).all()
    if 0.2 < negative < 0.8 and is_hashed:
        return (
            "It looks like what HashingVectorizer returns: pass alternate_sign=False and norm=None "
            "to it."
        )
    if negative < 0.2 and filled.max() < 10:
        return (
            "Few values are, as where MinMaxScaler meets values below those it was fitted on: "
            "pass clip=True to it, or use MaxAbsScaler."
        )
    return "Use counts or TF-IDF."


def check_not_texts(X: Any, estimator: BaseEstimator | str) -> None:
    """Raise ValueError for texts in place of counts, with what to put before."""
    if sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind not in "OUS"):
        return
    if isinstance(X, str):
        first: Any = X
    else:
        try:
            rows = X.iloc[:1].to_numpy() if hasattr(X, "iloc") else X[:1]
            entries = [row if isinstance(row, str) else np.ravel(row)[:1] for row in rows]
            first = next((one if isinstance(one, str) else one[0] for one in entries), None)
        except (TypeError, ValueError, IndexError, KeyError):
            return  # scikit-learn says what is wrong
    if not isinstance(first, str):
        return
    try:
        float(first)
    except ValueError:
        name = _name(estimator)
        raise ValueError(
            f"X holds texts, such as {first[:40]!r}: expected token counts. Put a vectorizer "
            f"before, such as make_pipeline(CountVectorizer(), {name}()), or take "
            "sklearn_clsattn.text.make_text_classifier()."
        ) from None


def check_labels(y: Any) -> None:
    """Raise ValueError for labels that are missing, or for several of them per document."""
    shape = getattr(y, "shape", None)
    several = len(shape) == 2 and shape[1] > 1 if shape is not None else False
    if shape is None and isinstance(y, list | tuple) and y:
        several = isinstance(y[0], list | tuple | set) and len(y[0]) != 1
    if several:
        raise ValueError(
            "y has several labels per document, expected one. For several classes at once "
            "put MultiLabelBinarizer before and wrap the classifier in OneVsRestClassifier; for "
            "several questions wrap it in MultiOutputClassifier."
        )
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    if kind != "O" and not (kind == "f" and np.isnan(y).any()):
        return
    try:
        missing = [at for at, label in enumerate(y) if is_missing(label)]
    except TypeError:
        return
    if missing:
        raise ValueError(
            f"y has {len(missing)} missing labels (None or NaN), the first at position "
            f"{missing[0]}: leave these out, or give the documents without a label a class of "
            "their own, such as 'none'."
        )


def is_missing(value: Any) -> bool:
    """Return whether a label or text is None, NaN or pandas' NA."""
    return (
        value is None
        or type(value).__name__ == "NAType"
        or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
    )


def codes_of(labels: Any, classes: Any) -> NDArray[np.intp]:
    """Return the position of each label (n_labels,) among the classes, -1 where it has none."""
    position = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([position.get(label, -1) for label in np.asarray(labels).tolist()], np.intp)


def code_labels(
    y: NDArray[Any], classes: ArrayLike | None, known: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return all classes (n_classes,) and the codes (n_documents,) of the labels of one batch.

    `classes` are those passed to `partial_fit`, `known` those of earlier batches, if there are any.
    """
    labels, codes = np.unique(y, return_inverse=True)
    named = list(classes) if isinstance(classes, set | frozenset) else classes
    if named is not None and any(map(is_missing, np.asarray(named).tolist())):
        raise ValueError(
            f"classes={named!r} has None or NaN: expected the labels that y may have, which are "
            "numbers or strings."
        )
    given = labels if named is None else np.unique(np.asarray(named))
    if known is None:
        known = given
    if len(known) < 2:
        raise ValueError(
            f"Expected at least 2 classes; got 1 class: {known.tolist()}. Where others come in "
            "later batches, pass all to partial_fit as classes=[...]."
        )
    if classes is not None and not np.array_equal(given, known):
        raise ValueError(f"classes={given.tolist()}, but at first they were {known.tolist()}.")
    positions = codes_of(labels, known)
    if (positions < 0).any():
        unknown = labels[positions < 0].tolist()
        raise ValueError(
            f"y has labels that are not among the classes {known.tolist()}: {unknown}. Pass "
            "all labels to the first call to partial_fit as classes=[...]."
        )
    return known, positions[codes]
