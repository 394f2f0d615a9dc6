"""From raw text to predictions: ours beside other models of scikit-learn, on the same texts.

``python -m benchmarks.peers [--reviews FOLDER] [--explore FOLDER] [--sets NAME ...]``
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from . import pages, problems
from .models import OURS, nb_svm, quality, text_classifier, with_characters
from .processes import in_process, peak_during, timed

SECONDS = 1_200.0  # at most, for a model and a set
_KARL, _WANG = "fine-tuned (Karl and Scherp 2022)", "words and pairs (Wang and Manning 2012)"
PUBLISHED = {  # accuracies on the same split
    "r8": {
        f"DeBERTa, {_KARL}": 0.9845,
        f"BERT, {_KARL}": 0.9817,
        f"DistilBERT, {_KARL}": 0.9798,
        "wide MLP (Galke and Scherp 2022)": 0.9727,
        "TextGCN (Yao et al. 2019)": 0.9707,
    },
    "imdb": {f"NB-SVM, {_WANG}": 0.9122, f"SVM, {_WANG}": 0.8916},
}
_NOTES = """\
Each model has a process and a thread of its own, twenty minutes at most, and defaults; dashes: it
failed or took longer. Features are TF-IDF of words and pairs of words in two texts at least (counts
for NB-SVM), `sublinear_tf=True`, and where it says so of characters within words, two to five. C is
tuned by accuracy in three folds. Seconds are from raw texts, after a short fit that imports. Memory
is the peak of the fit's process with texts and libraries; saved is a file's size. Published figures
are as reported. Our defaults were chosen on training texts of the sets of `--explore`. Without a
test part, a random quarter is one."""


def _of_pairs(model: Any, vectorizer: Any = None) -> Any:
    """Return a model of words and pairs of words, with TF-IDF weights unless told otherwise."""
    vectorizer = vectorizer or TfidfVectorizer(sublinear_tf=True)
    return make_pipeline(vectorizer.set_params(ngram_range=(1, 2), min_df=2), model)


_LOGISTIC = LogisticRegression(max_iter=1000)
_TUNED = GridSearchCV(_LOGISTIC, {"C": (1.0, 3.0, 10.0, 30.0, 100.0)}, cv=3)
PEERS: dict[str, Callable[[], Any]] = {
    OURS: text_classifier,
    "LogisticRegression": lambda: _of_pairs(_LOGISTIC),
    "LogisticRegression, C tuned": lambda: _of_pairs(_TUNED),
    "LogisticRegression with characters, C tuned": lambda: with_characters(_TUNED),
    "LinearSVC": lambda: _of_pairs(LinearSVC(random_state=0)),
    "NB-SVM, C=0.1": lambda: _of_pairs(nb_svm(0.1, 3), CountVectorizer()),
}


def measure(peer: str, *source: Any) -> dict[str, Any]:
    """Return what a model takes on a set, and what it reaches."""
    warnings.simplefilter("ignore")  # of solvers that stop early
    X, y, asked, y_asked = problems.load(*source)
    taken: list[float] = []
    rows = np.flatnonzero(np.isin(y, np.unique(y)[:2]))[:500]  # two classes will do to import
    PEERS[peer]().fit(X[rows], y[rows])
    model = PEERS[peer]()
    peak = peak_during(lambda: taken.append(timed(lambda: model.fit(X, y))[1]))
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    _, prediction = timed(lambda: getattr(model, predict)(asked))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        joblib.dump(model, path)
        size = path.stat().st_size / 1e6
    found: dict[str, Any] = quality(model, asked, y_asked)
    found |= {"fit": taken[0], "predict": prediction, "peak": peak / 1e6, "size": size}
    sizes = f"{len(X):,} texts, {len(asked):,} for testing, {len(np.unique(y))} classes"
    return found | {"sizes": sizes}


def race(*source: Any) -> dict[str, dict[str, Any] | None]:
    """Return the measures of all models; None if one fails, or takes long."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in PEERS:
        call = partial(in_process, "benchmarks.peers.measure", name, *source)
        try:
            found[name] = call(one_thread=True, seconds=SECONDS)
        except (subprocess.TimeoutExpired, RuntimeError) as failure:
            print(failure, file=sys.stderr)
            found[name] = None
        print(source[0], name, found[name], file=sys.stderr, flush=True)
    return found


def section(name: str, found: dict[str, dict[str, Any] | None]) -> str:
    """Return the table of a set."""
    forms = {"accuracy": ".4f", "log_loss": ".4f", "fit": ".3g", "predict": ".2g"}
    forms |= {"peak": ",.0f", "size": ",.1f"}
    rows = [
        (peer, *(pages.number(one and one[what], form) for what, form in forms.items()))
        for peer, one in found.items()
    ]
    published = PUBLISHED.get(name, {}).items()
    rows += [(f"*{who}*", f"{value:.4f}", *"–––––") for who, value in published]
    header = "", "accuracy", "log loss", "fit, s", "predict, s", "memory, MB", "saved, MB"
    sizes = next(one["sizes"] for one in found.values() if one)
    return f"## {name}\n\n{sizes}.\n\n{pages.table(header, rows)}"


def main(arguments: list[str] | None = None) -> int:
    """Measure the models on all sets, and write the page."""
    parser = pages.parser("peers", __doc__, "reviews", "explore")
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=["topic"])
    options = parser.parse_args(arguments)
    results = {name: race(name, options.reviews, options.explore) for name in options.sets}
    command = f"peers --reviews FOLDER --explore FOLDER --sets {' '.join(options.sets)}"
    sections = [section(name, found) for name, found in results.items()]
    pages.publish(options.output, "Beside its peers, from raw text", command, _NOTES, *sections)
    return 0


if __name__ == "__main__":
    sys.exit(main())
