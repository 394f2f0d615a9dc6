"""When attention beats a linear model: ``python -m benchmarks.paper.needles [--fast]``.

Documents have L tokens, of which K are relevant: drawn from 40 K tokens of their class, so that
each of these tokens is in one of 80 documents whatever K. The other L - K are drawn from 3,000
irrelevant tokens, by Zipf's law or all alike. In the lines with noise a tenth of the labels are
wrong, in the test documents as well: no classifier is right more often than 9 times of 10 there.

A linear model adds up the K relevant tokens and the noise of L others, which grows as the root of
L: its accuracy should depend on K^2 / L. Attention leaves most of the others out (Barnfield, Cui
and Lu, arXiv:2509.25153: a signal of the order log L is enough for it, where averages of tokens
need the root of L).

Every claim below was written down before the run, after trials on other seeds.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from benchmarks import pages
from sklearn_clsattn import ClsAttentionClassifier, TokenImportanceTransformer
from sklearn_clsattn.paper import EmbeddingClassifier, OneStepClassifier

LENGTHS = 10, 50, 200, 800, 3_000
N_TRAIN, N_TEST, SEEDS = 1_500, 2_000, (0, 1)
N_IRRELEVANT, RELEVANT_PER_NEEDLE = 3_000, 40
COUNTS, TFIDF, AUTO = (
    "LogisticRegression, counts",
    "LogisticRegression, TF-IDF",
    'attention_C="auto"',
)
FIXED, LARGE, HUGE = "attention_C=0.03", "attention_C=1", "attention_C=30"
BAYES = "NB-SVM"


@dataclass(frozen=True)
class Line:
    """Documents of all lengths that have K relevant tokens, their frequencies and label noise."""

    n_needles: int
    zipf: bool
    noise: float

    @property
    def all_models(self) -> bool:
        """Whether the models that take longest are fitted as well."""
        return self.zipf and self.n_needles == 1


LINES = [Line(K, zipf, noise) for K, zipf, noise in product((1, 2, 5), (True, False), (0.0, 0.1))]
LINES = [line for line in LINES if line.zipf or not line.noise or line.n_needles == 1]


def documents(line: Line, length: int, n_documents: int, seed: int) -> tuple[Any, Any]:
    """Return counts of documents of one length, (n_documents, n_tokens), and labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_documents) % 2)
    n_relevant = RELEVANT_PER_NEEDLE * line.n_needles
    drawn = rng.integers(0, n_relevant, (n_documents, line.n_needles))
    relevant = drawn + n_relevant * y[:, None]
    frequencies = np.arange(1.0, N_IRRELEVANT + 1) ** (-1.0 if line.zipf else 0.0)
    cumulative = np.cumsum(frequencies) / frequencies.sum()
    others = np.searchsorted(cumulative, rng.random((n_documents, length - line.n_needles)))
    tokens = np.hstack([relevant, 2 * n_relevant + others]).ravel()
    starts = np.arange(0, len(tokens) + 1, length)
    shape = n_documents, 2 * n_relevant + N_IRRELEVANT
    X = sp.csr_matrix((np.ones(len(tokens), dtype=np.int64), tokens, starts), shape=shape)
    X.sum_duplicates()
    flipped = rng.random(n_documents) < line.noise
    return X, np.where(flipped, 1 - y, y)


def tuned(*steps: Any, values: tuple[float, ...]) -> GridSearchCV:
    """Return logistic regression after some steps, with the C of best accuracy on a quarter."""
    pipeline = make_pipeline(*steps, LogisticRegression())
    held_out = StratifiedShuffleSplit(1, test_size=0.25, random_state=0)
    return GridSearchCV(pipeline, {"logisticregression__C": values}, cv=held_out)


def models(line: Line) -> dict[str, Callable[[], Any]]:
    """Return how the classifiers that are compared are made, by their titles."""
    few, many = (0.003, 0.03, 0.3, 3.0), (1.0, 10.0, 100.0, 1000.0)
    weights = Binarizer(), TokenImportanceTransformer("log_odds")
    makers: dict[str, Callable[[], Any]] = {
        COUNTS: lambda: tuned(values=few),
        TFIDF: lambda: tuned(TfidfTransformer(), values=many),
        BAYES: lambda: tuned(*weights, values=few),
        FIXED: lambda: ClsAttentionClassifier(attention_C=0.03),
        AUTO: lambda: ClsAttentionClassifier(attention_C="auto"),
    }
    if line.all_models:
        makers[LARGE] = lambda: ClsAttentionClassifier(attention_C=1.0)
        makers[HUGE] = lambda: ClsAttentionClassifier(attention_C=30.0)
        makers["OneStepClassifier"] = lambda: OneStepClassifier(max_iter=100)
        makers["EmbeddingClassifier"] = lambda: EmbeddingClassifier(random_state=0)
    return makers


def measured(line: Line, length: int, seed: int, n_train: int, n_test: int) -> list[dict[str, Any]]:
    """Return the rows of the record for documents of one length: one row a model."""
    X, y = documents(line, length, n_train + n_test, seed)
    rows = []
    for title, make in models(line).items():
        started = time.process_time()
        with warnings.catch_warnings():  # what does not converge in its usual time is judged so
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            model = make().fit(X[:n_train], y[:n_train])
        seconds = time.process_time() - started
        probabilities = model.predict_proba(X[n_train:])
        row = {
            "relevant": line.n_needles,
            "frequencies": "Zipf" if line.zipf else "flat",
            "noise": line.noise,
            "length": length,
            "seed": seed,
            "model": title,
            "accuracy": float(np.mean(probabilities.argmax(axis=1) == y[n_train:])),
            "log_loss": float(log_loss(y[n_train:], probabilities)),
            "attention_C": getattr(model, "attention_C_", np.nan),
            "seconds": round(seconds, 2),
        }
        rows.append(row)
    return rows


def accuracies(record: pd.DataFrame, relevant: int, frequencies: str, noise: float) -> pd.DataFrame:
    """Return the mean accuracy over seeds of a line, one row a length and one column a model."""
    where = (record["relevant"] == relevant) & (record["frequencies"] == frequencies)
    of_line = record[where & (record["noise"] == noise)]
    return of_line.pivot_table(index="length", columns="model", values="accuracy")


def crossing(accuracy: pd.Series, level: float = 0.75) -> float:
    """Return the length at which an accuracy that falls with length passes a level."""
    below = np.flatnonzero(accuracy.to_numpy() < level)
    if not len(below) or below[0] == 0:
        return float("nan")
    ends = accuracy.iloc[below[0] - 1 : below[0] + 1]
    share = (ends.iloc[0] - level) / (ends.iloc[0] - ends.iloc[1])
    logs = np.log(ends.index.to_numpy(dtype=float))
    return float(np.exp(logs[0] + share * (logs[1] - logs[0])))


def claims(record: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    """Return claims, what is asked of them, what was measured, and whether they hold."""
    rows = []

    def claim(words: str, value: float, least: float, most: float = np.inf, form: str = ".3f"):
        asked = f"at least {least:g}" if most == np.inf else f"{least:g} to {most:g}"
        asked = f"at most {most:g}" if least == -np.inf else asked
        verdict = "holds" if least <= value <= most else "**fails**"
        rows.append((words, asked, format(value, form), verdict))

    for frequencies in ("flat", "Zipf"):
        lengths = [crossing(accuracies(record, K, frequencies, 0.0)[TFIDF]) for K in (1, 2, 5)]
        known = np.isfinite(lengths)
        words = f"length at which TF-IDF is right 3 times of 4, {frequencies}: power of K"
        logs = np.log(np.array([1, 2, 5])[known]), np.log(np.array(lengths)[known])
        slope = np.polyfit(*logs, 1)[0] if known.sum() > 1 else np.nan
        claim(f"{words} (theory: 2)", float(slope), 1.5, 2.5, ".2f")
    clean, noisy = accuracies(record, 1, "Zipf", 0.0), accuracies(record, 1, "Zipf", 0.1)
    linear = clean[[COUNTS, TFIDF]].max(axis=1)
    long = [length for length in clean.index if length >= 200]
    claim("one relevant token of 200: the better logistic regression", linear[200], -np.inf, 0.85)
    without_noise = record[(record["noise"] == 0) & (record["model"] == AUTO)]
    claim("attention_C chosen, without noise, worst line", without_noise["accuracy"].min(), 0.99)
    claim(
        "attention_C chosen, with noise, one token, from L = 50, worst",
        noisy[AUTO].loc[50:].min(),
        0.84,
    )
    gain = 100 * (noisy[AUTO] - noisy[FIXED])
    words = "points that choosing attention_C adds, one token, noise, from L = 200, mean"
    claim(words, gain[long].mean(), 3.0, form=".1f")
    wide = record.pivot_table(
        index=["relevant", "frequencies", "noise", "length", "seed"],
        columns="model",
        values="accuracy",
    )
    lost = 100 * (wide[AUTO] - wide[FIXED]).min()
    claim("points that it costs elsewhere, worst documents", lost, -1.0, form=".1f")
    over_bayes = 100 * (wide[AUTO] - wide[BAYES])
    noise = wide.index.get_level_values("noise") > 0
    claim("points over NB-SVM with noise, mean", over_bayes[noise].mean(), 0.0, form=".1f")
    words = "points of attention_C=1 over 30, one token, noise, mean"
    claim(words, 100 * (noisy[LARGE] - noisy[HUGE]).mean(), 1.0, form=".1f")
    return rows


def picture(record: pd.DataFrame) -> Figure:
    """Return the picture: accuracy over length, without noise and with it, and by K."""
    styles = {
        AUTO: ('this model, attention_C="auto"', "#D55E00", "o", "-"),
        BAYES: ("NB-SVM, tuned", "#009E73", "^", "-"),
        TFIDF: ("logistic regression, TF-IDF, tuned", "#0072B2", "s", "-"),
        COUNTS: ("logistic regression, counts, tuned", "#56B4E9", "D", "-"),
        FIXED: ("this model, default", "#D55E00", "o", ":"),
    }
    figure = Figure(figsize=(11, 3.7), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    titles = (
        "one relevant token",
        "one, a tenth of the labels wrong",
        "1, 2 or 5, flat frequencies",
    )
    for ax, noise in zip(axes[:2], (0.0, 0.1), strict=True):
        accuracy = accuracies(record, 1, "Zipf", noise)
        for model, (label, colour, mark, line) in styles.items():
            if model != FIXED or noise:
                ax.plot(accuracy[model], line, color=colour, marker=mark, ms=5, label=label)
    for K, mark in zip((1, 2, 5), "osD", strict=True):
        accuracy = accuracies(record, K, "flat", 0.0)
        axes[2].plot(accuracy[AUTO], color="#D55E00", marker=mark, ms=5, label=f"auto, {K}")
        axes[2].plot(accuracy[TFIDF], color="#0072B2", marker=mark, ms=5, label=f"TF-IDF, {K}")
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xscale="log", xlabel="tokens in a document", ylim=(0.32, 1.02))
        ax.axhline(0.5, color="#cccccc", linewidth=0.8)
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy")
    axes[1].legend(frameon=False, fontsize=7.5, loc="lower left")
    axes[2].legend(frameon=False, fontsize=7.5, loc="lower left", ncols=2)
    return figure


def sections(record: pd.DataFrame) -> list[str]:
    """Return the parts of the page: the claims, and a table for every line."""
    parts = [
        "Test accuracy, means over seeds. What is generated, and why, says "
        "`benchmarks/paper/needles.py`; the record is [needles.csv](../../docs/needles.csv). The "
        "claims were written down before the run.",
        pages.table(("", "asked", "measured", ""), claims(record)),
    ]
    for line in LINES:
        frequencies = "Zipf" if line.zipf else "flat"
        accuracy = accuracies(record, line.n_needles, frequencies, line.noise)
        titles = [title for title in models(line) if title in accuracy]
        rows = [
            (f"{length:,}", *(f"{row[t]:.3f}" for t in titles))
            for length, row in accuracy.iterrows()
        ]
        parts.append(f"## {line.n_needles} relevant, {frequencies}, noise {line.noise:g}")
        parts.append(pages.table(("tokens", *titles), rows))
    return parts


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write the record, the picture and the page."""
    parser = pages.parser("paper.needles", __doc__, output=False)
    parser.add_argument("--fast", action="store_true", help="few short documents, another seed")
    parser.add_argument("--out", type=Path, help="folder of record, picture and page")
    parser.add_argument("--go-on", action="store_true", help="keep the lines of the record")
    options = parser.parse_args(arguments)
    out = Path(tempfile.mkdtemp(prefix="needles-")) if options.fast else None
    out = options.out or out
    file = (out or pages.DOCS) / "needles.csv"
    images = out or pages.DOCS / "images"
    file.parent.mkdir(parents=True, exist_ok=True)
    lengths, seeds, sizes = LENGTHS, SEEDS, (N_TRAIN, N_TEST)
    if options.fast:
        lengths, seeds, sizes = (10, 200), (1000,), (200, 200)
    keys = ["relevant", "frequencies", "noise", "length", "seed"]
    parts = [pd.read_csv(file)] if options.go_on and file.is_file() else []
    known = set(parts[0][keys].itertuples(index=False, name=None)) if parts else set()
    for seed, length, line in product(seeds, lengths, LINES):
        frequencies = "Zipf" if line.zipf else "flat"
        if (line.n_needles, frequencies, line.noise, length, seed) in known:
            continue
        parts.append(pd.DataFrame(measured(line, length, seed, *sizes)))
        pd.concat(parts).to_csv(file, index=False, float_format="%.6g")
        print(f"seed {seed}, {length:,} tokens, {line}", file=sys.stderr, flush=True)
    record = pd.read_csv(file)
    picture(record).savefig(images / "needles.png", dpi=110)
    command = "paper.needles" + " --fast" * options.fast
    path = (out or pages.RESULTS) / "needles.md"
    pages.publish(path, "A needle in a haystack", command, *sections(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
