r"""Vectors of tokens, by which similar tokens share what is learned of their values.

Tokens :math:`s` with vectors :math:`G_s` of length 1 have the values

.. math:: b_{sk} = \bar b_{sk} + \sigma_{sk} t_{sk} + \gamma \kappa e^{-\pi_s} \, G_s \cdot w_k

with the prior mean, value scales and starting scores of :mod:`.objective`, where t and w have the
same penalty: a priori, values have the covariance :math:`I + \gamma^2 G G^\top`, in units of
:math:`\kappa`, the root mean square of :math:`\sigma_{sk} e^{\pi_s}` over the tokens of training.
A token that is in no training document gets the value that its vector gives.

The vectors are rotated, which changes no product with them, so that what they add to the outputs of
different documents, before training, is uncorrelated: the curvature by w is then almost diagonal.
"""

from dataclasses import replace

import numpy as np
import torch

from .._bags import Bags, TokenVectors
from .._types import Array, Numbers
from .fitted_model import FittedAttention, VectorEmbeddings
from .statistics import Scaling

SCALES = 0.0, 0.5, 1.0, 2.0
"""The gammas of which one is chosen."""


class VectorValues:
    """The product of tokens' vectors with w, in values, for one `scale`, gamma, after another.

    `bags` are those of some documents, with `document_weights`. `unit` is kappa, `factors`,
    (n_tokens,), are exp(-pi). `matrix`, (n_vectors, d), has the vectors of the tokens `tokens`,
    times both, rotated by `rotation`, (d, d).
    """

    def __init__(
        self,
        vectors: TokenVectors,
        scaling: Scaling,
        bags: Bags,
        document_weights: Array,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        importance = np.exp(scaling.starting_scores, dtype=np.float64)[:, None]  # exp(pi)
        self.unit = scaling.value_spread
        self.scale = 0.0
        self.factors = 1.0 / importance[:, 0]
        self.dimension = vectors.matrix.shape[1]
        self.tokens = torch.from_numpy(vectors.tokens).to(device)
        # 1) what w adds to the outputs of the documents, before training
        masses = bags.dot(importance) + scaling.cls_weight
        masses[masses <= 0] = np.inf
        added = bags.columns(vectors.tokens).dot(vectors.matrix)
        added *= self.unit / masses
        # 2) the rotation after which its components are uncorrelated
        weighted = added * document_weights[:, None]
        covariance = added.T @ weighted / document_weights.sum()
        squares, self.rotation = np.linalg.eigh(covariance)
        self._squares = torch.from_numpy(squares.clip(min=0.0)).to(device, dtype)
        # 3) what w adds to values
        rotated = vectors.matrix @ self.rotation
        rows = rotated * (self.unit / importance[vectors.tokens])
        self.matrix = torch.from_numpy(rows).to(device, dtype)

    def add_to(self, values: torch.Tensor, weights: torch.Tensor) -> None:
        """Add the vectors' part, by w, (d, n_outputs), to values, (n_tokens, n_outputs)."""
        if self.scale:
            part = self.matrix @ weights
            values.index_add_(0, self.tokens, part, alpha=self.scale)

    def gradient(self, by_values: torch.Tensor) -> torch.Tensor:
        """Return the gradient by w, given that by values."""
        gradient = self.matrix.T @ by_values[self.tokens]
        return gradient.mul_(self.scale)

    def curvature(self, by_intercept: torch.Tensor) -> torch.Tensor:
        """Return the approximate curvature by w, (d, n_outputs), given that by intercepts."""
        curvature = torch.outer(self._squares, by_intercept)
        return curvature.mul_(self.scale**2)

    def weights(self, x: torch.Tensor) -> Array:
        """Return gamma times kappa times w, (d, n_outputs), given the trained numbers x."""
        rotated = x[-1 - self.dimension : -1, 1:].cpu().numpy()
        weights = self.rotation @ rotated
        return np.asarray(weights * (self.scale * self.unit), dtype=np.float64)


def with_vectors(
    model: FittedAttention,
    seen: Numbers,
    vectors: TokenVectors,
    factors: Array,
    weights: Array,
    unseen_score: float,
) -> FittedAttention:
    """Return the model of all tokens, given that of those in training, the columns `seen`.

    `factors`, (n_seen,), are those of vectors in values; `weights`, (d, n_outputs), are w times
    gamma and kappa; `unseen_score` is that of tokens that are not in training.
    """
    # 1) values: those of training, and those that vectors give to other tokens
    all_factors = np.full(vectors.n_tokens, np.exp(-unseen_score))
    all_factors[seen] = factors
    vector_factors = all_factors[vectors.tokens]
    vector_parts = vector_factors[:, None] * (vectors.matrix @ weights)
    values = np.zeros((vectors.n_tokens, weights.shape[1]))
    values[vectors.tokens] = vector_parts
    values[seen] = model.values
    # 2) scores
    scores = np.full(vectors.n_tokens, unseen_score)
    scores[seen] = model.scores
    # 3) embeddings: scores, what values have beyond the vectors' part, and vectors
    own = values.copy()
    own[vectors.tokens] -= vector_parts
    embeddings = VectorEmbeddings(
        scores=scores,
        own=own,
        tokens=vectors.tokens,
        vectors=vectors.matrix,
        factors=vector_factors,
        weights=weights,
    )
    return replace(model, scores=scores, values=values, embeddings=embeddings)
