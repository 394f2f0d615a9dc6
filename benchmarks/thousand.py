"""1,000 training texts and nothing tuned, beside figures published for the same protocol.

``python -m benchmarks.thousand --explore FOLDER [--reviews FOLDER] [--vectors FILE]``

The folder has NAME.csv.gz with the columns text, label and part. With ``--vectors``, a file of word
vectors in GloVe's format is tried as well; with ``--embeddings FOLDER``, a teacher
(:mod:`benchmarks.teacher`). Without sets, generated requests are classified.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.text import WordVectors

from . import command_line, machine, pages, problems
from .peers import load
from .teacher import Embedded, embed

N_TRAINING = 1_000
N_DRAWS = 3  # of training texts
SETS = ("imdb", "20news", "agnews", "subj", "trec", "sst2", "banking77")
OURS, UNLABELED, VECTORS = "TextClassifier()", "with unlabeled texts", "with word vectors"
TAUGHT, TEACHER = "taught by MiniLM", "MiniLM, LogisticRegression: the teacher"
TFIDF = "TF-IDF, LogisticRegressionCV"
# model2vec, results/README.md of 29 May 2026: percentages in the order of `_METHODS`.
PUBLISHED = {
    "20news": (50.71, 56.24, 57.94, 61.29, 67.39),
    "agnews": (81.68, 86.70, 87.20, 88.01, 88.95),
    "imdb": (80.44, 85.34, 85.59, 86.00, 92.25),
    "subj": (86.39, 89.20, 89.85, 93.80, 94.55),
}
_METHODS = (
    "TF-IDF, LogisticRegressionCV",
    "static vectors, LogisticRegressionCV",
    "static vectors, all tuned",
    "SetFit (MiniLM)",
    "BGE base, LogisticRegressionCV",
)
_TEST_PARTS = {
    "20news": "7,532 texts; 25 are empty without headers, footers and quotes, and missing here",
    "agnews": "7,600 texts, of which these are a random quarter; training texts are others of them",
    "imdb": "the same",
    "subj": "another, of 2,000 texts; these are a random quarter of all 10,000",
}
_NOTES = f"""\
Each model is fitted on {N_TRAINING:,} training texts, drawn at random, and scored on the whole test
part; weighted F1 and accuracy are means of {N_DRAWS} draws, ± their standard deviation. Nothing is
tuned on other texts. *{UNLABELED}* learns word vectors from up to 20,000 further training texts
without their labels; *{VECTORS}* gets those of a file, 128 numbers for a word, made from the
sentence encoder MiniLM; *{TAUGHT}* learns from the probabilities that logistic regression on
MiniLM's frozen embeddings, fitted to the same labels, gives to the further texts. Published figures
are those of
[model2vec](https://github.com/MinishLab/model2vec/tree/main/results#training-results), for 1,000
training texts of the same sets, nothing tuned, and the whole test part; the page does not name the
measure. Their draws of training texts are others. Our defaults were chosen on training texts of the
sets of `--explore`, and on all texts of those without a test part (agnews, subj, trec)."""


def draws(name: str, folder: Path | None) -> Iterator[tuple[Any, ...]]:
    """Yield training texts and labels, other texts, and test texts and labels."""
    problem = load(name, None if folder is None else str(folder))
    texts, labels = np.asarray(problem.X_train, dtype=object), problem.y_train
    for seed in range(N_DRAWS):
        order = np.random.default_rng(seed).permutation(len(labels))
        few, others = order[:N_TRAINING], order[N_TRAINING : N_TRAINING + 20_000]
        yield texts[few], labels[few], texts[others], problem.X_test, problem.y_test


def scores(
    name: str, folder: Path | None, vectors: WordVectors | None, kept: Path | None
) -> dict[str, NDArray[np.float64]]:
    """Return weighted F1 and accuracy of each model, (n_draws, 2).

    `kept` is the folder of embeddings, None without a teacher.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for X, y, others, X_test, y_test in draws(name, folder):
        models: dict[str, tuple[Any, dict[str, Any]]] = {
            TFIDF: (make_pipeline(TfidfVectorizer(), LogisticRegressionCV()), {}),
            OURS: (TextClassifier(), {}),
        }
        if len(others):
            models[UNLABELED] = TextClassifier(), {"unlabeled": others}
        if vectors is not None:
            models[VECTORS] = TextClassifier(word_vectors=vectors), {}
        if kept is not None and len(others):
            teacher = Embedded(embed(name, np.concatenate([X, others, X_test]), kept))
            models[TAUGHT] = TextClassifier(), {"unlabeled": others, "teacher": teacher}
            models[TEACHER] = teacher, {}
        for title, (model, more) in models.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of solvers that stop early, classes of few texts
                model.fit(X, y, **more)
                predicted = model.classes_[model.predict_proba(X_test).argmax(axis=1)]
            measured = (
                float(f1_score(y_test, predicted, average="weighted")),
                float(np.mean(predicted == y_test)),
            )
            found.setdefault(title, []).append(measured)
            print(name, title, measured, file=sys.stderr, flush=True)
    return {title: np.array(rows) for title, rows in found.items()}


def section(name: str, found: dict[str, NDArray[np.float64]], n_test: int) -> str:
    """Return the table of a set."""
    rows = [
        (title, *(f"{100 * values.mean():.1f} ± {100 * values.std():.1f}" for values in both.T))
        for title, both in found.items()
    ]
    published = PUBLISHED.get(name, ())
    rows += [
        (f"*{method}, published*", f"{value:.1f}", "–")
        for method, value in zip(_METHODS, published, strict=False)
    ]
    note = f"{n_test:,} test texts."
    if published:
        note += f" Their test part: {_TEST_PARTS[name]}."
    table = pages.table(("", "weighted F1, %", "accuracy, %"), rows)
    return f"## {name}\n\n{note}\n\n{table}"


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("thousand", __doc__, reviews=True)
    parser.add_argument("--explore", type=Path, help="folder of sets, NAME.csv.gz")
    parser.add_argument("--vectors", type=Path, help="file of word vectors, in GloVe's format")
    parser.add_argument("--embeddings", type=Path, help="folder that keeps MiniLM's, for a teacher")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--output", type=Path, help="folder of the page")
    options = parser.parse_args(arguments)
    described = machine.describe()  # its load, before this adds to it
    reviews = problems.find_reviews(options.reviews)
    folders: dict[str, Path | None] = {name: options.explore for name in SETS}
    folders["imdb"] = reviews
    names = options.sets or [name for name in SETS if folders[name]] or ["mood"]
    vectors = None if options.vectors is None else WordVectors.from_file(options.vectors)
    sections = []
    for name in names:
        folder = folders.get(name)
        n_test = len(next(draws(name, folder))[-1])
        sections.append(section(name, scores(name, folder, vectors, options.embeddings), n_test))
    command = "python -m benchmarks.thousand --explore FOLDER --reviews FOLDER --vectors FILE"
    command += f" --sets {' '.join(options.sets)}" if options.sets else ""
    page = pages.page(
        "1,000 training texts, nothing tuned", command, _NOTES, *sections, described=described
    )
    pages.publish(page, (options.output or pages.RESULTS) / "thousand.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
