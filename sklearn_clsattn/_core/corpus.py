"""Documents in chunks, in memory or on a cluster.

A corpus has :meth:`~Corpus.map`, which makes another corpus by a function of a chunk,
:meth:`~Corpus.sum`, which adds up what a function returns for the chunks, and
:meth:`~Corpus.gather`. Functions are pure (:mod:`.chunk`, :mod:`.shard`): a chunk and arguments in,
a chunk, a shard or arrays out. This file has the corpus of this process, which is one chunk;
:mod:`sklearn_clsattn.dask` has that of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class Corpus:
    """The chunks, or shards, of this process, one after another."""

    def __init__(self, chunks: Sequence[Any]) -> None:
        self.chunks = list(chunks)

    def map(self, function: Callable[..., Any], *arguments: Any) -> Corpus:
        """Apply a function to each chunk; return the results as a corpus."""
        return Corpus(self.gather(function, *arguments))

    def sum(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Apply a function to each chunk; return the sum of the results (:func:`added`)."""
        total = None
        for chunk in self.chunks:
            result = function(chunk, *arguments)
            total = result if total is None else added(total, result)
        return total

    def gather(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Apply a function to each chunk; return the results in the order of the chunks."""
        return [function(chunk, *arguments) for chunk in self.chunks]


def added(one: Any, other: Any) -> Any:
    """Return the sum of two results: numbers, arrays, or tuples of these, in double precision."""
    if isinstance(one, tuple):
        sums = [added(mine, others) for mine, others in zip(one, other, strict=True)]
        return tuple(sums)
    if isinstance(one, torch.Tensor):
        return one.to(torch.float64) + other
    return one + other
