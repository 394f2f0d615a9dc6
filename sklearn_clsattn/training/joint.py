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
from ..model.targets import encode_targets
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
    problem = joint_problem(
        bag,
        codes,
        sample_weight,
        class_weights,
        scaling,
        value_C=value_C,
        attention_C=attention_C,
    )
    objective, parameters = problem.objective, problem.start
    if start is not None:
        _load(parameters, start, objective.units)
    descent = descend_to_gap(
        objective,
        parameters,
        gap_of=lambda gradient: optimality_gap(objective, gradient, problem.label_variance),
        model_of=lambda parameters: fitted_model(objective, parameters),
        inverse_curvature=curvature_at_start(problem).reciprocal_(),
        max_iter=max_iter,
        tol=tol,
        on_step=on_step,
    )
    return JointFit(
        fitted=fitted_model(objective, descent.x),
        loss_curve=descent.values,
        gap=descent.gap,
        n_iter=descent.n_iter,
        status=descent.status,
    )


@dataclass(frozen=True)
class JointProblem:
    """What joint training minimises, and from where.

    Attributes
    ----------
    objective : AttentionObjective

    start : torch.Tensor of shape (n_tokens + 1, 1 + n_outputs)
        Nothing learnt, the intercepts at the log-odds of the classes.

    label_variance : torch.Tensor of shape (n_outputs,)
        Curvature of the mean loss by the intercepts there.
    """

    objective: AttentionObjective
    start: torch.Tensor
    label_variance: torch.Tensor


def joint_problem(
    bag: TokenBag,
    codes: NDArray[np.intp],
    sample_weight: Array,
    class_weights: Array,
    scaling: Scaling,
    *,
    value_C: float,
    attention_C: float,
    total_weight: float | None = None,
) -> JointProblem:
    """Set joint training up; the parameters are those of :func:`fit_joint`.

    `total_weight` is that of all documents where these are a part of them, and then
    `class_weights` and `scaling` are of all of them too.
    """
    device, dtype = bag.device, bag.dtype
    n_classes = len(class_weights)
    priors = np.maximum(class_weights / class_weights.sum(), 1e-9)

    def tensor(array: NDArray[np.generic], dtype: torch.dtype = dtype) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=dtype)

    of_outputs = priors[1:] if n_classes == 2 else priors
    label_variance = np.maximum(of_outputs * (1 - of_outputs), _LEAST_CURVATURE)
    unit = VALUE_C_UNIT if n_classes == 2 else MULTICLASS_C_UNIT
    objective = AttentionObjective(
        bag,
        encode_targets(codes, n_classes, device),
        tensor(sample_weight, torch.float64),
        Units(tensor(scaling.starting_scores), tensor(scaling.value_scales), scaling.cls_weight),
        value_C=value_C * unit / scaling.document_scale,
        score_C=attention_C,
        cls_penalty=CLS_PENALTY,
        total_weight=total_weight,
    )
    start = objective.start()
    start[-1, 1:] = tensor(class_log_odds(class_weights))
    return JointProblem(objective, start, torch.from_numpy(label_variance).to(device))


def class_log_odds(class_weights: Array) -> Array:
    """Return the intercepts that know nothing but the classes' weights, shape (n_outputs,).

    For two classes the log-odds of the second, else the logarithms of the classes' shares.
    """
    priors = np.maximum(class_weights / class_weights.sum(), 1e-9)
    return np.log(priors[1:] / priors[:1]) if len(priors) == 2 else np.log(priors)


@dataclass(frozen=True)
class Descent:
    """The last point, the values on the way there, its gap, the steps and how it ended."""

    x: torch.Tensor
    values: list[float]
    gap: float
    n_iter: int
    status: str


def descend_to_gap(
    function: Callable[[torch.Tensor], tuple[float, torch.Tensor]],
    start: torch.Tensor,
    *,
    gap_of: Callable[[torch.Tensor], float],
    model_of: Callable[[torch.Tensor], FittedAttention],
    inverse_curvature: torch.Tensor,
    max_iter: int,
    tol: float,
    on_step: Callable[[JointProgress], bool] | None,
) -> Descent:
    """Minimise by L-BFGS until the optimality gap of the gradient is at most `tol`.

    `gap_of` maps a gradient to the gap, `model_of` a point to the model that it stands for.
    """
    gap = np.inf
    stopped = False

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap, stopped
        gap = gap_of(iterate.gradient)
        if on_step is not None:
            stopped = on_step(
                JointProgress(iterate.n_iter, iterate.value, gap, lambda: model_of(iterate.x))
            )
        return stopped or gap <= tol

    result = minimize_lbfgs(
        function,
        start,
        is_converged=is_converged,
        max_iter=max_iter,
        memory=_memory(start),
        inverse_hessian_diagonal=inverse_curvature,
    )
    status = "stopped" if stopped and gap > tol else result.status
    return Descent(result.x, result.values, gap, result.n_iter, status)


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


def curvature_at_start(problem: JointProblem) -> torch.Tensor:
    """Return the diagonal of the Hessian at the start, where all values are 0."""
    objective, label_variance = problem.objective, problem.label_variance
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
    return curvature


def _load(parameters: torch.Tensor, start: FittedAttention, units: Units) -> None:
    """Express a fitted model in the units of this training, in place."""

    def tensor(array: Array) -> torch.Tensor:
        return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(parameters)

    parameters[:-1, 0] = tensor(start.scores) - units.starting_scores
    scaled = tensor(start.values) / units.value_scales
    parameters[:-1, 1:] = torch.where(units.value_scales > 0, scaled, 0.0)
    if units.cls_weight and start.cls_weight:
        parameters[-1, 0] = start.cls_score + float(np.log(start.cls_weight / units.cls_weight))
    parameters[-1, 1:] = tensor(start.intercept)


def fitted_model(objective: AttentionObjective, parameters: torch.Tensor) -> FittedAttention:
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
