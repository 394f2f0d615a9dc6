r"""One gradient step on the embeddings, then gradient flow on p with E and v frozen.

The flow :math:`\dot p = -E^\top g`, with :math:`g = \partial L / \partial a`, keeps
:math:`p = p^0 + E^\top c`: its path is found in the space of scores :math:`a = a^0 + E E^\top c`.
The speed is g over its size, so that it does not vanish with the loss (:mod:`._selective`). Once
the selected tokens have settled, the direction of p is that of the quadratic program on this
selection. Where they do not settle p has no limit, and the fit warns.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.documents import Documents
from .._core.fitted import FittedAttention, StoredEmbeddings, in_the_layout_of
from .._core.products import to_array
from .._core.result import FitResult, OnIteration
from .._matrices import row_totals, safe_divide
from .._types import Array
from ._exponential import ExponentialIntegrator
from ._max_margin import MaxMargin, import_piqp, max_margin_direction
from ._one_step_embeddings import default_step_size, limit_embeddings, shifts_per_step
from ._random_start import draw_embeddings, take_one_step
from ._selective import SelectiveGradient, SelectiveObjective
from ._trainer import FitOptions

LARGEST_VALUE = 5.0  # above this the logistic loss saturates, and training of p takes longer
# Largest local error of a score in a step along the flow, relative to one more than its size.
TOLERANCE = 1e-3
# The selection has settled once it has not changed while scores moved by so much in all ...
PATIENCE = 300.0
UNSELECTED_ATTENTION = 0.01  # ... and no document pays more attention to unselected tokens.
# About the largest change of a score in one step along the flow.
LARGEST_CHANGE = 10.0
BALANCED = 1e-5  # speed of the fastest score at which gradient flow has all but come to rest
NOT_CERTIFIED = 2.0  # 1 less a cosine is never more than this

# Why training has not converged, by the status it ended with.
_NOT_CONVERGED = {
    "selection": (
        "Training of p stopped at max_iter={max_iter} before the selected tokens settled "
        "({changes}), so p has no limit yet and Theorem 4.3 does not apply. Increase max_iter. On "
        "real text the selection may never settle: use ClsAttentionClassifier for prediction."
    ),
    "balanced": (
        "Gradient flow on p has almost stopped, because documents that favour different tokens "
        "balance each other. So the selected tokens have not settled and Theorem 4.3 does not "
        "apply. Use ClsAttentionClassifier for prediction."
    ),
    "direction": "The direction of p is not certified to be the max-margin direction: {reason}",
    "no_gradient": (
        "The gradient of p is 0, because in each document all tokens have the same value. Use "
        "documents with tokens of different importance, or increase step_size."
    ),
}


def gradient_flow(
    objective: SelectiveObjective,
    E: torch.Tensor | None,
    scores: torch.Tensor,
    largest_change: float = LARGEST_CHANGE,
) -> ExponentialIntegrator:
    """Return the integrator of the flow of scores and coefficients c, (2, n_tokens), from `scores`.

    E is E^1, (n_tokens, d), None in the limit, where it is [I | S] with the values S.
    """
    values = objective.values
    gram = None
    if E is not None and E.shape[0] <= E.shape[1]:
        gram = E.to(torch.float64) @ E.to(torch.float64).T

    def velocity(y: torch.Tensor) -> tuple[torch.Tensor, SelectiveGradient]:
        """Return the derivatives of scores, -E E' g, and of coefficients, -g."""
        point = objective(y[0])
        c_speeds = -point.direction
        if gram is not None:
            score_speeds = gram @ c_speeds
        elif E is None:  # E E' = I + S S'
            score_speeds = c_speeds + values @ (values.T @ c_speeds)
        else:
            score_speeds = (E @ (E.T @ c_speeds.to(E.dtype))).to(torch.float64)
        return torch.stack([score_speeds, c_speeds]), point

    start = scores.to(torch.float64)
    return ExponentialIntegrator(
        velocity,
        torch.stack([start, torch.zeros_like(start)]),
        tol=TOLERANCE,
        largest_change=largest_change,
        rounding=float(torch.finfo(scores.dtype).eps),
    )


@dataclass(frozen=True)
class FrozenTokens:
    """The tokens after the step on E: what does not change along the flow, and where it starts.

    values : E v, (n_tokens, n_outputs)
    scores : E p^0, (n_tokens,), at the start
    E, p, v : of finite dimension, else None
    """

    values: torch.Tensor
    scores: torch.Tensor
    E: torch.Tensor | None = None
    p: torch.Tensor | None = None
    v: torch.Tensor | None = None

    def embeddings(self) -> Any:
        """Return E^1, (n_tokens, d); in the limit the sparse matrix [I | S]."""
        return limit_embeddings(to_array(self.values)) if self.E is None else self.E.cpu().numpy()

    def cls_embedding(self, coefficients: torch.Tensor) -> Array:
        """Return p^0 + E' c, (d,), empty in the limit."""
        if self.E is None or self.p is None:
            return np.empty(0)
        return to_array(self.p.double() + self.E.T.double() @ coefficients)

    def model(self, scores: Array, cls_embedding: Array) -> FittedAttention:
        """Return the model with these scores, (n_tokens,), and embedding of ``<cls>``, (d,)."""
        embeddings = None
        if self.E is not None and self.v is not None:
            matrix = self.E.cpu().numpy()
            embeddings = StoredEmbeddings(cls_embedding, to_array(self.v), matrix)
        values = to_array(self.values)
        no_intercept = np.zeros(values.shape[1])
        return FittedAttention(scores, values, no_intercept, 0.0, -np.inf, embeddings)


def fit_one_step(documents: Documents, classifier: Any, options: FitOptions) -> FitResult:
    """Make one gradient step on random embeddings, then train p until its direction converges.

    `options.on_iteration` gets the largest attention of a document to unselected tokens.
    """
    import_piqp()  # a missing package is known before the work
    if not documents.weights.all():  # a pair of tokens has no weight
        documents = documents.rows(np.flatnonzero(documents.weights))
    importance = documents.statistics.importance
    default = default_step_size(importance, classifier.embedding_dim)
    step_size = default if classifier.step_size is None else classifier.step_size

    # 1) one step on E
    tokens = _after_one_step(documents, step_size, classifier.embedding_dim, options)
    # 2) gradient flow on p
    in_double = documents.attention_loss(np.float64, options.device)
    objective = SelectiveObjective(documents.X, in_double, tokens.values)
    flow = gradient_flow(objective, tokens.E, tokens.scores)
    end = _follow(flow, objective, classifier.max_iter, options.on_iteration)
    scores, coefficients = flow.y
    model = tokens.model(to_array(scores), tokens.cls_embedding(coefficients))
    # 3) its limit, by Theorem 4.3
    status = end.status
    reason = ""
    direction_error = NOT_CERTIFIED
    if status == "converged":
        is_selected = np.zeros(len(documents.X.data), dtype=bool)
        is_selected[objective.entries[end.selected]] = True
        selected = in_the_layout_of(documents.X, is_selected)
        try:
            limit = max_margin_direction(tokens.embeddings(), documents.X, selected)
        except (ValueError, RuntimeError) as failure:
            status = "direction"
            reason = str(failure)
        else:
            direction_error = limit.duality_gap
            if np.isfinite(limit.margin):  # otherwise any direction is a solution
                model = _model_along(limit, tokens, documents.X, is_selected)
    convergence_message = _NOT_CONVERGED.get(status, "").format(
        max_iter=classifier.max_iter, changes=end.changes, reason=reason
    )
    return FitResult(
        model=model,
        loss_curve=end.losses,
        n_iter=end.n_iter,
        attributes={"step_size_": float(step_size), "direction_error_": direction_error},
        convergence_message=convergence_message,
        other_message=_step_size_warning(step_size, default, importance, classifier.embedding_dim),
    )


def _after_one_step(
    documents: Documents, step_size: float, embedding_dim: int | None, options: FitOptions
) -> FrozenTokens:
    """Return the tokens after one step on random embeddings, or in the limit of their dimension."""
    shifts = step_size * shifts_per_step(documents.statistics.importance)
    if embedding_dim is None:
        values = torch.from_numpy(shifts).to(options.device, options.precision)
        return FrozenTokens(values, torch.zeros_like(values[:, 0]))
    n_tokens, n_outputs = shifts.shape
    E, p, v = draw_embeddings(
        n_tokens,
        n_outputs,
        embedding_dim,
        seed=options.seed,
        dtype=options.precision,
        device=options.device,
    )
    take_one_step(documents.attention_loss(options.dtype, options.device), E, p, v, step_size)
    return FrozenTokens(E @ v.T, E @ p, E, p, v)


@dataclass(frozen=True)
class FlowEnd:
    """Where gradient flow was stopped.

    status : "converged", or why not, a key of `_NOT_CONVERGED`
    losses : mean loss at the start and after each step
    selected : (n_entries,), whether an entry's token is selected
    n_changes : number of steps in which the selection changed
    distance : how far scores moved since
    """

    status: str
    losses: list[float]
    selected: NDArray[np.bool_]
    n_changes: int
    distance: float

    @property
    def n_iter(self) -> int:
        """Number of steps along the flow."""
        return len(self.losses) - 1

    @property
    def changes(self) -> str:
        """How the selection has not settled, in words."""
        if self.distance >= PATIENCE:
            return "some document still attends to others"
        return f"they changed in {self.n_changes} of {self.n_iter} steps"


def _follow(
    flow: ExponentialIntegrator,
    objective: SelectiveObjective,
    max_iter: int,
    on_iteration: OnIteration,
) -> FlowEnd:
    """Follow gradient flow until the selected tokens have settled, or cannot settle."""
    losses: list[float] = []
    previous: NDArray[np.bool_] | None = None
    n_changes = 0
    distance = 0.0
    status = ""
    while not status:
        # 1) the selection
        selected, unselected_attention = objective.selection(flow.y[0])
        if previous is not None and (selected != previous).any():
            n_changes += 1
            distance = 0.0
        previous = selected
        n_iter = len(losses)
        losses.append(flow.point.loss)
        on_iteration(n_iter, flow.point.loss, unselected_attention)
        # 2) the stopping rule
        if flow.point.log_size == -math.inf:
            status = "no_gradient"
        elif distance >= PATIENCE and unselected_attention <= UNSELECTED_ATTENTION:
            status = "converged"
        elif flow.speed <= BALANCED:
            status = "balanced"
        elif n_iter >= max_iter:
            status = "selection"
        else:
            # 3) a step along the flow
            change = flow.step()
            distance += change
            if not change > 0:
                status = "no_gradient"
    return FlowEnd(status, losses, selected, n_changes, distance)


def _model_along(
    limit: MaxMargin, tokens: FrozenTokens, X: Any, is_selected: NDArray[np.bool_]
) -> FittedAttention:
    """Return the model with p along the max-margin direction, so long that selection is sharp."""
    # 1) the largest ratio of the weights of unselected and of selected tokens in a document
    on_selected = row_totals(in_the_layout_of(X, X.data * is_selected))
    on_others = row_totals(in_the_layout_of(X, X.data * ~is_selected))
    ratio = float(safe_divide(on_others, on_selected).max(initial=0.0))
    # 2) the margin that leaves UNSELECTED_ATTENTION to the unselected ones
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    length = math.log(max(ratio * odds, math.e))
    return tokens.model(limit.scores * length, limit.direction * length)


def _step_size_warning(
    step_size: float, default: float, importance: Array, dimension: int | None
) -> str:
    """Return the warning about a step size, "" if none."""
    per_step = shifts_per_step(importance)
    largest = float(np.abs(per_step).max(initial=0.0))
    value = step_size * largest
    noise = math.sqrt(2 * math.log(max(len(per_step), 2)) / (dimension or math.inf))
    if not largest or noise <= value <= LARGEST_VALUE:
        return ""
    reason = f"above {LARGEST_VALUE:g} the logistic loss saturates, and training takes longer"
    if value < noise:
        reason = f"importance is drowned by the noise of {dimension} dimensions, {noise:.2g}"
    return (
        f"step_size={step_size:.3g} makes token values of up to {value:.2g}: {reason}. Use "
        f"{noise / largest:.3g} to {LARGEST_VALUE / largest:.3g}, or more dimensions; "
        f"step_size=None is {default:.3g} here."
    )
