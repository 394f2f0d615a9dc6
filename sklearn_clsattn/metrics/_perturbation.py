"""Documents without some of their tokens, and what a model says of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ._checks import explained_scores, target_codes, token_rows

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# Entries of the perturbed documents that are in memory at a time.
_BLOCK_ENTRIES = 2_000_000


@dataclass(frozen=True)
class Questions:
    """A model, and the documents that it is asked about parts of.

    Attributes
    ----------
    estimator : estimator
        Any classifier with `predict_proba`.

    X : {sparse matrix, array-like, data frame} of shape (n_documents, n_tokens)
        What the caller gave: the model gets its documents in the same form.

    rows : csr_array of shape (n_documents, n_tokens)
        The same, canonical, without explicit zeros.
    """

    estimator: Any
    X: Any
    rows: sp.csr_array

    @property
    def n_tokens(self) -> Integers:
        """How many tokens each document has."""
        return np.diff(self.rows.indptr).astype(np.int64)

    def probabilities(
        self, which: Integers, ranks: Integers, counts: Integers, keep: bool
    ) -> Array:
        """Return the model's probabilities, shape (n_questions, n_classes).

        Question i is about document ``which[i]``, of which the tokens of rank below ``counts[i]``
        are kept, or removed. `ranks` are those of the entries of `rows` in their documents.
        """
        width = self.rows.shape[1]
        sizes = self.n_tokens[which] + 1 if sp.issparse(self.X) else np.full(len(which), width)
        steps = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_ENTRIES)) + 1
        bounds = np.unique([0, *steps, len(which)])
        parts = []
        for first, last in pairwise(bounds.tolist()):
            block = self._block(which[first:last], ranks, counts[first:last], keep)
            part = np.asarray(self.estimator.predict_proba(block))
            if part.ndim != 2 or len(part) != last - first:
                raise TypeError(
                    "predict_proba must return an array of shape (n_documents, n_classes), got "
                    f"shape {part.shape} for {last - first} documents."
                )
            parts.append(part)
        return np.concatenate(parts) if parts else np.empty((0, 0))

    def _block(self, which: Integers, ranks: Integers, counts: Integers, keep: bool) -> Any:
        rows, lengths = self.rows, self.n_tokens[which]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(ends[-1]) + np.repeat(rows.indptr[which] - ends[:-1], lengths)
        left = (ranks[entries] < np.repeat(counts, lengths)) == keep
        indptr = np.concatenate([[0], np.cumsum(left)])[ends].astype(rows.indices.dtype)
        entries = entries[left]
        parts = (rows.data[entries], rows.indices[entries], indptr)
        shape = (len(which), rows.shape[1])
        if isinstance(self.X, sp.spmatrix):
            return sp.csr_matrix(parts, shape=shape)
        block = sp.csr_array(parts, shape=shape)
        if sp.issparse(self.X):
            return block
        dense = block.toarray()
        # An estimator that was fitted on named columns wants to see them.
        return type(self.X)(dense, columns=self.X.columns) if hasattr(self.X, "columns") else dense


@dataclass(frozen=True)
class RankedDocuments:
    """Documents whose tokens are ranked by how much they speak for the explained class.

    Attributes
    ----------
    questions : Questions
        The model and the documents.

    ranks : ndarray of shape (n_entries,)
        Ranks, from 0, of the entries of ``questions.rows`` in their documents.

    codes : ndarray of shape (n_documents,)
        The explained classes, as columns of `predict_proba`.

    base : ndarray of shape (n_documents,)
        Their probabilities for the whole documents.

    n_takeable : ndarray of shape (n_documents,)
        How many tokens speak for them: score over 0.
    """

    questions: Questions
    ranks: Integers
    codes: Integers
    base: Array
    n_takeable: Integers

    @classmethod
    def explained(cls, estimator: Any, X: Any, scores: Any, target: Any) -> RankedDocuments:
        """Check everything, find the explained classes and rank the tokens."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"The estimator needs predict_proba, which {type(estimator).__name__} does not "
                "have: wrap it in CalibratedClassifierCV, or choose another."
            )
        rows = token_rows(X)
        questions = Questions(estimator, X, rows)
        n_tokens = questions.n_tokens
        documents = np.arange(len(n_tokens))
        nothing = np.zeros(len(documents), dtype=np.int64)
        unranked = np.zeros(len(rows.data), dtype=np.int64)
        probabilities = questions.probabilities(documents, unranked, nothing, keep=False)
        codes = target_codes(estimator, target, probabilities)
        values = explained_scores(scores, rows, codes, probabilities.shape[1])
        row_of = np.repeat(documents, n_tokens)
        order = np.lexsort((-values, row_of))  # stable: columns decide where scores are equal
        ranks = np.empty(len(values), dtype=np.int64)
        ranks[order] = np.arange(len(values)) - np.repeat(rows.indptr[:-1], n_tokens)
        n_takeable = np.bincount(row_of[values > 0], minlength=len(documents)).astype(np.int64)
        return cls(questions, ranks, codes, probabilities[documents, codes], n_takeable)

    @property
    def n_tokens(self) -> Integers:
        """How many tokens each document has."""
        return self.questions.n_tokens

    def probabilities(self, taken: Integers, *, keep: bool) -> Array:
        """Return the explained classes' probabilities, shape (n_documents, n_levels).

        Of each document its first `taken` tokens, (n_documents, n_levels), are kept or removed.
        """
        width = int(taken.max(initial=0)) + 1
        keys = np.arange(len(taken))[:, None] * width + taken
        distinct, places = np.unique(keys, return_inverse=True)  # short documents repeat levels
        which, counts = distinct // width, distinct % width
        found = self.base[which]
        # What is still whole is not asked about again: its probability is the same to the last bit.
        changed = np.flatnonzero(counts < self.n_tokens[which] if keep else counts > 0)
        if len(changed):
            which, counts = which[changed], counts[changed]
            answers = self.questions.probabilities(which, self.ranks, counts, keep)
            found[changed] = answers[np.arange(len(which)), self.codes[which]]
        return found[places.reshape(taken.shape)]
