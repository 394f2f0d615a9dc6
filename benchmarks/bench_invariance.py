"""Relations that hold exactly on paper: how far fits are from them, in single and double precision.

``python -m benchmarks.bench_invariance [--problems 100]`` permutes documents, tokens and classes of
generated problems, replaces copies by weights and multiplies X, and prints the median and the
largest change of a probability. With ``--explore FOLDER`` it prints the largest change on the
sets there, by permuting tokens and by training on to ``tol=1e-9``.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_clsattn import ClsAttentionClassifier

from . import command_line, pages
from .defaults.sets import sources, splits

SETTINGS: dict[str, dict[str, Any]] = {"C chosen": {}, "C=1": {"C": 1.0}}
DTYPES = {"single": np.int64, "double": np.float64}


def on_sets(folder: Path | None, sizes: list[int]) -> str:
    """Return a row for each set and size: changes by permuting tokens and by training on."""
    rows = []
    for split in splits(sources(folder, None), seeds=1, sizes=sizes):
        X, asked = split.counts()
        model = ClsAttentionClassifier().fit(X, split.y_train)
        expected, predicted = model.predict_proba(asked), model.predict(asked)
        columns = np.random.default_rng(0).permutation(X.shape[1])
        permuted = ClsAttentionClassifier().fit(X[:, columns], split.y_train)
        further = ClsAttentionClassifier(C=model.C_, tol=1e-9, max_iter=5000)
        further.fit(X.astype(float), split.y_train)
        cells = [
            f"{np.abs(other.predict_proba(matrix) - expected).max():.3f}, "
            f"{(other.predict(matrix) != predicted).sum()}"
            for other, matrix in ((permuted, asked[:, columns]), (further, asked))
        ]
        rows.append((split.set, split.size, f"{model.C_:.2f}", *cells))
    return pages.table(("set", "documents", "C", "tokens permuted", "trained on"), rows)


def on_generated(n_problems: int) -> str:
    """Return a row for each relation: median and largest change of a probability."""
    changes = defaultdict(list)
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(40, 300)), int(rng.integers(10, 200)), int(rng.integers(2, 4))
        y, means = np.arange(n) % k, rng.gamma(0.5, 1.0, d) * rng.lognormal(0, 0.5, (k, d))
        X, asked = rng.poisson(means[y]), rng.poisson(means[y])
        y = np.where(rng.random(n) < 0.2, rng.integers(0, k, n), y)  # mistakes in every class
        for precision, dtype in DTYPES.items():
            for setting, parameters in SETTINGS.items():
                data = X.astype(dtype), y, asked.astype(dtype), parameters
                for name, change in relations(*data, np.random.default_rng(seed)):
                    changes[setting, name, precision].append(change)
    shown = {key: f"{np.median(values):.0e}, {max(values):.0e}" for key, values in changes.items()}
    rows = [
        (*key, *(shown[*key, precision] for precision in DTYPES))
        for key in dict.fromkeys(key[:2] for key in changes)
    ]
    return pages.table(("", "", *DTYPES), rows)


def relations(X: Any, y: Any, asked: Any, parameters: Any, rng: Any) -> Iterator[tuple[str, float]]:
    """Yield names of relations, and the largest change of a probability under each."""

    def fitted(X: Any, y: Any, weights: Any = None) -> ClsAttentionClassifier:
        return ClsAttentionClassifier(**parameters).fit(X, y, sample_weight=weights)

    expected = fitted(X, y).predict_proba(asked)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    times = rng.integers(1, 3, len(X))
    copies = fitted(np.repeat(X, times, axis=0), np.repeat(y, times)).predict_proba(asked)
    permuted = fitted(X[:, columns], y).predict_proba(asked[:, columns])
    reversed_classes = fitted(X, y.max() - y).predict_proba(asked)[:, ::-1]
    pairs = {
        "documents permuted": (fitted(X[rows], y[rows]).predict_proba(asked), expected),
        "tokens permuted": (permuted, expected),
        "classes permuted": (reversed_classes, expected),
        "weights for copies": (fitted(X, y, times).predict_proba(asked), copies),
        "3 times X": (fitted(3 * X, y).predict_proba(3 * asked), expected),
    }
    for name, (one, other) in pairs.items():
        yield name, float(np.abs(one - other).max())


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_invariance", __doc__)
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--explore", type=Path, help="folder of sets, NAME.csv.gz")
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000, 8000])
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    sets = options.explore and on_sets(options.explore, options.sizes)
    print(sets or on_generated(options.problems))
    return 0


if __name__ == "__main__":
    sys.exit(main())
