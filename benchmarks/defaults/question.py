"""What a question is: variants of a fit, measured on one split after another."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.measures import quality

from .sets import N_SPLITS, SIZES, Split

Row = dict[str, float | None]
"""Of a variant on a split: accuracy, log_loss, ece, n_iter and seconds; None for what it has not.

`seconds` are the processor's. `n_iter` may count something else, see :class:`Question`.
"""


@dataclass(frozen=True)
class Question:
    """A question about a default.

    `variants` says in words what each variant is, `measure` returns a row for each of them, and
    differences are taken from the variant `reference`; CPU time is that over the variant `unit`'s.
    `count` is what `n_iter` counts. `sizes` and `seeds` are those of :func:`.sets.splits`, and
    `takes` says which splits are worth their time.
    """

    name: str
    title: str
    text: str
    variants: dict[str, str]
    reference: str
    measure: Callable[[Split], dict[str, Row]]
    unit: str
    count: str = "iterations"
    sizes: tuple[int | None, ...] = SIZES
    seeds: int = N_SPLITS
    takes: Callable[[Split], bool] = lambda split: True


def fitted(make: Callable[[], Any], split: Split, prepare: Any = None) -> Row:
    """Fit a classifier on the split's training documents and measure it on its test documents.

    `prepare` returns both matrices from both, inside the time. Time is that of the processor.
    """
    started = time.process_time()
    X_train, X_test = split.X_train, split.X_test
    if prepare is not None:
        X_train, X_test = prepare(X_train, X_test)
    model = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, split.y_train)
    seconds = time.process_time() - started
    probabilities = hasattr(model, "predict_proba")
    outputs = model.predict_proba(X_test) if probabilities else model.decision_function(X_test)
    row = measured(split, outputs, probabilities=probabilities)
    row["n_iter"] = float(np.max(model.n_iter_)) if hasattr(model, "n_iter_") else None
    row["seconds"] = seconds
    return row


def measured(split: Split, outputs: NDArray[Any], *, probabilities: bool = True) -> Row:
    """Return accuracy, log loss and calibration error of outputs for the test documents."""
    classes = np.arange(split.n_classes)
    row = quality(classes, split.y_test, outputs, probabilities=probabilities)
    return {name: row[name] for name in ("accuracy", "log_loss", "ece")}
