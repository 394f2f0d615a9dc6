"""All explainers on the same documents and the same model: how faithful, how fast."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklearn_clsattn.metrics import ERASER_FRACTIONS, comprehensiveness, sufficiency

from .explainers import Explainer, Explanation
from .models import Model

Array = NDArray[np.float64]

K = 10
MEASURES = (
    f"comprehensiveness, k = {K}",
    f"sufficiency, k = {K}",
    "comprehensiveness, AOPC",
    "sufficiency, AOPC",
)
"""The first and third are better higher, the others lower."""

_Z95 = 1.96
# Below these seconds an explanation is timed so many times: the first finds other data in caches.
_SHORT, _REPEATS = 0.05, 7


@dataclass(frozen=True)
class Measured:
    """What was measured of one explainer: arrays of shape (n_documents,).

    Attributes
    ----------
    values : dict of str to ndarray
        For each of `MEASURES`.

    seconds : ndarray
        The processor's, from the text to the scores, each document by itself: a busy machine's
        waiting would mostly fall on what takes long.
    """

    explainer: Explainer
    values: dict[str, Array]
    seconds: Array

    def gains_over(self, other: Measured, measure: str) -> Array:
        """Return how much better this is by a measure, document by document."""
        gains = self.values[measure] - other.values[measure]
        return gains if measure.startswith("comprehensiveness") else -gains


def race(
    model: Model, explainers: list[Explainer], n_documents: int, report: Callable[[str], None]
) -> list[Measured]:
    """Explain the first documents by all explainers in turn, and ask the model about each."""
    texts = model.corpus.texts[:n_documents]
    for explainer in explainers:
        explainer.explain(min(texts, key=len))  # imports, compiles and allocates
    found: list[list[Explanation]] = [[] for _ in explainers]
    seconds = np.zeros((len(explainers), len(texts)))
    for at, text in enumerate(texts):
        for number, explainer in enumerate(explainers):
            one, seconds[number, at] = _timed(explainer, text)
            found[number].append(one)
        report(f"document {at + 1} of {len(texts)}")
    return [
        Measured(explainer, _values(model, of_one), seconds[number])
        for number, (explainer, of_one) in enumerate(zip(explainers, found, strict=True))
    ]


def _timed(explainer: Explainer, text: str) -> tuple[Explanation, float]:
    """Return an explanation and the processor's time: of a short one, the median of several."""
    times: list[float] = []
    while not times or (len(times) < _REPEATS and times[0] < _SHORT):
        started = time.process_time()
        found = explainer.explain(text)
        times.append(time.process_time() - started)
    return found, float(np.median(times))


def _values(model: Model, found: list[Explanation]) -> dict[str, Array]:
    """Return the measures of explanations of the first documents."""
    classifier, X = model.classifier, model.corpus.problem.X_test[: len(found)]
    removed = as_matrix(found, [one.scores for one in found], X.shape)
    kept = as_matrix(
        found, [one.scores if one.kept is None else one.kept for one in found], X.shape
    )
    numbers = (
        comprehensiveness(classifier, X, removed, k=K),
        sufficiency(classifier, X, kept, k=K),
        comprehensiveness(classifier, X, removed, fractions=ERASER_FRACTIONS),
        sufficiency(classifier, X, kept, fractions=ERASER_FRACTIONS),
    )
    return dict(zip(MEASURES, numbers, strict=True))


def as_matrix(
    found: list[Explanation], scores: list[NDArray[np.float64]], shape: tuple[int, int]
) -> sp.csr_array:
    """Return scores as a matrix with a row per document."""
    rows = np.repeat(np.arange(len(found)), [len(one.columns) for one in found])
    columns = np.concatenate([one.columns for one in found])
    return sp.coo_array((np.concatenate(scores), (rows, columns)), shape=shape).tocsr()


def interval(values: Array) -> tuple[float, float]:
    """Return a mean and half the width of its 95 % interval, over documents."""
    half = _Z95 * values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return float(values.mean()), float(half)
