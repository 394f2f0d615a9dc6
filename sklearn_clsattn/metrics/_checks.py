"""Checks of documents, classes and scores."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._documents import as_csr, canonical
from .._validation import codes_of

Array = NDArray[np.float64]


def token_rows(X: Any) -> sp.csr_array:
    """Return `X` as canonical CSR without explicit zeros; `X` is never changed."""
    if not sp.issparse(X):
        X = np.asarray(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(
            "X must be a matrix of token counts or weights, got an array of dtype "
            f"{X.dtype}: in place of texts pass the output of the vectorizer, and the pipeline "
            "without the vectorizer."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n_documents, n_tokens), got {X.ndim} dimension(s).")
    if X.shape[0] == 0:
        raise ValueError("X must have at least one document, got none.")
    rows = canonical(sp.csr_array(as_csr(X)))
    if len(rows.data) and not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return rows


def target_codes(estimator: Any, target: Any, probabilities: Array) -> NDArray[np.intp]:
    """Return the columns (n_documents,) of `predict_proba` that are explained."""
    if target is None:
        return probabilities.argmax(axis=1)
    n_documents, labels = len(probabilities), np.asarray(target)
    if labels.ndim and labels.shape != (n_documents,):
        raise ValueError(
            f"target must be one label or {n_documents}, one for each document, got shape "
            f"{labels.shape}."
        )
    labels = np.atleast_1d(labels)
    codes = codes_of(labels, estimator.classes_)
    if (codes < 0).any():
        raise ValueError(
            f"target {labels[codes < 0].tolist()[0]!r} is not a class of the estimator, which has "
            f"{np.asarray(estimator.classes_).tolist()}."
        )
    return np.broadcast_to(codes, n_documents)


def explained_scores(
    scores: Any, rows: sp.csr_array, codes: NDArray[np.intp], n_classes: int
) -> Array:
    """Return the scores (n_entries,) of the explained classes at the entries of `rows`."""
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    if not (isinstance(scores, list | tuple) and all(np.ndim(one) == 2 for one in scores)):
        return _at_entries(scores, rows, row_of)
    if len(scores) != n_classes:
        raise ValueError(
            f"scores must be one matrix, or one for each of the {n_classes} classes, got a list "
            f"of {len(scores)}; for two classes and scores z of the second it is [-z, z]."
        )
    code_of, values = codes[row_of], np.empty(len(row_of))
    for code, one in enumerate(scores):
        values[code_of == code] = _at_entries(one, rows, row_of)[code_of == code]
    return values


def _at_entries(scores: Any, rows: sp.csr_array, row_of: NDArray[np.intp]) -> Array:
    """Return the scores (n_entries,) at the entries of `rows`, 0 where none is stored."""
    sparse = sp.issparse(scores)
    # Indexing of csr_array returns other types from one release of SciPy to another.
    matrix = sp.csr_matrix(scores) if sparse else np.asarray(scores)
    if matrix.shape != rows.shape:
        raise ValueError(
            f"scores must have the shape of X, {rows.shape}, got {matrix.shape}: one score for "
            "each token of each document."
        )
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"scores must be numbers, got dtype {matrix.dtype}.")
    if np.isnan(matrix.data if sparse else matrix).any():
        raise ValueError("scores must be numbers, but some are NaN.")
    if not len(row_of):
        return np.empty(0)
    return np.asarray(matrix[row_of, rows.indices], dtype=np.float64).ravel()
