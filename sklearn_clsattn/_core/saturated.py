"""The objective's document sums where attention is so sharp that whole documents underflow.

The fast form divides by ``X @ exp(a - max a)``: 0/0 for a document none of whose tokens comes
near the largest score. Here every document has its own maximum, at the price of work per
stored entry instead of two sparse products.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from .bag import TokenBag

Loss = Callable[[torch.Tensor], tuple[float, torch.Tensor]]


def saturated_sums(
    bag: TokenBag,
    scores: torch.Tensor,
    values: torch.Tensor,
    cls_weight: float,
    cls_score: float,
    intercept: torch.Tensor,
    evidence: torch.Tensor | None,
    loss: Loss,
) -> tuple[float, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the summed loss and its derivatives, whatever the spread of the scores.

    `scores` is (n_tokens,), `values` (n_tokens, n_outputs) and `intercept` (n_outputs,), in
    float64; `cls_weight` 0 leaves ``<cls>`` out; `evidence`, (n_documents, n_outputs), is added to
    what the tokens sum up to, None for 0. `loss` maps outputs, (n_documents, n_outputs), to
    the summed loss and its derivative by them. After the loss come its derivatives by the scores,
    the values, the score of ``<cls>`` and the intercept.
    """
    documents, tokens = bag.coordinates()
    logits = torch.log(bag.nonzeros.to(torch.float64)) + scores[tokens]
    cls_logit = cls_score + float(torch.log(torch.tensor(cls_weight, dtype=torch.float64)))
    largest = torch.full((bag.shape[0],), cls_logit, dtype=torch.float64, device=bag.device)
    largest.scatter_reduce_(0, documents, logits, reduce="amax")
    largest = torch.where(torch.isfinite(largest), largest, 0.0)  # an empty document, no <cls>
    attention = torch.exp(logits - largest[documents])
    cls_attention = torch.exp(cls_logit - largest)
    mass = cls_attention.index_add(0, documents, attention)
    mass = torch.where(mass > 0, mass, 1.0)
    attention /= mass[documents]
    cls_attention /= mass

    n_outputs = values.shape[1]
    attended = torch.zeros((bag.shape[0], n_outputs), dtype=torch.float64, device=bag.device)
    attended.index_add_(0, documents, attention[:, None] * values[tokens])
    if evidence is not None:
        attended += evidence * (torch.exp(-largest) / mass)[:, None]
    total, per_output = loss(attended + intercept)

    value_gradient = torch.zeros_like(values)
    value_gradient.index_add_(0, tokens, attention[:, None] * per_output[documents])
    relative = ((values[tokens] - attended[documents]) * per_output[documents]).sum(dim=1)
    score_gradient = torch.zeros_like(scores).index_add_(0, tokens, attention * relative)
    cls_gradient = -(cls_attention * (per_output * attended).sum(dim=1)).sum()
    return total, score_gradient, value_gradient, cls_gradient, per_output.sum(dim=0)
