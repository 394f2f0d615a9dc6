"""What choosing C costs: cross-validation over 10 values beside one fit.

``python benchmarks/bench_path.py [--reviews FOLDER] [--runs 5] [--folds 5]``

The problem is IMDB as unigram counts where the reviews are, else generated documents. Runs
alternate, so that a busy machine slows down all alike; ratios are of runs next to each other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier, ClsAttentionClassifierCV  # noqa: E402

TARGET_RATIO = 6.0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    described = machine.describe()
    print(machine.summary(described))
    print(*machine.warning(described), sep="\n")
    chosen = [problems.GENERATED[0]]
    if reviews := problems.find_reviews(options.reviews):
        chosen.append(problems.REAL[0])
    for spec in chosen:
        problem = problems.load(spec, reviews if spec.stem else None, n_rows=options.rows)
        print(*compare(problem, options.runs, options.folds), sep="\n", flush=True)
    return 0


def compare(problem: problems.Problem, runs: int, n_folds: int) -> list[str]:
    """Return lines on what each way of choosing C takes, and on what it chooses."""
    X, y = problem.X_train, problem.y_train
    ClsAttentionClassifier().fit(X[:100], y[:100])  # imports
    ways: dict[str, Any] = {"cross-validation": ClsAttentionClassifierCV(cv=n_folds)}
    ways['C="auto"'] = ClsAttentionClassifier(C="auto")
    seconds: dict[str, list[float]] = {"one fit": [], **{name: [] for name in ways}}
    for _ in range(runs):
        for name, model in ways.items():
            seconds[name].append(timed(model, X, y))
        alone = ClsAttentionClassifier(C=ways["cross-validation"].C_)
        seconds["one fit"].append(timed(alone, X, y))
    lines = [
        f"{problem.title}, {X.shape[0]:,} documents, {X.nnz:,} entries; one fit at the C that "
        f"cross-validation chose: {statistics.median(seconds['one fit']):.2f} s in the median of "
        f"{runs}, test accuracy {alone.score(problem.X_test, problem.y_test):.4f}"
    ]
    for name, model in ways.items():
        ratio = statistics.median(
            whole / one for whole, one in zip(seconds[name], seconds["one fit"], strict=True)
        )
        n_used, n_Cs = model.scores_.shape
        lines.append(
            f"- {name}: C = {model.C_:.3g} by {n_Cs} values x {n_used} folds, "
            f"{statistics.median(seconds[name]):.2f} s, {ratio:.1f} fits, test accuracy "
            f"{model.score(problem.X_test, problem.y_test):.4f}"
        )
        if name == "cross-validation":
            lines[-1] += (
                f" (target {TARGET_RATIO:g}: {'met' if ratio <= TARGET_RATIO else 'missed'})"
            )
    return lines


def timed(model: Any, X: Any, y: Any) -> float:
    """Return the seconds of a fit."""
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=None, help="of each half, for a trial")
    return parser


if __name__ == "__main__":
    sys.exit(main())
