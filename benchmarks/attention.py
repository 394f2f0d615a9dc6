"""Attention off against on, by set and by length: ``python -m benchmarks.attention``.

Off: all tokens have the same attention score, whatever they are; the values' scales and prior mean,
the damped counts, ``<cls>`` and the choice of C are the same. On: the default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from benchmarks import command_line, pages
from benchmarks.defaults.sets import sources
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.statistics import Scaling, token_scaling
from sklearn_clsattn.text import TokenVectorizer

MOST_TRAIN, MOST_TEST = 4_000, 3_000
THIRDS = "short", "middle", "long"


def output_losses(outputs: Any, y: Any) -> Any:
    """Return the log loss of each document (n,), of class codes and outputs (n, n_outputs)."""
    if outputs.shape[1] == 1:
        outputs = np.column_stack([np.zeros(len(outputs)), outputs])
    return -log_softmax(outputs, axis=1)[np.arange(len(y)), y]


def uniform_scaling(statistics: Any, **how: Any) -> Scaling:
    """Return the default's scaling of tokens but for the attention scores, which are all 0."""
    scaling = token_scaling(statistics, **how)
    importance = np.exp(scaling.starting_scores)
    mass = statistics.mean_token_weight
    larger = mass / scaling.cls_weight  # mass at the start, over that with the default's scores
    return replace(
        scaling,
        starting_scores=np.zeros_like(scaling.starting_scores),
        value_scales=scaling.value_scales * (importance * larger).astype(importance.dtype)[:, None],
        cls_weight=mass,
        unit=scaling.unit * larger,
    )


def fitted(X: Any, y: Any, attention: bool) -> ClsAttentionClassifier:
    """Return a model with attention or without."""
    if attention:
        return ClsAttentionClassifier(attention_C="auto").fit(X, y)
    with patch("sklearn_clsattn._core.path.token_scaling", uniform_scaling):
        return ClsAttentionClassifier(attention_C=1e-9).fit(X, y)


def measured(name: str, read: Callable[[], Any], seed: int) -> list[dict[str, Any]]:
    """Return accuracy and log loss of both models on every third of the test documents."""
    texts, labels = read()
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = np.split(order, [int(0.75 * len(order))])
    train, test = train[:MOST_TRAIN], test[:MOST_TEST]
    classes, y = np.unique(labels[train], return_inverse=True)
    test = test[np.isin(labels[test], classes)]
    y_test = np.searchsorted(classes, labels[test])
    vectorizer = TokenVectorizer(ngram_range=(1, 2), min_df=2)
    X, X_test = vectorizer.fit_transform(texts[train]), vectorizer.transform(texts[test])
    words = np.array([len(text.split()) for text in texts[test]])
    third = np.argsort(np.argsort(words, kind="stable")) * 3 // len(words)
    rows = []
    for attention in (False, True):
        outputs = fitted(X, y, attention).decision_function(X_test)
        outputs = outputs[:, None] if outputs.ndim == 1 else outputs
        losses = output_losses(outputs, y_test)
        said = outputs.argmax(axis=1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0)
        for number, title in enumerate(THIRDS):
            part = third == number
            row = {"set": name, "seed": seed, "attention": attention, "third": title}
            row["words"] = float(np.median(words[part]))
            row["accuracy"] = float(np.mean(said[part] == y_test[part]))
            row["log_loss"] = float(losses[part].mean())
            rows.append(row)
    return rows


def tables(found: pd.DataFrame) -> list[str]:
    """Return the table of the sets, and that of their thirds."""
    keys = ["set", "third"]
    means = found.groupby([*keys, "attention"])[["accuracy", "log_loss", "words"]].mean().unstack()
    points = 100 * (means["accuracy", True] - means["accuracy", False])
    losses = means["log_loss", True] - means["log_loss", False]
    rows, of_thirds = [], []
    for name in means.index.unique("set"):
        of_set = means.loc[name].mean()
        columns = [("accuracy", False), ("accuracy", True), ("log_loss", False), ("log_loss", True)]
        gain, loss = points[name].mean(), losses[name].mean()
        numbers = [f"{of_set[column]:.4f}" for column in columns]
        rows.append((name, *numbers, f"{gain:+.2f}", f"{loss:+.4f}"))
        cells = [
            f"{means.loc[name, third]['words', True]:.0f} words: "
            f"{points[name, third]:+.2f}, {losses[name, third]:+.4f}"
            for third in THIRDS
        ]
        of_thirds.append((name, *cells))
    by_set = points.groupby("set").mean(), losses.groupby("set").mean()
    last = [
        f"{mean.mean():{form}} ± {mean.sem():{form[1:]}}"
        for mean, form in zip(by_set, ("+.2f", "+.4f"), strict=True)
    ]
    rows.append(("mean", "", "", "", "", *last))
    header = ("", "off", "on", "log loss off", "on", "points", "difference")
    return [
        pages.table(header, rows),
        "## By length\n\nThirds of the test documents: median length, points and log loss that "
        "attention adds.",
        pages.table(("", *THIRDS), of_thirds),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Measure every set, and write the page."""
    parser = command_line.parser("attention", __doc__)
    parser.add_argument("--explore", type=Path, help="folder of NAME.csv.gz: text, label, part")
    parser.add_argument("--reviews", type=Path, help="folder of the reviews' training files")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--output", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    found = []
    for name, read in sources(options.explore, options.reviews).items():
        for seed in range(options.seeds):
            found += measured(name, read, seed)
        print(name, file=sys.stderr, flush=True)
    notes = (
        f"Words and pairs of words, {MOST_TRAIN:,} training documents (or all), "
        f"{options.seeds} splits of training files."
    )
    command = "python -m benchmarks.attention --explore FOLDER --reviews FOLDER"
    page = pages.page("Attention off against on", command, notes, *tables(pd.DataFrame(found)))
    pages.publish(page, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
