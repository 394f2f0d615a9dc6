"""Time and memory of many classes of few documents: ``python -m benchmarks.many_classes``.

Generated counts of 20,000 tokens, four documents of each class. Each fit has its own process.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_clsattn import ClsAttentionClassifier

from . import command_line, pages
from .processes import in_process

N_TOKENS = 20_000
N_DOCUMENTS_OF_A_CLASS = 4
N_TOKENS_OF_A_DOCUMENT = 12
N_TOKENS_OF_A_CLASS = 20
_OWN = 0.4  # probability that an occurrence is of the tokens of the document's class


def counts(n_classes: int, n_tokens: int) -> tuple[Any, Any]:
    """Return counts of documents, and their classes."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), N_DOCUMENTS_OF_A_CLASS)
    documents = np.repeat(np.arange(len(y)), N_TOKENS_OF_A_DOCUMENT)
    of_class = y[documents] * N_TOKENS_OF_A_CLASS
    of_class += rng.integers(0, N_TOKENS_OF_A_CLASS, len(documents))
    common = rng.zipf(1.3, len(documents)) - 1
    tokens = np.where(rng.random(len(documents)) < _OWN, of_class, common) % n_tokens
    ones = np.ones(len(documents))
    X = sp.csr_array((ones, (documents, tokens)), shape=(len(y), n_tokens))
    X.sum_duplicates()
    return X, y


def measured(n_classes: int, n_tokens: int, C: float | str) -> dict[str, float]:
    """Return seconds, processor seconds and memory of a fit, in this process."""
    X, y = counts(n_classes, n_tokens)
    start = time.perf_counter(), time.process_time()
    model = ClsAttentionClassifier(C=C).fit(X, y)
    return {
        "seconds": time.perf_counter() - start[0],
        "processor": time.process_time() - start[1],
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "iterations": float(model.n_iter_),
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure the fits, and write the page."""
    parser = command_line.parser("many_classes", __doc__)
    parser.add_argument("--classes", default="100,300,1000", help="numbers between commas")
    parser.add_argument("--tokens", type=int, default=N_TOKENS)
    parser.add_argument("--output", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    rows = []
    for n_classes in map(int, options.classes.split(",")):
        for C in (1.0, "auto"):
            call = "benchmarks.many_classes.measured", n_classes, options.tokens, C
            found = in_process(*call, one_thread=True)
            numbers = f"{found['processor']:.1f}", f"{found['gigabytes']:.1f}"
            rows.append([f"{n_classes:,}", C, *numbers, f"{found['iterations']:.0f}"])
            print(rows[-1], file=sys.stderr, flush=True)
    header = "classes", "C", "processor seconds", "GB in all", "iterations"
    notes = (
        f"Counts of {options.tokens:,} tokens, {N_DOCUMENTS_OF_A_CLASS} documents of each class, "
        f"{N_TOKENS_OF_A_DOCUMENT} tokens in each, one thread. A fit has a value for each token "
        "and class: time and memory grow with their product."
    )
    pages.publish_table(
        "Many classes of few documents", "many_classes", notes, header, rows, options.output
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
