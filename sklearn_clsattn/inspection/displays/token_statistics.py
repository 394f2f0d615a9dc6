"""What documents say of every token, and what a model makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from ...comparison import token_effects
from ...comparison._token_effects import values_by_class
from ...importance import class_totals, posterior_difference
from .drawn_model import names_checked


def labelled_posterior_difference(
    X: Any, y: ArrayLike, classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return what an occurrence of each token says of the class, with classes of equal weight.

    Parameters
    ----------
    X : csr_array of shape (n_documents, n_tokens)
        Token counts or weights.
    y : array-like of shape (n_documents,)
        Class labels, with every class among them.
    classes : ndarray of shape (n_classes,)
        The labels that there are.

    Returns
    -------
    difference : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        P(class | token) less the (mean) probability of the other classes; of two classes one
        row, for the second. A token that says nothing has 0.

    Raises
    ------
    ValueError
        If there is not one label a document, or if labels are unknown or missing.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from sklearn_clsattn.inspection.displays import token_statistics
    >>> X = sp.csr_array([[3, 1], [1, 1], [0, 1]])
    >>> labels, classes = ["a", "a", "b"], np.array(["a", "b"])
    >>> token_statistics.labelled_posterior_difference(X, labels, classes).tolist()
    [-1.0, 0.0]
    """
    labels = column_or_1d(y)
    if len(labels) != X.shape[0]:
        raise ValueError(
            f"X and y must have as many documents, got {X.shape[0]} and {len(labels)}."
        )
    known = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if (codes < 0).any():
        raise ValueError(
            f"y must hold labels of the classes {classes.tolist()}, got "
            f"{labels.tolist()[int(np.argmax(codes < 0))]!r}."
        )
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"y must hold every class, but no document is of {classes[sizes == 0].tolist()}: "
            "posterior probabilities would be 0."
        )
    weights = (len(codes) / (len(classes) * sizes))[codes]
    return posterior_difference(class_totals(X, codes, len(classes), weights))


def named_importance(
    classifier: Any, X: Any, importance: str | None
) -> tuple[str, NDArray[np.float64]]:
    """Return how important each token is for each class, and by which measure.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        A fitted classifier.
    X : csr_array of shape (n_documents, n_tokens) or None
        Documents as the classifier takes them, every entry stored once.
    importance : {"effect", "signed_frequency", "value"} or None
        The measure; None for "effect" where there are documents and decisions are sums over
        tokens, else "signed_frequency".

    Returns
    -------
    name : str
        The measure.
    numbers : ndarray of shape (n_tokens,) or (n_classes, n_tokens)
        The importance; of two classes one row may stand for both, for the second.

    Raises
    ------
    ValueError
        If "effect" is asked for where decisions are no sums over tokens.
    """
    if importance == "value":
        return importance, classifier.token_values_
    if importance == "effect" or (importance is None and X is not None):
        try:
            with names_checked():
                return "effect", token_effects(classifier, X)
        except ValueError:
            # With an MLP there are no contributions. X itself has been checked before.
            if importance is not None:
                raise
    return "signed_frequency", classifier.token_importance_


def classes_spoken_for(classifier: Any) -> NDArray[np.object_] | None:
    """Return the class that each token's value speaks for.

    Parameters
    ----------
    classifier : ClsAttentionClassifier
        A fitted classifier.

    Returns
    -------
    labels : ndarray of shape (n_tokens,) or None
        Class labels, None for a token that speaks for none. None in all where values do not say:
        with an MLP not even their signs do.
    """
    if classifier.mlp:
        return None
    values = values_by_class(classifier.token_values_)
    labels = np.array(classifier.classes_.tolist(), dtype=object)[values.argmax(axis=0)]
    labels[np.ptp(values, axis=0) == 0] = None
    return labels
