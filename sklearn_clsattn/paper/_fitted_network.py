"""Fitted networks as NumPy arrays, without PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from .._bags import Bags
from .._types import Array, Numbers
from ..training.fitted_model import FittedAttention, in_the_layout_of

AnyPrecision = NDArray[np.floating[Any]]


class _AttendedDocument(NamedTuple):
    """A document as the last layer pools it.

    row : of X
    entries : (n,), of the document's tokens in the data of X
    pooling : (n,), attention of ``<cls>`` to the tokens
    states : (n, m), what is pooled: linear functions of the tokens' states h
    """

    row: int
    entries: Numbers
    pooling: Array
    states: Array


@dataclass(frozen=True)
class FittedNetwork(FittedAttention):
    """A fitted network of one or two layers of attention, with or without an MLP.

    `layers` has what a plain layer lacks, by the names of :class:`AttentionNetwork`: matrices (d,
    d) and a bias (d,). Scores are E.p, or for two layers E.W_2' p; with an MLP, values are no more
    than a diagnostic. Documents are computed one by one in double precision, so
    that their results do not depend on each other.
    """

    layers: dict[str, AnyPrecision] = field(default_factory=dict)

    def outputs(self, bags: Bags) -> Array:
        """Return the decision values f of bags, (n_documents, n_outputs)."""
        if not self.layers:
            return super().outputs(bags)
        # 1) attention pools embeddings for the MLP, and else values
        vectors = self._embedding_matrix().astype(np.float64) if self.mlp else self.values
        pooled = np.zeros((len(bags), vectors.shape[1]))
        for document in self._documents(bags.units, vectors):
            pooled[document.row] = document.pooling @ document.states
        # 2) the hidden layer
        if self.mlp:
            assert self.embeddings is not None
            weights = self.layers["hidden_weights"].astype(np.float64)
            bias = self.layers["hidden_bias"].astype(np.float64)
            output = self.layers["hidden_output"].astype(np.float64)
            hidden = np.maximum(pooled @ weights.T + bias, 0)
            pooled = hidden @ (self.embeddings.output_vectors @ output).T
        return pooled + self.intercept

    def attention(self, X: Any) -> sp.csr_array:
        """Return the weights with which ``<cls>`` pools, in the layout of the CSR matrix `X`."""
        if self.n_layers == 1:
            return super().attention(X)
        pooling = np.zeros(len(X.data))
        for document in self._documents(X, self.values):
            pooling[document.entries] = document.pooling
        return in_the_layout_of(X, pooling)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return the contributions of tokens, one CSR array per output, laid out like `X`."""
        if self.mlp:
            raise ValueError(
                "With mlp=True the decision is not a sum over tokens, so there are no "
                "contributions: use attention(X), or a model with mlp=False."
            )
        if self.n_layers == 1:
            return super().contributions(X)
        contributions = np.zeros((self.values.shape[1], len(X.data)))
        for document in self._documents(X, self.values):
            terms = document.pooling[:, None] * document.states
            contributions[:, document.entries] = terms.T
        return [in_the_layout_of(X, entries) for entries in contributions]

    def _documents(self, X: Any, vectors: Array) -> Iterator[_AttendedDocument]:
        """Yield the documents that have tokens.

        `vectors`, (n_tokens, m), are the embeddings or linear functions of them.
        """
        scores_and_vectors = np.column_stack([self.scores, vectors])
        for row in range(X.shape[0]):
            start, stop = X.indptr[row : row + 2]
            entries = start + np.flatnonzero(X.data[start:stop] > 0)
            if not len(entries):
                continue
            tokens = X.indices[entries]
            log_weights = np.log(X.data[entries], dtype=np.float64)
            states = scores_and_vectors[tokens]
            # 1) the first layer, with its residual
            if self.n_layers == 2:
                rows = self._embedding_matrix()[tokens].astype(np.float64)
                logits = rows @ self.layers["first_key_query"] @ rows.T
                attention = softmax(logits + log_weights, axis=1)
                states = states + attention @ states
            # 2) attention of the last layer
            logits = states[:, 0] + log_weights
            if self.cls_weight:
                logits = np.append(logits, np.log(self.cls_weight))
            pooling = softmax(logits)[: len(entries)]
            yield _AttendedDocument(row, entries, pooling, states[:, 1:])

    def _embedding_matrix(self) -> AnyPrecision:
        """Return E, (n_tokens, d)."""
        assert self.embeddings is not None
        return self.embeddings.matrix
