"""Training by steps of an optimizer until a loss no longer falls, and the paper's start of it.

:func:`train` is the training loop of the PyTorch modules. It makes steps on all documents or on
mini-batches, watches the loss of the documents held out, and stops. Of a module it knows the
methods of :class:`Trainable` alone. Embeddings start at random; one exact gradient step on them is
the paper's first.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from ..training.documents import Documents
from ..training.fitted_model import FitResult, FittedAttention, OnIteration
from ..training.loss import AttentionLoss
from ..training.products import torch_dtype

_ROWS_AT_ONCE = 1024  # of embeddings that are drawn
_NOT_CONVERGED = (
    "Training stopped at max_iter while the loss was still improving. Increase max_iter or "
    "learning_rate."
)


@dataclass(frozen=True)
class FitOptions:
    """What a fit gets besides documents and parameters.

    seed : of all random numbers
    dtype : np.float32 or np.float64, the precision of training
    device : of training
    on_iteration : called after each iteration
    """

    seed: int
    dtype: type[np.floating[Any]]
    device: torch.device
    on_iteration: OnIteration

    @property
    def precision(self) -> torch.dtype:
        """PyTorch's name of the precision of training."""
        return torch_dtype(self.dtype)


class Trainable(Protocol):
    """A PyTorch module that can be trained. A batch is documents in the form that it reads."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """Return all parameters; those that require a gradient are trained."""

    def make_batch(self, documents: Documents) -> Any:
        """Return the documents of one step as a batch."""

    def evaluation_batches(self, documents: Documents) -> Iterable[Any]:
        """Return documents whose loss is to be computed, without a gradient, as batches."""

    def backward(self, batch: Any, weight: float) -> float:
        """Set the gradients of a batch's loss, divided by a weight, and return this loss."""

    def sum_of_losses(self, batch: Any) -> float:
        """Return the sum of the documents' weighted losses."""

    def to_numpy(self) -> FittedAttention:
        """Return the present model as NumPy arrays."""


def train(
    module: Trainable,
    optimizer: torch.optim.Optimizer,
    documents: Documents,
    held_out: Documents | None,
    classifier: Any,
    options: FitOptions,
) -> FitResult:
    """Train a module, in place, until a loss no longer falls or for `max_iter` iterations.

    Training stops after `n_iter_no_change` iterations without a new lowest validation loss, and the
    parameters with the lowest one are restored. Without documents held out, it stops once as many
    iterations together have not lowered the training loss by more than `tol`. The classifier has
    these parameters.
    """
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    least_decrease = classifier.tol
    validation_batches: list[Any] = []
    if held_out is not None:
        least_decrease = 0.0
        validation_batches = list(module.evaluation_batches(held_out))  # used in each iteration

    loss_curve: list[float] = []
    validation_curve: list[float] = []
    lowest = math.inf
    best_iter = 0
    best_parameters: list[torch.Tensor] = []
    is_converged = False
    losses = _losses_of_steps(module, optimizer, documents)
    if classifier.batch_size is not None:
        losses = _losses_of_epochs(
            module, optimizer, documents, classifier.batch_size, options.seed
        )
    for n_iter, loss in enumerate(losses):
        # 1) the losses after n_iter iterations
        loss_curve.append(loss)
        validation_loss = math.nan
        watched = loss
        if held_out is not None:
            validation_loss = _mean_loss(module, validation_batches, held_out)
            validation_curve.append(validation_loss)
            watched = validation_loss
        if not math.isfinite(loss + watched):
            raise ValueError(
                f"The loss is not finite after {n_iter} iterations: lower learning_rate."
            )
        # 2) the best iteration so far
        if watched < lowest - least_decrease:
            lowest = watched
            best_iter = n_iter
            if held_out is not None:
                best_parameters = [parameter.detach().clone() for parameter in trained]
        options.on_iteration(n_iter, loss, validation_loss)
        # 3) the stopping rule
        is_converged = n_iter - best_iter >= classifier.n_iter_no_change
        if is_converged or n_iter >= classifier.max_iter:
            break

    # 4) the parameters of the best iteration, if documents were held out
    with torch.no_grad():
        for parameter, best in zip(trained, best_parameters, strict=False):
            parameter.copy_(best)
    attributes: dict[str, Any] = {}
    if held_out is not None:
        attributes["validation_loss_curve_"] = np.array(validation_curve)
    warning = "" if is_converged else _NOT_CONVERGED
    return FitResult(module.to_numpy(), loss_curve, n_iter, attributes, warning)


def _losses_of_steps(
    module: Trainable, optimizer: torch.optim.Optimizer, documents: Documents
) -> Iterator[float]:
    """Yield the loss at the start and after each step on all documents."""
    batch = module.make_batch(documents)
    weight = float(documents.weights.sum())
    while True:
        optimizer.zero_grad()
        yield module.backward(batch, weight)
        optimizer.step()


def _losses_of_epochs(
    module: Trainable,
    optimizer: torch.optim.Optimizer,
    documents: Documents,
    batch_size: int,
    seed: int,
) -> Iterator[float]:
    """Yield the loss at the start, and of each epoch the mean of the losses before its steps."""
    yield _mean_loss(module, module.evaluation_batches(documents), documents)
    rows = np.flatnonzero(documents.weights)
    mean_weight = float(documents.weights[rows].sum()) / len(rows)
    rng = np.random.default_rng(seed)
    while True:
        shuffled = rng.permutation(rows)
        total = 0.0
        for first in range(0, len(rows), batch_size):
            in_batch = shuffled[first : first + batch_size]
            batch = module.make_batch(documents.rows(in_batch))
            optimizer.zero_grad()
            loss = module.backward(batch, mean_weight * len(in_batch))
            optimizer.step()
            total += len(in_batch) * loss
        yield total / len(rows)


def _mean_loss(module: Trainable, batches: Iterable[Any], documents: Documents) -> float:
    """Return the mean loss of documents in batches."""
    total = 0.0
    for batch in batches:
        total += module.sum_of_losses(batch)
    return total / float(documents.weights.sum())


def split_documents(
    documents: Documents, classifier: Any, seed: int
) -> tuple[Documents, Documents | None]:
    """Return the documents to train on, and with early stopping those held out.

    Of every class's documents of positive weight the same fraction is held out, but at least one
    is and at least one stays.
    """
    if not classifier.early_stopping:
        return documents, None
    codes = documents.targets.values
    rng = np.random.default_rng(seed)
    is_held_out = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        rows = np.flatnonzero((codes == code) & (documents.weights > 0))
        size = min(max(round(classifier.validation_fraction * len(rows)), 1), len(rows) - 1)
        if size > 0:
            is_held_out[rng.choice(rows, size, replace=False)] = True
    kept = np.flatnonzero(~is_held_out)
    return documents.rows(kept), documents.rows(np.flatnonzero(is_held_out))


def draw_embeddings(
    n_tokens: int,
    n_outputs: int,
    embedding_dim: int,
    *,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw E^0, (n_tokens, d), and p^0 from N(0, I / d), and orthonormal v_k, (n_outputs, d).

    All are drawn in double precision and then converted, so that a seed stands for the same start
    in single precision.
    """
    if embedding_dim < 1 + n_outputs:
        raise ValueError(
            f"embedding_dim must be at least {1 + n_outputs} (<cls> and {n_outputs} output "
            f"vector(s) must be independent), got {embedding_dim}."
        )
    generator = torch.Generator().manual_seed(seed)
    scale = embedding_dim**-0.5
    # 1) p
    p = torch.randn(embedding_dim, generator=generator, dtype=torch.float64) * scale
    # 2) v by Gram-Schmidt with positive diagonal, so that the directions are uniformly random
    gaussian = torch.randn(embedding_dim, n_outputs, generator=generator, dtype=torch.float64)
    q, r = torch.linalg.qr(gaussian)
    v = (q * torch.sign(torch.diagonal(r))).T.contiguous()
    # 3) E, which is large: only a block of rows is ever held in double precision besides it
    E = torch.empty(n_tokens, embedding_dim, dtype=dtype)
    for block in E.split(_ROWS_AT_ONCE):
        drawn = torch.randn(block.shape, generator=generator, dtype=torch.float64)
        block.copy_(drawn.mul_(scale))
    return E.to(device), p.to(device, dtype), v.to(device, dtype)


def take_one_step(
    loss: AttentionLoss, E: torch.Tensor, p: torch.Tensor, v: torch.Tensor, step_size: float
) -> None:
    """Make one exact gradient step of the mean loss on E, in place as it is large.

    With D, (n_tokens, 1 + n_outputs), the gradient by scores and values, the gradient by E is
    D [p, v_1, ..].
    """
    directions = torch.cat([p[None], v])
    cls_row = directions.new_zeros(1, len(directions))
    matrix = torch.cat([E @ directions.T, cls_row])
    _, gradient = loss(matrix)
    factors = gradient[:-1].div_(loss.total_weight)
    E.addmm_(factors.mul_(-step_size), directions)
