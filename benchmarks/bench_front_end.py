"""make_text_classifier, untuned, against linear models tuned on the same features.

``python benchmarks/bench_front_end.py --explore FOLDER [--sets mr trec] [--splits 2]
[--documents 4000]``

FOLDER has one ``NAME.csv.gz`` a set, with the columns text, label and part; rows whose part is
"test" are left out, and so are classes of fewer than 20 documents. Of every split, a quarter of the
documents, by class, is drawn to test on, and at most ``--documents`` of the others are trained on.
Baselines get the TF-IDF of the same words, pairs of words, punctuation and characters, and choose
among five C by accuracy in three folds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from sklearn.model_selection import train_test_split

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import command_line  # noqa: E402
from benchmarks.defaults.sets import read_training  # noqa: E402
from sklearn_clsattn.comparison import compare, default_models  # noqa: E402

OURS = "ClsAttentionClassifier"
_SMALLEST_CLASS = 20


def measure(path: Path, *, splits: int, documents: int) -> pd.DataFrame:
    """Return accuracy in percent, log loss and fit seconds, a row a model, means over splits."""
    texts, labels = read_training(path)
    large = pd.Series(labels).map(pd.Series(labels).value_counts()).to_numpy() >= _SMALLEST_CLASS
    texts, labels = texts[large], labels[large]
    models = [model for model in default_models() if model.features != "counts"]
    rows = []
    for seed in range(splits):
        train, test, y_train, y_test = train_test_split(
            texts, labels, test_size=0.25, stratify=labels, random_state=seed
        )
        if documents < len(train):
            train, _, y_train, _ = train_test_split(
                train, y_train, train_size=documents, stratify=y_train, random_state=seed
            )
        for result in compare(train, y_train, test, y_test, tune=True, models=models).models:
            rows.append(
                {
                    "model": result.name,
                    "accuracy": 100 * result.accuracy,
                    "log_loss": result.log_loss,
                }
            )
    return pd.DataFrame(rows).groupby("model", sort=False).mean()


def table(results: dict[str, pd.DataFrame]) -> str:
    """Return a Markdown table: every set's measures, and ours less those of the best baseline."""
    names = list(next(iter(results.values())).index)
    lines = ["| set | " + " | ".join(names) + " | ours less the best |", "|---" * (len(names) + 2)]
    lines[1] += "|"
    gains, losses = [], []
    for name, result in results.items():
        accuracy, loss = result["accuracy"], result["log_loss"]
        others = [model for model in names if model != OURS]
        gains.append(accuracy[OURS] - accuracy[others].max())
        losses.append(loss[OURS] - loss[others].min())
        cells = [
            f"{accuracy[model]:.2f}" + ("" if pd.isna(loss[model]) else f" / {loss[model]:.4f}")
            for model in names
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {gains[-1]:+.2f} / {losses[-1]:+.4f} |")
    change = pd.DataFrame({"accuracy": gains, "log_loss": losses})
    mean, error = change.mean(), change.sem()
    empty = " |" * len(names)
    lines.append(f"| **mean** |{empty} {mean['accuracy']:+.2f} / {mean['log_loss']:+.4f} |")
    if len(change) > 1:
        lines.append(
            f"| standard error |{empty} {error['accuracy']:.2f} / {error['log_loss']:.4f} |"
        )
    won = (change["accuracy"] > 0).sum(), (change["log_loss"] < 0).sum()
    lines.append(f"| better, of {len(change)} sets |{empty} {won[0]} / {won[1]} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    found = {path.name.removesuffix(".csv.gz"): path for path in args.explore.glob("*.csv.gz")}
    results = {}
    for name in args.sets or sorted(found, key=lambda name: found[name].stat().st_size):
        if name not in found:
            print(f"There is no {name}.csv.gz in {args.explore}: left out.", file=sys.stderr)
            continue
        results[name] = measure(found[name], splits=args.splits, documents=args.documents)
        print(f"{name}: {results[name].round(4).to_dict('index')}", file=sys.stderr, flush=True)
    if not results:
        print(f"No set was found in {args.explore}.", file=sys.stderr)
        return 1
    print("\nPercent accuracy / log loss; the best is another model for each of the two:\n")
    print(table(results))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line.parser(__file__, __doc__)
    parser.add_argument("--explore", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="all that there are by default")
    parser.add_argument("--splits", type=int, default=2, help="random splits of each set")
    parser.add_argument("--documents", type=int, default=4000, help="to train on at most")
    return parser


if __name__ == "__main__":
    sys.exit(main())
