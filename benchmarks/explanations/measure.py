"""Each explainer on the same documents: how faithful, how exact, how fast."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from sklearn_clsattn.metrics import ERASER_FRACTIONS, comprehensiveness, sufficiency

from .explainers import Explainer, Explanation

K = 10


@dataclass(frozen=True)
class Measured:
    """What was measured of one explainer on one corpus.

    Attributes
    ----------
    comprehensiveness, sufficiency : ndarray of shape (n_documents,)
        At K tokens.

    comprehensiveness_aopc, sufficiency_aopc : ndarray of shape (n_documents,)
        ERASER's areas.

    seconds : float
        Median per document, from the text to the scores, one document at a time.

    error : float or None
        Largest distance, over the documents, of base value plus scores from the model's output.

    confidence, accuracy : float
        The model's mean probability of the predicted class, and how often it is the true one.

    together : dict of str to float
        Median seconds a document of explaining all in one call, for each way of doing so.
    """

    explainer: Explainer
    comprehensiveness: NDArray[np.float64]
    sufficiency: NDArray[np.float64]
    comprehensiveness_aopc: NDArray[np.float64]
    sufficiency_aopc: NDArray[np.float64]
    seconds: float
    error: float | None
    confidence: float
    accuracy: float
    together: dict[str, float] = field(default_factory=dict)

    @property
    def n_documents(self) -> int:
        """How many documents were explained."""
        return len(self.comprehensiveness)


def measure(explainer: Explainer, n_documents: int) -> Measured:
    """Explain the first `n_documents` documents, one by one, and ask the model about them."""
    model = explainer.model
    texts = model.corpus.texts[:n_documents]
    explainer.explain(min(texts, key=len))  # imports, compiles and allocates
    found, times = [], []
    for text in texts:
        started = time.perf_counter()
        found.append(explainer.explain(text))
        times.append(time.perf_counter() - started)
    problem, estimator = model.corpus.problem, model.estimator
    X, y = problem.X_test[: len(texts)], problem.y_test[: len(texts)]
    scores = as_matrix(found, X.shape)
    eraser: dict[str, Any] = {"fractions": ERASER_FRACTIONS}
    return Measured(
        explainer,
        comprehensiveness(estimator, X, scores, k=K),
        sufficiency(estimator, X, scores, k=K),
        comprehensiveness(estimator, X, scores, **eraser),
        sufficiency(estimator, X, scores, **eraser),
        statistics.median(times),
        exactness_error(explainer, found, X),
        float(estimator.predict_proba(X).max(axis=1).mean()),
        float(np.mean(estimator.predict(X) == y)),
        {way: at_once(explain, texts) for way, explain in explainer.together.items()},
    )


def at_once(explain: Callable[[list[str]], Any], texts: list[str], runs: int = 5) -> float:
    """Return the median seconds a document of explaining all texts in one call."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        explain(texts)
        times.append(time.perf_counter() - started)
    return statistics.median(times) / len(texts)


def as_matrix(found: list[Explanation], shape: tuple[int, int]) -> sp.csr_array:
    """Return the scores as a matrix with a row per document."""
    lengths = [len(one.columns) for one in found]
    rows = np.repeat(np.arange(len(found)), lengths)
    columns = np.concatenate([one.columns for one in found])
    values = np.concatenate([one.scores for one in found])
    return sp.coo_array((values, (rows, columns)), shape=shape).tocsr()


def exactness_error(explainer: Explainer, found: list[Explanation], X: Any) -> float | None:
    """Return how far totals are from the model's outputs for the predicted class, at most."""
    if explainer.output is None:
        return None
    if explainer.output == "probability":
        outputs = explainer.model.estimator.predict_proba(X).max(axis=1)
    else:
        outputs = np.abs(explainer.model.estimator.decision_function(X))
    totals = np.array([one.total for one in found], dtype=float)
    return float(np.abs(totals - outputs).max())
