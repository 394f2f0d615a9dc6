"""One pass over batches: partial_fit, ours and SGDClassifier's, beside fit on all documents.

``python benchmarks/bench_streaming.py [--reviews FOLDER] [--sizes 5000 1000 200]``

Training documents come in a random order, in batches of several sizes, each seen once. The
competitor is scikit-learn's logistic regression by averaged stochastic gradient descent, with its
defaults and with the best `alpha` of a few, chosen on the test documents in its favour.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line, machine, problems  # noqa: E402
from sklearn_clsattn import ClsAttentionClassifier  # noqa: E402

OUTPUT = ROOT / "benchmarks" / "results" / "streaming.md"
ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6)
# What one pass may lose against fit on all documents at once.
MAX_LOSS = 0.01


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    reviews = problems.find_reviews(options.reviews)
    described = machine.describe()
    lines = [
        "# Learning from batches",
        "",
        f"`python benchmarks/bench_streaming.py`, {datetime.date.today().isoformat()}.",
        "",
        machine.summary(described),
        "",
        *machine.warning(described),
        "Test accuracy after one pass, and seconds for all of it. SGD: scikit-learn's "
        "`SGDClassifier(loss='log_loss', average=True)`, by its default `alpha` and by the best "
        f"on the test documents of {', '.join(f'{alpha:g}' for alpha in ALPHAS)}.",
        "",
        "| documents | batches of | fit on all | partial_fit | SGD, default | SGD, best alpha "
        "| seconds: fit, partial_fit, SGD |",
        "|---|---|---|---|---|---|---|",
    ]
    losses = []
    for spec in problems.specs(reviews):
        problem = problems.load(spec, reviews, n_rows=options.rows)
        rows, worst = compare(problem, options.sizes)
        lines += rows
        losses.append(worst)
        print("\n".join(rows), flush=True)
    verdict = "met" if max(losses) <= MAX_LOSS else f"missed by {max(losses) - MAX_LOSS:.4f}"
    lines += [
        "",
        f"One pass loses at most {MAX_LOSS:g} of accuracy against fit: {max(losses):+.4f} at "
        f"worst, {verdict}.",
        "",
    ]
    print("\n".join(lines))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(lines), encoding="utf-8")
    return 0


def compare(problem: problems.Problem, sizes: list[int]) -> tuple[list[str], float]:
    """Return a row of the table for each size of batches, and what partial_fit loses at most."""
    order = np.random.default_rng(0).permutation(len(problem.y_train))
    X, y = problem.X_train[order], problem.y_train[order]
    ClsAttentionClassifier().fit(X[:50], y[:50])  # imports
    started = time.perf_counter()
    whole = ClsAttentionClassifier().fit(X, y)
    fit_seconds = time.perf_counter() - started
    aim = whole.score(problem.X_test, problem.y_test)
    rows, lost = [], -np.inf
    for size in sizes:
        ours, seconds = one_pass(ClsAttentionClassifier, X, y, size)
        reached = ours.score(problem.X_test, problem.y_test)
        lost = max(lost, aim - reached)
        default, sgd_seconds = one_pass(sgd, X, y, size)
        best = max(
            one_pass(lambda alpha=alpha: sgd(alpha), X, y, size)[0].score(
                problem.X_test, problem.y_test
            )
            for alpha in ALPHAS
        )
        rows.append(
            f"| {problem.title} | {size:,} | {aim:.4f} | {reached:.4f} "
            f"| {default.score(problem.X_test, problem.y_test):.4f} | {best:.4f} "
            f"| {fit_seconds:.2f}, {seconds:.2f}, {sgd_seconds:.2f} |"
        )
    return rows, lost


def sgd(alpha: float = 1e-4) -> SGDClassifier:
    return SGDClassifier(loss="log_loss", average=True, alpha=alpha, random_state=0)


def one_pass(make: Callable[[], Any], X: Any, y: Any, size: int) -> tuple[Any, float]:
    """Return a model that has seen every batch once, and the seconds of all its calls."""
    model, classes, seconds = make(), np.unique(y), 0.0
    for start in range(0, len(y), size):
        batch = X[start : start + size], y[start : start + size]
        started = time.perf_counter()
        model.partial_fit(*batch, classes=classes)
        seconds += time.perf_counter() - started
    return model, seconds


def _parser() -> argparse.ArgumentParser:
    parser = command_line.reviews_parser(__file__, __doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5000, 1000, 200])
    parser.add_argument("--rows", type=int, help="of each half, for a trial")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the page goes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
