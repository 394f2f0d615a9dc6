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

from ..training.documents import Documents
from ..training.fitted_model import FitResult, FittedAttention, StoredEmbeddings
from ..training.loss import AttentionLoss
from ..training.objective import CLS_PENALTY
from ..training.products import to_array
from ._one_step_embeddings import default_step_size
from ._trainer import FitOptions, draw_embeddings, split_documents, take_one_step, train

# Learning rate and epsilon of Adam on E, p and v, and on scores and values: the former times
# sqrt(2 d / pi) and sqrt(d) at d = 2048.
ADAM_ON_EMBEDDINGS = 1e-3, 1e-8
ADAM_ON_SCORES = 0.036, 4.5e-7
DESCENT_LEARNING_RATE = 1.0  # of gradient descent, on whatever is trained


class TokenModel(torch.nn.Module):
    """Base of models whose loss is a function of the token matrix (:mod:`..training.loss`).

    `forward` returns this matrix, (n_tokens + 1, 1 + n_outputs). `last_row` is the start of its
    last row, the score of ``<cls>`` and the intercepts. A batch is the sum of its documents'
    losses, whose gradient by the matrix has a closed form.
    """

    def __init__(
        self, last_row: torch.Tensor, *, cls_weight: float, fit_intercept: bool, dtype: Any
    ) -> None:
        super().__init__()
        self.cls_weight = cls_weight
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.device = last_row.device

    def make_batch(self, documents: Documents) -> AttentionLoss:
        """Return the sum of the losses of documents."""
        return documents.attention_loss(self.dtype, self.device, self.cls_weight)

    def evaluation_batches(self, documents: Documents) -> list[AttentionLoss]:
        """Return the documents as one batch."""
        return [self.make_batch(documents)]

    def backward(self, batch: AttentionLoss, weight: float) -> float:
        """Set the gradients of the loss over a weight, plus the penalty, and return their sum."""
        matrix = self()
        # 1) the gradient by the token matrix
        value, gradient = batch(matrix.detach())
        gradient /= weight
        cls_score = float(matrix[-1, 0].detach())
        gradient[-1, 0] += CLS_PENALTY * cls_score
        if not self.fit_intercept:
            gradient[-1, 1:] = 0
        # 2) the gradients by the parameters
        matrix.backward(gradient)
        return value / weight + 0.5 * CLS_PENALTY * cls_score**2

    @torch.no_grad()
    def sum_of_losses(self, batch: AttentionLoss) -> float:
        """Return the sum of the documents' losses."""
        value, _ = batch(self())
        return value

    @torch.no_grad()
    def to_numpy(self) -> FittedAttention:
        """Return the present model as NumPy arrays."""
        matrix = self()
        return FittedAttention(
            scores=to_array(matrix[:-1, 0]),
            values=to_array(matrix[:-1, 1:]),
            intercept=to_array(matrix[-1, 1:]),
            cls_weight=self.cls_weight,
            cls_score=float(matrix[-1, 0]) if self.cls_weight else -np.inf,
            embeddings=self.stored_embeddings(),
        )

    def stored_embeddings(self) -> StoredEmbeddings | None:
        """Return the embeddings, if there are any, as arrays."""
        return None


class ScoreModel(TokenModel):
    """Scores and values as parameters, from 0."""

    def __init__(self, n_tokens: int, last_row: torch.Tensor, **options: Any) -> None:
        super().__init__(last_row, **options)
        rows = last_row.new_zeros(n_tokens, len(last_row))
        self.matrix = torch.nn.Parameter(torch.cat([rows, last_row[None]]))

    def forward(self) -> torch.Tensor:
        """Return the token matrix."""
        return self.matrix


class EmbeddingModel(TokenModel):
    """Embeddings E, (n_tokens, d), p and output vectors v, which start as given."""

    def __init__(
        self,
        E: torch.Tensor,
        p: torch.Tensor,
        v: torch.Tensor,
        last_row: torch.Tensor,
        *,
        train_embeddings: bool,
        **options: Any,
    ) -> None:
        super().__init__(last_row, **options)
        self.E = torch.nn.Parameter(E, requires_grad=train_embeddings)
        self.directions = torch.nn.Parameter(torch.vstack([p, v]))
        self.last_row = torch.nn.Parameter(last_row)

    def forward(self) -> torch.Tensor:
        """Return the token matrix: E p and E v_k."""
        return torch.cat([self.E @ self.directions.T, self.last_row[None]])

    def stored_embeddings(self) -> StoredEmbeddings:
        """Return the embeddings as arrays."""
        directions = to_array(self.directions)
        matrix = self.E.detach().cpu().numpy()
        return StoredEmbeddings(directions[0], directions[1:], matrix)


def fit_embeddings(documents: Documents, classifier: Any, options: FitOptions) -> FitResult:
    """Train embeddings, or scores and values, from the paper's random start."""
    if classifier.embedding_dim is None and not _trains_embeddings(classifier):
        raise ValueError(
            f"train_embeddings={classifier.train_embeddings!r} needs random embeddings, but "
            "embedding_dim is None: set embedding_dim, for example to 2048 as in the paper."
        )
    trained_on, held_out = split_documents(documents, classifier, options.seed)
    cls_weight = documents.statistics.cls_weight if classifier.attend_cls else 0.0
    model = _start(trained_on, classifier, cls_weight, options)
    optimizer = _optimizer(model, classifier)
    return train(model, optimizer, trained_on, held_out, classifier, options)


def _start(
    documents: Documents, classifier: Any, cls_weight: float, options: FitOptions
) -> TokenModel:
    """Return the model from which training starts."""
    n_tokens = documents.shape[1]
    # 1) scores and values without a dimension
    n_outputs = documents.targets.n_outputs
    last_row = torch.zeros(1 + n_outputs, dtype=options.precision, device=options.device)
    if classifier.fit_intercept:
        last_row[1:] = torch.from_numpy(documents.statistics.class_log_odds)
    shared = {
        "cls_weight": cls_weight,
        "fit_intercept": classifier.fit_intercept,
        "dtype": options.dtype,
    }
    if classifier.embedding_dim is None:
        return ScoreModel(n_tokens, last_row, **shared)
    # 2) random embeddings, perhaps after one step
    E, p, v = draw_embeddings(
        n_tokens,
        n_outputs,
        classifier.embedding_dim,
        seed=options.seed,
        dtype=options.precision,
        device=options.device,
    )
    if isinstance(classifier.train_embeddings, str):  # "one_step"
        importance = documents.statistics.importance
        step_size = classifier.step_size or default_step_size(importance, None)
        loss = documents.attention_loss(options.dtype, options.device, cls_weight)
        take_one_step(loss, E, p, v, step_size)
    train_embeddings = _trains_embeddings(classifier)
    return EmbeddingModel(E, p, v, last_row, train_embeddings=train_embeddings, **shared)


def _trains_embeddings(classifier: Any) -> bool:
    """Return whether every step trains the embeddings; NumPy's booleans count as booleans."""
    train_embeddings = classifier.train_embeddings
    return not isinstance(train_embeddings, str) and bool(train_embeddings)


def _optimizer(model: TokenModel, classifier: Any) -> torch.optim.Optimizer:
    """Return the optimizer of the model's parameters."""
    if classifier.solver == "sgd":
        rate = classifier.learning_rate or DESCENT_LEARNING_RATE
        return torch.optim.SGD(model.parameters(), lr=rate)
    dimension = classifier.embedding_dim
    default_rate, epsilon = ADAM_ON_SCORES if dimension is None else ADAM_ON_EMBEDDINGS
    rate = classifier.learning_rate or default_rate
    groups = []
    for name, parameter in model.named_parameters():
        on_scores = dimension is not None and name == "last_row"
        factor = math.sqrt(2 * dimension / math.pi) if on_scores else 1.0
        groups.append({"params": [parameter], "lr": rate * factor})
    return torch.optim.Adam(groups, eps=epsilon, fused=True)
