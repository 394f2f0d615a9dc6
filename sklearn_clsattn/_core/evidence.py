"""What naive Bayes says of documents, and the loss of its multiples."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from .leave_one_out import evidence_without
from .objective import AttentionLoss
from .statistics import Scaling

Array = NDArray[np.float64]


class EvidenceSums(Protocol):
    """Sums over documents of the loss of alpha times the evidence, plus intercepts."""

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return loss, gradient and Hessian, (n,) and (n, n), at multiple and intercepts x."""
        ...

    def keep(self, multiple: float) -> None:
        """Give the documents' loss this multiple of the evidence."""
        ...


class NaiveBayes:
    """The evidence of some documents.

    `own`, (n_documents, n_classes), is what each document and its copies weigh in every class;
    `loss` is that of the documents of the CSR matrix `X`.
    """

    def __init__(self, X: Any, own: Array, loss: AttentionLoss, scaling: Scaling) -> None:
        assert scaling.totals is not None
        sums = scaling.unit * evidence_without(X, own, scaling.totals)
        self.numerators = torch.from_numpy(sums).to(loss.bag.device)
        attention = np.exp(scaling.starting_scores, dtype=np.float64)[:, None]
        by_token = torch.from_numpy(attention).to(loss.bag.device, loss.bag.dtype)
        mass = loss.bag.sum_over_tokens(by_token).to(torch.float64) + scaling.cls_weight
        self.outputs = self.numerators / mass.clamp(min=1e-300)
        self._loss = loss

    def __call__(self, x: Array) -> tuple[float, Array, Array]:
        """Return :class:`EvidenceSums` over the documents."""
        n = len(x)
        value, flat = multiple_sums(self._loss, self.outputs, x)
        derivatives = flat.cpu().numpy()
        return value, derivatives[:n], derivatives[n:].reshape(n, n)

    def keep(self, multiple: float) -> None:
        """Give the loss its evidence."""
        self._loss.evidence = self.numerators * multiple


def multiple_sums(
    loss: AttentionLoss, outputs: torch.Tensor, x: Array
) -> tuple[float, torch.Tensor]:
    """Return the sum of the losses at multiple and intercepts x, (n,), and its derivatives.

    Of this part's documents, with outputs (n_documents, n_outputs); gradient and Hessian are flat,
    one after the other.
    """
    n = len(x)
    weight = loss.sample_weight
    fitted = x[0] * outputs + torch.from_numpy(x[1:]).to(outputs.device)
    value, slope = loss.output_loss(fitted)
    p = torch.sigmoid(fitted) if loss.n_outputs == 1 else torch.softmax(fitted, dim=1)
    product = p * outputs
    spread = torch.cat([product.sum(dim=1, keepdim=True), p], dim=1)
    squares = torch.cat([(product * outputs).sum(dim=1, keepdim=True), p], dim=1)
    hessian = torch.diag(weight @ squares).addmm_((spread * weight[:, None]).T, spread, alpha=-1)
    cross = weight @ product
    hessian[0, 1:] += cross
    hessian[1:, 0] += cross
    assert hessian.shape == (n, n)
    return value, torch.cat([(slope * outputs).sum()[None], slope.sum(dim=0), hessian.reshape(-1)])
