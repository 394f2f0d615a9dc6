"""Compare this checkout with another one: times, memory and accuracy, in pairs.

``python -m benchmarks.bench_against OTHER_CHECKOUT [--reviews FOLDER] [--pairs 5]``

Processes of the two take turns on the same matrices, so that a machine whose speed drifts slows
both. Each pair gives one ratio; medians are printed. Both use this Python and these benchmarks:
only the package is that of the checkout.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from sklearn.metrics import log_loss

import sklearn_clsattn
from sklearn_clsattn import ClsAttentionClassifier

from . import command_line, pages, problems
from .memory import peak_beyond
from .processes import in_process
from .timing import interleaved

RATIOS = ("fit, s", "predict_proba, s", "peak memory beyond X, MB")
VALUES = ("iterations", "accuracy", "log loss")


def measure(checkout: str, path: str) -> dict[str, float]:
    """Return what the package of a checkout takes for a default fit, and what it reaches."""
    assert Path(sklearn_clsattn.__file__).is_relative_to(checkout), sklearn_clsattn.__file__
    problem = problems.read(Path(path))
    X, y, asked = problem.X_train, problem.y_train, problem.X_test
    some = slice(None, None, len(y) // 500 + 1)
    ClsAttentionClassifier().fit(X[some], y[some]).predict_proba(asked[:500])  # imports
    model = ClsAttentionClassifier()
    peak = peak_beyond(lambda: model.fit(X, y))
    (fit,) = interleaved(lambda: model.fit(X, y), runs=3)
    (prediction,) = interleaved(lambda: model.predict_proba(asked), runs=5)
    proba = model.predict_proba(asked)
    return {
        "fit, s": fit,
        "predict_proba, s": prediction,
        "peak memory beyond X, MB": peak / 1e6,
        "iterations": model.n_iter_,
        "accuracy": float((model.classes_[proba.argmax(axis=1)] == problem.y_test).mean()),
        "log loss": float(log_loss(problem.y_test, proba)),
    }


def in_a_process(checkout: Path, path: Path) -> dict[str, float]:
    """Return :func:`measure` in a fresh process."""
    return dict(in_process("benchmarks.bench_against.measure", checkout, path, checkout=checkout))


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_against", __doc__, reviews=True)
    parser.add_argument("other", type=Path)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    options = parser.parse_args(arguments)
    checkouts = command_line.ROOT, options.other.resolve()
    reviews = problems.find_reviews(options.reviews)
    parts = []
    for spec in problems.specs(reviews):
        path = problems.load(spec, reviews, n_rows=options.rows).path.resolve()
        pairs = [[in_a_process(one, path) for one in checkouts] for _ in range(options.pairs)]
        rows = []
        for what in RATIOS:
            medians = [f"{median(pair[k][what] for pair in pairs):.3f}" for k in (0, 1)]
            ratios = [one[what] / two[what] for one, two in pairs]
            shown = f"{median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            rows.append((what, *medians, shown))
        rows += [(what, *(f"{one[what]:.5g}" for one in pairs[0]), "") for what in VALUES]
        header = spec.title, "this", "the other", "this / other"
        parts.append(pages.table(header, rows))
    command = f"python -m benchmarks.bench_against CHECKOUT --pairs {options.pairs}"
    print(pages.page("This checkout against another", command, *parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
