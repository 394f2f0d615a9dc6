"""Thin evidence: one class rare, words that are spelled otherwise.

``python -m benchmarks.rare [--explore FOLDER] [--languages FOLDER]``

*Thinned sets*: training texts of the exploration sets with 1, 2, 5, 20 or 80 of one class among
3,000 (of sets with many classes another class in each draw). The other texts are for testing,
weighted so that the classes have the same shares as in training.

*Words spelled otherwise*: 30 training texts a class, as they are; misspelled (six of ten words have
two letters swapped, or one left out, doubled or replaced); and joined (half of all spaces are left
out). In several languages: headlines of LANGUAGE/train.tsv with the columns headline and category,
such as the public ones of MasakhaNews (masakhane-io/masakhane-news, `data`), 600 a language.

Without folders the texts are generated requests.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.text import TokenVectorizer

from . import pages
from .models import OURS, quality, text_classifier
from .problems import load, sources

SETS = "sst2", "subj", "mr", "sms", "agnews", "20news", "banking77", "trecfine"
RARE = 1, 2, 5, 20, 80
N_TEXTS = 3_000
N_TESTED = 3_000  # texts of the other classes
LEAST = 120  # texts of a class that is made rare
FEW_SETS = "trec", "agnews", "banking77", "subj", "mr"
FEW = 30  # training texts of a class
FEW_CLASSES = 8
FEW_TESTED = 1_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
COUNTS = "ClsAttentionClassifier() on counts"


class Thinned(NamedTuple):
    """Texts of which few are of one class, and weighted texts to test with; y is 1 for it."""

    texts_train: NDArray[Any]
    y_train: NDArray[Any]
    texts_test: NDArray[Any]
    y_test: NDArray[Any]
    weights: NDArray[np.float64]


def thinned(
    texts: NDArray[Any], labels: NDArray[Any], n_rare: int, most: int, seed: int
) -> Thinned:
    """Return some of the texts, of which `n_rare` are of one class.

    The texts to test with are the same for every number up to `most`.
    """
    # 1) the class: the smaller or, of many, one of the larger ones
    names, sizes = np.unique(labels, return_counts=True)
    by_size = np.argsort(-sizes, kind="stable")
    many = by_size[sizes[by_size] >= min(LEAST, sizes.max())]
    rare = names[by_size[-1]] if len(names) == 2 else names[many[seed % len(many)]]
    # 2) the texts, at random
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    texts, is_rare = texts[order], labels[order] == rare
    positive, negative = np.flatnonzero(is_rare), np.flatnonzero(~is_rare)
    n_negative = min(N_TEXTS - n_rare, int(0.75 * len(negative)))
    train = rng.permutation(np.concatenate([positive[:n_rare], negative[:n_negative]]))
    # 3) the test
    tested = [positive[most:], negative[n_negative:][:N_TESTED]]
    weights = np.repeat(
        [n_rare / len(tested[0]), n_negative / len(tested[1])], [len(part) for part in tested]
    )
    test = np.concatenate(tested)
    y = is_rare.astype(int)
    return Thinned(texts[train], y[train], texts[test], y[test], weights)


def classifiers() -> dict[str, Callable[[], Any]]:
    """Return makers of classifiers of texts, by title."""

    def tfidf(last: Any) -> Any:
        return make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), last)

    return {
        OURS: text_classifier,
        COUNTS: lambda: make_pipeline(
            TokenVectorizer(ngram_range=(1, 2)), ClsAttentionClassifier()
        ),
        "TF-IDF, LR(C=10)": lambda: tfidf(LogisticRegression(C=10, max_iter=1000)),
        "the same, balanced": lambda: tfidf(
            LogisticRegression(C=10, max_iter=1000, class_weight="balanced")
        ),
        "LinearSVC(C=.11), balanced": lambda: tfidf(LinearSVC(C=0.11, class_weight="balanced")),
        "ComplementNB": lambda: tfidf(ComplementNB()),
    }


def ranking(model: Any, test: Thinned) -> dict[str, float]:
    """Return how well a fitted classifier ranks texts, and its log loss if it has probabilities."""
    if hasattr(model, "decision_function"):
        scores = model.decision_function(test.texts_test)
    else:
        scores = model.predict_log_proba(test.texts_test)[:, 1]
    y, weights = test.y_test, test.weights
    found = {
        "precision": average_precision_score(y, scores, sample_weight=weights),
        "auc": roc_auc_score(y, scores),
        "loss": np.nan,
    }
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(test.texts_test)
        found["loss"] = log_loss(y, probabilities, sample_weight=weights)
    return found


def on_thinned_sets(
    readers: dict[str, Callable[[], Any]], n_rare: tuple[int, ...], draws: int
) -> pd.DataFrame:
    """Return the measures of all classifiers on all draws, one row each."""
    rows = []
    for name, read in readers.items():
        texts, labels = read()
        for number in n_rare:
            for seed in range(draws):
                draw = thinned(texts, labels, number, max(n_rare), seed)
                for title, make in classifiers().items():
                    model = make().fit(draw.texts_train, draw.y_train)
                    where = {"set": name, "rare": number, "classifier": title}
                    rows.append(where | ranking(model, draw))
        print(name, file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def thinned_tables(found: pd.DataFrame) -> Iterator[str]:
    """Yield the tables of means over sets, and of each set's average precision."""
    header = ["", *(f"{number} of {N_TEXTS:,}" for number in found["rare"].unique())]
    titles = {"precision": "average precision", "loss": "log loss", "auc": "ROC AUC"}
    for measure, title in titles.items():
        means = found.groupby(["classifier", "rare"], sort=False)[measure].mean().unstack()
        form = ".4f" if measure == "loss" else ".3f"
        yield f"Mean {title} of {found['set'].nunique()} sets:"
        yield pages.table(header, _rows(means, form))
    means = found.groupby(["classifier", "set"], sort=False)["precision"].mean().unstack()
    yield "Average precision by set, mean over numbers and draws:"
    yield pages.table(["", *means.columns], _rows(means, ".3f"))
    means = found.groupby(["classifier", "set"], sort=False)["auc"].mean().unstack()
    yield "ROC AUC by set:"
    yield pages.table(["", *means.columns], _rows(means, ".3f"))


def _rows(means: pd.DataFrame, form: str) -> list[list[str]]:
    """Return the rows of a table of means."""
    return [
        [title, *("–" if np.isnan(mean) else format(mean, form) for mean in means.loc[title])]
        for title in means.index
    ]


def misspelled(text: str, random_state: random.Random) -> str:
    """Return a text with a typing error in six of ten words that have three letters or more."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if len(word) > 2 and random_state.random() < 0.6:
            at = random_state.randrange(len(word) - 1)
            before, letter, after = word[:at], word[at], word[at + 1 :]
            errors = [
                before + after[0] + letter + after[1:],
                before + after,
                before + 2 * letter + after,
                before + random_state.choice(LETTERS) + after,
            ]
            words[i] = random_state.choice(errors)
    return " ".join(words)


def joined(text: str, random_state: random.Random) -> str:
    """Return a text without half of its spaces."""
    first, *others = text.split(" ")
    return first + "".join(random_state.choice(["", " "]) + word for word in others)


def few_texts(
    readers: dict[str, Callable[[], Any]], languages: Path | None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield names of sets, their texts, as they are and spelled otherwise, and their labels.

    The sets have at most eight classes.
    """
    for name, read in readers.items():
        texts, labels = read()
        some = np.isin(labels, np.unique(labels)[:FEW_CLASSES])
        texts, labels = texts[some], labels[some]
        yield name, texts, labels
        for change in misspelled, joined:
            random_state = random.Random(0)
            changed = [change(text, random_state) for text in texts]
            yield f"{name}, {change.__name__}", np.array(changed, dtype=object), labels
    if languages:
        yield "several languages", *read_languages(languages)


def read_languages(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return headlines in several languages, and their topics."""
    frames = []
    for file in sorted(folder.glob("*/train.tsv")):
        frame = pd.read_csv(file, sep="\t", dtype=str, keep_default_na=False)
        frames.append(frame.sample(min(len(frame), 600), random_state=0))
    frame = pd.concat(frames)
    return frame["headline"].to_numpy(dtype=object), frame["category"].to_numpy(dtype=object)


def few_of_each_class(labels: NDArray[Any], seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows to train on, some of each class, and others to test on."""
    order = np.random.default_rng(seed).permutation(len(labels))
    train = np.concatenate([order[labels[order] == label][:FEW] for label in np.unique(labels)])
    return train, order[~np.isin(order, train)][:FEW_TESTED]


def words_table(sets: Iterable[tuple[str, Any, Any]], draws: int) -> str:
    """Return the table of classifiers by words and by characters, of few texts of each set."""

    def by_tfidf(**options: Any) -> Any:
        return make_pipeline(TfidfVectorizer(**options), LogisticRegression(C=10, max_iter=1000))

    makers = {
        OURS: text_classifier,
        "LR(C=10), TF-IDF of characters (2, 5)": lambda: by_tfidf(
            analyzer="char_wb", ngram_range=(2, 5)
        ),
        "LR(C=10), TF-IDF of words (1, 2)": lambda: by_tfidf(ngram_range=(1, 2)),
    }
    rows = []
    for name, texts, labels in sets:
        row = [name]
        for make in makers.values():
            results = []
            for seed in range(draws):
                train, test = few_of_each_class(labels, seed)
                model = make().fit(texts[train], labels[train])
                found = quality(model, texts[test], labels[test])
                results.append([found["accuracy"], found["log_loss"]])
            row.append("{:.3f} {:.3f}".format(*np.mean(results, axis=0)))
        rows.append(row)
        print(name, file=sys.stderr, flush=True)
    return pages.table(["", *makers], rows)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the page."""
    parser = pages.parser("rare", __doc__, "explore")
    parser.add_argument("--languages", type=Path, metavar="FOLDER", help="folder of headlines")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    topic = load("topic")
    readers: dict[str, Any] = {"topic": lambda: (topic.X_train, topic.y_train)}
    sets = few_sets = list(readers)
    n_rare: tuple[int, ...] = (5, 20)
    if options.explore:
        readers = sources(options.explore, None)
        sets, few_sets, n_rare = list(SETS), list(FEW_SETS), RARE
    found = on_thinned_sets({name: readers[name] for name in sets}, n_rare, options.draws)
    few = few_texts({name: readers[name] for name in few_sets}, options.languages)
    parts = [
        "## Thinned sets",
        *thinned_tables(found),
        "## Words spelled otherwise",
        f"Accuracy and log loss, {FEW} training texts a class, mean over draws.",
        words_table(few, options.draws),
    ]
    command = "rare" + " --explore FOLDER" * bool(options.explore)
    command += " --languages FOLDER" * bool(options.languages)
    pages.publish(options.output, "Thin evidence", command, *parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
