"""Numbers of words in raw text, beside libraries that could find them instead.

``python -m benchmarks.bench_tokens [--reviews FOLDER]``

Processor seconds on one thread, from lower-case texts to the number of each word, in order.
Libraries that are not installed (polars, pyarrow, tokenizers) are left out.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sklearn_clsattn.text._tokens import WORDS, WORDS_AND_PUNCTUATION, tokenize

from . import command_line, pages, problems
from .processes import ONE_THREAD, in_process
from .timing import timed

_ENVIRONMENT = {"POLARS_MAX_THREADS": "1", "RAYON_NUM_THREADS": "1"} | ONE_THREAD
_WORD = r"\b\w\w+\b"


def _by_number(words: Iterable[str]) -> int:
    """Number words in a dictionary, and return how many there are."""
    numbers: dict[str, int] = {}
    return len([numbers.setdefault(word, len(numbers)) for word in words])


def here(texts: list[str]) -> int:
    return len(tokenize(texts, WORDS, positions=False).ids)


def here_with_signs(texts: list[str]) -> int:
    return len(tokenize(texts, WORDS_AND_PUNCTUATION, scripts=True).ids)


def standard_library(texts: list[str]) -> int:
    find = re.compile(_WORD).findall
    return _by_number(word for text in texts for word in find(text))


def polars(texts: list[str]) -> int:
    import polars

    words = polars.Series(texts).str.extract_all(_WORD).explode()
    return len(words.cast(polars.Categorical).to_physical())


def pyarrow(texts: list[str]) -> int:
    import pyarrow
    from pyarrow import compute

    pyarrow.set_cpu_count(1)
    words = compute.split_pattern_regex(pyarrow.array(texts, pyarrow.large_string()), r"\W+")
    return len(compute.dictionary_encode(compute.list_flatten(words)).indices)


def tokenizers(texts: list[str]) -> int:
    from tokenizers import Regex, pre_tokenizers

    split = pre_tokenizers.Split(Regex(_WORD), "removed", invert=True).pre_tokenize_str
    return _by_number(word for text in texts for word, _ in split(text))


TOKENIZERS: dict[str, Callable[[list[str]], int]] = {
    "here": here,
    "here, with signs, positions and scripts": here_with_signs,
    "re.findall": standard_library,
    "polars": polars,
    "pyarrow": pyarrow,
    "tokenizers": tokenizers,
}


def measured(name: str, folder: str | None, n_rows: int | None) -> dict[str, float]:
    """Return processor seconds of a tokenizer, the number of words, and of characters."""
    reviews = problems.find_reviews(Path(folder) if folder else None)
    problem = problems.load_texts(problems.specs(reviews)[0], reviews, n_rows=n_rows)
    texts = [text.lower() for text in problem.X_train]
    find = TOKENIZERS[name]
    find(texts[:200])  # imports
    n_words, seconds = timed(lambda: find(texts), time.process_time)
    return {"words": n_words, "seconds": seconds, "characters": sum(map(len, texts))}


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_tokens", __doc__, reviews=True)
    parser.add_argument("--rows", type=int, help="for a trial")
    parser.add_argument("--output", type=Path, help="file of the page")
    options = parser.parse_args(arguments)
    os.environ.update(_ENVIRONMENT)
    rows = []
    for name in TOKENIZERS:
        if name in ("polars", "pyarrow", "tokenizers") and find_spec(name) is None:
            continue
        call = "benchmarks.bench_tokens.measured", name, options.reviews, options.rows
        found: dict[str, Any] = in_process(*call, one_thread=True)
        speed = found["characters"] / found["seconds"] / 1e6
        words = found["words"] / found["seconds"] / 1e6
        numbers = f"{found['seconds']:.2f}", f"{speed:.0f}", f"{words:.1f}", f"{found['words']:,}"
        rows.append([name, *numbers])
    header = "", "processor seconds", "million characters/s", "million words/s", "words"
    notes = (
        "From lower-case texts to the number of each word, in order, on one thread. Words match "
        "`\\b\\w\\w+\\b`; pyarrow splits at other characters, and so keeps single letters."
    )
    pages.publish_table(
        "Words of texts as numbers", "bench_tokens", notes, header, rows, options.output
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
