"""TrajectoryRecorder."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._core.fitted import SELECTION_TOLERANCE
from .._documents import as_csr, canonical
from .._saved import public

Array = NDArray[np.float64]


@public("sklearn_clsattn.inspection")
class TrajectoryRecorder:
    r"""Records how attention forms during a fit: direction, concentration, margin, selection.

    A callback of scikit-learn (from 1.9 on) for all classifiers of this package:
    ``estimator.set_callbacks(recorder).fit(X, y)``. A later fit starts the record anew.

    Parameters
    ----------
    every : int, default=1
        Every how many iterations to record; the end of the fit is recorded in any case.

    Attributes
    ----------
    n_iters : list of int
        Iterations before each record; the last record, of the fitted model, repeats the number of
        the last iteration.
    attention_scores : list of ndarray of shape (n_tokens,)
        The tokens' scores E.p in single precision. Their direction is that of p as the model sees
        it, with or without a dimension, and where E is trained as well.

    See Also
    --------
    TrajectoryDisplay : Draws it.

    Notes
    -----
    A record costs a pass over the training documents. ``<cls>``, which may attend to itself, is
    left out, and of two layers the tokens' own scores are recorded.

    Examples
    --------
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import TrajectoryRecorder
    >>> from sklearn_clsattn.paper import OneStepClassifier
    >>> X, y = make_token_classification(120, delta=0, single_relevant=True, random_state=0)
    >>> recorder = TrajectoryRecorder(every=10)
    >>> model = OneStepClassifier()
    >>> if hasattr(model, "set_callbacks"):  # scikit-learn 1.9 or later
    ...     model = model.set_callbacks(recorder).fit(X, y)
    ...     record = recorder.to_frame().iloc[-1]
    ...     assert record["attention_on_selected"] > 0.98
    ...     assert record["selection_as_at_end"] == 1
    """

    def __init__(self, every: int = 1) -> None:
        check_scalar(every, "every", Integral, min_val=1)
        self.every = every
        self._forget()

    def _forget(self) -> None:
        self.n_iters: list[int] = []
        self.attention_scores: list[NDArray[np.float32]] = []
        self._concentrations: list[float] = []
        self._margins: list[float] = []
        self._selected: list[NDArray[np.uint8]] = []
        self._documents: Any = None
        self._n_iter = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Start anew: called by scikit-learn before a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            scikit-learn's record of the task.
        """
        self._forget()

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: called by scikit-learn after a fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            scikit-learn's record of the task.
        """

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: called by scikit-learn before each iteration.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            scikit-learn's record of the task.
        """

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any = None, fitted_estimator: Any = None
    ) -> None:
        """Record a model: called by scikit-learn after each iteration and after the fit.

        Parameters
        ----------
        estimator : estimator
            What is fitted.
        context : CallbackContext
            scikit-learn's record of the task.
        X : CSR matrix of shape (n_documents, n_tokens)
            The documents of the fit.
        fitted_estimator : estimator, default=None
            What the fit has made so far; nothing is recorded without.
        """
        iteration = context.parent is not None
        self._n_iter += iteration
        if fitted_estimator is not None and not (iteration and self._n_iter % self.every):
            self._record(fitted_estimator.attention_scores_, X)

    def _record(self, scores: Array, X: Any) -> None:
        if self._documents is None:
            if X is None:
                raise ValueError(
                    "TrajectoryRecorder looks at the documents of a fit in memory: leave it out of "
                    "fits on chunks and over processes."
                )
            rows = canonical(as_csr(X))
            if not rows.data.any():
                raise ValueError("TrajectoryRecorder needs a document with a token, got none.")
            filled = np.flatnonzero(np.diff(rows.indptr))
            self._documents = rows, rows.indptr[filled], np.diff(rows.indptr)[filled]
        rows, starts, lengths = self._documents
        of_entries = np.where(rows.data > 0, scores[rows.indices], -np.inf)
        highest = np.repeat(np.maximum.reduceat(of_entries, starts), lengths)
        selected = of_entries >= highest - SELECTION_TOLERANCE
        with np.errstate(invalid="ignore"):  # a document of explicit zeros
            masses = rows.data * np.exp(of_entries - highest)
        attention = np.add.reduceat(masses * selected, starts) / np.add.reduceat(masses, starts)
        others = np.maximum.reduceat(np.where(selected, -np.inf, of_entries), starts)
        gap = float((highest[np.cumsum(lengths) - 1] - others).min())
        norm = float(np.linalg.norm(scores))
        self.n_iters.append(self._n_iter)
        self.attention_scores.append(np.asarray(scores, dtype=np.float32))
        self._concentrations.append(float(np.nanmean(attention)))
        self._margins.append(gap / norm if np.isfinite(gap) and norm > 0 else np.nan)
        self._selected.append(np.packbits(selected))

    def to_frame(self) -> pd.DataFrame:
        """Return the record.

        Returns
        -------
        frame : DataFrame
            A row a record, with columns n_iter; cosine_to_end, of the scores and those at the end;
            attention_on_selected, the documents' mean share of attention on their tokens of the
            highest score; margin, the least difference between a document's selected tokens and
            its others over the norm of all scores (NaN where no document has others); and
            selection_as_at_end, the share of documents that select what they select at the end.

        Raises
        ------
        ValueError
            If nothing was recorded.
        """
        if not self.n_iters:
            raise ValueError(
                "Nothing was recorded: set the recorder before the fit, "
                "estimator.set_callbacks(recorder).fit(X, y), with scikit-learn 1.9 or later."
            )
        rows, starts, _ = self._documents
        scores = np.array(self.attention_scores, dtype=np.float64)
        norms = np.linalg.norm(scores, axis=1)
        products = scores @ scores[-1]
        cosines = np.divide(
            products,
            norms * norms[-1],
            out=np.full(len(norms), np.nan),
            where=norms * norms[-1] > 0,
        )
        flags = [np.unpackbits(packed, count=rows.nnz) for packed in self._selected]
        as_at_end = [
            1 - np.add.reduceat(each != flags[-1], starts, dtype=np.int64).astype(bool).mean()
            for each in flags
        ]
        return pd.DataFrame(
            {
                "n_iter": self.n_iters,
                "cosine_to_end": cosines,
                "attention_on_selected": self._concentrations,
                "margin": self._margins,
                "selection_as_at_end": as_at_end,
            }
        )
