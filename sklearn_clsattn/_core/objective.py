r"""The loss of the attention model, its closed-form gradient, and the penalties.

**Model.** A document is a bag of tokens with weights :math:`c_{is} \ge 0`. Every token has an
attention score :math:`a_s` and, per output k, a value :math:`b_{sk}`; the ``<cls>`` token has
weight :math:`S_0`, score :math:`a_0` and value 0 (``<cls>`` and the output vectors are
orthogonal). A document may come with evidence :math:`N_{ik}` that its tokens give whatever the
values (:mod:`~sklearn_clsattn._core.prior_mean`; 0 without):

.. math::

    w_s = e^{a_s}, \quad
    d_i = S_0 e^{a_0} + \sum_s c_{is} w_s, \quad
    f_{ik} = \frac{1}{d_i} \Big( N_{ik} + \sum_s c_{is} w_s b_{sk} \Big), \quad
    F_{ik} = f_{ik} + \beta_k .

**Loss** (:class:`AttentionLoss`): the sum over documents :math:`\sum_i \omega_i\, \ell(y_i, F_i)`
with document weights :math:`\omega_i`, where :math:`\ell` is the logistic loss
:math:`\log(1 + e^{-yF})` for one output (:math:`y = \pm 1`) and the cross entropy of softmax(F)
for K outputs. It is a function of one matrix of shape (n_tokens + 1, 1 + n_outputs), the *token
matrix*: a row :math:`[a_s, b_{s1}, .., b_{sK}]` per token and a last row
:math:`[a_0, \beta_1, .., \beta_K]` for ``<cls>``.

**Gradient.** With :math:`g_{ik} = \omega_i\, \partial \ell / \partial F_{ik}`, one product with
``X.T``,

.. math::

    R = X^\top \left[ -\tfrac{\sum_k g_k f_k}{d},\; \tfrac{g_1}{d}, \dots, \tfrac{g_K}{d} \right],

gives every derivative of the sum:

.. math::

    \partial b_{sk} = w_s R_{sk}, \quad
    \partial a_s = w_s \big( R_{s0} + \textstyle\sum_k b_{sk} R_{sk} \big), \quad
    \partial a_0 = S_0 e^{a_0} \textstyle\sum_i \big( -\sum_k g_{ik} f_{ik} / d_i \big), \quad
    \partial \beta_k = \textstyle\sum_i g_{ik} .

So one evaluation is two sparse products with 1 + K columns, whatever the dimension of the
embeddings: minimising over embeddings with an L2 penalty is the same problem (representer
fact, ``docs/model.md``).

**What is trained** (:class:`Objective`) are numbers x from which a :class:`TokenMap` makes the
token matrix M(x), penalised block by block:

.. math::

    L(x) = \frac{1}{\Omega} \sum_i \omega_i\, \ell(y_i, F_i(M(x)))
         + \sum_{\text{blocks } B} \frac{\lambda_B}{2} \|x_B\|^2, \qquad
    \Omega = \sum_i \omega_i .

The default map is :class:`Units`: :math:`a_s = \pi_s + u_s` and
:math:`b_{sk} = \sigma_{sk} t_{sk}`, with starting scores :math:`\pi` and value scales
:math:`\sigma` that put t on the scale of logistic regression's coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from .backend import floats
from .bag import TokenBag
from .saturated import saturated_sums
from .solvers.base import Evaluation

OwnSums = Generator[
    tuple[torch.Tensor, torch.Tensor], torch.Tensor | None, tuple[float, torch.Tensor]
]
"""Yields an operand of a product and where its result may go, and is sent the result or None."""

# Below this a document's whole attention mass has underflowed against the largest score's.
_SMALLEST_MASS = {torch.float32: 1e-25, torch.float64: 1e-200}

_LEAST_VARIANCE = 1e-4


def encode_targets(
    codes: NDArray[np.intp], n_classes: int, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Return class codes 0..K-1, (n_documents,), in the form that :class:`AttentionLoss` takes.

    For two classes +1.0 or -1.0 (float64), else the codes (int64).
    """
    if n_classes == 2:
        return torch.from_numpy(2.0 * codes - 1.0).to(device)
    return torch.from_numpy(np.ascontiguousarray(codes, dtype=np.int64)).to(device)


class AttentionLoss:
    """Sum over documents of the weighted loss, and its gradient by the token matrix.

    See the module's docstring for the formulas. `targets`, (n_documents,), come from
    :func:`encode_targets`; `sample_weight`, (n_documents,), is non-negative; `n_outputs` is 1 for
    two classes, K for K > 2; `cls_weight` is S_0, 0 without ``<cls>``. `evidence`, (n_documents,
    n_outputs) in float64, are the N_ik, None for 0. `total_weight` is the weight of all documents.
    """

    def __init__(
        self,
        bag: TokenBag,
        targets: torch.Tensor,
        sample_weight: torch.Tensor,
        n_outputs: int,
        *,
        cls_weight: float = 0.0,
        evidence: torch.Tensor | None = None,
    ) -> None:
        self.bag, self.targets, self.n_outputs = bag, targets, n_outputs
        self.evidence = evidence
        self.sample_weight = sample_weight.to(torch.float64)
        self.cls_weight = cls_weight
        self.total_weight = float(self.sample_weight.sum())
        # Without <cls> an empty document attends to nothing: its output is the intercept.
        self._missing_mass = None if cls_weight else (bag.document_totals() == 0).to(torch.float64)

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        shape = (self.bag.shape[1] + 1, 1 + self.n_outputs)
        return torch.zeros(shape, dtype=self.bag.dtype, device=self.bag.device)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the documents' losses and its gradient by `matrix`."""
        return evaluate_together([self.evaluation(matrix)], self.bag)[0]

    def mean(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the mean loss, by document weight, and its gradient."""
        loss, gradient = self(matrix)
        return loss / self.total_weight, gradient.div_(self.total_weight)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of the Hessian by values and intercepts, (n_tokens + 1, n_outputs).

        The curvature of a document's loss counts at least 1e-4, and one whose attention mass
        underflows is left out.
        """
        tokens = matrix[:-1]
        cls_score, shift = self._cls_score_and_shift(matrix)
        weights = torch.exp(tokens[:, 0] - shift)
        by_token = torch.cat([weights[:, None], tokens[:, 1:] * weights[:, None]], dim=1)
        sums = self.bag.sum_over_tokens(by_token).to(torch.float64)
        mass, attended = self._attend(sums, cls_score, shift)
        outputs = attended.nan_to_num_() + matrix[-1, 1:].to(torch.float64)
        p = torch.sigmoid(outputs) if self.n_outputs == 1 else torch.softmax(outputs, dim=1)
        variance = (p * (1 - p)).clamp_(min=_LEAST_VARIANCE) * self.sample_weight[:, None]
        least = math.sqrt(_SMALLEST_MASS[self.bag.dtype])
        squares = torch.where(mass > least, mass, math.inf).square_()
        curvature = matrix.new_empty((len(matrix), self.n_outputs))
        per_document = (variance / squares[:, None]).to(self.bag.dtype)
        curvature[:-1] = self.bag.squared_sum_over_documents(per_document)
        curvature[:-1] *= weights.square_()[:, None]
        curvature[-1] = variance.sum(dim=0)
        return curvature

    def output_loss(self, outputs: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the weighted sum of the losses of outputs F, and its derivative by them.

        Both are of shape (n_documents, n_outputs), in float64.
        """
        weight = self.sample_weight
        if self.n_outputs == 1:
            margins = outputs[:, 0] * self.targets
            losses = -torch.nn.functional.logsigmoid(margins)
            derivative = (-torch.sigmoid(-margins) * self.targets * weight)[:, None]
        else:
            logs = torch.log_softmax(outputs, dim=1)
            rows = self.targets[:, None]
            losses = -logs.gather(1, rows)[:, 0]
            derivative = logs.exp_()
            derivative.scatter_add_(1, rows, -torch.ones_like(rows, dtype=outputs.dtype))
            derivative *= weight[:, None]
        return float(torch.dot(losses, weight)), derivative

    def evaluation(self, matrix: torch.Tensor) -> OwnSums:
        """Evaluate the sum and its gradient for :func:`evaluate_together`, which computes products.

        It yields what the bag is to sum over tokens, then what it is to sum over documents and
        where to.
        """
        bag, tokens = self.bag, matrix[:-1]
        intercept = matrix[-1, 1:].to(torch.float64)
        cls_score, shift = self._cls_score_and_shift(matrix)
        # One memory for w_s and w_s b_sk, then the product R, then the gradient.
        gradient = torch.empty_like(matrix)
        by_token = gradient[:-1]
        weights = torch.exp(tokens[:, 0] - shift)
        by_token[:, 0] = weights
        torch.mul(tokens[:, 1:], weights[:, None], out=by_token[:, 1:])

        sums = yield by_token, by_token
        assert sums is not None
        sums = sums.to(torch.float64)
        mass, attended = self._attend(sums, cls_score, shift)
        if len(mass) and float(mass.min()) < _SMALLEST_MASS[bag.dtype]:
            return self._own_saturated_sums(matrix)
        loss, per_output = self.output_loss(attended + intercept)

        per_document = torch.empty_like(sums)
        torch.div(per_output, mass[:, None], out=per_document[:, 1:])
        per_document[:, 0] = -(per_document[:, 1:] * attended).sum(dim=1)
        yield per_document.to(bag.dtype), by_token
        for k in range(1, 1 + self.n_outputs):
            by_token[:, 0].addcmul_(by_token[:, k], tokens[:, k])
        by_token *= weights[:, None]
        cls_mass = self.cls_weight * _exp(cls_score - shift)
        gradient[-1, 0] = cls_mass * per_document[:, 0].sum()
        gradient[-1, 1:] = per_output.sum(dim=0)
        return loss, gradient

    def _cls_score_and_shift(self, matrix: torch.Tensor) -> tuple[float, float]:
        """Return the score of ``<cls>``, and the largest score of what documents attend to."""
        scores = matrix[:-1, 0]
        largest = scores.max() if len(scores) else matrix.new_zeros(())
        cls_score, shift = floats(matrix[-1, 0], largest)
        return cls_score, max(shift, cls_score) if self.cls_weight else shift

    def _attend(
        self, sums: torch.Tensor, cls_score: float, shift: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return documents' attention mass, (n,), and outputs f, (n, n_outputs).

        `sums`, (n, 1 + n_outputs) in float64, are those of exp(a - shift) times 1 and the values.
        Their memory is used again.
        """
        cls_mass = self.cls_weight * _exp(cls_score - shift)
        mass = sums[:, 0] + (cls_mass if self._missing_mass is None else self._missing_mass)
        attended = sums[:, 1:]
        if self.evidence is not None:
            attended.add_(self.evidence, alpha=_exp(-shift))
        return mass, attended / mass[:, None]

    def _own_saturated_sums(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the same with per-document maxima, where some documents' mass underflows."""
        wide = matrix.to(torch.float64)
        loss, by_scores, by_values, by_cls, by_intercept = saturated_sums(
            self.bag,
            wide[:-1, 0],
            wide[:-1, 1:],
            self.cls_weight,
            float(wide[-1, 0]),
            wide[-1, 1:],
            self.evidence,
            self.output_loss,
        )
        gradient = torch.empty_like(matrix)
        gradient[:-1, 0], gradient[:-1, 1:] = by_scores, by_values
        gradient[-1, 0], gradient[-1, 1:] = by_cls, by_intercept
        return loss, gradient


def evaluate_together(
    evaluations: Sequence[OwnSums], bag: TokenBag
) -> list[tuple[float, torch.Tensor]]:
    """Return loss and gradient of several losses on one bag.

    Each product is one for all: with a few columns it takes hardly longer than with one.
    """
    results: dict[OwnSums, tuple[float, torch.Tensor]] = {}
    weighted = [next(evaluation)[0] for evaluation in evaluations]
    sums = _of_columns(bag.sum_over_tokens, weighted)
    products, wanted = [], []
    for evaluation, own in zip(evaluations, sums, strict=True):
        try:
            products.append(evaluation.send(own))
            wanted.append(evaluation)
        except StopIteration as stop:  # saturated
            results[evaluation] = stop.value
    if len(products) == 1:
        bag.sum_over_documents(products[0][0], out=products[0][1])
    elif products:
        sums = _of_columns(bag.sum_over_documents, [per_document for per_document, _ in products])
        for (_, out), own in zip(products, sums, strict=True):
            out.copy_(own)
    for evaluation in wanted:
        try:
            next(evaluation)
        except StopIteration as stop:
            results[evaluation] = stop.value
    return [results[evaluation] for evaluation in evaluations]


def _of_columns(
    product: Callable[[torch.Tensor], torch.Tensor], parts: list[torch.Tensor]
) -> Sequence[torch.Tensor]:
    """Return the products with some matrices, (n, m) each, as one with all their columns."""
    if len(parts) == 1:
        return [product(parts[0])]
    return product(torch.cat(parts, dim=1)).split([part.shape[1] for part in parts], dim=1)


class TokenMap(Protocol):
    """How the numbers that are trained make the token matrix: the chain rule, both ways."""

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """Return the token matrix, (n_tokens + 1, 1 + n_outputs), valid until the next call."""
        ...

    def pull_back(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient by x from that by the matrix, whose memory may be used again."""
        ...


class Units:
    """The token matrix as starting scores plus u and value scales times t, in x = [u | t].

    starting_scores : (n_tokens,), the scores at u = 0
    value_scales : (n_tokens, n_outputs), token values are these times t
    """

    def __init__(self, starting_scores: torch.Tensor, value_scales: torch.Tensor) -> None:
        self.starting_scores, self.value_scales = starting_scores, value_scales
        n_tokens, n_outputs = value_scales.shape
        self._matrix = value_scales.new_empty((n_tokens + 1, 1 + n_outputs))

    def matrix(self, x: torch.Tensor) -> torch.Tensor:
        """Return the token matrix; x has its shape and its last row."""
        matrix = self._matrix  # fresh memory of this size would cost a tenth of an evaluation
        torch.add(self.starting_scores, x[:-1, 0], out=matrix[:-1, 0])
        torch.mul(self.value_scales, x[:-1, 1:], out=matrix[:-1, 1:])
        matrix[-1] = x[-1]
        return matrix

    def pull_back(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient by x."""
        gradient[:-1, 1:] *= self.value_scales
        return gradient

    def inverse(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the x that makes a token matrix; 0 for values whose scale is 0."""
        x = matrix.clone()
        x[:-1, 0] -= self.starting_scores
        scaled = matrix[:-1, 1:] / self.value_scales
        x[:-1, 1:] = torch.where(self.value_scales > 0, scaled, 0.0)
        return x


@dataclass(frozen=True)
class Block:
    """A part of the trained numbers with a penalty of its own.

    index : selects the part
    penalty : strength lambda of its penalty ``lambda / 2 * ||x||^2``
    curvature : of the objective along it, for the optimality gap; broadcastable to the part
    """

    index: Any
    penalty: float
    curvature: float | torch.Tensor


class Objective:
    """Penalised mean loss as a function of the numbers that are trained.

    `losses` map the token matrix to a sum of losses and its gradient: an :class:`AttentionLoss`,
    and the expanded losses of earlier documents. `blocks` are all parts of the trained numbers that
    have a penalty or count in the gap. Losses are averaged over `total_weight`.
    """

    def __init__(
        self,
        losses: Sequence[Evaluation],
        token_map: TokenMap,
        blocks: Sequence[Block],
        total_weight: float,
    ) -> None:
        self.losses, self.token_map, self.blocks = list(losses), token_map, list(blocks)
        self.total_weight = total_weight

    def __call__(self, x: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the penalised mean loss and its gradient, shaped as x."""
        matrix = self.token_map.matrix(x)
        loss, by_matrix = self.losses[0](matrix)
        for other in self.losses[1:]:
            more, gradient = other(matrix)
            loss += more
            by_matrix += gradient
        return self.penalised(x, loss, by_matrix)

    def penalised(
        self, x: torch.Tensor, loss: float, by_matrix: torch.Tensor
    ) -> tuple[float, torch.Tensor]:
        """Return the same from the sum of the losses and its gradient by the token matrix."""
        by_matrix /= self.total_weight
        gradient = self.token_map.pull_back(x, by_matrix)
        for block in self.blocks:
            if block.penalty:
                gradient[block.index].add_(x[block.index], alpha=block.penalty)
        return loss / self.total_weight + self.penalty(x), gradient

    def penalty(self, x: torch.Tensor) -> float:
        """Return the sum of the penalties."""
        blocks = [block for block in self.blocks if block.penalty]
        squares = _squares([(x[block.index], 1.0) for block in blocks])
        return 0.5 * math.fsum(
            block.penalty * square for block, square in zip(blocks, squares, strict=True)
        )

    def gap(self, gradient: torch.Tensor) -> float:
        r"""Estimate how far the objective is above a stationary one, in nats per document.

        The sum over blocks of ``|gradient|^2 / (2 curvature)``. For values with a penalty
        :math:`\frac{\lambda}{2} \|t\|^2` and the attention held fixed it is a duality gap:
        with the dual variables :math:`-\partial \ell / \partial F`, primal minus dual of the
        convex problem that remains is :math:`\|\nabla_t L\|^2 / (2 \lambda)`, so that at the
        attention reached no values give an objective lower by more than that. For the other
        blocks it estimates what one more step could gain.
        """
        return 0.5 * math.fsum(
            _squares([(gradient[block.index], block.curvature) for block in self.blocks])
        )


def _squares(parts: Sequence[tuple[torch.Tensor, float | torch.Tensor]]) -> list[float]:
    """Return ``(part^2 / divisor).sum()`` of parts with divisors, accumulated in float64."""
    norm = torch.linalg.vector_norm
    scalars: list[list[torch.Tensor]] = []
    for part, divisor in parts:
        if isinstance(divisor, torch.Tensor):
            scalars.append([(part.to(torch.float64).square() / divisor).sum()])
        else:  # column by column: the norm of a whole matrix would copy it to float64
            columns = part.unbind(dim=1) if part.ndim == 2 else [part]
            scalars.append([norm(column, dtype=torch.float64) for column in columns])
    numbers = iter(floats(*chain.from_iterable(scalars)))
    own = [[next(numbers) for _ in of_part] for of_part in scalars]
    return [
        found[0]
        if isinstance(divisor, torch.Tensor)
        else math.fsum(number**2 for number in found) / divisor
        for found, (_, divisor) in zip(own, parts, strict=True)
    ]


def _exp(x: float) -> float:
    return math.inf if x > 700.0 else math.exp(x)
