"""What the benchmark needs to know of a competitor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.feature_extraction.text import TfidfTransformer


@dataclass(frozen=True)
class Competitor:
    """A classifier, the matrix it wants and the one parameter it is tuned by.

    `make` takes the tuned value (None for one that runs with its defaults) and the number of
    classes. `grid` is ascending; `untuned` is what fast runs take. `tfidf` asks for the
    problem's matrix with TF-IDF weights, which is made outside the timing.
    """

    name: str
    title: str
    make: Callable[[float | None, int], Any]
    parameter: str | None = None
    grid: tuple[float, ...] = ()
    untuned: float | None = None
    tfidf: bool = False

    def matrices(self, X_train: Any, X_other: Any) -> tuple[Any, Any]:
        """Return both matrices as this competitor wants them, weights learned on the first."""
        if not self.tfidf:
            return X_train, X_other
        weighting = TfidfTransformer().fit(X_train)
        return weighting.transform(X_train), weighting.transform(X_other)
