r"""The paper's deeper ablations as a PyTorch module on bags of distinct tokens, and its training.

``docs/theory.md`` has the formulas. Equal tokens have equal states :math:`h_i`, so that distinct
tokens with their weights are the whole document. Every output is linear in the :math:`h_i`, so the
first layer's matrices A multiply single numbers per token, never embeddings: with
:math:`r = E W_2^\top p`,

.. math:: p^\top W_2 h_i = r_i + (A r)_i, \qquad o = \sum_j (q + A^\top q)_j E_j .
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from .._core.documents import Documents
from .._core.fitted import StoredEmbeddings
from .._core.output_loss import target_array
from .._core.products import to_array
from .._core.result import FitResult, OnIteration
from .._documents import as_csr
from ._fitted_network import FittedNetwork
from ._trainer import Indices, draw_embeddings, epochs, hold_out, run_training

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
        padded = torch.from_numpy(in_tokens), torch.from_numpy(log_weights).to(dtype)
        groups.append((padded[0].to(device), padded[1].to(device)))
        first = last
    return Batch(documents, torch.from_numpy(tokens.astype(np.int64)).to(device), groups)


class AttentionNetwork(torch.nn.Module):
    """One or two layers of attention, with or without an MLP.

    The embeddings E, p and output vectors of `start` are trained in place; `generator`, on the CPU,
    draws the MLP's start.
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
        self.cls_weight, self.n_layers, self.mlp = cls_weight, n_layers, mlp
        self.E, self.p, self.v = map(torch.nn.Parameter, start)
        self.intercept = None if intercept is None else torch.nn.Parameter(intercept.clone())
        self.layers = torch.nn.ParameterDict()
        dim = len(self.p)
        if n_layers == 2:
            identity = torch.eye(dim).to(self.E)
            self.layers.update({"first_key_query": 0 * identity, "second_key_query": identity})
        if mlp:
            into, out = (
                torch.randn(dim, dim, generator=generator, dtype=torch.float64)
                * (gain / dim) ** 0.5
                for gain in (2, 1)
            )
            self.layers["hidden_weights"] = into.to(self.E)
            self.layers["hidden_bias"] = torch.zeros_like(self.p)
            self.layers["hidden_output"] = out.to(self.E)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the outputs f, (n_documents, n_outputs), in the order of `batch.documents`."""
        rows = self.E.index_select(0, batch.tokens)
        scores = rows @ self._direction()
        pooled_rows = rows if self.mlp else rows @ self.v.T
        pooled = []
        for positions, log_weights in batch.groups:
            logits = scores[positions] + log_weights
            if self.n_layers == 2:
                keys = F.embedding(positions, rows)
                tables = keys @ self.layers["first_key_query"] @ keys.transpose(1, 2)
                tables = torch.softmax(tables + log_weights[:, None], dim=2)
                logits = logits + (tables @ scores[positions][:, :, None])[:, :, 0]
            if self.cls_weight:
                cls = logits.new_full((len(logits), 1), self.cls_weight).log()
                logits = torch.cat([logits, cls], dim=1)
            weights = torch.softmax(logits, dim=1)[:, None, : positions.shape[1]]
            if self.n_layers == 2:
                weights = weights + weights @ tables
            pooled.append((weights @ F.embedding(positions, pooled_rows))[:, 0])
        outputs = torch.cat(pooled)
        if self.mlp:
            weights, bias = self.layers["hidden_weights"], self.layers["hidden_bias"]
            hidden = torch.relu(F.linear(outputs, weights, bias))
            outputs = F.linear(hidden, self.v @ self.layers["hidden_output"])
        return outputs if self.intercept is None else outputs + self.intercept

    def _direction(self) -> torch.Tensor:
        """Return what the tokens' embeddings are multiplied with for their own scores, (d,)."""
        return self.p @ self.layers["second_key_query"] if self.n_layers == 2 else self.p

    @torch.no_grad()
    def to_numpy(self) -> FittedNetwork:
        """Return the present network as copies in NumPy."""
        intercept = self.v.new_zeros(len(self.v)) if self.intercept is None else self.intercept
        tensors = self.E @ self._direction(), self.E @ self.v.T, intercept, self.p, self.v
        scores, values, intercepts, p, v = (to_array(tensor) for tensor in tensors)
        return FittedNetwork(
            scores,
            values,
            intercepts,
            self.cls_weight,
            0.0 if self.cls_weight else -np.inf,
            StoredEmbeddings(p, v, self.E.cpu().numpy().copy()),
            n_layers=self.n_layers,
            mlp=self.mlp,
            layers={name: layer.cpu().numpy().copy() for name, layer in self.layers.items()},
        )


def fit_network(
    documents: Documents,
    classifier: Any,
    *,
    seed: int,
    dtype: Any,
    device: Any,
    on_iteration: OnIteration,
) -> FitResult:
    """Train a network of attention layers by Adam on mini-batches of documents."""
    X, weights = as_csr(documents.X), documents.weights
    early_stopping = classifier.early_stopping
    precision = torch.float32 if dtype == np.float32 else torch.float64
    trained_on, held_out = np.arange(X.shape[0]), np.arange(0)
    if early_stopping:
        codes = documents.targets.values
        trained_on, held_out = hold_out(codes, weights, classifier.validation_fraction, seed)
    trained_on = trained_on[weights[trained_on] > 0]

    intercept = None
    if classifier.fit_intercept:
        log_odds = documents.rows(trained_on).statistics.class_log_odds
        intercept = torch.from_numpy(log_odds).to(device, precision)
    start = draw_embeddings(
        X.shape[1],
        documents.n_outputs,
        classifier.embedding_dim,
        seed=seed,
        dtype=precision,
        device=device,
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
    targets = torch.from_numpy(target_array(documents.targets)).to(device)
    sample_weight = torch.tensor(weights, dtype=torch.float64, device=device)

    def sum_of_losses(batch: Batch) -> torch.Tensor:
        rows = torch.from_numpy(batch.documents).to(device)
        outputs = network(batch).to(torch.float64)
        if documents.n_outputs == 1:
            losses = -F.logsigmoid(targets[rows] * outputs)[:, 0]
        else:
            losses = F.cross_entropy(outputs, targets[rows], reduction="none")
        return torch.dot(losses, sample_weight[rows])

    @torch.no_grad()
    def mean_loss(batches: Iterable[Batch], rows: Indices) -> float:
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
        on_iteration=on_iteration,
    )
