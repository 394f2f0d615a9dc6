r"""The penalised form of one-step training: p, the scales of v and the intercepts.

The embeddings are frozen, so that scores are :math:`a = E p` and values keep their shape,
:math:`b_{sk} = \gamma_k\, \hat b_{sk}`. What is minimised is the mean loss plus

.. math:: \frac{\|p\|^2}{2 \Omega C_p} + \frac{\|\gamma\|^2}{2 \Omega C} + \frac{\kappa}{2} a_0^2 .

**Start.** In the limit of infinitely many dimensions p starts where attention weighs tokens against
their frequency, :math:`a_s = -\log(\text{share of documents with } s + 0.01)` and a constant: from
0 the same minimum takes five times as many steps. In d dimensions it starts at :math:`p^0`.

**Preconditioner.** The exact diagonal of the Gauss-Newton matrix for p in the limit, its mean over
random E otherwise, and the curvature along the output vectors for itself. It changes by orders of
magnitude as scores change, so that it is computed anew every `REFRESH` steps.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.attention_problem import CLS_PENALTY, fitted_attention
from .._core.documents import Documents
from .._core.fitted import FittedAttention
from .._core.objective import AttentionLoss, Block, Objective
from .._core.problem import Callback, FitResult, solve
from .._core.solvers.base import Multiply
from .._core.statistics import balancing_factors, class_log_odds
from ..importance import class_totals, signed_frequency
from ..theory._token_embeddings import LimitEmbeddings
from ._step import FrozenEmbeddings, take_step

Array = NDArray[np.float64]

ATTENTION_C_UNIT = 100.0  # attention_C = 1 is this as C_p
REFRESH = 20  # steps after which the preconditioner is computed anew
_FREQUENCY_FLOOR = 0.01
_LEAST_CURVATURE = 1e-12
_MOST_HALVINGS = 10
_LEAST_MASS = 1e-15  # the inverse of its square is a number in single precision
_BALANCED = 0.25  # curvature of the logistic loss at even odds


def fit_penalized_one_step(
    documents: Documents,
    *,
    step_size: float | None,
    embedding_dim: int | None,
    seed: int,
    C: float,
    attention_C: float,
    fit_intercept: bool = True,
    attend_cls: bool,
    max_iter: int,
    tol: float,
    dtype: type[np.floating[Any]] = np.float64,
    device: torch.device | str = "cpu",
    callback: Callback | None = None,
) -> FitResult:
    """Make one gradient step on random embeddings, then train p, scales and intercepts.

    The step gives all classes that have documents the same weight; `attention_C` is in units of
    `ATTENTION_C_UNIT`.
    """
    statistics, n_classes = documents.statistics, documents.n_classes
    bag = documents.bag(dtype, device)
    class_weights = statistics.class_weights
    factors = balancing_factors(statistics.class_weights)
    importance = signed_frequency(statistics.shares, class_weights, centred=True)
    frozen = take_step(
        replace(documents, weights=documents.weights * factors[documents.codes]).loss(bag),
        importance * (n_classes / np.count_nonzero(class_weights)),
        step_size=step_size,
        embedding_dim=embedding_dim,
        seed=seed,
    )
    presence = class_totals(
        documents.X, documents.codes, n_classes, documents.weights, kind="presence"
    )
    problem = ClsProblem(
        documents.loss(bag, cls_weight=statistics.cls_weight if attend_cls else 0.0),
        frozen,
        presence.sum(axis=0) / documents.weights.sum(),
        class_log_odds(class_weights) * fit_intercept,
        C=C,
        cls_C=attention_C * ATTENTION_C_UNIT,
        fit_intercept=fit_intercept,
    )
    result = solve(problem, max_iter=max_iter, tol=tol, callback=callback)
    return replace(
        result,
        attributes={**result.attributes, "step_size_": frozen.step_size},
        warning=frozen.warning,
    )


class ClsMap:
    """The token matrix of ``[p, gamma_1..gamma_K, a_0, beta_1..beta_K]``, one vector."""

    def __init__(
        self, frozen: FrozenEmbeddings, values: torch.Tensor, fit_intercept: bool = True
    ) -> None:
        self.embeddings, self.values = frozen.embeddings, values
        self._fit_intercept = fit_intercept

    def parts(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return p, the scales, and the last row: the score of ``<cls>`` and the intercepts."""
        d, k = self.embeddings.dimension, self.values.shape[1]
        return x[:d], x[d : d + k], x[d + k :]

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """Return the token matrix."""
        p, scales, last_row = self.parts(x)
        matrix = x.new_empty((len(self.values) + 1, len(last_row)))
        matrix[:-1, 0] = self.embeddings.scores(p)
        matrix[:-1, 1:] = self.values * scales
        matrix[-1] = last_row
        return matrix

    def pull_back(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient by x."""
        by_p = self.embeddings.pull_back(gradient[:-1, 0].contiguous())
        by_scales = (gradient[:-1, 1:] * self.values).sum(dim=0)
        by_last_row = gradient[-1]
        if not self._fit_intercept:  # they stay what they are
            by_last_row = torch.cat([by_last_row[:1], torch.zeros_like(by_last_row[1:])])
        return torch.cat([by_p, by_scales, by_last_row])


class ClsProblem(Objective):
    """The penalised mean loss as a function of p, the scales and the last row (:class:`ClsMap`).

    `document_shares`, (n_tokens,), are the shares of the documents, by weight, that have each
    token; the intercepts start at `intercept`, (n_outputs,); `C` and `cls_C` are the inverse
    strengths of the penalties on the scales and on p.
    """

    refresh = REFRESH

    def __init__(
        self,
        loss: AttentionLoss,
        frozen: FrozenEmbeddings,
        document_shares: Array,
        intercept: Array,
        *,
        C: float,
        cls_C: float,
        fit_intercept: bool = True,
    ) -> None:
        self.loss, self.frozen, self.bag = loss, frozen, loss.bag
        self.n_outputs, self.dimension = loss.n_outputs, frozen.embeddings.dimension
        total = loss.total_weight
        self.share = loss.sample_weight / total
        d, k = self.dimension, self.n_outputs
        p, scales = slice(0, d), slice(d, d + k)
        self.cls_penalty, self.scale_penalty = 1.0 / (total * cls_C), 1.0 / (total * C)
        super().__init__(
            [loss],
            ClsMap(frozen, frozen.values, fit_intercept),
            [
                # p has at least the penalty's curvature; even odds for the unpenalised.
                Block(p, self.cls_penalty, self.cls_penalty),
                Block(scales, self.scale_penalty, _BALANCED),
                Block(d + k, CLS_PENALTY, CLS_PENALTY),
                Block(slice(d + k + 1, None), 0.0, _BALANCED),
            ],
            total,
        )
        starting_p = self._starting_cls_embedding(document_shares)
        # The scales' unit: outputs have a standard deviation of 1 under uniform attention.
        self.unit = self._spread(torch.zeros_like(starting_p)) or 1.0
        self.token_map = self.map = ClsMap(frozen, frozen.values / self.unit, fit_intercept)
        # They start where outputs have twice that with the attention of the start, or below.
        scale = 2.0 / (self._spread(starting_p) or 1.0)
        self.start = self._start(
            starting_p, scale, torch.from_numpy(intercept).to(self.bag.device, self.bag.dtype)
        )

    def model(self, x: torch.Tensor) -> FittedAttention:
        """Return the model at a point, with its embeddings."""
        p, scales, _ = self.map.parts(x)
        embeddings = self.frozen.located(
            p.to("cpu", torch.float64).numpy().copy(),
            (scales / self.unit).to("cpu", torch.float64).numpy().copy(),
        )
        return fitted_attention(self.token_map.matrix(x), self.loss.cls_weight, embeddings)

    def _start(self, p: torch.Tensor, scale: float, intercept: torch.Tensor) -> torch.Tensor:
        """Return where training starts: outputs of a standard deviation of 2, or of half that, ...

        While the loss falls: from larger scales the first step may make a scale negative, and lead
        to a minimum at which all values count for the wrong class.
        """
        d, k = self.dimension, self.n_outputs
        x = torch.cat([p, intercept.new_full((k,), scale), intercept.new_zeros(1), intercept])
        loss = self(x)[0]
        for _ in range(_MOST_HALVINGS):
            halved = x.clone()
            halved[d : d + k] *= 0.5
            halved_loss = self(halved)[0]
            if not halved_loss < loss:
                break
            x, loss = halved, halved_loss
        return x

    def inverse_curvature(self, x: torch.Tensor) -> Multiply:
        """Return the product with an approximate inverse Hessian at a point."""
        _, _, last = self.map.parts(x)
        matrix = self.token_map.matrix(x)
        attended, mass, weights = self._attended(matrix)
        curvature = self._output_curvature(attended + last[1:])  # (n, K), weighted
        # Not attended / scales: a scale may be 0.
        matrix_of_ones = matrix.clone()
        matrix_of_ones[:-1, 1:] = self.map.values
        per_scale = self._attended(matrix_of_ones)[0]
        by_scale = (curvature * per_scale.square()).sum(dim=0) + self.scale_penalty
        by_intercept = curvature.sum(dim=0).clamp(min=_LEAST_CURVATURE)
        along = self._curvature_along_outputs(matrix, attended, mass, weights, curvature)
        token = self._token_curvature(matrix, attended, mass, weights, curvature)
        if isinstance(self.frozen.embeddings, LimitEmbeddings):
            by_p = torch.cat([token, along])
        else:  # the mean over random rows of variance 1 / d
            by_p = (token.sum() / self.dimension).expand(self.dimension)
        diagonal = torch.cat(
            [by_p + self.cls_penalty, by_scale, by_scale.new_full((1,), CLS_PENALTY), by_intercept]
        ).reciprocal()
        diagonal = diagonal.to(x.dtype)
        if isinstance(self.frozen.embeddings, LimitEmbeddings):
            return lambda tensor: tensor * diagonal
        vectors = self.frozen.output_vectors
        excess = (along + self.cls_penalty).reciprocal().to(x.dtype) - diagonal[0]
        d = self.dimension

        def multiply(tensor: torch.Tensor) -> torch.Tensor:
            product = tensor * diagonal
            product[:d] += vectors.T @ (excess * (vectors @ tensor[:d]))
            return product

        return multiply

    def _starting_cls_embedding(self, document_shares: Array) -> torch.Tensor:
        """Return where p starts, (dimension,): see the module's docstring."""
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

    def _spread(self, p: torch.Tensor) -> float:
        """Return the standard deviation of the outputs over documents (root mean square of K)."""
        k = self.n_outputs
        x = torch.cat([p, p.new_ones(k), p.new_zeros(1 + k)])
        attended = self._attended(self.token_map.matrix(x))[0]
        centred = attended - (self.share[:, None] * attended).sum(dim=0)
        spread = float((self.share[:, None] * centred.square()).sum(dim=0).mean().sqrt())
        rounding = 100 * torch.finfo(self.bag.dtype).eps * float(attended.abs().max())
        return spread if spread > rounding else 0.0

    def _attended(self, matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return attended values (n, K) and mass (n,) in float64, and token weights (n_tokens,)."""
        shift = float(matrix[:-1, 0].max()) if len(matrix) > 1 else 0.0
        if self.loss.cls_weight:
            shift = max(shift, float(matrix[-1, 0]))
        weights = torch.exp(matrix[:-1, 0] - shift)
        columns = torch.cat([weights[:, None], weights[:, None] * matrix[:-1, 1:]], dim=1)
        sums = self.bag.sum_over_tokens(columns).to(torch.float64)
        mass = sums[:, 0] + self.loss.cls_weight * float(np.exp(float(matrix[-1, 0]) - shift))
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
        for j, change_of_scores in enumerate(self.frozen.values.unbind(dim=1)):
            per_token = (weights * change_of_scores)[:, None]
            columns = torch.cat([per_token, per_token * matrix[:-1, 1:]], dim=1)
            sums = self.bag.sum_over_tokens(columns).to(torch.float64) / mass[:, None]
            change = sums[:, 1:] - attended * sums[:, :1]
            along[j] = (curvature * change.square()).sum()
        return along
