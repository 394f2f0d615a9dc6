r"""One gradient step on the embeddings, then gradient flow on p with E and v frozen.

The flow :math:`\dot p = -E^\top g`, with :math:`g = \partial L / \partial a`, keeps
:math:`p = p^0 + E^\top c`: its path is found in the space of scores :math:`a = a^0 + E E^\top c`.
The speed is g over its size, so that it does not vanish with the loss (:mod:`._selective`). Once
the selected tokens have settled, the direction of p is that of the quadratic program on this
selection. Where they do not settle p has no limit, and the fit warns.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.documents import Documents
from .._core.fitted import FittedAttention, StoredEmbeddings, in_the_layout_of
from .._core.products import to_array
from .._core.result import FitResult, OnIteration
from .._documents import row_totals, safe_divide
from .._types import Array
from ._exponential import ExponentialIntegrator
from ._max_margin import import_piqp, max_margin_direction
from ._one_step_embeddings import default_step_size, limit_embeddings, shifts_per_step
from ._selective import SelectiveGradient, SelectiveObjective
from ._trainer import add_step, draw_embeddings

LARGEST_VALUE = 5.0  # above this the logistic loss saturates, and training of p takes longer
# Largest local error of a score in a step along the flow, relative to one more than its size.
TOLERANCE = 1e-3
# The selection has settled once it has not changed while scores moved by so much in all ...
PATIENCE = 300.0
UNSELECTED_ATTENTION = 0.01  # ... and unselected tokens have no larger share of any attention.
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
        point = objective(y[0])
        c = -point.direction
        if gram is not None:
            speeds = gram @ c
        elif E is None:
            speeds = c + values @ (values.T @ c)
        else:
            speeds = (E @ (E.T @ c.to(E.dtype))).to(torch.float64)
        return torch.stack([speeds, c]), point

    start = scores.to(torch.float64)
    return ExponentialIntegrator(
        velocity,
        torch.stack([start, torch.zeros_like(start)]),
        tol=TOLERANCE,
        largest_change=largest_change,
        rounding=float(torch.finfo(scores.dtype).eps),
    )


def fit_one_step(
    documents: Documents,
    classifier: Any,
    *,
    seed: int,
    dtype: Any,
    device: Any,
    on_iteration: OnIteration,
) -> FitResult:
    """Make one gradient step on random embeddings, then train p until its direction converges.

    `on_iteration` gets the largest share of attention on unselected tokens.
    """
    import_piqp()  # a missing package is known before the work
    if not documents.weights.all():  # a pair of tokens has no weight
        documents = documents.rows(np.flatnonzero(documents.weights))
    statistics, dimension = documents.statistics, classifier.embedding_dim
    loss = documents.attention_loss(dtype, device)
    importance = statistics.importance
    default = default_step_size(importance, dimension)
    step_size = default if classifier.step_size is None else classifier.step_size
    per_step = shifts_per_step(importance)
    n_tokens, n_outputs = per_step.shape
    warning = _step_size_warning(step_size, default, per_step, dimension)
    E = None
    values = torch.from_numpy(step_size * per_step).to(device, loss.bag.dtype)
    start = torch.zeros_like(values[:, 0])
    if dimension is not None:
        E, p, v = draw_embeddings(
            n_tokens, n_outputs, dimension, seed=seed, dtype=loss.bag.dtype, device=device
        )
        add_step(loss, E, p, v, step_size)
        values, start = E @ v.T, E @ p
    in_double = documents.attention_loss(np.float64, device)
    selective = SelectiveObjective(documents.X, in_double, values)
    flow = gradient_flow(selective, E, start)

    def model() -> FittedAttention:
        """Return the model where the flow is."""
        scores, coefficients = flow.y
        direction = torch.empty(0) if E is None else p.double() + E.T.double() @ coefficients
        return of_scores(to_array(scores), to_array(direction))

    def of_scores(scores: Array, direction: Array) -> FittedAttention:
        embeddings = None
        if E is not None:
            embeddings = StoredEmbeddings(direction, to_array(v), E.cpu().numpy())
        none = np.zeros(n_outputs)
        return FittedAttention(scores, to_array(values), none, 0.0, -np.inf, embeddings)

    losses: list[float] = []
    n_changed, way, n_iter, status = 0, 0.0, 0, ""
    before: NDArray[np.bool_] | None = None
    while True:
        losses.append(flow.point.loss)
        selected, most_unselected = selective.selection(flow.y[0])
        if before is not None and (selected != before).any():
            n_changed, way = n_changed + 1, 0.0
        before = selected
        on_iteration(n_iter, flow.point.loss, most_unselected)
        if flow.point.log_size == -math.inf:
            status = "no_gradient"
        elif way >= PATIENCE and most_unselected <= UNSELECTED_ATTENTION:
            status = "converged"
        elif flow.speed <= BALANCED:
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
        flags[selective.entries[selected]] = True
        frozen = limit_embeddings(to_array(values)) if E is None else E.cpu().numpy()
        try:
            limit = max_margin_direction(frozen, documents.X, in_the_layout_of(documents.X, flags))
        except (ValueError, RuntimeError) as failure:
            status, reason = "direction", str(failure)
        else:
            error = limit.duality_gap
            if np.isfinite(limit.margin):  # otherwise any direction is a solution
                length = _length(documents.X, flags)
                fitted = of_scores(limit.scores * length, limit.direction * length)
    changes = f"they changed in {n_changed} of {n_iter} steps"
    if way >= PATIENCE:
        changes = "some document still attends to others"
    return FitResult(
        model=fitted,
        loss_curve=losses,
        n_iter=n_iter,
        attributes={
            "step_size_": float(step_size),
            "direction_error_": error,
        },
        not_converged=_NOT_CONVERGED.get(status, "").format(
            max_iter=classifier.max_iter, changes=changes, reason=reason
        ),
        warning=warning,
    )


def _step_size_warning(
    step_size: float, default: float, per_step: Array, dimension: int | None
) -> str:
    """Return the warning about a step size, "" if none; `per_step` is S of a step of size 1."""
    largest = float(np.abs(per_step).max(initial=0.0))
    value = step_size * largest
    noise = math.sqrt(2 * math.log(max(len(per_step), 2)) / (dimension or math.inf))
    if not largest or noise <= value <= LARGEST_VALUE:
        return ""
    why = f"above {LARGEST_VALUE:g} the logistic loss saturates, and training takes longer"
    if value < noise:
        why = f"importance is drowned by the noise of {dimension} dimensions, {noise:.2g}"
    return (
        f"step_size={step_size:.3g} makes token values of up to {value:.2g}: {why}. Use "
        f"{noise / largest:.3g} to {LARGEST_VALUE / largest:.3g}, or more dimensions; "
        f"step_size=None is {default:.3g} here."
    )


def _length(X: Any, flags: NDArray[np.bool_]) -> float:
    """Return the factor on a direction of margin 1 that leaves little on unselected tokens."""
    on_selected, on_others = (
        row_totals(in_the_layout_of(X, X.data * of)) for of in (flags, ~flags)
    )
    odds = (1 - UNSELECTED_ATTENTION) / UNSELECTED_ATTENTION
    ratio = float(safe_divide(on_others, on_selected).max(initial=0.0))
    return math.log(max(ratio * odds, math.e))
