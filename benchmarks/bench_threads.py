"""Fits with one thread and with all: ``python -m benchmarks.bench_threads [--reviews FOLDER]``.

From raw texts, beside logistic regression on TF-IDF of words and pairs of words; from counts,
beside a LinearSVC on TF-IDF of the same counts. Each fit has a process of its own, after a short
fit that imports; models take turns. BLAS has one thread, which is faster for all of them.
"""

from __future__ import annotations

import os
import statistics
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import threadpoolctl
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier, TextClassifier

from . import command_line, machine, pages, problems
from .processes import in_process
from .timing import timed

OURS, LOGISTIC = "TextClassifier()", "TF-IDF, LogisticRegression(C=10)"
COUNTS, COUNTS_C, SVC = "counts, C chosen", "counts, C=1", "counts, TF-IDF, LinearSVC"
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}
_PAIRS = {"ngram_range": (1, 2), "min_df": 2}
_TFIDF = partial(TfidfVectorizer, sublinear_tf=True, **_PAIRS)
TEXT_MODELS: dict[str, Callable[[], Any]] = {
    OURS: TextClassifier,
    LOGISTIC: lambda: make_pipeline(_TFIDF(), LogisticRegression(C=10, max_iter=1000)),
}
COUNT_MODELS: dict[str, Callable[[], Any]] = {
    COUNTS: ClsAttentionClassifier,
    COUNTS_C: lambda: ClsAttentionClassifier(C=1.0),
    SVC: lambda: make_pipeline(
        TfidfTransformer(sublinear_tf=True), LinearSVC(C=0.3, random_state=0)
    ),
}


def measured(name: str, problem: str, folder: str | None, n_rows: int | None) -> dict[str, float]:
    """Return the seconds of a model's fit on a problem, and what it read."""
    warnings.simplefilter("ignore")  # of solvers that stop early
    reviews = problems.find_reviews(Path(folder) if folder else None)
    (spec,) = [one for one in problems.specs(reviews) if one.name == problem]
    texts = problems.load_texts(spec, reviews, n_rows=n_rows)
    X: Any = texts.X_train
    y = texts.y_train
    n_bytes = sum(len(text.encode()) for text in X)
    n_words = sum(len(text.split()) for text in X)
    make = TEXT_MODELS.get(name)
    if make is None:
        make = COUNT_MODELS[name]
        X = CountVectorizer(**_PAIRS).fit_transform(X)
    some = np.flatnonzero(np.isin(y, np.unique(y)[:2]))[:500]  # two classes will do to import
    make().fit(X[some], y[some])
    _, seconds = timed(lambda: make().fit(X, y))
    return {"seconds": seconds, "megabytes": n_bytes / 1e6, "words": n_words}


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("bench_threads", __doc__, reviews=True)
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--runs", type=int, default=3, help="of which the medians are printed")
    parser.add_argument("--rows", type=int, help="for a trial")
    parser.add_argument("--output", type=Path, help="file of the page")
    options = parser.parse_args(arguments)
    known = [spec.name for spec in problems.specs(problems.find_reviews(options.reviews))]
    threadpoolctl.threadpool_limits(1, "blas")
    os.environ.update(_ENVIRONMENT)  # of the processes
    described = machine.describe()  # its load, before this adds to it
    rows = []
    for problem in options.problems or known:
        for one_thread in (True, False):
            rows += _compare(problem, one_thread, options)
    header = "set", "threads", "", "fit, s", "over the last", "MB/s", "million words/s"
    notes = (
        "Medians; BLAS on one thread. Words and pairs of words in two documents at least. "
        "*Over the last*: seconds over those of the linear model below. "
        "Megabytes of text and words between spaces, by the seconds from texts to a fitted model."
    )
    command = "python -m benchmarks.bench_threads"
    if options.reviews:
        command += " --reviews FOLDER"
    if options.problems:
        command += f" --problems {' '.join(options.problems)}"
    table = pages.table(header, rows)
    page = pages.page("One thread, and all", command, notes, table, described=described)
    pages.publish(page, options.output)
    return 0


def _compare(problem: str, one_thread: bool, options: Any) -> list[tuple[str, ...]]:
    """Return a row for each model, fitted in turns with one thread or with all."""
    threads = "1" if one_thread else str(joblib.cpu_count())
    rows = []
    for models in (TEXT_MODELS, COUNT_MODELS):
        results: dict[str, list[dict[str, float]]] = {name: [] for name in models}
        for _ in range(options.runs):
            for name in models:
                call = "benchmarks.bench_threads.measured", name, problem
                result = in_process(*call, options.reviews, options.rows, one_thread=one_thread)
                results[name].append(result)
        medians = {
            name: statistics.median(result["seconds"] for result in of_model)
            for name, of_model in results.items()
        }
        *_, linear = medians.values()  # the last model
        for name, seconds in medians.items():
            ratio = f"{seconds / linear:.2f}"
            read = results[name][0]
            speeds = ("–", "–")
            if models is TEXT_MODELS:
                megabytes = f"{read['megabytes'] / seconds:.2f}"
                speeds = (megabytes, f"{read['words'] / seconds / 1e6:.2f}")
            rows.append((problem, threads, name, f"{seconds:.2f}", ratio, *speeds))
        print(*rows[-len(models) :], sep="\n", file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main())
