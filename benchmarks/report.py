"""A run's results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .competitors import COMPETITORS
from .machine import summary, warning

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
    parts += ["## Pieces", "", *_pieces(results), ""]
    return "\n".join(parts)


def targets_table(verdicts: Sequence[dict[str, Any]]) -> str:
    rows = [(v["what"], v["target"], v["measured"], v["verdict"]) for v in verdicts]
    return _table(("what", "target", "measured", "verdict"), rows)


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


def _notes(results: dict[str, Any]) -> list[str]:
    lines = [
        "Fit and predict are medians of interleaved runs after a warm-up; TF-IDF weighting is made "
        "outside the timing. Baselines are tuned by accuracy on one stratified 80/20 split of the "
        "training documents. ECE: 15 equal-width bins of the predicted class's probability. "
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
                    f"{prediction['ratio_float64']:.2f}",
                )
            )
    header = (
        "problem",
        "loss and gradient, ms",
        "its two products, ms",
        "ratio",
        "predict_proba over LR's",
        "the same, X as float64",
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
