"""The obviously correct slow model, which the fast one is tested against.

Documents are padded sequences of token ids, one position per occurrence. Every token has an
embedding; the <cls> token is appended to every document; attention is a masked softmax; the
gradient is autograd's; everything is in float64.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

PADDING = -1
SMOOTHING = 0.3  # pseudo-count of every token in a class or its rivals, whichever is rarer
BACKGROUND = 10.0  # pseudo-documents there, with tokens as frequent as in all documents


@dataclass
class PaddedDocuments:
    """Token ids of shape (n_documents, longest), `PADDING` at the end, and their weights."""

    tokens: torch.Tensor
    weights: torch.Tensor

    @classmethod
    def from_counts(cls, X):
        """Spell a document-token matrix out: whole counts as repeated tokens of weight 1."""
        tokens, weights = [], []
        for row in X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float):
            whole = row == row.astype(int)
            positions = np.repeat(np.arange(len(row)), np.where(whole, row, 1).astype(int))
            tokens.append(torch.from_numpy(positions))
            weights.append(torch.from_numpy(np.where(whole, 1.0, row)[positions]))
        return cls(*(pad_sequence(of, True, pad) for of, pad in ((tokens, PADDING), (weights, 0))))


def attention(documents, embeddings, p, cls_weight, cls_score):
    """Return attention on the positions, (n, longest), and on <cls>, (n,)."""
    real = documents.tokens != PADDING
    scores = embeddings[documents.tokens.clamp(min=0)] @ p
    # The inner `where` keeps log(0) out of the gradient.
    logits = scores + torch.log(torch.where(real, documents.weights, 1.0))
    logits = torch.where(real, logits, -torch.inf)
    n_documents = len(logits)
    if cls_weight:
        last = (torch.as_tensor(cls_score, dtype=torch.float64) + np.log(cls_weight)).expand(
            n_documents
        )
    else:  # an empty document attends to nothing, of value 0
        last = torch.where(real.any(dim=1), -torch.inf, 0.0)
    weights = torch.softmax(torch.cat([logits, last[:, None]], dim=1), dim=1)
    return weights[:, :-1], weights[:, -1]


def outputs(documents, embeddings, p, v, cls_weight, cls_score, intercept):
    """Return F, (n, K): embeddings (V, d), p (d,), v (K, d), and <cls> has value 0."""
    on_tokens, _ = attention(documents, embeddings, p, cls_weight, cls_score)
    values = embeddings[documents.tokens.clamp(min=0)] @ v.T
    return (on_tokens[:, :, None] * values).sum(dim=1) + intercept


def mean_loss(decisions, targets, sample_weight):
    """Return the weighted mean of the logistic loss (one output) or the cross entropy."""
    if decisions.shape[1] == 1:
        losses = F.softplus(-targets * decisions)[:, 0]
    else:
        losses = F.cross_entropy(decisions, targets, reduction="none")
    return (sample_weight * losses).sum() / sample_weight.sum()


def embed(scores, values, *, extra_dimensions=3, seed=0):
    """Return embeddings, p and v with these scores and values, in a random basis.

    p and the v_k are orthogonal, none of them a unit vector; what the embeddings are in the
    extra dimensions is random.
    """
    n_tokens, n_outputs = values.shape
    generator = torch.Generator().manual_seed(seed)
    used, d = 1 + n_outputs, 1 + n_outputs + extra_dimensions
    basis = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))[0]
    lengths = 0.5 + torch.rand(used, generator=generator, dtype=torch.float64)
    directions = basis[:used] * lengths[:, None]
    columns = torch.cat([scores[:, None], values], dim=1)
    noise = torch.randn(n_tokens, extra_dimensions, generator=generator, dtype=torch.float64)
    embeddings = (columns / lengths**2) @ directions + noise @ basis[used:]
    return embeddings, directions[0], directions[1:]


def objective(x, documents, targets, sample_weight, scaling, penalties):
    """Return the penalised mean loss at rows [u, t_1..t_K] and a last one [a_0, beta_1..beta_K].

    `penalties` are those of the values, the scores and the score of <cls>.
    """
    x = x.detach().to(torch.float64).clone().requires_grad_()
    u, t, cls_score, intercept = x[:-1, 0], x[:-1, 1:], x[-1, 0], x[-1, 1:]
    scores = torch.from_numpy(scaling.starting_scores) + u
    embeddings, p, v = embed(scores, torch.from_numpy(scaling.value_scales) * t)
    decisions = outputs(documents, embeddings, p, v, scaling.cls_weight, cls_score, intercept)
    squares = (t**2).sum(), (u**2).sum(), cls_score**2
    penalty = sum(of * square / 2 for of, square in zip(penalties, squares, strict=True))
    loss = mean_loss(decisions, targets, sample_weight) + penalty
    (gradient,) = torch.autograd.grad(loss, x)
    return float(loss.detach()), gradient


def counts(seed, n_documents=12, n_tokens=9, mean=0.7, *, empty=True):
    """Return random counts as CSR, with an empty document and an unseen token if `empty`."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(mean, (n_documents, n_tokens)).astype(float)
    if empty:
        X[n_documents // 2] = 0
        X[:, n_tokens // 2] = 0
    return sp.csr_matrix(X)


def slow_log_odds(X, codes, weights, n_classes, document=None, left_out=None):
    """Return log-odds of all tokens without a document and its copies, or without those left out.

    They are (1 or K, n_tokens).
    """
    dense = X.toarray()
    same = np.zeros(len(dense), dtype=bool) if left_out is None else left_out
    if document is not None and weights[document] > 0:
        same = (dense == dense[document]).all(axis=1)
    shares = dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-300)
    unit = (weights @ (dense > 0).sum(axis=1)) / weights.sum()
    has_tokens = weights * (dense.sum(axis=1) > 0)
    odds = np.empty((n_classes, dense.shape[1]))
    for k in range(n_classes):
        prior = has_tokens[codes == k].sum() / has_tokens.sum()
        totals = []
        for is_in, share in ((codes == k, prior), (codes != k, 1 - prior)):
            frequencies = weights @ shares * unit / weights.sum()
            pseudo = (SMOOTHING + BACKGROUND * frequencies) * share / min(prior, 1 - prior)
            totals.append(is_in * weights * ~same @ shares * unit + pseudo)
        odds[k] = np.log(totals[0] / totals[1]) - np.log(prior / (1 - prior))
    return odds[1:] if n_classes == 2 else odds
