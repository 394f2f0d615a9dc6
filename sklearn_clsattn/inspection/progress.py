"""A progress bar for calls that take long, in a terminal."""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

_PATIENCE = 2.0  # seconds until a bar appears

Item = TypeVar("Item")


def tracked(items: Iterable[Item], total: int, description: str) -> Iterator[Item]:
    """Yield items, and show a bar on standard error if they take long and it is a terminal."""
    console = Console(stderr=True)
    start = monotonic()
    bar = Progress(console=console, transient=True)
    task = None
    try:
        for done, item in enumerate(items):
            if task is None and console.is_terminal and monotonic() - start > _PATIENCE:
                bar.start()
                task = bar.add_task(description, total=total)
            if task is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if task is not None:
            bar.stop()
