"""What a report is given: documents, labels and models, checked and brought into one form."""

from __future__ import annotations

import platform
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ..._classifier import ClsAttentionClassifier
from ...comparison import default_models
from ...comparison._measurement import measure, probabilities
from ...comparison._texts import code_test_labels
from .._explain import explain
from .gathering import Entrant, take

Codes = NDArray[np.intp]


def check_numbers(**numbers: Any) -> None:
    """Refuse numbers of things to show that are none.

    Parameters
    ----------
    **numbers : int
        The numbers, by the names of their parameters.

    Raises
    ------
    ValueError
        If one is no integer, or negative.
    """
    for name, number in numbers.items():
        whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not whole or number < 0:
            raise ValueError(f"{name} must be an integer of 0 or more, got {number!r}")


def as_array(values: Any) -> NDArray[Any]:
    """Return a sequence as an array of one dimension that keeps the types in it.

    Parameters
    ----------
    values : sequence of length n
        Labels or texts.

    Returns
    -------
    array : ndarray of shape (n,)
        Numbers as numbers, all else as objects.
    """
    values = list(values)
    array = np.asarray(values) if values else np.empty(0)
    if array.ndim == 1 and array.dtype.kind in "biuf":
        return array
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def checked_documents(
    estimator: Any, documents: Any, labels: ArrayLike | None, which: str
) -> tuple[Any, NDArray[Any]]:
    """Return documents and their labels, or say what is wrong with them.

    Parameters
    ----------
    estimator : estimator
        What takes the documents.
    documents : sequence or matrix of length n_documents
        The documents.
    labels : array-like of shape (n_documents,)
        Their classes.
    which : str
        What errors call them, such as "test".

    Returns
    -------
    documents : sequence or matrix
        A list of what had no length.
    labels : ndarray of shape (n_documents,)
        The labels.

    Raises
    ------
    TypeError, ValueError, NotFittedError
        As explaining the first of them does, and if labels differ in number.
    """
    if not hasattr(documents, "shape") and not hasattr(documents, "__len__"):
        documents = list(documents)
    if isinstance(documents, str | bytes):
        raise ValueError(f"expected a sequence of {which} documents, got one text")
    n_documents = documents.shape[0] if hasattr(documents, "shape") else len(documents)
    array = np.asarray(labels)
    if array.shape != (n_documents,):
        raise ValueError(
            f"expected one label for each of {n_documents:,} {which} documents, got labels of "
            f"shape {array.shape}"
        )
    if not n_documents:
        raise ValueError(f"there are no {which} documents")
    # Whatever cannot be explained is refused before anything is measured.
    explain(estimator, take(documents, [0]), removal=False, places=False)
    return documents, array


def columns_of(given: Any) -> sp.csr_array:
    """Return what a classifier is given as CSR, every entry stored once; `given` is unchanged.

    Parameters
    ----------
    given : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens)
        The output of the last step before the classifier.

    Returns
    -------
    X : csr_array of shape (n_documents, n_tokens)
        The same numbers, without stored zeros.
    """
    X = sp.csr_array(given, copy=True) if sp.issparse(given) else sp.csr_array(np.asarray(given))
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def training_codes(labels: NDArray[Any], classes: NDArray[Any]) -> Codes:
    """Return the training labels' places among the classes.

    Parameters
    ----------
    labels : ndarray of shape (n_train,)
        The labels.
    classes : ndarray of shape (n_classes,)
        The classes of the model.

    Returns
    -------
    codes : ndarray of shape (n_train,)
        The places.

    Raises
    ------
    ValueError
        If the model was fitted on other classes.
    """
    found, known = set(labels.tolist()), set(classes.tolist())
    if found != known:
        strange = sorted(map(repr, found ^ known))[:5]
        raise ValueError(
            "X_train and y_train must be what the estimator was fitted on, with the same "
            f"classes; only one of both has {', '.join(strange)}"
        )
    return code_test_labels(labels, classes)[0]


def fitted_beside(
    X: sp.csr_array, y: Codes, X_test: sp.csr_array, y_test: Codes
) -> tuple[list[Entrant], list[str]]:
    """Fit on a model's own columns what is to stand beside it.

    This is a logistic regression, one on TF-IDF if the columns are counts, and a majority vote.

    Parameters
    ----------
    X, X_test : csr_array of shape (n_train, n_tokens) and (n_test, n_tokens)
        The columns of the training and test documents.
    y, y_test : ndarray of shape (n_train,) and (n_test,)
        The classes; of the test documents -1 for those that training has not.

    Returns
    -------
    entrants : list of Entrant
        What these models say of the test documents.
    notes : list of str
        Which did not converge.
    """
    _, counts, tfidf, *_, floor = default_models()
    if np.array_equal(X.data, np.round(X.data)):
        models = [counts, tfidf, floor]
    else:
        models = [replace(counts, name="LogisticRegression, same columns"), floor]
    entrants, notes = [], []
    for model in models:
        result, fitted, unconverged = measure(
            *(model, X, y, X_test, y_test), tune=False, random_state=0, step=lambda _: None
        )
        proba = probabilities(fitted, X_test)
        seconds = result.fit_seconds, result.predict_seconds
        entrants.append(Entrant(model.name, model.kind, proba, *seconds))
        if unconverged:
            notes.append(f"{model.name} did not converge {unconverged}.")
    return entrants, notes


def with_coded_weights(
    classifier: ClsAttentionClassifier, labels: ArrayLike
) -> ClsAttentionClassifier:
    """Return a classifier whose class weights are those of the classes' numbers.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        With weights by label, if it has any.
    labels : array-like of shape (n_train,)
        The labels.

    Returns
    -------
    classifier : ClsAttentionClassifier
        The same, or a copy.

    Raises
    ------
    ValueError
        If a weight is that of no class.
    """
    weights = classifier.class_weight
    if not isinstance(weights, dict):
        return classifier
    classes = np.unique(np.asarray(labels)).tolist()
    strange = [label for label in weights if label not in classes]
    if strange:
        raise ValueError(f"class_weight has {strange[0]!r}, which is no class: {classes}")
    coded = {classes.index(label): weight for label, weight in weights.items()}
    return clone(classifier).set_params(class_weight=coded)


def given_baseline(baseline: Any, documents: Any, classes: list[Any]) -> Entrant:
    """Return a fitted model that somebody has given.

    Parameters
    ----------
    baseline : estimator
        The model.
    documents : sequence of length n_test
        The test documents.
    classes : list
        The classes that it should have.

    Returns
    -------
    entrant : Entrant
        What it says of the documents.

    Raises
    ------
    ValueError
        If it has no probabilities, or other classes.
    """
    check_is_fitted(baseline)
    name = type(getattr(baseline, "steps", [(None, baseline)])[-1][1]).__name__
    if not hasattr(baseline, "predict_proba"):
        raise ValueError(f"the baseline must have predict_proba, which {name} has not")
    own = np.asarray(baseline.classes_).tolist()
    if sorted(map(repr, own)) != sorted(map(repr, classes)):
        raise ValueError(f"the baseline must have the classes {classes}, got {own}")
    start = time.perf_counter()
    baseline.predict(documents)
    seconds = time.perf_counter() - start
    proba = probabilities(baseline, documents)[:, [own.index(label) for label in classes]]
    return Entrant(f"{name} (given)", "baseline", proba, None, seconds)


def most_frequent(y: Codes, n_classes: int) -> Entrant:
    """Return a majority vote where training texts are not known: that of the test texts.

    Parameters
    ----------
    y : ndarray of shape (n_test,)
        The true classes, -1 for those that the model has not.
    n_classes : int
        Number of classes.

    Returns
    -------
    entrant : Entrant
        The vote, which is a little better than one by training texts could be.
    """
    sizes = np.bincount(y[y >= 0], minlength=n_classes)
    proba = np.tile(sizes / sizes.sum(), (len(y), 1))
    return Entrant("majority vote of the test texts", "floor", proba, None, None)


def versions() -> str:
    """Return what the report was made with.

    Returns
    -------
    versions : str
        Of Python, this package and those below it.
    """
    named = [f"sklearn-clsattn {__version__}", f"Python {platform.python_version()}"]
    for package in ("scikit-learn", "numpy", "scipy", "torch"):
        try:
            named.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(named)
