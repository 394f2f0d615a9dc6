"""How far relations that hold exactly on paper are off in single and double precision.

Prints the median and the largest change of a probability over generated problems, for a permutation
of documents, of tokens, of classes, for weights against repetition, and for a multiple of X.
"""

import argparse
import warnings
from collections import defaultdict

import numpy as np

from sklearn_clsattn import ClsAttentionClassifier

SETTINGS = {
    "C chosen, default tol": {},
    "C=1, default tol": {"C": 1.0},
    "C=1, tol=1e-5": {"C": 1.0, "tol": 1e-5, "max_iter": 1000},
}


def relations(X, y, asked, parameters, rng):
    """Yield names of relations, and the largest change of a probability under each."""

    def fitted(X, y, weights=None):
        return ClsAttentionClassifier(**parameters).fit(X, y, sample_weight=weights)

    expected = fitted(X, y).predict_proba(asked)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    times = rng.integers(1, 3, len(X))
    repeated = fitted(np.repeat(X, times, axis=0), np.repeat(y, times)).predict_proba(asked)
    pairs = {
        "documents in another order": (fitted(X[rows], y[rows]).predict_proba(asked), expected),
        "tokens in another order": (
            fitted(X[:, columns], y).predict_proba(asked[:, columns]),
            expected,
        ),
        "classes in another order": (
            fitted(X, y.max() - y).predict_proba(asked)[:, ::-1],
            expected,
        ),
        "weights against repetition": (fitted(X, y, times).predict_proba(asked), repeated),
        "3 times X": (fitted(3 * X, y).predict_proba(3 * asked), expected),
    }
    for name, (one, other) in pairs.items():
        yield name, float(np.abs(one - other).max())


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100)
    n_problems = parser.parse_args().problems
    warnings.simplefilter("ignore")
    found = defaultdict(list)
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        n, d, k = int(rng.integers(40, 300)), int(rng.integers(10, 200)), int(rng.integers(2, 4))
        y, means = np.arange(n) % k, rng.gamma(0.5, 1.0, d) * rng.lognormal(0, 0.5, (k, d))
        X, asked = rng.poisson(means[y]), rng.poisson(means[y])
        y = np.where(rng.random(n) < 0.2, rng.integers(0, k, n), y)  # no class without mistakes
        for precision, dtype in (("single", np.int64), ("double", np.float64)):
            for setting, parameters in SETTINGS.items():
                parts = X.astype(dtype), y, asked.astype(dtype), parameters
                for name, change in relations(*parts, np.random.default_rng(seed)):
                    found[setting, name, precision].append(change)
    print(f"{n_problems} problems: median, largest change of a probability")
    print("| | | single | double |\n|---|---|---|---|")
    for setting in SETTINGS:
        for name in dict.fromkeys(name for _, name, _ in found):
            cells = (found[setting, name, precision] for precision in ("single", "double"))
            shown = " | ".join(f"{np.median(cell):.0e}, {max(cell):.0e}" for cell in cells)
            print(f"| {setting} | {name} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
