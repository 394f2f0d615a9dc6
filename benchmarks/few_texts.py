"""Few texts of many classes: ``python -m benchmarks.few_texts [--explore FOLDER]``.

A text classifier, alone, with brought word vectors and with the other texts without their labels,
beside logistic regression on TF-IDF of words and pairs of words of the same labelled texts. Each
model has its own process and one thread, and fits once before, on some of the texts, to import.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import WordVectors

from . import command_line, pages
from .problems import Texts, read_set, split_texts
from .processes import in_process
from .timing import quality, timed

OURS = "TextClassifier()"
WITH_VECTORS = f"{OURS} with word vectors"
WITH_TEXTS = f"{OURS} with the other texts, without labels"
LOGISTIC = "TF-IDF, LogisticRegression(C=10)"
MODELS = (OURS, WITH_VECTORS, WITH_TEXTS, LOGISTIC)  # of which the last is the unit


def load(file: Path | None) -> tuple[Texts, Texts]:
    """Return texts and labels for training, in a random order, and for testing."""
    if file is None:
        texts, labels = load_requests(target="topic", return_X_y=True)
        X = np.array(texts, dtype=object)
        y = np.array(labels)
        test = np.zeros(len(y), dtype=bool)
    else:
        X, y, test = read_set(file)
    training, testing = split_texts(X, y, test)
    order = np.random.default_rng(0).permutation(len(training[1]))
    return (training[0][order], training[1][order]), testing


def fitter(name: str, vectors: str | None) -> Callable[[Any, Any, NDArray[Any]], Any]:
    """Return a function that fits a model to texts and labels, with other texts beside them."""
    if name == LOGISTIC:
        features = TfidfVectorizer(ngram_range=(1, 2))
        linear = make_pipeline(features, LogisticRegression(C=10, max_iter=1000))
        return lambda X, y, others: linear.fit(X, y)
    if name == WITH_TEXTS:
        return lambda X, y, others: TextClassifier().fit(X, y, unlabeled=others)
    if name == WITH_VECTORS:
        assert vectors is not None
        brought = WordVectors.from_file(vectors)
        return lambda X, y, others: TextClassifier(word_vectors=brought).fit(X, y)
    return lambda X, y, others: TextClassifier().fit(X, y)


def measured(
    name: str, file: str | None, vectors: str | None, n_labels: int | None
) -> dict[str, float]:
    """Return what a fit to the first `n_labels` texts takes, and what it reaches."""
    warnings.simplefilter("ignore")  # of solvers that stop early
    (X, y), (asked, right) = load(Path(file) if file else None)
    fit = fitter(name, vectors)
    some = np.flatnonzero(np.isin(y, np.unique(y)[:2]))[:100]  # two classes will do to import
    fit(X[some], y[some], X[:100])
    model, seconds = timed(lambda: fit(X[:n_labels], y[:n_labels], X[n_labels:]))
    is_known = np.isin(right, model.classes_)
    reached = quality(model, asked[is_known], right[is_known])
    return {"seconds": seconds, "labels": len(y[:n_labels]), **reached}


def main(arguments: list[str] | None = None) -> int:
    """Measure the fits, and write the page."""
    parser = command_line.parser("few_texts", __doc__)
    parser.add_argument("--explore", type=Path, help="folder of sets, NAME.csv.gz")
    parser.add_argument("--set", default="banking77", help="the set of the folder")
    parser.add_argument("--vectors", type=Path, help="file of word vectors, in text form")
    parser.add_argument("--labels", type=int, default=1_000, help="labelled texts, beside all")
    parser.add_argument("--runs", type=int, default=3, help="of which the medians are printed")
    parser.add_argument("--output", type=Path, help="file of the page")
    options = parser.parse_args(arguments)
    file = options.explore / f"{options.set}.csv.gz" if options.explore else None
    rows = []
    for n_labels in (options.labels, None):
        names = [OURS, LOGISTIC]
        if n_labels is not None:
            names = [name for name in MODELS if name != WITH_VECTORS or options.vectors]
        results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for _ in range(options.runs):
            for name in names:
                call = "benchmarks.few_texts.measured", name, file, options.vectors, n_labels
                results[name].append(in_process(*call, one_thread=True))
        rows += compared(results)
        print(*rows[-len(names) :], sep="\n", file=sys.stderr, flush=True)
    header = "labelled texts", "", "fit, s", "over the last", "accuracy", "log loss"
    title = options.set if options.explore else "generated requests"
    notes = (
        f"Texts of {title}. Medians, one thread. *Over the last*: seconds from texts to a fitted "
        "model, over those of logistic regression on the same labelled texts. Test texts are those "
        "of classes with a labelled text."
    )
    command = "few_texts"
    if options.explore:
        command += " --explore FOLDER"
    if options.vectors:
        command += " --vectors FILE"
    pages.publish_table("Few texts of many classes", command, notes, header, rows, options.output)
    return 0


def compared(results: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """Return a row for each model, the last of which is the unit."""
    medians = {}
    for name, of_model in results.items():
        medians[name] = statistics.median(result["seconds"] for result in of_model)
    rows = []
    for name, seconds in medians.items():
        reached = results[name][0]
        ratio = seconds / medians[LOGISTIC]
        qualities = f"{reached['accuracy']:.4f}", f"{reached['log_loss']:.4f}"
        rows.append([f"{reached['labels']:,}", name, f"{seconds:.2f}", f"{ratio:.2f}", *qualities])
    return rows


if __name__ == "__main__":
    sys.exit(main())
