r"""The paper's deeper ablations as a PyTorch module on bags of distinct tokens, and its training.

``docs/theory.md`` has the formulas. Equal tokens have equal states :math:`h_i`, so that distinct
tokens with their weights are the whole document. Every output is linear in the :math:`h_i`, so the
first layer's matrices A multiply single numbers per token, never embeddings: with
:math:`r = E W_2^\top p`,

.. math:: p^\top W_2 h_i = r_i + (A r)_i, \qquad o = \sum_j (q + A^\top q)_j E_j .
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .._core.documents import Documents
from .._core.loss import encode_targets
from .._core.result import Callback, FitResult
from .._core.statistics import class_log_odds
from ._fitted import FittedNetwork
from ._gradient_step import RandomEmbeddings, draw_embeddings
from ._training import Indices, epochs, hold_out, run_training, weighted_loss

# A group has documents of at least this share of its longest one's tokens, for less padding ...
_FULLNESS = 0.8
# ... and so many entries at most, of tokens and of matrices of attention between them.
_GROUP_TOKENS, _GROUP_PAIRS = 20_000, 4_000_000
_DOCUMENTS_AT_ONCE = 256  # where no gradient is computed


@dataclass(frozen=True)
class Batch:
    """Documents as the network reads them, in groups that are padded to one length each."""

    documents: Indices  # (n_documents,), rows of X, group after group
    tokens: torch.Tensor  # (n_distinct,), the columns of X that occur, ascending
    # For each group the positions in `tokens`, (n_group, longest), and the logarithms of the token
    # weights, -inf in the padding.
    groups: list[tuple[torch.Tensor, torch.Tensor]]


def make_batch(X: Any, documents: Indices, dtype: torch.dtype, device: torch.device | str) -> Batch:
    """Return rows of a CSR matrix without stored zeros as a batch, the longest documents first."""
    lengths = np.diff(X.indptr)[documents]
    documents = documents[np.argsort(-lengths, kind="stable")]
    rows = X[documents]
    lengths = np.diff(rows.indptr)
    tokens, positions = np.unique(rows.indices, return_inverse=True)
    groups, first = [], 0
    while first < len(lengths):
        longest = int(lengths[first])
        last = int(np.searchsorted(-lengths, -_FULLNESS * longest, side="right"))
        most = min(_GROUP_TOKENS // max(longest, 1), _GROUP_PAIRS // max(longest, 1) ** 2)
        last = min(last, first + max(1, most))
        real = np.arange(longest) < lengths[first:last, None]
        entries = slice(rows.indptr[first], rows.indptr[last])
        in_tokens = np.zeros(real.shape, dtype=np.int64)
        in_tokens[real] = positions[entries]
        log_weights = np.full(real.shape, -np.inf)
        log_weights[real] = np.log(rows.data[entries], dtype=np.float64)
        groups.append(
            (
                torch.from_numpy(in_tokens).to(device),
                torch.from_numpy(log_weights).to(device, dtype),
            )
        )
        first = last
    return Batch(documents, torch.from_numpy(tokens.astype(np.int64)).to(device), groups)


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
        dim = len(start.cls_embedding)

        def square(scale: float) -> torch.nn.Parameter:
            numbers = torch.randn(dim, dim, generator=generator, dtype=torch.float64) * scale
            return torch.nn.Parameter(numbers.to(start.embeddings))

        self.cls_weight, self.n_layers, self.mlp = cls_weight, n_layers, mlp
        self.embedding_matrix = torch.nn.Parameter(start.embeddings)
        self.cls_embedding = torch.nn.Parameter(start.cls_embedding)
        self.output_vectors = torch.nn.Parameter(start.output_vectors)
        if intercept is not None:
            self.intercept = torch.nn.Parameter(intercept.clone())
        if n_layers == 2:
            identity = torch.eye(dim).to(start.embeddings)
            self.first_key_query = torch.nn.Parameter(torch.zeros_like(identity))
            self.second_key_query = torch.nn.Parameter(identity)
        if mlp:
            self.hidden_weights = square((2 / dim) ** 0.5)
            self.hidden_bias = torch.nn.Parameter(torch.zeros_like(start.cls_embedding))
            self.hidden_output = square((1 / dim) ** 0.5)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the outputs f, (n_documents, n_outputs), in the order of `batch.documents`."""
        rows = self.embedding_matrix.index_select(0, batch.tokens)
        direction: torch.Tensor = self.cls_embedding
        if self.n_layers == 2:
            direction = direction @ self.second_key_query
        scores = rows @ direction
        pooled_rows = rows if self.mlp else rows @ self.output_vectors.T
        pooled = []
        for positions, log_weights in batch.groups:
            logits = scores[positions] + log_weights
            if self.n_layers == 2:
                keys = F.embedding(positions, rows)
                tables = keys @ self.first_key_query @ keys.transpose(1, 2)
                tables = torch.softmax(tables + log_weights[:, None], dim=2)
                logits = logits + (tables @ scores[positions][:, :, None])[:, :, 0]
            weights = _cls_attention(logits, self.cls_weight)[:, None]
            if self.n_layers == 2:
                weights = weights + weights @ tables
            pooled.append((weights @ F.embedding(positions, pooled_rows))[:, 0])
        outputs = torch.cat(pooled)
        if self.mlp:
            hidden = torch.relu(F.linear(outputs, self.hidden_weights, self.hidden_bias))
            outputs = F.linear(hidden, self.output_vectors @ self.hidden_output)
        return outputs + self.intercept if hasattr(self, "intercept") else outputs

    def to_numpy(self) -> FittedNetwork:
        """Return the present network as copies in NumPy."""
        arrays = {name: value.cpu().numpy().copy() for name, value in self.state_dict().items()}
        intercept = arrays.pop("intercept", np.zeros(len(self.output_vectors)))
        return FittedNetwork(
            **arrays, intercept=intercept.astype(np.float64), cls_weight=self.cls_weight
        )


def _cls_attention(logits: torch.Tensor, cls_weight: float) -> torch.Tensor:
    """Return the softmax of every row with ``<cls>``, whose own share is left out."""
    if not cls_weight:
        return torch.softmax(logits, dim=1)
    cls = logits.new_full((len(logits), 1), cls_weight).log()
    return torch.softmax(torch.cat([logits, cls], dim=1), dim=1)[:, :-1]


def fit_network(
    documents: Documents,
    classifier: Any,
    *,
    seed: int,
    dtype: type[np.floating[Any]],
    device: torch.device,
    callback: Callback,
) -> FitResult:
    """Train a network of attention layers by Adam on mini-batches of documents."""
    X, codes, n_classes = _positive_entries(documents.X), documents.codes, documents.n_classes
    weights, early_stopping = documents.weights, classifier.early_stopping
    precision = torch.float32 if dtype == np.float32 else torch.float64
    trained_on, held_out = np.arange(X.shape[0]), np.arange(0)
    if early_stopping:
        trained_on, held_out = hold_out(codes, weights, classifier.validation_fraction, seed)
    trained_on = trained_on[weights[trained_on] > 0]

    intercept = None
    if classifier.fit_intercept:
        totals = np.bincount(codes[trained_on], weights[trained_on], n_classes).astype(np.float64)
        intercept = torch.from_numpy(class_log_odds(totals)).to(device, precision)
    start = draw_embeddings(
        X.shape[1],
        documents.n_outputs,
        classifier.embedding_dim,
        seed=seed,
        dtype=precision,
        device=device,
        copies=5,  # with the gradient, Adam's two moments, and the best network
    )
    network = AttentionNetwork(
        start,
        intercept=intercept,
        n_layers=classifier.n_layers,
        mlp=classifier.mlp,
        cls_weight=documents.statistics.cls_weight if classifier.attend_cls else 0.0,
        generator=torch.Generator().manual_seed(seed + 1),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=classifier.learning_rate, fused=True)
    targets = encode_targets(codes, n_classes, device)
    sample_weight = torch.tensor(weights, dtype=torch.float64, device=device)

    def sum_of_losses(batch: Batch) -> torch.Tensor:
        rows = torch.from_numpy(batch.documents).to(device)
        return weighted_loss(network(batch).to(torch.float64), targets[rows], sample_weight[rows])

    @torch.no_grad()
    def mean_loss(batches: Iterator[Batch] | list[Batch], rows: Indices) -> float:
        return sum(float(sum_of_losses(one)) for one in batches) / weights[rows].sum()

    def batches(rows: Indices) -> Iterator[Batch]:
        """Yield documents of similar length together."""
        by_length = rows[np.argsort(np.diff(X.indptr)[rows], kind="stable")]
        for first in range(0, len(rows), _DOCUMENTS_AT_ONCE):
            some = by_length[first : first + _DOCUMENTS_AT_ONCE]
            yield make_batch(X, some, precision, device)

    def step_on(batch: Indices, weight: float) -> float:
        loss = sum_of_losses(make_batch(X, batch, precision, device)) / weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    validation = list(batches(held_out))  # every epoch needs them
    return run_training(
        classifier,
        list(network.parameters()),
        mean_loss(batches(trained_on), trained_on),
        epochs(step_on, trained_on, weights, classifier.batch_size, seed),
        (lambda: mean_loss(validation, held_out)) if early_stopping else None,
        network.to_numpy,
        learning_rate=classifier.learning_rate,
        unit="epoch",
        callback=callback,
    )


def _positive_entries(X: Any) -> Any:
    """Return the CSR matrix `X` without its stored zeros: itself where it has none."""
    if np.count_nonzero(X.data) == X.data.size:
        return X
    X = X.copy()
    X.eliminate_zeros()
    return X
