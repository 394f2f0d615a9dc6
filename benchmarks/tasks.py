"""Several labels a document, numbers beside text, and smaller files.

``python -m benchmarks.tasks --explore FOLDER --reviews FOLDER`` writes results/tasks.md. Documents
of several labels are made of one to three texts of a set, of other texts for training and for
testing; numbers are made for texts, of which one is shifted and one spread by the class.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, StandardScaler

from benchmarks import command_line, pages
from benchmarks.defaults.sets import read_training, splits
from benchmarks.problems import Spec, labelled_texts
from benchmarks.timing import timed
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.saving import load_model, save_model
from sklearn_clsattn.text import ContextVectorizer, make_text_classifier

# Sets whose texts are put together, how many labels, and how many documents.
_MIXED = {"banking77": (50, 9_000), "20news": (20, 9_000), "20news and banking77": (50, 15_000)}
_NUMBERED = ("sms", "mr", "subj", "agnews", "trec")
_COLUMNS = ["shifted", "spread", "noise"]
_SIZES = (None, 100_000, 50_000, 20_000, 10_000)


def several_labels(explore: Path) -> Iterator[tuple[Any, ...]]:
    """Yield rows of F1, log loss and seconds of our classifier and of one against the rest."""
    models = {
        "ours": ClsAttentionClassifier(),
        "ours, C=1": ClsAttentionClassifier(C=1.0),
        "LogisticRegression": OneVsRestClassifier(LogisticRegression()),
        "LogisticRegression, 1,000 iterations": OneVsRestClassifier(
            LogisticRegression(max_iter=1000)
        ),
        "LogisticRegression(C=10), TF-IDF": make_pipeline(
            TfidfTransformer(), OneVsRestClassifier(LogisticRegression(C=10))
        ),
    }
    for name, (n_labels, n) in _MIXED.items():
        texts, Y = put_together(explore, name.split(" and "), n_labels, n)
        train = 2 * n // 3
        counts = CountVectorizer().fit(texts[:train])
        X, X_test, Y_test = (
            counts.transform(texts[:train]),
            counts.transform(texts[train:]),
            Y[train:],
        )
        for kind, model in models.items():
            _, seconds = timed(partial(model.fit, X, Y[:train]))
            predicted, proba = (
                model.predict(X_test),
                model.predict_proba(X_test).clip(1e-9, 1 - 1e-9),
            )
            losses = np.where(Y_test, np.log(proba), np.log1p(-proba)).sum(axis=1)
            scores = [f1_score(Y_test, predicted, average=how) for how in ("micro", "macro")]
            numbers = [f"{one:.3f}" for one in (*scores, -losses.mean())]
            yield name, n_labels, kind, *numbers, f"{seconds:.1f}"


def put_together(
    explore: Path, names: list[str], n_labels: int, n: int
) -> tuple[list[str], NDArray[np.intp]]:
    """Return texts made of one to three, and which labels they have, (n, n_labels)."""
    sets = [read_training(explore / f"{name}.csv.gz") for name in names]
    texts, labels = (np.concatenate(part) for part in zip(*sets, strict=True))
    codes = pd.factorize(labels)[0]
    texts, codes = texts[codes < n_labels], codes[codes < n_labels]
    rng = np.random.default_rng(0)
    halves = np.array_split(rng.permutation(len(texts)), 2)
    made, Y = [], np.zeros((n, n_labels), dtype=np.intp)
    for at in range(n):
        half = halves[at >= 2 * n // 3]
        chosen = rng.choice(half, rng.choice([1, 2, 3], p=[0.4, 0.4, 0.2]), replace=False)
        made.append(" ".join(texts[chosen]))
        Y[at, codes[chosen]] = 1
    return made, Y


def numbers_beside_text(explore: Path) -> Iterator[tuple[Any, ...]]:
    """Yield rows of mean accuracy and log loss of ways to put numbers beside text."""
    bins = KBinsDiscretizer(10, encode="onehot", quantile_method="averaged_inverted_cdf")
    ours, tfidf = ContextVectorizer(), TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)

    def model(words: Any, numbers: Any, weight: float = 1.0) -> Any:
        columns = [("words", words, "text"), ("numbers", numbers, _COLUMNS)]
        last: Any = LogisticRegression(C=10, max_iter=3000)
        if words is ours:
            last = ClsAttentionClassifier(sublinear_counts=False)
        weights = {"numbers": weight}
        return make_pipeline(ColumnTransformer(columns, transformer_weights=weights), last)

    models = {
        "ours, text alone": model(ours, "drop"),
        **{f"ours, 10 bins, weight {w}": model(ours, bins, w) for w in (1, 3, 10)},
        **{
            f"ours, MinMaxScaler, weight {w}": model(ours, MinMaxScaler(clip=True), w)
            for w in (1, 10)
        },
        "LogisticRegression, TF-IDF, StandardScaler": model(tfidf, StandardScaler()),
        "LogisticRegression, TF-IDF, 10 bins": model(tfidf, bins),
    }
    readers = {
        name: lambda name=name: read_training(explore / f"{name}.csv.gz") for name in _NUMBERED
    }
    rows = []
    for split in splits(readers, seeds=2, sizes=(300, 2_000)):
        train, test = (_table(split, part) for part in ("train", "test"))
        for kind, one in models.items():
            one.fit(train, split.y_train)
            proba = one.predict_proba(test)
            right = (proba.argmax(axis=1) == split.y_test).mean()
            loss = log_loss(split.y_test, proba, labels=one.classes_)
            rows.append((split.size, kind, right, loss))
    frame = pd.DataFrame(rows, columns=["texts", "model", "accuracy", "log loss"])
    means = frame.groupby(["texts", "model"], sort=False).mean().reset_index()
    for n, kind, right, loss in means.itertuples(index=False):
        yield n, kind, f"{right:.4f}", f"{loss:.4f}"


def _table(split: Any, part: str) -> pd.DataFrame:
    """Return texts with numbers, which depend on their classes."""
    y = getattr(split, f"y_{part}")
    rng = np.random.default_rng([split.seed, len(y)])
    numbers = rng.normal(size=len(y)) + y % 2, rng.normal(size=len(y)) * (1 + 1.5 * (y % 3 == 0))
    columns = dict(zip(_COLUMNS, (*numbers, rng.lognormal(7, 1, len(y))), strict=True))
    return pd.DataFrame({"text": getattr(split, f"texts_{part}"), **columns})


def smaller_files(reviews: Path) -> Iterator[tuple[Any, ...]]:
    """Yield rows of size, test accuracy and test log loss by the number of tokens saved."""
    for name, stem in (("IMDB", "imdb"), ("Yelp five stars", "yelp_stars")):
        spec = Spec(name, "", stem)
        (texts, y), (asked, expected) = (
            labelled_texts(spec, reviews, part) for part in ("train", "test")
        )
        model = make_text_classifier().fit(texts, y)
        for max_tokens in _SIZES:
            sizes = {}
            with tempfile.TemporaryDirectory() as folder:
                for kind in ("skops", "joblib"):
                    path = Path(folder) / f"model.{kind}"
                    dtype = None if max_tokens is None else np.float16
                    save_model(model, path, max_tokens=max_tokens, dtype=dtype)
                    sizes[kind] = f"{path.stat().st_size / 1e6:.2f}"
                smaller = load_model(path)
            proba = smaller.predict_proba(asked)
            right = (smaller.classes_[proba.argmax(axis=1)] == expected).mean()
            shown = "all, double" if max_tokens is None else f"{max_tokens:,}, half"
            yield name, shown, *sizes.values(), f"{right:.4f}", f"{log_loss(expected, proba):.4f}"


def main(argv: list[str] | None = None) -> None:
    """Write the page."""
    parser = command_line.parser("tasks", __doc__)
    parser.add_argument("--explore", type=Path, required=True, help="folder of exploration sets")
    parser.add_argument("--reviews", type=Path, required=True, help="folder of reviews")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # of logistic regressions that stop early
    heads = (
        ("set", "labels", "model", "micro F1", "macro F1", "log loss", "fit, s"),
        ("texts", "model", "accuracy", "log loss"),
        ("reviews", "tokens", ".skops, MB", ".joblib, MB", "accuracy", "log loss"),
    )
    rows = (
        several_labels(options.explore),
        numbers_beside_text(options.explore),
        smaller_files(options.reviews),
    )
    titles = "Several labels a document", "Numbers beside text", "Smaller files"
    parts = [
        f"## {title}\n\n{pages.table(head, list(found))}"
        for title, head, found in zip(titles, heads, rows, strict=True)
    ]
    command = "python -m benchmarks.tasks --explore FOLDER --reviews FOLDER"
    text = pages.page("Other tasks than one label a text", command, *parts)
    pages.write(pages.RESULTS / "tasks.md", text)


if __name__ == "__main__":
    sys.exit(main())
