"""Raw text to counts: TokenVectorizer beside scikit-learn's CountVectorizer.

``python benchmarks/bench_counting.py [--reviews FOLDER]``

CPU seconds on one thread and peak memory, each vectorizer in a process of its own: the first fit
(cold), the best of some more (warm), `transform` of held-out documents, and of a single one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, memory, pages, problems  # noqa: E402
from sklearn_clsattn.text import TokenVectorizer  # noqa: E402

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
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.measure:
        print(json.dumps(measure(*options.measure, options)))
        return 0
    rows = []
    for at, task in enumerate(TASKS):
        theirs, ours = (in_fresh_process(options, kind, task) for kind in VECTORIZERS)
        assert theirs["sum"] == ours["sum"], "the counts differ"
        rows += [row(task, what, theirs[what], ours[what], TARGETS[what][at]) for what in TARGETS]
    page = pages.page(
        "Counting words and characters",
        "python benchmarks/bench_counting.py",
        "CPU seconds on one thread; the rise of resident memory during the first fit.",
        pages.table(("task", "measured", "scikit-learn", "here", "ratio", "target", ""), rows),
    )
    print(page)
    pages.write(options.output / "counting.md", page)
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


def in_fresh_process(options: argparse.Namespace, *case: str) -> dict[str, float]:
    """Return what :func:`measure` returns for a case, in a process of its own."""
    command = [sys.executable, __file__, "--measure", *case]
    command += ["--reviews", str(options.reviews), "--runs", str(options.runs)]
    command += ["--rows", str(options.rows)] if options.rows else []
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"measuring {case} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(kind: str, task: str, options: argparse.Namespace) -> dict[str, float]:
    """Return CPU seconds and bytes of one vectorizer at one task."""
    reviews = problems.find_reviews(options.reviews)
    texts = problems.load_texts(problems.specs(reviews)[0], reviews, n_rows=options.rows)
    train, test = list(texts.X_train), list(texts.X_test)

    def made() -> Any:
        return VECTORIZERS[kind](**TASKS[task])

    made().fit(train[:200])  # imports
    vectorizer, result = made(), {}

    def first() -> None:
        result["fit, cold"] = cpu_seconds(lambda: vectorizer.fit_transform(train))

    result["peak memory"] = memory.peak_beyond(first)
    runs, some = range(options.runs), [[text] for text in test[:200]]
    result["fit, warm"] = min(cpu_seconds(lambda: made().fit_transform(train)) for _ in runs)
    result["transform"] = min(cpu_seconds(lambda: vectorizer.transform(test)) for _ in runs)
    seconds = min(cpu_seconds(lambda: list(map(vectorizer.transform, some))) for _ in range(5))
    result["one document"] = seconds / len(some)
    result["sum"] = int(vectorizer.transform(test).sum())
    return result


def cpu_seconds(function: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    started = time.process_time()
    function()
    return time.process_time() - started


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--runs", type=int, default=3, help="warm runs, of which the best counts")
    parser.add_argument("--output", type=Path, default=pages.RESULTS, help="folder of the page")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
