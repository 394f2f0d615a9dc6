r"""The loss of the attention model, and its closed-form gradient.

**Model.** A document is a bag of tokens with weights :math:`c_{is} \ge 0`. Every token has an
attention score :math:`a_s` and, per output k, a value :math:`b_{sk}`; the ``<cls>`` token has
weight :math:`S_0`, score :math:`a_0` and value 0 (``<cls>`` and the output vectors are
orthogonal). A document may come with evidence :math:`N_{ik}` that its tokens give whatever the
values (:mod:`.leave_one_out`; 0 without):

.. math::

    w_s = e^{a_s}, \quad
    d_i = S_0 e^{a_0} + \sum_s c_{is} w_s, \quad
    f_{ik} = \frac{1}{d_i} \Big( N_{ik} + \sum_s c_{is} w_s b_{sk} \Big), \quad
    F_{ik} = f_{ik} + \beta_k .

**Loss** (:class:`AttentionLoss`): the sum over documents :math:`\sum_i \omega_i\, \ell(y_i, F_i)`
with document weights :math:`\omega_i`, where :math:`\ell` is the logistic loss or the cross entropy
(:mod:`.output_loss`). It is a function of one matrix of shape (n_tokens + 1, 1 + n_outputs), the
*token matrix*: a row :math:`[a_s, b_{s1}, .., b_{sK}]` per token and a last row
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
fact, ``docs/mathematics.md``). Attention weights :math:`w_s` are computed relative to the largest,
which cancels in :math:`f_{ik}`.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .._bags import Bags
from .._targets import Targets
from .._types import Array
from .output_loss import output_loss
from .products import BagProducts, floats

# Below this a document's whole attention mass has underflowed against the largest score's.
_SMALLEST_MASS = {torch.float32: 1e-25, torch.float64: 1e-200}

_LEAST_VARIANCE = 1e-4
_LEAST_LOG_ODDS = 1e-6
_LARGEST_EXPONENT = 700.0

FEW_COLUMNS = 10
"""Up to here it is faster to go through a matrix column by column."""


@dataclass(frozen=True)
class _ForwardPass:
    """The attention and outputs at a token matrix.

    weights : (n_tokens,), w relative to the largest
    squared_mass : (n_documents,), d^2 in the same unit; infinite where it underflows
    attended : (n_documents, n_outputs), f
    outputs : (n_documents, n_outputs), F
    """

    weights: torch.Tensor
    squared_mass: torch.Tensor
    attended: torch.Tensor
    outputs: torch.Tensor


class AttentionLoss:
    """Sum over documents of the weighted loss, and its gradient by the token matrix.

    See the module's docstring for the formulas. `weights`, (n_documents,), are those of the
    documents; `cls_weight` is S_0, 0 without ``<cls>``. Bags and token matrix are in the precision
    `dtype` on a device.
    """

    def __init__(
        self,
        bags: Bags,
        targets: Targets,
        weights: Array,
        *,
        dtype: type[np.floating[Any]] = np.float64,
        device: torch.device | str = "cpu",
        cls_weight: float = 0.0,
    ) -> None:
        self.products = BagProducts(bags, dtype, device)
        self.dtype = self.products.dtype
        self.device = self.products.device
        self.output_loss = output_loss(targets, weights, self.device)
        self.n_outputs = targets.n_outputs
        self.cls_weight = cls_weight
        self.total_weight = float(weights.sum())
        self.evidence: torch.Tensor | None = None
        self._mass_if_empty: torch.Tensor | None = None
        if not cls_weight:
            # An empty document attends to nothing: with a mass of 1 its output is the intercept.
            ones = torch.ones((bags.shape[1], 1), dtype=self.dtype, device=self.device)
            is_empty = self.products.sum_over_tokens(ones)[:, 0] == 0
            self._mass_if_empty = is_empty.to(torch.float64)

    def with_evidence(self, evidence: torch.Tensor) -> AttentionLoss:
        """Return the loss with other N_ik, (n_documents, n_outputs) in float64."""
        other = copy(self)
        other.evidence = evidence
        return other

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the documents' losses and its gradient by `matrix`.

        The loss is infinite where a document's attention mass underflows: scores are too far apart.
        """
        tokens = matrix[:-1]
        values = tokens[:, 1:]
        intercept = matrix[-1, 1:].to(torch.float64)
        cls_mass, shift = self._cls_mass_and_shift(matrix)
        # One memory for w and w b, then for the product R, then for the gradient.
        gradient = torch.empty_like(matrix)
        by_token = gradient[:-1]
        last_row = gradient[-1]

        # 1) attention weights and outputs
        weights = _weigh_values(tokens, shift, out=by_token)
        sums = self.products.sum_over_tokens(by_token).to(torch.float64)
        mass, attended = self._attend(sums, cls_mass, shift)
        if len(mass) and float(mass.min()) < _SMALLEST_MASS[self.dtype]:
            return math.inf, gradient.zero_()
        # 2) the loss and its derivative by the outputs, g
        loss, by_output = self.output_loss(attended + intercept)
        # 3) the product R
        per_document = torch.empty_like(sums)
        by_numerator = per_document[:, 1:]  # g / d
        by_mass = per_document[:, 0]  # -sum g f / d
        torch.div(by_output, mass[:, None], out=by_numerator)
        sums_over_outputs = (by_numerator * attended).sum(dim=1)
        by_mass[:] = -sums_over_outputs
        self.products.sum_over_documents(per_document.to(self.dtype), out=by_token)
        # 4) the derivatives by scores and values
        self._add_values_times_derivatives(by_token, values)
        by_token *= weights[:, None]
        # 5) the derivatives by the score of <cls> and the intercepts
        last_row[0] = cls_mass * by_mass.sum()
        last_row[1:] = by_output.sum(dim=0)
        return loss, gradient

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of the Hessian by values and intercepts, (n_tokens + 1, n_outputs).

        The curvature of a document's loss counts at least 1e-4, and one whose attention mass
        underflows is left out.
        """
        forward = self._forward(matrix)
        # 1) the curvature by outputs
        p = self.output_loss.probabilities(forward.outputs)
        by_output = (p * (1 - p)).clamp_(min=_LEAST_VARIANCE)
        by_output *= self.output_loss.weights[:, None]
        # 2) the curvature by values and intercepts
        per_document = by_output / forward.squared_mass[:, None]
        curvature = matrix.new_empty((len(matrix), self.n_outputs))
        by_value = curvature[:-1]
        by_value[:] = self._squared_sums(per_document.to(self.dtype))
        by_value *= forward.weights.square()[:, None]
        curvature[-1] = by_output.sum(dim=0)
        return curvature

    def bound(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal curvature of parabolas above the documents' losses, as `matrix`.

        Along one output they touch the loss here and are nowhere below it
        (:mod:`.earlier_batches`), but for the approximation of
        :meth:`~.products.BagProducts.squared_sum_over_documents`.
        """
        forward = self._forward(matrix)
        attended = forward.attended
        squared_mass = forward.squared_mass
        # 1) the parabolas' curvature h by outputs
        sizes = self.output_loss.log_odds(forward.outputs).abs_()
        sizes.clamp_(min=_LEAST_LOG_ODDS)
        by_output = torch.tanh(0.5 * sizes).div_(2.0 * sizes)
        by_output *= self.output_loss.weights[:, None]
        # 2) sums over documents of q^2 h, of q^2 h f, and of q^2 h f^2 over all outputs
        times_f = by_output * attended
        times_each_squared_f = by_output * attended.square()
        times_squared_f = times_each_squared_f.sum(dim=1, keepdim=True)
        per_document = torch.cat([by_output, times_f, times_squared_f], dim=1)
        per_document = per_document / squared_mass[:, None]
        sums = self._squared_sums(per_document.to(self.dtype))
        sums *= forward.weights.square()[:, None]
        zeroth, first, second = sums.split([self.n_outputs, self.n_outputs, 1], dim=1)
        # 3) the curvature by values, and by scores: q^2 h (b^2 - 2 b f) + q^2 h f^2
        values = matrix[:-1, 1:]
        with_values = (values * (values * zeroth - 2 * first)).sum(dim=1)
        by_score = second[:, 0] + with_values
        by_score.clamp_(min=0.0)  # but for rounding it is not negative
        bound = torch.empty_like(matrix)
        bound[:-1, 0] = by_score
        bound[:-1, 1:] = zeroth
        # 4) the curvature by the score of <cls> and the intercepts
        cls_mass, _ = self._cls_mass_and_shift(matrix)
        by_squared_share = times_squared_f[:, 0] / squared_mass
        bound[-1, 0] = cls_mass**2 * by_squared_share.sum()
        bound[-1, 1:] = by_output.sum(dim=0)
        return bound

    def _squared_sums(self, by_document: torch.Tensor) -> torch.Tensor:
        """Return the sums over documents of squared entries times columns, (n_tokens, m)."""
        return self.products.squared_sum_over_documents(by_document, self.output_loss.weights)

    def _forward(self, matrix: torch.Tensor) -> _ForwardPass:
        """Return the attention and outputs at a token matrix."""
        tokens = matrix[:-1]
        intercept = matrix[-1, 1:].to(torch.float64)
        cls_mass, shift = self._cls_mass_and_shift(matrix)
        by_token = torch.empty_like(tokens)
        weights = _weigh_values(tokens, shift, out=by_token)
        sums = self.products.sum_over_tokens(by_token).to(torch.float64)
        mass, attended = self._attend(sums, cls_mass, shift)
        attended.nan_to_num_()
        least_mass = math.sqrt(_SMALLEST_MASS[self.dtype])  # whose square is a mass as well
        usable_mass = torch.where(mass > least_mass, mass, math.inf)
        squared_mass = usable_mass.square_()
        return _ForwardPass(weights, squared_mass, attended, outputs=attended + intercept)

    def _cls_mass_and_shift(self, matrix: torch.Tensor) -> tuple[float, float]:
        """Return S_0 exp(a_0 - shift) and the shift: the largest score that is attended to."""
        scores = matrix[:-1, 0]
        largest = scores.max() if len(scores) else matrix.new_zeros(())
        cls_score, shift = floats(matrix[-1, 0], largest)
        if self.cls_weight:
            shift = max(shift, cls_score)
        cls_mass = self.cls_weight * _exp(cls_score - shift)
        return cls_mass, shift

    def _attend(
        self, sums: torch.Tensor, cls_mass: float, shift: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the documents' attention mass, (n_documents,), and outputs f.

        `sums`, (n_documents, 1 + n_outputs) in float64, are sums over tokens of w and w b; their
        memory is used again.
        """
        mass_without_tokens: float | torch.Tensor = cls_mass
        if self._mass_if_empty is not None:
            mass_without_tokens = self._mass_if_empty
        mass = sums[:, 0] + mass_without_tokens
        numerators = sums[:, 1:]
        if self.evidence is not None:
            numerators.add_(self.evidence, alpha=_exp(-shift))
        return mass, numerators / mass[:, None]

    def _add_values_times_derivatives(self, by_token: torch.Tensor, values: torch.Tensor) -> None:
        """Add the sum over outputs of b R, (n_tokens,), to the first column of R."""
        by_score = by_token[:, 0]
        by_value = by_token[:, 1:]
        if self.n_outputs > FEW_COLUMNS:
            by_score += torch.einsum("sk,sk->s", by_value, values)
            return
        for k in range(self.n_outputs):
            by_score.addcmul_(by_value[:, k], values[:, k])


def _weigh_values(tokens: torch.Tensor, shift: float, *, out: torch.Tensor) -> torch.Tensor:
    """Return the attention weights w, (n_tokens,), and write w and w b to `out`, as `tokens`."""
    weights = torch.exp(tokens[:, 0] - shift)
    out[:, 0] = weights
    torch.mul(tokens[:, 1:], weights[:, None], out=out[:, 1:])
    return weights


def _exp(x: float) -> float:
    """Return the exponential, infinity where it overflows."""
    return math.inf if x > _LARGEST_EXPONENT else math.exp(x)
