"""The one place where the commands print: nothing foreign controls the terminal."""

import re
import sys
from typing import IO

from sklearn_clsattn._visible import visible

# Colours and the like, as rich writes them.
_STYLE = re.compile(r"(\x1b\[[0-9;]*m)")


def say(text: str, file: IO[str] | None = None, *, styled: bool = False) -> None:
    """Print text, on stdout by default, with its control characters made visible.

    `styled` text has codes of colours that this package has put there, around text that was made
    visible already.
    """
    parts = _STYLE.split(text) if styled else [text]
    shown = [part if at % 2 else visible(part, keep_lines=True) for at, part in enumerate(parts)]
    print("".join(shown), file=sys.stdout if file is None else file, flush=True)
