"""Fit time against test accuracy, a panel a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Okabe and Ito's palette; the shape of the mark says the same, for print and for the colour-blind.
_MARKS = {
    "ours": ("#D55E00", "*", "ClsAttentionClassifier, defaults", 240),
    "ours_given_c": ("#E69F00", "P", "ClsAttentionClassifier, C given", 90),
    "logistic_counts": ("#0072B2", "o", "LogisticRegression, counts", 75),
    "logistic_tfidf": ("#56B4E9", "s", "LogisticRegression, TF-IDF", 70),
    "nb_svm": ("#009E73", "^", "NB-SVM", 85),
    "linear_svc": ("#CC79A7", "D", "LinearSVC, TF-IDF", 60),
    "multinomial_nb": ("#000000", "X", "MultinomialNB", 75),
}


def save(results: dict[str, Any], path: Path) -> None:
    """Draw the chart and write it to `path`."""
    problems = results["problems"]
    n_columns = min(2, len(problems))
    n_rows = -(-len(problems) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(4.7 * n_columns, 3.1 * n_rows + 0.9), squeeze=False
    )
    for axis in axes.flat[len(problems) :]:
        axis.set_visible(False)
    handles: dict[str, Any] = {}
    for axis, entry in zip(axes.flat, problems.values(), strict=False):
        for name, row in entry["competitors"].items():
            colour, marker, label, size = _MARKS[name]
            handles[label] = axis.scatter(
                row["fit_seconds"],
                100 * row["accuracy"],
                color=colour,
                marker=marker,
                s=size,
                zorder=4 if name == "ours" else 3,
                edgecolor="white",
                linewidth=0.8,
            )
        axis.set_xscale("log")
        axis.margins(0.12)
        low, high = axis.get_xlim()
        steps = (1.0,) if high > 100 * low else (1.0, 3.0)
        axis.xaxis.set_major_locator(LogLocator(subs=steps, numticks=20))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.grid(color="0.9", zorder=0)
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_title(entry["title"], fontsize=11, loc="left")
        axis.set_xlabel("fit, seconds")
        axis.set_ylabel("test accuracy, %")
    figure.legend(
        handles.values(), handles.keys(), loc="lower center", ncols=3, frameon=False, fontsize=10
    )
    figure.suptitle("Further up and further left is better", fontsize=11, color="0.35")
    figure.tight_layout(rect=(0, 0.65 / figure.get_figheight(), 1, 1))
    figure.savefig(path, dpi=150)
    plt.close(figure)
