"""The results of run.py as a page, as the README's table, and as a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .competitors import COMPETITORS, from_texts
from .pages import number, page, table

SUMMARY = ("ours", "logistic_counts", "logistic_tfidf", "nb_svm", "linear_svc")
BEGIN, END = "<!-- table of make bench -->", "<!-- end of table -->"

_LEAST_ACCURACY = {"imdb_unigrams": 0.892, "imdb_bigrams": 0.917, "yelp_stars": 0.675}
_LEAST_FEW = 0.83
_LEAST_FRONT_END = {"imdb_bigrams": 0.921, "yelp_polarity": 0.966, "yelp_stars": 0.682}
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
    fast = "**A fast run**: few rows, nothing tuned; the numbers mean little."
    notes = (
        "Medians of interleaved runs after a warm-up. Baselines, and C if given, are tuned by "
        "accuracy on an 80/20 split of the training documents. ECE: calibration error in 15 bins. "
        "Memory: peak of a fit beyond X, over X's bytes."
    )
    titles = {name: one.title for name, one in from_texts({}).items()}
    ours, logistic = results["short_fit"]
    return page(
        "Benchmark",
        "python -m benchmarks.run" + " --fast" * results["fast"],
        fast * results["fast"],
        notes,
        "" if results["fast"] else "## Targets\n\n" + _targets(results),
        *(
            f"## {entry['title']}\n\n{entry['size']}.\n\n{_problem(entry)}"
            for entry in results["problems"].values()
        ),
        "## From raw text",
        "Vectorizing is inside the timing; all have their defaults. *One*: a single text.",
        *(_from_text(entry, titles) for entry in results["from_text"].values()),
        f"A fit on 1,000 generated documents of 20 words takes {1e3 * ours:.3g} ms, "
        f"LogisticRegression's {1e3 * logistic:.3g} ms.",
        described=results["machine"],
    )


def summary_table(results: dict[str, Any]) -> str:
    """Return accuracy and fit time on every problem, for the README."""
    entries = results["problems"].values()
    rows = []
    for name in SUMMARY:
        cells = [entry["competitors"][name] for entry in entries]
        shown = [f"{cell['accuracy']:.4f} ({cell['fit_seconds']:.2g})" for cell in cells]
        mark = "**" if name == "ours" else ""
        rows.append([f"{mark}{text}{mark}" for text in (COMPETITORS[name].title, *shown)])
    return table(("accuracy (fit, seconds)", *(entry["title"] for entry in entries)), rows)


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

    def at_most(what: str, bound: float, unit: str, ratios: dict[str, float]) -> tuple[str, ...]:
        shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()) or "–"
        return what, f"at most {bound:g} x {unit}", shown, _verdict(ratios.values(), bound)

    given = _ratios(counts, "ours_given_c", "logistic_counts", "fit_seconds").values()
    mean = math.exp(sum(map(math.log, given)) / len(given)) if given else 0.0
    memory = {
        name: entry["competitors"]["ours"]["memory"]
        for name, entry in counts.items()
        if "memory" in entry["competitors"]["ours"]
    }
    svc = _ratios(counts, "ours_given_c", "linear_svc", "fit_seconds")
    chosen = _ratios(counts, "ours", "linear_svc", "fit_seconds")
    ece = _ratios(counts, "ours", "logistic_tfidf", "ece")
    raw = _ratios(texts, "ours", "logistic_counts", "fit_seconds")
    rows = [
        at_most("fit, C given", 0.7, "LinearSVC", svc),
        at_most("the same, geometric mean", 0.1, "LogisticRegression on counts", {"": mean}),
        at_most("fit, C chosen", 1.0, "LinearSVC", chosen),
        at_most(
            "predict", 1.1, "LinearSVC", _ratios(counts, "ours", "linear_svc", "predict_seconds")
        ),
        at_most("calibration error", 1.0, "LogisticRegression on TF-IDF", ece),
        at_most("memory of a fit", 2.0, "X", memory),
        at_most("raw text to fitted", 0.25, "CountVectorizer and LogisticRegression", raw),
        *(
            at_most(
                f"make_text_classifier(), {shown}",
                bound,
                "TF-IDF of words and pairs and LogisticRegression(C=10)",
                _ratios(texts, "front_end", "logistic_tfidf", f"{what}_seconds"),
            )
            for what, shown, bound in (("fit", "to fitted", 0.6), ("predict", "to predicted", 0.5))
        ),
    ]
    for title, name, entries, least in (
        ("accuracy, counts", "ours", counts, _LEAST_ACCURACY),
        ("accuracy, make_text_classifier()", "front_end", texts, _LEAST_FRONT_END),
    ):
        for problem in least.keys() & entries.keys():
            reached = entries[problem]["competitors"][name]["accuracy"]
            verdict = "met" if reached >= least[problem] else "**missed**"
            bound = f"at least {least[problem]:.3f}"
            rows.append((f"{title}, {problem}", bound, f"{reached:.4f}", verdict))
    if few := texts.get("imdb_bigrams", {}).get("few"):
        verdict = "met" if few["unlabeled"] >= _LEAST_FEW else "**missed**"
        bound, reached = f"at least {_LEAST_FEW:.3f}", f"{few['unlabeled']:.4f}"
        rows.append(("accuracy, 100 labels and all texts, imdb_bigrams", bound, reached, verdict))
        row = at_most("vectors of words", 8.0, "1 s", {"imdb_bigrams": few["seconds"]})
        rows.append(row)
    return table(("what", "target", "measured", ""), rows)


def _verdict(ratios: Iterable[float], bound: float) -> str:
    found = list(ratios)
    return ("met" if max(found) <= bound else "**missed**") if found else "not measured"


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
        f"make_text_classifier(), {few['n_labels']} labels: accuracy {few['alone']:.4f}, with "
        f"`unlabeled=` all other texts {few['unlabeled']:.4f}. Vectors of their words take "
        f"{few['seconds']:.3g} s."
    )
    return f"{table(header, rows)}\n\n{said}"


def _quality(row: dict[str, Any]) -> tuple[str, ...]:
    found = (number(row[what], ".4f") for what in ("accuracy", "log_loss", "ece"))
    return *found, f"{row['fit_seconds']:.3g}"


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw fit time against accuracy, one panel a problem."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9.4, 7.2), squeeze=False)
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
    plt.close(figure)
