"""Probabilities of a model for documents without some of their tokens."""

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._checks import explained_scores, target_codes, token_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Maximum number of entries of the perturbed documents in memory.
_BLOCK_ENTRIES = 2_000_000


class RankedDocuments:
    """Documents X with tokens ranked by their scores for the explained class.

    `base` has its probability, `n_tokens` and `n_positive` the number of distinct tokens and of
    those with a score over 0, (n_documents,).
    """

    def __init__(self, estimator: Any, X: Any, scores: Any, target: Any) -> None:
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"The estimator needs predict_proba, which {type(estimator).__name__} does not "
                "have: wrap it in CalibratedClassifierCV, or choose another."
            )
        self._estimator, self._X = estimator, X
        self._rows = rows = token_rows(X)
        self.n_tokens: Integers = np.diff(rows.indptr).astype(np.int64)
        documents = np.arange(rows.shape[0])
        row_of = np.repeat(documents, self.n_tokens)
        # Ranks, from 0, of the entries in their documents.
        self._ranks = np.arange(len(row_of)) - np.repeat(rows.indptr[:-1], self.n_tokens)
        probabilities = self._predict(documents, np.zeros_like(self.n_tokens), keep=False)
        self._codes = target_codes(estimator, target, probabilities)
        self.base: Array = probabilities[documents, self._codes]
        values = explained_scores(scores, rows, self._codes, probabilities.shape[1])
        order = np.lexsort((-values, row_of))  # stable: equal scores in the order of columns
        self._ranks[order] = self._ranks.copy()
        self.n_positive = np.bincount(row_of[values > 0], minlength=len(documents))

    def probabilities(self, taken: Integers, *, keep: bool) -> Array:
        """Return the explained classes' probabilities (n_documents, n_levels)."""
        width = int(taken.max(initial=0)) + 1
        keys = np.arange(len(taken))[:, None] * width + taken
        distinct, places = np.unique(keys, return_inverse=True)  # short documents repeat levels
        which, counts = distinct // width, distinct % width
        found = self.base[which]
        # The probabilities of whole documents are known.
        changed = np.flatnonzero(counts < self.n_tokens[which] if keep else counts > 0)
        if len(changed):
            which = which[changed]
            predicted = self._predict(which, counts[changed], keep)
            found[changed] = predicted[np.arange(len(which)), self._codes[which]]
        return found[places.reshape(taken.shape)]

    def _predict(self, which: Integers, counts: Integers, keep: bool) -> Array:
        """Return probabilities (n_questions, n_classes) of documents without some tokens."""
        width = self._rows.shape[1]
        sizes = self.n_tokens[which] + 1 if sp.issparse(self._X) else np.full(len(which), width)
        steps = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_ENTRIES)) + 1
        bounds = np.unique([0, *steps, len(which)])
        parts = []
        for first, last in pairwise(bounds.tolist()):
            block = self._block(which[first:last], counts[first:last], keep)
            part = np.asarray(self._estimator.predict_proba(block))
            if part.ndim != 2 or len(part) != last - first:
                raise TypeError(
                    "predict_proba must return an array of shape (n_documents, n_classes), got "
                    f"shape {part.shape} for {last - first} documents."
                )
            parts.append(part)
        return np.concatenate(parts)

    def _block(self, which: Integers, counts: Integers, keep: bool) -> Any:
        """Return perturbed documents (n_questions, n_tokens) in the form of X."""
        rows, lengths = self._rows, self.n_tokens[which]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(ends[-1]) + np.repeat(rows.indptr[which] - ends[:-1], lengths)
        left = (self._ranks[entries] < np.repeat(counts, lengths)) == keep
        indptr = np.concatenate([[0], np.cumsum(left)])[ends].astype(rows.indices.dtype)
        entries = entries[left]
        parts = (rows.data[entries], rows.indices[entries], indptr)
        shape = (len(which), rows.shape[1])
        if isinstance(self._X, sp.spmatrix):
            return sp.csr_matrix(parts, shape=shape)
        block = sp.csr_array(parts, shape=shape)
        if sp.issparse(self._X):
            return block
        dense = block.toarray()
        if hasattr(self._X, "columns"):  # for an estimator fitted on named columns
            return type(self._X)(dense, columns=self._X.columns)
        return dense
