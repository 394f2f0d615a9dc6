"""What the parts of a corpus need of each other: messages, sums and a gathering."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Reducer(Protocol):
    """One of several parts of a corpus, each in a process of its own.

    The part of rank 0 solves; the others do what it sends them. All call each method equally often
    and in the same order.
    """

    @property
    def rank(self) -> int:
        """Which part this is, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many parts there are."""
        ...

    def send(self, message: Any) -> Any:
        """Return the message of rank 0, whatever the others pass."""
        ...

    def sum(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the parts' arrays, (n,), in rank 0; elsewhere anything."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Return the parts' values in the order of their ranks, in rank 0; elsewhere anything."""
        ...


class Alone:
    """The only part of a corpus."""

    rank, size = 0, 1

    def send(self, message: Any) -> Any:
        """Return the message."""
        return message

    def sum(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the array."""
        return flat

    def gather(self, value: Any) -> list[Any]:
        """Return the value in a list."""
        return [value]
