"""Fits with one thread and with all, and beside another checkout.

``python -m benchmarks.bench_threads [--reviews FOLDER] [--explore FOLDER] [--sets NAME ...]``

From raw texts, beside logistic regression on TF-IDF of words and pairs of words; from counts,
beside a LinearSVC on TF-IDF of the same counts. With ``--against CHECKOUT``, our models are also
fitted by that checkout's package. Each fit has a process of its own, after a short fit that
imports; models take turns. BLAS has one thread, which is faster for all of them.
"""

from __future__ import annotations

import os
import statistics
import sys
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier

from . import pages, problems
from .models import LOGISTIC, OURS, logistic, quality, text_classifier
from .processes import in_process, timed

COUNTS = "counts, C chosen"
COUNTS_C = "counts, C=1"
SVC = "counts, TF-IDF, LinearSVC"
# The last model of a group is the unit.
TEXT_MODELS = OURS, LOGISTIC
COUNT_MODELS = COUNTS, COUNTS_C, SVC
_UNITS = LOGISTIC, SVC

_PAIRS = {"ngram_range": (1, 2), "min_df": 2}
_WARM_UP_ROWS = 500


def make(name: str) -> Any:
    """Return a model by its name."""
    if name == LOGISTIC:
        return logistic(sublinear_tf=True, min_df=2)
    if name in (COUNTS, COUNTS_C):
        return ClsAttentionClassifier(C="auto" if name == COUNTS else 1.0)
    if name == SVC:
        weighting = TfidfTransformer(sublinear_tf=True)
        return make_pipeline(weighting, LinearSVC(C=0.3, random_state=0))
    return text_classifier()


def measured(name: str, set_name: str, source: list[Any]) -> dict[str, Any]:
    """Return the seconds of a model's fit on a set, what it reaches, and what it has read."""
    warnings.simplefilter("ignore")  # of solvers that stop early
    problem = problems.load(set_name, *source)
    texts, y = problem.X_train, problem.y_train
    has_counts = name in COUNT_MODELS
    # 1) imports, before there are counts, so that the fit finds the same memory in any checkout
    some = np.flatnonzero(np.isin(y, np.unique(y)[:2]))[:_WARM_UP_ROWS]
    few: Any = texts[some]
    if has_counts:
        few = CountVectorizer(**_PAIRS).fit_transform(few)
    make(name).fit(few, y[some])
    # 2) the fit
    X: Any = texts
    asked: Any = problem.X_test
    if has_counts:
        vectorizer = CountVectorizer(**_PAIRS)
        X = vectorizer.fit_transform(texts)
        asked = vectorizer.transform(asked)
    model = make(name)
    _, seconds = timed(partial(model.fit, X, y))
    return {
        "seconds": seconds,
        "megabytes": sum(len(text.encode()) for text in texts) / 1e6,
        **quality(model, asked, problem.y_test),
    }


def compared(
    models: tuple[str, ...], set_name: str, options: Any, one_thread: bool
) -> list[tuple[str, ...]]:
    """Return a row for each model, of which the last is the unit; models take turns."""
    source = options.reviews, options.explore, options.rows
    given = set_name, source
    # 1) our models by both checkouts, the unit by this one
    checkouts = {name: (name, pages.ROOT) for name in models}
    for name in models:
        if options.against and name not in _UNITS:
            checkouts[f"{name}, the other checkout"] = name, options.against.resolve()
    # 2) their times
    results: dict[str, list[dict[str, Any]]] = {title: [] for title in checkouts}
    for _ in range(options.runs):
        for title, (name, checkout) in checkouts.items():
            call = partial(in_process, "benchmarks.bench_threads.measured", name, *given)
            results[title].append(call(checkout=checkout, one_thread=one_thread))
    medians = {
        title: statistics.median(result["seconds"] for result in of_model)
        for title, of_model in results.items()
    }
    rows = []
    for title, seconds in medians.items():
        found = results[title][0]
        row = (
            set_name,
            "1" if one_thread else str(joblib.cpu_count()),
            title,
            f"{seconds:.2f}",
            f"{seconds / medians[models[-1]]:.2f}",
            f"{found['megabytes'] / seconds:.2f}",
            f"{found['accuracy']:.4f}",
            pages.number(found["log_loss"], ".4f"),
        )
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Measure the fits, and write the page."""
    parser = pages.parser("bench_threads", __doc__, "reviews", "explore")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="by default reviews")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout")
    parser.add_argument("--runs", type=int, default=5, help="of which the medians are printed")
    parser.add_argument("--rows", type=int, help="for a trial")
    options = parser.parse_args(arguments)
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}  # of the processes
    names = options.sets or (["imdb", "polarity"] if options.reviews else ["topic"])
    rows = []
    for name, one_thread, models in product(names, (True, False), (TEXT_MODELS, COUNT_MODELS)):
        rows += compared(models, name, options, one_thread)
    header = "set", "threads", "", "fit, s", "over the linear", "MB/s"
    notes = (
        "Medians; BLAS on one thread. Words and pairs of words in two documents at least. *Over "
        "the linear*: seconds over those of the linear model. *MB/s*: megabytes of text, by the "
        "seconds from texts, or counts, to a fitted model."
    )
    command = "bench_threads" + " --reviews FOLDER" * bool(options.reviews)
    command += f" --explore FOLDER --sets {' '.join(options.sets)}" if options.sets else ""
    command += " --against CHECKOUT" * bool(options.against)
    table = pages.table((*header, "accuracy", "log loss"), rows)
    pages.publish(options.output, "One thread, and all", command, notes, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
