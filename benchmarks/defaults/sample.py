"""On how many documents C is chosen."""

from __future__ import annotations

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core.folds import SAMPLE_SIZE

from .curve import Curve
from .question import Question, Row, fitted
from .sets import N_SPLITS, Split

TRIED = (2_000, 4_000, 8_000)


def measure(split: Split) -> dict[str, Row]:
    curve = Curve(split)
    one_fit = fitted(lambda: ClsAttentionClassifier(C=1.0), split)["seconds"] or 0.0
    n = curve.n_different
    rows = {"oracle": curve.at(curve.best()), "one": curve.at(1.0, one_fit, 1)}
    for size in (*TRIED, n):
        C, n_fits, seconds = curve.chosen(SAMPLE_SIZE=size)
        name = "all" if size == n else str(size)
        rows[name] = curve.at(curve.mixed(C), seconds + one_fit, n_fits + 1)
    return rows


QUESTION = Question(
    "sample",
    "On how many documents is C chosen?",
    "A sample of the documents, a quarter of which is held out; the last fit is of all. Sets of "
    "more than 8,000 training documents, but for that of 20 classes, which takes too long. The "
    "oracle has the least log loss on the test documents. CPU: that of choice and fit over that "
    "of one fit with C=1.",
    {
        "oracle": "oracle",
        "one": "C = 1",
        **{
            str(size): f"a sample of {size:,}" + " (**the default**)" * (size == SAMPLE_SIZE)
            for size in TRIED
        },
        "all": "all documents",
    },
    "oracle",
    measure,
    unit="one",
    count="fits",
    sizes=(None,),
    takes=lambda split: len(split.y_train) > SAMPLE_SIZE and split.n_splits == N_SPLITS,
)
