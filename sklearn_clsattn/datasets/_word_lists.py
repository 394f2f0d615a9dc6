"""The files of words and sentences in this folder."""

import re
from importlib import resources


def sections(file: str) -> dict[str, str]:
    """Return the text below each heading, which is in brackets, of a file of this folder."""
    text = (resources.files(__package__) / file).read_text("utf-8")
    _, *parts = re.split(r"^\[(.+)\]\n", text, flags=re.MULTILINE)  # nothing before the first
    headings = parts[::2]
    texts = parts[1::2]
    return dict(zip(headings, texts, strict=True))
