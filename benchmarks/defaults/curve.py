"""How well documents held out are told apart, as a function of C, and what the package chooses."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from sklearn_clsattn import ClsAttentionClassifier
from sklearn_clsattn._core import choose_c, folds
from sklearn_clsattn._core.fit import FEW_TOL
from sklearn_clsattn._core.fitted import FittedAttention, probabilities
from sklearn_clsattn._core.leave_one_out import same_documents
from sklearn_clsattn._core.path import AttentionPath

from .question import Row, measured
from .sets import Split

Array = NDArray[np.float64]

EXPONENTS = np.arange(-4, 7)
"""Two values a decade, from .01 to 1000."""

_HOW = {"attention_C": ClsAttentionClassifier().attention_C}


class Curve:
    """Measures on a split's test documents along a grid of C, one warm-started fit a value.

    `watch` are called with the documents and the path, and what they return after every fit.
    seconds : (n_exponents,), of every fit
    """

    def __init__(self, split: Split, *watch: Callable[[Any, AttentionPath], Any]) -> None:
        default = ClsAttentionClassifier()
        self.documents = default._documents(split.X_train, split.y_train, None)[0]
        bag = self.documents.bag(self.documents.X.dtype.type, "cpu")
        path = AttentionPath(self.documents, bag, **_HOW)
        self._mean = path.mean
        self._split, self._decisions = split, list[Any]()
        self.seconds: list[float] = []
        watching = [start(self.documents, path) for start in watch]
        for exponent in EXPONENTS:
            started = time.process_time()
            result = path.fit(10.0 ** (exponent / 2), max_iter=default.max_iter, tol=FEW_TOL)
            self.seconds.append(time.process_time() - started)
            for watcher in watching:
                watcher()
            assert isinstance(result.model, FittedAttention)
            model = replace(result.model, entry_scale=self.documents.entry_scale)
            outputs = model.outputs(split.X_test)
            decision = outputs[:, 0] if outputs.shape[1] == 1 else outputs
            self._decisions.append(decision)

    @property
    def n_different(self) -> int:
        """Number of different training documents."""
        return int(same_documents(self.documents.X).max()) + 1

    def guess(self) -> float:
        """Return the package's guess of C, which needs no documents held out."""
        return choose_c.guess_C(self._mean, self.documents.statistics.class_weights)

    @cached_property
    def _rows(self) -> list[Row]:
        return self.tempered(np.ones(len(EXPONENTS)))

    def tempered(self, multiples: Array) -> list[Row]:
        """Return the measures of multiples of the outputs, (n_exponents,), along the grid."""
        decisions = zip(multiples, self._decisions, strict=True)
        return [measured(self._split, probabilities(m * decision)) for m, decision in decisions]

    def mixed(self, C: float, worth: float = choose_c.GUESS_WORTH) -> float:
        """Return the mean of a choice and the guess, which is worth some documents."""
        trust = self.n_different / (self.n_different + worth)
        return float(C**trust * self.guess() ** (1 - trust))

    def at(
        self,
        C: float,
        seconds: float | None = None,
        n_fits: int | None = None,
        rows: list[Row] | None = None,
    ) -> Row:
        """Return the measures at a C, between the grid's values by a straight line in ln C.

        `rows` are the grid's, None for those of the outputs as they are.
        """
        rows = rows or self._rows
        exponent = np.clip(2 * np.log10(C), EXPONENTS[0], EXPONENTS[-1])
        row: Row = {
            name: float(np.interp(exponent, EXPONENTS, [row[name] for row in rows]))
            for name in rows[0]
        }
        return row | {"C": C, "seconds": seconds, "n_iter": n_fits}

    def best(self) -> float:
        """Return the C of least log loss on the test documents, by a parabola."""
        losses = np.array([row["log_loss"] for row in self._rows], dtype=float)
        best = int(losses.argmin())
        exponent = float(EXPONENTS[best])
        if 0 < best < len(losses) - 1:
            below, at, above = losses[best - 1 : best + 2]
            exponent += 0.5 * (below - above) / (below - 2 * at + above)
        return float(10.0 ** (exponent / 2))

    def chosen(self, **replaced: Any) -> tuple[float, int, float]:
        """Return the choice by held-out documents, its number of fits, and its seconds.

        `replaced` are names of :mod:`~sklearn_clsattn._core.choose_c` to replace, or the
        SAMPLE_SIZE. The choice is not mixed with the guess.
        """
        with ExitStack() as stack:
            for name, value in {"GUESS_WORTH": 0, **replaced}.items():
                module = folds if name == "SAMPLE_SIZE" else choose_c
                stack.enter_context(patch.object(module, name, value))
            started = time.process_time()
            dtype = self.documents.X.dtype.type
            choice = choose_c.choose_C(self.documents, self._mean, dtype, "cpu", **_HOW)
            return choice.C, choice.losses.size, time.process_time() - started
