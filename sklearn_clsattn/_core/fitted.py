r"""A fitted one-layer model: a few NumPy arrays, and everything computed from them.

Predicting, attention, contributions and selection need no PyTorch and no GPU. All of it is
computed in double precision, whatever the precision of training, so that a document's
contributions add up to its decision.

With token weights :math:`c_{is}`, scores a, values b and the ``<cls>`` token's weight
:math:`S_0` and score :math:`a_0`:

.. math::

    q_{is} = \frac{c_{is} e^{a_s}}{S_0 e^{a_0} + \sum_j c_{ij} e^{a_j}}, \qquad
    F_{ik} = \beta_k + \sum_s q_{is} b_{sk}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import finalize

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._bags import Bags, is_sparse, multiplied, n_stored
from .._documents import (
    BLOCK_ENTRIES,
    log_damp,
    log_damp_entries,
    reduced_rows,
    row_blocks,
    row_sums,
)
from .._types import Array, Numbers

SELECTION_TOLERANCE = 1e-6
"""Scores that differ by less than this tie for a document's highest."""

# Below this a document's attention mass has underflowed against the largest score's.
_SMALLEST_MASS = 1e-200
_LARGEST_MASS = 1e300
_N_SMALL = 1024  # counts in the table of damped ones
_SMALLEST_NORMAL = np.finfo(np.float64).tiny

# By the id of an array of scores: a copy, for it may change, the logit of <cls>, and the masses.
_kept_masses: dict[int, tuple[Array, float, Array, float]] = {}


@dataclass(frozen=True)
class StoredEmbeddings:
    """Token embeddings, p and the output vectors of a model in d dimensions."""

    cls_embedding: Array  # (d,)
    output_vectors: Array  # (n_outputs, d)
    matrix: NDArray[np.floating[Any]]  # (n_tokens, d)


@dataclass(frozen=True)
class VectorEmbeddings:
    """Token embeddings of a score, an own part of each value, and a vector, where there is one.

    `tokens`, (n_vectors,), have the `vectors`, (n_vectors, d), times `factors`, (n_vectors,), in
    their embeddings; `weights`, (d, n_outputs), are in the output vectors. `scores` are (n_tokens,)
    and `own` parts (n_tokens, n_outputs).
    """

    scores: Array
    own: Array
    tokens: Numbers
    vectors: NDArray[np.float32]
    factors: Array
    weights: Array

    @property
    def cls_embedding(self) -> Array:
        """The embedding of ``<cls>``, (1 + n_outputs + d,)."""
        return np.eye(1, 1 + sum(self.weights.shape))[0]

    @property
    def output_vectors(self) -> Array:
        """The output vectors, (n_outputs, 1 + n_outputs + d)."""
        n_outputs = self.weights.shape[1]
        return np.hstack([np.zeros((n_outputs, 1)), np.eye(n_outputs), self.weights.T])

    @property
    def matrix(self) -> Array:
        """The embeddings, (n_tokens, 1 + n_outputs + d)."""
        shared = np.zeros((len(self.scores), len(self.weights)))
        shared[self.tokens] = self.vectors * self.factors[:, None]
        return np.column_stack([self.scores, self.own, shared])


@dataclass(frozen=True)
class FittedAttention:
    """A fitted one-layer attention model.

    scores : (n_tokens,), attention scores a
    values : (n_tokens, n_outputs), token values b; one output for two classes
    intercept : (n_outputs,)
    cls_weight, cls_score : weight and score of ``<cls>``, whose value is 0; weight 0 leaves it out
    embeddings : None where the dimension drops out: any embeddings with these scores and values
    entry_scale : unit of the counts, which are damped (:func:`~sklearn_clsattn._documents.damped`);
        None takes them as they are
    """

    scores: Array
    values: Array
    intercept: Array
    cls_weight: float
    cls_score: float
    embeddings: StoredEmbeddings | VectorEmbeddings | None = None
    entry_scale: float | None = None

    n_layers: int = 1
    mlp: bool = False

    def token_matrix(self) -> Array:
        """Return rows [a, b_1..b_K] over [a_0, beta_1..beta_K], a_0 = 0 without ``<cls>``."""
        cls_score = self.cls_score if self.cls_weight else 0.0
        tokens = np.column_stack([self.scores, self.values])
        return np.vstack([tokens, [cls_score, *self.intercept]])

    def of_units(self, table: Any) -> FittedAttention:
        """Return the model of units, each of which stands for the tokens in a row of a matrix.

        `table`, CSR (n_units, n_tokens), holds their weights. A unit's attention mass is the sum of
        its tokens', its value the mean of theirs by attention.
        """
        logits = np.log(table.data, dtype=np.float64) + self.scores[table.indices]
        lengths = np.diff(table.indptr)
        largest = reduced_rows(np.maximum, logits, table.indptr, -np.inf)
        masses = np.exp(logits - np.repeat(largest, lengths))
        total = row_sums(masses, table.indptr)
        masses /= np.repeat(total, lengths)
        values = row_sums(masses[:, None] * self.values[table.indices], table.indptr)
        with np.errstate(divide="ignore"):  # a unit without tokens has a score of -inf
            return replace(self, scores=largest + np.log(total), values=values)

    def token_weights(self, entries: Any) -> Any:
        """Return the token weights c of the entries of an ndarray or a CSR matrix."""
        return entries if self.entry_scale is None else log_damp(entries, self.entry_scale)

    def outputs(self, X: Any) -> Array:
        """Return the decision values F, (n_documents, n_outputs), of CSR, bags or an ndarray."""
        if is_sparse(X) and n_stored(X) < len(self.scores):
            # A few documents have fewer entries than there are tokens.
            if isinstance(X, Bags):
                return self.of_units(X.right).outputs(X.left)
            shares = self._shares(X)
            return self.intercept + np.column_stack(
                [row_sums(shares * column[X.indices], X.indptr) for column in self.values.T]
            )
        weights, cls_mass = self._masses()
        weighted = weights[:, None] * self.values
        rounded = weights.min(initial=1.0) < _SMALLEST_NORMAL  # to few digits
        outputs = np.empty((X.shape[0], weighted.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, part, (mass, attended) in self._products(X, weights[:, None], weighted):
                mass = mass[:, 0] + cls_mass
                # Where sums underflow or overflow, shares are computed from logarithms.
                least = _SMALLEST_MASS
                if rounded:
                    least *= max(1.0, _largest(part))
                within = (mass >= least) & (mass <= _LARGEST_MASS)
                within &= np.abs(attended).max(axis=1) <= _LARGEST_MASS
                outside = np.flatnonzero(~within)
                mass[outside] = 1.0
                outputs[rows] = attended / mass[:, None]
                if len(outside):
                    shares = self.attention(sp.csr_array(multiplied(X[rows][outside])))
                    outputs[rows][outside] = shares @ self.values
        outputs += self.intercept
        return outputs

    def most_probable(self, X: Any) -> Numbers:
        """Return the number of each document's most probable class, by :meth:`outputs`.

        For two classes, the output times the attention mass is linear in the token weights: one
        product tells its sign. Where rounding could decide, outputs do.
        """
        is_small = is_sparse(X) and n_stored(X) < len(self.scores)
        if len(self.intercept) > 1 or is_small or isinstance(X, Bags):
            return most_probable(self.outputs(X))
        weights, cls_mass = self._masses()
        values, intercept = self.values[:, 0], float(self.intercept[0])
        counts = self._damps_counts(X)
        # Damping takes hardly more than a hundred times its unit from any integer.
        largest = float(self.token_weights(np.array([np.iinfo(X.dtype).max]))[0]) if counts else 0.0
        n_terms = 1 + (np.diff(X.indptr).max(initial=0) if sp.issparse(X) else X.shape[1])
        sums = np.empty(X.shape[0])
        with np.errstate(over="ignore", invalid="ignore"):
            of_tokens = (values + intercept) * weights
            for rows, part, (product,) in self._products(X, of_tokens[:, None]):
                sums[rows] = product[:, 0]
                if not counts:
                    largest = max(largest, _largest(part))
            sums += cls_mass * intercept
            # Bounds of what an entry and <cls> add to the sums, here and in outputs.
            of_intercept = 2.0 * abs(intercept)
            of_entry = 2.0 * (of_intercept + np.abs(values).max(initial=0.0))
            size = largest * of_entry * weights.max(initial=0.0) + cls_mass * of_intercept
            rounding = 4.0 * n_terms**2 * np.finfo(np.float64).eps * size
            if not _SMALLEST_MASS < n_terms * size < _LARGEST_MASS:
                return most_probable(self.outputs(X))
        numbers = most_probable(sums)
        if len(unclear := np.flatnonzero(np.abs(sums) <= rounding)):
            numbers[unclear] = most_probable(self.outputs(X[unclear]))
        return numbers

    def _masses(self) -> tuple[Array, float]:
        """Return exp(a), (n_tokens,), and the mass of ``<cls>``, over the same unit.

        Both are kept for as long as the array of scores exists: of many tokens they take as long
        as the products with a few thousand documents.
        """
        key, logit = id(self.scores), self._cls_logit()
        scores, known, weights, mass = _kept_masses.get(key, (None, logit, self.scores, 0.0))
        if scores is None:
            finalize(self.scores, _kept_masses.pop, key, None)
        if scores is None or known != logit or not np.array_equal(scores, self.scores):
            scores = self.scores.copy()
            shift = max(scores.max(initial=-np.inf), logit)
            weights, mass = np.exp(scores - shift), float(np.exp(logit - shift))
            _kept_masses[key] = scores, logit, weights, mass
        return weights, mass

    def _damps_counts(self, X: Any) -> bool:
        """Return whether the entries of an ndarray or sparse matrix are integers to be damped."""
        return self.entry_scale is not None and X.dtype.kind in "iu"

    def _products(self, X: Any, *factors: Array) -> Iterator[tuple[slice, Any, list[Array]]]:
        """Yield slices of rows, the token weights of these in float64, and products with factors.

        A factor is (n_tokens, n_columns). An ndarray is one block.
        """
        if not is_sparse(X):
            part = np.asarray(self.token_weights(X), dtype=np.float64)
            yield slice(None), part, [part @ factor for factor in factors]
            return
        if isinstance(X, Bags):
            X, factors = X.left, tuple(X.right @ factor for factor in factors)
        factors = tuple(np.ascontiguousarray(factor) for factor in factors)  # once, not per block
        blocks = list(row_blocks(X, BLOCK_ENTRIES))
        # Fresh memory for every block would cost as much as the weights.
        memory = np.empty(max([len(part.data) for _, part in blocks], default=0))
        table, binary = None, False
        if self._damps_counts(X):
            # Counts are nearly always positive and small. Others are looked up as NaN, and so are
            # the products of their documents: no look at all entries beforehand tells of them.
            table = self.token_weights(np.arange(_N_SMALL))
            table[[0, -1]] = np.nan
            binary = bool((X.data[:_N_SMALL] == 1).all())
            if binary:
                memory.fill(table[1])
        for rows, part in blocks:
            entries, part.data = part.data, memory[: len(part.data)]
            if table is not None:
                binary = binary and bool((entries == 1).all())
                if not binary:
                    np.take(table, entries, out=part.data, mode="clip")
                products = [_product(part, factor) for factor in factors]
                if np.isnan(products[0]).any():
                    table = None
            if table is None:
                if self.entry_scale is None:
                    part.data = np.asarray(entries, dtype=np.float64)
                else:
                    log_damp_entries(entries, self.entry_scale, out=part.data)
                products = [_product(part, factor) for factor in factors]
            yield rows, part, products

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights q of the tokens, in the layout of the CSR matrix `X`."""
        return in_the_layout_of(X, self._shares(X))

    def cls_shares(self, X: Any) -> Array:
        """Return the attention weight of ``<cls>`` in each document, (n_documents,)."""
        weights, cls_mass = self._masses()
        products = (product[:, 0] for _, _, (product,) in self._products(X, weights[:, None]))
        mass = np.concatenate([np.zeros(0), *products]) + cls_mass
        return np.divide(cls_mass, mass, out=np.zeros_like(mass), where=mass > 0)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return q * b as one CSR array per output, in the layout of the CSR matrix `X`."""
        shares = self._shares(X)
        return [in_the_layout_of(X, shares * column[X.indices]) for column in self.values.T]

    def _shares(self, X: Any) -> Array:
        """Return the attention weight of every entry of the CSR matrix `X`."""
        with np.errstate(divide="ignore"):
            logits = np.log(self.token_weights(X.data), dtype=np.float64)
        logits += self.scores[X.indices]
        cls_logit = self._cls_logit()
        lengths = np.diff(X.indptr)
        largest = reduced_rows(np.maximum, logits, X.indptr, -np.inf).clip(min=cls_logit)
        largest[np.isneginf(largest)] = 0.0
        masses = np.exp(logits - np.repeat(largest, lengths))
        total = row_sums(masses, X.indptr) + np.exp(cls_logit - largest)
        total[total == 0] = 1.0
        masses /= np.repeat(total, lengths)
        return masses

    def selected(self, X: Any) -> sp.csr_array:
        """Return the selected tokens (:func:`select_tokens`) as a boolean CSR array."""
        documents, tokens = select_tokens(self.scores, X)
        indptr = np.zeros(X.shape[0] + 1, dtype=X.indptr.dtype)
        np.cumsum(np.bincount(documents, minlength=X.shape[0]), out=indptr[1:])
        flags = np.ones(len(tokens), dtype=bool)
        return sp.csr_array((flags, tokens, indptr), shape=X.shape)

    def _cls_logit(self) -> float:
        return self.cls_score + float(np.log(self.cls_weight)) if self.cls_weight else -np.inf


def probabilities(decision: Array) -> Array:
    """Return the probability of each class, (n_documents, n_classes), in rows with sum 1.

    `decision` holds decision values: (n_documents,) log-odds of the second of two classes, or
    (n_documents, n_classes).
    """
    if decision.ndim == 1:
        return np.column_stack([expit(-decision), expit(decision)])
    return np.asarray(softmax(decision, axis=1))


def most_probable(decision: Array) -> Numbers:
    """Return the number of every document's most probable class, of :func:`probabilities`.

    `decision` may also be outputs, (n_documents, n_outputs).
    """
    if decision.ndim == 1 or decision.shape[1] == 1:
        return (decision.reshape(-1) > 0).astype(np.intp)
    return decision.argmax(axis=1)


def select_tokens(
    scores: Array, X: Any, tolerance: float = SELECTION_TOLERANCE
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    r"""Return the (document, token) pairs with the highest score of their document.

    `scores` is (n_tokens,), `X` a CSR matrix of which only the positive entries count; both arrays
    returned are (n_pairs,), rows and columns of `X` in ascending order. Scores within `tolerance`
    of a document's highest tie with it. The paper's :math:`S_X(p) = \{s \in X : p^\top E_s =
    \max_{s' \in X} p^\top E_{s'}\}`.
    """
    of_entries = scores[X.indices]
    if len(X.data) and not X.data.min() > 0:
        of_entries[X.data <= 0] = -np.inf
    thresholds = reduced_rows(np.maximum, of_entries, X.indptr, -np.inf) - tolerance
    # A document without tokens has no maximum, and selects nothing.
    thresholds[np.isneginf(thresholds)] = np.inf
    entries = np.flatnonzero(of_entries >= np.repeat(thresholds, np.diff(X.indptr)))
    documents = np.searchsorted(X.indptr, entries, side="right") - 1
    # An entry may be stored in several parts; its token is selected once.
    pairs = np.unique(documents.astype(np.int64) * X.shape[1] + X.indices[entries])
    return pairs // X.shape[1], pairs % X.shape[1]


def count_selected(scores: Array, X: Any, tolerance: float = SELECTION_TOLERANCE) -> Numbers:
    """Return the number of documents that select each token (:func:`select_tokens`), (n_tokens,).

    By the tokens' ranks; :func:`select_tokens` is asked where the best of a document's may tie.
    """
    from .threads import in_threads

    order = np.argsort(-scores).astype(np.int32)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    below = -scores[order]
    ties = np.searchsorted(below, below + tolerance, side="right") - 1 > np.arange(len(order))
    given = X
    if isinstance(X, Bags):  # the best of a unit's tokens stands for it
        table, X = X.right, X.left
        ranks = reduced_rows(np.minimum, ranks[table.indices], table.indptr, np.int32(len(order)))

    def of_block(block: tuple[slice, Any]) -> NDArray[Any]:
        rows, part = block
        filled = np.flatnonzero(np.diff(part.indptr))
        if not len(filled):
            return filled
        best = np.minimum.reduceat(ranks[part.indices], part.indptr[filled])
        filled, best = filled[best < len(order)], best[best < len(order)]
        tied = ties[best] | (part.data.min() <= 0)  # such entries are no tokens of a document
        rivals = multiplied(given[rows.start + filled[tied]])
        several = select_tokens(scores, rivals, tolerance)[1]
        return np.concatenate([order[best[~tied]], several])

    counts = np.zeros(len(scores), dtype=np.intp)
    for tokens in in_threads(of_block, row_blocks(X)):
        counts += np.bincount(tokens, minlength=len(counts))
    return counts


def in_the_layout_of(X: Any, data: NDArray[Any]) -> sp.csr_array:
    """Return a CSR array with these entries at the positions of those of the CSR matrix `X`."""
    return sp.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


def _product(X: Any, columns: Array) -> Array:
    """Return ``X @ columns``: with a vector SciPy is faster than with a matrix of one column."""
    return np.asarray((X @ columns[:, 0])[:, None] if len(columns.T) == 1 else X @ columns)


def _largest(X: Any) -> float:
    """Return the largest entry of an ndarray or a sparse matrix, 0 if there is none."""
    return float((X.data if sp.issparse(X) else X).max(initial=0.0))
