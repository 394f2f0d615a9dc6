"""Tuning, times and quality of competitors on one problem.

Runs are interleaved, A B C A B C, so that a drift of the machine affects all alike. Competitors
that take long run fewer times.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.comparison import expected_calibration_error
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain

from .competitors import COMPETITORS, Competitor, from_texts
from .problems import CACHE, Problem, read

_WARM_UP_ROWS = 500


def quality(model: Any, X: Any, y: NDArray[Any]) -> dict[str, float | None]:
    """Return accuracy, and log loss and calibration error if the model has probabilities."""
    if not hasattr(model, "predict_proba"):
        return {"accuracy": float(np.mean(model.predict(X) == y)), "log_loss": None, "ece": None}
    probabilities = model.predict_proba(X)
    error = expected_calibration_error(
        y, probabilities, labels=model.classes_, n_bins=15, strategy="uniform"
    )
    return {
        "accuracy": float(np.mean(model.classes_[probabilities.argmax(axis=1)] == y)),
        "log_loss": float(log_loss(y, probabilities, labels=model.classes_)),
        "ece": float(error),
    }


def timed(
    function: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[Any, float]:
    """Return what a function returns, and the seconds it took."""
    started = clock()
    result = function()
    return result, clock() - started


def compare(
    problem: Problem,
    chosen: Iterable[tuple[Competitor, float | None]],
    *,
    max_runs: int = 5,
    max_seconds: float = 20.0,
) -> dict[str, dict[str, Any]]:
    """Return times and quality of each competitor, with its tuned value, on a problem."""
    rows, y = warm_up_rows(problem.y_train), problem.y_train
    kinds = {competitor.name: (competitor, value) for competitor, value in chosen}
    matrices = {
        kind.tfidf: kind.matrices(problem.X_train, problem.X_test) for kind, _ in kinds.values()
    }
    X = {name: matrices[kind.tfidf] for name, (kind, _) in kinds.items()}
    fits: dict[str, list[float]] = {name: [] for name in kinds}

    def made(name: str) -> Any:
        kind, value = kinds[name]
        return kind.make(value, problem.n_classes)

    models = {name: made(name) for name in kinds}
    for name, model in models.items():
        with warnings.catch_warnings():  # a warm-up need not converge
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[name][0][rows], y[rows])
        model.predict(X[name][1][:_WARM_UP_ROWS])
    for run in range(max_runs):
        for name, seconds in fits.items():
            if run and run * seconds[0] > max_seconds - seconds[0]:
                continue
            model = made(name)
            gc.collect()
            models[name], taken = timed(lambda model=model, X=X[name][0]: model.fit(X, y))
            seconds.append(taken)
            print(f"{problem.name}: {name} {taken:.2f} s", file=sys.stderr, flush=True)
    calls = [lambda name=name: models[name].predict(X[name][1]) for name in fits]
    predictions = interleaved(*calls, runs=max_runs)
    some = range(min(100, len(problem.y_test)))
    ones = [
        lambda name=name: [models[name].predict(X[name][1][row : row + 1]) for row in some]
        for name in fits
    ]
    requests = interleaved(*ones, runs=2)
    return {
        name: {
            "value": kinds[name][1],
            "fit_seconds": statistics.median(seconds),
            "fit_runs": len(seconds),
            "predict_seconds": predicted,
            "request_seconds": request / len(some),
            **quality(models[name], X[name][1], problem.y_test),
        }
        for (name, seconds), predicted, request in zip(
            fits.items(), predictions, requests, strict=True
        )
    }


def tuned_value(path: Path, name: str) -> float | None:
    """Return a competitor's value of the best accuracy on a fifth of the training documents."""
    return joblib.Memory(CACHE, verbose=0).cache(_tuned_value)(path, name)


def _tuned_value(path: Path, name: str) -> float | None:
    problem, competitor = read(path), COMPETITORS[name]
    if not competitor.grid:
        return None
    rows = np.arange(len(problem.y_train))
    parts = train_test_split(rows, test_size=0.2, stratify=problem.y_train, random_state=0)
    train, held_out = map(np.sort, parts)
    X, X_held_out = competitor.matrices(problem.X_train[train], problem.X_train[held_out])
    scores = {}
    for value in competitor.grid:
        model = competitor.make(value, problem.n_classes).fit(X, problem.y_train[train])
        scores[value] = float(model.score(X_held_out, problem.y_train[held_out]))
    return max(scores, key=lambda value: scores[value])


def warm_up_rows(y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the first rows and one of each class: enough to import and to start threads."""
    firsts = np.unique(y, return_index=True)[1]
    return np.unique(np.concatenate([np.arange(min(_WARM_UP_ROWS, len(y))), firsts]))


def interleaved(
    *functions: Callable[[], Any], runs: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return each function's median seconds over some rounds."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for function, measured in zip(functions, times, strict=True):
            measured.append(timed(function, clock)[1])
    return [statistics.median(measured) for measured in times]


def few_labels(problem: Problem, n_labels: int = 100) -> dict[str, float]:
    """Return accuracies with few labels, and the seconds that vectors of all words take."""
    from sklearn_clsattn.text import WordVectors  # older checkouts have none (bench_against.py)

    X, y = problem.X_train, problem.y_train
    few, others = np.split(np.random.default_rng(0).permutation(len(y)), [n_labels])
    _, seconds = timed(lambda: WordVectors().fit(X))
    alone = TextClassifier().fit(X[few], y[few])
    model = TextClassifier().fit(X[few], y[few], unlabeled=X[others])
    scores = [float(one.score(problem.X_test, problem.y_test)) for one in (alone, model)]
    return {"n_labels": n_labels, "alone": scores[0], "unlabeled": scores[1], "seconds": seconds}


def short_fit(problem: Problem, *, runs: int) -> tuple[float, float]:
    """Return seconds of a fit on few short documents, ours and LogisticRegression's."""
    X, y = problem.X_train, problem.y_train
    models = COMPETITORS["ours"].make(None, 2), COMPETITORS["logistic_counts"].make(1.0, 2)
    ours, logistic = interleaved(
        *[lambda model=model: model.fit(X, y) for model in models], runs=runs
    )
    return ours, logistic


def small_texts(*, runs: int) -> dict[str, float]:
    """Return processor seconds of fits on 3,000 short texts, and seconds to explain a long one."""
    texts, y = load_requests(target="topic", return_X_y=True)
    models = [from_texts({})[name].make(None, 2) for name in ("front_end", "logistic_tfidf")]
    fits = [lambda model=model: model.fit(texts, y) for model in models]
    ours, linear = interleaved(*fits, runs=runs, clock=time.process_time)
    words = " ".join(texts).split()
    long = " ".join((words * (50_000 // len(words) + 1))[:50_000])
    _, seconds = timed(lambda: explain(models[0], [long]).to_text())
    return {"ours": ours, "linear": linear, "explained": seconds}
