"""The pages of results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import machine

RESULTS = Path(__file__).resolve().parent / "results"


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def number(value: float | None, form: str) -> str:
    """Return a number in a format, or a dash where there is none."""
    return "–" if value is None else format(value, form)


def page(title: str, command: str, *parts: str, described: dict[str, Any] | None = None) -> str:
    """Return a page: title, command, date, machine, and the parts with a blank line between."""
    described = described or machine.describe()
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    of_machine = machine.summary(described), machine.warning(described)
    lines = f"# {title}", f"`{command}`, {date}.", *of_machine, *parts
    return "\n\n".join(filter(None, lines)) + "\n"


def publish(text: str, path: Path | None) -> None:
    """Print a page, and write it where a path is given."""
    print(text)
    if path is not None:
        write(path, text)


def publish_table(
    title: str,
    module: str,
    notes: str,
    header: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    path: Path | None,
) -> None:
    """Publish a page of one table, with notes, that a module of `benchmarks` printed."""
    publish(page(title, f"python -m benchmarks.{module}", notes, table(header, rows)), path)


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
