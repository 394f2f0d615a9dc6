"""Where the exact number of frequent words decides: ``python -m benchmarks.exact_counts``.

Documents are 20 generated messages of content customers, or 19 and one of an upset one. Every
content message has one of a few words, so that their number, 20 or 19, tells the class: a linear
model on counts can add them up, one on damped counts or on shares cannot.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from benchmarks import command_line, pages
from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn.datasets import load_requests

N_DOCUMENTS, N_TRAIN, N_MESSAGES = 2_400, 1_600, 20
RAW = {"token_scaling": None, "sublinear_counts": False, "C": 100.0, "max_iter": 3_000}


def documents(seed: int) -> tuple[list[str], Any]:
    """Return documents of messages, and whether one of these is of an upset customer."""
    requests = load_requests()
    texts, mood = np.array(requests.data, dtype=object), requests.mood
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_DOCUMENTS)
    joined = []
    for is_upset in y:
        messages = list(rng.choice(texts[mood == "content"], N_MESSAGES))
        if is_upset:
            messages[rng.integers(N_MESSAGES)] = rng.choice(texts[mood == "upset"])
        joined.append(" ".join(messages))
    return joined, y


def damped(X: Any) -> Any:
    """Return counts c as log(1 + c)."""
    X = X.astype(np.float64)
    X.data = np.log1p(X.data)
    return X


def main(arguments: list[str] | None = None) -> int:
    """Measure the models, and write the page."""
    parser = command_line.parser("exact_counts", __doc__)
    parser.add_argument("--output", type=Path, help="file for the page")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", ConvergenceWarning)
    texts, y = documents(0)
    X = CountVectorizer(min_df=2).fit_transform(texts)
    logistic = LogisticRegression(max_iter=5_000)
    shares = normalize(X.astype(np.float64), norm="l1") * float(X.sum(axis=1).mean())
    models = {
        "logistic regression on counts": (logistic, X),
        "on damped counts": (logistic, damped(X)),
        "on shares of each document": (logistic, shares),
        "this model, defaults": (ClsAttentionClassifier(), X),
        "this model, " + ", ".join(f"{a}={b}" for a, b in RAW.items()): (
            ClsAttentionClassifier(**RAW),
            X,
        ),
    }
    rows = []
    for name, (model, given) in models.items():
        model.fit(given[:N_TRAIN], y[:N_TRAIN])
        accuracy = model.score(given[N_TRAIN:], y[N_TRAIN:])
        rows.append((name, f"{accuracy:.3f}", int(np.max(model.n_iter_))))
    notes = (
        f"{N_TRAIN:,} documents for training, {N_DOCUMENTS - N_TRAIN} to test on, "
        f"{X.shape[1]} words."
    )
    table = pages.table(("", "accuracy", "steps"), rows)
    command = "python -m benchmarks.exact_counts"
    title = "Where the exact number of frequent words decides"
    pages.publish(pages.page(title, command, notes, table), options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
