"""Results of the commands as plain text."""

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn_clsattn.comparison import (
    ClassTokens,
    Comparison,
    ModelResult,
    seconds_by_features,
    shown_measure,
)
from sklearn_clsattn.inspection.formatting import (
    WIDTH,
    filled,
    in_columns,
    token_lists,
    token_text,
)

_COLUMNS: tuple[tuple[str, str, str, Any], ...] = (
    ("accuracy", "accuracy", ".4f", max),
    ("macro F1", "macro_f1", ".4f", max),
    ("log loss", "log_loss", ".4f", min),
    ("fit s", "fit_seconds", ".3f", min),
    ("predict s", "predict_seconds", ".3f", min),
)


def progress_text(n_done: int, n_models: int, result: ModelResult) -> str:
    """Return the line for a model that is done."""
    return f"[{n_done}/{n_models}] {result.name}: fitted in {result.fit_seconds:.2f} s"


def result_text(result: Comparison, *, source: str) -> str:
    """Return the report of a comparison; `source` describes the texts."""
    notes = [
        "Making the features of all texts, in none of these times: "
        f"{seconds_by_features(result.vectorize_seconds)}.",
        *result.notes,
    ]
    sections = [
        f"{source}\n{len(result.y):,} training texts, {len(result.y_test):,} test texts, "
        f"{len(result.classes)} classes, {result.X.shape[1]:,} features.",
        _models_table(result.models),
        "\n".join(filled(note.split(), "- ", "  ") for note in notes),
        *_token_sections(result.tokens),
    ]
    return "\n\n".join(sections)


def fit_text(facts: Mapping[str, str], tokens: Sequence[ClassTokens]) -> str:
    """Return the report of one fit: named facts, then tokens."""
    width = max(map(len, facts)) + 2
    lines = [filled(fact.split(), name.ljust(width), " " * width) for name, fact in facts.items()]
    return "\n\n".join(["\n".join(lines), *_token_sections(tokens)])


def _models_table(models: Sequence[ModelResult]) -> str:
    """Return the table of measurements, the best of each column with a star, and its legend."""
    heads, cells = ["  model"], []
    for head, *column in _COLUMNS:
        heads.append(head)
        # A space in place of the star keeps numbers aligned.
        pairs = shown_measure(models, "-", *column)
        cells.append([f"{shown}{'*' if is_best else ' '}" for shown, is_best in pairs])
    names = [f"{'> ' if one.kind == 'ours' else '  '}{one.name}" for one in models]
    head, *rows = in_columns([heads, *zip(names, *cells, strict=True)], gap=" ").split("\n")
    legend = "  >: this package's classifier; *: best of its column, the majority vote aside"
    return "\n".join([head, "─" * WIDTH, *rows, legend])


def _token_sections(tokens: Sequence[ClassTokens]) -> list[str]:
    """Return the lists of each class's most important and most selected tokens."""
    important = [(of.label, [token_text(one) for one, _ in of.important]) for of in tokens]
    selected = [(of.label, [f"{token_text(one)} ({n})" for one, n in of.selected]) for of in tokens]
    titles = (
        "Most important tokens of each class (value × standard deviation of attention)",
        "Most selected tokens of each class (in how many texts it has most attention)",
    )
    return [
        token_lists(title, lists)
        for title, lists in zip(titles, (important, selected), strict=True)
        if any(names for _, names in lists)
    ]
