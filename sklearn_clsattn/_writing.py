"""Files that are written whole or not at all, and text that is safe to show."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# Control characters but tab and new line, line separators, marks of direction, surrogates.
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@contextmanager
def written_whole(path: Path, *, text: bool) -> Iterator[IO[Any]]:
    """Yield a file beside `path` that replaces it when complete, and is removed on errors."""
    path = path.expanduser().resolve()  # follows links
    options: dict[str, Any] = {"mode": "wb"}
    if text:
        options = {"mode": "w", "encoding": "utf-8", "newline": ""}
    if path.exists() and not path.is_file():  # a device, which no file may replace
        with path.open(**options) as file:
            yield file
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(path.parent)!r}.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open(**options) as file:
            if path.exists():
                shutil.copymode(path, part)
            yield file
            file.flush()
            os.fsync(file.fileno())  # the content is on the disk before the name is
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def visible(text: str, *, keep_lines: bool = False) -> str:
    """Return a text that can be encoded and does not control a terminal or the text around it."""
    text = text.replace("\r\n", "\n")
    if not keep_lines:
        text = text.replace("\n", " ").replace("\t", " ")
    return _ACTING.sub("\ufffd", text)


def label_text(label: Any) -> str:
    """Return a class label on one line, of at most 60 characters."""
    text = " ".join(visible(str(label)).split()) or repr(label)
    return text if len(text) <= 60 else f"{text[:59].rstrip(' .')}…"
