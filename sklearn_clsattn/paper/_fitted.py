"""What fitted models of this folder hold beside scores and values: NumPy arrays, no PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from .._core.fitted import FittedAttention, in_the_layout_of, most_probable

Array = NDArray[np.float64]
AnyPrecision = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class StoredEmbeddings:
    """Token embeddings, p and the output vectors of a model in d dimensions."""

    cls_embedding: Array  # (d,)
    output_vectors: Array  # (n_outputs, d)
    matrix: AnyPrecision  # (n_tokens, d)

    def token_embeddings(self) -> AnyPrecision:
        """Return E."""
        return self.matrix


@dataclass(frozen=True)
class FittedNetwork:
    """A fitted network of one or two layers of attention, with or without an MLP.

    Documents are computed one by one in double precision, so that their results do not depend on
    each other.
    """

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
        p = self.cls_embedding
        direction = p if self.second_key_query is None else p @ self.second_key_query
        return np.asarray(self.embedding_matrix @ direction, dtype=np.float64)

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
        X = sp.csr_array(X)
        pooled = np.zeros((X.shape[0], self.output_vectors.shape[1] if self.mlp else self._k))
        for document, _, weights, states in self._documents(X):
            pooled[document] = weights @ states
        if self.mlp:
            hidden = pooled @ _double(self.hidden_weights).T + _double(self.hidden_bias)
            readout = _double(self.output_vectors) @ _double(self.hidden_output)
            pooled = np.maximum(hidden, 0) @ readout.T
        return pooled + self.intercept

    def most_probable(self, X: Any) -> NDArray[np.intp]:
        """Return the number of every document's most probable class."""
        return most_probable(self.outputs(X))

    def attention(self, X: Any) -> sp.csr_array:
        """Return the weights with which ``<cls>`` pools, in the layout of the CSR matrix `X`."""
        if self.n_layers == 1:
            return self._one_layer().attention(X)
        pooling = np.zeros(len(X.data))
        for _, entries, weights, _ in self._documents(X):
            pooling[entries] = weights
        return in_the_layout_of(X, pooling)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return what each token adds to each output, one CSR array per output, laid out as `X`."""
        if self.mlp:
            raise ValueError(
                "With an MLP after the pooling the decision is no sum over tokens, so that there "
                "are no contributions; use attention(X), or a model with mlp=False."
            )
        if self.n_layers == 1:
            return self._one_layer().contributions(X)
        contributions = np.zeros((self._k, len(X.data)))
        for _, entries, weights, states in self._documents(X):
            contributions[:, entries] = (weights[:, None] * states).T
        return [in_the_layout_of(X, of_output) for of_output in contributions]

    def selected(self, X: Any) -> sp.csr_array:
        """Return each document's tokens of the highest own score (`scores`) as boolean CSR."""
        return self._one_layer().selected(X)

    @property
    def _k(self) -> int:
        return len(self.output_vectors)

    def _one_layer(self) -> FittedAttention:
        return FittedAttention(self.scores, self.values, self.intercept, self.cls_weight, 0.0)

    def _documents(self, X: Any) -> Iterator[tuple[int, NDArray[np.intp], Array, Array]]:
        """Yield documents, their positive entries, the weights of the pooling, and their states h.

        States are whole where an MLP follows, else their products with the output vectors.
        """
        states = _double(self.embedding_matrix) if self.mlp else self.values
        carried = np.column_stack([self.scores, states])
        for document in range(X.shape[0]):
            start, stop = X.indptr[document : document + 2]
            entries = start + np.flatnonzero(X.data[start:stop] > 0)
            if not len(entries):
                continue
            tokens = X.indices[entries]
            log_weights = np.log(X.data[entries], dtype=np.float64)
            own = carried[tokens]
            if self.first_key_query is not None:
                rows = _double(self.embedding_matrix[tokens])
                table = softmax(rows @ self.first_key_query @ rows.T + log_weights, axis=1)
                own = own + table @ own
            logits = own[:, 0] + log_weights
            if self.cls_weight:
                logits = np.append(logits, np.log(self.cls_weight))
            yield document, entries, softmax(logits)[: len(entries)], own[:, 1:]


def _double(array: AnyPrecision | None) -> Array:
    return np.asarray(array, dtype=np.float64)
