r"""One gradient step on the embeddings, then gradient flow on p with E and v frozen.

The flow :math:`\dot p = -E^\top g`, with :math:`g = \partial L / \partial a`, keeps
:math:`p = p^0 + E^\top c`: its path is found in the space of scores :math:`a = a^0 + E E^\top c`.
The speed is g over the sum of the sizes of its terms, so that it does not vanish with the loss
(``docs/theory.md``). Once the selected tokens have settled, the direction of p is that of the
quadratic program on this selection. Where they do not settle p has no limit, and the fit warns.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.documents import Documents
from .._core.fitted import FittedAttention
from .._core.loss import AttentionLoss
from .._core.result import Callback, FitResult, Progress
from ..importance import signed_frequency
from ._chebyshev import ChebyshevIntegrator
from ._documents import select_entries
from ._fitted import StoredEmbeddings
from ._gradient_step import add_step, draw_embeddings
from ._max_margin import import_piqp, max_margin_direction
from ._one_step_embeddings import limit_embeddings, shifts_per_step
from ._selective_gradient import SelectiveObjective

Array = NDArray[np.float64]

# Spectral norm of what the default step writes, at most, for more than two classes.
LARGEST_SPECTRAL_NORM = 2.0
# The same in finite dimensions, for two classes too. A small step, below the gap in which the flow
# selects one class's relevant tokens only.
FINITE_SPECTRAL_NORM = 1.4
LARGEST_VALUE = 5.0  # above this the logistic loss saturates, and training of p takes longer

# The selection has settled once it has not changed while scores moved by so much in all ...
PATIENCE = 60.0
UNSELECTED_ATTENTION = 0.01  # ... and unselected tokens have no larger share of any attention.
# About the largest change of a score in one step along the flow.
LARGEST_CHANGE = 10.0
BALANCED = 1e-5  # speed of the fastest score at which gradient flow has all but come to rest

NOT_CERTIFIED = 2.0  # 1 less a cosine is never more than this


@dataclass(frozen=True)
class FrozenEmbeddings:
    """Embeddings after the step, on the device of training."""

    matrix: torch.Tensor | None  # (n_tokens, d), E^1; None in the limit, where it is [I | S]
    values: torch.Tensor  # (n_tokens, n_outputs), E^1 v_k; S in the limit
    cls_embedding: torch.Tensor  # (d,), p^0
    output_vectors: torch.Tensor  # (n_outputs, d), the v_k
    step_size: float
    warning: str  # why the step size is outside the range that works, or ""

    def starting_scores(self) -> torch.Tensor:
        """Return E p^0 in float64, (n_tokens,): 0 in the limit."""
        if self.matrix is None:
            return torch.zeros_like(self.values[:, 0], dtype=torch.float64)
        return (self.matrix @ self.cls_embedding).to(torch.float64)

    def kernel(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return ``c -> E E.T c`` in float64, (n_tokens,), by the Gram matrix if it is small."""
        matrix = self.matrix
        if matrix is None:
            shifts = self.values.to(torch.float64)
            return lambda c: c + shifts @ (shifts.T @ c)
        if matrix.shape[0] <= matrix.shape[1]:
            rows = matrix.to(torch.float64)
            gram = rows @ rows.T
            return lambda c: gram @ c
        return lambda c: (matrix @ (matrix.T @ c.to(matrix.dtype))).to(torch.float64)

    def as_array(self) -> Any:
        """Return E^1 as an array, sparse in the limit."""
        if self.matrix is None:
            return limit_embeddings(self.values.cpu().numpy().astype(np.float64))
        return self.matrix.cpu().numpy()


def take_step(
    loss: AttentionLoss,
    importance: Array,
    step_size: float | None,
    embedding_dim: int | None,
    seed: int,
) -> FrozenEmbeddings:
    """Draw random embeddings, make one full-batch gradient step on them, and freeze them.

    `importance`, (n_tokens,) or (n_classes, n_tokens), is the signed frequency under the weights of
    `loss`. `step_size` None is the default rule.
    """
    per_step, bag = shifts_per_step(importance), loss.bag
    n_tokens, n_outputs = per_step.shape
    default = default_step_size(importance, embedding_dim)
    if step_size is None:
        step_size = default
    largest = float(np.abs(per_step).max(initial=0.0))
    warning = _step_size_warning(step_size, default, largest, embedding_dim, n_tokens)
    if embedding_dim is None:
        values = torch.from_numpy(step_size * per_step).to(bag.device, bag.dtype)
        p, v = values.new_zeros(n_tokens + n_outputs), values.new_zeros(n_outputs, 0)
        return FrozenEmbeddings(None, values, p, v, step_size, warning)
    drawn = draw_embeddings(
        n_tokens, n_outputs, embedding_dim, seed=seed, dtype=bag.dtype, device=bag.device
    )
    add_step(loss, drawn, step_size)
    matrix, p, v = drawn.embeddings, drawn.cls_embedding, drawn.output_vectors
    return FrozenEmbeddings(matrix, matrix @ v.T, p, v, step_size, warning)


def default_step_size(importance: Array, embedding_dim: int | None) -> float:
    """Return the step size after which the largest value is 1, or less."""
    per_step = shifts_per_step(importance)
    largest = float(np.abs(per_step).max(initial=0.0))
    if not largest > 0:
        return 1.0
    norm = LARGEST_SPECTRAL_NORM if per_step.shape[1] > 1 else np.inf
    if embedding_dim is not None:
        norm = FINITE_SPECTRAL_NORM
    spectral = float(np.sqrt(np.linalg.eigvalsh(per_step.T @ per_step)[-1]))
    return min(1.0 / largest, norm / spectral)


def _step_size_warning(
    step_size: float, default: float, largest: float, embedding_dim: int | None, n_tokens: int
) -> str:
    """Return the warning about a step size, "" if none; `largest` is per unit of it."""
    value = step_size * largest
    if value > LARGEST_VALUE:
        return (
            f"step_size={step_size:.3g} makes token values of up to {value:.2g}: above "
            f"{LARGEST_VALUE:g} the logistic loss saturates, and training takes longer. "
            f"Use at most {LARGEST_VALUE / largest:.3g}, or leave step_size=None, "
            f"which is {default:.3g} here."
        )
    if embedding_dim is not None and largest > 0:
        noise = float(np.sqrt(2 * np.log(max(n_tokens, 2)) / embedding_dim))
        if value < noise:
            named = f"step_size={step_size:.3g}"
            if step_size == default:
                named = f"The default step_size, {step_size:.3g} here,"
            return (
                f"{named} makes token values of up to {value:.2g}, less than the {noise:.2g} that "
                f"random embeddings of {embedding_dim} dimensions have for noise: importance is "
                f"drowned by it. Use at least {noise / largest:.3g}, or more dimensions."
            )
    return ""


def fit_one_step(
    documents: Documents,
    classifier: Any,
    *,
    seed: int,
    dtype: type[np.floating[Any]],
    device: torch.device,
    callback: Callback,
) -> FitResult:
    """Make one gradient step on random embeddings, then train p until its direction converges.

    The criterion of `callback` is the largest share of attention on unselected tokens. The result's
    status is "converged", "stopped", "selection" (not settled), "balanced" (the terms of the
    gradient all but cancel), "direction" (not certified), or "no_gradient".
    """
    import_piqp()  # a missing package is known before the work
    if not documents.weights.all():  # a pair of tokens has no weight
        documents = documents.rows(np.flatnonzero(documents.weights))
    statistics = documents.statistics
    loss = documents.attention_loss(dtype, device)
    importance = signed_frequency(statistics.shares, statistics.class_weights)
    frozen = take_step(loss, importance, classifier.step_size, classifier.embedding_dim, seed)
    selective = SelectiveObjective(documents.X, loss.targets, documents.weights, frozen.values)
    flow = GradientFlow(selective, frozen, tol=classifier.flow_tol)

    def model() -> FittedAttention:
        coefficients = flow.coefficients
        p = frozen.cls_embedding.to(torch.float64)
        if frozen.matrix is not None:
            p = p + frozen.matrix.T.to(torch.float64) @ coefficients
        return _model(frozen, _array(p), _array(flow.scores))

    losses: list[float] = []
    changes: list[int] = []
    before: torch.Tensor | None = None
    way, n_iter, status = 0.0, 0, ""
    while True:
        point = flow.point
        losses.append(point.loss)
        if before is not None:
            changes.append(int((point.selected != before).sum()))
            way = 0.0 if changes[-1] else way
        before = point.selected
        most_unselected = max(0.0, -math.expm1(float(point.log_selected_attention.min())))
        if callback(Progress(n_iter, point.loss, most_unselected, model)):
            status = "stopped"
        elif point.log_scale == -math.inf:
            status = "no_gradient"
        elif way >= PATIENCE and most_unselected <= UNSELECTED_ATTENTION:
            status = "converged"
        elif flow.balanced:
            status = "balanced"
        elif n_iter >= classifier.max_iter:
            status = "selection"
        elif (change := flow.step()) > 0:
            way += change
            n_iter += 1
            continue
        else:
            status = "no_gradient"
        break

    fitted, error, reason = model(), NOT_CERTIFIED, ""
    if status == "converged":
        flags = np.zeros(len(documents.X.data), dtype=bool)
        flags[selective.entries[point.selected.cpu().numpy()]] = True
        selected = select_entries(documents.X, flags)
        try:
            limit = max_margin_direction(frozen.as_array(), documents.X, selected)
        except (ValueError, RuntimeError) as failure:
            status, reason = "direction", str(failure)
        else:
            error = limit.duality_gap
            if limit.n_pairs:  # otherwise any direction is a solution
                length = _length(selective, documents.X.data, flags)
                fitted = _model(frozen, limit.direction * length, limit.scores * length)
    return FitResult(
        model=fitted,
        loss_curve=losses,
        n_iter=n_iter,
        status=status,
        attributes={"step_size_": frozen.step_size, "direction_error_": error},
        not_converged=_not_converged(status, changes, way, classifier.max_iter, reason),
        warning=frozen.warning,
    )


class GradientFlow:
    """Gradient flow of the scores by adaptive stiff integration; see the module's docstring."""

    def __init__(
        self, objective: SelectiveObjective, frozen: FrozenEmbeddings, *, tol: float
    ) -> None:
        self._objective, self._kernel = objective, frozen.kernel()
        scores = frozen.starting_scores()
        self._integrator = ChebyshevIntegrator(
            self._velocity,
            torch.stack([scores, torch.zeros_like(scores)]),
            tol=tol,
            largest_change=LARGEST_CHANGE,
            rounding=float(torch.finfo(frozen.values.dtype).eps),
        )
        self._arrive()

    def step(self) -> float:
        """Advance by one step of the integration; return the largest change of a score."""
        change = self._integrator.step()
        self._arrive()
        return change

    def _arrive(self) -> None:
        self.scores, self.coefficients = self._integrator.y
        self.point = self._objective(self.scores)
        self.balanced = self._integrator.speed <= BALANCED

    def _velocity(self, y: torch.Tensor) -> torch.Tensor:
        """Return the derivatives of scores and coefficients, (2, n_tokens)."""
        point = self._objective(y[0])
        if not point.magnitude > 0:
            return torch.zeros_like(y)
        change = point.by_score / -point.magnitude
        return torch.stack([self._kernel(change), change])


def _model(frozen: FrozenEmbeddings, cls_embedding: Array, scores: Array) -> FittedAttention:
    """Return the model of these scores, with embeddings where their dimension is finite."""
    embeddings = None
    if frozen.matrix is not None:
        v = _array(frozen.output_vectors)
        embeddings = StoredEmbeddings(cls_embedding, v, frozen.matrix.cpu().numpy())
    values = _array(frozen.values)
    return FittedAttention(scores, values, np.zeros(values.shape[1]), 0.0, -np.inf, embeddings)


def _array(tensor: torch.Tensor) -> Array:
    return np.array(tensor.cpu().numpy(), dtype=np.float64, order="C")


def _length(selective: SelectiveObjective, weights: Any, flags: NDArray[np.bool_]) -> float:
    """Return the factor on a direction of margin 1 that leaves little on unselected tokens."""
    entries, documents = selective.entries, selective.documents.cpu().numpy()
    counts, selected = weights[entries].astype(np.float64), flags[entries]
    on_selected = np.bincount(documents, counts * selected)
    on_others = np.bincount(documents, counts * ~selected)
    ratios = np.divide(on_others, on_selected, out=np.zeros_like(on_others), where=on_selected > 0)
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    return math.log(max(float(ratios.max(initial=0.0)) * odds, math.e))


def _not_converged(status: str, changes: list[int], way: float, max_iter: int, reason: str) -> str:
    """Return the warning about a run that ended in this way; "" if none."""
    if status == "selection":
        n_changing = sum(1 for changed in changes if changed)
        what = f"they changed in {n_changing} of {len(changes)} steps"
        if way >= PATIENCE:
            what = "some document still attends to others"
        return (
            f"Training of p stopped at max_iter={max_iter}: the selected tokens have "
            f"not settled ({what}), so that p has no limit yet, and Theorem 4.3 does not apply. "
            "Increase max_iter; on real text the selection may never settle, and "
            "ClsAttentionClassifier is what predicts."
        )
    if status == "balanced":
        return (
            "Gradient flow on p has all but come to rest: documents that want different tokens "
            "ahead balance each other, so that the selected tokens have not settled, and Theorem "
            "4.3 does not apply. ClsAttentionClassifier is what predicts."
        )
    if status == "direction":
        return f"The direction of p is not certified to be the max-margin direction: {reason}"
    if status == "no_gradient":
        return (
            "The gradient of p is 0: in every document all tokens have the same value. "
            "Documents need tokens of different importance; or increase step_size."
        )
    return ""
