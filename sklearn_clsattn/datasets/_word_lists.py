"""The files of words and sentences in this folder."""

import re
from importlib import resources


def sections(file: str) -> dict[str, str]:
    """Return the text below each heading, which is in brackets, of a file of this folder."""
    text = (resources.files(__package__) / file).read_text("utf-8")
    parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))
