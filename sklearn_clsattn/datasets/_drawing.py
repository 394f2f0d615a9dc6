"""Random tokens of synthetic documents."""

import numpy as np
from numpy.typing import NDArray


def draw_tokens(
    rng: np.random.RandomState,
    y: NDArray[np.int64],
    lengths: NDArray[np.int64],
    n_drawn: NDArray[np.int64],
    relevant: NDArray[np.float64],
    irrelevant: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Draw the tokens (n_tokens,) of all documents in order, with `n_drawn` relevant ones first."""
    n_classes, n_relevant = relevant.shape
    total = int(lengths.sum())
    place = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_relevant = place < np.repeat(n_drawn, lengths)

    document_class = np.repeat(y, n_drawn)
    drawn = np.empty(document_class.size, dtype=np.int32)
    for k in range(n_classes):
        mine = document_class == k
        drawn[mine] = _draw(rng, relevant[k], int(mine.sum()))
    tokens = np.empty(total, dtype=np.int32)
    tokens[is_relevant] = drawn
    if irrelevant.size:
        tokens[~is_relevant] = n_relevant + _draw(rng, irrelevant, total - drawn.size)
    return tokens


def draw_groups(
    rng: np.random.RandomState,
    y: NDArray[np.int64],
    group_lengths: NDArray[np.int64],
    n_classes: int,
    n_relevant: int,
    irrelevant: NDArray[np.float64],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Draw groups of documents, one of each class, that have the same irrelevant tokens."""
    n_groups = group_lengths.size
    group = np.empty(y.size, dtype=np.int64)
    tokens_of_class = n_relevant // n_classes
    first = np.empty(y.size, dtype=np.int32)
    for k in range(n_classes):
        mine = y == k
        group[mine] = np.arange(n_groups)
        drawn = rng.permutation(tokens_of_class)[:n_groups]  # each at most once
        further = rng.randint(tokens_of_class, size=n_groups - drawn.size)
        first[mine] = k * tokens_of_class + rng.permutation(np.concatenate([drawn, further]))

    n_shared = group_lengths - 1
    shared = n_relevant + _draw(rng, irrelevant, int(n_shared.sum()))
    lengths = group_lengths[group]
    start = np.cumsum(lengths) - lengths
    place = np.arange(int(lengths.sum())) - np.repeat(start, lengths)
    # The relevant token is at place 0, so that a group's tokens begin one place earlier.
    source = np.repeat((np.cumsum(n_shared) - n_shared)[group] - 1, lengths) + place
    tokens = np.empty(place.size, dtype=np.int32)
    tokens[place > 0] = shared[source[place > 0]]
    tokens[start] = first
    return tokens, lengths


def _draw(rng: np.random.RandomState, p: NDArray[np.float64], size: int) -> NDArray[np.intp]:
    """Draw `size` indices with probabilities `p`; never one whose probability is 0."""
    cdf = np.cumsum(p)
    return np.searchsorted(cdf / cdf[-1], rng.random_sample(size), side="right")
