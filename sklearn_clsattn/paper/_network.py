r"""The paper's deeper ablations as a PyTorch module on bags of distinct tokens, and its training.

``docs/theory.md`` has the formulas. Equal tokens have equal states :math:`h_i`, so that distinct
tokens with their weights are the whole document. With a document's attention A between tokens in
the first layer and q of ``<cls>`` in the last, the scores and what ``<cls>`` pools, o, are linear
in the :math:`h_i`. So A multiplies single numbers per token, never embeddings: with
:math:`r = E W_2^\top p`,

.. math:: p^\top W_2 h_i = r_i + (A r)_i, \qquad o = \sum_j (q + A^\top q)_j E_j .

A is the softmax of :math:`E W_1 E^\top` plus the logarithms of the token weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from ..training.documents import Documents
from ..training.fitted_model import FitResult, StoredEmbeddings
from ..training.output_loss import target_array
from ..training.products import to_array
from ._fitted_network import FittedNetwork
from ._trainer import FitOptions, draw_embeddings, split_documents, train

# A group has documents of at least this fraction of its longest one's tokens, for less padding ...
_FULLNESS = 0.8
# ... and so many tokens and, with two layers, pairs of tokens at most, unless one has more.
_GROUP_TOKENS = 20_000
_GROUP_PAIRS = 4_000_000
_DOCUMENTS_AT_ONCE = 256  # where no gradient is computed


@dataclass(frozen=True)
class PaddedDocuments:
    """Documents as the network reads them, in groups that are padded to one length each.

    tokens : (n_distinct,), the columns that occur, ascending
    groups : for each group the positions in `tokens`, (n_group, longest), and the logarithms of the
        token weights, -inf in the padding
    targets, weights : of the documents, group after group
    """

    tokens: torch.Tensor
    groups: list[tuple[torch.Tensor, torch.Tensor]]
    targets: torch.Tensor
    weights: torch.Tensor


def pad_documents(
    documents: Documents, dtype: torch.dtype, device: torch.device
) -> PaddedDocuments:
    """Return documents in groups of similar length."""
    X = documents.bags.units
    order = np.argsort(-np.diff(X.indptr), kind="stable")
    X = X[order]
    lengths = np.diff(X.indptr)
    tokens, positions = np.unique(X.indices, return_inverse=True)
    groups = []
    start = 0
    while start < len(lengths):
        # 1) how many documents are in the group
        longest = int(lengths[start])
        n_full = np.searchsorted(-lengths, -_FULLNESS * longest, side="right") - start
        size = max(longest, 1)
        limit = min(_GROUP_TOKENS // size, _GROUP_PAIRS // size**2)
        stop = start + min(int(n_full), max(1, limit))
        # 2) their entries, padded
        is_token = np.arange(longest) < lengths[start:stop, None]
        entries = slice(X.indptr[start], X.indptr[stop])
        padded_positions = np.zeros(is_token.shape, dtype=np.int64)
        padded_positions[is_token] = positions[entries]
        log_weights = np.full(is_token.shape, -np.inf)
        log_weights[is_token] = np.log(X.data[entries], dtype=np.float64)
        group = (
            torch.from_numpy(padded_positions).to(device),
            torch.from_numpy(log_weights).to(dtype).to(device),
        )
        groups.append(group)
        start = stop
    return PaddedDocuments(
        tokens=torch.from_numpy(tokens.astype(np.int64)).to(device),
        groups=groups,
        targets=torch.from_numpy(target_array(documents.targets[order])).to(device),
        weights=torch.from_numpy(documents.weights[order]).to(device),
    )


class AttentionNetwork(torch.nn.Module):
    """One or two layers of attention, with or without an MLP.

    `start` are E, (n_tokens, d), p, (d,), and the output vectors, (n_outputs, d), which are trained
    in place; `generator`, on the CPU, draws the MLP's start.
    """

    def __init__(
        self,
        start: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        *,
        intercept: torch.Tensor | None = None,
        n_layers: int = 1,
        mlp: bool = False,
        cls_weight: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.cls_weight = cls_weight
        self.n_layers = n_layers
        self.mlp = mlp
        self.E, self.p, self.v = map(torch.nn.Parameter, start)
        self.intercept = None if intercept is None else torch.nn.Parameter(intercept.clone())
        self.layers = torch.nn.ParameterDict()  # whose tensors become parameters
        dim = len(self.p)
        if n_layers == 2:
            identity = torch.eye(dim).to(self.E)
            self.layers["first_key_query"] = torch.zeros_like(identity)  # uniform attention
            self.layers["second_key_query"] = identity
        if mlp:
            shape = dim, dim
            into = torch.randn(shape, generator=generator, dtype=torch.float64) * (2 / dim) ** 0.5
            out = torch.randn(shape, generator=generator, dtype=torch.float64) * (1 / dim) ** 0.5
            self.layers["hidden_weights"] = into.to(self.E)
            self.layers["hidden_bias"] = torch.zeros_like(self.p)
            self.layers["hidden_output"] = out.to(self.E)

    def forward(self, documents: PaddedDocuments) -> torch.Tensor:
        """Return the outputs f, (n_documents, n_outputs), in the padded documents' order."""
        # 1) attention, which pools embeddings for the MLP, else one number per output
        rows = self.E.index_select(0, documents.tokens)
        scores = rows @ self._direction()  # r of the module's docstring
        pooled_rows = rows if self.mlp else rows @ self.v.T
        pooled = []
        for positions, log_weights in documents.groups:
            weights = self._pooling_weights(rows, scores, positions, log_weights)
            pooled.append((weights @ F.embedding(positions, pooled_rows))[:, 0])
        outputs = torch.cat(pooled)
        # 2) the hidden layer
        if self.mlp:
            weights = self.layers["hidden_weights"]
            hidden = torch.relu(F.linear(outputs, weights, self.layers["hidden_bias"]))
            outputs = F.linear(hidden, self.v @ self.layers["hidden_output"])
        return outputs if self.intercept is None else outputs + self.intercept

    def _pooling_weights(
        self,
        rows: torch.Tensor,
        scores: torch.Tensor,
        positions: torch.Tensor,
        log_weights: torch.Tensor,
    ) -> torch.Tensor:
        """Return the weights of tokens in the sum of their embeddings, (n_group, 1, longest)."""
        logits = scores[positions] + log_weights
        # 1) r + A r: scores after the first layer
        if self.n_layers == 2:
            embeddings = F.embedding(positions, rows)
            A = embeddings @ self.layers["first_key_query"] @ embeddings.transpose(1, 2)
            A = torch.softmax(A + log_weights[:, None], dim=2)
            attended_scores = A @ scores[positions][:, :, None]
            logits = logits + attended_scores[:, :, 0]
        # 2) attention q of the last layer
        if self.cls_weight:
            cls = logits.new_full((len(logits), 1), self.cls_weight).log()
            logits = torch.cat([logits, cls], dim=1)
        q = torch.softmax(logits, dim=1)[:, None, : positions.shape[1]]
        # 3) q + A' q
        return q + q @ A if self.n_layers == 2 else q

    def _direction(self) -> torch.Tensor:
        """Return W_2' p, (d,), or p: its product with a token's embedding is its score."""
        return self.p @ self.layers["second_key_query"] if self.n_layers == 2 else self.p

    def make_batch(self, documents: Documents) -> PaddedDocuments:
        """Return documents as the network reads them, with their targets and weights."""
        return pad_documents(documents, self.E.dtype, self.E.device)

    def evaluation_batches(self, documents: Documents) -> Iterator[PaddedDocuments]:
        """Yield documents of positive weight, those of similar length together."""
        present = np.flatnonzero(documents.weights)
        lengths = np.diff(documents.bags.units.indptr)[present]
        rows = present[np.argsort(lengths, kind="stable")]
        for first in range(0, len(rows), _DOCUMENTS_AT_ONCE):
            yield self.make_batch(documents.rows(rows[first : first + _DOCUMENTS_AT_ONCE]))

    def backward(self, batch: PaddedDocuments, weight: float) -> float:
        """Set the gradients of the loss, divided by a weight; return this loss."""
        loss = self._loss(batch) / weight
        loss.backward()
        return float(loss.detach())

    @torch.no_grad()
    def sum_of_losses(self, batch: PaddedDocuments) -> float:
        """Return the weighted sum of the documents' losses."""
        return float(self._loss(batch))

    def _loss(self, batch: PaddedDocuments) -> torch.Tensor:
        """Return the weighted sum of the documents' losses, ()."""
        outputs = self(batch).to(torch.float64)
        if outputs.shape[1] == 1:
            losses = -F.logsigmoid(batch.targets * outputs)[:, 0]
        else:
            losses = F.cross_entropy(outputs, batch.targets, reduction="none")
        return torch.dot(losses, batch.weights)

    @torch.no_grad()
    def to_numpy(self) -> FittedNetwork:
        """Return the present network as copies in NumPy."""
        intercept = self.v.new_zeros(len(self.v)) if self.intercept is None else self.intercept
        embeddings = self.E.cpu().numpy().copy()
        layers = {}
        for name, layer in self.layers.items():
            layers[name] = layer.cpu().numpy().copy()
        return FittedNetwork(
            scores=to_array(self.E @ self._direction()),
            values=to_array(self.E @ self.v.T),
            intercept=to_array(intercept),
            cls_weight=self.cls_weight,
            cls_score=0.0 if self.cls_weight else -np.inf,
            embeddings=StoredEmbeddings(to_array(self.p), to_array(self.v), embeddings),
            n_layers=self.n_layers,
            mlp=self.mlp,
            layers=layers,
        )


def fit_network(documents: Documents, classifier: Any, options: FitOptions) -> FitResult:
    """Train a network of attention layers by Adam on mini-batches of documents."""
    trained_on, held_out = split_documents(documents, classifier, options.seed)
    intercept = None
    if classifier.fit_intercept:
        log_odds = trained_on.statistics.class_log_odds
        intercept = torch.from_numpy(log_odds).to(options.device, options.precision)
    start = draw_embeddings(
        documents.shape[1],
        documents.targets.n_outputs,
        classifier.embedding_dim,
        seed=options.seed,
        dtype=options.precision,
        device=options.device,
    )
    network = AttentionNetwork(
        start,
        intercept=intercept,
        n_layers=classifier.n_layers,
        mlp=classifier.mlp,
        cls_weight=documents.statistics.cls_weight if classifier.attend_cls else 0.0,
        generator=torch.Generator().manual_seed(options.seed + 1),  # other numbers than E's
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=classifier.learning_rate, fused=True)
    return train(network, optimizer, trained_on, held_out, classifier, options)
