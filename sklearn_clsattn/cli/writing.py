"""Files that are written completely or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def check_output(path: Path, *, overwrite: bool, inputs: Sequence[Path | None] = ()) -> None:
    """Raise an error if a file cannot be written, exists (unless `overwrite`), or is an input."""
    path = path.expanduser()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists():
        if any(other and other.exists() and path.samefile(other) for other in inputs):
            raise ValueError(f"{path} is read as well; name another file to write")
        if not overwrite:
            raise ValueError(f"{path} is there already; pass --force to overwrite it")
        allowed = os.access(path, os.W_OK)
    else:
        allowed = os.access(path.parent, os.W_OK)
    if not allowed:
        raise PermissionError(f"cannot write {path}: permission denied")


@contextmanager
def written_whole(path: Path, *, text: bool) -> Iterator[IO[Any]]:
    """Yield a file beside `path` that replaces it once it is complete, and is removed on errors.

    It is for text in UTF-8, or for bytes.
    """
    # Links are followed; a device such as /dev/null must not be replaced by a file.
    path = path.expanduser().resolve()
    mode, encoding, newline = ("w", "utf-8", "") if text else ("wb", None, None)
    if path.exists() and not path.is_file():
        with path.open(mode, encoding=encoding, newline=newline) as file:
            yield file
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open(mode, encoding=encoding, newline=newline) as file:
            yield file
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
