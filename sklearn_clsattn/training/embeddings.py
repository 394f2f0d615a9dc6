r"""Joint training of explicit embeddings by Adam, and the same without a dimension.

The paper's figures come from training (E, p, v) in dimension d. The loss sees them through the
scores :math:`a = E p` and the values :math:`b_k = E v_k` alone, so that with
:math:`D = [\partial L / \partial a, \partial L / \partial b_1, ..]`, of which every column is as
long as the vocabulary,

.. math::

    \frac{\partial L}{\partial E} = D\,[p, v_1, ..]^\top, \quad
    \frac{\partial L}{\partial p} = E^\top D_0, \quad
    \frac{\partial L}{\partial v_k} = E^\top D_k .

D costs two thin sparse products (:mod:`sklearn_clsattn.model.objective`); what d costs is dense
work on E: reading it twice, writing its gradient, and Adam's step.

**Without a dimension** (ours), scores and values are the parameters. At the paper's random start
both tend to 0 as d grows, so 0 is where they start. A step of Adam moves every coordinate of E by
about the learning rate, and with it a score by that times :math:`\sum_j |p_j|`, which is
:math:`\sqrt{2 d / \pi}` for :math:`p \sim N(0, I / d)`; so is a value, by v. That factor turns the
learning rate of E into one of scores and values: 36 at d = 2048. It is also the ratio of the
learning rate of the intercepts and of the score of ``<cls>``, which are in the units of values and
scores, to that of E, p and v (ours; the paper has neither). Gradients by E are about
:math:`\sqrt d` times smaller than those by a score or value, so Adam's epsilon is larger by as much
here: without, rare tokens would move as far as frequent ones, and overfit.

The two are alike, not equal. Adam on E divides a token's steps by one size for its score and its
values together, Adam on scores and values each by its own; and p and the v_k, trained as well,
grow, so that later steps on E move scores and values further. ``docs/paper.md`` compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import FittedAttention
from ..model.gradient_step import draw_embeddings, unscaled_objective
from ..model.objective import AttentionObjective
from ..model.targets import encode_targets
from .adam import EPSILON, minimize_adam
from .joint import CLS_PENALTY, JointProgress, class_log_odds, fitted_model
from .validation import hold_out

Array = NDArray[np.float64]

EMBEDDINGS_LEARNING_RATE = 1e-3
"""Of Adam on E, p and v."""

SCORES_LEARNING_RATE = 0.036
"""Of Adam on scores and values: the former times sqrt(2 d / pi) at d = 2048 (ours)."""

SCORES_EPSILON = 4.5e-7
"""Of Adam there: its usual 1e-8 times sqrt(d) at d = 2048 (ours)."""


@dataclass(frozen=True)
class EmbeddingsFit:
    """What training by Adam returns.

    Attributes
    ----------
    fitted : FittedAttention
        The model, in float64.

    loss_curve : list of float
        Mean loss of the documents trained on, with the penalty on the score of ``<cls>``, at the
        start and after each step.

    validation_curve : list of float or None
        Mean loss of the documents held out, there; None without early stopping.

    best_iter : int
        The step after which the model is the one returned: that of the lowest validation loss,
        without early stopping the last.

    n_iter : int
        Number of steps taken.

    status : {"converged", "max_iter", "stopped"}
        "converged" where training stopped for want of improvement, "stopped" where `on_step`
        asked for it.

    cls_embedding : ndarray of shape (d,) or None
        p; None without a dimension, as for the next two.

    output_vectors : ndarray of shape (n_outputs, d) or None
        The v_k.

    token_embeddings : ndarray of shape (n_tokens, d) or None
        E, in the precision of training.
    """

    fitted: FittedAttention
    loss_curve: list[float]
    validation_curve: list[float] | None
    best_iter: int
    n_iter: int
    status: str
    cls_embedding: Array | None
    output_vectors: Array | None
    token_embeddings: NDArray[np.floating[Any]] | None


def fit_embeddings(
    X: Any,
    codes: NDArray[np.intp],
    sample_weight: Array,
    n_classes: int,
    *,
    embedding_dim: int | None,
    learning_rate: float | None,
    cls_weight: float,
    early_stopping: bool,
    validation_fraction: float,
    n_iter_no_change: int,
    max_iter: int,
    tol: float,
    seed: int,
    fit_intercept: bool = True,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    on_step: Callable[[JointProgress], bool] | None = None,
) -> EmbeddingsFit:
    """Train embeddings, or scores and values, by full-batch Adam from the paper's random start.

    Nothing is penalised but the score of ``<cls>``: what keeps the model from overfitting is to
    stop early. Weights do as repetition where `early_stopping` is False; with it, which
    documents are held out is drawn without regard to their weights.

    Memory with a dimension is that of E four times over (with its gradient and Adam's two
    moments), five times with early stopping, which keeps the best E.

    Parameters
    ----------
    X : CSR matrix of shape (n_documents, n_tokens)
        Non-negative token weights.

    codes : ndarray of shape (n_documents,)
        Class codes 0..n_classes-1.

    sample_weight : ndarray of shape (n_documents,)
        Document weights.

    n_classes : int
        Number of classes, K.

    embedding_dim : int or None
        d, at least 2 for two classes and 1 + K for K > 2; E, p and the v_k are drawn
        (:func:`sklearn_clsattn.model.gradient_step.draw_embeddings`) and all trained. None trains
        scores and values from 0, and is random in the documents held out alone.

    learning_rate : float or None
        Of E, p and v, or of scores and values. None is `EMBEDDINGS_LEARNING_RATE` or
        `SCORES_LEARNING_RATE`.

    cls_weight : float
        Weight of ``<cls>`` in every document; 0 leaves it out, as the paper does. Its score is
        trained from 0, with the penalty of joint training.

    early_stopping : bool
        Whether some documents of every class are held out and training returns to where their
        loss was lowest, once that has not fallen for `n_iter_no_change` steps. If not, training
        stops once as many steps together have not lowered the training loss by more than `tol`.

    validation_fraction : float
        Fraction of the documents held out.

    n_iter_no_change : int
        For how many steps no improvement is waited out.

    max_iter : int
        At most this many steps.

    tol : float
        In nats per document; early stopping does without.

    seed : int
        Of all that is random.

    fit_intercept : bool, default=True
        Whether intercepts are trained, from the log-odds of the classes. If not they are 0, as
        in the paper.

    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Precision of training.

    device : torch.device or str, default="cpu"
        Where training computes.

    on_step : callable, default=None
        Called with a :class:`~sklearn_clsattn.training.joint.JointProgress` at the start and
        after each step, whose gap is the validation loss (NaN without early stopping); True
        stops.

    Returns
    -------
    EmbeddingsFit

    Raises
    ------
    ValueError
        If `embedding_dim` is too small, if a class has too few documents to hold one out, or if
        the learning rate is not positive or so large that the loss is no longer finite.
    """
    n_outputs = 1 if n_classes == 2 else n_classes

    def objective_on(documents: NDArray[np.intp] | None, penalty: float) -> AttentionObjective:
        rows = slice(None) if documents is None else documents
        return unscaled_objective(
            TokenBag(X if documents is None else X[documents], dtype=dtype, device=device),
            encode_targets(codes[rows], n_classes, device),
            torch.from_numpy(np.ascontiguousarray(sample_weight[rows], np.float64)).to(device),
            n_outputs,
            cls_weight=cls_weight,
            cls_penalty=penalty,
        )

    trained_on = held_out = validation = None
    if early_stopping:
        trained_on, held_out = hold_out(codes, sample_weight, validation_fraction, seed)
        validation = objective_on(held_out, 0.0)
    objective = objective_on(trained_on, CLS_PENALTY)
    rows = slice(None) if trained_on is None else trained_on
    class_weights = np.bincount(codes[rows], sample_weight[rows], n_classes).astype(np.float64)

    parameters: Parameters
    if embedding_dim is None:
        rate = SCORES_LEARNING_RATE if learning_rate is None else learning_rate
        parameters = ScoresAndValues(objective.start())
        rates = [rate]
    else:
        rate = EMBEDDINGS_LEARNING_RATE if learning_rate is None else learning_rate
        drawn = draw_embeddings(
            X.shape[1],
            n_outputs,
            embedding_dim,
            seed=seed,
            dtype=objective.bag.dtype,
            device=device,
        )
        directions = torch.vstack([drawn.cls_embedding, drawn.output_vectors])
        parameters = Embeddings(drawn.embeddings, directions, objective.start()[-1])
        rates = [rate, rate, rate * math.sqrt(2 * embedding_dim / math.pi)]
    if fit_intercept:
        parameters.last_row[1:] = torch.from_numpy(class_log_odds(class_weights))

    def evaluate() -> tuple[float, float | None]:
        scores_and_values = parameters.rows()
        loss, gradient = objective(scores_and_values)
        if not fit_intercept:
            gradient[-1, 1:] = 0.0
        parameters.pull_back(gradient)
        if validation is None:
            return loss, None
        total, _ = validation.document_sums(scores_and_values)
        return loss, total / validation.total_weight

    def model() -> FittedAttention:
        return fitted_model(objective, parameters.rows())

    def report(n_iter: int, loss: float, validation_loss: float | None) -> bool:
        gap = math.nan if validation_loss is None else validation_loss
        return on_step is not None and on_step(JointProgress(n_iter, loss, gap, model))

    result = minimize_adam(
        parameters.trained,
        rates,
        evaluate,
        max_iter=max_iter,
        n_iter_no_change=n_iter_no_change,
        tol=tol,
        epsilon=SCORES_EPSILON if embedding_dim is None else EPSILON,
        on_step=report,
    )
    embeddings = cls_embedding = output_vectors = None
    if isinstance(parameters, Embeddings):
        embeddings = parameters.embeddings.cpu().numpy()
        cls_embedding, output_vectors = np.split(parameters.directions.double().cpu().numpy(), [1])
    return EmbeddingsFit(
        fitted=model(),
        loss_curve=result.losses,
        validation_curve=result.validation_losses,
        best_iter=result.best_iter,
        n_iter=result.n_iter,
        status=result.status,
        cls_embedding=None if cls_embedding is None else cls_embedding[0],
        output_vectors=output_vectors,
        token_embeddings=embeddings,
    )


class Parameters(Protocol):
    """What is trained: tensors that make scores and values, and take gradients by them."""

    @property
    def trained(self) -> list[torch.Tensor]:
        """The tensors that an optimiser changes; the last one holds `last_row`."""
        ...

    @property
    def last_row(self) -> torch.Tensor:
        """Score of ``<cls>`` and intercepts, shape (1 + n_outputs,)."""
        ...

    def rows(self) -> torch.Tensor:
        """Return scores, values and the last row, shape (n_tokens + 1, 1 + n_outputs)."""
        ...

    def pull_back(self, gradient: torch.Tensor) -> None:
        """Set ``.grad`` of what is trained, from the gradient by :meth:`rows`."""
        ...


class ScoresAndValues:
    """Scores and values as they are.

    Parameters
    ----------
    matrix : torch.Tensor of shape (n_tokens + 1, 1 + n_outputs)
        Where they start; changed by training.
    """

    def __init__(self, matrix: torch.Tensor) -> None:
        self.matrix = matrix

    @property
    def trained(self) -> list[torch.Tensor]:
        """The one matrix."""
        return [self.matrix]

    @property
    def last_row(self) -> torch.Tensor:
        """Its last row."""
        return self.matrix[-1]

    def rows(self) -> torch.Tensor:
        """Return the matrix."""
        return self.matrix

    def pull_back(self, gradient: torch.Tensor) -> None:
        """Set its gradient."""
        self.matrix.grad = gradient


class Embeddings:
    """Token embeddings E and the directions p, v_1, .., v_K.

    Parameters
    ----------
    embeddings : torch.Tensor of shape (n_tokens, d)
        E; changed by training, as are the others.

    directions : torch.Tensor of shape (1 + n_outputs, d)
        p and the v_k.

    last_row : torch.Tensor of shape (1 + n_outputs,)
        Score of ``<cls>`` and intercepts.
    """

    def __init__(
        self, embeddings: torch.Tensor, directions: torch.Tensor, last_row: torch.Tensor
    ) -> None:
        self.embeddings = embeddings
        self.directions = directions
        self._last_row = last_row.clone()
        self._gradient: torch.Tensor | None = None

    @property
    def trained(self) -> list[torch.Tensor]:
        """E, the directions, the last row."""
        return [self.embeddings, self.directions, self._last_row]

    @property
    def last_row(self) -> torch.Tensor:
        """The last row."""
        return self._last_row

    def rows(self) -> torch.Tensor:
        """Return ``E @ directions.T`` over the last row."""
        rows = self.embeddings.new_empty((len(self.embeddings) + 1, len(self.directions)))
        torch.mm(self.embeddings, self.directions.T, out=rows[:-1])
        rows[-1] = self._last_row
        return rows

    def pull_back(self, gradient: torch.Tensor) -> None:
        """Set the gradients of E, of rank 1 + n_outputs, of the directions and the last row."""
        per_token = gradient[:-1]
        if self._gradient is None:
            self._gradient = torch.empty_like(self.embeddings)
        self.embeddings.grad = torch.mm(per_token, self.directions, out=self._gradient)
        # MKL is twice as fast by rows as at E.T @ per_token.
        self.directions.grad = per_token.T.contiguous() @ self.embeddings
        self._last_row.grad = gradient[-1].clone()
