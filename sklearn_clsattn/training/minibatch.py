"""Networks of one or two layers, with or without an MLP, trained by mini-batches of documents.

Adam on everything: embeddings, ``<cls>``, output vectors, key-query matrices, MLP, intercepts.
Each step needs the gradient by the embeddings of its own documents' tokens only; Adam's moments
move all of them, as :class:`torch.optim.Adam` does: memory is that of five tables of embeddings
(with gradients, moments and the best epoch's copy), and with two layers of the attention between
the tokens of a mini-batch's documents, the sum of their squared numbers of distinct tokens. The
optimiser, batch size and stopping are
ours: the paper does not say what it used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from ..model.batches import DocumentBatch, batch_documents, batches_by_length, positive_entries
from ..model.fitted_network import FittedNetwork
from ..model.gradient_step import draw_embeddings
from ..model.network import AttentionNetwork
from ..model.targets import encode_targets
from .joint import class_log_odds
from .patience import Patience
from .validation import hold_out

LEARNING_RATE = 1e-3
"""Of Adam, where none is given."""

# Padding costs the square of its length in two layers, and hardly anything in one.
_FULLNESS = {1: 0.5, 2: 0.85}


@dataclass(frozen=True)
class NetworkProgress:
    """What is known at the start and after each epoch.

    Attributes
    ----------
    n_iter : int
        Epochs so far.

    loss : float
        Mean training loss of the epoch.

    gap : float
        Validation loss; NaN where there is none.

    fitted : callable
        Returns the present state as a :class:`FittedNetwork`.
    """

    n_iter: int
    loss: float
    gap: float
    fitted: Callable[[], FittedNetwork]


@dataclass(frozen=True)
class NetworkFit:
    """What training by mini-batches returns.

    Attributes
    ----------
    fitted : FittedNetwork
        The model: with early stopping that of the lowest validation loss, else the last.

    loss_curve : list of float
        Mean training loss at the start, and of the mini-batches of each epoch, as they were met.

    validation_curve : list of float or None
        Mean loss of the documents held out, at the start and after each epoch.

    best_iter : int
        The epoch after which the model is `fitted`; 0 is the start.

    n_iter : int
        Number of epochs.

    status : {"converged", "max_iter", "stopped"}
        "converged": no improvement for long enough. "stopped": `on_step` asked for it.
    """

    fitted: FittedNetwork
    loss_curve: list[float]
    validation_curve: list[float] | None
    best_iter: int
    n_iter: int
    status: str


def fit_network(
    X: Any,
    codes: NDArray[np.intp],
    sample_weight: NDArray[np.float64],
    n_classes: int,
    *,
    n_layers: int,
    mlp: bool,
    embedding_dim: int,
    learning_rate: float | None,
    batch_size: int,
    cls_weight: float,
    fit_intercept: bool = True,
    early_stopping: bool,
    validation_fraction: float,
    n_iter_no_change: int,
    max_iter: int,
    tol: float,
    seed: int,
    device: torch.device | str,
    dtype: torch.dtype | None = None,
    on_step: Callable[[NetworkProgress], bool] | None = None,
) -> NetworkFit:
    """Train a network of attention layers by mini-batches.

    Parameters
    ----------
    X : CSR matrix of shape (n_documents, n_tokens)
        Non-negative token weights.

    codes : ndarray of shape (n_documents,)
        Class codes 0..K-1.

    sample_weight : ndarray of shape (n_documents,)
        Document weights. Documents of weight 0 are left out.

    n_classes : int
        K.

    n_layers : {1, 2}
        Layers of attention.

    mlp : bool
        Whether an MLP follows the pooling.

    embedding_dim : int
        d, at least 1 + the number of outputs (1 for two classes, else K).

    learning_rate : float or None
        Of Adam; None is `LEARNING_RATE`.

    batch_size : int
        Documents in a mini-batch.

    cls_weight : float
        Weight of ``<cls>`` in the pooling, with score and value 0; 0 leaves it out.

    fit_intercept : bool, default=True
        Whether there are intercepts, from the class log-odds on.

    early_stopping : bool
        Whether documents are held out to decide when training stops, and which epoch's model
        is returned.

    validation_fraction : float
        The fraction held out of every class.

    n_iter_no_change : int
        Training stops after that many epochs without improvement.

    max_iter : int
        At most this many epochs.

    tol : float
        Without early stopping, the least improvement of the training loss that counts.

    seed : int
        Of the start, the documents held out and the order of the documents. On the CPU the
        same seed gives the same model; on CUDA up to rounding.

    device : torch.device or str
        Where training computes.

    dtype : torch.dtype, default=None
        Precision of training; None is single for a float32 `X`, else double.

    on_step : callable, default=None
        Called with a :class:`NetworkProgress` at the start and after each epoch; True stops.

    Returns
    -------
    NetworkFit

    Raises
    ------
    ValueError
        If `learning_rate` or `batch_size` is not positive, if a class has too few documents to
        hold one out, if `embedding_dim` is too small, or if the loss becomes infinite or NaN.
    """
    rate = LEARNING_RATE if learning_rate is None else learning_rate
    if not (rate > 0 and math.isfinite(rate)):
        raise ValueError(f"learning_rate must be positive, got {rate}.")
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    if dtype is None:
        dtype = torch.float32 if X.dtype == np.float32 else torch.float64
    trained_on, held_out = np.arange(X.shape[0]), np.arange(0)
    if early_stopping:
        trained_on, held_out = hold_out(codes, sample_weight, validation_fraction, seed)
    trained_on = trained_on[sample_weight[trained_on] > 0]

    n_outputs = 1 if n_classes == 2 else n_classes
    intercept = None
    if fit_intercept:
        totals = np.bincount(codes[trained_on], sample_weight[trained_on], n_classes).astype(
            np.float64
        )
        intercept = torch.from_numpy(class_log_odds(totals)).to(device, dtype)
    network = AttentionNetwork(
        draw_embeddings(
            X.shape[1], n_outputs, embedding_dim, seed=seed, dtype=dtype, device=device
        ),
        intercept=intercept,
        n_layers=n_layers,
        mlp=mlp,
        cls_weight=cls_weight,
        generator=torch.Generator().manual_seed(seed + 1),
    )
    corpus = _Corpus(
        positive_entries(X),
        encode_targets(codes, n_classes, device),
        torch.from_numpy(np.asarray(sample_weight, dtype=np.float64)).to(device),
        _FULLNESS[n_layers],
        dtype,
        torch.device(device),
    )
    trainer = _Trainer(network, corpus, rate)
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
                f"rate (it was {rate:g})."
            )
        if patience.improved(watched, n_iter, least) and early_stopping:
            best = {name: value.clone() for name, value in network.state_dict().items()}
        if on_step is not None:
            gap = validation_losses[-1] if early_stopping else math.nan
            if on_step(NetworkProgress(n_iter, losses[-1], gap, network.to_numpy)):
                status = "stopped"
                break
        if ended := patience.status(n_iter):
            status = ended
            break
        losses.append(trainer.epoch(order.permutation(trained_on), batch_size))
        n_iter += 1
    if best is not None:
        network.load_state_dict(best)
    return NetworkFit(
        fitted=network.to_numpy(),
        loss_curve=losses,
        validation_curve=validation_losses or None,
        best_iter=n_iter if best is None else patience.best_iter,
        n_iter=n_iter,
        status=status,
    )


@dataclass(frozen=True)
class _Corpus:
    """Documents, targets and weights, and how batches are made of them."""

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
        self,
        network: AttentionNetwork,
        batches: Iterable[tuple[NDArray[np.intp], DocumentBatch]],
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
        # One table, in which every step sets its own rows and clears the last one's.
        network.embeddings.grad = torch.zeros_like(network.embeddings)
        self._set_rows = torch.empty(0, dtype=torch.int64, device=corpus.device)

    def epoch(self, documents: NDArray[np.intp], batch_size: int) -> float:
        """Take a step for each mini-batch; return the mean loss they were met with."""
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
