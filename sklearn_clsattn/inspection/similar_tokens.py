"""Tokens whose vectors are near: why a vector adds to a decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Numbers
from ..training.fitted_model import VectorEmbeddings

_NEAR = 0.25  # least cosine between the vectors of two tokens that are called near


@dataclass(frozen=True, eq=False)
class Likeness:
    """The vectors of tokens, and the tokens' own values, without the vectors' part."""

    names: NDArray[np.object_]  # (n_tokens,)
    embeddings: VectorEmbeddings
    # The decisions for the explained classes are `sign` times these outputs.
    outputs: Numbers
    sign: float

    def near(self, name: str, direction: Array, k: int = 3) -> list[str]:
        """Return the `k` nearest tokens whose own values favour the same class.

        `direction`, (n_targets,), is 1 for the class shown and -1 for its rival, times the sign of
        the vector's contribution. Only tokens whose own values have a positive product with it
        count.
        """
        names = self.names[self.embeddings.tokens]
        positions = np.flatnonzero(names == name)
        if not len(positions):
            return []
        token = positions[0]
        vectors = self.embeddings.vectors
        own_values = self.sign * self.embeddings.own[self.embeddings.tokens][:, self.outputs]
        cosines = (vectors @ vectors[token]) * (own_values @ direction > 0)
        cosines[token] = 0.0
        nearest = np.argsort(-cosines)[:k]
        near = nearest[cosines[nearest] > _NEAR]
        return list(map(str, names[near]))
