"""Accuracy and log loss of this checkout and of another one, on the same splits.

``python -m benchmarks.accuracy_against OTHER_CHECKOUT --explore FOLDER [--seeds 5] [--C 1]``

Text classifiers on training texts of the exploration sets (:mod:`.problems`), with C chosen, or
with a given one, so that they differ by what they compute and not by the choice. Each set has a
process for each checkout, with one thread. A change may cost at most 0.05 points and .0005 of log
loss in the mean over the sets.
"""

from __future__ import annotations

import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import sklearn_clsattn

from . import pages
from .models import quality, text_classifier
from .problems import sources, splits
from .processes import in_process, timed

SIZES = 300, 2_000, None


def measured(
    checkout: str,
    explore: str | None,
    name: str,
    seeds: int,
    sizes: list[int | None],
    parameters: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return what the package of a checkout reaches on the splits of a set, and its seconds."""
    assert Path(sklearn_clsattn.__file__).is_relative_to(checkout), sklearn_clsattn.__file__
    warnings.simplefilter("ignore")
    reader = sources(Path(explore) if explore else None, None)[name]
    rows = []
    for split in splits({name: reader}, seeds=seeds, sizes=sizes):
        fit = partial(text_classifier(**parameters).fit, split.texts_train, split.y_train)
        model, seconds = timed(fit, time.process_time)
        size = "all" if split.size is None else f"{split.size:,}"
        where = {"set": name, "size": size, "seed": split.seed, "seconds": seconds}
        rows.append(where | quality(model, split.texts_test, split.y_test))
    return rows


def differences(here: pd.DataFrame, there: pd.DataFrame) -> pd.DataFrame:
    """Return points, log loss and the ratio of seconds, means by size and set of both's splits."""
    both = here.merge(there, on=["set", "size", "seed"], suffixes=("", "_there"))
    both["points"] = 100 * (both["accuracy"] - both["accuracy_there"])
    both["loss"] = both["log_loss"] - both["log_loss_there"]
    both["ratio"] = both["seconds"] / both["seconds_there"]
    return both.groupby(["size", "set"], sort=False)[["points", "loss", "ratio"]].mean()


def main(arguments: list[str] | None = None) -> int:
    """Measure both, and print the means."""
    parser = pages.parser("accuracy_against", __doc__, "explore")
    parser.add_argument("other", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--C", type=float, help="of both checkouts' models")
    options = parser.parse_args(arguments)
    parameters = {} if options.C is None else {"C": options.C}
    checkouts = pages.ROOT, options.other.resolve()
    found: dict[Path, list[dict[str, Any]]] = {one: [] for one in checkouts}
    for name in options.sets or sources(options.explore, None):
        for checkout in checkouts:
            given = checkout, options.explore, name, options.seeds, SIZES, parameters
            call = "benchmarks.accuracy_against.measured", *given
            found[checkout] += in_process(*call, checkout=checkout, one_thread=True)
        print(name, file=sys.stderr, flush=True)
    here, there = (pd.DataFrame(found[one]) for one in checkouts)
    by_size_and_set = differences(here, there)
    rows = [_row(name, of_set) for name, of_set in by_size_and_set.groupby("set", sort=False)]
    for size, of_size in by_size_and_set.groupby("size", sort=False):
        rows.append(_row(f"mean, {size} texts", of_size))
    rows.append(_row("**mean**", by_size_and_set))
    command = f"accuracy_against CHECKOUT --explore FOLDER --seeds {options.seeds}"
    command += "" if options.C is None else f" --C {options.C:g}"
    notes = (
        f"{len(here)} fits each. This checkout minus the other one, means over splits, then over "
        "sizes and sets."
    )
    header = "", "accuracy, points", "log loss", "processor seconds, ratio"
    title = "Accuracy against another checkout"
    pages.publish(options.output, title, command, notes, pages.table(header, rows))
    return 0


def _row(title: Any, differences: pd.DataFrame) -> list[str]:
    """Return the means of points, log loss and the ratio of seconds."""
    points, loss, ratio = differences.mean()
    return [title, f"{points:+.3f}", f"{loss:+.5f}", f"{ratio:.2f}"]


if __name__ == "__main__":
    sys.exit(main())
