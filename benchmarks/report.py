"""A run's results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .competitors import COMPETITORS
from .machine import summary, warning
from .text_competitors import text_competitors

# What the README shows, and between which lines.
SUMMARY = ("ours", "logistic_counts", "logistic_tfidf", "nb_svm", "linear_svc")
SUMMARY_BEGIN, SUMMARY_END = "<!-- table of make bench -->", "<!-- end of table -->"

_HEADER = (
    "classifier",
    "parameter",
    "accuracy",
    "macro F1",
    "log loss",
    "ECE",
    "fit, s",
    "runs",
    "predict, ms",
    "memory, x X",
)


def markdown(results: dict[str, Any]) -> str:
    """Return the whole report."""
    parts = ["# Benchmark", f"`{results['command']}`, {results['date']}.", ""]
    parts += [summary(results["machine"]), ""]
    parts += [*_notes(results), "", "## Targets", "", targets_table(results["targets"]), ""]
    for name, entry in results["problems"].items():
        rows, columns = entry["shape"]
        parts += [
            f"## {entry['title']} (`{name}`)",
            "",
            f"{rows:,} training documents, {entry['test_rows']:,} test documents, "
            f"{columns:,} tokens, {entry['nnz']:,} non-zeros, {entry['n_classes']} classes.",
            "",
            problem_table(entry),
            "",
        ]
    parts += [*_calibration(results["problems"]), *_from_text(results)]
    parts += ["## Pieces", "", *_pieces(results), ""]
    return "\n".join(parts)


def targets_table(verdicts: Sequence[dict[str, Any]]) -> str:
    rows = [(v["what"], v["target"], v["measured"], v["verdict"]) for v in verdicts]
    return _table(("what", "target", "measured", "verdict"), rows)


def summary_table(results: dict[str, Any]) -> str:
    """Return accuracy and fit time of the competitors on every problem, for the README."""
    problems = results["problems"].values()
    header = ("accuracy (fit, seconds)", *(entry["title"] for entry in problems))
    rows = []
    for name in SUMMARY:
        cells = [entry["competitors"][name] for entry in problems]
        shown = [f"{row['accuracy']:.4f} ({row['fit_seconds']:.2g})" for row in cells]
        mark = "**" if name == "ours" else ""
        rows.append([f"{mark}{text}{mark}" for text in (COMPETITORS[name].title, *shown)])
    return _table(header, rows)


def with_summary(page: str, results: dict[str, Any]) -> str:
    """Return a page with the summary in the place that is marked for it."""
    before, _, rest = page.partition(SUMMARY_BEGIN)
    _, end, after = rest.partition(SUMMARY_END)
    if not end:
        raise ValueError(f"expected a page with {SUMMARY_BEGIN!r} and {SUMMARY_END!r}")
    return f"{before}{SUMMARY_BEGIN}\n\n{summary_table(results)}\n\n{end}{after}"


def problem_table(entry: dict[str, Any]) -> str:
    rows = []
    for name, row in entry["competitors"].items():
        memory = entry.get("memory", {}).get(name)
        star = "" if row["predict_method"] == "predict_proba" else " *"
        rows.append(
            (
                COMPETITORS[name].title,
                "" if row["value"] is None else f"{row['parameter']}={row['value']:g}",
                f"{row['accuracy']:.4f}",
                f"{row['macro_f1']:.4f}",
                _number(row["log_loss"], ".4f"),
                _number(row["ece"], ".4f"),
                f"{row['fit_seconds']:.3g}",
                str(row["fit_runs"]),
                f"{1000 * row['predict_seconds']:.3g}{star}",
                _number(memory and memory["ratio"], ".2f"),
            )
        )
    return _table(_HEADER, rows)


def _calibration(problems: dict[str, Any]) -> list[str]:
    """Return a table of the calibration error of every competitor on every problem."""
    rows = [
        (
            COMPETITORS[name].title,
            *(
                _number(entry["competitors"].get(name, {}).get("ece"), ".4f")
                for entry in problems.values()
            ),
        )
        for name in COMPETITORS
        if any(name in entry["competitors"] for entry in problems.values())
    ]
    header = ("expected calibration error", *(f"`{name}`" for name in problems))
    return ["## Calibration", "", _table(header, rows), ""]


def _from_text(results: dict[str, Any]) -> list[str]:
    """Return the tables from raw text, a problem each."""
    if not results.get("from_text"):
        return []
    lines = [
        "## From raw text",
        "",
        "Fit and predict start from texts: vectorizing is inside the timing. Nothing is tuned; "
        "everything has its default settings, but for fastText, which has those of its tutorial.",
        "",
    ]
    for title, package in results["left_out"].items():
        lines += [f"{title} is left out: {package} is not installed (the extra `text-bench`).", ""]
    titles = {competitor.name: competitor.title for competitor in text_competitors({})}
    for entry in results["from_text"].values():
        rows = [
            (
                titles.get(name, name),
                f"{row['accuracy']:.4f}",
                _number(row["log_loss"], ".4f"),
                _number(row["ece"], ".4f"),
                f"{row['fit_seconds']:.3g}",
                str(row["fit_runs"]),
                f"{row['predict_seconds']:.3g}",
            )
            for name, row in entry["competitors"].items()
        ]
        header = (entry["title"], "accuracy", "log loss", "ECE", "fit, s", "runs", "predict, s")
        lines += [_table(header, rows), ""]
    return lines


def _notes(results: dict[str, Any]) -> list[str]:
    lines = [
        "Fit and predict are medians of interleaved runs after a warm-up; TF-IDF weighting is made "
        "outside the timing. Baselines, and C where it is given, are tuned by accuracy on one "
        "stratified 80/20 split of the training documents. ECE: 15 equal-width bins of the "
        "predicted class's probability. "
        "Memory: peak of a fit beyond X, in a fresh process, over X's bytes. "
        "\\*: decision_function. BLAS runs on one thread for all unless told otherwise: "
        "LogisticRegression on sparse documents gains nothing from a second, and loses much where "
        "the machine is busy.",
    ]
    lines += ["", *warning(results["machine"])]
    if results["fast"]:
        lines += ["", "**A fast run**: few rows, baselines untuned; the numbers mean little."]
    warned = [
        f"{name}: {key} ({', '.join(row['warnings'])})"
        for name, entry in results["problems"].items()
        for key, row in entry["competitors"].items()
        if row["warnings"]
    ]
    if warned:
        lines += ["", f"Warnings while fitting: {'; '.join(warned)}."]
    return lines


def _pieces(results: dict[str, Any]) -> list[str]:
    rows = []
    for name, entry in results["problems"].items():
        gradient, prediction = entry.get("gradient"), entry.get("prediction")
        if gradient and prediction:
            rows.append(
                (
                    f"`{name}`",
                    f"{1000 * gradient['gradient_seconds']:.3g}",
                    f"{1000 * gradient['products_seconds']:.3g}",
                    f"{gradient['ratio']:.2f}",
                    f"{prediction['ratio']:.2f}",
                    f"{prediction['ratio_proba']:.2f}",
                )
            )
    header = (
        "problem",
        "loss and gradient, ms",
        "its two products, ms",
        "ratio",
        "predict over LinearSVC's",
        "predict_proba over its decision_function",
    )
    lines = [_table(header, rows)] if rows else []
    short = results.get("short_fit")
    if short:
        lines += [
            "",
            f"Fit on {short['title']}, {short['shape'][1]:,} tokens: "
            f"{1000 * short['ours_seconds']:.3g} ms against LogisticRegression's "
            f"{1000 * short['logistic_seconds']:.3g} ms, ratio {short['ratio']:.2f} "
            f"(medians of {short['runs']} runs).",
        ]
    return lines


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
