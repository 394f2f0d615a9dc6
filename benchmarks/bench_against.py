"""Compare this checkout with another one: times, memory and accuracy, in pairs.

``python benchmarks/bench_against.py OTHER_CHECKOUT [--reviews FOLDER] [--pairs 5]``

Processes of the two take turns on the same matrices, so that a machine whose speed drifts slows
both. Each pair gives one ratio; medians are printed. Both use this Python and this script: only the
package is that of the checkout.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
CHILD = "--one-of-a-pair"
RATIOS = ("fit, s", "predict_proba, s", "peak memory beyond X, MB")
VALUES = ("iterations", "accuracy", "log loss")


def measure(checkout: str, path: str) -> dict[str, float]:
    """Return what the package of a checkout takes for a default fit, and what it reaches."""
    sys.path.insert(0, checkout)
    import sklearn_clsattn

    assert Path(sklearn_clsattn.__file__).is_relative_to(checkout), sklearn_clsattn.__file__
    sys.path.insert(0, str(ROOT))  # the benchmarks are this checkout's for both
    from sklearn.metrics import log_loss

    from benchmarks.memory import peak_beyond
    from benchmarks.problems import read
    from sklearn_clsattn import ClsAttentionClassifier

    problem = read(Path(path))
    X, y = problem.X_train, problem.y_train
    some = slice(None, None, len(y) // 500 + 1)
    ClsAttentionClassifier().fit(X[some], y[some]).predict_proba(problem.X_test[:500])  # imports
    model = ClsAttentionClassifier()
    peak = peak_beyond(lambda: model.fit(X, y))
    fits, predictions = [], []
    for _ in range(3):
        started = perf_counter()
        model.fit(X, y)
        fits.append(perf_counter() - started)
    for _ in range(5):
        started = perf_counter()
        proba = model.predict_proba(problem.X_test)
        predictions.append(perf_counter() - started)
    return {
        "fit, s": median(fits),
        "predict_proba, s": median(predictions),
        "peak memory beyond X, MB": peak / 1e6,
        "iterations": model.n_iter_,
        "accuracy": float((model.classes_[proba.argmax(axis=1)] == problem.y_test).mean()),
        "log loss": float(log_loss(problem.y_test, proba)),
    }


def in_a_process(checkout: Path, problem: Path) -> dict[str, float]:
    """Return :func:`measure` in a fresh process."""
    command = [sys.executable, __file__, CHILD, str(checkout), str(problem)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {checkout} failed:\n{done.stderr}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main(arguments: list[str] | None = None) -> int:
    sys.path.insert(0, str(ROOT))
    from benchmarks import command_line, machine, problems

    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--cache", type=Path, default=problems.CACHE, help="of matrices")
    options = parser.parse_args(arguments)
    other = options.other.resolve()
    described = machine.describe()
    print(machine.summary(described), *machine.warning(described), sep="\n")
    reviews = problems.find_reviews(options.reviews)
    for spec in problems.specs(reviews):
        path = problems.load(spec, reviews, n_rows=options.rows, cache=options.cache).path.resolve()
        pairs = [
            (in_a_process(ROOT, path), in_a_process(other, path)) for _ in range(options.pairs)
        ]
        print(f"\n{spec.title}, {options.pairs} pairs: this, the other, this / other")
        for figure in RATIOS:
            here, there = (median(pair[k][figure] for pair in pairs) for k in (0, 1))
            ratios = [one[figure] / two[figure] for one, two in pairs]
            print(
                f"  {figure:26} {here:9.3f} {there:9.3f}   {median(ratios):.3f} "
                f"({min(ratios):.3f} to {max(ratios):.3f})"
            )
        for figure in VALUES:
            print(
                f"  {figure:26} {pairs[0][0][figure]:9.5g} {pairs[0][1][figure]:9.5g}", flush=True
            )
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == [CHILD]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        sys.exit(main())
