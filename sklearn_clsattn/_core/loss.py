r"""The loss of the attention model, its closed-form gradient.

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
with document weights :math:`\omega_i`, where :math:`\ell` is the logistic loss or the cross entropy
(:mod:`~sklearn_clsattn._core.output_loss`). It is a function of one
matrix of shape (n_tokens + 1, 1 + n_outputs), the *token matrix*: a row
:math:`[a_s, b_{s1}, .., b_{sK}]` per token and a last row :math:`[a_0, \beta_1, .., \beta_K]` for
``<cls>``.

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
fact, ``docs/mathematics.md``).
"""

from __future__ import annotations

import math
from copy import copy

import torch

from .output_loss import CrossEntropy, OutputLoss
from .products import TokenBag, floats

# Below this a document's whole attention mass has underflowed against the largest score's.
_SMALLEST_MASS = {torch.float32: 1e-25, torch.float64: 1e-200}

_LEAST_VARIANCE = 1e-4

FEW_COLUMNS = 10
"""Up to here it is faster to go through a matrix column by column."""


class AttentionLoss:
    """Sum over documents of the weighted loss, and its gradient by the token matrix.

    See the module's docstring for the formulas. `output_loss` is the loss of the documents'
    outputs, of which there are `n_outputs`; `cls_weight` is S_0, 0 without ``<cls>``.
    `total_weight` is the weight of all documents.
    """

    def __init__(
        self, bag: TokenBag, output_loss: OutputLoss, n_outputs: int, *, cls_weight: float = 0.0
    ) -> None:
        self.bag = bag
        self.output_loss = output_loss
        self.n_outputs = n_outputs
        self.cls_weight = cls_weight
        self.sample_weight = output_loss.weights
        self.total_weight = float(self.sample_weight.sum())
        self.evidence: torch.Tensor | None = None
        self._missing_mass: torch.Tensor | None = None
        if not cls_weight:  # an empty document attends to nothing: its output is the intercept
            ones = torch.ones((bag.shape[1], 1), dtype=bag.dtype, device=bag.device)
            self._missing_mass = (bag.sum_over_tokens(ones)[:, 0] == 0).to(torch.float64)

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        shape = (self.bag.shape[1] + 1, 1 + self.n_outputs)
        return torch.zeros(shape, dtype=self.bag.dtype, device=self.bag.device)

    def with_evidence(self, evidence: torch.Tensor | None) -> AttentionLoss:
        """Return the loss with other N_ik, (n_documents, n_outputs) in float64; None for 0."""
        other = copy(self)
        other.evidence = evidence
        return other

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the documents' losses and its gradient by `matrix`."""
        bag, tokens = self.bag, matrix[:-1]
        intercept = matrix[-1, 1:].to(torch.float64)
        cls_mass, shift = self._cls_mass_and_shift(matrix)
        # One memory for w_s and w_s b_sk, then the product R, then the gradient.
        gradient = torch.empty_like(matrix)
        by_token = gradient[:-1]
        weights = torch.exp(tokens[:, 0] - shift)
        by_token[:, 0] = weights
        torch.mul(tokens[:, 1:], weights[:, None], out=by_token[:, 1:])

        sums = bag.sum_over_tokens(by_token).to(torch.float64)
        mass, attended = self._attend(sums, cls_mass, shift)
        if len(mass) and float(mass.min()) < _SMALLEST_MASS[bag.dtype]:
            return self._saturated(matrix)
        loss, per_output = self.output_loss(attended + intercept)

        per_document = torch.empty_like(sums)
        torch.div(per_output, mass[:, None], out=per_document[:, 1:])
        per_document[:, 0] = -(per_document[:, 1:] * attended).sum(dim=1)
        bag.sum_over_documents(per_document.to(bag.dtype), out=by_token)
        if self.n_outputs <= FEW_COLUMNS:
            for k in range(1, 1 + self.n_outputs):
                by_token[:, 0].addcmul_(by_token[:, k], tokens[:, k])
        else:
            by_token[:, 0] += torch.einsum("sk,sk->s", by_token[:, 1:], tokens[:, 1:])
        by_token *= weights[:, None]
        gradient[-1, 0] = cls_mass * per_document[:, 0].sum()
        gradient[-1, 1:] = per_output.sum(dim=0)
        return loss, gradient

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal of the Hessian by values and intercepts, (n_tokens + 1, n_outputs).

        The curvature of a document's loss counts at least 1e-4, and one whose attention mass
        underflows is left out.
        """
        weights, squares, _, outputs = self._at(matrix)
        p = self.output_loss.probabilities(outputs)
        variance = (p * (1 - p)).clamp_(min=_LEAST_VARIANCE) * self.sample_weight[:, None]
        curvature = matrix.new_empty((len(matrix), self.n_outputs))
        per_document = (variance / squares[:, None]).to(self.bag.dtype)
        curvature[:-1] = self.bag.squared_sum_over_documents(
            per_document, roughly=self.sample_weight
        )
        curvature[:-1] *= weights.square_()[:, None]
        curvature[-1] = variance.sum(dim=0)
        return curvature

    def bound(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the diagonal curvature of parabolas above the documents' losses, as `matrix`.

        Along one output they touch the loss here and are nowhere below it (:mod:`.memory`).
        """
        weights, squares, attended, outputs = self._at(matrix)
        others = torch.zeros_like(outputs)
        for k in range(self.n_outputs if isinstance(self.output_loss, CrossEntropy) else 0):
            rest = torch.cat([outputs[:, :k], outputs[:, k + 1 :]], dim=1)
            others[:, k] = torch.logsumexp(rest, dim=1)
        size = (outputs - others).abs_().clamp_(min=1e-6)
        bend = torch.tanh(0.5 * size).div_(2.0 * size) * self.sample_weight[:, None]
        powers = [bend, bend * attended, (bend * attended.square()).sum(dim=1, keepdim=True)]
        per_document = torch.cat(powers, dim=1) / squares[:, None]
        sums = self.bag.squared_sum_over_documents(per_document.to(self.bag.dtype))
        sums *= weights.square_()[:, None]
        zeroth, first, second = sums.split([self.n_outputs, self.n_outputs, 1], dim=1)
        values = matrix[:-1, 1:]
        bound = torch.empty_like(matrix)
        bound[:-1, 1:] = zeroth
        bound[:-1, 0] = second[:, 0] + (values * (values * zeroth - 2 * first)).sum(dim=1)
        bound[:-1, 0].clamp_(min=0.0)  # but for rounding it is not negative
        cls_mass, _ = self._cls_mass_and_shift(matrix)
        bound[-1, 0] = cls_mass**2 * (powers[2][:, 0] / squares).sum()
        bound[-1, 1:] = bend.sum(dim=0)
        return bound

    def _at(
        self, matrix: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return exp(a), (n_tokens,), and documents' squared mass, (n,), f and F, (n, n_outputs).

        The squared mass, over that of exp(a)'s unit, is infinite where the mass underflows.
        """
        tokens = matrix[:-1]
        cls_mass, shift = self._cls_mass_and_shift(matrix)
        weights = torch.exp(tokens[:, 0] - shift)
        by_token = torch.cat([weights[:, None], tokens[:, 1:] * weights[:, None]], dim=1)
        sums = self.bag.sum_over_tokens(by_token).to(torch.float64)
        mass, attended = self._attend(sums, cls_mass, shift)
        attended.nan_to_num_()
        least = math.sqrt(_SMALLEST_MASS[self.bag.dtype])
        squares = torch.where(mass > least, mass, math.inf).square_()
        return weights, squares, attended, attended + matrix[-1, 1:].to(torch.float64)

    def _cls_mass_and_shift(self, matrix: torch.Tensor) -> tuple[float, float]:
        """Return S_0 exp(a_0 - shift) and the shift: the largest score that is attended to."""
        scores = matrix[:-1, 0]
        largest = scores.max() if len(scores) else matrix.new_zeros(())
        cls_score, shift = floats(matrix[-1, 0], largest)
        if self.cls_weight:
            shift = max(shift, cls_score)
        return self.cls_weight * _exp(cls_score - shift), shift

    def _attend(
        self, sums: torch.Tensor, cls_mass: float, shift: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return documents' attention mass, (n,), and outputs f, (n, n_outputs).

        `sums`, (n, 1 + n_outputs) in float64, are those of exp(a - shift) times 1 and the values.
        Their memory is used again.
        """
        mass = sums[:, 0] + (cls_mass if self._missing_mass is None else self._missing_mass)
        attended = sums[:, 1:]
        if self.evidence is not None:
            attended.add_(self.evidence, alpha=_exp(-shift))
        return mass, attended / mass[:, None]

    def _saturated(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the same where some documents' mass underflows: 0/0 in the fast form.

        Every document has its own maximum of scores, at the price of work per stored entry.
        """
        bag, wide = self.bag, matrix.to(torch.float64)
        scores, values, cls_score = wide[:-1, 0], wide[:-1, 1:], float(wide[-1, 0])
        documents, tokens, weights = bag.entries()
        logits = torch.log(weights.to(torch.float64)) + scores[tokens]
        cls_logit = cls_score + math.log(self.cls_weight) if self.cls_weight else -math.inf
        largest = torch.full((bag.shape[0],), cls_logit, dtype=torch.float64, device=bag.device)
        largest.scatter_reduce_(0, documents, logits, reduce="amax")
        largest = torch.where(torch.isfinite(largest), largest, 0.0)  # an empty document, no <cls>
        attention = torch.exp(logits - largest[documents])
        cls_attention = torch.exp(cls_logit - largest)
        mass = cls_attention.index_add(0, documents, attention)
        mass = torch.where(mass > 0, mass, 1.0)
        attention /= mass[documents]
        attended = values.new_zeros((bag.shape[0], self.n_outputs))
        attended.index_add_(0, documents, attention[:, None] * values[tokens])
        if self.evidence is not None:
            attended += self.evidence * (torch.exp(-largest) / mass)[:, None]
        loss, per_output = self.output_loss(attended + wide[-1, 1:])
        gradient = torch.zeros_like(wide)
        by_entry = per_output[documents]
        gradient[:-1, 1:].index_add_(0, tokens, attention[:, None] * by_entry)
        relative = ((values[tokens] - attended[documents]) * by_entry).sum(dim=1)
        gradient[:-1, 0].index_add_(0, tokens, attention * relative)
        gradient[-1, 0] = -(cls_attention / mass * (per_output * attended).sum(dim=1)).sum()
        gradient[-1, 1:] = per_output.sum(dim=0)
        return loss, gradient.to(matrix.dtype)


def _exp(x: float) -> float:
    return math.inf if x > 700.0 else math.exp(x)
