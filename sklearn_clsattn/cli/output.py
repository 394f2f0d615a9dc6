"""How the commands print, and checks of the files that they are to write."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from sklearn_clsattn._visible import visible

# Colours and the like, as rich writes them.
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


def say(text: str, file: IO[str] | None = None, *, styled: bool = False) -> None:
    """Print text, on stdout by default, with its control characters made visible.

    This is the one place that prints: nothing foreign controls the terminal. `styled` text has
    codes of colours that this package has put there, around text that was made visible already.
    """
    parts = _STYLE.split(text) if styled else [text]
    shown = [part if at % 2 else visible(part, keep_lines=True) for at, part in enumerate(parts)]
    print("".join(shown), file=sys.stdout if file is None else file, flush=True)


def check_output(path: Path, *, overwrite: bool, inputs: Sequence[Path | None] = ()) -> None:
    """Raise an error if a file cannot be written, exists (unless `overwrite`), or is an input.

    Devices such as /dev/null are there to be written.
    """
    path = path.expanduser()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists():
        if any(other and other.exists() and path.samefile(other) for other in inputs):
            raise ValueError(f"{path} is read as well; name another file to write")
        if path.is_file() and not overwrite:
            raise ValueError(f"{path} is there already; pass --force to overwrite it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: permission denied")


def shown_size(n_bytes: int) -> str:
    """Return a file's size as it is printed."""
    return f"{n_bytes / 1e3:.0f} KB" if n_bytes < 100_000 else f"{n_bytes / 1e6:.1f} MB"
