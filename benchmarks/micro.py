"""Small comparisons that a fit's total hides: one gradient, one prediction, fixed costs."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .competitors import COMPETITORS
from .problems import Problem
from .timing import warm_up_rows


def interleaved(*functions: Callable[[], Any], runs: int) -> list[float]:
    """Return each function's median seconds over `runs` rounds, after a warm-up round."""
    times: list[list[float]] = [[] for _ in functions]
    for run in range(runs + 1):
        for function, measured in zip(functions, times, strict=True):
            started = time.perf_counter()
            function()
            if run:
                measured.append(time.perf_counter() - started)
    return [statistics.median(measured) for measured in times]


def gradient_against_products(problem: Problem, *, runs: int) -> dict[str, float]:
    """One loss-and-gradient against the two sparse products that it must make."""
    import torch

    from sklearn_clsattn._core.attention_problem import AttentionProblem
    from sklearn_clsattn._core.documents import Documents
    from sklearn_clsattn._core.statistics import CorpusStatistics, token_scaling

    X, weights = problem.X_train, np.ones(len(problem.y_train))
    classes, codes = np.unique(problem.y_train, return_inverse=True)
    statistics = CorpusStatistics.of(X, codes, len(classes), weights)
    documents = Documents(X, codes, weights, statistics)
    units = token_scaling(statistics, scaling="log_odds", attend_cls=True, dtype=np.float32)
    bag = documents.bag(np.float32, "cpu")
    objective = AttentionProblem(
        documents.loss(bag, cls_weight=units.cls_weight),
        statistics.class_weights,
        units,
        C=1.0,
        attention_C=1.0,
    )
    generator = torch.Generator().manual_seed(0)
    parameters = objective.start.normal_(0, 0.1, generator=generator)
    width = 1 + documents.n_outputs
    per_token = torch.rand((bag.shape[1], width), generator=generator)
    per_document = torch.rand((len(codes), width), generator=generator)

    def products() -> None:
        bag.sum_over_tokens(per_token)
        bag.sum_over_documents(per_document)

    gradient, both = interleaved(lambda: objective(parameters), products, runs=runs)
    return {"gradient_seconds": gradient, "products_seconds": both, "ratio": gradient / both}


def prediction(problem: Problem, *, runs: int) -> dict[str, float]:
    """Prediction of the test documents against LinearSVC's on TF-IDF, each on its own matrix.

    Of labels, and of probabilities against LinearSVC's decision values. Models are fitted on a few
    rows: how long a prediction takes does not depend on what was learned.
    """
    (ours, X), (svc, X_svc) = (_fitted_on_few(problem, name) for name in ("ours", "linear_svc"))
    result: dict[str, float] = {}
    for suffix, functions in (
        ("", (lambda: ours.predict(X), lambda: svc.predict(X_svc))),
        ("_proba", (lambda: ours.predict_proba(X), lambda: svc.decision_function(X_svc))),
    ):
        seconds = interleaved(*functions, runs=runs)
        result |= {
            f"ours_seconds{suffix}": seconds[0],
            f"linear_svc_seconds{suffix}": seconds[1],
            f"ratio{suffix}": seconds[0] / seconds[1],
        }
    return result


def short_fit(problem: Problem, *, runs: int) -> dict[str, float]:
    """Fit on 1,000 short documents against LogisticRegression with its default C."""
    ours, logistic = COMPETITORS["ours"], COMPETITORS["logistic_counts"]
    X, y = problem.X_train, problem.y_train
    seconds = interleaved(
        lambda: ours.make(None, problem.n_classes).fit(X, y),
        lambda: logistic.make(1.0, problem.n_classes).fit(X, y),
        runs=runs,
    )
    return {
        "ours_seconds": seconds[0],
        "logistic_seconds": seconds[1],
        "ratio": seconds[0] / seconds[1],
        "runs": runs,
    }


def _fitted_on_few(problem: Problem, name: str) -> tuple[Any, Any]:
    """Return a competitor fitted on some rows, and the test matrix as it takes it."""
    competitor, rows = COMPETITORS[name], warm_up_rows(problem.y_train)
    X, X_test = competitor.matrices(problem.X_train, problem.X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = competitor.make(competitor.untuned, problem.n_classes)
        return model.fit(X[rows], problem.y_train[rows]), X_test
