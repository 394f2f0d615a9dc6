"""Time and memory of what may be large or slow: ``python -m benchmarks.costs WHAT``.

counting: raw text to counts, TokenVectorizer beside scikit-learn's CountVectorizer.
explaining: explanations of one text beside its prediction, whatever the vocabulary.
many_classes: fits on generated counts of 20,000 tokens, four documents of each class.
memory: fits on generated counts, in bytes an entry and a trained number.
waiting: what a user waits for: imports, fits, and models in files.

Each measurement but the last has a process of its own, with one thread.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.inspection import explain
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import TokenVectorizer

from . import pages, problems
from .models import text_classifier
from .processes import in_process, peak_beyond, timed

Table = tuple[str, str, tuple[str, ...], Iterable[Any]]  # title, notes, header and rows


# Counting


VECTORIZERS = {"scikit-learn": CountVectorizer, "here": TokenVectorizer}
TASKS: dict[str, dict[str, Any]] = {
    "words (1, 2), min_df=2": {"ngram_range": (1, 2), "min_df": 2},
    "char_wb (2, 5), min_df=3": {"analyzer": "char_wb", "ngram_range": (2, 5), "min_df": 3},
}
MEASURED = "fit, cold", "fit, warm", "transform", "one document", "peak memory"


def counting(options: Any) -> Table:
    """Compare the vectorizers."""
    rows = []
    for task in TASKS:
        given = task, options.reviews, options.rows
        theirs, ours = (_process("count", kind, *given) for kind in VECTORIZERS)
        assert theirs["sum"] == ours["sum"], "the counts differ"
        for what in MEASURED:
            ratio = f"{theirs[what] / ours[what]:.2f}"
            shown = [f"{each[what]:.3g}" for each in (theirs, ours)]
            rows.append((task, what, *shown, ratio))
    notes = (
        "CPU seconds on one thread; the rise of resident memory during the first fit, in MB. "
        "*Cold*: the first fit; *warm*: the best of three. *Ratio*: scikit-learn's over ours."
    )
    header = "task", "measured", "scikit-learn", "here", "ratio"
    return "Counting words and characters", notes, header, rows


def count(kind: str, task: str, reviews: str | None, n_rows: int | None) -> dict[str, float]:
    """Return CPU seconds and megabytes of one vectorizer at one task."""
    problem = problems.load("imdb" if reviews else "topic", reviews, n_rows=n_rows)
    train = list(problem.X_train)
    test = list(problem.X_test)
    VECTORIZERS[kind](**TASKS[task]).fit(train[:200])  # imports
    # 1) the first fit
    vectorizer = VECTORIZERS[kind](**TASKS[task])
    started = time.process_time()
    peak = peak_beyond(lambda: vectorizer.fit_transform(train))
    cold = time.process_time() - started
    # 2) others, and counts of other documents
    again = partial(VECTORIZERS[kind](**TASKS[task]).fit_transform, train)
    ones = [[text] for text in test[:200]]
    return {
        "peak memory": peak / 1e6,
        "fit, cold": cold,
        "fit, warm": _best(again, 3),
        "transform": _best(lambda: vectorizer.transform(test), 3),
        "one document": _best(lambda: list(map(vectorizer.transform, ones)), 5) / len(ones),
        "sum": int(vectorizer.transform(test).sum()),
    }


def _best(function: Callable[[], Any], runs: int) -> float:
    """Return the fewest processor seconds of some runs."""
    return min(timed(function, time.process_time)[1] for _ in range(runs))


def _process(function: str, *given: Any) -> Any:
    """Return what a function of this module returns in a process of its own."""
    return in_process(f"benchmarks.costs.{function}", *given, one_thread=True)


# Explaining


CLASSIFIERS: dict[str, Any] = {
    "SGDClassifier": SGDClassifier(loss="log_loss", max_iter=2, tol=None),
    "LinearSVC": LinearSVC(max_iter=1),
    "MultinomialNB": MultinomialNB(),
    "BernoulliNB": BernoulliNB(),
    "CalibratedClassifierCV of 2 LinearSVC": CalibratedClassifierCV(LinearSVC(max_iter=1), cv=2),
    "ClsAttentionClassifier": ClsAttentionClassifier(C=1.0, max_iter=20, tol=1e9),
}
N_COLUMNS = 10_000, 500_000
N_WORDS_OF_A_TEXT = 400


def explaining(options: Any) -> Table:
    """Explain one text, by classifiers of two classes and of twenty."""
    rows = []
    for n_columns in [options.rows] if options.rows else N_COLUMNS:
        for n_classes in (2, 20):
            for name in CLASSIFIERS:
                found = _process("explain_a_text", name, n_columns, n_classes)
                numbers = (f"{1000 * found[what]:.1f}" for what in ("predicted", "explained"))
                rows.append([name, f"{n_columns:,}", n_classes, *numbers])
    notes = (
        f"One text of {N_WORDS_OF_A_TEXT} words: `predict` of a Pipeline with a `TfidfVectorizer`, "
        "and `explain`, which predicts it, too. Medians of 15 times, after a first."
    )
    header = "classifier", "columns", "classes", "predict, ms", "explain, ms"
    return "Explanations beside predictions", notes, header, rows


def explain_a_text(name: str, n_columns: int, n_classes: int) -> dict[str, float]:
    """Return the seconds in which a text is predicted, and explained."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(n_columns)])
    n_texts = 4 * n_columns // N_WORDS_OF_A_TEXT
    numbers = rng.integers(n_columns, size=(n_texts, N_WORDS_OF_A_TEXT))
    labels = np.arange(n_texts) % n_classes
    texts = []
    for label, of_text in zip(labels, words[numbers].tolist(), strict=True):
        texts.append(" ".join([f"of{label}", *of_text]))
    model = make_pipeline(TfidfVectorizer(), CLASSIFIERS[name]).fit(texts, labels)
    calls = {"predicted": model.predict, "explained": partial(explain, model)}
    seconds = {}
    for what, call in calls.items():
        call(texts[:1])  # imports, and names of columns
        times = [timed(partial(call, texts[:1]), time.process_time)[1] for _ in range(15)]
        seconds[what] = float(np.median(times))
    return seconds


# Many classes


CLASSES = 100, 300, 1_000
N_TOKENS = 20_000
N_DOCUMENTS_OF_A_CLASS = 4
N_TOKENS_OF_A_DOCUMENT = 12
N_TOKENS_OF_A_CLASS = 20
_OWN = 0.4  # probability that an occurrence is of the tokens of the document's class


def many_classes(options: Any) -> Table:
    """Fit classes of four documents."""
    rows = []
    for n_classes in [options.rows] if options.rows else CLASSES:
        for C in (1.0, "auto"):
            found = _process("fit_classes", n_classes, C)
            numbers = f"{found['processor']:.1f}", f"{found['gigabytes']:.1f}"
            rows.append([f"{n_classes:,}", C, *numbers, f"{found['iterations']:.0f}"])
    notes = (
        f"Counts of {N_TOKENS:,} tokens, {N_DOCUMENTS_OF_A_CLASS} documents of each class, "
        f"{N_TOKENS_OF_A_DOCUMENT} tokens in each, one thread. A fit has a value for each token "
        "and class: time and memory grow with their product."
    )
    header = "classes", "C", "processor seconds", "GB in all", "iterations"
    return "Many classes of few documents", notes, header, rows


def fit_classes(n_classes: int, C: float | str) -> dict[str, float]:
    """Return processor seconds and memory of a fit."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), N_DOCUMENTS_OF_A_CLASS)
    documents = np.repeat(np.arange(len(y)), N_TOKENS_OF_A_DOCUMENT)
    of_class = y[documents] * N_TOKENS_OF_A_CLASS
    of_class += rng.integers(0, N_TOKENS_OF_A_CLASS, len(documents))
    common = rng.zipf(1.3, len(documents)) - 1
    tokens = np.where(rng.random(len(documents)) < _OWN, of_class, common) % N_TOKENS
    ones = np.ones(len(documents))
    X = sp.csr_array((ones, (documents, tokens)), shape=(len(y), N_TOKENS))
    start = time.process_time()
    model = ClsAttentionClassifier(C=C).fit(X, y)
    return {
        "processor": time.process_time() - start,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "iterations": float(model.n_iter_),
    }


# Memory


MEMORY_CASES = [  # entries, tokens, classes, C, type of the entries
    (5_000_000, 10_000, 2, 1.0, "int64"),
    (5_000_000, 10_000, 2, "auto", "int64"),
    (5_000_000, 10_000, 2, 1.0, "float64"),
    (1_000_000, 500_000, 2, 1.0, "int64"),
    (1_000_000, 200_000, 20, "auto", "int64"),
    (1_000_000, 200_000, 20, 1.0, "float64"),
]


def memory(options: Any) -> Table:
    """Fit counts of given numbers of entries, tokens and classes."""
    rows = []
    for entries, n_tokens, n_classes, C, dtype in MEMORY_CASES:
        if options.rows:
            n_tokens = n_tokens * options.rows // entries
            entries = options.rows
        case = entries, n_tokens, n_classes, C, dtype
        size = _process("peak_of_fit", *case)
        numbers = n_tokens * (2 if n_classes == 2 else 1 + n_classes)
        shown = f"{size / 1e9:.2f} GB", f"{size / case[0]:.0f}", f"{size / numbers:.0f}"
        rows.append((*case, *shown))
    header = "entries", "tokens", "classes", "C", "type", "peak", "an entry", "a trained number"
    return "Memory of a fit", "The peak beyond X; bytes.", header, rows


def peak_of_fit(entries: int, n_tokens: int, n_classes: int, C: Any, dtype: str) -> int:
    """Return the bytes that a fit adds to the peak of this process."""
    n_documents = entries // 100
    indptr = np.arange(0, 100 * n_documents + 1, 100, dtype=np.int32)
    columns = np.random.default_rng(0).integers(0, n_tokens, indptr[-1], dtype=np.int32)
    ones = np.ones(len(columns), dtype)
    X = sp.csr_matrix((ones, columns, indptr), shape=(n_documents, n_tokens))
    X.sum_duplicates()
    y = np.arange(n_documents) % n_classes
    ClsAttentionClassifier(C=1.0).fit(X[:100], y[:100])  # imports
    model = ClsAttentionClassifier(C=C, max_iter=8)
    return peak_beyond(lambda: model.fit(X, y))


# Waiting


def waiting(options: Any) -> Table:
    """Fit, save and load, in this process."""
    requests, topics = load_requests(return_X_y=True)
    texts = requests[: options.rows]
    model = text_classifier()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.skops"
        calls: dict[str, Callable[[], Any]] = {
            "import torch": partial(import_module, "torch"),
            f"fit of {len(texts):,} texts": partial(model.fit, texts, topics[: options.rows]),
            "save_model()": partial(save_model, model, file),
            "load_model()": partial(load_model, file),
        }
        rows = []
        for name, call in calls.items():
            seconds = [timed(call, time.process_time)[1] for _ in range(2)]
            rows.append([name, *(f"{each:.2f}" for each in seconds)])
    notes = (
        "Imports of what a call needs are part of its first time, such as skops in `save_model()`."
    )
    return "What a user waits for", notes, ("", "first, processor seconds", "again"), rows


WHAT: dict[str, Callable[[Any], Table]] = {
    "counting": counting,
    "explaining": explaining,
    "many_classes": many_classes,
    "memory": memory,
    "waiting": waiting,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = pages.parser("costs", __doc__, "reviews")
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--rows", type=int, help="texts, columns, classes or entries, for a trial")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    title, notes, header, rows = WHAT[options.what](options)
    command = f"costs {options.what}" + " --reviews FOLDER" * bool(options.reviews)
    pages.publish(options.output, title, command, notes, pages.table(header, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
