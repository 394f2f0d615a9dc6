"""The results of run.py as a page, as the README's table, and as a chart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .competitors import COMPETITORS, from_texts
from .pages import number, page, table

SUMMARY = {
    "front_end": "TextClassifier()",
    "logistic_tfidf": "TF-IDF of words and pairs, LogisticRegression(C=10)",
    "linear_svc_tfidf": "TF-IDF of words and pairs in two texts or more, LinearSVC",
}
SUMMARY_NB_SVM = "Words and pairs in two texts or more, NB-SVM, C tuned"
BEGIN, END = "<!-- table of make bench -->", "<!-- end of table -->"

_LEAST_ACCURACY = {"imdb_unigrams": 0.892, "imdb_bigrams": 0.917, "yelp_stars": 0.675}
_LEAST_FEW = 0.83
_LEAST_FRONT_END = {"imdb_bigrams": 0.921, "yelp_polarity": 0.966, "yelp_stars": 0.682}
_LINEAR, _TFIDF = "LinearSVC", "TF-IDF of words and pairs and LogisticRegression(C=10)"
_WEIGHTED, _FRONT = ("ours", "logistic_tfidf"), ("front_end", "logistic_tfidf")
_PLAIN = "ours", "logistic_counts", "fit_seconds"
_RATIOS: tuple[Any, ...] = (  # what, at most, of what, on what, ours, the other, measure
    ("fit, C given", 0.7, _LINEAR, "problems", "ours_given_c", "linear_svc", "fit_seconds"),
    ("fit, C chosen", 1.0, _LINEAR, "problems", "ours", "linear_svc", "fit_seconds"),
    ("predict", 1.1, _LINEAR, "problems", "ours", "linear_svc", "predict_seconds"),
    ("calibration error", 1.0, "LogisticRegression on TF-IDF", "problems", *_WEIGHTED, "ece"),
    ("raw text to fitted", 0.25, "CountVectorizer and LogisticRegression", "from_text", *_PLAIN),
    ("TextClassifier(), fit", 0.6, _TFIDF, "from_text", *_FRONT, "fit_seconds"),
    ("TextClassifier(), predict", 0.5, _TFIDF, "from_text", *_FRONT, "predict_seconds"),
)
# Okabe and Ito's palette; the shape of the mark says the same, for print and colour-blind readers.
_MARKS = {
    "ours": ("#D55E00", "*", 240),
    "ours_given_c": ("#E69F00", "P", 90),
    "logistic_counts": ("#0072B2", "o", 75),
    "logistic_tfidf": ("#56B4E9", "s", 70),
    "nb_svm": ("#009E73", "^", 85),
    "linear_svc": ("#CC79A7", "D", 60),
    "multinomial_nb": ("#000000", "X", 75),
}


def markdown(results: dict[str, Any]) -> str:
    """Return the page."""
    fast = "**A fast run**: few rows, no tuning; the numbers are not meaningful."
    notes = (
        "Medians of interleaved runs after a warm-up. Baselines, and C if given, are tuned by "
        "accuracy on an 80/20 split of the training documents. ECE: calibration error in 15 bins "
        "of equal width. "
        "Memory: peak of a fit beyond X, over X's bytes."
    )
    titles = {name: one.title for name, one in from_texts({}).items()}
    ours, logistic = results["short_fit"]
    return page(
        "Benchmark",
        results["command"],
        fast * results["fast"],
        notes,
        "" if results["fast"] else "## Targets\n\n" + _targets(results),
        *(
            f"## {entry['title']}\n\n{entry['size']}.\n\n{_problem(entry)}"
            for entry in results["problems"].values()
        ),
        "## From raw text",
        "Times include vectorizing; all have their defaults. *One*: a single text.",
        *(_from_text(entry, titles) for entry in results["from_text"].values()),
        f"A fit on 1,000 generated documents of 20 words takes {1e3 * ours:.3g} ms, "
        f"LogisticRegression's {1e3 * logistic:.3g} ms.",
        described=results["machine"],
    )


def summary_table(results: dict[str, Any]) -> str:
    """Return accuracy and fit time from raw texts, and NB-SVM's accuracy, for the README."""
    entries = results["from_text"].values()
    rows = []
    for name, title in SUMMARY.items():
        cells = [entry["competitors"][name] for entry in entries]
        shown = [f"{cell['accuracy']:.4f} ({cell['fit_seconds']:.3g})" for cell in cells]
        mark = "**" if name == "front_end" else ""
        rows.append([f"{mark}{text}{mark}" for text in (title, *shown)])
    # NB-SVM reads counts, so there is no time from raw texts.
    tuned = [results["problems"][name]["competitors"]["nb_svm"] for name in results["from_text"]]
    rows.append([SUMMARY_NB_SVM, *(f"{cell['accuracy']:.4f}" for cell in tuned)])
    titles = [entry["title"].partition(",")[0] for entry in entries]
    return table(("accuracy (fit, seconds)", *titles), rows)


def with_summary(text: str, summary: str) -> str:
    """Return a page with the summary between the two marks."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"expected a page with {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{summary}\n\n{end}{after}"


def _targets(results: dict[str, Any]) -> str:
    """Return a table of the targets: what, its bound, what was measured, and whether it is met."""
    counts, texts = results["problems"], results["from_text"]
    rows = [
        _target(what, f"{bound:g} x {unit}", bound, _ratios(results[of], *pair, measure))
        for what, bound, unit, of, *pair, measure in _RATIOS
    ]
    given = _ratios(counts, "ours_given_c", "logistic_counts", "fit_seconds").values()
    mean = {"": math.exp(sum(map(math.log, given)) / len(given))} if given else {}
    memory = {name: entry["competitors"]["ours"].get("memory") for name, entry in counts.items()}
    memory = {name: peak for name, peak in memory.items() if peak is not None}
    means = "fit, C given, geometric mean", "0.1 x LogisticRegression on counts"
    rows += [_target(*means, 0.1, mean), _target("memory of a fit", "2 x X", 2.0, memory)]
    for title, name, entries, least in (
        ("accuracy, counts", "ours", counts, _LEAST_ACCURACY),
        ("accuracy, TextClassifier()", "front_end", texts, _LEAST_FRONT_END),
    ):
        for problem in least.keys() & entries.keys():
            reached = entries[problem]["competitors"][name]["accuracy"]
            rows.append(_at_least(f"{title}, {problem}", least[problem], reached))
    if few := texts.get("imdb_bigrams", {}).get("few"):
        title = "accuracy, 100 labels and all texts, imdb_bigrams"
        rows.append(_at_least(title, _LEAST_FEW, few["unlabeled"]))
        rows.append(_target("vectors of words", "8 s", 8.0, {"imdb_bigrams": few["seconds"]}))
    one = {
        name: 1e3 * entry["competitors"]["front_end"]["request_seconds"]
        for name, entry in texts.items()
    }
    rows.append(_target("TextClassifier(), one text to its class", "1 ms", 1.0, one))
    small = results["small_texts"]
    ratio, unit = {"": small["ours"] / small["linear"]}, f"2.5 x {_TFIDF}"
    rows.append(_target("3,000 short texts to fitted, processor time", unit, 2.5, ratio))
    rows.append(_target("a text of 50,000 words explained", "2 s", 2.0, {"": small["explained"]}))
    return table(("what", "target", "measured", ""), rows)


def _target(what: str, unit: str, most: float, found: dict[str, float]) -> tuple[str, ...]:
    """Return the row of what should be small."""
    shown = ", ".join(f"{name} {value:.2f}".strip() for name, value in found.items()) or "–"
    verdict = "met" if all(value <= most for value in found.values()) else "**missed**"
    return what, f"at most {unit}", shown, verdict if found else "not measured"


def _at_least(what: str, least: float, reached: float) -> tuple[str, ...]:
    """Return the row of what should be large."""
    verdict = "met" if reached >= least else "**missed**"
    return what, f"at least {least:.3f}", f"{reached:.4f}", verdict


def _ratios(entries: dict[str, Any], ours: str, other: str, what: str) -> dict[str, float]:
    """Return our measure over the other's, problem by problem."""
    found = {name: entry["competitors"] for name, entry in entries.items()}
    return {name: rows[ours][what] / rows[other][what] for name, rows in found.items()}


def _problem(entry: dict[str, Any]) -> str:
    header = ("classifier", "parameter", "accuracy", "log loss", "ECE", "fit, s", "predict, ms")
    rows = []
    for name, row in entry["competitors"].items():
        kind = COMPETITORS[name]
        value = "" if row["value"] is None else f"{kind.parameter}={row['value']:g}"
        cost = f"{1e3 * row['predict_seconds']:.3g}", number(row.get("memory"), ".2f")
        rows.append((kind.title, value, *_quality(row), *cost))
    return table((*header, "memory, x X"), rows)


def _from_text(entry: dict[str, Any], titles: dict[str, str]) -> str:
    header = (entry["title"], "accuracy", "log loss", "ECE", "fit, s", "predict, s", "one, ms")
    rows = [
        (
            titles[name],
            *_quality(row),
            f"{row['predict_seconds']:.3g}",
            f"{1e3 * row['request_seconds']:.3g}",
        )
        for name, row in entry["competitors"].items()
    ]
    few = entry["few"]
    said = (
        f"TextClassifier(), {few['n_labels']} labels: accuracy {few['alone']:.4f}, with "
        f"`unlabeled=` all other texts {few['unlabeled']:.4f}. Vectors of their words take "
        f"{few['seconds']:.3g} s."
    )
    return f"{table(header, rows)}\n\n{said}"


def _quality(row: dict[str, Any]) -> tuple[str, ...]:
    found = (number(row[what], ".4f") for what in ("accuracy", "log_loss", "ece"))
    return *found, f"{row['fit_seconds']:.3g}"


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw fit time against accuracy, one panel a problem."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.4, 7.2))
    axes = figure.subplots(2, 2, squeeze=False)
    for ax, entry in zip(axes.flat, results["problems"].values(), strict=False):
        for name, row in entry["competitors"].items():
            colour, marker, size = _MARKS[name]
            point = row["fit_seconds"], 100 * row["accuracy"]
            title = COMPETITORS[name].title
            ax.scatter(*point, size, colour, marker, label=title, edgecolor="white", zorder=3)
        ax.set(xscale="log", xlabel="fit, seconds", ylabel="test accuracy, %")
        ax.set_title(entry["title"], loc="left")
        ax.margins(0.12)
        ax.grid(color="0.9", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(path, dpi=150)
