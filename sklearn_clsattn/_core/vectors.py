r"""Vectors of tokens, by which similar tokens share what is learned of their values.

Tokens :math:`s` with vectors :math:`G_s` of length 1 have the values

.. math:: b_{sk} = \bar b_{sk} + \sigma_{sk} t_{sk} + \gamma \kappa e^{-\pi_s} \, G_s \cdot w_k

with the prior mean, value scales and starting scores of :mod:`.objective`, where t and w have the
same penalty: a priori, values have the covariance :math:`I + \gamma^2 G G^\top`, in units of
:math:`\kappa`, the root mean square of :math:`\sigma_{sk} e^{\pi_s}` over the tokens of training.
A token that no document of
training has is given what its vector says.

The vectors are rotated, which changes no product with them, so that what they add to the outputs of
different documents, before training, is uncorrelated: the curvature by w is then almost diagonal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .._bags import TokenVectors, with_columns_of
from .._types import Array, Numbers
from .fitted import FittedAttention, VectorEmbeddings
from .statistics import IMPORTANCE_FLOOR, Scaling

SCALES = 0.0, 0.5, 1.0, 2.0
"""The gammas of which one is chosen."""


class VectorValues:
    """The product of tokens' vectors with w, in values, for one `scale`, gamma, after another.

    X is a CSR matrix, or bags, of some documents, (n_documents, n_tokens). `unit` is kappa,
    `factors`, (n_tokens,), are exp(-pi); `rotation`, (d, d), makes `matrix`, (n_vectors, d), of the
    vectors times both, those of the tokens `tokens`.
    """

    def __init__(
        self,
        vectors: TokenVectors,
        scaling: Scaling,
        X: Any,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        importance = np.exp(scaling.starting_scores, dtype=np.float64)[:, None]
        self.unit = scaling.value_spread
        self.scale = 0.0
        self.factors = 1.0 / importance[:, 0]
        self.dimension = vectors.matrix.shape[1]
        self.tokens = torch.from_numpy(vectors.tokens).to(device)
        # What w adds to their outputs, at the start.
        masses = X @ importance + scaling.cls_weight
        added = with_columns_of(X, vectors.tokens) @ vectors.matrix
        added *= self.unit / np.where(masses > 0, masses, np.inf)
        squares, self.rotation = np.linalg.eigh(added.T @ added / max(len(added), 1))
        self._squares = torch.from_numpy(squares.clip(min=0.0)).to(device, dtype)
        rows = (vectors.matrix @ self.rotation) * (self.unit / importance[vectors.tokens])
        self.matrix = torch.from_numpy(rows).to(device, dtype)

    def add_to(self, values: torch.Tensor, weights: torch.Tensor) -> None:
        """Add to values (n_tokens, n_outputs) what w, (d, n_outputs), gives them."""
        if self.scale:
            values.index_add_(0, self.tokens, self.matrix @ weights, alpha=self.scale)

    def gradient(self, by_values: torch.Tensor) -> torch.Tensor:
        """Return the gradient by w, given that by values."""
        return (self.matrix.T @ by_values[self.tokens]).mul_(self.scale)

    def curvature(self, by_intercept: torch.Tensor) -> torch.Tensor:
        """Return about the curvature by w, (d, n_outputs), given that by intercepts."""
        return torch.outer(self._squares, by_intercept).mul_(self.scale**2)

    def weights(self, x: torch.Tensor) -> Array:
        """Return gamma times kappa times w, (d, n_outputs), given the trained numbers x."""
        weights = self.rotation @ x[-1 - self.dimension : -1, 1:].cpu().numpy()
        return np.asarray(weights * (self.scale * self.unit), dtype=np.float64)


def with_vectors(
    model: FittedAttention, seen: Numbers, vectors: TokenVectors, factors: Array, weights: Array
) -> FittedAttention:
    """Return the model of all tokens, given that of those in training, the columns `seen`.

    `factors`, (n_seen,), are those of vectors in values; `weights`, (d, n_outputs), are w times
    gamma and kappa.
    """
    every = np.full(vectors.n_tokens, 1.0 / IMPORTANCE_FLOOR)
    every[seen] = factors
    scaled = every[vectors.tokens, None] * (vectors.matrix @ weights)
    values = np.zeros((vectors.n_tokens, weights.shape[1]))
    values[vectors.tokens] = scaled
    values[seen] = model.values
    scores = np.full(vectors.n_tokens, np.log(IMPORTANCE_FLOOR))
    scores[seen] = model.scores
    own = values.copy()
    own[vectors.tokens] -= scaled
    embeddings = VectorEmbeddings(
        scores, own, vectors.tokens, vectors.matrix, every[vectors.tokens], weights
    )
    return replace(model, scores=scores, values=values, embeddings=embeddings)
