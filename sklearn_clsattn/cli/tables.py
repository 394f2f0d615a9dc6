"""Output of the commands: results on stdout, progress on stderr."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as ProgressBar
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sklearn_clsattn._visible import visible
from sklearn_clsattn.cli.saying import say
from sklearn_clsattn.comparison import ClassTokens, Comparison, ModelResult, Progress
from sklearn_clsattn.comparison._baselines import seconds_by_features
from sklearn_clsattn.comparison._measurement import shown_measure
from sklearn_clsattn.inspection.formatting import token_text

MAX_CLASSES = 20  # whose tokens are shown
# A rule under the heading and nothing else.
_RULE = box.Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
# Wide enough that nothing is cut or wrapped in a file.
UNBOUNDED = 100_000


class Visible:
    """A report whose text has its control characters made visible."""

    def __init__(self, report: RenderableType) -> None:
        self._report = report

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[Segment]:
        """Yield the report's segments, in which codes of colours are apart from text."""
        for segment in console.render(self._report, options):
            text = segment.text if segment.control else visible(segment.text, keep_lines=True)
            yield segment._replace(text=text)


def show(report: RenderableType) -> None:
    """Print a report on stdout: as wide as the terminal, or unwrapped and plain in a pipe."""
    terminal = sys.stdout.isatty()
    console = Console(highlight=False, width=None if terminal else UNBOUNDED)
    with console.capture() as capture:
        console.print(Visible(report))
    # rich pads every line of a table to its width.
    lines = capture.get().split("\n")[:-1]
    say("\n".join(line if terminal else line.rstrip() for line in lines), styled=True)


def result_report(result: Comparison, *, source: str) -> RenderableType:
    """Return the report of a comparison; `source` describes the texts."""
    tuned = any(model.tuning_seconds is not None for model in result.models)
    notes = [
        "Making the features of all texts, which is in no other time: "
        f"{seconds_by_features(result.vectorize_seconds)}.",
        *(["Fit s is the fit with the tuned parameters; tune s the search before."] * tuned),
        *result.notes,
    ]
    return Group(
        Text(source),
        Text(
            f"{len(result.y):,} training texts, {len(result.y_test):,} test texts, "
            f"{len(result.classes)} classes, {result.X.shape[1]:,} features."
        ),
        Text(),
        _models_table(result.models, tuned=tuned),
        Text(),
        _list(notes),
        *_token_tables(result.tokens),
    )


def fit_report(facts: Mapping[str, str], tokens: Sequence[ClassTokens]) -> RenderableType:
    """Return the report of one fit: named facts, then tokens."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, fact in facts.items():
        grid.add_row(name, Text(fact))
    return Group(grid, *_token_tables(tokens))


@contextmanager
def progress_shown(*, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a callback that shows progress: a bar in a terminal, else a line for each model."""
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield _print_line
        return
    bar = ProgressBar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None)

        def update(event: Progress) -> None:
            doing = f"{event.stage} {event.model or 'texts'}"
            bar.update(task, description=doing, completed=event.n_done, total=event.n_models)

        yield update


@contextmanager
def busy(doing: str, *, quiet: bool) -> Iterator[None]:
    """Show that something is running: a spinner in a terminal, else a line."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with Console(stderr=True).status(doing):
            yield
    else:
        say(doing, sys.stderr)
        yield


@contextmanager
def counting(*, quiet: bool) -> Iterator[Callable[[str, bool], None]]:
    """Yield a callback that shows a state: in a terminal any, else, as lines, those to keep."""
    if quiet:
        yield lambda state, keep: None
    elif sys.stderr.isatty():
        with Console(stderr=True).status("reading") as status:
            yield lambda state, keep: status.update(Text(visible(state)))
    else:
        yield lambda state, keep: say(state, sys.stderr) if keep else None


def _print_line(event: Progress) -> None:
    if event.result is None:
        return
    tuned = event.result.tuning_seconds
    searched = "" if tuned is None else f"tuned in {tuned:.2f} s, "
    say(
        f"[{event.n_done}/{event.n_models}] {event.model}: {searched}fitted in "
        f"{event.result.fit_seconds:.2f} s",
        sys.stderr,
    )


def _models_table(models: Sequence[ModelResult], *, tuned: bool) -> Table:
    """Return the table of measurements, the best of each column with a star."""
    columns: list[tuple[str, str, str, Any]] = [
        ("accuracy", "accuracy", ".4f", max),
        ("macro F1", "macro_f1", ".4f", max),
        ("log loss", "log_loss", ".4f", min),
        ("fit s", "fit_seconds", ".3f", min),
        ("predict s", "predict_seconds", ".3f", min),
    ]
    if tuned:
        columns.append(("tune s", "tuning_seconds", ".1f", min))
    # Without padding narrow enough for a terminal of 80 columns; with tuning a name is folded.
    table = Table(box=_RULE, show_edge=False, pad_edge=False, padding=0)
    table.add_column("  model", overflow="fold")
    cells = []
    for title, *column in columns:
        table.add_column(title, justify="right", overflow="fold")
        # A space in place of the star keeps numbers aligned.
        cells.append(
            [
                Text(f"{shown}*", style="bold green") if is_best else Text(f"{shown} ")
                for shown, is_best in shown_measure(models, "-", *column)
            ]
        )
    for model, *row in zip(models, *cells, strict=True):
        style = {"ours": "bold", "floor": "dim"}.get(model.kind)
        mark = "> " if model.kind == "ours" else "  "
        table.add_row(Text(f"{mark}{model.name}"), *row, style=style)
    return table


def _token_tables(tokens: Sequence[ClassTokens]) -> list[RenderableType]:
    """Return the tokens of each class, one row a class."""
    rows = tokens[:MAX_CLASSES]
    left_out = len(tokens) - len(rows)
    parts: list[RenderableType] = []
    important = [(of.label, [Text(token_text(token)) for token, _ in of.important]) for of in rows]
    # Without a space before the count, so that no line ends between the two.
    selected = [
        (of.label, [Text.assemble(token_text(one), (f":{n}", "dim")) for one, n in of.selected])
        for of in rows
    ]
    for title, meaning, lists in (
        ("Most important tokens", "value times standard deviation of attention", important),
        ("Most selected tokens", "number of texts in which it has the most attention", selected),
    ):
        if not any(cells for _, cells in lists):
            continue
        table = Table.grid(padding=(0, 2))
        table.add_column()
        table.add_column(overflow="fold")
        for label, cells in lists:
            table.add_row(
                Text(f"  {' '.join(str(label).split())}", style="bold"), Text(", ").join(cells)
            )
        heading = Text.assemble("\n", (title, "bold"), f" of each class ({meaning})")
        parts += [heading, table]
        if left_out:
            parts.append(Text(f"  and {left_out} more classes"))
    return parts


def _list(notes: Sequence[str]) -> Table:
    """Return notes as a list with hanging indents."""
    table = Table.grid(padding=(0, 1))
    for note in notes:
        table.add_row(Text("  -"), Text(note))
    return table
