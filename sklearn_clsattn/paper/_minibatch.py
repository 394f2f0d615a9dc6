"""Networks of one or two layers, with or without an MLP, trained by mini-batches of documents.

Adam on everything. Each step needs the gradient by its own documents' tokens only; Adam's moments
change all: memory is that of five copies of the embeddings.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from .._core.documents import Documents
from .._core.objective import encode_targets
from .._core.problem import Callback, FitResult, Progress
from .._core.statistics import class_log_odds
from ..theory._gradient_step import draw_embeddings
from ._adam import Patience, not_converged
from ._batches import DocumentBatch, batch_documents, batches_by_length, positive_entries
from ._network import AttentionNetwork
from ._validation import hold_out

# Padding costs the square of its length in two layers, and hardly anything in one.
_FULLNESS = {1: 0.5, 2: 0.85}


def fit_network(
    documents: Documents,
    *,
    n_layers: int,
    mlp: bool,
    embedding_dim: int,
    learning_rate: float,
    batch_size: int,
    fit_intercept: bool = True,
    attend_cls: bool,
    early_stopping: bool,
    validation_fraction: float,
    n_iter_no_change: int,
    max_iter: int,
    tol: float,
    seed: int,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
) -> FitResult:
    """Train a network of attention layers by mini-batches."""
    X, codes, sample_weight = documents.X, documents.codes, documents.weights
    n_classes, n_outputs = documents.n_classes, documents.n_outputs
    precision = torch.float32 if dtype == np.float32 else torch.float64
    trained_on, held_out = np.arange(X.shape[0]), np.arange(0)
    if early_stopping:
        trained_on, held_out = hold_out(codes, sample_weight, validation_fraction, seed)
    trained_on = trained_on[sample_weight[trained_on] > 0]

    intercept = None
    if fit_intercept:
        totals = np.zeros(n_classes)
        np.add.at(totals, codes[trained_on], sample_weight[trained_on])
        intercept = torch.from_numpy(class_log_odds(totals)).to(device, precision)
    network = AttentionNetwork(
        draw_embeddings(
            X.shape[1], n_outputs, embedding_dim, seed=seed, dtype=precision, device=device
        ),
        intercept=intercept,
        n_layers=n_layers,
        mlp=mlp,
        cls_weight=documents.statistics.cls_weight if attend_cls else 0.0,
        generator=torch.Generator().manual_seed(seed + 1),
    )
    corpus = _Corpus(
        positive_entries(X),
        encode_targets(codes, n_classes, device),
        torch.from_numpy(np.asarray(sample_weight, dtype=np.float64)).to(device),
        _FULLNESS[n_layers],
        precision,
        torch.device(device),
    )
    trainer = _Trainer(network, corpus, learning_rate)
    order = np.random.default_rng(seed)
    # Kept, as every epoch needs them.
    validation = list(corpus.by_length(held_out))
    losses = [corpus.mean_loss(network, corpus.by_length(trained_on))]
    validation_losses: list[float] = []
    best: dict[str, torch.Tensor] | None = None
    patience = Patience(n_iter_no_change, max_iter)
    n_iter = 0
    while True:
        watched, least = losses[-1], tol
        if early_stopping:
            validation_losses.append(corpus.mean_loss(network, validation))
            watched, least = validation_losses[-1], 0.0
        if not (math.isfinite(losses[-1]) and math.isfinite(watched)):
            raise ValueError(
                f"The loss is not finite after {n_iter} epoch(s) of Adam: lower the learning "
                f"rate (it was {learning_rate:g})."
            )
        if patience.improved(watched, n_iter, least) and early_stopping:
            best = {name: value.clone() for name, value in network.state_dict().items()}
        criterion = validation_losses[-1] if early_stopping else math.nan
        if callback is not None and callback(
            Progress(n_iter, losses[-1], criterion, network.to_numpy)
        ):
            status = "stopped"
            break
        if ended := patience.status(n_iter):
            status = ended
            break
        losses.append(trainer.epoch(order.permutation(trained_on), batch_size))
        n_iter += 1
    if best is not None:
        network.load_state_dict(best)
    return FitResult(
        network.to_numpy(),
        losses,
        n_iter,
        status,
        {"validation_loss_curve_": np.array(validation_losses)} if early_stopping else {},
        not_converged(status, n_iter, "epoch", early_stopping=early_stopping),
    )


@dataclass(frozen=True)
class _Corpus:
    """Documents, targets and weights, (n_documents,) each, with the batches made of them."""

    X: Any
    targets: torch.Tensor
    sample_weight: torch.Tensor
    fullness: float
    dtype: torch.dtype
    device: torch.device

    def batch(self, documents: NDArray[np.intp]) -> DocumentBatch:
        return batch_documents(
            self.X, documents, fullness=self.fullness, dtype=self.dtype, device=self.device
        )

    def by_length(
        self, documents: NDArray[np.intp]
    ) -> Iterable[tuple[NDArray[np.intp], DocumentBatch]]:
        return batches_by_length(
            self.X, documents, fullness=self.fullness, dtype=self.dtype, device=self.device
        )

    def weighted_loss(self, outputs: torch.Tensor, documents: NDArray[np.intp]) -> torch.Tensor:
        """Return the sum of the documents' weighted losses, in double precision."""
        chosen = torch.from_numpy(documents).to(self.device)
        targets, outputs = self.targets[chosen], outputs.to(torch.float64)
        if outputs.shape[1] == 1:
            losses = F.softplus(-targets * outputs[:, 0])
        else:
            losses = F.cross_entropy(outputs, targets, reduction="none")
        return torch.dot(losses, self.sample_weight[chosen])

    def total_weight(self, documents: NDArray[np.intp]) -> float:
        return float(self.sample_weight[torch.from_numpy(documents).to(self.device)].sum())

    @torch.no_grad()
    def mean_loss(
        self, network: AttentionNetwork, batches: Iterable[tuple[NDArray[np.intp], DocumentBatch]]
    ) -> float:
        loss, weight = torch.zeros((), dtype=torch.float64, device=self.device), 0.0
        for documents, batch in batches:
            loss += self.weighted_loss(network(batch), documents)
            weight += self.total_weight(documents)
        return float(loss) / weight


class _Trainer:
    """Adam's steps on mini-batches."""

    def __init__(self, network: AttentionNetwork, corpus: _Corpus, learning_rate: float) -> None:
        self._network, self._corpus = network, corpus
        self._others = [p for p in network.parameters() if p is not network.embeddings]
        self._optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
        # One gradient, in which every step sets its own rows and clears the last step's.
        network.embeddings.grad = torch.zeros_like(network.embeddings)
        self._set_rows = torch.empty(0, dtype=torch.int64, device=corpus.device)

    def epoch(self, documents: NDArray[np.intp], batch_size: int) -> float:
        """Take a step for each mini-batch; return the mean of their losses before it."""
        corpus = self._corpus
        total_weight = corpus.total_weight(documents)
        mean_weight = total_weight / len(documents)
        sum_of_losses = torch.zeros((), dtype=torch.float64, device=corpus.device)
        for first in range(0, len(documents), batch_size):
            members = documents[first : first + batch_size]
            sum_of_losses += self._step(members, mean_weight * len(members))
        return float(sum_of_losses) / total_weight

    def _step(self, documents: NDArray[np.intp], weight: float) -> torch.Tensor:
        batch = self._corpus.batch(documents)
        embeddings = self._network.embeddings
        rows = embeddings.detach()[batch.tokens].requires_grad_()
        loss = self._corpus.weighted_loss(self._network(batch, rows), documents)
        for parameter in self._others:
            parameter.grad = None
        (loss / weight).backward()
        gradient = embeddings.grad
        assert gradient is not None
        gradient[self._set_rows] = 0
        if rows.grad is not None:  # None where no document has tokens
            gradient[batch.tokens] = rows.grad
        self._set_rows = batch.tokens
        self._optimizer.step()
        return loss.detach()
