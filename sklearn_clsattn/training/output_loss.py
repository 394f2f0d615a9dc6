r"""The loss of documents' outputs F, by what is to be predicted of the documents.

Both losses are sums over documents with weights :math:`\omega_i`:

- :class:`LogisticLoss`, for one output, or one for each of several labels, with the shares
  :math:`p_{ik}` of 0 to 1:
  :math:`\sum_{ik} \omega_i \big( \log(1 + e^{F_{ik}}) - p_{ik} F_{ik} \big)`;
- :class:`CrossEntropy`, for more than two classes, with shares that add up to 1:
  :math:`\sum_i \omega_i \big( \log \sum_k e^{F_{ik}} - \sum_k p_{ik} F_{ik} \big)`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._targets import Targets

_FACTORS = 1000  # from 1 to 2, whose product is finite


@dataclass(frozen=True)
class LogisticLoss:
    """The sum of logistic losses of outputs, (n_documents, n_outputs) in float64.

    signs : (n_documents, n_outputs), 2 p - 1: 1 or -1 where the target is certain
    weights : (n_documents,)
    """

    signs: torch.Tensor
    weights: torch.Tensor

    def __call__(self, outputs: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the loss and its derivative by the outputs."""
        sizes = outputs.abs()
        small = sizes.neg().exp_()  # e^-|F|
        tails = small + 1.0
        # 1) log(1 + e^F) - p F, with one logarithm for many outputs
        linear_parts = sizes.sub_(outputs * self.signs)
        linear_parts.mul_(0.5)
        losses = linear_parts.sum(dim=1)
        for part in tails.split(_FACTORS, dim=1):
            losses += part.prod(dim=1).log_()
        # 2) (1 - p) sigmoid(F) - p sigmoid(-F), which keeps the digits of a small one
        is_positive = outputs > 0
        for_positive = torch.where(is_positive, 1.0, small)
        for_positive.mul_(1.0 - self.signs)
        for_negative = torch.where(is_positive, small, 1.0)
        for_negative.mul_(1.0 + self.signs)
        derivative = for_positive.sub_(for_negative)
        derivative.div_(tails.mul_(2.0))
        derivative *= self.weights[:, None]
        loss = float(torch.dot(losses, self.weights))
        return loss, derivative

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of outputs, of the same shape."""
        return torch.sigmoid(outputs)

    def log_odds(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return each class's log-odds against all others, a new tensor of the same shape."""
        return outputs.clone()

    def hessian(self, outputs: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
        """Return the Hessian of the loss by m and b, where outputs are m times `along` plus b.

        `outputs` are (n_documents, n_outputs), `along` is (n_multiples, n_documents, n_outputs),
        and the result (n_multiples + n_outputs, n_multiples + n_outputs).
        """
        p = self.probabilities(outputs)
        variances = p * (1 - p)
        by_output = variances * self.weights[:, None]
        by_both = by_output * along
        return _hessian(
            by_both.flatten(1) @ along.flatten(1).T,
            by_both.sum(dim=1),
            by_output.sum(dim=0),
        )


@dataclass(frozen=True)
class CrossEntropy:
    """The sum of cross entropies of softmax(F), (n_documents, n_classes) in float64.

    targets : (n_documents,), class codes in int64; or shares, (n_documents, n_classes)
    weights : (n_documents,)
    """

    targets: torch.Tensor
    weights: torch.Tensor

    def __call__(self, outputs: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the loss and its derivative by the outputs."""
        logs = torch.log_softmax(outputs, dim=1)
        if self.targets.ndim == 1:
            codes = self.targets[:, None]
            losses = -logs.gather(1, codes)[:, 0]
            derivative = logs.exp_()
            ones = torch.ones_like(codes, dtype=outputs.dtype)
            derivative.scatter_add_(1, codes, -ones)
        else:
            losses = -(logs * self.targets).sum(dim=1)
            derivative = logs.exp_()
            derivative.sub_(self.targets)
        derivative *= self.weights[:, None]
        loss = float(torch.dot(losses, self.weights))
        return loss, derivative

    def probabilities(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of outputs, of the same shape."""
        return torch.softmax(outputs, dim=1)

    def log_odds(self, outputs: torch.Tensor) -> torch.Tensor:
        """Return each class's log-odds against all others, a new tensor of the same shape."""
        log_odds = torch.empty_like(outputs)
        for k in range(outputs.shape[1]):
            others = torch.cat([outputs[:, :k], outputs[:, k + 1 :]], dim=1)
            log_sums = torch.logsumexp(others, dim=1)
            log_odds[:, k] = outputs[:, k] - log_sums
        return log_odds

    def hessian(self, outputs: torch.Tensor, along: torch.Tensor) -> torch.Tensor:
        """Return the Hessian of the loss by m and b, where outputs are m times `along` plus b.

        Shapes are those of :meth:`LogisticLoss.hessian`.
        """
        p = self.probabilities(outputs)
        product = p * along
        # 1) the weighted sums of products of the outputs' derivatives, in the mean under p
        weighted = product * self.weights[:, None]
        hessian = _hessian(
            weighted.flatten(1) @ along.flatten(1).T,
            weighted.sum(dim=1),
            self.weights @ p,
        )
        # 2) without the products of the means: the derivatives' covariances
        means = torch.cat([product.sum(dim=2).T, p], dim=1)
        weighted_means = means * self.weights[:, None]
        return hessian.addmm_(weighted_means.T, means, alpha=-1)


def _hessian(
    by_multiples: torch.Tensor, by_both: torch.Tensor, by_intercepts: torch.Tensor
) -> torch.Tensor:
    """Return the Hessian by multiples and intercepts, which have a diagonal of their own.

    Its parts are (n_multiples, n_multiples), (n_multiples, n_outputs) and (n_outputs,).
    """
    above = torch.cat([by_multiples, by_both], dim=1)
    below = torch.cat([by_both.T, torch.diag(by_intercepts)], dim=1)
    return torch.cat([above, below])


OutputLoss = LogisticLoss | CrossEntropy


def target_array(targets: Targets) -> NDArray[Any]:
    """Return targets as the losses take them.

    Signs, (n_documents, n_outputs), for the logistic loss; for more classes codes, (n_documents,),
    or shares, (n_documents, n_classes).
    """
    values = targets.values
    if targets.has_rivals and targets.has_codes:
        return np.ascontiguousarray(values, dtype=np.int64)
    if targets.has_rivals:
        return values
    if targets.has_codes:
        is_second = values[:, None] == 1
        return np.where(is_second, 1.0, -1.0)
    shares = values if targets.multilabel else values[:, 1:]
    return np.asarray(2.0 * shares - 1.0)


def output_loss(
    targets: Targets, weights: NDArray[Any], device: torch.device | str = "cpu"
) -> OutputLoss:
    """Return the loss of the outputs of documents with these targets and weights."""
    kind = CrossEntropy if targets.has_rivals else LogisticLoss
    values = torch.from_numpy(target_array(targets)).to(device)
    document_weights = torch.from_numpy(weights).to(device, torch.float64)
    return kind(values, document_weights)
