r"""Training of embeddings by Adam or gradient descent, and the same without a dimension.

The loss sees E, p and v through the scores :math:`a = E p` and the values :math:`b_k = E v_k`
alone: its gradient by these takes two thin sparse products, and autograd takes it on.

**Without a dimension**, scores and values are the parameters, from 0, where random ones tend as d
grows. A step of Adam on E changes a score by its learning rate times :math:`\sum_j |p_j|`, which is
:math:`\sqrt{2 d / \pi}` for :math:`p \sim N(0, I / d)`: that is the ratio of the two learning rates
(36 at d = 2048), and that of the intercepts' and the score of ``<cls>`` to that of E. Gradients by
E are about :math:`\sqrt d` times smaller, and so is Adam's epsilon there: otherwise rare tokens
would change as much as frequent ones, and overfit. ``docs/paper.md`` compares the two.
"""

import math
from typing import Any

import numpy as np
import torch

from .._core.documents import Documents
from .._core.fitted import FittedAttention, StoredEmbeddings
from .._core.loss import AttentionLoss
from .._core.output_loss import output_loss
from .._core.products import TokenBag, to_array
from .._core.result import FitResult, OnIteration
from ._one_step_embeddings import default_step_size
from ._trainer import Indices, add_step, draw_embeddings, epochs, hold_out, run_training

# Learning rate and epsilon of Adam on E, p and v, and on scores and values: the former times
# sqrt(2 d / pi) and sqrt(d) at d = 2048.
ADAM_ON_EMBEDDINGS, ADAM_ON_SCORES = (1e-3, 1e-8), (0.036, 4.5e-7)
DESCENT_LEARNING_RATE = 1.0  # of gradient descent, on whatever is trained
CLS_PENALTY = 1.0  # on the score of <cls>, as in the default training


def fit_embeddings(
    documents: Documents,
    classifier: Any,
    *,
    seed: int,
    dtype: Any,
    device: Any,
    on_iteration: OnIteration,
) -> FitResult:
    """Train embeddings, or scores and values, from the paper's random start."""
    embedding_dim, batch_size = classifier.embedding_dim, classifier.batch_size
    adam, how = classifier.solver == "adam", classifier.train_embeddings
    if embedding_dim is None and how is not True:
        raise ValueError(
            f"train_embeddings={how!r} needs random embeddings, but embedding_dim is None: set "
            "embedding_dim, for example to 2048 as in the paper."
        )
    cls_weight = documents.statistics.cls_weight if classifier.attend_cls else 0.0
    trained_on, validation = documents, None
    if classifier.early_stopping:
        share = classifier.validation_fraction
        rows, held_out = hold_out(documents.targets.values, documents.weights, share, seed)
        trained_on = documents.rows(rows)
        validation = documents.rows(held_out).attention_loss(dtype, device, cls_weight)
    loss = trained_on.attention_loss(dtype, device, cls_weight)
    statistics = trained_on.statistics

    last_row = loss.zeros()[-1]  # the score of <cls>, and the intercepts
    if classifier.fit_intercept:
        last_row[1:] = torch.from_numpy(statistics.class_log_odds)
    usual, epsilon = ADAM_ON_EMBEDDINGS if embedding_dim else ADAM_ON_SCORES
    rate = classifier.learning_rate or (usual if adam else DESCENT_LEARNING_RATE)
    E: torch.Tensor | None = None
    trained, rates = [torch.cat([loss.zeros()[:-1], last_row[None]])], [rate]
    if embedding_dim is not None:
        E, p, v = draw_embeddings(
            documents.X.shape[1],
            documents.n_outputs,
            embedding_dim,
            seed=seed,
            dtype=loss.bag.dtype,
            device=device,
        )
        if how == "one_step":
            importance = statistics.importance
            step_size = classifier.step_size or default_step_size(importance, None)
            add_step(loss, E, p, v, step_size)
        trained = [torch.vstack([p, v]), last_row]
        rates = [rate, rate * math.sqrt(2 * embedding_dim / math.pi) if adam else rate]
        if how is True:
            trained, rates = [E, *trained], [rate, *rates]
    for tensor in trained:
        tensor.requires_grad_()
    groups = [{"params": [one], "lr": lr} for one, lr in zip(trained, rates, strict=True)]
    optimizer: torch.optim.Optimizer = torch.optim.SGD(groups)
    if adam:
        optimizer = torch.optim.Adam(groups, eps=epsilon, fused=True)

    def token_matrix() -> torch.Tensor:
        """Return the scores and values over the last row, (n_tokens + 1, 1 + n_outputs)."""
        if E is None:
            return trained[0]
        directions, last = trained[-2:]
        return torch.cat([E @ directions.T, last[None]])

    def set_gradients(loss: AttentionLoss, weight: float) -> float:
        """Return the loss over a weight, whose gradients are set."""
        optimizer.zero_grad()
        matrix = token_matrix()
        value, gradient = loss(matrix.detach())
        gradient /= weight
        cls_score = float(matrix[-1, 0].detach())
        gradient[-1, 0] += CLS_PENALTY * cls_score
        if not classifier.fit_intercept:
            gradient[-1, 1:] = 0
        matrix.backward(gradient)
        return value / weight + 0.5 * CLS_PENALTY * cls_score**2

    def step() -> float:
        optimizer.step()
        return set_gradients(loss, loss.total_weight)

    def step_on(batch: Indices, weight: float) -> float:
        part = AttentionLoss(
            TokenBag(trained_on.X[batch], dtype=dtype, device=device),
            output_loss(trained_on.targets[batch], trained_on.weights[batch], device),
            documents.n_outputs,
            cls_weight=cls_weight,
        )
        value = set_gradients(part, weight)
        optimizer.step()
        return value

    def model() -> FittedAttention:
        matrix, stored = token_matrix().detach(), None
        if E is not None:
            directions = to_array(trained[-2])
            matrix_of_tokens = E.detach().cpu().numpy()
            stored = StoredEmbeddings(directions[0], directions[1:], matrix_of_tokens)
        scores, values = to_array(matrix[:-1, 0]), to_array(matrix[:-1, 1:])
        cls_score = float(matrix[-1, 0]) if cls_weight else -np.inf
        intercept = to_array(matrix[-1, 1:])
        return FittedAttention(scores, values, intercept, cls_weight, cls_score, stored)

    advance = step
    if batch_size is not None:
        rows = np.flatnonzero(trained_on.weights)
        advance = epochs(step_on, rows, trained_on.weights, batch_size, seed)
    return run_training(
        classifier,
        trained,
        set_gradients(loss, loss.total_weight),
        advance,
        (lambda: validation(token_matrix().detach())[0] / validation.total_weight)
        if validation
        else None,
        model,
        learning_rate=max(rates),
        unit="step" if batch_size is None else "epoch",
        on_iteration=on_iteration,
    )
