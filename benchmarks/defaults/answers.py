"""What was measured: kept line by line, so that a run can go on later, and averaged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import choose_c, folds, prior_mean
from sklearn_clsattn.text import _context

from .question import Question, Row
from .sets import Key

Answers = dict[Key, dict[str, Row]]


def settings() -> dict[str, Any]:
    """Return the defaults that answers rest on."""
    return {
        **ClsAttentionClassifier().get_params(),
        "ENOUGH_DOCUMENTS": choose_c.ENOUGH_DOCUMENTS,
        "SAMPLE_SIZE": folds.SAMPLE_SIZE,
        "GUESS_WORTH": choose_c.GUESS_WORTH,
        "SEARCH_TOL": choose_c.SEARCH_TOL,
        "GUESS_DOCUMENTS": choose_c.GUESS_DOCUMENTS,
        "MEAN_SHARE": prior_mean.MEAN_SHARE,
        "PRIOR_DOCUMENTS": prior_mean.PRIOR_DOCUMENTS,
        "PENALTY_DOCUMENTS": _context.PENALTY_DOCUMENTS,
    }


class Lines:
    """A file with a line of JSON for every question and split that has been measured."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self) -> dict[str, Answers]:
        """Return the rows of every question, by split."""
        found: dict[str, Answers] = {}
        for entry in self._entries():
            name, seed, size = entry["split"]
            found.setdefault(entry["question"], {})[name, seed, size] = entry["rows"]
        return found

    def _entries(self) -> list[dict[str, Any]]:
        if not self._path.is_file():
            return []
        return [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]

    def changed(self) -> dict[str, list[str]]:
        """Return which settings have changed since a question was asked, in words."""
        found: dict[str, set[str]] = {}
        now = settings()
        for entry in self._entries():
            then = entry["settings"]
            words = [
                f"{name} was {then.get(name, 'not there')}"
                for name in now
                if then.get(name) != now[name]
            ]
            if entry["rows"]:
                found.setdefault(entry["question"], set()).update(words)
        return {question: sorted(words) for question, words in found.items() if words}

    def add(self, question: str, key: Key, rows: dict[str, Row]) -> None:
        """Append a line; no rows say that the split does not exist."""
        line = json.dumps(
            {"question": question, "split": key, "settings": settings(), "rows": rows}
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def by_set(answers: Answers, size: int | str | None = "any") -> dict[str, dict[str, Row]]:
    """Return the mean rows of every set, over splits, then over sizes; or those of one size."""
    means: dict[str, dict[str, Row]] = {}
    for name in sorted({key[0] for key in answers}):
        sizes = {key[2] for key in answers if key[0] == name and size in ("any", key[2])}
        of_sizes = [
            mean_rows(rows for key, rows in answers.items() if key[::2] == (name, one))
            for one in sorted(sizes, key=str)
        ]
        mean = mean_rows(of_sizes)
        if mean:
            means[name] = mean
    return means


def mean_rows(measured: Iterable[dict[str, Row]]) -> dict[str, Row]:
    """Return the mean row of every variant; None where it has none."""
    rows = [row for row in measured if row]
    if not rows:
        return {}
    return {
        variant: {what: _mean(row[variant].get(what) for row in rows) for what in first}
        for variant, first in rows[0].items()
    }


def relative(answers: Answers, question: Question) -> Answers:
    """Return the answers with seconds over those of the question's unit, split by split."""
    return {
        key: {
            variant: {**row, "seconds": _ratio(row["seconds"], rows[question.unit]["seconds"])}
            for variant, row in rows.items()
        }
        for key, rows in answers.items()
    }


def differences(means: dict[str, dict[str, Row]], question: Question, what: str) -> dict[str, Any]:
    """Return the differences to the reference of every variant, set by set, where there are any."""
    found: dict[str, dict[str, float]] = {variant: {} for variant in question.variants}
    for name, rows in means.items():
        reference = rows[question.reference][what]
        for variant in question.variants:
            value = rows[variant][what]
            if value is not None and reference is not None:
                found[variant][name] = value - reference
    return found


def standard_error(values: Iterable[float]) -> float | None:
    """Return the standard error of a mean, None for one value."""
    sample = list(values)
    return float(np.std(sample, ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _ratio(value: float | None, unit: float | None) -> float | None:
    return None if value is None or not unit else value / unit
