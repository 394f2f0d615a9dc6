r"""Training with frozen random embeddings: the paper's ablation, in which E stays as drawn.

Only p, the output vectors, the intercepts and the score of ``<cls>`` are trained. With
:math:`E \sim N(0, I / d)` and the value scale :math:`\sigma` of joint training, the same in all
tokens,

.. math::

    a = E p, \qquad b_k = \sigma E w_k, \qquad v_k = \sigma w_k,

and what is minimised is joint training's objective with :math:`u = E p` and :math:`t_k = E w_k`,
but with the penalties on what is trained,
:math:`\|p\|^2 / (2 \Omega C_u) + \|w\|^2 / (2 \Omega C_t)`.

Those are in joint training's units: the least :math:`\|p\|^2` with given scores u is
:math:`u^\top (E E^\top)^{-1} u`, which tends to :math:`\|u\|^2` as d grows past the number of
tokens. So frozen embeddings of enough dimensions are no restriction, and this fit tends to joint
training without token scaling; it is d far below the number of tokens that costs accuracy.

p and w start at 0 (ours): nothing is random but E.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import FittedAttention
from ..model.gradient_step import draw_embeddings
from ..model.objective import AttentionObjective
from .joint import (
    JointProblem,
    JointProgress,
    curvature_at_start,
    descend_to_gap,
    fitted_model,
    joint_problem,
    optimality_gap,
)
from .scaling import Scaling

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FrozenFit:
    """What training with frozen embeddings returns.

    The embeddings themselves are drawn again from the seed by
    :func:`sklearn_clsattn.model.gradient_step.draw_embeddings`, in the precision of training.

    Attributes
    ----------
    fitted : FittedAttention
        The model.

    loss_curve : list of float
        Penalised mean loss at the start and after each step.

    gap : float
        The optimality gap at the end, as in joint training.

    n_iter : int
        Number of steps.

    status : {"converged", "max_iter", "no_progress", "stopped"}
        "stopped" where `on_step` asked for it.

    cls_embedding : ndarray of shape (d,)
        p.

    output_vectors : ndarray of shape (n_outputs, d)
        The v_k.
    """

    fitted: FittedAttention
    loss_curve: list[float]
    gap: float
    n_iter: int
    status: str
    cls_embedding: Array
    output_vectors: Array


def fit_frozen(
    bag: TokenBag,
    codes: NDArray[np.intp],
    sample_weight: Array,
    class_weights: Array,
    scaling: Scaling,
    *,
    embedding_dim: int,
    seed: int,
    value_C: float,
    attention_C: float,
    max_iter: int,
    tol: float,
    on_step: Callable[[JointProgress], bool] | None = None,
) -> FrozenFit:
    """Train p and the output vectors over random embeddings by L-BFGS.

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
        From :func:`sklearn_clsattn.training.scaling.token_scaling` with ``scaling=None``: all
        tokens alike.

    embedding_dim : int
        d, at least 2 for two classes and 1 + K for K > 2. The embeddings are stored:
        n_tokens * d numbers in the precision of `bag`.

    seed : int
        Of the embeddings.

    value_C, attention_C : float
        Inverse strengths of the penalties on the output vectors and on p, in the units of
        :func:`sklearn_clsattn.training.joint.fit_joint`.

    max_iter : int
        At most this many steps.

    tol : float
        Training stops when the optimality gap falls below it.

    on_step : callable, default=None
        Called with a :class:`~sklearn_clsattn.training.joint.JointProgress` at the start and
        after each step; True stops.

    Returns
    -------
    FrozenFit

    Raises
    ------
    ValueError
        If `embedding_dim` is too small, or if `scaling` tells tokens apart.
    """
    scales = scaling.value_scales
    if np.any(scaling.starting_scores) or np.any(scales != scales[:1]):
        raise ValueError(
            "Frozen embeddings are trained without token scaling (token_scaling=None): scores "
            "and values are to be products of E with vectors, and a scaling by tokens is none."
        )
    problem = joint_problem(
        bag,
        codes,
        sample_weight,
        class_weights,
        scaling,
        value_C=value_C,
        attention_C=attention_C,
    )
    drawn = draw_embeddings(
        bag.shape[1],
        problem.objective.n_outputs,
        embedding_dim,
        seed=seed,
        dtype=bag.dtype,
        device=bag.device,
    )
    frozen = FrozenObjective(problem.objective, drawn.embeddings)
    descent = descend_to_gap(
        frozen,
        frozen.parameters_at(problem.start[-1]),
        gap_of=lambda gradient: optimality_gap(problem.objective, gradient, problem.label_variance),
        model_of=frozen.model,
        inverse_curvature=_curvature(problem, embedding_dim).reciprocal_(),
        max_iter=max_iter,
        tol=tol,
        on_step=on_step,
    )
    trained = descent.x[:-1].to("cpu", torch.float64).numpy()
    return FrozenFit(
        fitted=frozen.model(descent.x),
        loss_curve=descent.values,
        gap=descent.gap,
        n_iter=descent.n_iter,
        status=descent.status,
        cls_embedding=trained[:, 0].copy(),
        output_vectors=(trained[:, 1:] * scales[:1]).T.copy(),
    )


class FrozenObjective:
    """Joint training's objective as a function of p and the w_k, with the penalties on these.

    Parameters
    ----------
    objective : AttentionObjective
        Joint training's.

    embeddings : torch.Tensor of shape (n_tokens, d)
        E.
    """

    def __init__(self, objective: AttentionObjective, embeddings: torch.Tensor) -> None:
        self.objective = objective
        self.embeddings = embeddings

    def parameters_at(self, last_row: torch.Tensor) -> torch.Tensor:
        """Return p = 0 and w = 0 over a last row, shape (d + 1, 1 + n_outputs)."""
        parameters = last_row.new_zeros((self.embeddings.shape[1] + 1, len(last_row)))
        parameters[-1] = last_row
        return parameters

    def rows(self, parameters: torch.Tensor) -> torch.Tensor:
        """Return the parameters of the joint objective, shape (n_tokens + 1, 1 + n_outputs)."""
        return torch.cat([self.embeddings @ parameters[:-1], parameters[-1:]])

    def model(self, parameters: torch.Tensor) -> FittedAttention:
        """Return the model that p, the w_k and the last row stand for."""
        return fitted_model(self.objective, self.rows(parameters))

    def __call__(self, parameters: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the penalised mean loss and its gradient, shaped as `parameters`.

        Parameters are a matrix with a column for p and one for every w_k, over a last row with
        the score of ``<cls>`` and the intercepts.
        """
        objective = self.objective
        loss, by_token = objective.document_sums(self.rows(parameters))
        # MKL is twice as fast by rows as at E.T @ by_token.
        pulled_back = by_token[:-1].T.contiguous() @ self.embeddings
        gradient = torch.cat([pulled_back.T, by_token[-1:]])
        gradient /= objective.total_weight
        gradient[:-1, 0].add_(parameters[:-1, 0], alpha=objective.score_penalty)
        gradient[:-1, 1:].add_(parameters[:-1, 1:], alpha=objective.value_penalty)
        gradient[-1, 0] += objective.cls_penalty * parameters[-1, 0]
        return loss / objective.total_weight + objective.penalty(parameters), gradient


def _curvature(problem: JointProblem, embedding_dim: int) -> torch.Tensor:
    """Return the mean over random E of the Hessian's diagonal at the start.

    A document's coordinate j is a sum of independent E_sj of variance 1 / d, so that its mean
    square is the sum over tokens of what curves joint training's values, divided by d: one
    number for all coordinates of a w_k.
    """
    objective = problem.objective
    by_token = curvature_at_start(problem)
    curvature = by_token.new_empty((embedding_dim + 1, by_token.shape[1]))
    curvature[-1] = by_token[-1]
    curvature[:-1, 0] = objective.score_penalty
    of_values = (by_token[:-1, 1:].to(torch.float64) - objective.value_penalty).sum(dim=0)
    curvature[:-1, 1:] = of_values / embedding_dim + objective.value_penalty
    return curvature
