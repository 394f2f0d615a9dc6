r"""The practical form of one-step training (ours): p, the scale of v and the intercepts.

The embeddings are frozen, so that scores are :math:`a = E p`, and values keep their shape,
:math:`b_{sk} = \gamma_k\, \hat b_{sk}` with :math:`\hat b_k \propto E v_k` and the scales
:math:`\gamma_k` trained. What is minimised is the mean loss, in which all classes may be given the
same weight, plus

.. math::

    \frac{\|p\|^2}{2 \Omega C_p} + \frac{\|\gamma\|^2}{2 \Omega C}
        + \frac{\kappa}{2} a_0^2 .

Where the paper's gradient flow lets p grow without bound, the penalty stops it at a finite length:
that is what makes it predict.

**Start.** In the limit of infinitely many dimensions p starts where attention weighs tokens against
their frequency, :math:`a_s = -\log(\text{share of documents with } s + 0.01)` and a constant,
because values are in proportion to it: from 0 the same minimum is reached, in five times as many
steps. In d dimensions there is no such p, and it starts at :math:`p^0`. The scales start, all
alike, where outputs have a standard deviation of 2, or of half that and so on while the loss falls.

**Preconditioner.** The exact diagonal of the Gauss-Newton matrix for p in the limit, its mean over
random E otherwise, and the curvature along the output vectors for itself. It changes by orders of
magnitude as scores move, so that it is taken anew every `REFRESH` steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..model.bag import TokenBag
from ..model.fitted import FittedAttention
from ..model.gradient_step import unscaled_objective
from ..model.token_embeddings import LimitEmbeddings
from .joint import CLS_PENALTY, JointProgress, fitted_model
from .lbfgs import Iterate, minimize_lbfgs
from .one_step import FrozenEmbeddings

Array = NDArray[np.float64]

ATTENTION_C_UNIT = 100.0
"""attention_C = 1 is this as C_p (ours)."""

REFRESH = 20
"""Steps after which the preconditioner is taken anew."""

_FREQUENCY_FLOOR = 0.01
_LEAST_CURVATURE = 1e-12
_MOST_HALVINGS = 10
_LEAST_MASS = 1e-15  # the inverse of its square is a number in single precision
_BALANCED = 0.25  # curvature of the logistic loss at even odds


@dataclass(frozen=True)
class ClsRegression:
    """What the practical form returns.

    Attributes
    ----------
    fitted : FittedAttention
        The model.

    loss_curve : list of float
        Penalised mean loss at the start and after each step.

    gap : float
        The optimality gap at the end: an estimate, as in joint training.

    n_iter : int
        Number of steps.

    status : {"converged", "max_iter", "no_progress", "stopped"}
        "stopped" where `on_step` asked for it.

    cls_embedding : ndarray of shape (dimension,)
        p, in the coordinates of the embeddings.

    output_scales : ndarray of shape (n_outputs,)
        What the v_k are multiplied by.
    """

    fitted: FittedAttention
    loss_curve: list[float]
    gap: float
    n_iter: int
    status: str
    cls_embedding: Array
    output_scales: Array


def fit_cls_regression(
    bag: TokenBag,
    targets: torch.Tensor,
    sample_weight: torch.Tensor,
    frozen: FrozenEmbeddings,
    document_shares: Array,
    intercept: Array,
    *,
    cls_weight: float,
    output_C: float,
    attention_C: float,
    max_iter: int,
    tol: float,
    on_step: Callable[[JointProgress], bool] | None = None,
) -> ClsRegression:
    """Train p, the scales of the output vectors and the intercepts by L-BFGS.

    Parameters
    ----------
    bag : TokenBag of shape (n_documents, n_tokens)
        The documents.

    targets : torch.Tensor of shape (n_documents,)
        :func:`sklearn_clsattn.model.targets.encode_targets`.

    sample_weight : torch.Tensor of shape (n_documents,)
        Document weights.

    frozen : FrozenEmbeddings
        From :func:`sklearn_clsattn.training.one_step.take_step`.

    document_shares : ndarray of shape (n_tokens,)
        Share of the documents, by weight, that have each token.

    intercept : ndarray of shape (n_outputs,)
        Where the intercepts start.

    cls_weight : float
        Weight of ``<cls>`` in every document, 0 to leave it out.

    output_C, attention_C : float
        Inverse strengths of the penalties on the scales and, in units of `ATTENTION_C_UNIT`,
        on p.

    max_iter : int
        At most this many steps.

    tol : float
        Training stops when the optimality gap falls below it.

    on_step : callable, default=None
        Called with a :class:`~sklearn_clsattn.training.joint.JointProgress` at the start and
        after each step; True stops.

    Returns
    -------
    ClsRegression
    """
    objective = ClsObjective(
        bag,
        targets,
        sample_weight,
        frozen,
        document_shares,
        cls_weight=cls_weight,
        output_C=output_C,
        cls_C=attention_C * ATTENTION_C_UNIT,
    )
    x = objective.start(torch.from_numpy(intercept).to(bag.device, bag.dtype))
    curve: list[float] = []
    gap, done, stopped, status = np.inf, 0, False, "max_iter"

    def is_converged(iterate: Iterate) -> bool:
        nonlocal gap, stopped
        gap = objective.gap(iterate.gradient)
        restarted = bool(curve) and iterate.n_iter == 0
        if not restarted:
            curve.append(iterate.value)
            if on_step is not None:
                point = iterate.x
                stopped = on_step(
                    JointProgress(
                        done + iterate.n_iter, iterate.value, gap, lambda: objective.model(point)
                    )
                )
        return stopped or gap <= tol

    while True:
        result = minimize_lbfgs(
            objective,
            x,
            is_converged=is_converged,
            max_iter=min(REFRESH, max_iter - done),
            precondition=objective.preconditioner(x),
        )
        x = result.x
        done += result.n_iter
        if result.status == "converged":
            status = "stopped" if stopped and gap > tol else "converged"
            break
        if done >= max_iter:
            break
        if result.status == "no_progress" and result.n_iter == 0:
            status = "no_progress"
            break
    p, scales, _ = objective.parts(x)
    return ClsRegression(
        fitted=objective.model(x),
        loss_curve=curve,
        gap=gap,
        n_iter=done,
        status=status,
        cls_embedding=p.to("cpu", torch.float64).numpy().copy(),
        output_scales=(scales / objective.unit).to("cpu", torch.float64).numpy().copy(),
    )


class ClsObjective:
    """The penalised mean loss by ``[p, gamma_1..gamma_K, a_0, beta_1..beta_K]``, one vector.

    Parameters
    ----------
    bag, targets, sample_weight, frozen, document_shares, cls_weight, output_C
        As in :func:`fit_cls_regression`.

    cls_C : float
        C_p.
    """

    def __init__(
        self,
        bag: TokenBag,
        targets: torch.Tensor,
        sample_weight: torch.Tensor,
        frozen: FrozenEmbeddings,
        document_shares: Array,
        *,
        cls_weight: float,
        output_C: float,
        cls_C: float,
    ) -> None:
        self.bag, self.frozen, self.cls_weight = bag, frozen, cls_weight
        self.n_outputs = frozen.values.shape[1]
        self.dimension = frozen.embeddings.dimension
        self.plain = unscaled_objective(
            bag,
            targets,
            sample_weight,
            self.n_outputs,
            cls_weight=cls_weight,
            cls_penalty=CLS_PENALTY,
        )
        total = self.plain.total_weight
        self.share = self.plain.sample_weight / total
        self.cls_strength = 1.0 / (total * cls_C)
        self.output_strength = 1.0 / (total * output_C)
        self._p = self._starting_cls_embedding(document_shares)
        # The scales' unit: outputs have a standard deviation of 1 under uniform attention.
        self.unit, self.values = 1.0, frozen.values
        ones = frozen.values.new_ones(self.n_outputs)
        uniform = self._spread(torch.zeros_like(self._p), ones)
        if uniform > 0:
            self.unit = uniform
            self.values = frozen.values / uniform
        # They start where outputs have twice that with the attention of the start, or below.
        self._start_scale = 2.0 / (self._spread(self._p, ones) or 1.0)

    def start(self, intercept: torch.Tensor) -> torch.Tensor:
        """Return where training starts: outputs of a standard deviation of 2.

        Or of half that, a quarter, .. where the loss is lower: from too far out the first step
        may carry a scale past 0, to a minimum at which all values speak for the wrong class.
        """
        d, k = self.dimension, self.n_outputs
        scales = intercept.new_full((k,), self._start_scale)
        x = torch.cat([self._p, scales, intercept.new_zeros(1), intercept])
        loss = self(x)[0]
        for _ in range(_MOST_HALVINGS):
            halved = x.clone()
            halved[d : d + k] *= 0.5
            halved_loss = self(halved)[0]
            if not halved_loss < loss:
                break
            x, loss = halved, halved_loss
        return x

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return p, the scales, and the last row: the score of ``<cls>`` and the intercepts."""
        d, k = self.dimension, self.n_outputs
        return x[:d], x[d : d + k], x[d + k :]

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model that a point stands for."""
        p, scales, last = self.parts(x)
        return fitted_model(self.plain, self._matrix(p, scales, last))

    def __call__(self, x: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the penalised mean loss and its gradient."""
        p, scales, last = self.parts(x)
        loss, by_token = self.plain(self._matrix(p, scales, last))
        gradient = torch.cat(
            [
                self.frozen.embeddings.pull_back(by_token[:-1, 0].contiguous()),
                (by_token[:-1, 1:] * self.values).sum(dim=0),
                by_token[-1],
            ]
        )
        by_p, by_scales, _ = self.parts(gradient)
        by_p.add_(p, alpha=self.cls_strength)
        by_scales.add_(scales, alpha=self.output_strength)
        norm = torch.linalg.vector_norm
        loss += 0.5 * self.cls_strength * float(norm(p, dtype=torch.float64)) ** 2
        loss += 0.5 * self.output_strength * float(norm(scales, dtype=torch.float64)) ** 2
        return loss, gradient

    def gap(self, gradient: torch.Tensor) -> float:
        """Estimate in nats how far the loss is above a stationary one.

        The sum of ``|gradient|^2 / (2 curvature)``, the least curvature that the penalty leaves
        p, that of the penalty on the score of ``<cls>``, and `_BALANCED` for the others.
        """
        by_p, by_scales, by_last = self.parts(gradient.to(torch.float64))
        return 0.5 * (
            float(by_p @ by_p) / self.cls_strength
            + float(by_last[0]) ** 2 / CLS_PENALTY
            + float(by_scales @ by_scales + by_last[1:] @ by_last[1:]) / _BALANCED
        )

    def preconditioner(self, x: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
        """Return the product with an approximate inverse Hessian at a point."""
        p, scales, last = self.parts(x)
        matrix = self._matrix(p, scales, last)
        attended, mass, weights = self._attended(matrix)
        curvature = self._output_curvature(attended + last[1:])  # (n, K), weighted
        # Not attended / scales: a scale may be 0.
        per_scale = self._attended(self._matrix(p, torch.ones_like(scales), last))[0]
        by_scale = (curvature * per_scale.square()).sum(dim=0) + self.output_strength
        by_intercept = curvature.sum(dim=0).clamp(min=_LEAST_CURVATURE)
        along = self._curvature_along_outputs(matrix, attended, mass, weights, curvature)
        token = self._token_curvature(matrix, attended, mass, weights, curvature)
        if isinstance(self.frozen.embeddings, LimitEmbeddings):
            by_p = torch.cat([token, along])
        else:  # the mean over random rows of variance 1 / d
            by_p = (token.sum() / self.dimension).expand(self.dimension)
        diagonal = torch.cat(
            [
                by_p + self.cls_strength,
                by_scale,
                by_scale.new_full((1,), CLS_PENALTY),
                by_intercept,
            ]
        ).reciprocal()
        diagonal = diagonal.to(x.dtype)
        if isinstance(self.frozen.embeddings, LimitEmbeddings):
            return lambda tensor: tensor * diagonal
        vectors = self.frozen.output_vectors
        excess = (along + self.cls_strength).reciprocal().to(x.dtype) - diagonal[0]
        d = self.dimension

        def multiply(tensor: torch.Tensor) -> torch.Tensor:
            product = tensor * diagonal
            product[:d] += vectors.T @ (excess * (vectors @ tensor[:d]))
            return product

        return multiply

    def _starting_cls_embedding(self, document_shares: Array) -> torch.Tensor:
        frozen, bag = self.frozen, self.bag
        if not isinstance(frozen.embeddings, LimitEmbeddings):
            return frozen.cls_embedding
        scores = torch.from_numpy(-np.log(document_shares + _FREQUENCY_FLOOR))
        scores = scores.to(bag.device, bag.dtype)
        # Shifted so that the mean mass of a document stays what it is at scores of 0.
        sums = bag.sum_over_tokens(torch.stack([torch.ones_like(scores), scores.exp()], dim=1))
        plain, weighted = (self.share @ sums.to(torch.float64)).tolist()
        if plain > 0:
            scores -= float(np.log(weighted / plain))
        return torch.cat([scores, frozen.values.new_zeros(self.n_outputs)])

    def _spread(self, p: torch.Tensor, scales: torch.Tensor) -> float:
        """Return the standard deviation of the outputs over documents (root mean square of K).

        0 where it is rounding, as it is where all documents have the same tokens.
        """
        attended = self._attended(self._matrix(p, scales))[0]
        centred = attended - (self.share[:, None] * attended).sum(dim=0)
        spread = float((self.share[:, None] * centred.square()).sum(dim=0).mean().sqrt())
        rounding = 100 * torch.finfo(self.bag.dtype).eps * float(attended.abs().max())
        return spread if spread > rounding else 0.0

    def _matrix(
        self, p: torch.Tensor, scales: torch.Tensor, last: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the rows [a, b_1..b_K] of the tokens over the last row."""
        matrix = self.plain.start()
        matrix[:-1, 0] = self.frozen.embeddings.scores(p)
        matrix[:-1, 1:] = self.values * scales
        if last is not None:
            matrix[-1] = last
        return matrix

    def _attended(self, matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return attention-weighted values (n, K), mass (n,) in float64, and token weights."""
        shift = float(matrix[:-1, 0].max()) if len(matrix) > 1 else 0.0
        if self.cls_weight:
            shift = max(shift, float(matrix[-1, 0]))
        weights = torch.exp(matrix[:-1, 0] - shift)
        columns = torch.cat([weights[:, None], weights[:, None] * matrix[:-1, 1:]], dim=1)
        sums = self.bag.sum_over_tokens(columns).to(torch.float64)
        mass = sums[:, 0] + self.cls_weight * float(np.exp(float(matrix[-1, 0]) - shift))
        mass = mass.clamp(min=_LEAST_MASS)
        return sums[:, 1:] / mass[:, None], mass, weights

    def _output_curvature(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return each document's share times the diagonal of its loss's Hessian, (n, K)."""
        if self.n_outputs == 1:
            probabilities = torch.sigmoid(outputs)
        else:
            probabilities = torch.softmax(outputs, dim=1)
        return self.share[:, None] * probabilities * (1 - probabilities)

    def _token_curvature(
        self,
        matrix: torch.Tensor,
        attended: torch.Tensor,
        mass: torch.Tensor,
        weights: torch.Tensor,
        curvature: torch.Tensor,
    ) -> torch.Tensor:
        """Return the Gauss-Newton diagonal by the scores, sum_ik h_ik q_is^2 (b_sk - f_ik)^2."""
        h = curvature / mass.square()[:, None]
        columns = torch.cat([h, h * attended, (h * attended.square()).sum(dim=1)[:, None]], dim=1)
        sums = self.bag.squared_sum_over_documents(columns.to(self.bag.dtype)).to(torch.float64)
        k = self.n_outputs
        values = matrix[:-1, 1:].to(torch.float64)
        total = (values.square() * sums[:, :k] - 2 * values * sums[:, k : 2 * k]).sum(dim=1)
        total += sums[:, -1]
        return (weights.to(torch.float64).square() * total).clamp(min=0.0)

    def _curvature_along_outputs(
        self,
        matrix: torch.Tensor,
        attended: torch.Tensor,
        mass: torch.Tensor,
        weights: torch.Tensor,
        curvature: torch.Tensor,
    ) -> torch.Tensor:
        """Return the Gauss-Newton curvature by p along each output vector, where a = E v_j."""
        along = torch.empty(self.n_outputs, dtype=torch.float64, device=matrix.device)
        for j, moved in enumerate(self.frozen.values.unbind(dim=1)):
            per_token = (weights * moved)[:, None]
            columns = torch.cat([per_token, per_token * matrix[:-1, 1:]], dim=1)
            sums = self.bag.sum_over_tokens(columns).to(torch.float64) / mass[:, None]
            change = sums[:, 1:] - attended * sums[:, :1]
            along[j] = (curvature * change.square()).sum()
        return along
