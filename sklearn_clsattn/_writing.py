"""Files that are written completely or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_whole(path: Path, *, text: bool) -> Iterator[IO[Any]]:
    """Yield a file beside `path` that replaces it once it is complete, and is removed on errors."""
    # Links are followed; a device such as /dev/null must not be replaced by a file.
    path = path.expanduser().resolve()
    mode, encoding, newline = ("w", "utf-8", "") if text else ("wb", None, None)
    with _named(path):
        if path.exists() and not path.is_file():
            with path.open(mode, encoding=encoding, newline=newline) as file:
                yield file
            return
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        try:
            with open(handle, mode, encoding=encoding, newline=newline) as file:
                os.chmod(part, _mode(path))
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Give errors that name no file, such as that of a full disk, the name of this one."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _mode(path: Path) -> int:
    """Return the mode of a file, or that of new ones."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0)  # which can only be read by setting it
    os.umask(mask)
    return 0o666 & ~mask
