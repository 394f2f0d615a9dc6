r"""What a training returns: a fitted model, a few NumPy arrays, and all computed from them.

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

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax

from .._bags import Bags
from .._matrices import log_damp, reduced_rows, row_blocks, row_sums
from .._threads import in_threads
from .._types import Array, Numbers

OnIteration = Callable[[int, float, float], None]
"""Called at the start and after each iteration with the number of iterations, the loss and what the
stopping rule compares: the optimality gap, the validation loss or the largest unselected attention;
NaN where there is none."""

SELECTION_TOLERANCE = 1e-6
"""Scores that differ by less than this tie for a document's highest."""

# Outside of these a document's attention mass has underflowed against the largest score's, or
# overflowed.
_SMALLEST_MASS = 1e-200
_LARGEST_MASS = 1e300


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
        n_tokens = len(self.scores)
        dimension = len(self.weights)
        shared = np.zeros((n_tokens, dimension))
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
    entry_scale : unit in which counts are damped (:func:`.._matrices.log_damp`); None takes them as
        they are
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

    def embedded_in(self, n_tokens: int, tokens: Numbers, score: float) -> FittedAttention:
        """Return the model with its tokens among more, whose values are 0 and that have a score."""
        scores = np.full(n_tokens, score)
        scores[tokens] = self.scores
        values = np.zeros((n_tokens, self.values.shape[1]))
        values[tokens] = self.values
        return replace(self, scores=scores, values=values)

    def token_matrix(self) -> Array:
        """Return rows [a, b_1..b_K] over [a_0, beta_1..beta_K], a_0 = 0 without ``<cls>``."""
        cls_score = self.cls_score if self.cls_weight else 0.0
        tokens = np.column_stack([self.scores, self.values])
        last_row = [cls_score, *self.intercept]
        return np.vstack([tokens, last_row])

    def of_tokens(self, tokens: Numbers) -> FittedAttention:
        """Return the model of some tokens, which become 0, 1, 2, ..., without embeddings."""
        scores = self.scores[tokens]
        values = self.values[tokens]
        return replace(self, scores=scores, values=values, embeddings=None)

    def of_units(self, table: Any) -> FittedAttention:
        """Return the model of units, each of which stands for the tokens in a row of a matrix.

        `table`, CSR (n_units, n_tokens), holds their weights. A unit's attention mass is the sum of
        its tokens', its value the mean of theirs by attention.
        """
        attention, log_masses = _shares(table, table.data, self.scores, -np.inf)
        attended = attention[:, None] * self.values[table.indices]
        values = row_sums(attended, table.indptr)
        return replace(self, scores=log_masses, values=values, embeddings=None)

    def outputs(self, bags: Bags) -> Array:
        """Return the decision values F of bags, (n_documents, n_outputs)."""
        if bags.n_stored < len(self.scores):  # few texts: it costs what they cost
            some, tokens = bags.without_unused_columns()
            if len(tokens) < len(self.scores):
                return self.of_tokens(tokens).outputs(some)
        # 1) the attention masses of tokens and of <cls>, over the largest, and masses times values
        cls_logit = self._cls_logit()
        largest = max(self.scores.max(initial=-np.inf), cls_logit)
        masses = np.exp(self.scores - largest)
        cls_mass = np.exp(cls_logit - largest)
        by_unit = np.column_stack([masses, masses[:, None] * self.values])
        if bags.tokens is not None:
            by_unit = bags.tokens @ by_unit
        columns = list(np.ascontiguousarray(by_unit.T))
        # 2) the quotients of two sums over tokens
        outputs = np.empty((len(bags), self.values.shape[1]))
        for rows, units in bags.unit_blocks():
            units.data = self.token_weights(units.data)
            mass, *attended = [units @ column for column in columns]
            mass += cls_mass
            numerators = np.column_stack(attended)
            is_within = (mass >= _SMALLEST_MASS) & (mass <= _LARGEST_MASS)
            is_within &= np.isfinite(numerators).all(axis=1)
            outside = np.flatnonzero(~is_within)
            mass[outside] = 1.0
            outputs[rows] = numerators / mass[:, None]
            # 3) where sums underflow or overflow, attention is computed from logarithms
            if len(outside):
                extreme = bags[rows][outside]
                attention = self.attention(extreme.matrix())
                outputs[rows][outside] = attention @ self.values
        outputs += self.intercept
        return outputs

    def token_weights(self, entries: NDArray[Any]) -> Array:
        """Return the token weights c of entries, in double precision."""
        if self.entry_scale is None:
            return np.asarray(entries, dtype=np.float64)
        return np.asarray(log_damp(entries, self.entry_scale))

    def attention(self, X: Any) -> sp.csr_array:
        """Return the attention weights q of the tokens, in the layout of the CSR matrix `X`."""
        attention, _ = self._attention_and_masses(X)
        return in_the_layout_of(X, attention)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return q * b as one CSR array per output, in the layout of the CSR matrix `X`."""
        attention, _ = self._attention_and_masses(X)
        contributions = []
        for values in self.values.T:
            terms = attention * values[X.indices]
            contributions.append(in_the_layout_of(X, terms))
        return contributions

    def _attention_and_masses(self, X: Any) -> tuple[Array, Array]:
        """Return the attention weight of every entry, and the log of every document's mass."""
        weights = self.token_weights(X.data)
        return _shares(X, weights, self.scores, self._cls_logit())

    def _cls_logit(self) -> float:
        """Return the logarithm of the attention mass of ``<cls>``."""
        if not self.cls_weight:
            return -np.inf
        return self.cls_score + float(np.log(self.cls_weight))


@dataclass(frozen=True)
class FitResult:
    """What every training returns.

    model : NumPy arrays
    loss_curve : training loss, in nats per document, at the start and after each iteration
    n_iter : number of iterations
    attributes : fitted attributes beyond those of every estimator, by name
    convergence_message : the text of the warning if it did not converge, else ""
    """

    model: FittedAttention
    loss_curve: list[float]
    n_iter: int
    attributes: dict[str, Any] = field(default_factory=dict)
    convergence_message: str = ""

    def with_offsets(self, offsets: Array) -> FitResult:
        """Return the result with offsets, (n_outputs,), added to the intercepts."""
        model = replace(self.model, intercept=self.model.intercept + offsets)
        return replace(self, model=model)


def _shares(X: Any, weights: Array, scores: Array, cls_logit: float) -> tuple[Array, Array]:
    """Return each entry's share of its row's attention mass, and the logarithms of the masses.

    Shares are (n_entries,), in the layout of the CSR matrix `X`, whose token weights are given.
    """
    # 1) the logarithms of attention masses, and their maximum in each row
    with np.errstate(divide="ignore"):
        logits = np.log(weights, dtype=np.float64)
    logits += scores[X.indices]
    largest_of_tokens = reduced_rows(np.maximum, logits, X.indptr, -np.inf)
    largest = largest_of_tokens.clip(min=cls_logit)
    shift = np.where(np.isneginf(largest), 0.0, largest)  # of a row without any mass
    # 2) masses relative to the maximum, and their shares of the sum
    lengths = np.diff(X.indptr)
    logits -= np.repeat(shift, lengths)
    masses = np.exp(logits)
    cls_masses = np.exp(cls_logit - shift)
    total = row_sums(masses, X.indptr) + cls_masses
    with np.errstate(divide="ignore"):
        log_masses = np.log(total) + shift
    total[total == 0] = 1.0
    masses /= np.repeat(total, lengths)
    return masses, log_masses


def probabilities(outputs: Array) -> Array:
    """Return the probability of each class, (n_documents, n_classes), in rows with sum 1.

    `outputs`, (n_documents, n_outputs), are decision values; one column has the log-odds of the
    second of two classes.
    """
    if outputs.shape[1] == 1:
        return np.hstack([expit(-outputs), expit(outputs)])
    return np.asarray(softmax(outputs, axis=1))


def log_probabilities(outputs: Array) -> Array:
    """Return the logarithms of :func:`probabilities`, (n_documents, n_classes)."""
    if outputs.shape[1] == 1:
        return np.hstack([log_expit(-outputs), log_expit(outputs)])
    return np.asarray(log_softmax(outputs, axis=1))


def select_tokens(scores: Array, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    r"""Return the (document, token) pairs with the highest score of their document.

    `scores` is (n_tokens,), `X` a CSR matrix without zeros; both arrays returned are (n_pairs,),
    rows and columns of `X` in ascending order. Scores within :data:`SELECTION_TOLERANCE` of a
    document's highest tie with it. The paper's
    :math:`S_X(p) = \{s \in X : p^\top E_s = \max_{s' \in X} p^\top E_{s'}\}`.
    """
    # 1) the entries whose scores are near their document's highest
    entry_scores = scores[X.indices]
    highest = reduced_rows(np.maximum, entry_scores, X.indptr, -np.inf)
    thresholds = highest - SELECTION_TOLERANCE
    # A document without tokens has no maximum, and selects nothing.
    thresholds[np.isneginf(thresholds)] = np.inf
    lengths = np.diff(X.indptr)
    is_near = entry_scores >= np.repeat(thresholds, lengths)
    entries = np.flatnonzero(is_near)
    # 2) their documents and tokens
    documents = np.searchsorted(X.indptr, entries, side="right") - 1
    tokens = X.indices[entries]
    return documents.astype(np.int64), tokens.astype(np.int64)


def selection(scores: Array, X: Any) -> sp.csr_array:
    """Return the pairs of :func:`select_tokens` as a boolean CSR array."""
    documents, tokens = select_tokens(scores, X)
    flags = np.ones(len(tokens), dtype=bool)
    return sp.csr_array(sp.coo_array((flags, (documents, tokens)), shape=X.shape))


def count_selected(scores: Array, bags: Bags) -> Numbers:
    """Return the number of documents that select each token (:func:`select_tokens`), (n_tokens,).

    A document's best token is the one of the lowest rank; only where it may tie with others are
    scores compared.
    """
    # 1) the tokens' ranks by score, and which tie with the next
    n_tokens = len(scores)
    by_rank = np.argsort(-scores).astype(np.int32)
    ranks = np.empty_like(by_rank)
    ranks[by_rank] = np.arange(n_tokens)
    descending = scores[by_rank]
    may_tie = np.append(descending[1:] >= descending[:-1] - SELECTION_TOLERANCE, False)
    if bags.tokens is not None:  # the best of a unit's tokens stands for it
        tokens = bags.tokens
        ranks = reduced_rows(np.minimum, ranks[tokens.indices], tokens.indptr, np.int32(n_tokens))

    def selected_in_block(block: tuple[slice, Any]) -> NDArray[Any]:
        """Return the tokens that the documents of a block select, once for each document."""
        rows, part = block
        documents = np.flatnonzero(np.diff(part.indptr))
        if not len(documents):
            return documents
        entry_ranks = ranks.take(part.indices, mode="clip")  # checks no bounds
        best = np.minimum.reduceat(entry_ranks, part.indptr[documents])
        has_tokens = best < n_tokens
        documents = documents[has_tokens]
        best = best[has_tokens]
        is_unclear = may_tie[best]
        clearly_selected = by_rank[best[~is_unclear]]
        unclear = bags[rows.start + documents[is_unclear]]
        _, selected = select_tokens(scores, unclear.matrix())
        return np.concatenate([clearly_selected, selected])

    # 2) the best tokens of documents, block by block
    selected = [by_rank[:0], *in_threads(selected_in_block, row_blocks(bags.units))]
    return np.bincount(np.concatenate(selected), minlength=n_tokens)


def in_the_layout_of(X: Any, data: NDArray[Any]) -> sp.csr_array:
    """Return a CSR array with these entries at the positions of those of the CSR matrix `X`."""
    # Copies: sorting a shared index array in place would change the caller's X.
    arrays = data, X.indices.copy(), X.indptr.copy()
    return sp.csr_array(arrays, shape=X.shape)
