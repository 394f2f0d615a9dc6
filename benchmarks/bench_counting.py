"""Raw text to counts: TokenVectorizer beside scikit-learn's CountVectorizer.

``python -m benchmarks.bench_counting [--reviews FOLDER]``

CPU seconds on one thread and peak memory, each vectorizer in a process of its own: the first fit
(cold), the best of some more (warm), `transform` of held-out documents, and of a single one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn.text import TokenVectorizer

from . import command_line, memory, pages, problems
from .processes import in_process
from .timing import timed

VECTORIZERS = {"scikit-learn": CountVectorizer, "here": TokenVectorizer}
TASKS: dict[str, dict[str, Any]] = {
    "words (1, 2), min_df=2": {"ngram_range": (1, 2), "min_df": 2},
    "char_wb (2, 5), min_df=3": {"analyzer": "char_wb", "ngram_range": (2, 5), "min_df": 3},
}
# How many times as fast at least, and how much memory at most, for each task.
TARGETS = {
    "fit, cold": (3.5, 6.0),
    "fit, warm": (8.0, 9.0),
    "transform": (5.0, 9.0),
    "one document": (0.9, 0.9),
    "peak memory": (1.7, 1.15),
}


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_counting", __doc__, reviews=True)
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--runs", type=int, default=3, help="warm runs, of which the best counts")
    parser.add_argument("--output", type=Path, default=pages.RESULTS, help="folder of the page")
    options = parser.parse_args(arguments)
    reviews = problems.find_reviews(options.reviews)
    given, rows = (options.reviews, options.rows, options.runs), []
    for at, task in enumerate(TASKS):
        theirs, ours = (
            in_process("benchmarks.bench_counting.measure", kind, task, *given, one_thread=True)
            for kind in VECTORIZERS
        )
        assert theirs["sum"] == ours["sum"], "the counts differ"
        rows += [row(task, what, theirs[what], ours[what], TARGETS[what][at]) for what in TARGETS]
    page = pages.page(
        "Counting words and characters",
        "python -m benchmarks.bench_counting" + " --reviews FOLDER" * bool(reviews),
        "CPU seconds on one thread; the rise of resident memory during the first fit.",
        pages.table(("task", "measured", "scikit-learn", "here", "ratio", "target", ""), rows),
    )
    pages.publish(page, options.output / "counting.md")
    return 0


def row(task: str, what: str, theirs: float, ours: float, target: float) -> tuple[str, ...]:
    """Return a row of the table, with the target and whether it is met."""
    if what == "peak memory":
        shown = f"{theirs / 1e6:,.0f} MB", f"{ours / 1e6:,.0f} MB", f"{ours / theirs:.2f}"
        bound, met = "at most", ours <= target * theirs
    else:
        shown = f"{theirs:.3g} s", f"{ours:.3g} s", f"{theirs / ours:.2f}"
        bound, met = "at least", theirs >= target * ours
    return task, what, *shown, f"{bound} {target:g}", "met" if met else "**missed**"


def measure(
    kind: str, task: str, folder: str | None, n_rows: int | None, n_runs: int
) -> dict[str, float]:
    """Return CPU seconds and bytes of one vectorizer at one task."""
    reviews = problems.find_reviews(Path(folder) if folder else None)
    texts = problems.load_texts(problems.specs(reviews)[0], reviews, n_rows=n_rows)
    train, test = list(texts.X_train), list(texts.X_test)

    def made() -> Any:
        return VECTORIZERS[kind](**TASKS[task])

    def best(function: Callable[[], Any], runs: int = n_runs) -> float:
        return min(timed(function, time.process_time)[1] for _ in range(runs))

    made().fit(train[:200])  # imports
    vectorizer, result = made(), {}

    def first() -> None:
        result["fit, cold"] = best(lambda: vectorizer.fit_transform(train), 1)

    some = [[text] for text in test[:200]]
    return {
        "peak memory": memory.peak_beyond(first),
        **result,
        "fit, warm": best(lambda: made().fit_transform(train)),
        "transform": best(lambda: vectorizer.transform(test)),
        "one document": best(lambda: list(map(vectorizer.transform, some)), 5) / len(some),
        "sum": int(vectorizer.transform(test).sum()),
    }


if __name__ == "__main__":
    sys.exit(main())
