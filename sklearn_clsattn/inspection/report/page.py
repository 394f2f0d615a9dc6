"""A model report as one page of HTML: no scripts, nothing fetched, every text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ..rendering.legend import render_legend
from ..rendering.legible import percent
from ..rendering.markup import escaped
from ..rendering.style import STYLE
from ..rendering.view import view
from .cases import CaseRenderer
from .charts import calibration_chart, confidence_chart, key_mark
from .confusion import confusion_matrix
from .markup import facts_list
from .parts import Case
from .style import STYLE as REPORT_STYLE
from .summary import summary_sentences
from .tables import (
    calibration_table,
    classes_table,
    differences_table,
    facts,
    models_table,
    selection_tables,
    token_bars,
)

if TYPE_CHECKING:
    from .model_report import ModelReport

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body style="margin:0">
{body}
</body>
</html>
"""

_READING = """
<p>The model's decision on a text is a sum: each token adds its share of the text's attention times
its value, and an intercept is added. What is shown of a text <em>is</em> that sum, not an
approximation of it.</p>
<ul>
<li>It is exact for the text at hand. The shares of attention of a text add up to 1 (with what
<code>&lt;cls&gt;</code> keeps), so that tokens compete: another token in the text, or one less,
changes what all of them add. “Decision without” says what the decision would be.</li>
<li>Importance over many texts is a summary: how far a token moves decisions from text to text,
as the standard deviation of what it adds.</li>
<li>A token with much attention and a value near zero adds nothing. Read attention as where the
model looks, contributions as what it concludes.</li>
<li>All of it says what <em>this model</em> does with <em>these words</em>. It does not say what
causes the label, and a bag of words knows no order, negation or irony.</li>
<li>Test figures hold for texts like the test texts. The worst mistakes are the most confident
ones, not typical ones; some of them may be wrongly labelled texts.</li>
</ul>
"""


def render_report(report: ModelReport, *, fragment: bool) -> str:
    """Return a report as HTML.

    Parameters
    ----------
    report : ModelReport
        The report.
    fragment : bool
        Whether to return an element, with its style, rather than a page.

    Returns
    -------
    html : str
        Without characters that UTF-8 cannot encode.
    """
    cases = CaseRenderer(report.baseline)
    parts = [
        ("data", "Data", _data(report)),
        ("results", "Results", _results(report)),
        ("calibration", "Calibration", _calibration(report)),
        ("confusion", "Confusions", _confusion(report)),
        ("tokens", "Important tokens", _tokens(report)),
        ("attention", "Attention", _attention(report)),
        ("mistakes", "Mistakes", _mistakes(report, cases)),
        ("disagreements", "Disagreements", _disagreements(report, cases)),
        ("made", "How it was made", _made(report)),
        ("reading", "How to read this", _READING),
    ]
    parts = [part for part in parts if part[2]]
    links = "".join(f'<li><a href="#clsreport-{key}">{name}</a></li>' for key, name, _ in parts)
    sections = "\n".join(
        f'<section class="r-part" id="clsreport-{key}"><h2>{name}</h2>\n{inner}</section>'
        for key, name, inner in parts
    )
    sentences = " ".join(summary_sentences(report))
    body = (
        f'<div class="clsreport">\n<style>{STYLE}{REPORT_STYLE}</style>\n<div class="r-page">\n'
        f"<h1>{escaped(report.title)}</h1>\n{_tiles(report)}"
        f'<p class="r-lead">{sentences}</p>\n'
        f'<nav aria-label="Parts of this report"><ul>{links}</ul></nav>\n{sections}\n'
        "</div>\n</div>"
    )
    return body if fragment else _PAGE.format(title=escaped(report.title), body=body)


def _tiles(report: ModelReport) -> str:
    ours = report.models[0]
    tiles = [(f"{percent(ours.accuracy)}", "accuracy of our model", ' class="r-ours"')]
    for model in report.models[1:]:
        if model.name == report.baseline:
            tiles.append((percent(model.accuracy), escape(model.name), ""))
    floor = next(model for model in report.models if model.kind == "floor")
    tiles.append((percent(floor.accuracy), escape(floor.name), ""))
    if ours.fit_seconds is not None:
        tiles.append((_seconds(ours.fit_seconds), "to fit our model", ""))
    else:
        tiles.append((f"{report.data.n_test:,}", "test texts", ""))
    items = "".join(f"<li{kind}><b>{number}</b> {said}</li>" for number, said, kind in tiles)
    return f'<ul class="r-tiles">{items}</ul>\n'


def _data(report: ModelReport) -> str:
    data = report.data
    notes = "".join(f"<li>{escaped(note)}</li>" for note in data.notes)
    return (
        facts(data)
        + (f'<ul class="r-notes">{notes}</ul>' if notes else "")
        + f"<h3>Classes</h3>{classes_table(data)}"
    )


def _results(report: ModelReport) -> str:
    # What was fitted here has fit seconds; what somebody has given may be tuned.
    fitted_here = any(
        model.kind == "baseline" and model.fit_seconds is not None for model in report.models
    )
    defaults = (
        " The logistic regressions have scikit-learn's default parameters: with others they may do "
        "better or worse."
    )
    return (
        "<p>All models are measured on the same test texts, on which none of them was fitted."
        f"{defaults * fitted_here}</p>"
        + models_table(report.models)
        + "<h3>Beside ours, text by text</h3>"
        + differences_table(report.differences)
    )


def _calibration(report: ModelReport) -> str:
    n_classes = len(report.data.classes)
    names = "".join(
        f"<li>{key_mark(at)}{escape(curve.name)}</li>"
        for at, curve in enumerate(report.calibration)
    )
    tables = "".join(map(calibration_table, report.calibration))
    return (
        "<p>When a model says 80%, is it right in 80 of 100 texts? Points on the dotted line are; "
        "above it a model is too modest, below it too sure. Confidence is the probability of the "
        "predicted class.</p>"
        f'<ul class="r-key">{names}</ul><div class="r-pair">'
        "<figure><figcaption><b>Share of right predictions</b>, with 95% intervals for ours"
        f"</figcaption>{calibration_chart(report.calibration, n_classes)}</figure>"
        "<figure><figcaption><b>Number of test texts</b> with such a confidence</figcaption>"
        f"{confidence_chart(report.calibration, n_classes)}</figure></div>"
        f'<details class="r-fold"><summary>The numbers</summary>{tables}'
        '<p class="r-soft r-small">Bins with fewer than 20 texts are joined with their '
        "neighbours.</p>"
        "</details>"
    )


def _confusion(report: ModelReport) -> str:
    return "<p>What our model says of the test texts of each class.</p>" + confusion_matrix(
        report.confusion, report.data.classes
    )


def _tokens(report: ModelReport) -> str:
    if not any(of.important for of in report.tokens):
        return ""
    return (
        "<p>The tokens that speak for each class and move decisions most: the standard deviation, "
        f"over the {report.selection.texts} texts, of what a token adds to the decision (in "
        "log-odds). Frequent words that say little and telling words that are rare both come "
        "low.</p>" + token_bars(report.tokens)
    )


def _attention(report: ModelReport) -> str:
    selection = report.selection
    return (
        "<p>A text's attention goes to its tokens in shares. The token with the highest attention "
        f"score is the one that the softmax selects: in {selection.n_texts:,} {selection.texts} "
        f"texts, {selection.n_selected:,} different tokens are.</p>" + selection_tables(selection)
    )


def _legend(cases: Sequence[Case]) -> str:
    legend = render_legend([view(case.explanation, None, 0) for case in cases])
    return (
        f'<div class="clsattn r-legend">{legend}</div>'
        '<p class="r-soft r-small">Test texts are numbered from 0.</p>'
    )


def _mistakes(report: ModelReport, cases: CaseRenderer) -> str:
    mistakes = report.mistakes
    if not mistakes.n_all:
        return "<p>Our model makes none on the test texts.</p>"
    if not mistakes.shown:
        return ""
    of = report.data.n_test - report.data.n_unknown
    which = "all of them" if len(mistakes.shown) == mistakes.n_all else _most(len(mistakes.shown))
    return (
        f"<p>Our model is wrong on {mistakes.n_all:,} of {of:,} test texts. Here "
        f"{'is it' if mistakes.n_all == 1 else f'are {which}'}, the most confident first.</p>"
        + _legend(mistakes.shown)
        + cases.html(mistakes)
    )


def _disagreements(report: ModelReport, cases: CaseRenderer) -> str:
    if report.baseline is None:
        return ""
    name = escape(report.baseline)
    ours, theirs = report.ours_right, report.baseline_right
    if not (ours.n_all or theirs.n_all):
        return f"<p>Our model and {name} are right on the same texts.</p>"
    parts = [
        f"<p>On {ours.n_all:,} test texts our model is right and {name} is not; on "
        f"{theirs.n_all:,} it is the other way round. Shown are those where the two are furthest "
        "apart in the probability of the true class.</p>"
    ]
    if not report.mistakes.shown and (ours.shown or theirs.shown):
        parts.append(_legend(ours.shown + theirs.shown))
    for title, kind in (
        (f"Ours is right, {name} is not", ours),
        (f"{name} is right, ours is not", theirs),
    ):
        if kind.shown:
            parts.append(f"<h3>{title}</h3>{cases.html(kind)}")
    return "".join(parts)


def _made(report: ModelReport) -> str:
    return facts_list(
        [
            (escaped(key), f"<pre>{escaped(said, keep_lines=True)}</pre>")
            for key, said in report.made.items()
        ]
    )


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:,.{int(seconds < 100)}f} s"


def _most(n: int) -> str:
    return f"{n} of them"
