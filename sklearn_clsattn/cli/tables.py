"""Output of the commands: results as plain text, and progress on stderr."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from sklearn_clsattn._visible import visible
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.comparison import ClassTokens, Comparison, ModelResult, Progress
from sklearn_clsattn.comparison._baselines import seconds_by_features
from sklearn_clsattn.comparison._measurement import shown_measure
from sklearn_clsattn.inspection.formatting import (
    WIDTH,
    filled,
    in_columns,
    token_lists,
    token_text,
)

Tell = Callable[[str, bool], None]

_COLUMNS: tuple[tuple[str, str, str, Any], ...] = (
    ("accuracy", "accuracy", ".4f", max),
    ("macro F1", "macro_f1", ".4f", max),
    ("log loss", "log_loss", ".4f", min),
    ("fit s", "fit_seconds", ".3f", min),
    ("predict s", "predict_seconds", ".3f", min),
)


def result_text(result: Comparison, *, source: str) -> str:
    """Return the report of a comparison; `source` describes the texts."""
    times = [(one.name, one.tuning_seconds) for one in result.models]
    tuning = [f"{name} {spent:.1f} s" for name, spent in times if spent is not None]
    notes = [
        "Making the features of all texts, in none of these times: "
        f"{seconds_by_features(result.vectorize_seconds)}.",
        *([f"Tuning, before the fits with what it found: {'; '.join(tuning)}."] * bool(tuning)),
        *result.notes,
    ]
    parts = [
        f"{source}\n{len(result.y):,} training texts, {len(result.y_test):,} test texts, "
        f"{len(result.classes)} classes, {result.X.shape[1]:,} features.",
        _models_table(result.models),
        "\n".join(filled(note.split(), "- ", "  ") for note in notes),
        *_token_parts(result.tokens),
    ]
    return "\n\n".join(parts)


def fit_text(facts: Mapping[str, str], tokens: Sequence[ClassTokens]) -> str:
    """Return the report of one fit: named facts, then tokens."""
    width = max(map(len, facts)) + 2
    lines = [filled(fact.split(), name.ljust(width), " " * width) for name, fact in facts.items()]
    return "\n\n".join(["\n".join(lines), *_token_parts(tokens)])


@contextmanager
def progress_shown(*, quiet: bool) -> Iterator[Tell]:
    """Yield a callback that shows a state: in a terminal any, else, as lines, those to keep."""
    if quiet:
        yield lambda state, keep: None
    elif sys.stderr.isatty():
        with Console(stderr=True).status("starting") as status:
            yield lambda state, keep: status.update(Text(visible(state)))
    else:
        yield lambda state, keep: say(state, sys.stderr) if keep else None


def of_models(tell: Tell) -> Callable[[Progress], None]:
    """Return a callback that shows how far a comparison is."""

    def show(event: Progress) -> None:
        if event.result is None:
            place = f"{event.n_done + 1}/{event.n_models}"
            tell(f"[{place}] {event.stage} {event.model or 'texts'}", False)
            return
        tuned = event.result.tuning_seconds
        searched = "" if tuned is None else f"tuned in {tuned:.2f} s, "
        fitted = f"{searched}fitted in {event.result.fit_seconds:.2f} s"
        tell(f"[{event.n_done}/{event.n_models}] {event.model}: {fitted}", True)

    return show


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


def _token_parts(tokens: Sequence[ClassTokens]) -> list[str]:
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
        if any(found for _, found in lists)
    ]
