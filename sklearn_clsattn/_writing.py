"""Atomic writing of files, and text that is safe to show."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

# Control characters, line and paragraph separators, marks of direction, surrogates, noncharacters.
_NOT_SHOWN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef"
    + "".join(map(chr, range(0xFFFE, 0x110000, 0x10000)))  # the last two of each Unicode plane
    + "".join(map(chr, range(0xFFFF, 0x110000, 0x10000)))
    + "]"
)


@contextmanager
def written_whole(path: Path, *, text: bool) -> Iterator[IO[Any]]:
    """Yield a file beside `path` that replaces it when complete, and is removed on errors."""
    path = path.expanduser().resolve()  # follows links
    # 1) the file to write: a device must not be replaced by a file
    is_device = path.exists() and not path.is_file()
    part = path
    mode = "w"
    if not is_device:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        mode = "x"
    options: dict[str, Any] = {"encoding": "utf-8", "newline": ""}
    if not text:
        mode += "b"
        options = {}
    # 2) its content, which is on the disk before the name is
    try:
        with part.open(mode, **options) as f:
            if path.is_file():
                shutil.copymode(path, part)
            yield f
            if not is_device:
                f.flush()
                os.fsync(f.fileno())
        if not is_device:
            part.replace(path)
    except BaseException as error:
        if not is_device:
            with suppress(OSError):
                part.unlink()
        # A full disk, or no such folder: `path` is what the user knows.
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(part)):
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Return a text that can be encoded and does not control a terminal or the text around it."""
    if text.isprintable():  # the usual case, checked fastest
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _NOT_SHOWN.sub(lambda match: _sign(match[0], keep_lines), text)


def _sign(character: str, keep_lines: bool) -> str:
    """Return the replacement of a character."""
    code = ord(character)
    if character in "\n\t\u2028\u2029":
        line = character if code < 0x20 else "\n"
        return line if keep_lines else " "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"[U+{code:04X}]" if 0x2000 < code < 0x2070 else "\ufffd"
