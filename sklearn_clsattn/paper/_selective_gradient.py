r"""The gradient by the scores where softmax is nearly a maximum, to full relative precision.

With values held fixed and attention on one token, the gradient is a difference of nearly equal
numbers. Here every document's differences are taken from its leading token r, and magnitudes are
carried as logarithms. With :math:`D_{jk} = b_{jk} - b_{rk}`, exactly 0 there, outputs are
:math:`f_k = b_{rk} + \sum_j q_j D_{jk}`; with :math:`g_k = \omega\, \partial \ell / \partial F_k`,

.. math::

    \frac{\partial L}{\partial a_s}
        = \frac{1}{\Omega} \sum_i \big( e_{is} - q_{is} \textstyle\sum_j e_{ij} \big), \qquad
    e_{ij} = q_{ij} \textstyle\sum_k g_{ik} D_{ijk}.

All e are computed relative to the largest one in the corpus, :math:`e^M`, by which the gradient is
divided: its direction is right even where its length is below the smallest number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .._core.fitted import SELECTION_TOLERANCE
from .._core.loss import AttentionLoss


@dataclass(frozen=True)
class SelectiveGradient:
    """The gradient at some scores, and the attention there."""

    by_score: torch.Tensor  # (n_tokens,), dL/da divided by exp(`log_scale`)
    magnitude: float  # the sum of the sizes of its terms before they cancel, divided alike
    log_scale: float  # M - log(Omega); -inf where the gradient is 0
    loss: float  # mean
    selected: torch.Tensor  # (n_entries,), whether an entry has its document's highest score
    log_selected_attention: torch.Tensor  # (n_documents,), on these; 0 without tokens


class SelectiveObjective:
    """The mean loss, without ``<cls>``, as a function of the scores, with values fixed.

    `X` is CSR (n_documents, n_tokens), and `loss` that of its documents; `values` are (n_tokens,
    n_outputs), on the device that computes. `entries` are the positions of the positive entries in
    the data of `X`.
    """

    def __init__(self, X: Any, loss: AttentionLoss, values: torch.Tensor) -> None:
        device = values.device
        self.n_documents, self.n_tokens = X.shape
        self.entries = np.flatnonzero(X.data > 0)
        documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[self.entries]
        self.documents = torch.from_numpy(documents).to(device)
        self.tokens = torch.from_numpy(X.indices[self.entries].astype(np.int64)).to(device)
        logs = np.log(X.data[self.entries], dtype=np.float64)
        self._log_weights = torch.from_numpy(logs).to(device)
        self._loss = loss
        self.values = values.to(torch.float64)
        self._of_entries = self.values[self.tokens]
        self._empty = torch.ones(self.n_documents, dtype=torch.bool, device=device)
        self._empty[self.documents] = False

    def __call__(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return loss, direction of the gradient and selection at `scores`, in float64."""
        documents, tokens = self.documents, self.tokens
        of_entries = scores.to(torch.float64).index_select(0, tokens)
        logits = self._log_weights + of_entries
        leading_logit = self._maxima(logits)
        if torch.isnan(leading_logit).any():
            raise FloatingPointError("a score is not a number")
        of_leading = leading_logit.index_select(0, documents)
        above = logits - of_leading
        attention = torch.exp(above)
        mass = self._sums(attention) + self._empty
        log_attention = above - torch.log(mass).index_select(0, documents)
        attention /= mass.index_select(0, documents)

        reference = self.values.new_zeros((self.n_documents, self.values.shape[1]))
        tied = torch.nonzero(logits == of_leading)[:, 0]
        first = torch.zeros_like(self._empty, dtype=torch.int64).scatter_reduce_(
            0, documents[tied], tied, reduce="amin", include_self=False
        )
        reference[~self._empty] = self._of_entries[first[~self._empty]]
        differences = self._of_entries - reference.index_select(0, documents)
        outputs = reference + self._sums(attention[:, None] * differences)
        loss, per_output = self._loss.output_loss(outputs)

        signed = (differences * per_output.index_select(0, documents)).sum(dim=1)
        log_terms = log_attention + torch.log(signed.abs())
        largest = float(log_terms.max()) if len(log_terms) else -torch.inf
        by_score, magnitude = scores.new_zeros(self.n_tokens, dtype=torch.float64), 0.0
        if largest > -torch.inf:
            terms = torch.sign(signed) * torch.exp(log_terms - largest)
            terms -= attention * self._sums(terms).index_select(0, documents)
            by_score.index_add_(0, tokens, terms)
            magnitude = float(terms.abs().sum())

        lowest_selected = self._maxima(of_entries) - SELECTION_TOLERANCE
        selected = of_entries >= lowest_selected.index_select(0, documents)
        on_selected = self._sums(attention * selected) + self._empty
        return SelectiveGradient(
            by_score=by_score,
            magnitude=magnitude,
            log_scale=largest - float(np.log(self._loss.total_weight)),
            loss=loss / self._loss.total_weight,
            selected=selected,
            log_selected_attention=torch.log(on_selected),
        )

    def _maxima(self, per_entry: torch.Tensor) -> torch.Tensor:
        maxima = per_entry.new_full((self.n_documents,), -torch.inf)
        maxima.scatter_reduce_(0, self.documents, per_entry, reduce="amax")
        return torch.where(self._empty, 0.0, maxima)

    def _sums(self, per_entry: torch.Tensor) -> torch.Tensor:
        shape = (self.n_documents, *per_entry.shape[1:])
        return per_entry.new_zeros(shape).index_add_(0, self.documents, per_entry)
