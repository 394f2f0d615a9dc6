"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def check_output(path: Path, *, overwrite: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse a file that cannot or must not be written, before any work is done for it.

    Parameters
    ----------
    path : Path
        The file to be written.
    overwrite : bool
        Whether it may be there already.
    inputs : sequence of Path, default=()
        Files that are read, which the output must not replace.

    Raises
    ------
    ValueError
        If the file is a folder, an input or there already, or its folder is not there.
    OSError
        If the system does not let us write there.
    """
    path = path.expanduser()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists():
        if any(other.exists() and path.samefile(other) for other in inputs):
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
    """Open a file to write that takes its place only once it is complete.

    Parameters
    ----------
    path : Path
        The file, replaced if it is there.
    text : bool
        Whether to write text, in UTF-8, rather than bytes.

    Yields
    ------
    file : file object
        A file beside it, removed again if an error or an interruption comes first.
    """
    # Links stay links, and a device such as /dev/null must never be replaced by a file.
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
