"""Documents as padded groups of distinct tokens, for the networks that need tokens side by side.

A batch is any set of documents; within it those with similar numbers of distinct tokens form a
group, which is padded to one length. Counts are log weights: repeated tokens are never expanded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

# A group's matrices of attention between tokens have at most so many entries together.
GROUP_ENTRIES = 4_000_000

BATCH_ENTRIES = 20_000  # batches by length have about so many tokens (at least one document)


@dataclass(frozen=True)
class DocumentBatch:
    """A batch of documents as a network reads it."""

    n_documents: int
    tokens: torch.Tensor  # (n_distinct,), the columns of X that occur in the batch, ascending
    documents: torch.Tensor  # (n_filled,), numbers of those that have tokens, group after group
    shapes: list[tuple[int, int]]  # the groups' (n_group, longest), the longest first
    positions: torch.Tensor  # (n_padded,), indices in `tokens`, group after group; 0 in the padding
    log_weights: torch.Tensor  # (n_padded,), logarithms of the token weights; -inf in the padding

    def split(self, of_positions: torch.Tensor) -> list[torch.Tensor]:
        """Return (n_padded, ...) as one tensor (n_group, longest, ...) for each group."""
        parts = of_positions.split([rows * longest for rows, longest in self.shapes])
        return [
            part.view(*shape, *of_positions.shape[1:])
            for part, shape in zip(parts, self.shapes, strict=True)
        ]


def positive_entries(X: Any) -> Any:
    """Return the CSR matrix `X` without its stored zeros: itself where it has none."""
    if np.count_nonzero(X.data) == X.data.size:
        return X
    X = X.copy()
    X.eliminate_zeros()
    return X


def batch_documents(
    X: Any,
    documents: NDArray[np.intp],
    *,
    fullness: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DocumentBatch:
    """Return rows of a CSR matrix as one batch."""
    lengths = X.indptr[documents + 1] - X.indptr[documents]
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    lengths, starts = lengths[order], X.indptr[documents[order]]
    shapes, padded_lengths = [], np.empty_like(lengths)
    for first, last in _group_bounds(lengths, fullness):
        shapes.append((last - first, int(lengths[first])))
        padded_lengths[first:last] = lengths[first]
    within = _ranges(padded_lengths)
    real = within < np.repeat(lengths, padded_lengths)
    entries = (within + np.repeat(starts, padded_lengths))[real]
    tokens, places = np.unique(X.indices[entries], return_inverse=True)
    positions = np.zeros(len(real), dtype=np.int64)
    positions[real] = places
    log_weights = np.full(len(real), -np.inf)
    log_weights[real] = np.log(X.data[entries], dtype=np.float64)
    return DocumentBatch(
        len(documents),
        torch.from_numpy(tokens.astype(np.int64)).to(device),
        torch.from_numpy(order.astype(np.int64)).to(device),
        shapes,
        torch.from_numpy(positions).to(device),
        torch.from_numpy(log_weights).to(device, dtype),
    )


def batches_by_length(
    X: Any,
    documents: NDArray[np.intp],
    *,
    fullness: float,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Iterator[tuple[NDArray[np.intp], DocumentBatch]]:
    """Yield documents in batches of bounded size, those of similar length, after their rows."""
    lengths = X.indptr[documents + 1] - X.indptr[documents]
    order = np.argsort(lengths, kind="stable")
    # Documents without tokens count as well: a batch of them is bounded too.
    ends = np.cumsum(np.maximum(lengths[order], 1), dtype=np.int64)
    first = 0
    while first < len(order):
        used = ends[first - 1] if first else 0
        last = int(np.searchsorted(ends, used + BATCH_ENTRIES, side="right"))
        last = max(last, first + 1)
        members = documents[order[first:last]]
        yield members, batch_documents(X, members, fullness=fullness, dtype=dtype, device=device)
        first = last


def _ranges(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return 0..length-1 for every length, one after the other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _group_bounds(lengths: NDArray[Any], fullness: float) -> Iterator[tuple[int, int]]:
    """Cut descending positive lengths where padding would be too much."""
    first = 0
    while first < len(lengths):
        longest = int(lengths[first])
        # How many have at least `fullness` of the longest one's tokens.
        last = int(np.searchsorted(-lengths, -fullness * longest, side="right"))
        last = min(last, first + max(1, GROUP_ENTRIES // longest**2))
        yield first, last
        first = last
