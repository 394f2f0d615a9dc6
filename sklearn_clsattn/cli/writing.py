"""Whether a file can be written, before the work begins, and how large it is, after it."""

import os
from collections.abc import Sequence
from pathlib import Path


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
        allowed = os.access(path, os.W_OK)
    else:
        allowed = os.access(path.parent, os.W_OK)
    if not allowed:
        raise PermissionError(f"cannot write {path}: permission denied")


def shown_size(n_bytes: int) -> str:
    """Return a file's size as it is printed."""
    return f"{n_bytes / 1e3:.0f} KB" if n_bytes < 100_000 else f"{n_bytes / 1e6:.1f} MB"
