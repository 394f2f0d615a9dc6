"""Checks of what displays are given: arrays of the right shape, classes that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ...comparison._token_effects import values_by_class

Array = NDArray[np.float64]


def places_of(target: Any, classes: NDArray[Any]) -> list[int] | None:
    """Return the places in `classes` of one label or of a list of them; None for None."""
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


def one_place_of(target: Any, classes: NDArray[Any]) -> int | None:
    """Return the place of one label in `classes`; None for None."""
    places = places_of(target, classes)
    if places is None:
        return None
    if len(places) != 1:
        raise ValueError(f"target must be one class, got {target!r}.")
    return places[0]


def per_class(numbers: ArrayLike, n_classes: int, n_tokens: int, name: str) -> Array:
    """Return one row a class. For two classes one row is given, and speaks against the first."""
    rows = np.asarray(numbers, dtype=np.float64)
    if n_classes == 2 and rows.shape == (n_tokens,):
        rows = values_by_class(rows)
    if rows.shape != (n_classes, n_tokens):
        expected = f"({n_tokens},)" if n_classes == 2 else f"({n_classes}, {n_tokens})"
        raise ValueError(
            f"{name} must have shape {expected} for {n_classes} classes and {n_tokens} tokens, "
            f"got {np.shape(numbers)}."
        )
    return _finite(rows, name)


def per_token(numbers: ArrayLike, n_tokens: int, name: str) -> Array:
    """Return one finite number a token."""
    row = np.asarray(numbers, dtype=np.float64)
    if row.shape != (n_tokens,):
        raise ValueError(
            f"{name} must have shape ({n_tokens},), one entry a token, got {row.shape}."
        )
    return _finite(row, name)


def of_shape(numbers: ArrayLike | None, name: str, expected: tuple[int, ...]) -> Any:
    """Return numbers, which may be NaN, of the shape expected; None for None."""
    if numbers is None:
        return None
    array = np.asarray(numbers, dtype=np.float64)
    if array.shape != expected:
        raise ValueError(f"{name} must have shape {expected}, got {array.shape}.")
    return array


def rows_of_documents(array: Any, name: str, shape: tuple[int, ...] | None = None) -> sp.csr_array:
    """Return a non-negative matrix as CSR, every entry stored once; `array` is unchanged."""
    rows = sp.csr_array(array if sp.issparse(array) else np.atleast_2d(np.asarray(array)))
    if shape is not None and rows.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as attention has, got {rows.shape}.")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if len(rows.data) and not (rows.data.min() >= 0 and np.isfinite(rows.data).all()):
        raise ValueError(f"{name} must be finite and not negative.")
    return rows


def names_or_indices(names: Any, n_tokens: int) -> NDArray[np.object_]:
    """Return one string a token."""
    if names is None:
        names = range(n_tokens)
    if len(names) != n_tokens:
        raise ValueError(f"token_names must be {n_tokens} names, one a token, got {len(names)}.")
    return np.array([str(name) for name in names], dtype=object)


def labels_of_tokens(labels: Any, n_tokens: int) -> NDArray[np.object_] | None:
    """Return one class label a token, which may be None; None for None."""
    if labels is None:
        return None
    if len(labels) != n_tokens:
        raise ValueError(
            f"token_classes must be {n_tokens} labels, one a token, got {len(labels)}."
        )
    array = np.empty(n_tokens, dtype=object)
    array[:] = list(labels)
    return array


def at_least_one(number: int, name: str) -> int:
    """Return `number`, which must be a positive integer."""
    if not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {number!r}.")
    return int(number)


def _finite(numbers: Array, name: str) -> Array:
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite, but holds NaN or infinity.")
    return numbers
