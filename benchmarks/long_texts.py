"""Time and memory of very long texts: ``python -m benchmarks.long_texts``.

A model of short texts predicts one text of many words: of one word again and again, and of words
of a Zipf distribution. Each prediction has its own process and one thread.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from sklearn_clsattn import TextClassifier

from . import command_line, pages
from .memory import peak_beyond
from .processes import in_process

KINDS = {"word": "the same word again and again", "zipf": "words of a Zipf distribution"}
N_WORDS = 50_000


def long_text(kind: str, length: int) -> str:
    """Return a text of so many words."""
    if kind == "word":
        return "word " * length
    rng = np.random.default_rng(0)
    numbers = rng.zipf(1.3, length) % N_WORDS
    return " ".join([f"w{number}" for number in numbers.tolist()])


def measured(kind: str, length: int) -> dict[str, float]:
    """Return processor seconds and memory of the prediction of a text, in this process."""
    texts = [f"word w{i % 7} w{i % 11}" for i in range(200)]
    model = TextClassifier().fit(texts, np.arange(200) % 2)
    model.predict_proba(texts[:2])  # imports
    text = long_text(kind, length)
    start = time.process_time()
    memory = peak_beyond(lambda: model.predict_proba([text]))
    seconds = time.process_time() - start
    return {"seconds": seconds, "gigabytes": memory / 2**30}


def main(arguments: list[str] | None = None) -> int:
    """Measure the predictions, and write the page."""
    parser = command_line.parser("long_texts", __doc__)
    parser.add_argument("--lengths", default="100000,1000000,10000000", help="between commas")
    parser.add_argument("--output", type=Path, help="file of the page")
    options = parser.parse_args(arguments)
    rows = []
    for kind, described in KINDS.items():
        for length in map(int, options.lengths.split(",")):
            found = in_process("benchmarks.long_texts.measured", kind, length, one_thread=True)
            microseconds = 1e6 * found["seconds"] / length
            numbers = f"{found['seconds']:.2f}", f"{microseconds:.2f}", f"{found['gigabytes']:.2f}"
            rows.append([described, f"{length:,}", *numbers])
            print(rows[-1], file=sys.stderr, flush=True)
    header = "one text of", "words", "processor seconds", "µs a word", "GB beyond the text"
    notes = (
        "A `TextClassifier()` of short texts predicts one long text, on one thread. Time and "
        "memory grow linearly with the text."
    )
    pages.publish_table("Very long texts", "long_texts", notes, header, rows, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
