"""Which C: by documents held out and how many of them, by a rule, or always 1."""

from __future__ import annotations

from functools import cache
from math import ceil

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.choose_c import ENOUGH_DOCUMENTS, GUESS_WORTH, N_FOLDS
from sklearn_clsattn._core.folds import SAMPLE_SIZE

from .curve import Curve
from .question import Question, Row, fitted
from .sets import Split

ENOUGH = {"one fold": 1, "4000": 4_000, "8000": 8_000}
"""As many folds are held out as have this many documents."""

WORTHS = (333, 3_000)
WORTHS_WITH = 8_000
"""In how many documents the guess may be trusted, beside GUESS_WORTH, with how many held out."""


def measure(split: Split) -> dict[str, Row]:
    curve = Curve(split)
    one_fit = fitted(lambda: ClsAttentionClassifier(C=1.0), split)["seconds"] or 0.0
    n = curve.n_different
    rows = {
        "oracle": curve.at(curve.best()),
        "one": curve.at(1.0, one_fit, 1),
        "guess": curve.at(curve.guess(), one_fit, 1),
    }

    chosen = cache(lambda n_folds: curve.chosen(ENOUGH_DOCUMENTS=n_folds * n))
    for variant, enough in {**ENOUGH, "all": N_FOLDS * n}.items():
        C, n_fits, seconds = chosen(min(ceil(enough / n), N_FOLDS))
        cost = seconds + one_fit, n_fits + 1
        rows[variant] = curve.at(curve.mixed(C), *cost)
        rows[f"{variant}, not mixed"] = curve.at(C, *cost)
        if enough == WORTHS_WITH:
            for worth in WORTHS:
                rows[f"guess worth {worth}"] = curve.at(curve.mixed(C, worth), *cost)
    return rows


def _folds(title: str, documents: int | None, mixed: bool = True) -> str:
    """Return a variant in words."""
    default = " (**the default**)" if mixed and documents == ENOUGH_DOCUMENTS else ""
    return f"{title}, {'mixed' if mixed else 'alone'}{default}"


def _titles() -> dict[str, str]:
    """Return every variant in words."""
    titles = {
        "oracle": "oracle",
        "one": "C = 1",
        "guess": "the guess, exp(1.66 - 4.14 nu)",
        "one fold": "one fold held out",
        "4000": "folds of 4,000 documents",
        "8000": "folds of 8,000 documents",
        "all": "all four folds",
    }
    for variant in [*ENOUGH, "all"]:
        title = titles.pop(variant)
        titles[variant] = _folds(title, ENOUGH.get(variant))
        titles[f"{variant}, not mixed"] = _folds(title, None, mixed=False)
    for worth in WORTHS:
        titles[f"guess worth {worth}"] = (
            f"folds of {WORTHS_WITH:,} documents, mixed, guess worth {worth:,} documents"
        )
    return titles


QUESTION = Question(
    "choice_of_c",
    "How is C chosen?",
    "The oracle takes the C of least log loss on the test documents, which nobody has: the others "
    f"are measured against it. Documents are held out of a sample of {SAMPLE_SIZE:,} where there "
    "are more. *Mixed* with the guess is the mean of both log C by the weights n and "
    f"{GUESS_WORTH:,}, n being the number of different training documents. Measures are those of "
    "fits on a grid of two C a decade, in between by a straight line in log C. Fits: that on all "
    "documents, and those without the documents held out. CPU: that of choice and fit over that "
    "of one fit with C=1.",
    _titles(),
    "oracle",
    measure,
    unit="one",
    count="fits",
)
