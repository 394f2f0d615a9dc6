r"""The gradient of the loss by the scores, where softmax is spread out and where it is a maximum.

With :math:`g_{ik} = \omega_i\, \partial \ell / \partial F_{ik}`, attention q and outputs f,

.. math::

    \frac{\partial L}{\partial a_s}
        = \frac{1}{\Omega} \sum_i q_{is} \textstyle\sum_k g_{ik} (b_{sk} - f_{ik}).

The flow's speed is this gradient over its *size*, which vanishes as attention is selected, but not
where documents pull tokens in opposite directions:

.. math::

    N = \frac{1}{\max |b|} \sum_{ik} |g_{ik}| \Big( \textstyle\sum_s q_{is} b_{sk}^2 - f_{ik}^2
    \Big).

**By products.** While attention is spread out, both are sums over tokens and over documents: two
sparse products. **Entry by entry.** Where attention is all but on one token these are differences
of nearly equal numbers. Then every document's differences are taken from its leading token r, and
magnitudes are carried as logarithms. With :math:`D_{jk} = b_{jk} - b_{rk}`, exactly 0 there,

.. math::

    f_k = b_{rk} + \sum_j q_j D_{jk}, \qquad
    \frac{\partial L}{\partial a_s}
        = \frac{1}{\Omega} \sum_i \big( e_{is} - q_{is} \textstyle\sum_j e_{ij} \big), \qquad
    e_{ij} = q_{ij} \textstyle\sum_k g_{ik} D_{ijk}.

All e are computed relative to the largest one in the corpus, by which the gradient is divided: its
direction is right even where its length is below the smallest number.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..training.fitted_model import SELECTION_TOLERANCE
from ..training.loss import AttentionLoss

# Products have lost their digits where the size is smaller, relative to its largest value ...
_LEAST_SPREAD = 1e-7
# ... or where a document's mass is smaller, relative to that of the token of the highest score.
_LEAST_MASS = 1e-200


@dataclass(frozen=True)
class SelectiveGradient:
    """The gradient at some scores (see the module's docstring)."""

    direction: torch.Tensor  # (n_tokens,), dL/da over its size; 0 where there is none
    log_size: float  # log(N / Omega); -inf where the gradient is 0
    loss: float  # mean


class SelectiveObjective:
    """The mean loss, without ``<cls>``, as a function of the scores, with values fixed.

    `X` is CSR (n_documents, n_tokens), and `loss` that of its documents, in double
    precision; `values` are (n_tokens, n_outputs), on the device that computes. `entries` are the
    positions of the positive entries in the data of `X`, and `is_spread` is whether attention has
    been spread out so far.
    """

    def __init__(self, X: Any, loss: AttentionLoss, values: torch.Tensor) -> None:
        device = values.device
        self.n_documents, self.n_tokens = X.shape
        # 1) the positive entries
        self.entries = np.flatnonzero(X.data > 0)
        documents = np.repeat(np.arange(self.n_documents), np.diff(X.indptr))
        documents = documents[self.entries]
        _, self._starts, self._lengths = np.unique(documents, return_index=True, return_counts=True)
        tokens = X.indices[self.entries]
        log_weights = np.log(X.data[self.entries], dtype=np.float64)
        self.documents = torch.from_numpy(documents).to(device)
        self.tokens = torch.from_numpy(tokens.astype(np.int64)).to(device)
        self._log_weights = torch.from_numpy(log_weights).to(device)
        self._is_empty = torch.ones(self.n_documents, dtype=torch.bool, device=device)
        self._is_empty[self.documents] = False
        # 2) loss and values
        self._loss = loss
        self.values = values.to(torch.float64)
        ones = torch.ones_like(self.values[:, :1])
        self._powers = torch.cat([ones, self.values, self.values.square()], dim=1)
        self._largest_value = 0.0
        if self.values.numel():
            self._largest_value = float(self.values.abs().max())
        self.is_spread = self._largest_value > 0

    def __call__(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return loss and gradient at `scores`, in float64."""
        scores = scores.to(torch.float64)
        if self.is_spread:
            gradient = self._by_products(scores)
            if gradient is not None:
                return gradient
            self.is_spread = False  # attention that is selected stays so
        return self._by_entries(scores)

    def selection(self, scores: torch.Tensor) -> tuple[NDArray[np.bool_], float]:
        """Return whether entries have their document's highest score, and the attention on others.

        The flags are (n_entries,); the attention is the largest of any document.
        """
        # 1) scores relative to the document's highest
        relative = scores.to(torch.float64).index_select(0, self.tokens).cpu().numpy()
        highest = np.maximum.reduceat(relative, self._starts)
        relative -= np.repeat(highest, self._lengths)
        is_selected = relative >= -SELECTION_TOLERANCE
        # 2) attention, in the same memory
        relative += self._log_weights.cpu().numpy()
        attention = np.exp(relative, out=relative)
        mass = np.add.reduceat(attention, self._starts)
        attention[is_selected] = 0.0
        others = np.add.reduceat(attention, self._starts)
        return is_selected, float((others / mass).max(initial=0.0))

    def _by_products(self, scores: torch.Tensor) -> SelectiveGradient | None:
        """Return loss and gradient by sparse products; None where they would lose digits."""
        products = self._loss.products
        n_outputs = self.values.shape[1]
        total_weight = self._loss.total_weight
        # 1) documents' mass, their outputs f and their means of squared values
        weights = torch.exp(scores - scores.max())
        sums = products.sum_over_tokens(self._powers * weights[:, None])
        mass = sums[:, :1] + self._is_empty[:, None]
        if not float(mass.min()) > _LEAST_MASS:
            return None
        outputs, mean_squares = (sums[:, 1:] / mass).split(n_outputs, dim=1)
        # 2) the loss, its derivatives g by the outputs, and the size N
        loss, slopes = self._loss.output_loss(outputs)
        variances = mean_squares - outputs.square()
        steepness = slopes.abs()
        size = float((steepness * variances).sum()) / self._largest_value
        largest_size = self._largest_value * float(steepness.sum())
        if not size > _LEAST_SPREAD * largest_size:
            return None
        # 3) the sums over documents of g and of g f, and with them the gradient
        attended = (slopes * outputs).sum(dim=1, keepdim=True)
        by_token = products.sum_over_documents(torch.cat([slopes, attended], dim=1) / mass)
        gradient = (self.values * by_token[:, :-1]).sum(dim=1)
        gradient -= by_token[:, -1]
        gradient *= weights
        gradient /= size
        log_size = math.log(size / total_weight)
        return SelectiveGradient(gradient, log_size, loss / total_weight)

    def _by_entries(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return loss and gradient entry by entry, whatever the scores."""
        total_weight = self._loss.total_weight
        # 1) attention q and its logarithm
        logits = self._log_weights + scores.index_select(0, self.tokens)
        highest = self._at_entries(self._maxima(logits))
        below_highest = logits - highest
        attention = torch.exp(below_highest)
        mass = self._sums(attention) + self._is_empty
        log_attention = below_highest - self._at_entries(torch.log(mass))
        attention /= self._at_entries(mass)
        # 2) differences D from the value of the leading token r, and outputs f
        entry_values = self.values[self.tokens]
        leading_values = self._leading_values(entry_values, logits == highest)
        differences = entry_values - self._at_entries(leading_values)
        beyond_leading = self._sums(attention[:, None] * differences)
        loss, slopes = self._loss.output_loss(leading_values + beyond_leading)
        # 3) e relative to its largest magnitude
        slope_differences = differences * self._at_entries(slopes)
        log_magnitudes = log_attention[:, None] + torch.log(slope_differences.abs())
        largest = -math.inf
        if log_magnitudes.numel():
            largest = float(log_magnitudes.max())
        direction = scores.new_zeros(self.n_tokens)
        if not largest > -math.inf:
            return SelectiveGradient(direction, -math.inf, loss / total_weight)
        terms = torch.sign(slope_differences) * torch.exp(log_magnitudes - largest)
        document_sums = self._sums(terms)
        # 4) the size N, and the gradient e - q sum e
        size = float((terms * differences).abs().sum())
        size -= float((document_sums * beyond_leading).abs().sum())
        size /= self._largest_value
        entry_gradients = terms.sum(dim=1)
        entry_gradients -= attention * self._at_entries(document_sums.sum(dim=1))
        direction.index_add_(0, self.tokens, entry_gradients.div_(size))
        log_size = -math.inf
        if size:
            log_size = largest + math.log(size / total_weight)
        return SelectiveGradient(direction, log_size, loss / total_weight)

    def _leading_values(self, entry_values: torch.Tensor, is_tied: torch.Tensor) -> torch.Tensor:
        """Return the values of documents' leading tokens, (n_documents, n_outputs).

        The first of the tied entries leads; a document without tokens has the value 0.
        """
        tied = torch.nonzero(is_tied)[:, 0]
        first = torch.zeros_like(self._is_empty, dtype=torch.int64)
        first.scatter_reduce_(0, self.documents[tied], tied, reduce="amin", include_self=False)
        has_tokens = ~self._is_empty
        leading_values = entry_values.new_zeros((self.n_documents, entry_values.shape[1]))
        leading_values[has_tokens] = entry_values[first[has_tokens]]
        return leading_values

    def _maxima(self, per_entry: torch.Tensor) -> torch.Tensor:
        """Return the largest number of each document, (n_documents,); 0 without tokens."""
        maxima = per_entry.new_full((self.n_documents,), -torch.inf)
        maxima.scatter_reduce_(0, self.documents, per_entry, reduce="amax")
        return torch.where(self._is_empty, 0.0, maxima)

    def _sums(self, per_entry: torch.Tensor) -> torch.Tensor:
        """Return sums over the entries of each document, (n_documents, ..)."""
        shape = self.n_documents, *per_entry.shape[1:]
        return per_entry.new_zeros(shape).index_add_(0, self.documents, per_entry)

    def _at_entries(self, per_document: torch.Tensor) -> torch.Tensor:
        """Return the numbers of each entry's document, (n_entries, ..)."""
        return per_document.index_select(0, self.documents)
