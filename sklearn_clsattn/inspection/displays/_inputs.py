"""Input of displays: a fitted model with its documents, or arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..._base import BaseAttentionClassifier
from ..._documents import canonical
from ...comparison._token_effects import values_by_class
from ..trace import split_pipeline, trace

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnModel:
    """A fitted classifier, the names of its columns, and the transformers before it, in order."""

    classifier: BaseAttentionClassifier
    token_names: NDArray[np.object_]
    transformers: list[Any]

    def token_matrix(self, X: Any) -> sp.csr_array:
        """Return documents as the classifier's input, every entry stored once."""
        if not self.transformers and _are_texts(X):
            raise ValueError(
                "Expected a token matrix of shape (n_documents, "
                f"{self.classifier.n_features_in_}), got texts: pass the fitted Pipeline of "
                "vectorizer and classifier, or vectorize them."
            )
        for transformer in self.transformers:
            X = transformer.transform(X)
        _, X = self.classifier._checked(X)
        return sp.csr_array(canonical(X))


def drawn_model(estimator: Any) -> DrawnModel:
    """Return the parts of a fitted classifier, or of a Pipeline or search that ends in one."""
    steps, classifier = split_pipeline(estimator)
    transformers = [step for _, step in steps]
    try:
        names: Any = trace(estimator).columns.names
    except NotFittedError:
        raise
    except ValueError:  # its columns cannot be traced to tokens
        names = _feature_names(transformers)
    if not transformers:
        names = getattr(classifier, "feature_names_in_", None)
    n_tokens = classifier.n_features_in_
    if names is None or len(names) != n_tokens:
        names = None
    return DrawnModel(classifier, names_or_indices(names, n_tokens), transformers)


def places_of(target: Any, classes: NDArray[Any]) -> list[int] | None:
    """Return the positions in `classes` of one label or of a list of them; None for None."""
    if target is None:
        return None
    many = isinstance(target, list | tuple) or getattr(target, "ndim", 0) == 1
    labels = list(target) if many else [target]
    if not labels:
        raise ValueError("target must be a class or a list of classes, got an empty list.")
    known = classes.tolist()
    for label in labels:
        if label not in known:
            raise ValueError(f"target must be one of the classes {known}, got {label!r}.")
    return [known.index(label) for label in labels]


def checked_array(numbers: Any, name: str, shape: tuple[int, ...], *, finite: bool = True) -> Any:
    """Return numbers as an array of `shape`, None for None."""
    if numbers is None:
        return None
    array = np.asarray(numbers, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}.")
    if finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
    return array


def checked_rows(numbers: Any, name: str, n_classes: int, n_tokens: int) -> Any:
    """Return shape (n_classes, n_tokens), also for the single row of two classes."""
    if numbers is None:
        return None
    rows = np.asarray(numbers, dtype=np.float64)
    if n_classes == 2 and rows.shape == (n_tokens,):
        rows = values_by_class(rows)
    if rows.shape != (n_classes, n_tokens):
        expected = (n_tokens,) if n_classes == 2 else (n_classes, n_tokens)
        raise ValueError(
            f"{name} must have shape {expected} for {n_classes} classes and {n_tokens} tokens, "
            f"got {np.shape(numbers)}."
        )
    return checked_array(rows, name, rows.shape)


def document_rows(array: Any, name: str, shape: tuple[int, ...] | None = None) -> sp.csr_array:
    """Return a non-negative matrix as CSR, every entry stored once; `array` is unchanged."""
    rows = canonical(sp.csr_array(array if sp.issparse(array) else np.atleast_2d(array)))
    if shape is not None and rows.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as attention has, got {rows.shape}.")
    if len(rows.data) and not (rows.data.min() >= 0 and np.isfinite(rows.data).all()):
        raise ValueError(f"{name} must be finite and not negative.")
    return rows


def names_or_indices(names: Any, n_tokens: int) -> NDArray[np.object_]:
    """Return one string for each token; by default the tokens' indices."""
    names = range(n_tokens) if names is None else names
    return object_array(map(str, names), "token_names", n_tokens)


def object_array(values: Any, name: str, n_tokens: int) -> NDArray[np.object_]:
    """Return one object for each token."""
    values = list(values)
    if len(values) != n_tokens:
        raise ValueError(f"{name} must have {n_tokens} entries, one a token, got {len(values)}.")
    array = np.empty(n_tokens, dtype=object)
    array[:] = values
    return array


def _feature_names(transformers: list[Any]) -> Any:
    """Return the steps' names of their output columns, None where a step has none."""
    # Steps of pipelines within pipelines may have the same name.
    steps = [(str(place), step) for place, step in enumerate(transformers)]
    try:
        return Pipeline(steps).get_feature_names_out()
    except (AttributeError, ValueError):  # a hashing vectorizer, for example
        return None


def _are_texts(X: Any) -> bool:
    if isinstance(X, str):
        return True
    if sp.issparse(X) or not hasattr(X, "__len__") or getattr(X, "ndim", 1) != 1:
        return False
    return any(isinstance(document, str) for document in X)
