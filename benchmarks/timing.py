"""Fit and prediction times of all competitors on one problem, and how well they predict.

Runs are interleaved, A B C A B C, so that a drift of the machine hits all alike. Competitors
that take long run fewer times; how often is written down beside the median.
"""

from __future__ import annotations

import gc
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .competitors.base import Competitor
from .measures import quality
from .problems import Problem

WARM_UP_ROWS = 500
_PREDICT_RUNS = 5


@dataclass(frozen=True)
class Effort:
    """How many runs at most, and for how many seconds of fitting each competitor goes on."""

    max_runs: int = 5
    seconds: float = 20.0

    def runs(self, first: float) -> int:
        """Return how often to fit what took `first` seconds the first time."""
        return max(1, min(self.max_runs, int(self.seconds / max(first, 1e-9))))


@dataclass
class _Entry:
    competitor: Competitor
    value: float | None
    X_train: Any
    X_test: Any
    model: Any = None
    fit_times: list[float] = field(default_factory=list)
    predict_times: list[float] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)


def warm_up_rows(y: Any) -> Any:
    """Return the first rows and one of each class: enough to import and to start threads."""
    firsts = np.unique(y, return_index=True)[1]
    return np.unique(np.concatenate([np.arange(min(WARM_UP_ROWS, len(y))), firsts]))


def compare(
    problem: Problem,
    chosen: list[tuple[Competitor, float | None]],
    *,
    effort: Effort,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Any]]:
    """Time and score the competitors, each with its tuned value, on one problem."""
    shared: dict[bool, tuple[Any, Any]] = {}
    entries = []
    for competitor, value in chosen:
        if competitor.tfidf not in shared:
            shared[competitor.tfidf] = competitor.matrices(problem.X_train, problem.X_test)
        entries.append(_Entry(competitor, value, *shared[competitor.tfidf]))
    warm = warm_up_rows(problem.y_train)
    for entry in entries:
        model = entry.competitor.make(entry.value, problem.n_classes)
        with warnings.catch_warnings():  # a warm-up need not converge
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(entry.X_train[warm], problem.y_train[warm])
        predict(model, entry.X_test[:WARM_UP_ROWS])
    for run in range(effort.max_runs):
        for entry in entries:
            if run == 0 or run < effort.runs(entry.fit_times[0]):
                _fit(entry, problem)
                report(f"{problem.name}: {entry.competitor.name} {entry.fit_times[-1]:.2f} s")
    for _ in range(min(_PREDICT_RUNS, effort.max_runs + 1)):
        for entry in entries:
            started = time.perf_counter()
            predict(entry.model, entry.X_test)
            entry.predict_times.append(time.perf_counter() - started)
    return {entry.competitor.name: _summary(entry, problem) for entry in entries}


def predict(model: Any, X: Any) -> Any:
    """Return probabilities, or decision values where the model has none."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


def _fit(entry: _Entry, problem: Problem) -> None:
    model = entry.competitor.make(entry.value, problem.n_classes)
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        model.fit(entry.X_train, problem.y_train)
        entry.fit_times.append(time.perf_counter() - started)
    entry.model = model
    entry.warned = sorted({str(warning.category.__name__) for warning in caught})


def _summary(entry: _Entry, problem: Problem) -> dict[str, Any]:
    model = entry.model
    probabilities = hasattr(model, "predict_proba")
    outputs = predict(model, entry.X_test)
    n_iter = getattr(model, "n_iter_", None)
    return {
        "parameter": entry.competitor.parameter,
        "value": entry.value,
        "fit_seconds": statistics.median(entry.fit_times),
        "fit_runs": len(entry.fit_times),
        "fit_times": entry.fit_times,
        "predict_seconds": statistics.median(entry.predict_times),
        "predict_method": "predict_proba" if probabilities else "decision_function",
        "n_iter": None if n_iter is None else int(np.max(n_iter)),
        "warnings": entry.warned,
        **quality(model.classes_, problem.y_test, outputs, probabilities=probabilities),
    }
