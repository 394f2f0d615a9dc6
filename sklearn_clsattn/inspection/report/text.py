"""A model report as plain text."""

import textwrap

from ..formatting import label_text, percent, token_text, visible
from .data import ReportData
from .view import MAX_CLASSES, differences, models_table, summary

_WIDTH = 79


def report_text(report: ReportData) -> str:
    """Return a report as plain text."""
    table = models_table(report)
    models = [
        [name, *(f"{text}{'*' if best else ' '}" for text, best in cells)]
        for name, _, cells in table["rows"]
    ]
    first, *others = table["heads"]
    parts = [
        visible(report.title),
        _filled(summary(report).striptags()),
        _aligned([[first, *(f"{head} " for head in others)], *models])
        + "\n* best of the column, the majority vote aside",
    ]
    if report.differences:
        heads = ["ours against", "points", "only ours right", "only it right", "McNemar"]
        pairs = zip(report.differences, differences(report), strict=True)
        parts.append(_aligned([heads, *([one.other, *texts] for one, texts in pairs)]))
    tokens = [of for of in report.tokens if of.important]
    if tokens:
        lines = ["Most important tokens of each class:"]
        for of in tokens[:MAX_CLASSES]:
            named = ", ".join(token_text(token) for token, _ in of.important)
            kind = "" if isinstance(of.label, str) else "class "
            lines.append(_filled(f"{kind}{label_text(of.label)}: {named}", "  ", "  "))
        if len(tokens) > MAX_CLASSES:
            lines.append(f"  and {len(tokens) - MAX_CLASSES} more classes")
        parts.append("\n".join(lines))
    if report.mistakes.shown:
        lines = ["Most confident mistakes (test texts are numbered from 0):"]
        lines += [
            f"  test text {case.index:,}: truly {label_text(case.true)}, predicted "
            f"{label_text(case.ours.label)} with {percent(case.ours.probability)}"
            for case in report.mistakes.shown
        ]
        parts.append("\n".join(lines))
    if report.data.notes:
        parts.append(
            "\n".join(_filled(f"- {visible(note)}", hanging="  ") for note in report.data.notes)
        )
    return "\n\n".join(parts) + "\n"


def _filled(text: str, indent: str = "", hanging: str = "") -> str:
    """Return a paragraph as lines with a hanging indent."""
    return textwrap.fill(
        *(text, _WIDTH),
        initial_indent=indent,
        subsequent_indent=indent + hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _aligned(rows: list[list[str]]) -> str:
    """Return rows as lines, with the first column aligned left and the others right."""
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
