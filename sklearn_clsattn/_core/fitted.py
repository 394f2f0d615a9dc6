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
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._bags import Bags, is_sparse, multiplied, n_stored
from .._matrices import (
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

# Outside of these a document's attention mass has underflowed against the largest score's, or
# overflowed.
_SMALLEST_MASS = 1e-200
_LARGEST_MASS = 1e300
_SMALLEST_NORMAL = np.finfo(np.float64).tiny


class _KeptMasses(NamedTuple):
    """The attention masses of some scores.

    scores : (n_tokens,), a copy: an array of scores may change
    cls_logit : logarithm of the mass of ``<cls>`` in the scores' unit
    weights : (n_tokens,), masses of tokens over the largest one
    cls_mass : mass of ``<cls>`` over the same
    """

    scores: Array
    cls_logit: float
    weights: Array
    cls_mass: float


_kept_masses: dict[int, _KeptMasses] = {}  # by the id of an array of scores


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
        d, n_outputs = self.weights.shape
        embedding = np.zeros(1 + n_outputs + d)
        embedding[0] = 1.0
        return embedding

    @property
    def output_vectors(self) -> Array:
        """The output vectors, (n_outputs, 1 + n_outputs + d)."""
        n_outputs = self.weights.shape[1]
        on_scores = np.zeros((n_outputs, 1))
        on_own_parts = np.eye(n_outputs)
        return np.hstack([on_scores, on_own_parts, self.weights.T])

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
    entry_scale : unit in which counts are damped (:func:`~sklearn_clsattn._matrices.log_damp`);
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
        # 1) the attention of the tokens in each unit, and the unit's mass
        logits = np.log(table.data, dtype=np.float64) + self.scores[table.indices]
        lengths = np.diff(table.indptr)
        largest = reduced_rows(np.maximum, logits, table.indptr, -np.inf)
        masses = np.exp(logits - np.repeat(largest, lengths))
        total = row_sums(masses, table.indptr)
        attention = masses / np.repeat(total, lengths)
        # 2) the units' values and scores
        values = row_sums(attention[:, None] * self.values[table.indices], table.indptr)
        with np.errstate(divide="ignore"):  # a unit without tokens has a score of -inf
            scores = largest + np.log(total)
        return replace(self, scores=scores, values=values)

    def token_weights(self, entries: Any) -> Any:
        """Return the token weights c of the entries of an ndarray or a CSR matrix."""
        return entries if self.entry_scale is None else log_damp(entries, self.entry_scale)

    def outputs(self, X: Any) -> Array:
        """Return the decision values F, (n_documents, n_outputs), of CSR, bags or an ndarray."""
        if self._has_few_entries(X):
            return self._outputs_by_entry(X)
        weights, cls_mass = self._masses()
        weighted_values = weights[:, None] * self.values
        has_rounded_weights = weights.min(initial=1.0) < _SMALLEST_NORMAL  # to few digits
        outputs = np.empty((X.shape[0], weighted_values.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, part, products in self._products(X, weights[:, None], weighted_values):
                # 1) the quotients of two sums over tokens
                masses, attended = products
                mass = masses[:, 0] + cls_mass
                least = _SMALLEST_MASS
                if has_rounded_weights:
                    least *= max(1.0, _largest(part))
                is_within = (mass >= least) & (mass <= _LARGEST_MASS)
                is_within &= np.abs(attended).max(axis=1) <= _LARGEST_MASS
                outside = np.flatnonzero(~is_within)
                mass[outside] = 1.0
                outputs[rows] = attended / mass[:, None]
                # 2) where sums underflow or overflow, attention is computed from logarithms
                if len(outside):
                    attention = self.attention(sp.csr_array(multiplied(X[rows][outside])))
                    outputs[rows][outside] = attention @ self.values
        outputs += self.intercept
        return outputs

    def _has_few_entries(self, X: Any) -> bool:
        """Return whether documents have fewer entries than there are tokens."""
        return is_sparse(X) and n_stored(X) < len(self.scores)

    def _outputs_by_entry(self, X: Any) -> Array:
        """Return the decision values of CSR or bags, by the attention of every entry."""
        if isinstance(X, Bags):
            return self.of_units(X.right).outputs(X.left)
        attention = self._attention_of_entries(X)
        outputs = np.empty((X.shape[0], len(self.intercept)))
        for k, values in enumerate(self.values.T):
            outputs[:, k] = row_sums(attention * values[X.indices], X.indptr)
        outputs += self.intercept
        return outputs

    def most_probable(self, X: Any) -> Numbers:
        """Return the number of each document's most probable class, by :meth:`outputs`.

        For two classes, the output times the attention mass is linear in the token weights: one
        product tells its sign. Where rounding could decide, outputs do.
        """
        if len(self.intercept) > 1 or self._has_few_entries(X) or isinstance(X, Bags):
            return most_probable(self.outputs(X))
        weights, cls_mass = self._masses()
        values = self.values[:, 0]
        intercept = float(self.intercept[0])
        has_counts = self._damps_counts(X)
        largest_entry = 0.0
        if has_counts:
            # Damping takes hardly more than a hundred times its unit from any integer.
            largest_integer = np.array([np.iinfo(X.dtype).max])
            largest_entry = float(self.token_weights(largest_integer)[0])
        with np.errstate(over="ignore", invalid="ignore"):
            # 1) the outputs times the attention masses
            scaled_outputs = np.empty(X.shape[0])
            by_token = (values + intercept) * weights
            for rows, part, products in self._products(X, by_token[:, None]):
                scaled_outputs[rows] = products[0][:, 0]
                if not has_counts:
                    largest_entry = max(largest_entry, _largest(part))
            scaled_outputs += cls_mass * intercept
            # 2) a bound of the rounding errors, here and in outputs
            most_tokens = X.shape[1]
            if sp.issparse(X):  # whose integers are of 32 bits, too few for a square
                most_tokens = int(np.diff(X.indptr).max(initial=0))
            n_terms = 1 + most_tokens
            twice_intercept = 2.0 * abs(intercept)
            largest_value = 2.0 * (twice_intercept + np.abs(values).max(initial=0.0))
            largest_weight = weights.max(initial=0.0)
            largest_term = largest_entry * largest_value * largest_weight
            largest_term += cls_mass * twice_intercept
            rounding = 4.0 * n_terms**2 * np.finfo(np.float64).eps * largest_term
            if not _SMALLEST_MASS < n_terms * largest_term < _LARGEST_MASS:
                return most_probable(self.outputs(X))
        # 3) the signs, and the outputs where rounding could change the sign
        numbers = most_probable(scaled_outputs)
        unclear = np.flatnonzero(np.abs(scaled_outputs) <= rounding)
        if len(unclear):
            numbers[unclear] = most_probable(self.outputs(X[unclear]))
        return numbers

    def _masses(self) -> tuple[Array, float]:
        """Return the attention masses of tokens, (n_tokens,), and of ``<cls>``, over one unit.

        They are kept for as long as the array of scores exists: of many tokens they take as long
        as the products with a few thousand documents.
        """
        key = id(self.scores)
        cls_logit = self._cls_logit()
        kept = _kept_masses.get(key)
        if kept is None:
            finalize(self.scores, _kept_masses.pop, key, None)
        elif kept.cls_logit == cls_logit and np.array_equal(kept.scores, self.scores):
            return kept.weights, kept.cls_mass
        shift = max(self.scores.max(initial=-np.inf), cls_logit)
        weights = np.exp(self.scores - shift)
        cls_mass = float(np.exp(cls_logit - shift))
        _kept_masses[key] = _KeptMasses(self.scores.copy(), cls_logit, weights, cls_mass)
        return weights, cls_mass

    def _damps_counts(self, X: Any) -> bool:
        """Return whether the entries of an ndarray or sparse matrix are integers to be damped."""
        return self.entry_scale is not None and X.dtype.kind in "iu"

    def _products(self, X: Any, *factors: Array) -> Iterator[tuple[slice, Any, list[Array]]]:
        """Yield slices of rows, their token weights in float64, and products with the factors.

        A factor is (n_tokens, n_columns). An ndarray is one block.
        """
        if not is_sparse(X):
            part = np.asarray(self.token_weights(X), dtype=np.float64)
            yield slice(None), part, [part @ factor for factor in factors]
            return
        if isinstance(X, Bags):
            factors = tuple(X.right @ factor for factor in factors)
            X = X.left
        factors = tuple(map(np.ascontiguousarray, factors))  # once, not per block
        blocks = list(row_blocks(X, BLOCK_ENTRIES))
        # Fresh memory for every block would cost as much as the weights.
        largest_block = max((len(part.data) for _, part in blocks), default=0)
        memory = np.empty(largest_block)
        for rows, part in blocks:
            if self.entry_scale is None:
                part.data = np.asarray(part.data, dtype=np.float64)
            else:
                weights = memory[: len(part.data)]
                part.data = log_damp_entries(part.data, self.entry_scale, out=weights)
            yield rows, part, [_product(part, factor) for factor in factors]

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights q of the tokens, in the layout of the CSR matrix `X`."""
        return in_the_layout_of(X, self._attention_of_entries(X))

    def cls_shares(self, X: Any) -> Array:
        """Return the attention weight of ``<cls>`` in each document, (n_documents,)."""
        weights, cls_mass = self._masses()
        mass = np.empty(X.shape[0])
        for rows, _, products in self._products(X, weights[:, None]):
            mass[rows] = products[0][:, 0]
        mass += cls_mass
        return np.divide(cls_mass, mass, out=np.zeros_like(mass), where=mass > 0)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return q * b as one CSR array per output, in the layout of the CSR matrix `X`."""
        attention = self._attention_of_entries(X)
        return [in_the_layout_of(X, attention * values[X.indices]) for values in self.values.T]

    def _attention_of_entries(self, X: Any) -> Array:
        """Return the attention weight of every entry of the CSR matrix `X`, (n_entries,)."""
        # 1) the logarithms of attention masses, and their maximum in each document
        with np.errstate(divide="ignore"):
            logits = np.log(self.token_weights(X.data), dtype=np.float64)
        logits += self.scores[X.indices]
        cls_logit = self._cls_logit()
        largest = reduced_rows(np.maximum, logits, X.indptr, -np.inf).clip(min=cls_logit)
        largest[np.isneginf(largest)] = 0.0
        # 2) masses relative to the maximum, and their shares of the sum
        lengths = np.diff(X.indptr)
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
        """Return the logarithm of the attention mass of ``<cls>``."""
        if not self.cls_weight:
            return -np.inf
        return self.cls_score + float(np.log(self.cls_weight))


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
    # 1) the entries whose scores are near their document's highest
    entry_scores = scores[X.indices]
    if len(X.data) and not X.data.min() > 0:
        entry_scores[X.data <= 0] = -np.inf
    thresholds = reduced_rows(np.maximum, entry_scores, X.indptr, -np.inf) - tolerance
    # A document without tokens has no maximum, and selects nothing.
    thresholds[np.isneginf(thresholds)] = np.inf
    entries = np.flatnonzero(entry_scores >= np.repeat(thresholds, np.diff(X.indptr)))
    # 2) their documents and tokens; an entry may be stored in several parts
    documents = np.searchsorted(X.indptr, entries, side="right") - 1
    n_tokens = X.shape[1]
    pairs = np.unique(documents.astype(np.int64) * n_tokens + X.indices[entries])
    return pairs // n_tokens, pairs % n_tokens


def count_selected(scores: Array, X: Any, tolerance: float = SELECTION_TOLERANCE) -> Numbers:
    """Return the number of documents that select each token (:func:`select_tokens`), (n_tokens,).

    A document's best token is the one of the lowest rank; only where it may tie with others are
    scores compared.
    """
    from .threads import in_threads

    # 1) the tokens' ranks by score, and which tie with the next
    n_tokens = len(scores)
    by_rank = np.argsort(-scores).astype(np.int32)
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(n_tokens)
    negative = -scores[by_rank]
    last_tie = np.searchsorted(negative, negative + tolerance, side="right") - 1
    may_tie = last_tie > np.arange(n_tokens)
    bags = X
    if isinstance(bags, Bags):  # the best of a unit's tokens stands for it
        units = bags.right
        ranks = reduced_rows(np.minimum, ranks[units.indices], units.indptr, np.int32(n_tokens))
        X = bags.left

    def selected_in_block(block: tuple[slice, Any]) -> NDArray[Any]:
        """Return the tokens that the documents of a block select, once for each document."""
        rows, part = block
        documents = np.flatnonzero(np.diff(part.indptr))
        if not len(documents):
            return documents
        best = np.minimum.reduceat(ranks[part.indices], part.indptr[documents])
        has_tokens = best < n_tokens
        documents = documents[has_tokens]
        best = best[has_tokens]
        is_unclear = may_tie[best] | (part.data.min() <= 0)  # such entries are no tokens
        clearly_selected = by_rank[best[~is_unclear]]
        unclear = multiplied(bags[rows.start + documents[is_unclear]])
        _, selected = select_tokens(scores, unclear, tolerance)
        return np.concatenate([clearly_selected, selected])

    # 2) the best tokens of documents, block by block
    counts = np.zeros(n_tokens, dtype=np.intp)
    for tokens in in_threads(selected_in_block, row_blocks(X)):
        counts += np.bincount(tokens, minlength=n_tokens)
    return counts


def in_the_layout_of(X: Any, data: NDArray[Any]) -> sp.csr_array:
    """Return a CSR array with these entries at the positions of those of the CSR matrix `X`."""
    return sp.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


def _product(X: Any, columns: Array) -> Array:
    """Return ``X @ columns``: with a vector SciPy is faster than with a matrix of one column."""
    if columns.shape[1] == 1:
        return np.asarray((X @ columns[:, 0])[:, None])
    return np.asarray(X @ columns)


def _largest(X: Any) -> float:
    """Return the largest entry of an ndarray or a sparse matrix, 0 if there is none."""
    entries = X.data if sp.issparse(X) else X
    return float(entries.max(initial=0.0))
