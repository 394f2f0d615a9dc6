"""Single texts in a model report: who says what of them, and why ours does."""

from __future__ import annotations

from html import escape
from typing import Any

from ..rendering.html import render_sections
from ..rendering.legible import percent
from .markup import name_of
from .parts import Case, Cases

_TOP = 8
# Longer explanations are cut at some height until the reader opens them.
_SHORT_TEXT = 200
_FEW_TOKENS = 5


class CaseRenderer:
    """Renders texts, each of them once: where it comes again, there is a link.

    Parameters
    ----------
    baseline : str or None
        Name of the baseline.
    """

    def __init__(self, baseline: str | None) -> None:
        self._baseline = baseline
        self._rendered: set[int] = set()

    def html(self, cases: Cases) -> str:
        """Return some texts.

        Parameters
        ----------
        cases : Cases
            The texts.

        Returns
        -------
        html : str
            An ``<article>`` for each.
        """
        return "".join(self._case(case) for case in cases.shown)

    def _case(self, case: Case) -> str:
        head = (
            f"<header><h3>Test text {case.index:,}</h3> <span>truly <b>{name_of(case.true)}</b>"
            f"</span> {self._said('ours', case.predicted, case.probability, case)}"
        )
        if case.baseline_probability is not None:
            head += " " + self._said(
                escape(self._baseline or ""),
                case.baseline_predicted,
                case.baseline_probability,
                case,
            )
        head += "</header>"
        if case.index in self._rendered:
            return (
                f'<article class="r-case">{head}<p class="r-soft r-small">'
                f'<a href="#clsreport-text-{case.index}">Its words are shown above.</a></p>'
                "</article>\n"
            )
        self._rendered.add(case.index)
        section = render_sections(case.explanation, target=None, top=_TOP)
        more, clip = "", ""
        if _is_long(case):
            more = (
                '<details class="r-more"><summary><span class="r-all">Show all of it</span>'
                '<span class="r-less">Show less</span></summary></details>'
            )
            clip = " r-clip"
        return (
            f'<article class="r-case" id="clsreport-text-{case.index}">{head}{more}'
            f'<div class="clsattn{clip}">{section}</div></article>\n'
        )

    def _said(self, who: str, predicted: Any, probability: float, case: Case) -> str:
        right = predicted == case.true
        said = f"<b>{name_of(predicted)}</b> with {percent(probability)}"
        n_classes = len(case.explanation.classes)
        if not right and n_classes > 2:
            ours = who == "ours"
            of_true = case.true_probability if ours else case.baseline_true_probability
            said += f' <span class="r-soft">(the true one {percent(of_true or 0.0)})</span>'
        return f"<span>{'✓' if right else '✗'} {who}: {said}</span>"


def _is_long(case: Case) -> bool:
    one = case.explanation
    return len(one.tokens) > _FEW_TOKENS or sum(len(t.text) for t in one.texts[0]) > _SHORT_TEXT
