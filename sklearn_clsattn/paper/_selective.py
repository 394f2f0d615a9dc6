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
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._core.fitted import SELECTION_TOLERANCE
from .._core.loss import AttentionLoss
from .._core.threads import in_threads
from .._documents import BLOCK_ENTRIES

# Where attention is so close to a maximum, or a document's share of it so small, products have lost
# their digits: the size over its largest value, and a document's mass over the largest token's.
_LEAST_SPREAD, _LEAST_MASS = 1e-7, 1e-200


@dataclass(frozen=True)
class SelectiveGradient:
    """The gradient at some scores (see the module's docstring)."""

    direction: torch.Tensor  # (n_tokens,), dL/da over its size; 0 where there is none
    log_size: float  # log(N / Omega); -inf where the gradient is 0
    loss: float  # mean


class SelectiveObjective:
    """The mean loss, without ``<cls>``, as a function of the scores, with values fixed.

    `X` is CSR (n_documents, n_tokens), and `loss` that of its documents, with a bag in double
    precision; `values` are (n_tokens, n_outputs), on the device that computes. `entries` are the
    positions of the positive entries in the data of `X`, and `is_spread` is whether attention has
    been spread out so far.
    """

    def __init__(self, X: Any, loss: AttentionLoss, values: torch.Tensor) -> None:
        device = values.device
        self.n_documents, self.n_tokens = X.shape
        self.entries = np.flatnonzero(X.data > 0)
        documents = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[self.entries]
        self._indices = X.indices[self.entries]
        self._logs = np.log(X.data[self.entries], dtype=np.float64)
        self._blocks = _blocks(np.bincount(documents))
        self.documents = torch.from_numpy(documents).to(device)
        self.tokens = torch.from_numpy(self._indices.astype(np.int64)).to(device)
        self._log_weights = torch.from_numpy(self._logs).to(device)
        self._loss = loss
        self.values = values.to(torch.float64)
        self._powers = torch.cat(
            [torch.ones_like(self.values[:, :1]), self.values, self.values.square()], dim=1
        )
        self._largest = float(self.values.abs().max()) if self.values.numel() else 0.0
        self._empty = torch.ones(self.n_documents, dtype=torch.bool, device=device)
        self._empty[self.documents] = False
        self.is_spread = self._largest > 0

    def __call__(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return loss and gradient at `scores`, in float64."""
        scores = scores.to(torch.float64)
        if torch.isnan(scores).any():
            raise FloatingPointError("a score is not a number")
        if self.is_spread and (point := self._by_products(scores)) is not None:
            return point
        self.is_spread = False  # attention that is selected stays so
        return self._by_entries(scores)

    def _by_products(self, scores: torch.Tensor) -> SelectiveGradient | None:
        """Return the same by sparse products; None where they would lose digits."""
        bag, n_outputs = self._loss.bag, self.values.shape[1]
        weights = torch.exp(scores - scores.max())
        sums = bag.sum_over_tokens(self._powers * weights[:, None])
        mass = sums[:, :1] + self._empty[:, None]
        if not float(mass.min()) > _LEAST_MASS:
            return None
        outputs, squares = (sums[:, 1:] / mass).split(n_outputs, dim=1)
        loss, slopes = self._loss.output_loss(outputs)
        size = float(torch.sum(slopes.abs() * (squares - outputs.square()))) / self._largest
        if not size > _LEAST_SPREAD * self._largest * float(slopes.abs().sum()):
            return None
        attended = (slopes * outputs).sum(dim=1, keepdim=True)
        by_token = bag.sum_over_documents(torch.cat([slopes, attended], dim=1) / mass)
        gradient = (self.values * by_token[:, :-1]).sum(dim=1).sub_(by_token[:, -1])
        total = self._loss.total_weight
        return SelectiveGradient(
            gradient.mul_(weights).div_(size), math.log(size / total), loss / total
        )

    def _by_entries(self, scores: torch.Tensor) -> SelectiveGradient:
        """Return the same entry by entry, whatever the scores."""
        documents, tokens = self.documents, self.tokens
        logits = self._log_weights + scores.index_select(0, tokens)
        of_leading = self._maxima(logits).index_select(0, documents)
        above = logits - of_leading
        attention = torch.exp(above)
        mass = self._sums(attention) + self._empty
        log_attention = above - torch.log(mass).index_select(0, documents)
        attention /= mass.index_select(0, documents)

        of_entries = self.values[tokens]
        reference = self.values.new_zeros((self.n_documents, self.values.shape[1]))
        tied = torch.nonzero(logits == of_leading)[:, 0]
        first = torch.zeros_like(self._empty, dtype=torch.int64).scatter_reduce_(
            0, documents[tied], tied, reduce="amin", include_self=False
        )
        reference[~self._empty] = of_entries[first[~self._empty]]
        differences = of_entries - reference.index_select(0, documents)
        ahead = self._sums(attention[:, None] * differences)
        loss, slopes = self._loss.output_loss(reference + ahead)

        signed = differences * slopes.index_select(0, documents)
        log_terms = log_attention[:, None] + torch.log(signed.abs())
        largest = float(log_terms.max()) if log_terms.numel() else -torch.inf
        direction, size = scores.new_zeros(self.n_tokens), 0.0
        if largest > -torch.inf:
            terms = torch.sign(signed) * torch.exp(log_terms - largest)
            of_documents = self._sums(terms)
            size = float((terms.abs() * differences.abs()).sum())
            size -= float((of_documents.abs() * ahead.abs()).sum())
            size /= self._largest
            by_entry = terms.sum(dim=1)
            by_entry -= attention * of_documents.sum(dim=1).index_select(0, documents)
            direction.index_add_(0, tokens, by_entry.div_(size))
        return SelectiveGradient(
            direction=direction,
            log_size=largest + math.log(size / self._loss.total_weight) if size else -math.inf,
            loss=loss / self._loss.total_weight,
        )

    def selection(self, scores: torch.Tensor) -> tuple[NDArray[np.bool_], float]:
        """Return which entries have their document's highest score, and the attention on others.

        The flags are (n_entries,); the share of attention is the largest of any document.
        """
        of_tokens = scores.to("cpu", torch.float64).numpy()
        selected = np.empty(len(self.entries), dtype=bool)

        def look(block: tuple[slice, NDArray[np.intp], NDArray[np.intp]]) -> float:
            entries, starts, lengths = block
            ahead = of_tokens[self._indices[entries]]
            ahead -= np.repeat(np.maximum.reduceat(ahead, starts), lengths)
            np.greater_equal(ahead, -SELECTION_TOLERANCE, out=selected[entries])
            attention = np.exp(np.add(ahead, self._logs[entries], out=ahead), out=ahead)
            mass = np.add.reduceat(attention, starts)
            attention[selected[entries]] = 0.0
            return float((np.add.reduceat(attention, starts) / mass).max())

        return selected, max(in_threads(look, self._blocks), default=0.0)

    def _maxima(self, per_entry: torch.Tensor) -> torch.Tensor:
        maxima = per_entry.new_full((self.n_documents,), -torch.inf)
        maxima.scatter_reduce_(0, self.documents, per_entry, reduce="amax")
        return torch.where(self._empty, 0.0, maxima)

    def _sums(self, per_entry: torch.Tensor) -> torch.Tensor:
        shape = (self.n_documents, *per_entry.shape[1:])
        return per_entry.new_zeros(shape).index_add_(0, self.documents, per_entry)


def _blocks(lengths: NDArray[np.intp]) -> list[tuple[slice, NDArray[np.intp], NDArray[np.intp]]]:
    """Return the entries of blocks of documents, with documents' first entries and lengths.

    Documents without entries are in no block.
    """
    lengths = lengths[lengths > 0]
    ends = np.cumsum(lengths)
    bounds = np.searchsorted(ends, range(0, int(lengths.sum()), BLOCK_ENTRIES))
    blocks = []
    for start, stop in pairwise([*bounds, len(lengths)]):
        first = ends[start] - lengths[start]
        starts = ends[start:stop] - lengths[start:stop] - first
        blocks.append((slice(first, ends[stop - 1]), starts, lengths[start:stop]))
    return blocks
