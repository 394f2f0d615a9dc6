"""How far relations that hold exactly on paper are off in single and double precision.

Prints the median and the largest change of a probability over generated problems, for a permutation
of documents, of tokens, of classes, for weights against repetition, and for a multiple of X. With
``--explore FOLDER`` instead, on the sets there: the largest change of a test document's probability
by two permutations of the tokens, and by training on to ``tol=1e-9``; how many predictions change;
and what the default fit takes over one with ``tol=1e-2``.
"""

import argparse
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from sklearn_clsattn import ClsAttentionClassifier

SETTINGS = {"C chosen": {}, "C=1": {"C": 1.0}}
SIZES = (400, 2_000, 8_000)


def on_sets(folder):
    """Print a row a set and size: changes by other orders of tokens and by training on."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.defaults.sets import read_training

    print("| set | documents | C | order of tokens | trained on | CPU |\n|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.csv.gz")):
        texts, labels = read_training(path)
        order = np.random.default_rng(0).permutation(len(texts))
        test, train = np.split(order, [min(1_000, len(order) // 4)])
        for size in SIZES:
            if size > len(train):
                continue
            y = labels[train[:size]]
            vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=2)
            X, asked = (
                vectorizer.fit_transform(texts[train[:size]]),
                vectorizer.transform(texts[test]),
            )
            model, seconds = timed(ClsAttentionClassifier(), X, y)
            expected, predicted = model.predict_proba(asked), model.predict(asked)
            cells = []
            for seed in (0, 1):
                columns = np.random.default_rng(seed).permutation(X.shape[1])
                other = ClsAttentionClassifier().fit(X[:, columns], y)
                cells.append(changes(other, asked[:, columns], expected, predicted))
            on = ClsAttentionClassifier(C=model.C_, tol=1e-9, max_iter=5000)
            further = changes(on.fit(X.astype(float), y), asked, expected, predicted)
            loose = timed(ClsAttentionClassifier(tol=1e-2), X, y)[1]
            print(
                f"| {path.name.removesuffix('.csv.gz')} | {size} | {model.C_:.2f} | "
                f"{show(max(cells))} | {show(further)} | {seconds / loose:.2f} |",
                flush=True,
            )


def changes(model, asked, expected, predicted):
    """Return the largest change of a probability, and how many predictions change."""
    change = np.abs(model.predict_proba(asked) - expected).max()
    return float(change), int((model.predict(asked) != predicted).sum())


def show(found):
    return f"{found[0]:.3f}, {found[1]} of predictions"


def timed(model, X, y):
    """Return the fitted model and the least processor seconds of three fits."""
    seconds = []
    for _ in range(3):
        started = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - started)
    return model, min(seconds)


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
    parser.add_argument("--explore", type=Path, help="folder of sets, NAME.csv.gz")
    args = parser.parse_args()
    n_problems = args.problems
    warnings.simplefilter("ignore")
    if args.explore is not None:
        on_sets(args.explore)
        return
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
