"""From which size on a second thread makes a fit faster: what ``FEW_MULTIPLICATIONS`` is from.

``python benchmarks/bench_threads.py [--reviews FOLDER]`` prints, for some documents of each
problem, seconds of a default fit on one thread and on two, medians of interleaved runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402
from sklearn_clsattn._core import backend  # noqa: E402

SIZES = (500, 2_000, 8_000, 16_000)


def seconds(X: Any, y: Any, runs: int) -> dict[int, float]:
    """Return the median seconds of a fit by number of threads."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(1 + runs):
        for threads, times in found.items():
            torch.set_num_threads(threads)
            started = time.perf_counter()
            ClsAttentionClassifier().fit(X, y)
            times.append(time.perf_counter() - started)
    return {threads: median(times[1:]) for threads, times in found.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--runs", type=int, default=3, help="fits of each kind")
    options = parser.parse_args(arguments)
    described = machine.describe()
    print(machine.summary(described))
    print(*machine.warning(described), sep="\n")
    backend.FEW_MULTIPLICATIONS = 0  # as many threads as set
    reviews = problems.find_reviews(options.reviews)
    print("\n| problem | documents | multiplications | one thread, s | two, s | two / one |")
    print("|---|---|---|---|---|---|")
    for spec in problems.REAL if reviews else problems.GENERATED:
        problem = problems.load(spec, reviews)
        order = np.random.default_rng(0).permutation(len(problem.y_train))
        n_classes = len(np.unique(problem.y_train))
        for n in SIZES:
            X, y = problem.X_train[order[:n]], problem.y_train[order[:n]]
            work = X.nnz * (2 if n_classes == 2 else 1 + n_classes)
            one, two = seconds(X, y, options.runs).values()
            found = f"{work:,} | {one:.3f} | {two:.3f} | {two / one:.2f}"
            print(f"| {problem.title} | {n:,} | {found} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
