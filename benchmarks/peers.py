"""From raw text to predictions: ours beside what others would take, on the same texts.

``python -m benchmarks.peers [--reviews FOLDER] [--explore FOLDER] [--sets NAME ...]``

Reviews give the sets imdb, polarity and stars; the other folder has NAME.csv.gz with the columns
text, label and part. Without folders, generated requests are classified. What is not installed is
left out: ``pip install --group peers``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from sklearn_clsattn.datasets import load_requests

from . import command_line, machine, pages, problems
from .competitors import PEERS
from .memory import peak_during
from .problems import REVIEWS, Problem, Spec
from .processes import in_process
from .timing import quality, timed

IMAGES = command_line.ROOT / "docs" / "images"
SECONDS = 300.0  # at most, for a model and a set
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
Each model has a process and a thread of its own, five minutes at most, and defaults; dashes: it
failed or took longer. Features are TF-IDF of words and pairs of words in two texts at least (counts
for NB-SVM, five texts for LightGBM and EBM, of which EBM has the best 300 by chi2),
`sublinear_tf=True`. C is tuned by accuracy in three folds. fastText (pairs of words, 25 epochs,
learning rate 0.5) and LightGBM (`min_sum_hessian_in_leaf=0.1`) were set on training texts. Seconds
are from raw texts, after a short fit that imports. Memory is the peak of the fit's process with
texts and libraries; saved is a file's size. Published figures are as reported. Our defaults were
chosen on training texts of the sets of `--explore`. Without a test part, a random
quarter is one."""


def load(name: str, folder: str | None) -> Problem:
    """Return a set of a folder, or without it of generated requests."""
    if folder:
        return problems.load_texts(REVIEWS.get(name, Spec(name, "", name)), Path(folder))
    texts, y = load_requests(target=name, return_X_y=True)
    halves = problems.split_texts(texts, y, np.zeros(len(y), dtype=bool))
    return Problem(name, "", Path(), *halves[0], *halves[1])


def measure(peer: str, *source: Any) -> dict[str, Any]:
    """Return what a model takes on a set, and what it reaches."""
    warnings.simplefilter("ignore")  # of solvers that stop early
    texts, taken = load(*source), list[float]()
    X, y, asked = texts.X_train, texts.y_train, texts.X_test
    rows = np.flatnonzero(np.isin(y, np.unique(y)[:2]))[:500]  # two classes will do to import
    PEERS[peer].make().fit(X[rows], y[rows])
    model = PEERS[peer].make()
    peak = peak_during(lambda: taken.append(timed(lambda: model.fit(X, y))[1]))
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    _, prediction = timed(lambda: getattr(model, predict)(asked))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        getattr(model, "save_model", partial(joblib.dump, model))(str(path))
        size = path.stat().st_size / 1e6
    found: dict[str, Any] = quality(model, asked, texts.y_test)
    found |= {"fit": taken[0], "predict": prediction, "peak": peak / 1e6, "size": size}
    sizes = f"{len(X):,} texts, {len(asked):,} for testing, {texts.n_classes} classes"
    return found | {"sizes": sizes}


def race(*source: Any) -> dict[str, dict[str, Any] | None]:
    """Return the measures of all models that are installed; None if one fails, or takes long."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in (name for name, peer in PEERS.items() if find_spec(peer.package)):
        given = "benchmarks.peers.measure", name, *source
        try:
            found[name] = in_process(*given, one_thread=True, seconds=SECONDS)
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


def draw(results: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw accuracy against the time from raw texts to predictions, one panel a set."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = Figure(figsize=(12.8, 3.6 * -(-len(results) // 2)))
    for at, (name, found) in enumerate(results.items(), 1):
        ax = figure.add_subplot(-(-len(results) // 2), 2, at)
        labels = []  # names on the right, from the least accurate, with a line to where they belong
        for peer, one in ((peer, one) for peer, one in found.items() if one):
            _, colour, mark, _ = PEERS[peer]
            point = one["fit"] + one["predict"], 100 * one["accuracy"]
            size = 240 if mark == "*" else 70
            ax.scatter(*point, size, colour, marker=mark, edgecolor="white", zorder=3)
            labels.append((point[1], peer, colour, point, "data"))
        for who, value in PUBLISHED.get(name, {}).items():
            ax.axhline(100 * value, color="0.75", linestyle=":", zorder=1)
            edge = (1, 100 * value), ("axes fraction", "data")
            labels.append((100 * value, who.partition(" (")[0], "0.45", *edge))
        heights = np.linspace(0, 1, len(labels))
        line = {"arrowstyle": "-", "color": "0.85", "linewidth": 0.7, "relpos": (0, 0.5)}
        style = {"textcoords": "axes fraction", "va": "center", "size": 9, "arrowprops": line}
        for height, (_, text, colour, point, where) in zip(heights, sorted(labels), strict=True):
            ax.annotate(text, point, (1.06, height), where, color=colour, **style)
        ax.set(xscale="log", xlabel="raw texts to predictions, seconds", ylabel="accuracy, %")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(name, loc="left")
        ax.grid(color="0.93", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main(arguments: list[str] | None = None) -> int:
    parser = command_line.parser("peers", __doc__, reviews=True)
    parser.add_argument("--explore", type=Path, help="folder of sets, NAME.csv.gz")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--output", type=Path, help="folder of page and picture")
    options = parser.parse_args(arguments)
    described = machine.describe()  # its load, before this adds to it
    reviews = problems.find_reviews(options.reviews)
    folders = dict.fromkeys(REVIEWS, reviews) if reviews else {}
    files = sorted(options.explore.glob("*.csv.gz")) if options.explore else ()
    folders |= {file.name.removesuffix(".csv.gz"): options.explore for file in files}
    names = options.sets or [*folders] or ["topic"]
    results = {name: race(name, folders.get(name)) for name in names}
    missing = [name for name, peer in PEERS.items() if not find_spec(peer.package)]
    folder, chart = options.output or pages.RESULTS, (options.output or IMAGES) / "peers.png"
    page = pages.page(
        "Beside its peers, from raw text",
        f"python -m benchmarks.peers --reviews FOLDER --explore FOLDER --sets {' '.join(names)}",
        _NOTES,
        f"Not installed: {', '.join(missing)}." if missing else "",
        f"![Accuracy against time]({os.path.relpath(chart, folder)})",
        *(section(name, found) for name, found in results.items()),
        described=described,
    )
    pages.publish(page, folder / "peers.md")
    draw(results, chart)
    return 0


if __name__ == "__main__":
    sys.exit(main())
