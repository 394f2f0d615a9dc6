"""Compare this checkout with another one: fit time, memory and accuracy, in pairs.

``python benchmarks/bench_against.py OTHER_CHECKOUT [--reviews FOLDER] [--pairs 5]``

Processes of the two take turns on the same matrices, so that a machine whose speed drifts slows
both; every pair gives one ratio, and medians of these are printed. Both run under this Python.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # behind the checkout that PYTHONPATH names

CHILD = "--one-of-a-pair"
FIGURES = ("fit, s", "predict_proba, s", "peak memory beyond X, MB")


def measure(path: str) -> dict[str, float | int]:
    """Return what the package on the path takes for a default fit, and what it reaches."""
    from time import perf_counter

    from sklearn.metrics import log_loss

    from benchmarks.memory import peak_beyond
    from benchmarks.problems import read
    from benchmarks.timing import warm_up_rows
    from sklearn_clsattn import ClsAttentionClassifier

    problem = read(Path(path))
    rows = warm_up_rows(problem.y_train)
    ClsAttentionClassifier().fit(problem.X_train[rows], problem.y_train[rows])
    model = ClsAttentionClassifier()
    peak, _ = peak_beyond(lambda: model.fit(problem.X_train, problem.y_train))
    seconds = []
    for _ in range(3):
        start = perf_counter()
        model.fit(problem.X_train, problem.y_train)
        seconds.append(perf_counter() - start)
    start = perf_counter()
    proba = model.predict_proba(problem.X_test)
    return {
        "predict_proba, s": perf_counter() - start,
        "fit, s": median(seconds),
        "peak memory beyond X, MB": peak / 1e6,
        "iterations": model.n_iter_,
        "accuracy": float((model.classes_[proba.argmax(axis=1)] == problem.y_test).mean()),
        "log loss": float(log_loss(problem.y_test, proba)),
    }


def in_a_process(checkout: Path, problem: Path) -> dict[str, float | int]:
    """Return :func:`measure` with the package of a checkout, in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, CHILD, str(problem)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--reviews", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()

    from benchmarks import machine, problems

    print(json.dumps(machine.describe(), default=str))
    for spec in problems.specs(problems.find_reviews(arguments.reviews)):
        path = problems.load(spec, arguments.reviews).path
        pairs = [
            (in_a_process(ROOT, path), in_a_process(arguments.other.resolve(), path))
            for _ in range(arguments.pairs)
        ]
        print(f"\n{spec.title}, {arguments.pairs} pairs: this, the other, this / other")
        for figure in FIGURES:
            here, there = (median(pair[k][figure] for pair in pairs) for k in (0, 1))
            ratios = [one[figure] / other[figure] for one, other in pairs]
            print(
                f"  {figure:26} {here:9.3f} {there:9.3f}   {median(ratios):.3f} "
                f"({min(ratios):.3f} to {max(ratios):.3f})"
            )
        for figure in ("iterations", "accuracy", "log loss"):
            here, there = (pairs[0][k][figure] for k in (0, 1))
            print(f"  {figure:26} {here:9.5g} {there:9.5g}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        print(json.dumps(measure(sys.argv[2])))
    else:
        main()
