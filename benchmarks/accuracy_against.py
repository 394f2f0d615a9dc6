"""Accuracy and log loss of this checkout and of another one, on the same splits.

``python -m benchmarks.accuracy_against OTHER_CHECKOUT --explore FOLDER [--seeds 5]``

Default text classifiers, on training texts of the exploration sets (:mod:`.defaults.sets`). Each
set has a process for each checkout, with one thread. A change may cost at most 0.05 points and
.0005 of log loss in the mean over the sets.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import pandas as pd
from sklearn.metrics import log_loss

import sklearn_clsattn
from sklearn_clsattn import TextClassifier

from . import command_line, pages
from .defaults.sets import sources, splits
from .processes import in_process

SIZES = 300, 2_000, None
_ALL = "all"


def measured(
    checkout: str, explore: str | None, name: str, seeds: int, sizes: list[int | None]
) -> list[dict[str, float | str]]:
    """Return what the package of a checkout reaches on the splits of a set, and its seconds."""
    assert Path(sklearn_clsattn.__file__).is_relative_to(checkout), sklearn_clsattn.__file__
    warnings.simplefilter("ignore")
    reader = sources(Path(explore) if explore else None, None)[name]
    rows: list[dict[str, float | str]] = []
    for split in splits({name: reader}, seeds=seeds, sizes=sizes):
        model = TextClassifier()
        started = time.process_time()
        model.fit(split.texts_train, split.y_train)
        seconds = time.process_time() - started
        probabilities = model.predict_proba(split.texts_test)
        classes = model.classes_
        predictions = classes[probabilities.argmax(axis=1)]
        row = {
            "set": name,
            "size": _ALL if split.size is None else f"{split.size:,}",
            "seed": split.seed,
            "seconds": seconds,
            "accuracy": float((predictions == split.y_test).mean()),
            "log_loss": float(log_loss(split.y_test, probabilities, labels=classes)),
        }
        rows.append(row)
    return rows


def differences(here: pd.DataFrame, there: pd.DataFrame) -> pd.DataFrame:
    """Return points, log loss and the ratio of seconds, means by size and set of both's splits."""
    both = here.merge(there, on=["set", "size", "seed"], suffixes=("", "_there"))
    both["points"] = 100 * (both["accuracy"] - both["accuracy_there"])
    both["loss"] = both["log_loss"] - both["log_loss_there"]
    both["ratio"] = both["seconds"] / both["seconds_there"]
    return both.groupby(["size", "set"])[["points", "loss", "ratio"]].mean()


def main(arguments: list[str] | None = None) -> int:
    """Measure both, and print the means."""
    parser = command_line.parser("accuracy_against", __doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--explore", type=Path, help="folder of sets; else texts are generated")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    options = parser.parse_args(arguments)
    checkouts = command_line.ROOT, options.other.resolve()
    found: dict[Path, list[dict[str, float | str]]] = {one: [] for one in checkouts}
    for name in options.sets or sources(options.explore, None):
        for checkout in checkouts:
            given = checkout, options.explore, name, options.seeds, SIZES
            call = "benchmarks.accuracy_against.measured", *given
            found[checkout] += in_process(*call, checkout=checkout, one_thread=True)
        print(name, file=sys.stderr, flush=True)
    here, there = (pd.DataFrame(found[one]) for one in checkouts)
    by_set = differences(here, there)
    rows = []
    for size, of_size in by_set.groupby(level="size", sort=False):
        rows.append([size, len(of_size), *_numbers(of_size)])
    rows.append(["**mean**", len(by_set), *_numbers(by_set)])
    command = f"python -m benchmarks.accuracy_against CHECKOUT --seeds {options.seeds}"
    notes = f"{len(here)} fits each. Means over sets: this checkout minus the other one."
    header = "training texts", "sets", "accuracy, points", "log loss", "processor seconds, ratio"
    print(
        pages.page("Accuracy against another checkout", command, notes, pages.table(header, rows))
    )
    return 0


def _numbers(differences: pd.DataFrame) -> list[str]:
    """Return the means of points, log loss and the ratio of seconds."""
    points, loss, ratio = differences.mean()
    return [f"{points:+.3f}", f"{loss:+.4f}", f"{ratio:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
