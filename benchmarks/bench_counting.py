"""Raw text to counts: TokenVectorizer beside scikit-learn's CountVectorizer.

``python benchmarks/bench_counting.py [--reviews FOLDER]``

CPU seconds on one thread and peak memory of words and of character n-grams, each in a fresh process
of its own: the first fit there (cold, with every page of memory new), the best of some more (warm),
`transform` of held-out documents, and of a single one. Ratios are held against targets.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, memory, problems  # noqa: E402
from sklearn_clsattn.datasets import load_reviews  # noqa: E402
from sklearn_clsattn.text import TokenVectorizer  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "counting.md"
VECTORIZERS = {"scikit-learn": CountVectorizer, "here": TokenVectorizer}
TASKS: dict[str, dict[str, Any]] = {
    "words (1, 2), min_df=2": {"ngram_range": (1, 2), "min_df": 2},
    "char_wb (2, 5), min_df=3": {"analyzer": "char_wb", "ngram_range": (2, 5), "min_df": 3},
}
# How many times faster at least, and how many times the memory at most, task by task. A single
# document is scikit-learn's own work, but for deciding that: what timing cannot tell is allowed.
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
    reviews = problems.find_reviews(options.reviews)
    described = machine.describe()
    lines = [
        "# Counting words and characters",
        "",
        f"`python benchmarks/bench_counting.py`, {datetime.date.today().isoformat()}.",
        "",
        machine.summary(described),
        "",
        *machine.warning(described),
        f"{'IMDB reviews' if reviews else 'Generated texts'}. CPU seconds on one thread; MB by "
        "which resident memory rises during the first fit, in a fresh process.",
        "",
        "| task | measured | scikit-learn | here | ratio | target | |",
        "|---|---|---|---|---|---|---|",
    ]
    for at, task in enumerate(TASKS):
        theirs, ours = (in_fresh_process(name, task, options) for name in VECTORIZERS)
        assert theirs["sum"] == ours["sum"], "the counts differ"
        rows = [row(task, what, theirs[what], ours[what], TARGETS[what][at]) for what in TARGETS]
        print("\n".join(rows), flush=True)
        lines += rows
    print("\n".join(["", *lines]))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return 0


def row(task: str, what: str, theirs: float, ours: float, target: float) -> str:
    """Return a row of the table, with PASS or FAIL."""
    if what == "peak memory":
        ratio, met = ours / theirs, ours <= target * theirs
        shown, wanted = (
            [f"{value / 1e6:,.0f} MB" for value in (theirs, ours)],
            f"at most {target:g}",
        )
    else:
        ratio, met = theirs / ours, theirs >= target * ours
        shown, wanted = [f"{value:.3g} s" for value in (theirs, ours)], f"at least {target:g}"
    verdict = "PASS" if met else "FAIL"
    return f"| {task} | {what} | {shown[0]} | {shown[1]} | {ratio:.2f} | {wanted} | {verdict} |"


def in_fresh_process(name: str, task: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return what `measure` says in a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", name, task]
    command += ["--reviews", str(options.reviews), "--runs", str(options.runs)]
    if options.rows is not None:
        command += ["--rows", str(options.rows)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"measuring {name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(name: str, task: str, options: argparse.Namespace) -> dict[str, float]:
    """Return CPU seconds and bytes of one vectorizer at one task."""
    train, test = load_texts(problems.find_reviews(options.reviews), options.rows)
    kind, parameters = VECTORIZERS[name], TASKS[task]
    kind(**parameters).fit(train[:200])  # imports
    vectorizer = kind(**parameters)
    result: dict[str, float] = {}

    def first() -> None:
        result["fit, cold"] = cpu_seconds(lambda: vectorizer.fit_transform(train))

    result["peak memory"] = memory.peak_beyond(first)[0]
    runs = range(options.runs)
    result["fit, warm"] = min(
        cpu_seconds(lambda: kind(**parameters).fit_transform(train)) for _ in runs
    )
    result["transform"] = min(cpu_seconds(lambda: vectorizer.transform(test)) for _ in runs)
    some = [[text] for text in test[:200]]
    result["one document"] = min(
        cpu_seconds(lambda: [vectorizer.transform(one) for one in some]) for _ in range(5)
    ) / len(some)
    result["sum"] = int(vectorizer.transform(test).sum())
    return result


def cpu_seconds(function: Callable[[], Any]) -> float:
    """Return the seconds that the process computes for while a function runs."""
    started = time.process_time()
    function()
    return time.process_time() - started


def load_texts(reviews: Path | None, rows: int | None) -> tuple[list[str], list[str]]:
    """Return training and held-out texts: the IMDB reviews, or ones of generated words."""
    if reviews:
        found = [
            load_reviews(reviews / f"imdb_{part}.csv.gz", text="text", label="label").data
            for part in ("train", "test")
        ]
        return list(found[0][:rows]), list(found[1][:rows])
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlu"))
    words = np.array(["".join(rng.choice(letters, size)) for size in rng.integers(1, 12, 20_000)])
    texts = [
        " ".join(words[(rng.zipf(1.3, 200) - 1) % len(words)]) for _ in range(2 * (rows or 5_000))
    ]
    return texts[::2], texts[1::2]


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--runs", type=int, default=3, help="of what is warm: the best counts")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the page goes")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
