r"""The attention objective: its loss, its closed-form gradient, its units and its penalties.

**Model.** A document is a bag of tokens with weights :math:`c_{is} \ge 0`. Every token has an
attention score :math:`a_s` and, per output k, a value :math:`b_{sk}`; the ``<cls>`` token has
weight :math:`S_0`, score :math:`a_0` and value 0 (``<cls>`` and the output vectors are
orthogonal):

.. math::

    w_s = e^{a_s}, \quad
    d_i = S_0 e^{a_0} + \sum_s c_{is} w_s, \quad
    f_{ik} = \frac{1}{d_i} \sum_s c_{is} w_s b_{sk}, \quad
    F_{ik} = f_{ik} + \beta_k .

**Loss**, with document weights :math:`\omega_i` and :math:`\Omega = \sum_i \omega_i`:

.. math::

    L = \frac{1}{\Omega} \sum_i \omega_i\, \ell(y_i, F_i)
      + \frac{\|t\|^2}{2 \Omega C_t} + \frac{\|u\|^2}{2 \Omega C_u} + \frac{\kappa}{2} a_0^2,

where :math:`\ell` is the logistic loss :math:`\log(1 + e^{-yF})` for one output
(:math:`y = \pm 1`) and the cross entropy of softmax(F) for K outputs.

**Units.** What is optimised are numbers on the scale of logistic regression's coefficients,
:math:`a_s = \pi_s + u_s` and :math:`b_{sk} = \sigma_{sk} t_{sk}`, with starting scores
:math:`\pi` and value scales :math:`\sigma` that the caller chooses. They are stored as one
matrix of shape (n_tokens + 1, 1 + n_outputs), a row ``[u_s, t_s1, .., t_sK]`` per token and a
last row ``[a_0, beta_1, .., beta_K]`` for ``<cls>``. The intercepts are not penalised.

**Gradient.** With :math:`g_{ik} = \omega_i\, \partial \ell / \partial F_{ik}`, one product with
``X.T``,

.. math::

    R = X^\top \left[ -\tfrac{\sum_k g_k f_k}{d},\; \tfrac{g_1}{d}, \dots, \tfrac{g_K}{d} \right],

gives every derivative of the sum over documents:

.. math::

    \partial b_{sk} = w_s R_{sk}, \quad
    \partial a_s = w_s \big( R_{s0} + \textstyle\sum_k b_{sk} R_{sk} \big), \quad
    \partial a_0 = S_0 e^{a_0} \textstyle\sum_i \big( -\sum_k g_{ik} f_{ik} / d_i \big), \quad
    \partial \beta_k = \textstyle\sum_i g_{ik} .

So one evaluation is two sparse products with 1 + K columns, whatever the dimension of the
embeddings: minimising over embeddings with an L2 penalty is the same problem (representer
fact, ``docs/model.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .bag import TokenBag
from .saturated import saturated_sums

# Below this a document's whole attention mass has underflowed against the largest score's.
_SMALLEST_MASS = {torch.float32: 1e-25, torch.float64: 1e-200}


@dataclass(frozen=True)
class Units:
    """What turns optimised numbers into scores and values.

    Attributes
    ----------
    starting_scores : torch.Tensor of shape (n_tokens,)
        The scores at u = 0.

    value_scales : torch.Tensor of shape (n_tokens, n_outputs)
        Token values are these times t.

    cls_weight : float
        Weight of the ``<cls>`` token in every document, S_0; 0 leaves it out.
    """

    starting_scores: torch.Tensor
    value_scales: torch.Tensor
    cls_weight: float


class AttentionObjective:
    """Penalised mean loss of the attention model and its gradient.

    See the module's docstring for the formulas.

    Parameters
    ----------
    bag : TokenBag of shape (n_documents, n_tokens)
        The documents.

    targets : torch.Tensor of shape (n_documents,)
        For one output +1.0 or -1.0, else the class codes 0..K-1 (int64).

    sample_weight : torch.Tensor of shape (n_documents,)
        Non-negative document weights, with a positive sum.

    units : Units
        Starting scores, value scales and the weight of ``<cls>``.

    value_C, score_C : float
        Inverse strengths of the penalties on t and on u.

    cls_penalty : float
        Strength kappa of the penalty on the score of ``<cls>``.

    total_weight : float, default=None
        Weight of all documents, over which losses are averaged and penalties are spread; None
        for the sum of `sample_weight`, more where these documents are a part of them.
    """

    def __init__(
        self,
        bag: TokenBag,
        targets: torch.Tensor,
        sample_weight: torch.Tensor,
        units: Units,
        *,
        value_C: float,
        score_C: float,
        cls_penalty: float,
        total_weight: float | None = None,
    ) -> None:
        self.bag = bag
        self.targets = targets
        self.sample_weight = sample_weight.to(torch.float64)
        self.total_weight = (
            float(self.sample_weight.sum()) if total_weight is None else total_weight
        )
        self.units = units
        self.n_outputs = units.value_scales.shape[1]
        self.value_penalty = 1.0 / (self.total_weight * value_C)
        self.score_penalty = 1.0 / (self.total_weight * score_C)
        self.cls_penalty = cls_penalty
        self._weights_and_values = torch.empty_like(self.start())[:-1]
        # Without <cls> an empty document attends to nothing: its output is the intercept.
        self._missing_mass = (
            None if units.cls_weight else (bag.document_totals() == 0).to(torch.float64)
        )

    def start(self) -> torch.Tensor:
        """Return the parameters at which u, t, the cls score and the intercepts are 0."""
        shape = (self.bag.shape[1] + 1, 1 + self.n_outputs)
        return torch.zeros(shape, dtype=self.bag.dtype, device=self.bag.device)

    def scores(self, parameters: torch.Tensor) -> torch.Tensor:
        """Return the attention scores a, shape (n_tokens,)."""
        return self.units.starting_scores + parameters[:-1, 0]

    def values(self, parameters: torch.Tensor) -> torch.Tensor:
        """Return the token values b, shape (n_tokens, n_outputs)."""
        return self.units.value_scales * parameters[:-1, 1:]

    def __call__(self, parameters: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the penalised mean loss and its gradient, shaped as `parameters`."""
        loss, gradient = self.document_sums(parameters)
        gradient /= self.total_weight
        token_gradient, tokens = gradient[:-1], parameters[:-1]
        token_gradient[:, 0].add_(tokens[:, 0], alpha=self.score_penalty)
        token_gradient[:, 1:].add_(tokens[:, 1:], alpha=self.value_penalty)
        gradient[-1, 0] += self.cls_penalty * parameters[-1, 0]
        return loss / self.total_weight + self.penalty(parameters), gradient

    def penalty(self, parameters: torch.Tensor) -> float:
        """Return the sum of the penalties."""
        scores, *values = column_squares(parameters[:-1])
        cls = self.cls_penalty * float(parameters[-1, 0]) ** 2
        return 0.5 * (self.score_penalty * scores + self.value_penalty * sum(values) + cls)

    def document_sums(self, parameters: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum over documents of the weighted loss, and its gradient.

        Both are plain sums, so those of two shards of a corpus add up to those of the whole.
        """
        units, bag = self.units, self.bag
        scores = self.scores(parameters)
        shift = float(scores.max()) if len(scores) else 0.0
        cls_score, intercept = float(parameters[-1, 0]), parameters[-1, 1:].to(torch.float64)
        if units.cls_weight:
            shift = max(shift, cls_score)
        weights_and_values = self._weights_and_values
        weights = torch.exp(scores.sub_(shift), out=scores)
        weights_and_values[:, 0] = weights
        torch.mul(units.value_scales, parameters[:-1, 1:], out=weights_and_values[:, 1:])
        weights_and_values[:, 1:] *= weights[:, None]

        sums = bag.sum_over_tokens(weights_and_values).to(torch.float64)
        cls_mass = units.cls_weight * _exp(cls_score - shift)
        mass = sums[:, 0] + (cls_mass if self._missing_mass is None else self._missing_mass)
        if len(mass) and float(mass.min()) < _SMALLEST_MASS[bag.dtype]:
            return self._saturated_document_sums(parameters)
        attended = sums[:, 1:] / mass[:, None]
        loss, per_output = self.output_loss(attended + intercept)

        per_document = torch.empty_like(sums)
        torch.div(per_output, mass[:, None], out=per_document[:, 1:])
        per_document[:, 0] = -(per_document[:, 1:] * attended).sum(dim=1)
        # The product is written where the gradient belongs, and becomes it in place.
        gradient = torch.empty_like(parameters)
        tokens = gradient[:-1]
        bag.sum_over_documents(per_document.to(bag.dtype), out=tokens)
        tokens[:, 0] *= weights
        for k in range(1, 1 + self.n_outputs):
            tokens[:, 0].addcmul_(tokens[:, k], weights_and_values[:, k])
        tokens[:, 1:] *= units.value_scales
        tokens[:, 1:] *= weights[:, None]
        gradient[-1, 0] = cls_mass * per_document[:, 0].sum()
        gradient[-1, 1:] = per_output.sum(dim=0)
        return loss, gradient

    def output_loss(self, outputs: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the weighted sum of the losses and its derivative by the outputs, in float64."""
        weight = self.sample_weight
        if self.n_outputs == 1:
            margins = outputs[:, 0] * self.targets
            losses = torch.logaddexp(-margins, torch.zeros_like(margins))
            derivative = (-torch.sigmoid(-margins) * self.targets * weight)[:, None]
        else:
            log_normaliser = torch.logsumexp(outputs, dim=1)
            rows = self.targets[:, None]
            losses = log_normaliser - outputs.gather(1, rows)[:, 0]
            derivative = torch.exp(outputs - log_normaliser[:, None])
            derivative.scatter_add_(1, rows, -torch.ones_like(rows, dtype=outputs.dtype))
            derivative *= weight[:, None]
        return float(torch.dot(losses, weight)), derivative

    def _saturated_document_sums(self, parameters: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Do the same with per-document maxima, where some documents' mass underflows."""
        wide = parameters.to(torch.float64)
        scales = self.units.value_scales.to(torch.float64)
        loss, score_gradient, value_gradient, cls_gradient, intercept_gradient = saturated_sums(
            self.bag,
            self.units.starting_scores.to(torch.float64) + wide[:-1, 0],
            scales * wide[:-1, 1:],
            self.units.cls_weight,
            float(wide[-1, 0]),
            wide[-1, 1:],
            self.output_loss,
        )
        gradient = torch.empty_like(parameters)
        gradient[:-1, 0] = score_gradient
        gradient[:-1, 1:] = value_gradient * scales
        gradient[-1, 0] = cls_gradient
        gradient[-1, 1:] = intercept_gradient
        return loss, gradient


def column_squares(tokens: torch.Tensor) -> list[float]:
    """Return every column's sum of squares, accumulated in float64.

    Column by column: the whole matrix at once would be copied to float64.
    """
    norm = torch.linalg.vector_norm
    return [float(norm(column, dtype=torch.float64)) ** 2 for column in tokens.unbind(dim=1)]


def _exp(x: float) -> float:
    return float(torch.exp(torch.tensor(x, dtype=torch.float64)))
