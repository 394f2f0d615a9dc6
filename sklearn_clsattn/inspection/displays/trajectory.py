"""How attention forms during a fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from . import _plotting
from ._plotting import AGAINST, FOR

_PANELS = (
    ("cosine_to_end", "Direction of p", "1 less the cosine to the end"),
    ("attention_on_selected", "Concentration", "attention on selected tokens"),
    ("margin", "Margin", "least difference / norm"),
    ("selection_as_at_end", "Selection", "documents as at the end"),
)


class TrajectoryDisplay:
    """Direction, concentration, margin and selection over the iterations of a fit.

    Make it with :meth:`from_recorder`.

    Parameters
    ----------
    frame : DataFrame
        A row a record, as of :meth:`TrajectoryRecorder.to_frame`.

    Attributes
    ----------
    ax_ : ndarray of 4 matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    TrajectoryRecorder : Records what is drawn.
    SelectionDisplay : Which tokens the fitted model selects.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import TrajectoryDisplay, TrajectoryRecorder
    >>> from sklearn_clsattn.paper import OneStepClassifier
    >>> X, y = make_token_classification(120, delta=0, single_relevant=True, random_state=0)
    >>> recorder, model = TrajectoryRecorder(), OneStepClassifier()
    >>> if hasattr(model, "set_callbacks"):  # scikit-learn 1.9 or later
    ...     model = model.set_callbacks(recorder).fit(X, y)
    ...     display = TrajectoryDisplay.from_recorder(recorder)
    ...     plt.close(display.figure_)
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        needed = ["n_iter", *(name for name, *_ in _PANELS)]
        missing = [name for name in needed if name not in frame]
        if missing or not len(frame):
            raise ValueError(
                f"frame must have columns {needed} and a row or more, as of "
                f"TrajectoryRecorder.to_frame(); missing: {missing}."
            )
        self.frame = frame

    @classmethod
    def from_recorder(cls, recorder: Any, *, ax: Any = None) -> Self:
        """Draw what a recorder has recorded.

        Parameters
        ----------
        recorder : TrajectoryRecorder
            After a fit.
        ax : array of 4 matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : TrajectoryDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is no axes.
        ValueError
            If nothing was recorded.
        """
        return cls(recorder.to_frame()).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of 4 matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        self : TrajectoryDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is no axes.
        """
        axes = _plotting.axes_for(ax, 4, 2, (4.6, 3.0))
        n_iter = self.frame["n_iter"].to_numpy()
        for panel, (column, title, label) in zip(axes, _PANELS, strict=True):
            numbers = self.frame[column].to_numpy(dtype=float)
            if column == "cosine_to_end":
                numbers = np.maximum(1 - numbers, 1e-12)
                numbers[-1] = np.nan  # 0, being the end itself
                if np.isfinite(numbers).any():
                    panel.set_yscale("log")
            panel.plot(n_iter, numbers, color=FOR, linewidth=1.6)
            panel.plot(n_iter[-1:], numbers[-1:], "o", color=AGAINST, markersize=5)
            if column not in ("cosine_to_end", "margin"):
                panel.set_ylim(-0.03, 1.05)
            _plotting.set_title(panel, title)
            panel.set_xlabel("iterations")
            panel.set_ylabel(label)
            panel.grid(axis="y", linewidth=0.6, alpha=0.35)
            _plotting.few_ticks(panel.xaxis, 6, integer=True)
        _plotting.store_axes(self, axes)
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        frame : DataFrame
            A copy of the record.
        """
        return self.frame.copy()
