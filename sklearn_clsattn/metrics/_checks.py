"""What the caller gave, checked and brought into one form: documents, classes and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def token_rows(X: Any) -> sp.csr_array:
    """Return `X` as canonical CSR without explicit zeros; `X` is never changed."""
    if not sp.issparse(X):
        dense = np.asarray(X)
        if dense.dtype.kind not in "biuf":
            raise TypeError(
                "X must be a matrix of token counts or weights, got an array of dtype "
                f"{dense.dtype}: in place of texts pass what the vectorizer makes of them, and "
                "the pipeline without the vectorizer."
            )
        _check_two_dimensions(dense.shape)
        return sp.csr_array(dense)
    _check_two_dimensions(X.shape)
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if len(rows.data) and not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def _check_two_dimensions(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"X must have shape (n_documents, n_tokens), got {len(shape)} dimension(s)."
        )
    if shape[0] == 0:
        raise ValueError("X must have at least one document, got none.")


def target_codes(estimator: Any, target: Any, probabilities: Array) -> Integers:
    """Return the columns of `predict_proba` that are explained."""
    if target is None:
        return probabilities.argmax(axis=1).astype(np.int64)
    n_documents, classes = len(probabilities), np.asarray(estimator.classes_)
    labels = np.asarray(target)
    if labels.ndim and labels.shape != (n_documents,):
        raise ValueError(
            f"target must be one label or {n_documents}, one for each document, got shape "
            f"{labels.shape}."
        )
    codes = {label: code for code, label in enumerate(classes.tolist())}
    asked = np.atleast_1d(labels).tolist()
    unknown = [label for label in asked if label not in codes]
    if unknown:
        raise ValueError(
            f"target {unknown[0]!r} is not a class of the estimator, which has {classes.tolist()}."
        )
    found = np.array([codes[label] for label in asked], dtype=np.int64)
    return np.broadcast_to(found, n_documents)


def explained_scores(scores: Any, rows: sp.csr_array, codes: Integers, n_classes: int) -> Array:
    """Return the scores of the explained classes at the entries of `rows`."""
    if not (isinstance(scores, list | tuple) and all(np.ndim(one) == 2 for one in scores)):
        return _at_entries(scores, rows)
    if len(scores) != n_classes:
        raise ValueError(
            f"scores must be one matrix, or one for each of the {n_classes} classes, got a list "
            f"of {len(scores)}; for two classes and scores z of the second it is [-z, z]."
        )
    code_of = np.repeat(codes, np.diff(rows.indptr))
    values = np.empty(len(rows.data))
    for code, one in enumerate(scores):
        its_own = code_of == code
        values[its_own] = _at_entries(one, rows)[its_own]
    return values


def _at_entries(scores: Any, rows: sp.csr_array) -> Array:
    """Return the scores at the entries of `rows`, 0 where none is stored."""
    if sp.issparse(scores):
        sparse = sp.csr_array(scores)
        _check_scores(sparse, sparse.data, rows)
        return _looked_up(sparse, rows)
    dense = np.asarray(scores)
    _check_scores(dense, dense, rows)
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.asarray(dense[row_of, rows.indices], dtype=np.float64)


def _check_scores(scores: Any, values: Any, rows: sp.csr_array) -> None:
    if scores.shape != rows.shape:
        raise ValueError(
            f"scores must have the shape of X, {rows.shape}, got {scores.shape}: one score for "
            "each token of each document."
        )
    if values.dtype.kind not in "biuf":
        raise TypeError(f"scores must be numbers, got dtype {values.dtype}.")
    if np.isnan(values).any():
        raise ValueError("scores must be numbers, but some are NaN.")


def _looked_up(scores: sp.csr_array, rows: sp.csr_array) -> Array:
    if not scores.has_canonical_format:
        scores = scores.copy()
        scores.sum_duplicates()
    if np.array_equal(scores.indptr, rows.indptr) and np.array_equal(scores.indices, rows.indices):
        return np.asarray(scores.data, dtype=np.float64)
    # One key an entry, ascending in a canonical matrix; the last one is found by none.
    keys = np.append(_keys(scores), np.iinfo(np.int64).max)
    wanted = _keys(rows)
    places = np.searchsorted(keys, wanted)
    data = np.append(scores.data, 0).astype(np.float64)
    return np.where(keys[places] == wanted, data[places], 0.0)


def _keys(matrix: sp.csr_array) -> Integers:
    row_of = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    keys: Integers = row_of * matrix.shape[1] + matrix.indices
    return keys
