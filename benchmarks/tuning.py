"""Tuning of the baselines: one stratified 80/20 split of the training documents, by accuracy.

Test documents are never seen. Where the best value stands at an edge of the grid, the grid is
extended beyond it. Scores are cached value by value, so a rerun, or a wider grid, is quick.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from .competitors.base import Competitor
from .problems import CACHE, Problem

_MAX_EXTENSIONS = 3


def tuned_value(
    problem: Problem,
    competitor: Competitor,
    *,
    retune: bool = False,
    cache: Path = CACHE,
    report: Callable[[str], None] = lambda line: None,
) -> float | None:
    """Return the competitor's best value on this problem; None for one that is not tuned."""
    if not competitor.grid:
        return None
    file = cache / "tuning" / problem.key / f"{competitor.name}.json"
    scores = {} if retune or not file.is_file() else _read(file)
    split: tuple[Any, ...] | None = None
    values = list(competitor.grid)
    for extension in range(_MAX_EXTENSIONS + 1):
        for value in values:
            if _past_the_best([scores[v] for v in values if v < value and v in scores]):
                break  # weaker penalties take minutes a fit, and score lower still
            if value not in scores:
                split = split or _split(problem, competitor)
                scores[value] = _score(competitor, value, problem.n_classes, split)
                report(
                    f"{problem.name}: {competitor.name} {competitor.parameter}={value:g}: "
                    f"{scores[value]:.4f}"
                )
                _write(file, scores)
        best = best_value({value: scores[value] for value in values if value in scores})
        if best == values[0]:
            values.insert(0, _rounded(best / 3))
        elif best == values[-1]:
            values.append(_rounded(best * 3))
        else:
            break
        if extension == _MAX_EXTENSIONS:
            break
    return best


def _past_the_best(scores: list[float]) -> bool:
    """Whether the last two of these scores are below the best of them."""
    return len(scores) > 2 and max(scores[-2:]) < max(scores)


def best_value(scores: dict[float, float]) -> float:
    """Return the value with the highest score, of equals the smallest (most regularised)."""
    return max(sorted(scores), key=lambda value: scores[value])


def _split(problem: Problem, competitor: Competitor) -> tuple[Any, ...]:
    fitted, held_out = train_test_split(
        np.arange(len(problem.y_train)), test_size=0.2, stratify=problem.y_train, random_state=0
    )
    X = problem.X_train
    return (
        *competitor.matrices(X[np.sort(fitted)], X[np.sort(held_out)]),
        problem.y_train[np.sort(fitted)],
        problem.y_train[np.sort(held_out)],
    )


def _score(competitor: Competitor, value: float, n_classes: int, split: tuple[Any, ...]) -> float:
    X, X_held_out, y, y_held_out = split
    model = competitor.make(value, n_classes).fit(X, y)
    return float(np.mean(model.predict(X_held_out) == y_held_out))


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


def _read(file: Path) -> dict[float, float]:
    return {float(value): score for value, score in json.loads(file.read_text()).items()}


def _write(file: Path, scores: dict[float, float]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps({str(value): scores[value] for value in sorted(scores)}))
    temporary.replace(file)
