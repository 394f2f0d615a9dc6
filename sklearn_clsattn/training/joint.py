"""Joint training: scores and values to convergence, in place of all embeddings.

Minimising the penalised loss over the embeddings E with p and v fixed and orthogonal is the
same problem as minimising it over the scores E.p and the values E.v (representer fact,
``docs/model.md``), so E never appears here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import FittedAttention
from ..model.objective import AttentionObjective, Units, column_squares
from .lbfgs import Iterate, minimize_lbfgs
from .scaling import Scaling

Array = NDArray[np.float64]

VALUE_C_UNIT = 16.0
"""C = 1 is this over the documents' scale, in units of logistic regression's C (ours)."""

MULTICLASS_C_UNIT = 4.0
"""The same for more than two classes, where softmax trains one vector per class (ours).

Validation asks for far stronger penalties there: stars, ratings and sources of reviews."""

CLS_PENALTY = 1.0
"""Weight of the squared score of ``<cls>`` in the mean loss: it stays near its start (ours)."""

_LEAST_CURVATURE = 1e-3
_PAIR_ENTRIES = 4_000_000


@dataclass(frozen=True)
class JointProgress:
    """What is known after each step: its number, the penalised loss, the optimality gap."""

    n_iter: int
    loss: float
    gap: float
    fitted: Callable[[], FittedAttention]


@dataclass(frozen=True)
class JointFit:
    """What joint training returns.

    Attributes
    ----------
    fitted : FittedAttention
        The model.

    loss_curve : list of float
        Penalised mean loss at the start and after each step.

    gap : float
        The optimality gap at the end (:func:`optimality_gap`).

    n_iter : int
        Number of steps.

    status : {"converged", "max_iter", "no_progress", "stopped"}
        "stopped" where `on_step` asked for it.
    """

    fitted: FittedAttention
    loss_curve: list[float]
    gap: float
    n_iter: int
    status: str


def fit_joint(
    bag: TokenBag,
    codes: NDArray[np.intp],
    sample_weight: Array,
    class_weights: Array,
    scaling: Scaling,
    *,
    value_C: float,
    attention_C: float,
    max_iter: int,
    tol: float,
    start: FittedAttention | None = None,
    on_step: Callable[[JointProgress], bool] | None = None,
) -> JointFit:
    """Train scores, values, intercepts and the score of ``<cls>`` together by L-BFGS.

    Parameters
    ----------
    bag : TokenBag of shape (n_documents, n_tokens)
        The documents.

    codes : ndarray of shape (n_documents,)
        Class codes 0..K-1.

    sample_weight : ndarray of shape (n_documents,)
        Document weights.

    class_weights : ndarray of shape (n_classes,)
        Summed document weights of each class.

    scaling : Scaling
        Units of training (:func:`sklearn_clsattn.training.scaling.token_scaling`).

    value_C : float
        Inverse strength of the penalty on values, in units of `VALUE_C_UNIT` over
        `scaling.document_scale`.

    attention_C : float
        Inverse strength of the penalty on what the scores learn.

    max_iter : int
        At most this many steps.

    tol : float
        Training stops when the optimality gap falls below it.

    start : FittedAttention, default=None
        A model of the same tokens and outputs to start from.

    on_step : callable, default=None
        Called with a :class:`JointProgress` at the start and after each step; True stops.

    Returns
    -------
    JointFit
    """
    device, dtype = bag.device, bag.dtype
    n_classes = len(class_weights)
    priors = np.maximum(class_weights / class_weights.sum(), 1e-9)

    def tensor(array: NDArray[np.generic], dtype: torch.dtype = dtype) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=dtype)

    if n_classes == 2:
        targets = tensor(2.0 * codes - 1.0, torch.float64)
        log_odds = np.log(priors[1:] / priors[:1])
        label_variance = priors[1:] * (1 - priors[1:])
        unit = VALUE_C_UNIT
    else:
        targets = tensor(codes, torch.int64)
        log_odds = np.log(priors)
        label_variance = priors * (1 - priors)
        unit = MULTICLASS_C_UNIT
    objective = AttentionObjective(
        bag,
        targets,
        tensor(sample_weight, torch.float64),
        Units(tensor(scaling.starting_scores), tensor(scaling.value_scales), scaling.cls_weight),
        value_C=value_C * unit / scaling.document_scale,
        score_C=attention_C,
        cls_penalty=CLS_PENALTY,
    )
    parameters = objective.start()
    if start is None:
        parameters[-1, 1:] = tensor(log_odds)
    else:
        _load(parameters, start, objective.units)
    curvature = torch.from_numpy(np.maximum(label_variance, _LEAST_CURVATURE)).to(device)
    gap = np.inf
    stopped = False

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap, stopped
        gap = optimality_gap(objective, iterate.gradient, curvature)
        if on_step is not None:
            stopped = on_step(
                JointProgress(
                    iterate.n_iter, iterate.value, gap, lambda: _model(objective, iterate.x)
                )
            )
        return stopped or gap <= tol

    result = minimize_lbfgs(
        objective,
        parameters,
        is_converged=is_converged,
        max_iter=max_iter,
        memory=_memory(parameters),
        inverse_hessian_diagonal=_inverse_curvature(objective, curvature),
    )
    return JointFit(
        fitted=_model(objective, result.x),
        loss_curve=result.values,
        gap=gap,
        n_iter=result.n_iter,
        status="stopped" if stopped and gap > tol else result.status,
    )


def optimality_gap(
    objective: AttentionObjective, gradient: torch.Tensor, label_variance: torch.Tensor
) -> float:
    r"""Estimate how far the penalised mean loss is above a stationary one, in nats.

    The sum of four terms ``|gradient|^2 / (2 curvature)``. For the values it is the duality
    gap of the convex problem that remains when the attention is held fixed: with the penalty
    :math:`\frac{\lambda}{2} \|t\|^2` and the dual variables
    :math:`-\partial \ell / \partial F`, primal minus dual is :math:`\|\nabla_t L\|^2 /
    (2 \lambda)`. So at the attention reached, no values give a loss lower by more than that.
    For the scores (where the problem is not convex) and for ``<cls>`` and the intercepts it
    estimates what one more step could gain: small there means stationary.

    Parameters
    ----------
    objective : AttentionObjective

    gradient : torch.Tensor of shape (n_tokens + 1, 1 + n_outputs)
        The objective's gradient.

    label_variance : torch.Tensor of shape (n_outputs,)
        Curvature of the loss by the intercepts.

    Returns
    -------
    gap : float
    """
    score_square, *value_squares = column_squares(gradient[:-1])
    scores = score_square / objective.score_penalty
    values = sum(value_squares) / objective.value_penalty
    last = gradient[-1].to(torch.float64).square()
    intercepts = float((last[1:] / label_variance).sum())
    cls = float(last[0]) / objective.cls_penalty
    return 0.5 * (scores + values + intercepts + cls)


def _memory(parameters: torch.Tensor) -> int:
    """Return how many curvature pairs L-BFGS keeps: 10, fewer where there are many parameters.

    With many classes and rare tokens the pairs would weigh more than the documents, and hardly
    save iterations. The rule does not look at the documents: a weight has to do as repetition.
    """
    return min(10, max(3, _PAIR_ENTRIES // parameters.numel()))


def _inverse_curvature(objective: AttentionObjective, label_variance: torch.Tensor) -> torch.Tensor:
    """Return the inverse diagonal of the Hessian at the start, where all values are 0."""
    units, bag = objective.units, objective.bag
    weights = torch.exp(units.starting_scores)
    mass = bag.sum_over_tokens(weights[:, None])[:, 0].to(torch.float64) + units.cls_weight
    per_document = objective.sample_weight / mass.clamp(min=1e-30).square()
    squares = bag.squared_sum_over_documents(per_document.to(bag.dtype)[:, None])
    squares *= (weights / objective.total_weight**0.5).square()[:, None]
    curvature = torch.empty_like(objective.start())
    tokens = curvature[:-1]
    tokens[:, 0] = objective.score_penalty
    torch.mul(units.value_scales.square(), squares, out=tokens[:, 1:])
    tokens[:, 1:] *= label_variance.to(bag.dtype)
    tokens[:, 1:] += objective.value_penalty
    curvature[-1, 0] = objective.cls_penalty
    curvature[-1, 1:] = label_variance
    return curvature.reciprocal_()


def _load(parameters: torch.Tensor, start: FittedAttention, units: Units) -> None:
    """Express a fitted model in the units of this training, in place."""

    def tensor(array: Array) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(parameters)

    parameters[:-1, 0] = tensor(start.scores) - units.starting_scores
    scaled = tensor(start.values) / units.value_scales
    parameters[:-1, 1:] = torch.where(units.value_scales > 0, scaled, 0.0)
    if units.cls_weight and start.cls_weight:
        parameters[-1, 0] = start.cls_score + float(np.log(start.cls_weight / units.cls_weight))
    parameters[-1, 1:] = tensor(start.intercept)


def _model(objective: AttentionObjective, parameters: torch.Tensor) -> FittedAttention:
    """Return a point of the objective as plain NumPy arrays in float64."""

    def array(tensor: torch.Tensor) -> Array:
        return np.array(tensor.to("cpu", torch.float64).numpy())

    weight = objective.units.cls_weight
    return FittedAttention(
        scores=array(objective.scores(parameters)),
        values=array(objective.values(parameters)),
        intercept=array(parameters[-1, 1:]),
        cls_weight=weight,
        cls_score=float(parameters[-1, 0]) if weight else -np.inf,
    )
