r"""The paper's deeper ablations as a PyTorch module on bags of distinct tokens.

``docs/theory.md`` has the formulas. Equal tokens have equal states :math:`h_i`, so that distinct
tokens with their weights are the whole document. Every output is linear in the :math:`h_i`, so the
first layer's matrices A multiply single numbers per token, never embeddings: with
:math:`r = E W_2^\top p`,

.. math:: p^\top W_2 h_i = r_i + (A r)_i, \qquad o = \sum_j (q + A^\top q)_j E_j .

What remains of order :math:`L^2 d` for a document of L distinct tokens is :math:`E W_1 E^\top`.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch.autograd.function import once_differentiable

from ..theory._gradient_step import RandomEmbeddings
from ._batches import DocumentBatch
from ._fitted_network import FittedNetwork


class AttentionNetwork(torch.nn.Module):
    """One or two layers of attention, with or without an MLP.

    Embeddings, p and output vectors start at `start` and are trained in place; `generator`, on the
    CPU, draws the MLP's start. Parameters are named as in :class:`FittedNetwork`.
    """

    def __init__(
        self,
        start: RandomEmbeddings,
        *,
        intercept: torch.Tensor | None = None,
        n_layers: int = 1,
        mlp: bool = False,
        cls_weight: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if n_layers not in (1, 2):
            raise ValueError(f"n_layers must be 1 or 2, got {n_layers!r}.")
        dim = len(start.cls_embedding)

        def square(scale: float) -> torch.nn.Parameter:
            numbers = torch.randn(dim, dim, generator=generator, dtype=torch.float64) * scale
            return torch.nn.Parameter(numbers.to(start.embeddings))

        self.cls_weight = cls_weight
        self.embeddings = torch.nn.Parameter(start.embeddings)
        self.cls_embedding = torch.nn.Parameter(start.cls_embedding)
        self.output_vectors = torch.nn.Parameter(start.output_vectors)
        self.intercept = None if intercept is None else torch.nn.Parameter(intercept.clone())
        self.first_key_query = self.second_key_query = None
        self.hidden_weights = self.hidden_bias = self.hidden_output = None
        if n_layers == 2:
            identity = torch.eye(dim).to(start.embeddings)
            self.first_key_query = torch.nn.Parameter(torch.zeros_like(identity))
            self.second_key_query = torch.nn.Parameter(identity)
        if mlp:
            self.hidden_weights = square((2 / dim) ** 0.5)
            self.hidden_bias = torch.nn.Parameter(torch.zeros_like(start.cls_embedding))
            self.hidden_output = square((1 / dim) ** 0.5)

    def forward(self, batch: DocumentBatch, rows: torch.Tensor | None = None) -> torch.Tensor:
        """Return the outputs f, (n_documents, n_outputs)."""
        if rows is None:
            rows = self.embeddings[batch.tokens]
        direction: torch.Tensor = self.cls_embedding
        if self.second_key_query is not None:
            direction = direction @ self.second_key_query
        scores = rows @ direction
        # What is pooled: embeddings where an MLP follows, else their values.
        pooled_rows = rows if self.hidden_weights is not None else rows @ self.output_vectors.T
        queries = None if self.first_key_query is None else rows @ self.first_key_query
        logits = F.embedding(batch.positions, scores[:, None])[:, 0]
        if queries is None:
            weights = [
                _cls_attention(group, self.cls_weight)
                for group in batch.split(logits + batch.log_weights)
            ]
        else:
            weights = [
                _TwoLayerWeights.apply(*group, self.cls_weight)
                for group in zip(
                    batch.split(F.embedding(batch.positions, queries)),
                    batch.split(F.embedding(batch.positions, rows)),
                    batch.split(logits),
                    batch.split(batch.log_weights),
                    strict=True,
                )
            ]
        of_tokens = batch.split(F.embedding(batch.positions, pooled_rows))
        sums = [
            torch.bmm(weight[:, None], values)[:, 0]
            for weight, values in zip(weights, of_tokens, strict=True)
        ]
        # Documents without tokens keep 0.
        pooled = rows.new_zeros(batch.n_documents, pooled_rows.shape[1])
        pooled = pooled.index_copy(0, batch.documents, torch.cat([pooled[:0], *sums]))
        if self.hidden_weights is not None and self.hidden_output is not None:
            hidden = torch.relu(F.linear(pooled, self.hidden_weights, self.hidden_bias))
            pooled = F.linear(hidden, self.output_vectors @ self.hidden_output)
        return pooled if self.intercept is None else pooled + self.intercept

    def to_numpy(self) -> FittedNetwork:
        """Return the present network as copies in NumPy."""

        def array(tensor: torch.Tensor) -> NDArray[np.floating[Any]]:
            return np.array(tensor.detach().cpu().numpy())

        def array_or_none(tensor: torch.Tensor | None) -> NDArray[np.floating[Any]] | None:
            return None if tensor is None else array(tensor)

        n_outputs = len(self.output_vectors)
        return FittedNetwork(
            embedding_matrix=array(self.embeddings),
            cls_embedding=array(self.cls_embedding),
            output_vectors=array(self.output_vectors),
            intercept=np.zeros(n_outputs)
            if self.intercept is None
            else array(self.intercept).astype(np.float64),
            cls_weight=self.cls_weight,
            first_key_query=array_or_none(self.first_key_query),
            second_key_query=array_or_none(self.second_key_query),
            hidden_weights=array_or_none(self.hidden_weights),
            hidden_bias=array_or_none(self.hidden_bias),
            hidden_output=array_or_none(self.hidden_output),
        )


def _cls_attention(logits: torch.Tensor, cls_weight: float) -> torch.Tensor:
    """Return the softmax of every row with ``<cls>``, whose own share is left out."""
    if not cls_weight:
        return torch.softmax(logits, dim=1)
    cls = logits.new_full((len(logits), 1), cls_weight).log()
    return torch.softmax(torch.cat([logits, cls], dim=1), dim=1)[:, :-1]


class _TwoLayerWeights(torch.autograd.Function):
    r"""The weights m = q + A' q with which a document's embeddings enter o (module docstring).

    In closed form because the matrices A are large: autograd would pass over them some ten times
    more, and keep three of each. With the gradient :math:`\dot m` of the loss,

    .. math::

        \dot q = \dot m + A \dot m, \quad
        \dot l_i = q_i (\dot q_i - q^\top \dot q), \quad
        \dot r = \dot l + A^\top \dot l, \quad
        \dot S_{ij} = A_{ij} \big( q_i (\dot m_j - (A \dot m)_i)
            + \dot l_i (r_j - (A r)_i) \big),

    where l are the pooling logits and :math:`S = E W_1 E^\top` the first layer's. In the padding q
    and the columns of A are 0, and so is the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: torch.Tensor,
        keys: torch.Tensor,
        scores: torch.Tensor,
        log_weights: torch.Tensor,
        cls_weight: float,
    ) -> torch.Tensor:
        table = torch.bmm(queries, keys.transpose(1, 2))
        table += log_weights[:, None]
        # In place on the CPU, where fresh memory of this size costs more than the softmax.
        table = torch.softmax(table, dim=2, out=table if table.is_cpu else None)
        attended = _times(table, scores)
        pooling = _cls_attention(scores + attended + log_weights, cls_weight)
        ctx.save_for_backward(queries, keys, scores, table, attended, pooling)
        return pooling + _times_transposed(table, pooling)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        queries, keys, scores, table, attended, pooling = ctx.saved_tensors
        of_values = _times(table, gradient)
        of_pooling = gradient + of_values
        of_logits = pooling * (of_pooling - (pooling * of_pooling).sum(dim=1, keepdim=True))
        of_scores = of_logits + _times_transposed(table, of_logits)
        subtracted = pooling * of_values + of_logits * attended
        of_table = torch.bmm(
            torch.stack([pooling, of_logits, -subtracted], dim=2),
            torch.stack([gradient, scores, torch.ones_like(scores)], dim=1),
        )
        of_table *= table
        of_queries = torch.bmm(of_table, keys)
        of_keys = torch.bmm(of_table.transpose(1, 2), queries)
        return of_queries, of_keys, of_scores, None, None


def _times(tables: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    return torch.bmm(tables, vectors[:, :, None])[:, :, 0]


def _times_transposed(tables: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    return torch.bmm(vectors[:, None], tables)[:, 0]
