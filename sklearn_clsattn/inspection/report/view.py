"""The context of a model report's templates, beside the report itself."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from ...comparison._measurement import shown_measure
from ..formatting import MINUS, aligned, percent
from ..pages import render
from ..view import view
from .charts import calibration_axes, confidence_axes
from .data import Cases, Hinges, ReportData
from .statistics import wilson_interval

# The maximum number of classes with a row, column or bars.
MAX_CLASSES = 20
# More classes than this have a line each instead of a confusion matrix.
_MAX_MATRIX = 8
_N_CONFUSIONS = 15
_N_TAKEN_FOR = 3
_TOP = 8
# Longer explanations are collapsed to some height.
_SHORT_TEXT = 200
_FEW_TOKENS = 5

# Heading, field, format and which value is the best.
COLUMNS: tuple[tuple[str, str, str, Any], ...] = (
    ("accuracy", "accuracy", ".4f", max),
    ("macro F1", "macro_f1", ".4f", max),
    ("log loss", "log_loss", ".4f", min),
    ("calibration error", "calibration_error", ".4f", min),
    ("fit s", "fit_seconds", ".2f", min),
    ("predict s", "predict_seconds", ".3f", min),
)


def report_html(report: ReportData, *, fragment: bool) -> str:
    """Return a report as a page, or as an element to put into one."""
    data, n_classes = report.data, len(report.data.classes)
    seen: set[int] = set()
    return render(
        "report/report.html",
        report=report,
        fragment=fragment,
        title=report.title,
        max_classes=MAX_CLASSES,
        parts=_parts(report),
        tiles=_tiles(report),
        summary=summary(report),
        class_sizes=_class_sizes(report),
        # Models that were fitted here have fit seconds; one that a caller passed may be tuned.
        fitted_here=any(
            model.kind == "baseline" and model.fit_seconds is not None for model in report.models
        ),
        models=models_table(report),
        differences=[
            (one.other, None, [(text, False) for text in texts])
            for one, texts in zip(report.differences, differences(report), strict=True)
        ],
        calibration_axes=calibration_axes(report.calibration, n_classes),
        confidence_axes=confidence_axes(report.calibration, n_classes),
        calibration_errors={model.name: model.calibration_error for model in report.models},
        by_class=_by_class(report.confusion.counts, data.classes),
        confusions=_confusions(report.confusion.counts, data.classes),
        tokens=_token_bars(report),
        hinge_bars=_hinge_bars(report.hinges),
        mistakes=_cases(report.mistakes, seen),
        ours_right=_cases(report.ours_right, seen),
        baseline_right=_cases(report.baseline_right, seen),
    )


def summary(report: ReportData) -> Markup:
    """Return the report in a few sentences, as HTML."""
    ours, n_test = report.models[0], report.data.n_test
    beside = next((one for one in report.models if one.name == report.baseline), None)
    others = [one for one in report.models if one.kind == "baseline" and one is not beside]
    best = beside is not None and all(one.accuracy < beside.accuracy for one in others)
    strongest = "stronger of two" if len(others) == 1 else f"strongest of {len(others) + 1}"
    difference = next((one for one in report.differences if one.other == report.baseline), None)
    curve = report.calibration[0]
    confidence = np.average(curve.confidence, weights=curve.texts)
    return Markup(
        render(
            "report/summary.html",
            n_test=n_test,
            n_classes=len(report.data.classes),
            ours=ours,
            interval=wilson_interval(round(ours.accuracy * n_test), n_test),
            beside=beside,
            standing=f", the {strongest} baselines," if others and best else "",
            difference=difference,
            p_value="" if difference is None else _p_text(difference.p_value),
            floor=_floor(report),
            gap=float(100 * (confidence - ours.accuracy)),
        )
    )


def models_table(report: ReportData) -> dict[str, Any]:
    """Return the heads of the table of models, and its rows: name, style, (text, whether best)."""
    columns = [shown_measure(report.models, "–", *column) for _, *column in COLUMNS]
    styles = {"ours": "r-us", "floor": "r-floor"}
    return {
        "heads": ["model", *(head for head, *_ in COLUMNS)],
        "rows": [
            (model.name, styles.get(model.kind), list(cells))
            for model, *cells in zip(report.models, *columns, strict=True)
        ],
    }


def differences(report: ReportData) -> list[list[str]]:
    """Return, for each other model, difference, texts that one alone has right, and p-value."""
    return [
        [
            f"{100 * one.accuracy:+.2f} ± {196 * one.standard_error:.2f}".replace("-", MINUS),
            f"{one.only_ours:,}",
            f"{one.only_other:,}",
            _p_text(one.p_value),
        ]
        for one in report.differences
    ]


def _p_text(p: float) -> str:
    text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _floor(report: ReportData) -> Any:
    return next((model for model in report.models if model.kind == "floor"), None)


def _parts(report: ReportData) -> dict[str, str]:
    """Return the titles of the sections that are not empty, by their keys."""
    empty = {
        "tokens": not any(of.important for of in report.tokens),
        "mistakes": bool(report.mistakes.n_all and not report.mistakes.shown),
        "disagreements": report.baseline is None,
        "hinges": report.hinges is None or not any(report.hinges.texts),
        "labels": report.labels is None or not report.labels.shown,
    }
    titles = {
        "data": "Data",
        "results": "Results",
        "calibration": "Calibration",
        "confusion": "Confusions",
        "tokens": "Important tokens",
        "attention": "Attention",
        "hinges": "What decisions hang on",
        "mistakes": "Mistakes",
        "disagreements": "Disagreements",
        "labels": "Labels to look at",
        "made": "How it was made",
        "reading": "How to read this",
    }
    return {key: title for key, title in titles.items() if not empty.get(key)}


def _tiles(report: ReportData) -> list[tuple[str, str]]:
    """Return the figures at the top, with their labels."""
    ours = report.models[0]
    tiles = [(percent(ours.accuracy), "accuracy of our model")]
    beside = [model for model in report.models if model.name == report.baseline]
    tiles += [(percent(one.accuracy), one.name) for one in (*beside, _floor(report)) if one]
    seconds = ours.fit_seconds
    if seconds is None:
        return [*tiles, (f"{report.data.n_test:,}", "test texts")]
    decimals = 2 if seconds < 1 else int(seconds < 100)
    return [*tiles, (f"{seconds:,.{decimals}f} s", "to fit our model")]


def _class_sizes(report: ReportData) -> list[tuple[Any, list[tuple[int, str]]]]:
    """Return the rows of the table of classes: head, numbers of texts and their shares."""
    data = report.data
    heads = [*data.classes, *(["classes not in training"] if data.n_unknown else []), "all"]
    columns = []
    for sizes, total, unknown in (
        (data.train_sizes, data.n_train, 0),
        (data.test_sizes, data.n_test, data.n_unknown),
    ):
        if sizes is None or total is None:
            continue
        counts = [*sizes, unknown] if data.n_unknown else sizes
        columns.append([(n, percent(n / total)) for n in counts] + [(total, "")])
    return list(zip(heads, map(list, zip(*columns, strict=True)), strict=True))


def _confusions(
    counts: Sequence[Sequence[int]], classes: Sequence[Any]
) -> list[tuple[Any, Any, int, float]]:
    """Return the most frequent confusions: true, predicted, texts, share of the true class."""
    matrix = np.array(counts)
    wrong = np.where(np.eye(len(matrix), dtype=bool), 0, matrix).ravel()
    order = np.argsort(-wrong, kind="stable")[:_N_CONFUSIONS]
    return [
        (classes[true], classes[predicted], int(wrong[place]), wrong[place] / matrix[true].sum())
        for place in order[wrong[order] > 0]
        for true, predicted in [divmod(int(place), len(matrix))]
    ]


def _by_class(
    counts: Sequence[Sequence[int]], classes: Sequence[Any]
) -> list[tuple[Any, float, int, list[tuple[Any, int]], int]]:
    """Return, of many classes, those with the smallest share of right predictions first."""
    if len(classes) <= _MAX_MATRIX:
        return []
    rows = []
    for k, row in enumerate(counts):
        total = sum(row)
        wrong = [(int(row[j]), j) for j in range(len(row)) if j != k and row[j]]
        wrong.sort(key=lambda pair: -pair[0])
        others = [(classes[j], count) for count, j in wrong[:_N_TAKEN_FOR]]
        more = sum(count for count, _ in wrong[_N_TAKEN_FOR:])
        rows.append((classes[k], row[k] / total if total else 1.0, int(total), others, more))
    return sorted(rows, key=lambda row: (row[1], -row[2]))


def _token_bars(report: ReportData) -> list[dict[str, Any]]:
    """Return each class's tokens: name, width in percent and size, all on one scale."""
    sizes = [size for of in report.tokens for _, size in of.important]
    # All with as many decimals; the sign, always plus, is dropped below.
    written = iter(aligned(sizes))
    return [
        {
            "label": of.label,
            "rows": [
                (token, 100 * size / max(sizes), next(written)[1:]) for token, size in of.important
            ],
        }
        for of in report.tokens
    ]


def _hinge_bars(hinges: Hinges | None) -> list[tuple[str, float, int]]:
    """Return the bars of a histogram of words: label, width in percent and number of texts."""
    if hinges is None:
        return []
    rows = [
        (str(first) if first == last else f"{first} to {last}", texts)
        for (first, last), texts in zip(hinges.bins, hinges.texts, strict=True)
    ]
    rows += [("no number of them", hinges.n_never)] * (hinges.n_never > 0)
    most = max(1, *(texts for _, texts in rows))
    return [(label, 100 * texts / most, texts) for label, texts in rows]


def _cases(cases: Cases, seen: set[int]) -> list[dict[str, Any]]:
    """Return texts with views of their explanations, and whether a text is not in `seen` yet."""
    shown = []
    for case in cases.shown:
        n_characters = sum(len(text.text) for text in case.explanation.texts[0])
        shown.append(
            {
                "case": case,
                "view": view(case.explanation, None, _TOP),
                "first": case.index not in seen,
                "long": len(case.explanation.tokens) > _FEW_TOKENS or n_characters > _SHORT_TEXT,
            }
        )
        seen.add(case.index)
    return shown
