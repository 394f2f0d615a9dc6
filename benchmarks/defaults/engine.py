"""Measure variants of a default on splits of training documents, and write a page of the answers.

``python -m benchmarks.defaults [QUESTION ...] --explore FOLDER --reviews FOLDER [--fast]``

Answers are appended to a file, so that a run that was interrupted continues. Answers that were
measured with other default parameters are measured again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch

from benchmarks import command_line, pages
from benchmarks.timing import quality, timed
from sklearn_clsattn import ClsAttentionClassifier

from .questions import QUESTIONS, Question, Variant
from .sets import Split, sources, splits

_NOTES = (
    "Measured on training documents alone: of every set a quarter is held out for the measures. "
    "Means over splits, then over sizes, then over sets; ± is one standard error over sets. "
    "Differences are from the first variant. *Won*: sets with the higher and with the lower "
    "accuracy. CPU: that of tuning and fit, over the first variant's."
)
_DEFAULTS = ClsAttentionClassifier().get_params()  # which answers rest on
_KEY = ["set", "seed", "size"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = command_line.parser("defaults", __doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--explore", type=Path, help="folder of NAME.csv.gz: text, label, part")
    parser.add_argument("--reviews", type=Path, help="folder of the reviews' training files")
    parser.add_argument("--fast", action="store_true", help="generated documents, one split")
    folder = Path(tempfile.gettempdir()) / "clsattn-defaults"
    parser.add_argument("--folder", type=Path, default=folder, help="where answers are written")
    parser.add_argument("--output", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # processor times are compared
    if not (options.fast or options.explore or options.reviews):
        print("no documents: name a folder with --explore, or try --fast", file=sys.stderr)
        return 2
    readers = sources(*(None, None) if options.fast else (options.explore, options.reviews))
    parts = []
    for name in options.questions or QUESTIONS:
        question = QUESTIONS[name]
        file = options.folder / f"{name}{'-fast' * options.fast}.jsonl"
        seeds = 1 if options.fast else question.seeds
        ask(question, readers, file, seeds=seeds)
        parts += [f"## {question.title}", tables(question, answers(file))]
    command = f"python -m benchmarks.defaults {' '.join(options.questions)}".strip()
    page = pages.page("How the defaults were chosen", command, _NOTES, *parts)
    pages.publish(page, options.output)
    return 0


def ask(question: Question, readers: Any, file: Path, *, seeds: int) -> None:
    """Measure a question on every split that is not yet in the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    known = {(row["set"], row["seed"], row["size"]) for row in _lines(file)}
    found = splits(readers, seeds=seeds, sizes=question.sizes, skip=lambda key: key in known)
    for split in found:
        if split.work > question.max_work or (split.work > 2e7 and split.seed > 1):
            continue
        key = {"set": split.set, "seed": split.seed, "size": split.size, "defaults": _DEFAULTS}
        rows = {
            name: measure(variant, split, texts=question.texts)
            for name, variant in question.variants.items()
        }
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**key, "rows": rows}) + "\n")
        print(f"{question.title} {split.set} {split.size} {split.seed}", file=sys.stderr)


def measure(variant: Variant, split: Split, *, texts: bool) -> dict[str, float | None]:
    """Return accuracy, log loss, calibration error and processor seconds of a variant."""
    X, X_test = (split.texts_train, split.texts_test) if texts else split.counts
    tried = [{"C": C} for C in variant.best_of] or [{}]
    results = []
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # baselines need not converge
        for name, value in variant.constants.items():
            stack.enter_context(patch(f"sklearn_clsattn.{name}", value))
        for parameters in tried:
            made = variant.make(**parameters)
            model, seconds = timed(partial(made.fit, X, split.y_train), time.process_time)
            results.append({**quality(model, X_test, split.y_test), "seconds": seconds})
    return results[0] if len(results) == 1 else min(results, key=lambda row: row["log_loss"])


def answers(file: Path) -> pd.DataFrame:
    """Return the answers, one row for each split and variant."""
    rows = [
        {**{key: line[key] for key in _KEY}, "variant": variant, **row}
        for line in _lines(file)
        for variant, row in line["rows"].items()
    ]
    frame = pd.DataFrame(rows, columns=[*_KEY, "variant", "accuracy", "log_loss", "ece", "seconds"])
    return frame.assign(size=frame["size"].fillna(np.inf)).astype({"log_loss": float, "ece": float})


def tables(question: Question, found: pd.DataFrame) -> str:
    """Return the tables of a question: over all sizes, and by size."""
    if found.empty:
        return "Not measured."
    first = next(iter(question.variants))
    base = found.loc[found["variant"] == first, [*_KEY, "accuracy", "log_loss", "seconds"]]
    found = found.merge(base, on=_KEY, suffixes=("", "_first"))
    found["points"] = 100 * (found["accuracy"] - found["accuracy_first"])
    found["loss"] = found["log_loss"] - found["log_loss_first"]
    found["cpu"] = found["seconds"] / found["seconds_first"]
    what = ["accuracy", "points", "log_loss", "loss", "ece", "cpu"]
    by_size = found.groupby(["variant", "set", "size"])[what].mean()
    by_set = by_size.groupby(["variant", "set"]).mean()
    rows, of_sizes = [], []
    for name in question.variants:
        mean, error, sets = by_set.loc[name].mean(), by_set.loc[name].sem(), by_set.loc[name]
        won = f"{(sets['points'] > 0).sum()} to {(sets['points'] < 0).sum()}"
        points = f"{mean['points']:+.2f} ± {error['points']:.2f}"
        loss = f"{mean['loss']:+.4f} ± {error['loss']:.4f}"
        shown = ("", "") if name == first else (points, won)
        measured = f"{mean['log_loss']:.4f}", "" if name == first else loss
        last = f"{100 * mean['ece']:.2f}", f"{mean['cpu']:.2f}"
        rows.append((name, f"{mean['accuracy']:.4f}", *shown, *measured, *last))
        means = by_size.loc[name].groupby("size")[["points", "loss", "cpu"]].mean()
        of_sizes.append(
            (name, *(f"{r.points:+.2f}, {r.loss:+.4f}, {r.cpu:.2f}" for r in means.itertuples()))
        )
    header = ("", "accuracy", "points", "won", "log loss", "difference", "ECE, %", "CPU")
    n_sets = found.groupby("size")["set"].nunique()
    sizes = ["all" if np.isinf(size) else f"{size:,.0f}" for size in n_sets.index]
    heads = [f"{size} ({n} sets)" for size, n in zip(sizes, n_sets, strict=True)]
    parts = [pages.table(header, rows)]
    if len(sizes) > 1:
        parts.append(pages.table(("points, log loss, CPU", *heads), of_sizes))
    return "\n\n".join(parts)


def _lines(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of answers that were measured with the present defaults."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["defaults"] == _DEFAULTS]
