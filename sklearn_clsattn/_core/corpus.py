"""Documents in chunks, wherever they are, and the sum of their losses.

A corpus has :meth:`~Corpus.map`, which makes another corpus by a function of a chunk,
:meth:`~Corpus.sum`, which adds up what a function returns for the chunks, and
:meth:`~Corpus.gather`. Functions are pure (:mod:`.chunk`): a chunk and arguments in, a chunk or
arrays out. This file has the corpus of this process, in memory (one chunk) or in files (many, read
once a call); :mod:`sklearn_clsattn.dask` has that of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .chunk import Chunk, curvature, loss_and_gradient, with_loss

Array = NDArray[np.float64]


class Corpus:
    """The chunks of this process, one after another."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = list(chunks)

    def map(self, function: Callable[..., Chunk], *arguments: Any) -> Corpus:
        """Return the corpus of what a function of a chunk returns."""
        return Corpus(self.gather(function, *arguments))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what a function of a chunk returns (:func:`added`)."""
        total = None
        for chunk in self.chunks:
            result = function(chunk, *arguments)
            chunk.release()
            total = result if total is None else added(total, result)
        return total

    def gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Return what a function of a chunk returns, in the order of the chunks."""
        results = []
        for chunk in self.chunks:
            results.append(function(chunk, *arguments))
            chunk.release()
        return results


def added(one: Any, other: Any) -> Any:
    """Return the sum of two results: numbers, arrays, or tuples of these, in double precision."""
    if isinstance(one, tuple):
        return tuple(added(mine, others) for mine, others in zip(one, other, strict=True))
    if isinstance(one, torch.Tensor):
        return one.to(torch.float64) + other
    return one + other


class CorpusLoss:
    """The sum of all documents' losses as a function of the token matrix (see :mod:`.loss`).

    `corpus` has chunks with bags; the matrix is (n_tokens + 1, 1 + n_outputs) of `dtype` on
    `device`; `total_weight` is the weight of all documents.
    """

    def __init__(
        self,
        corpus: Corpus,
        n_tokens: int,
        n_outputs: int,
        dtype: type[np.floating[Any]],
        device: torch.device | str,
        total_weight: float,
        cls_weight: float,
    ) -> None:
        self.corpus = corpus.map(with_loss, n_outputs, cls_weight)
        self.n_outputs = n_outputs
        self._shape = n_tokens + 1, 1 + self.n_outputs
        self.dtype = torch.float32 if dtype == np.float32 else torch.float64
        self.device = torch.device(device)
        self.total_weight, self.cls_weight = total_weight, cls_weight

    def zeros(self) -> torch.Tensor:
        """Return a token matrix of zeros."""
        return torch.zeros(self._shape, dtype=self.dtype, device=self.device)

    def __call__(self, matrix: torch.Tensor) -> tuple[float, torch.Tensor]:
        """Return the sum of the losses and its gradient, a new tensor."""
        value, gradient = self.corpus.sum(loss_and_gradient, matrix)
        return value, gradient.to(matrix.dtype)

    def curvature(self, matrix: torch.Tensor) -> torch.Tensor:
        """Return the curvature by values and intercepts, (n_tokens + 1, n_outputs)."""
        return self.corpus.sum(curvature, matrix).to(matrix.dtype)
