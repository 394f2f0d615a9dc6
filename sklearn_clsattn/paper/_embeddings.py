r"""Training of explicit embeddings by full-batch Adam, and the same without a dimension.

The loss sees E, p and v through the scores :math:`a = E p` and the values :math:`b_k = E v_k`
alone, so that its gradient D by these, from two thin sparse products, gives

.. math::

    \frac{\partial L}{\partial E} = D\,[p, v_1, ..]^\top, \quad
    \frac{\partial L}{\partial p} = E^\top D_0, \quad
    \frac{\partial L}{\partial v_k} = E^\top D_k .

**Without a dimension**, scores and values are the parameters, from 0, where random ones tend as d
grows. A step of Adam on E changes a score by its learning rate times :math:`\sum_j |p_j|`, which is
:math:`\sqrt{2 d / \pi}` for :math:`p \sim N(0, I / d)`: that is the ratio of the two learning rates
(36 at d = 2048), and that of the intercepts' and the score of ``<cls>`` to that of E. Gradients by
E are about :math:`\sqrt d` times smaller, and so is Adam's epsilon there: otherwise rare tokens
would change as much as frequent ones, and overfit. ``docs/paper.md`` compares the two.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._core.attention_problem import CLS_PENALTY, fitted_attention
from .._core.documents import Documents
from .._core.fitted import FittedAttention
from .._core.problem import Callback, FitResult, Progress
from .._core.statistics import class_log_odds
from ..importance import signed_frequency
from ..theory._gradient_step import draw_embeddings
from ._adam import EPSILON, minimize_adam, not_converged
from ._embedding_source import StoredEmbeddings
from ._step import write_step
from ._validation import hold_out

EMBEDDINGS_LEARNING_RATE = 1e-3  # of Adam on E, p and v
# Of Adam on scores and values: the former times sqrt(2 d / pi) at d = 2048.
SCORES_LEARNING_RATE = 0.036

DESCENT_LEARNING_RATE = 1.0  # of gradient descent, on whatever is trained
SCORES_EPSILON = 4.5e-7  # of Adam there: its usual 1e-8 times sqrt(d) at d = 2048


def fit_embeddings(
    documents: Documents,
    *,
    embedding_dim: int | None,
    learning_rate: float | None,
    solver: str = "adam",
    train_embeddings: bool | str = True,
    step_size: float | None = None,
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
    """Train embeddings, or scores and values, on all documents from the paper's random start."""
    if embedding_dim is None and train_embeddings is not True:
        raise ValueError(
            f"train_embeddings={train_embeddings!r} is about random embeddings, but "
            "embedding_dim=None has none: set embedding_dim, for example to 2048 as in the paper."
        )
    if step_size is not None and train_embeddings != "one_step":
        raise ValueError(
            f'step_size={step_size!r} is the size of the one step of train_embeddings="one_step", '
            f"but train_embeddings={train_embeddings!r}: leave step_size=None, or set both."
        )
    cls_weight = documents.statistics.cls_weight if attend_cls else 0.0
    trained_on, validation = documents, None
    if early_stopping:
        kept, held_out = hold_out(documents.codes, documents.weights, validation_fraction, seed)
        trained_on = documents.rows(kept)
        others = documents.rows(held_out)
        validation = others.loss(others.bag(dtype, device), cls_weight=cls_weight)
    loss = trained_on.loss(trained_on.bag(dtype, device), cls_weight=cls_weight)

    token_map: ScoresAndValues | EmbeddingMap
    last_row = loss.zeros()[-1]
    if fit_intercept:
        last_row[1:] = torch.from_numpy(class_log_odds(trained_on.statistics.class_weights))
    if embedding_dim is None:
        rate = _learning_rate(learning_rate, solver, SCORES_LEARNING_RATE)
        token_map = ScoresAndValues(loss.zeros(), last_row)
        rates = [rate]
    else:
        rate = _learning_rate(learning_rate, solver, EMBEDDINGS_LEARNING_RATE)
        drawn = draw_embeddings(
            documents.X.shape[1],
            documents.n_outputs,
            embedding_dim,
            seed=seed,
            dtype=loss.bag.dtype,
            device=device,
        )
        if train_embeddings == "one_step":
            statistics = trained_on.statistics
            importance = signed_frequency(statistics.shares, statistics.class_weights)
            write_step(loss, drawn, importance, step_size)
        directions = torch.vstack([drawn.cls_embedding, drawn.output_vectors])
        every_step = train_embeddings is True
        token_map = EmbeddingMap(drawn.embeddings, directions, last_row, every_step)
        ratio = math.sqrt(2 * embedding_dim / math.pi) if solver == "adam" else 1.0
        rates = [rate, rate * ratio]
        rates = [rate, *rates] if every_step else rates

    def evaluate() -> tuple[float, float | None]:
        matrix = token_map.matrix()
        value, gradient = loss.mean(matrix)
        cls_score = float(matrix[-1, 0])
        value += 0.5 * CLS_PENALTY * cls_score**2
        gradient[-1, 0] += CLS_PENALTY * cls_score
        if not fit_intercept:
            gradient[-1, 1:] = 0
        token_map.pull_back(gradient)
        if validation is None:
            return value, None
        return value, validation(matrix)[0] / validation.total_weight

    def model() -> FittedAttention:
        embeddings = token_map.embeddings()
        return fitted_attention(token_map.matrix(), cls_weight, embeddings)

    def so_far() -> FittedAttention:
        result = model()
        if isinstance(result.embeddings, StoredEmbeddings):  # E itself is still being trained
            copy = replace(result.embeddings, matrix=result.embeddings.matrix.copy())
            result = replace(result, embeddings=copy)
        return result

    def report(n_iter: int, value: float, validation_loss: float | None) -> bool:
        criterion = math.nan if validation_loss is None else validation_loss
        return callback is not None and callback(Progress(n_iter, value, criterion, so_far))

    result = minimize_adam(
        token_map.trained,
        rates,
        evaluate,
        max_iter=max_iter,
        n_iter_no_change=n_iter_no_change,
        tol=tol,
        epsilon=SCORES_EPSILON if embedding_dim is None else EPSILON,
        plain=solver == "gradient_descent",
        callback=report,
    )
    return FitResult(
        model(),
        result.losses,
        result.n_iter,
        result.status,
        {"validation_loss_curve_": np.array(result.validation_losses)} if early_stopping else {},
        not_converged(
            result.status,
            result.n_iter,
            "step",
            early_stopping=early_stopping,
            named="Adam" if solver == "adam" else "Gradient descent",
        ),
    )


def _learning_rate(given: float | None, solver: str, of_adam: float) -> float:
    """Return the learning rate given, or else the solver's."""
    if given is not None:
        return given
    return of_adam if solver == "adam" else DESCENT_LEARNING_RATE


class ScoresAndValues:
    """The token matrix itself, (n_tokens + 1, 1 + n_outputs)."""

    def __init__(self, matrix: torch.Tensor, last_row: torch.Tensor) -> None:
        matrix[-1] = last_row
        self.trained = [matrix]

    def matrix(self) -> torch.Tensor:
        """Return the token matrix."""
        return self.trained[0]

    def pull_back(self, gradient: torch.Tensor) -> None:
        """Set the gradient by the token matrix."""
        self.trained[0].grad = gradient

    def embeddings(self) -> StoredEmbeddings | None:
        """Return None."""
        return None


class EmbeddingMap:
    """Embeddings E, (n_tokens, d), and p, v_1, .., v_K, (1 + n_outputs, d), over the last row."""

    def __init__(
        self,
        embeddings: torch.Tensor,
        directions: torch.Tensor,
        last_row: torch.Tensor,
        train_embeddings: bool = True,
    ) -> None:
        self._embeddings, self._directions = embeddings, directions
        self._last_row = last_row.clone()
        self._train_embeddings = train_embeddings
        self.trained = [self._directions, self._last_row]
        if train_embeddings:
            self.trained.insert(0, embeddings)
        self._gradient: torch.Tensor | None = None

    def matrix(self) -> torch.Tensor:
        """Return ``E @ directions.T`` over the last row."""
        embeddings, directions = self._embeddings, self._directions
        matrix = embeddings.new_empty((len(embeddings) + 1, len(directions)))
        torch.mm(embeddings, directions.T, out=matrix[:-1])
        matrix[-1] = self._last_row
        return matrix

    def pull_back(self, gradient: torch.Tensor) -> None:
        """Set the gradients of E, of rank 1 + n_outputs, of the directions and the last row."""
        embeddings, directions, per_token = self._embeddings, self._directions, gradient[:-1]
        if self._train_embeddings:
            if self._gradient is None:
                self._gradient = torch.empty_like(embeddings)
            embeddings.grad = torch.mm(per_token, directions, out=self._gradient)
        # MKL is twice as fast by rows as at E.T @ per_token.
        directions.grad = per_token.T.contiguous() @ embeddings
        self._last_row.grad = gradient[-1].clone()

    def embeddings(self) -> StoredEmbeddings:
        """Return copies of the directions, and E itself."""
        p, v = np.split(self._directions.double().cpu().numpy().copy(), [1])
        return StoredEmbeddings(p[0], v, self._embeddings.cpu().numpy())
