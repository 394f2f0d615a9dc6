"""How the defaults are chosen: variants of a default on splits of training documents.

``python -m benchmarks.defaults [QUESTION ...] --explore FOLDER --reviews FOLDER [--folder FOLDER]``

A variant makes an estimator of counts (of texts, if the question says so); `constants` are names
of the package that are replaced while it is fitted. The first variant is the default. An
interrupted run continues with the answers in the folder.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer

from . import pages
from .models import OURS, quality, text_classifier
from .problems import FEW, SIZES, Split, sources, splits
from .processes import timed


@dataclass(frozen=True)
class Variant:
    """An estimator, and constants of the package; with `best_of`, the best in hindsight.

    `best_of` are values of C, of which the one of least log loss on the test documents is taken.
    """

    make: Callable[..., Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    best_of: tuple[float, ...] = ()


@dataclass(frozen=True)
class Question:
    """Variants by their titles, and the splits that they are measured on."""

    title: str
    variants: dict[str, Variant]
    texts: bool = False
    sizes: tuple[int | None, ...] = SIZES
    seeds: int = 5
    max_work: float = float("inf")


def _ours(make: Any = ClsAttentionClassifier, **parameters: Any) -> Variant:
    return Variant(partial(make, **parameters))


def _with(name: str, value: Any) -> Variant:
    """Return the default with another value of a constant of :mod:`sklearn_clsattn.training`."""
    return Variant(ClsAttentionClassifier, {f"training.{name}": value})


def _tuned(*steps: Any, values: tuple[float, ...], name: str = "C") -> Variant:
    """Return a pipeline tuned by accuracy in three folds, by a parameter of its last step."""

    def make() -> GridSearchCV:
        pipeline = make_pipeline(*steps)
        last = pipeline.steps[-1][0]
        deep = [key for key in pipeline.get_params() if key.startswith(last)]
        (parameter,) = (key for key in deep if key.endswith(f"__{name}"))
        return GridSearchCV(pipeline, {parameter: values}, cv=3, error_score=0.0)

    return Variant(make)


_LOGISTIC = LogisticRegression(max_iter=200)
_NB_WEIGHTED = OneVsRestClassifier(make_pipeline(TokenImportanceTransformer("log_odds"), _LOGISTIC))
_WEIGHTS = TfidfTransformer()
_COUNTS = (0.01, 0.1, 1.0, 10.0)

# To be the default, a cheaper search or another attention_C must lose at most .05 points and .0005
# of log loss, in the means over sets. Written down before the run.
QUESTIONS = {
    "choice_of_c": Question(
        "How is C chosen?",
        {
            'C="auto"': _ours(),
            "the best C in hindsight": Variant(
                ClsAttentionClassifier, best_of=tuple(10.0 ** (k / 2) for k in range(-6, 7))
            ),
            "C=1": _ours(C=1.0),
            "the guess alone": _with("choose_c.GUESS_WORTH", float("inf")),
            "documents held out alone": _with("choose_c.GUESS_WORTH", 0),
            "four folds up to 1,000 documents": _with("choose_c.ENOUGH_DOCUMENTS", 4_000),
            "a sample of 2,000": _with("folds.SAMPLE_SIZE", 2_000),
            "all documents": _with("folds.SAMPLE_SIZE", 10**9),
        },
    ),
    "tolerance": Question(
        "When does training stop?",
        {'tol="auto"': _ours()} | {f"tol={tol:g}": _ours(tol=tol) for tol in (1e-6, 1e-4, 1e-2)},
    ),
    "mean": Question(
        "What is the prior mean of the values?",
        {"share 0.5": _ours()}
        | {
            f"share {share:g}": _with("prior_mean.MEAN_SHARE", share)
            for share in (0.0, 0.25, 0.75, 1.0)
        },
    ),
    "attention": Question(
        "How strongly does attention learn?",
        {
            "attention_C=0.03": _ours(attention_C=0.03),
            'attention_C="auto"': _ours(attention_C="auto"),
        }
        | {f"attention_C={C:g}": _ours(attention_C=C) for C in (0.003, 0.01, 0.1, 0.3, 1.0)},
    ),
    "baselines": Question(
        "Against tuned linear models of the same counts",
        {
            "ClsAttentionClassifier": _ours(),
            "LogisticRegression": _tuned(_LOGISTIC, values=_COUNTS),
            "LogisticRegression, TF-IDF": _tuned(_WEIGHTS, _LOGISTIC, values=(1, 5, 25, 125)),
            "LinearSVC, TF-IDF": _tuned(_WEIGHTS, LinearSVC(), values=(0.1, 0.3, 1.0, 3.0)),
            "LogisticRegression, NB-weighted": _tuned(Binarizer(), _NB_WEIGHTED, values=_COUNTS),
            "MultinomialNB": _tuned(MultinomialNB(), values=(0.01, 0.1, 1.0), name="alpha"),
        },
        seeds=2,
        max_work=3e6,
    ),
    "texts": Question(
        "Texts: without context or characters",
        {
            OURS: _ours(text_classifier),
            "without context": _ours(text_classifier, context=False),
            "without characters": _ours(text_classifier, characters=None),
            "scores of words as they start": _ours(text_classifier, attention_C=1e-9),
        },
        texts=True,
        sizes=(*FEW, 3_000, None),
        seeds=2,
        max_work=6e6,
    ),
    "shares": Question(
        "How many pseudo-documents does a class have?",
        {
            f"{n:g}": Variant(text_classifier, {"_base.PSEUDO_DOCUMENTS": n})
            for n in (1.0, 0.0, 0.5, 2.0, 3.0)
        },
        texts=True,
        sizes=FEW,
    ),
    "few_documents": Question(
        "Of how few documents is C only guessed?",
        {
            f"fewer than {n}": Variant(text_classifier, {"training.choose_c.LEAST_TELLING": n})
            for n in (100, 250, 500)
        },
        texts=True,
        sizes=(100, 200, 400),
        seeds=3,
    ),
}

_NOTES = (
    "Measured on training documents alone: of every set a quarter is held out for the measures. "
    "Means over splits, then over sizes, then over sets; ± is one standard error over sets. "
    "Differences are from the first variant. *Won*: sets with the higher and with the lower "
    "accuracy. CPU: that of tuning and fit, over the first variant's."
)
_KEY = ["set", "seed", "size"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask questions, and write the page of answers."""
    parser = pages.parser("defaults", __doc__, "explore", "reviews")
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--fast", action="store_true", help="generated documents, one split")
    parser.add_argument("--folder", type=Path, help="where answers are kept, to continue with")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # processor times are compared
    folders = (None, None) if options.fast else (options.explore, options.reviews)
    readers = sources(*folders)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="defaults-"))
    parts = []
    for name in options.questions or QUESTIONS:
        question = QUESTIONS[name]
        file = folder / f"{name}.jsonl"
        ask(question, readers, file, seeds=1 if options.fast else question.seeds)
        parts += [f"## {question.title}", tables(question, answers(file))]
    command = f"defaults {' '.join(options.questions)}".strip()
    pages.publish(options.output, "How the defaults were chosen", command, _NOTES, *parts)
    return 0


def ask(question: Question, readers: Any, file: Path, *, seeds: int) -> None:
    """Measure a question on every split that is not yet in the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    known = {(row["set"], row["seed"], row["size"]) for row in _lines(file)}
    found = splits(readers, seeds=seeds, sizes=question.sizes, skip=lambda key: key in known)
    for split in found:
        if split.work > question.max_work or (split.work > 2e7 and split.seed > 1):
            continue
        rows = {
            name: measure(variant, split, texts=question.texts)
            for name, variant in question.variants.items()
        }
        line = {"set": split.set, "seed": split.seed, "size": split.size, "rows": rows}
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
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
    # 1) differences from the first variant, and their means over splits and over sizes
    first = next(iter(question.variants))
    base = found.loc[found["variant"] == first, [*_KEY, "accuracy", "log_loss", "seconds"]]
    found = found.merge(base, on=_KEY, suffixes=("", "_first"))
    found["points"] = 100 * (found["accuracy"] - found["accuracy_first"])
    found["loss"] = found["log_loss"] - found["log_loss_first"]
    found["cpu"] = found["seconds"] / found["seconds_first"]
    what = ["accuracy", "points", "log_loss", "loss", "ece", "cpu"]
    by_size = found.groupby(["variant", "set", "size"])[what].mean()
    by_set = by_size.groupby(["variant", "set"]).mean()
    # 2) rows
    rows = []
    of_sizes = []
    for name in question.variants:
        sets = by_set.loc[name]
        mean = sets.mean()
        error = sets.sem()
        won = f"{(sets['points'] > 0).sum()} to {(sets['points'] < 0).sum()}"
        points = f"{mean['points']:+.2f} ± {error['points']:.2f}"
        loss = f"{mean['loss']:+.4f} ± {error['loss']:.4f}"
        shown = ("", "") if name == first else (points, won)
        measured = f"{mean['log_loss']:.4f}", "" if name == first else loss
        last = f"{100 * mean['ece']:.2f}", f"{mean['cpu']:.2f}"
        rows.append((name, f"{mean['accuracy']:.4f}", *shown, *measured, *last))
        means = by_size.loc[name].groupby("size")[["points", "loss", "cpu"]].mean()
        cells = [f"{r.points:+.2f}, {r.loss:+.4f}, {r.cpu:.2f}" for r in means.itertuples()]
        of_sizes.append((name, *cells))
    # 3) tables
    header = ("", "accuracy", "points", "won", "log loss", "difference", "ECE, %", "CPU")
    n_sets = found.groupby("size")["set"].nunique()
    sizes = ["all" if np.isinf(size) else f"{size:,.0f}" for size in n_sets.index]
    heads = [f"{size} ({n} sets)" for size, n in zip(sizes, n_sets, strict=True)]
    parts = [pages.table(header, rows)]
    if len(sizes) > 1:
        parts.append(pages.table(("points, log loss, CPU", *heads), of_sizes))
    return "\n\n".join(parts)


def _lines(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file of answers."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return [json.loads(line) for line in text.splitlines()]


if __name__ == "__main__":
    sys.exit(main())
