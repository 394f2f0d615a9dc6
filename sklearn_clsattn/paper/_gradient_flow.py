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

from .._matrices import row_sums, safe_divide
from .._types import Array
from ..training.documents import Documents
from ..training.fitted_model import (
    FitResult,
    FittedAttention,
    OnIteration,
    StoredEmbeddings,
    in_the_layout_of,
)
from ..training.products import to_array
from ._exponential import ExponentialIntegrator
from ._max_margin import MaxMargin, max_margin_direction
from ._one_step_embeddings import default_step_size, limit_embeddings, shifts_per_step
from ._selective import SelectiveGradient, SelectiveObjective
from ._trainer import FitOptions, draw_embeddings, take_one_step

# Largest local error of a score in a step along the flow, relative to one more than its size.
TOLERANCE = 1e-3
# The selection has settled once it has not changed while scores moved by so much in all ...
PATIENCE = 300.0
UNSELECTED_ATTENTION = 0.01  # ... and no document pays more attention to unselected tokens.
# About the largest change of a score in one step along the flow.
LARGEST_CHANGE = 10.0
RESTING = 1e-5  # speed of the fastest score at which gradient flow has all but come to rest
NOT_CERTIFIED = 2.0  # 1 less a cosine is never more than this

# Why training has not converged, by the status it ended with.
_NOT_CONVERGED = {
    "moving": (
        "Training of p stopped at max_iter before the selected tokens settled, so p has no limit "
        "yet and Theorem 4.3 does not apply. On real text the selection may never settle."
    ),
    "resting": (
        "Gradient flow on p has almost stopped before the selected tokens settled, so Theorem 4.3 "
        "does not apply: documents that favour different tokens balance each other, or all tokens "
        "of a document have the same value."
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
    if not documents.weights.all():  # the theorem's pairs of tokens have no weights
        documents = documents.rows(np.flatnonzero(documents.weights))
    importance = documents.statistics.importance
    step_size = classifier.step_size
    if step_size is None:
        step_size = default_step_size(importance, classifier.embedding_dim)

    # 1) one step on E
    tokens = _after_one_step(documents, step_size, classifier.embedding_dim, options)
    # 2) gradient flow on p
    in_double = documents.attention_loss(np.float64, options.device)
    X = documents.bags.units
    objective = SelectiveObjective(X, in_double, tokens.values)
    flow = gradient_flow(objective, tokens.E, tokens.scores)
    end = _follow(flow, objective, classifier.max_iter, options.on_iteration)
    scores, coefficients = flow.y
    model = tokens.model(to_array(scores), tokens.cls_embedding(coefficients))
    # 3) its limit, by Theorem 4.3
    direction_error = NOT_CERTIFIED
    warning = _NOT_CONVERGED.get(end.status, "")
    if not warning:
        is_selected = np.zeros(len(X.data), dtype=bool)
        is_selected[objective.entries[end.selected]] = True
        selected = in_the_layout_of(X, is_selected)
        try:
            limit = max_margin_direction(tokens.embeddings(), X, selected)
        except ValueError as failure:
            warning = f"The direction of p is not certified to be the max-margin one: {failure}"
        else:
            direction_error = limit.duality_gap
            if np.isfinite(limit.margin):  # otherwise any direction is a solution
                model = _model_along(limit, tokens, X, is_selected)
    return FitResult(
        model=model,
        loss_curve=end.losses,
        n_iter=len(end.losses) - 1,
        attributes={"step_size_": float(step_size), "direction_error_": direction_error},
        convergence_message=warning,
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

    status : "settled", or why not, a key of `_NOT_CONVERGED`
    losses : mean loss at the start and after each step
    selected : (n_entries,), whether an entry's token is selected
    """

    status: str
    losses: list[float]
    selected: NDArray[np.bool_]


def _follow(
    flow: ExponentialIntegrator,
    objective: SelectiveObjective,
    max_iter: int,
    on_iteration: OnIteration,
) -> FlowEnd:
    """Follow gradient flow until the selected tokens have settled, or cannot settle."""
    losses: list[float] = []
    previous: NDArray[np.bool_] | None = None
    distance = 0.0  # of scores since the selection last changed
    while True:
        # 1) the selection
        selected, unselected_attention = objective.selection(flow.y[0])
        if previous is not None and (selected != previous).any():
            distance = 0.0
        previous = selected
        n_iter = len(losses)
        losses.append(flow.point.loss)
        on_iteration(n_iter, flow.point.loss, unselected_attention)
        # 2) the stopping rule
        if distance >= PATIENCE and unselected_attention <= UNSELECTED_ATTENTION:
            return FlowEnd("settled", losses, selected)
        if flow.speed <= RESTING:
            return FlowEnd("resting", losses, selected)
        if n_iter >= max_iter:
            return FlowEnd("moving", losses, selected)
        # 3) a step along the flow
        distance += flow.step()


def _model_along(
    limit: MaxMargin, tokens: FrozenTokens, X: Any, is_selected: NDArray[np.bool_]
) -> FittedAttention:
    """Return the model with p along the max-margin direction, so long that selection is sharp."""
    # 1) the largest ratio of the weights of unselected and of selected tokens in a document
    on_selected = row_sums(X.data * is_selected, X.indptr)
    on_others = row_sums(X.data * ~is_selected, X.indptr)
    ratio = float(safe_divide(on_others, on_selected).max(initial=0.0))
    # 2) the margin that leaves UNSELECTED_ATTENTION to the unselected ones
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    length = math.log(max(ratio * odds, math.e))
    return tokens.model(limit.scores * length, limit.direction * length)
