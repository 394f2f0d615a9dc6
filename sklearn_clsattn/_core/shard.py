"""Some documents of a corpus in training, and what is computed of them: functions of a shard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from .._types import Array, Numbers
from .chunk import Chunk, rows_within
from .leave_one_out import LeftOut, evidence_without
from .loss import AttentionLoss
from .output_loss import make_output_loss, target_array
from .products import TokenBag, as_tensor
from .statistics import Scaling

_SMALLEST_MASS = 1e-300  # of a document, which then has no tokens


@dataclass(frozen=True)
class Shard:
    """Some documents in training: a chunk, and the sum of its documents' losses."""

    chunk: Chunk
    loss: AttentionLoss


def make_shard(
    chunk: Chunk, dtype: type[np.floating[Any]], device: torch.device | str, cls_weight: float
) -> Shard:
    """Return the shard of a chunk in the precision `dtype` on a device."""
    bag = TokenBag(chunk.X, dtype=dtype, device=device, columns=chunk.transposed)
    targets = as_tensor(target_array(chunk.targets), bag.device)
    weights = as_tensor(chunk.weights, bag.device)
    output_loss = make_output_loss(targets, weights, chunk.targets)
    loss = AttentionLoss(bag, output_loss, chunk.targets.n_outputs, cls_weight=cls_weight)
    return Shard(chunk, loss)


def loss_and_gradient(shard: Shard, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Return the sum of the losses and its gradient by the token matrix."""
    return shard.loss(matrix)


def curvature(shard: Shard, matrix: torch.Tensor) -> torch.Tensor:
    """Return the curvature by values and intercepts, (n_tokens + 1, n_outputs)."""
    return shard.loss.curvature(matrix)


def expansion(shard: Shard, matrix: torch.Tensor) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Return the sum of the losses, its gradient and its curvature by the token matrix."""
    value, gradient = shard.loss(matrix)
    return value, gradient, shard.loss.bound(matrix)


@dataclass(frozen=True)
class ShardEvidence:
    """The naive Bayes evidence for each document of a shard, without it and its copies.

    numerators : (n_documents, n_outputs), sums over the document's tokens
    outputs : (n_documents, n_outputs), these divided by the attention mass at the start
    """

    shard: Shard
    numerators: torch.Tensor
    outputs: torch.Tensor


def make_evidence(
    shard: Shard,
    scaling: Scaling,
    starts: Numbers,
    copied: Numbers,
    copy_groups: Numbers,
    copies: LeftOut,
) -> ShardEvidence:
    """Return the naive Bayes evidence for the documents of a shard.

    `starts` are the numbers of the chunks' first documents, `copied` those of all documents that
    have copies, sorted, `copy_groups` the number of each one's group in `copies`.
    """
    chunk = shard.chunk
    bag = shard.loss.bag
    totals = scaling.totals
    assert totals is not None
    # 1) the weights that are left out with each document: its own, or those of all its copies
    weights = np.array(chunk.weights, dtype=np.float64)
    by_class = chunk.targets.by_class(weights)
    here = rows_within(chunk, starts, copied)
    rows = copied[here] - starts[chunk.number]
    by_class[rows] = copies.by_class[copy_groups[here]]
    weights[rows] = copies.total[copy_groups[here]]
    # 2) the sums over the tokens of each document
    sums = scaling.unit * evidence_without(chunk.X, LeftOut(by_class, weights), totals)
    numerators = as_tensor(sums, bag.device)
    # 3) the mean over its attention mass
    attention = np.exp(scaling.starting_scores, dtype=np.float64)[:, None]
    by_token = torch.from_numpy(attention).to(bag.device, bag.dtype)
    mass = bag.sum_over_tokens(by_token).to(torch.float64) + scaling.cls_weight
    outputs = numerators / mass.clamp(min=_SMALLEST_MASS)
    return ShardEvidence(shard, numerators, outputs)


def multiple_sums(evidence: ShardEvidence, x: Array) -> tuple[float, Array, Array]:
    """Return the loss of naive Bayes times x[0] plus intercepts x[1:], its gradient and Hessian.

    x is (1 + n_outputs,).
    """
    output_loss = evidence.shard.loss.output_loss
    naive_bayes = evidence.outputs
    intercepts = torch.from_numpy(x[1:]).to(naive_bayes.device)
    outputs = x[0] * naive_bayes + intercepts
    value, by_output = output_loss(outputs)
    by_multiple = (by_output * naive_bayes).sum()
    by_intercept = by_output.sum(dim=0)
    gradient = torch.cat([by_multiple[None], by_intercept])
    hessian = output_loss.hessian(outputs, naive_bayes)
    return value, gradient.cpu().numpy(), hessian.cpu().numpy()


def with_evidence(evidence: ShardEvidence, multiple: float) -> Shard:
    """Return the shard with a multiple of the naive Bayes evidence in its loss."""
    shard = evidence.shard
    added = evidence.numerators * multiple
    return replace(shard, loss=shard.loss.with_evidence(added))
