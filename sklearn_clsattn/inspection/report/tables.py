"""The tables and bars of a model report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from ...comparison import ClassTokens
from ..rendering.legible import aligned, percent, token_text
from ..rendering.markup import escaped
from .markup import MAX_CLASSES, facts_list, name_of, p_text, row, table, title_of
from .parts import DataSummary, Selection, Spread
from .statistics import CalibrationCurve, Difference, ModelScores

_MINUS = "\N{MINUS SIGN}"


def models_table(models: Sequence[ModelScores]) -> str:
    """Return what every model reached, the best of each column with a star.

    Parameters
    ----------
    models : sequence of ModelScores
        The models, ours first.

    Returns
    -------
    html : str
        A table, which becomes a list of blocks on a phone.
    """
    columns: list[tuple[str, str, str, Callable[..., Any]]] = [
        ("accuracy", "accuracy", ".4f", max),
        ("macro F1", "macro_f1", ".4f", max),
        ("log loss", "log_loss", ".4f", min),
        ("calibration error", "calibration_error", ".4f", min),
        ("fit s", "fit_seconds", ".2f", min),
        ("predict s", "predict_seconds", ".3f", min),
    ]
    cells: list[list[str]] = [[] for _ in models]
    for head, attribute, form, best_of in columns:
        values = [getattr(model, attribute) for model in models]
        ranked = [
            value
            for value, model in zip(values, models, strict=True)
            if value is not None and model.kind != "floor"
        ]
        # Equal as shown is equal: a star must not hang on digits that nobody sees.
        best = format(best_of(ranked), form) if len(ranked) > 1 else None
        for line, value, model in zip(cells, values, models, strict=True):
            shown = "–" if value is None else format(value, form)
            starred = shown == best and model.kind != "floor"
            mark = ' class="r-best"' if starred else ""
            line.append(f'<td role="cell" data-head="{head}"><span{mark}>{shown}</span></td>')
    kinds = {"ours": ' class="r-us"', "floor": ' class="r-floor"'}
    rows = [
        f'<tr role="row"{kinds.get(model.kind, "")}><th scope="row" role="rowheader">'
        f"{escape(model.name)}</th>{''.join(line)}</tr>"
        for model, line in zip(models, cells, strict=True)
    ]
    heads = "".join(
        f'<th scope="col" role="columnheader">{name}</th>'
        for name in ("model", *(column[0] for column in columns))
    )
    return (
        '<table class="r-tab r-stack" role="table"><caption>* best of the column, the '
        "majority vote aside. Seconds are of one run, without counting tokens. – not "
        "measured.</caption>"
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def differences_table(differences: Sequence[Difference]) -> str:
    """Return how our model and each other one compare, text by text.

    Parameters
    ----------
    differences : sequence of Difference
        One for each other model.

    Returns
    -------
    html : str
        A table.
    """
    heads = ["ours against", "difference in points", "only ours right", "only it right", "McNemar"]
    rows = []
    for one in differences:
        points = f"{100 * one.accuracy:+.2f} ± {196 * one.standard_error:.2f}"
        values = [
            points.replace("-", _MINUS),
            f"{one.only_ours:,}",
            f"{one.only_other:,}",
            escape(p_text(one.p_value)),
        ]
        cells = "".join(
            f'<td role="cell" data-head="{head}">{value}</td>'
            for head, value in zip(heads[1:], values, strict=True)
        )
        rows.append(
            f'<tr role="row"><th scope="row" role="rowheader">{escape(one.other)}</th>{cells}</tr>'
        )
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in heads)
    return (
        '<table class="r-tab r-stack r-two" role="table"><caption>Differences in accuracy with 95% '
        "intervals, paired by text. McNemar: how often models that are equally good would differ "
        'at least so much.</caption><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def classes_table(data: DataSummary) -> str:
    """Return the sizes of the classes.

    Parameters
    ----------
    data : DataSummary
        The texts.

    Returns
    -------
    html : str
        A table of all classes, folded where they are many.
    """
    rows = []
    for k, label in enumerate(data.classes):
        cells = [] if data.train_sizes is None else _sized(data.train_sizes[k], data.n_train or 0)
        cells += _sized(data.test_sizes[k], data.n_test)
        rows.append(row(name_of(label), cells))
    if data.n_unknown:
        cells = [] if data.train_sizes is None else ["0", percent(0.0)]
        cells += _sized(data.n_unknown, data.n_test)
        rows.append(row("<i>classes that training has not</i>", cells))
    total = [] if data.n_train is None else [f"{data.n_train:,}", ""]
    rows.append(row("all", [*total, f"{data.n_test:,}", ""]))
    heads = ["class"]
    heads += [] if data.n_train is None else ["training texts", "share"]
    return _folded(
        table([*heads, "test texts", "share"], rows, slim=True), len(rows) - 1, "class sizes"
    )


def facts(data: DataSummary) -> str:
    """Return what else there is to know of the texts.

    Parameters
    ----------
    data : DataSummary
        The texts.

    Returns
    -------
    html : str
        A list of terms and what they are.
    """
    pairs = [("Where from", escaped(data.source))] if data.source else []
    pairs.append(("Tokens the model knows", f"{data.n_tokens:,}"))
    if data.train_words is not None:
        pairs.append(("Words in a training text", _spread_text(data.train_words)))
    if data.test_words is not None:
        pairs.append(("Words in a test text", _spread_text(data.test_words)))
    pairs.append(("Different tokens read of one", _spread_text(data.test_tokens)))
    if data.n_empty:
        said = f"{data.n_empty:,}: for them the decision is the intercept"
        pairs.append(("Test texts without a known token", said))
    return facts_list(pairs)


def calibration_table(curve: CalibrationCurve) -> str:
    """Return the numbers behind a calibration curve.

    Parameters
    ----------
    curve : CalibrationCurve
        The curve.

    Returns
    -------
    html : str
        A table.
    """
    rows = [
        row(
            f"{percent(low)} to {percent(high)}",
            [
                f"{texts:,}",
                percent(confidence),
                f"{percent(right)} ({percent(least)} to {percent(most)})",
            ],
        )
        for low, high, texts, confidence, right, least, most in zip(
            curve.edges,
            curve.edges[1:],
            curve.texts,
            curve.confidence,
            curve.accuracy,
            curve.low,
            curve.high,
            strict=False,
        )
    ]
    heads = ["confidence", "texts", "mean confidence", "right (95% interval)"]
    return f"<h3>{escape(curve.name)}</h3>" + table(heads, rows)


def token_bars(tokens: Sequence[ClassTokens]) -> str:
    """Return the most important tokens of each class as bars.

    Parameters
    ----------
    tokens : sequence of ClassTokens
        Of every class.

    Returns
    -------
    html : str
        A list for each class, all bars on one scale.
    """
    longest = max((size for of in tokens for _, size in of.important), default=1.0)
    # One sign for all, which says nothing here, and as many decimals for all.
    written = iter(aligned([size for of in tokens for _, size in of.important]))
    parts = []
    for k, of in enumerate(tokens):
        rows = [
            f'<li><bdi>{escaped(token_text(token))}</bdi><span><span class="r-fill" '
            f'style="width:{100 * size / longest:.1f}%"></span></span>'
            f'<span class="r-num">{next(written)[1:]}</span></li>'
            for token, size in of.important
        ]
        # Blue and solid for the second of two classes, as in the explanations.
        side = ' class="r-first"' if len(tokens) == 2 and not k else ""
        inner = f'<ol class="r-bars">{"".join(rows)}</ol>' if rows else '<p class="r-soft">none</p>'
        parts.append(f"<div{side}><h3>{title_of(of.label)}</h3>{inner}</div>")
    shown, rest = parts[:MAX_CLASSES], parts[MAX_CLASSES:]
    html = f'<div class="r-pair">{"".join(shown)}</div>'
    if rest:
        html += (
            f'<details class="r-fold"><summary>{len(rest)} more classes</summary>'
            f'<div class="r-pair">{"".join(rest)}</div></details>'
        )
    return html


def selection_tables(selection: Selection) -> str:
    """Return the tokens selected most often, and how concentrated attention is.

    Parameters
    ----------
    selection : Selection
        The selection.

    Returns
    -------
    html : str
        Two tables side by side.
    """
    if not selection.n_texts:
        return '<p class="r-soft">No text has a token that the model knows.</p>'
    rows = [
        row(
            f"<bdi>{escaped(token_text(one.token))}</bdi>",
            [
                name_of(one.label),
                f"{one.selected:,}",
                percent(one.selected / selection.n_texts),
                percent(one.selected / one.texts) if one.texts else "–",
            ],
        )
        for one in selection.tokens
    ]
    tokens = table(["token", "speaks for", "texts", "of all", "of those with it"], rows)
    shares = [
        row(
            "the token with most" if one.n_tokens == 1 else f"the {one.n_tokens} tokens with most",
            [percent(one.share), percent(one.even_share)],
        )
        for one in selection.concentration
    ]
    if selection.evenly_over is not None and selection.even_evenly_over is not None:
        over = [f"{selection.evenly_over:.1f}", f"{selection.even_evenly_over:.1f}"]
        shares.append(row("spread as if evenly over so many tokens (median)", over))
    if selection.cls_share is not None:
        shares.append(
            row("of all attention, kept by &lt;cls&gt;", [percent(selection.cls_share), ""])
        )
    spread = table(
        ["share of what &lt;cls&gt; leaves", "attention", "if scores were equal"]
        if selection.cls_share is not None
        else ["share of a text's attention", "attention", "if scores were equal"],
        shares,
    )
    return (
        f'<div class="r-pair"><div><h3>Selected most often</h3>{tokens}</div>'
        f"<div><h3>How concentrated attention is</h3>{spread}</div></div>"
    )


def _folded(html: str, n_rows: int, what: str) -> str:
    if n_rows <= MAX_CLASSES:
        return html
    return f'<details class="r-fold"><summary>All {n_rows} {what}</summary>{html}</details>'


def _sized(size: int, total: int) -> list[str]:
    return [f"{size:,}", percent(size / total) if total else "–"]


def _spread_text(spread: Spread) -> str:
    return (
        f"{spread.median:,.0f} in the median, {spread.low:,.0f} to {spread.high:,.0f} in nine of "
        f"ten, {spread.highest:,.0f} at most"
    )
