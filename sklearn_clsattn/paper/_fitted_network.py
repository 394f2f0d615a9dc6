"""Fitted networks as NumPy arrays, without PyTorch."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from .._core.fitted import FittedAttention, in_the_layout_of, most_probable
from .._types import Array

AnyPrecision = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class FittedNetwork(FittedAttention):
    """A fitted network of one or two layers of attention, with or without an MLP.

    `layers` has what a plain layer lacks, by the names of :class:`AttentionNetwork`: matrices (d,
    d) and a bias (d,). Scores are the tokens' own, E.p or for two layers E.W_2' p; with an MLP,
    values are no more than a diagnostic. Documents are computed one by one in double precision, so
    that their results do not depend on each other.
    """

    layers: dict[str, AnyPrecision] = field(default_factory=dict)

    def outputs(self, X: Any) -> Array:
        """Return the decision values f, (n_documents, n_outputs), of a CSR matrix."""
        if not self.layers:
            return super().outputs(X)
        states = self._embedding_matrix().astype(np.float64) if self.mlp else self.values
        pooled = np.zeros((X.shape[0], states.shape[1]))
        for document, _, weights, of_tokens in self._documents(sp.csr_array(X), states):
            pooled[document] = weights @ of_tokens
        if self.mlp:
            assert self.embeddings is not None
            into, bias, out = (
                self.layers[f"hidden_{name}"].astype(np.float64)
                for name in ("weights", "bias", "output")
            )
            pooled = np.maximum(pooled @ into.T + bias, 0)
            pooled = pooled @ (self.embeddings.output_vectors @ out).T
        return pooled + self.intercept

    def most_probable(self, X: Any) -> NDArray[np.intp]:
        """Return the number of every document's most probable class."""
        return most_probable(self.outputs(X))

    def attention(self, X: Any) -> sp.csr_array:
        """Return the weights with which ``<cls>`` pools, in the layout of the CSR matrix `X`."""
        if self.n_layers == 1:
            return super().attention(X)
        pooling = np.zeros(len(X.data))
        for _, entries, weights, _ in self._documents(X, self.values):
            pooling[entries] = weights
        return in_the_layout_of(X, pooling)

    def contributions(self, X: Any) -> list[sp.csr_array]:
        """Return what each token adds to each output, one CSR array per output, laid out as `X`."""
        if self.mlp:
            raise ValueError(
                "With mlp=True the decision is not a sum over tokens, so there are no "
                "contributions: use attention(X), or a model with mlp=False."
            )
        if self.n_layers == 1:
            return super().contributions(X)
        contributions = np.zeros((self.values.shape[1], len(X.data)))
        for _, entries, weights, of_tokens in self._documents(X, self.values):
            contributions[:, entries] = (weights[:, None] * of_tokens).T
        return [in_the_layout_of(X, of_output) for of_output in contributions]

    def _documents(
        self, X: Any, states: Array
    ) -> Iterator[tuple[int, NDArray[np.intp], Array, Array]]:
        """Yield documents, their positive entries, the weights of the pooling, and their states.

        `states`, (n_tokens, n), are the embeddings or linear functions of them.
        """
        carried = np.column_stack([self.scores, states])
        for document in range(X.shape[0]):
            start, stop = X.indptr[document : document + 2]
            entries = start + np.flatnonzero(X.data[start:stop] > 0)
            if not len(entries):
                continue
            tokens = X.indices[entries]
            log_weights = np.log(X.data[entries], dtype=np.float64)
            own = carried[tokens]
            if self.n_layers == 2:
                rows = self._embedding_matrix()[tokens].astype(np.float64)
                table = rows @ self.layers["first_key_query"] @ rows.T
                own = own + softmax(table + log_weights, axis=1) @ own
            logits = own[:, 0] + log_weights
            if self.cls_weight:
                logits = np.append(logits, np.log(self.cls_weight))
            yield document, entries, softmax(logits)[: len(entries)], own[:, 1:]

    def _embedding_matrix(self) -> AnyPrecision:
        assert self.embeddings is not None
        return self.embeddings.matrix
