"""The confusion matrix of a model report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rendering.legible import percent
from .markup import MAX_CLASSES, name_of, row, table, title_of
from .statistics import Confusion

_N_CONFUSIONS = 15
# From so many columns on, a matrix has small figures and upright labels.
_MANY = 8
# Up to so many, its cells are wide.
_FEW = 3
# In larger ones it is hard to find what is confused most.
_READABLE = 5


def confusion_matrix(confusion: Confusion, classes: Sequence[Any]) -> str:
    """Return the confusion matrix; of many classes, only the most frequent confusions.

    Parameters
    ----------
    confusion : Confusion
        The counts.
    classes : sequence of length n_classes
        The classes.

    Returns
    -------
    html : str
        One table, or two.
    """
    parts = []
    if len(classes) <= MAX_CLASSES:
        parts.append(_matrix(confusion, classes))
    if len(classes) > _READABLE:
        parts.append(_confusions(confusion, classes))
    return "".join(parts)


def _matrix(confusion: Confusion, classes: Sequence[Any]) -> str:
    rows = []
    for k, counts in enumerate(confusion.counts):
        total = sum(counts)
        cells = "".join(
            _cell(count, count / total if total else 0.0, right=k == at)
            for at, count in enumerate(counts)
        )
        rows.append(f'<tr><th scope="row">{title_of(classes[k])}</th>{cells}{_total(total)}</tr>')
    if any(confusion.unknown):
        cells = "".join(f"<td><b>{count:,}</b></td>" for count in confusion.unknown)
        rows.append(
            '<tr><th scope="row"><i>not in training</i></th>'
            f"{cells}{_total(sum(confusion.unknown))}</tr>"
        )
    many = len(classes) > _MANY
    size = " r-many" if many else " r-some" if len(classes) > _FEW else ""
    # Where it may be wider than the screen, it must be scrolled by keyboard as well.
    scrolls = ' role="region" aria-label="Confusion matrix" tabindex="0"' if many else ""
    turned = ' class="r-turned"' if many else ""
    heads = "".join(
        f'<th scope="col"{turned}><span>{name_of(label)}</span></th>' for label in classes
    )
    return (
        f'<div class="r-wide"{scrolls}><table class="r-tab r-matrix{size}"><caption>Rows are true '
        "classes, columns predicted ones. Shares are of the row: the more, the stronger the shade. "
        "Framed: right.</caption><thead><tr>"
        f'<th scope="col">true ↓ predicted →</th>{heads}<th scope="col">texts</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(count: int, share: float, *, right: bool) -> str:
    mark = ' class="r-right"' if right else ""
    if not count:
        return f'<td{mark}><span class="r-soft">0</span></td>'
    color = "for" if right else "against"
    style = f' style="background:rgba(var(--r-{color}),{0.55 * share:.3f})"'
    return f"<td{mark}{style}><b>{count:,}</b><small>{percent(share)}</small></td>"


def _total(count: int) -> str:
    return f'<td class="r-rest">{count:,}</td>'


def _confusions(confusion: Confusion, classes: Sequence[Any]) -> str:
    pairs = sorted(
        (
            (count, true, predicted)
            for true, counts in enumerate(confusion.counts)
            for predicted, count in enumerate(counts)
            if count and true != predicted
        ),
        key=lambda pair: (-pair[0], pair[1], pair[2]),
    )
    if not pairs:
        return ""
    rows = [
        row(
            name_of(classes[true]),
            [
                name_of(classes[predicted]),
                f"{count:,}",
                percent(count / sum(confusion.counts[true])),
            ],
        )
        for count, true, predicted in pairs[:_N_CONFUSIONS]
    ]
    listed = table(["true class", "predicted", "texts", "of the true class"], rows, slim=True)
    return f"<h3>Most frequent confusions</h3>{listed}"
