"""A model report as plain text."""

from ..formatting import filled, in_columns, label_text, percent, token_lists, token_text, visible
from .data import ReportData
from .view import differences, models_table, summary


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
        filled(str(summary(report).striptags()).split()),
        in_columns([[first, *(f"{head} " for head in others)], *models])
        + "\n* best of the column, the majority vote aside",
    ]
    if report.differences:
        heads = ["ours against", "points", "only ours right", "only it right", "McNemar"]
        pairs = zip(report.differences, differences(report), strict=True)
        parts.append(in_columns([heads, *([one.other, *texts] for one, texts in pairs)]))
    tokens = [
        (of.label, [token_text(token) for token, _ in of.important])
        for of in report.tokens
        if of.important
    ]
    if tokens:
        parts.append(token_lists("Most important tokens of each class:", tokens))
    if report.mistakes.shown:
        lines = ["Most confident mistakes (test texts are numbered from 0):"]
        lines += [
            f"  test text {case.index:,}: truly {label_text(case.true)}, predicted "
            f"{label_text(case.ours.label)} with {percent(case.ours.probability)}"
            for case in report.mistakes.shown
        ]
        parts.append("\n".join(lines))
    if report.data.notes:
        notes = (filled(visible(note).split(), "- ", "  ") for note in report.data.notes)
        parts.append("\n".join(notes))
    return "\n\n".join(parts) + "\n"
