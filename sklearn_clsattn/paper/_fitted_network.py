"""A fitted network (:mod:`sklearn_clsattn.paper._network`): NumPy arrays, without PyTorch.

Documents are computed one by one, so that their results do not depend on each other. The first
layer is computed in the precision of the arrays, pooling and sums in double precision.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._core.fitted import FittedAttention, in_the_layout_of, most_probable
from ._embedding_source import StoredEmbeddings

Array = NDArray[np.float64]
AnyPrecision = NDArray[np.floating[Any]]

_BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True)
class FittedNetwork:
    """A fitted network of one or two layers of attention, with or without an MLP."""

    embedding_matrix: AnyPrecision  # (n_tokens, d), E
    cls_embedding: AnyPrecision  # (d,), p
    output_vectors: AnyPrecision  # (n_outputs, d), the v_k; one for two classes
    intercept: Array  # (n_outputs,), 0 in a model without intercepts
    cls_weight: float  # of <cls> in the pooling; 0 leaves it out
    first_key_query: AnyPrecision | None = None  # (d, d), W_1; None for one layer
    second_key_query: AnyPrecision | None = None  # (d, d), W_2
    hidden_weights: AnyPrecision | None = None  # (d, d), A_1; None without an MLP
    hidden_bias: AnyPrecision | None = None  # (d,), c
    hidden_output: AnyPrecision | None = None  # (d, d), A_2

    @property
    def n_layers(self) -> int:
        """Layers of attention, 1 or 2."""
        return 1 if self.first_key_query is None else 2

    @property
    def mlp(self) -> bool:
        """Whether an MLP follows the pooling."""
        return self.hidden_weights is not None

    @property
    def scores(self) -> Array:
        """The tokens' own attention scores, shape (n_tokens,): E.p, or E.W_2' p for two layers."""
        return np.asarray(self.embedding_matrix @ self._direction(), dtype=np.float64)

    @property
    def values(self) -> Array:
        """The token values E.v_k, (n_tokens, n_outputs); with an MLP no more than a diagnostic."""
        return np.asarray(self.embedding_matrix @ self.output_vectors.T, dtype=np.float64)

    @property
    def cls_score(self) -> float:
        """Attention score of ``<cls>``: 0, or -inf without it."""
        return 0.0 if self.cls_weight else -np.inf

    @property
    def embeddings(self) -> StoredEmbeddings:
        """Embeddings, p and the output vectors, the latter two in double precision."""
        p, v = _double(self.cls_embedding), _double(self.output_vectors)
        return StoredEmbeddings(p, v, self.embedding_matrix)

    def outputs(self, X: Any) -> Array:
        """Return the decision values f, (n_documents, n_outputs), of a CSR matrix."""
        if self.n_layers == 1 and not self.mlp:
            return self._one_layer().outputs(X)
        outputs = np.empty((X.shape[0], len(self.intercept)))
        size = max(1, _BLOCK_ENTRIES // self.embedding_matrix.shape[1])
        for first in range(0, X.shape[0], size):
            block = X[first : first + size]
            pooled = self._pooled(block)
            if self.mlp:
                hidden = pooled @ _double(self.hidden_weights).T + _double(self.hidden_bias)
                hidden_vectors = _double(self.output_vectors) @ _double(self.hidden_output)
                pooled = np.maximum(hidden, 0) @ hidden_vectors.T
            outputs[first : first + size] = pooled + self.intercept
        return outputs

    def most_probable(self, X: Any) -> NDArray[np.intp]:
        """Return the number of every document's most probable class."""
        return most_probable(self.outputs(X))

    def attention(self, X: Any) -> sp.csr_array:
        """Return the weights with which ``<cls>`` pools, in the layout of the CSR matrix `X`."""
        if self.n_layers == 1:
            return self._one_layer().attention(X)
        weights = np.zeros(len(X.data))
        for entries, pooling, _ in self._two_layers(X):
            weights[entries] = pooling
        return in_the_layout_of(X, weights)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return what each token adds to each output, one CSR array per output, laid out as `X`."""
        if self.mlp:
            raise ValueError(
                "With an MLP after the pooling the decision is no sum over tokens, so that there "
                "are no contributions; use attention(X), or a model with mlp=False."
            )
        if self.n_layers == 1:
            return self._one_layer().contributions(X)
        terms = np.zeros((len(self.intercept), len(X.data)))
        for entries, pooling, values in self._two_layers(X):
            terms[:, entries] = (pooling[:, None] * values).T
        return [in_the_layout_of(X, of_output) for of_output in terms]

    def selected(self, X: Any) -> sp.csr_array:
        """Return each document's tokens of the highest own score (`scores`) as boolean CSR."""
        return self._one_layer().selected(X)

    def _direction(self) -> AnyPrecision:
        if self.second_key_query is None:
            return self.cls_embedding
        return self.cls_embedding @ self.second_key_query

    def _one_layer(self) -> FittedAttention:
        return FittedAttention(self.scores, self.values, self.intercept, self.cls_weight, 0.0)

    def _pooled(self, X: Any) -> Array:
        """Return what reaches the output: o where an MLP follows, else its products with v_k."""
        if self.n_layers == 1:
            return np.asarray(self._one_layer().attention(X) @ _double(self.embedding_matrix))
        columns = self.embedding_matrix if self.mlp else self.output_vectors
        pooled = np.zeros((X.shape[0], columns.shape[1] if self.mlp else len(columns)))
        documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        for entries, pooling, rows in self._two_layers(X):
            pooled[documents[entries[0]]] = pooling @ rows
        return pooled

    def _two_layers(self, X: Any) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
        """Yield each document's positive entries, their pooling weights, and their h.

        In full where an MLP follows, else its products with the output vectors.
        """
        tokens, places = np.unique(X.indices, return_inverse=True)
        rows = self.embedding_matrix[tokens]
        queries = rows @ self.first_key_query
        own = rows if self.mlp else rows @ self.output_vectors.T
        carried = np.column_stack([rows @ self._direction(), own])
        with np.errstate(divide="ignore"):
            log_weights = np.log(X.data, dtype=np.float64)
            log_cls_weight = np.log(np.float64(self.cls_weight))
        for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True):
            entries = start + np.flatnonzero(X.data[start:stop] > 0)
            if not len(entries):
                continue
            at = places[entries]
            mixed = _attended(queries[at], rows[at], log_weights[entries], carried[at])
            logits = mixed[:, 0] + log_weights[entries]
            highest = max(logits.max(), log_cls_weight)
            masses = np.exp(logits - highest)
            total = masses.sum() + np.exp(log_cls_weight - highest)
            yield entries, masses / total, mixed[:, 1:]


def _attended(
    queries: AnyPrecision, keys: AnyPrecision, log_weights: Array, carried: AnyPrecision
) -> Array:
    """Return `carried`, (L, m), plus its mean under every token's attention, block by block."""
    sums = np.empty_like(carried)
    size = max(1, _BLOCK_ENTRIES // len(keys))
    weights = log_weights.astype(keys.dtype)
    for first in range(0, len(keys), size):
        table = queries[first : first + size] @ keys.T
        table += weights
        table -= table.max(axis=1, keepdims=True)
        np.exp(table, out=table)
        table /= table.sum(axis=1, keepdims=True)
        np.matmul(table, carried, out=sums[first : first + size])
    sums += carried
    return sums.astype(np.float64)


def _double(array: AnyPrecision | None) -> Array:
    return np.asarray(array, dtype=np.float64)
