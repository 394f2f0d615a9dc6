"""The answers as a page, a table a question, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from benchmarks.machine import summary, warning

from .answers import Answers, by_set, differences, relative, standard_error
from .question import Question
from .sets import FEW, SIZES

_INTRODUCTION = """\
Measured on training documents alone: of every set, a quarter is drawn at random and held out for
the measures, and the first 500, 2,000, 8,000 or all of the others are trained on, as words and
bigrams of at least two documents; or the first 30, 100 or 300, and then at most 1,000 documents are
tested on. There are up to five splits; fewer of the sets and sizes whose fits take long, and where
the run was stopped: how many splits there are stands below each table. Sizes of fewer than 25
documents a class are left out, below 500 of fewer than 5.

Means over splits, then over sizes, then over sets, every set counting once; *±* is one standard
error over sets. *Won* says on how many sets a variant has the higher accuracy, and on how many the
lower, than the variant that the differences are from, which stands without differences. *ECE* is
the expected calibration error in 15 bins of equal width.
"""


def markdown(answers: dict[str, Answers], questions: list[Question], about: dict[str, Any]) -> str:
    """Return the page."""
    parts = [
        f"# {about['title']}",
        "",
        f"`{about['command']}`, {about['date']}.",
        "",
        summary(about["machine"]),
        "",
        *warning(about["machine"]),
        _INTRODUCTION,
    ]
    if about["fast"]:
        parts += ["**A fast run** on generated documents: the numbers mean nothing.", ""]
    for question in questions:
        found = {key: rows for key, rows in answers.get(question.name, {}).items() if rows}
        parts += [f"## {question.title}", "", question.text, ""]
        if question.name in about["changed"]:
            changed = ", ".join(about["changed"][question.name])
            parts += [f"Measured before a default was changed: {changed}.", ""]
        parts += _section(question, found) if found else ["Not measured.", ""]
    return "\n".join(parts)


def as_json(
    answers: dict[str, Answers], questions: list[Question], about: dict[str, Any]
) -> dict[str, Any]:
    """Return the mean rows by question, size and set."""
    sizes = {"all" if size is None else str(size): size for size in (*FEW, *SIZES)}
    return {
        **about,
        "questions": {
            question.name: {
                label: means
                for label, size in sizes.items()
                if (means := by_set(answers.get(question.name, {}), size))
            }
            for question in questions
        },
    }


def _section(question: Question, answers: Answers) -> list[str]:
    means = by_set(relative(answers, question))
    numbers = Counter(key[0] for key in answers)
    splits = "Splits, of all sizes together: " + ", ".join(
        f"{name} {number}" for name, number in sorted(numbers.items())
    )
    accuracy = differences(means, question, "accuracy")
    loss = differences(means, question, "log_loss")
    header = (
        "",
        "accuracy",
        "points",
        "won",
        "worst set",
        "log loss",
        "difference",
        "ECE, %",
        question.count,
        "CPU",
    )
    rows = []
    for variant, title in question.variants.items():
        points = {name: 100 * value for name, value in accuracy[variant].items()}
        worst = min(points, key=lambda name: points[name])
        is_reference = variant == question.reference
        won = sum(value > 0 for value in points.values())
        lost = sum(value < 0 for value in points.values())
        rows.append(
            (
                title,
                _over_sets(means, variant, "accuracy", ".4f"),
                "" if is_reference else _with_error(points, "+.2f"),
                "" if is_reference else f"{won} to {lost}",
                "" if is_reference else f"{worst} {points[worst]:+.2f}",
                _over_sets(means, variant, "log_loss", ".4f"),
                "" if is_reference else _with_error(loss[variant], "+.4f"),
                _over_sets(means, variant, "ece", ".2f", 100),
                _over_sets(means, variant, "n_iter", ".1f"),
                _over_sets(means, variant, "seconds", ".2f"),
            )
        )
    return [_table(header, rows), "", *_by_size(question, answers), f"{splits}.", ""]


def _by_size(question: Question, answers: Answers) -> list[str]:
    """Return a table of the differences by number of training documents."""
    answers = relative(answers, question)
    of_size = {size: means for size in (*FEW, *SIZES) if (means := by_set(answers, size))}
    if len(of_size) < 2:
        return []
    header = ["points, difference in log loss, CPU"]
    rows = {variant: [title] for variant, title in question.variants.items()}
    for size, means in of_size.items():
        number = "all" if size is None else f"{size:,}"
        header.append(f"{number} ({len(means)} set{'s' * (len(means) > 1)})")
        points = differences(means, question, "accuracy")
        loss = differences(means, question, "log_loss")
        for variant, row in rows.items():
            numbers = (
                _mean(points[variant], "+.2f", 100),
                _mean(loss[variant], "+.4f"),
                _over_sets(means, variant, "seconds", ".2f"),
            )
            row.append(", ".join(numbers))
    return [_table(header, rows.values()), ""]


def _over_sets(means: Any, variant: str, what: str, form: str, factor: float = 1) -> str:
    values = [rows[variant].get(what) for rows in means.values()]
    known = {str(i): value for i, value in enumerate(values) if value is not None}
    return _mean(known, form, factor)


def _mean(values: dict[str, float], form: str, factor: float = 1) -> str:
    return format(factor * float(np.mean(list(values.values()))), form) if values else "–"


def _with_error(values: dict[str, float], form: str) -> str:
    error = standard_error(values.values())
    return _mean(values, form) + ("" if error is None else f" ± {error:{form.lstrip('+')}}")


def _table(header: Any, rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
