"""Scores of held-out documents against C."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..trace import split_pipeline
from . import _plotting
from ._inputs import checked_array
from ._plotting import AGAINST, FOR

_LOG_LOSS = "minus mean log loss"


class RegularizationPathDisplay:
    """How good a classifier is on held-out documents, for every C that was tried.

    One thin line is drawn for each fold, a bold one for their mean, and a vertical line at the C
    that was chosen. Folds that lie far apart say that the choice is uncertain; a flat mean, that it
    matters little. With ``C="auto"``, the choice of few documents is drawn towards a guess, away
    from the best mean.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
        The values of C, positive and ascending.
    scores : array-like of shape (n_folds, n_Cs)
        The score of every fold for each of them, the greater the better.
    C : float, default=None
        The C that was chosen, which need not be one of `Cs`.
    score_name : str, default="score"
        What the score is, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    sklearn_clsattn.ClsAttentionClassifierCV : Chooses C by cross-validation.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn import ClsAttentionClassifierCV
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import RegularizationPathDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifierCV(Cs=[0.1, 1, 10], cv=3).fit(X, y)
    >>> display = RegularizationPathDisplay.from_estimator(model)
    >>> display.to_frame().columns.tolist()
    ['C', 'mean', 'fold 1', 'fold 2', 'fold 3']
    >>> plt.close(display.figure_)
    """

    def __init__(
        self, Cs: ArrayLike, scores: ArrayLike, *, C: float | None = None, score_name: str = "score"
    ) -> None:
        n_Cs, shape = np.size(Cs), np.shape(scores)
        if not n_Cs or len(shape) != 2 or not shape[0] or shape[1] != n_Cs:
            raise ValueError(
                f"scores must have shape (n_folds, {n_Cs}), one column for each of one or more Cs, "
                f"got {shape}."
            )
        self.Cs = checked_array(Cs, "Cs", (n_Cs,))
        if not (self.Cs[0] > 0 and (np.diff(self.Cs) > 0).all()):
            raise ValueError("Cs must be positive and ascending.")
        self.scores = checked_array(scores, "scores", shape)
        if C is not None and not 0 < C < np.inf:
            raise ValueError(f"C must be positive and finite, got {C!r}.")
        self.C = C
        self.score_name = score_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw how a fitted classifier chose C.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted ``ClsAttentionClassifierCV`` or ``ClsAttentionClassifier(C="auto")``, or a
            fitted Pipeline or search that ends in one.
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : RegularizationPathDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no attention classifier, or `ax` is no axes.
        ValueError
            If it did not choose C by held-out documents.
        sklearn.exceptions.NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.datasets import make_token_classification
        >>> from sklearn_clsattn.inspection import RegularizationPathDisplay
        >>> X, y = make_token_classification(300, random_state=0)
        >>> model = ClsAttentionClassifier(C="auto").fit(X, y)
        >>> display = RegularizationPathDisplay.from_estimator(model)
        >>> display.C == model.C_
        True
        >>> plt.close(display.figure_)
        """
        _plotting.import_pyplot()
        _, classifier = split_pipeline(estimator)
        check_is_fitted(classifier)
        if not np.size(getattr(classifier, "scores_", ())):
            raise ValueError(
                f"This {type(classifier).__name__} did not choose C by held-out documents: fit "
                'ClsAttentionClassifierCV, or ClsAttentionClassifier with C="auto" on at least '
                "eight different documents."
            )
        scoring = getattr(classifier, "scoring", None)
        named = scoring if isinstance(scoring, str) else "score"
        return cls.from_arrays(
            classifier.Cs_,
            classifier.scores_,
            C=classifier.C_,
            score_name=_LOG_LOSS if scoring in (None, "neg_log_loss") else named,
            ax=ax,
        )

    @classmethod
    def from_arrays(
        cls,
        Cs: ArrayLike,
        scores: ArrayLike,
        *,
        C: float | None = None,
        score_name: str = "score",
        ax: Any = None,
    ) -> Self:
        """Draw any scores against C.

        Parameters
        ----------
        Cs, scores, C, score_name
            As in :class:`RegularizationPathDisplay`.
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : RegularizationPathDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is no axes.
        ValueError
            If shapes do not fit, or numbers are not finite or not positive.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn.inspection import RegularizationPathDisplay
        >>> display = RegularizationPathDisplay.from_arrays([0.1, 1, 10], [[0.7, 0.9, 0.8]], C=1)
        >>> plt.close(display.figure_)
        """
        return cls(Cs, scores, C=C, score_name=score_name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        self : RegularizationPathDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If `ax` is no axes.
        """
        (axes,) = _plotting.axes_for(ax, 1, 1, (6.2, 4.0))
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        n_folds = len(self.scores)
        _plotting.set_title(axes, "Score of held-out documents by C")
        axes.set_xscale("log")
        if n_folds > 1:
            for fold, scores in enumerate(self.scores):
                label = f"{n_folds} folds" if fold == 0 else None
                axes.plot(self.Cs, scores, color=FOR, linewidth=0.9, alpha=0.6, label=label)
        axes.plot(
            self.Cs,
            self.scores.mean(axis=0),
            color=FOR,
            linewidth=2.6,
            marker="o",
            markersize=5,
            label="their mean" if n_folds > 1 else "one fold",
            zorder=3,
        )
        if self.C is not None:
            label = f"chosen: C = {self.C:.3g}"
            axes.axvline(self.C, color=AGAINST, linewidth=1.6, linestyle="--", label=label)
        axes.xaxis.set_major_locator(LogLocator(10, numticks=8))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda C, _: f"{C:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        low, high = min(self.Cs[0], self.C or np.inf), max(self.Cs[-1], self.C or 0.0)
        # A decade at least, so that there is a tick.
        margin = max((high / low) ** 0.05, (10 / (high / low)) ** 0.5)
        axes.set_xlim(low / margin, high * margin)
        _plotting.few_ticks(axes.yaxis, 7)
        axes.grid(axis="y", linewidth=0.6, alpha=0.35)
        axes.legend(loc="best", fontsize=8, frameon=False)
        axes.set_xlabel("C, the inverse strength of the penalty (log scale)")
        axes.set_ylabel(self.score_name, parse_math=False)
        _plotting.store_axes(self, [axes])
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        frame : DataFrame of shape (n_Cs, 2 + n_folds)
            One row for each C, with columns C, mean, fold 1, fold 2, ...
        """
        folds = {f"fold {at}": scores for at, scores in enumerate(self.scores, start=1)}
        return pd.DataFrame({"C": self.Cs, "mean": self.scores.mean(axis=0), **folds})
