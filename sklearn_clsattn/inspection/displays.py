"""Plots of fitted models, in the colours that all plots of explanations share.

Blue supports a class, orange opposes it; colour-blind readers and grey print can tell them apart.
Everything else uses the colours of the user's matplotlib style, so dark backgrounds work as well.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import pandas as pd

from .formatting import class_name, token_text
from .important_tokens import important_tokens, token_importance
from .shown_classes import position

FOR = "#0072B2"
AGAINST = "#D55E00"
NEUTRAL = "#8C8C8C"


class TokenImportanceDisplay:
    """The most important tokens of each class, as bars.

    A token's importance for a class is its effect on the decisions for X: its value for the class
    (less the mean over the classes), times the standard deviation of its attention (of a linear
    classifier, of its weight) over the documents. So frequent words with small values and rare
    words with large values both rank low. Words that have character n-grams
    (:class:`~sklearn_clsattn.text.ContextVectorizer`) are drawn together with these. Tokens in
    fewer than one of 1,000 documents are left out.

    Parameters
    ----------
    importance : DataFrame of shape (n_tokens, n_classes)
        The importance of each token (row) for each class (column).

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        The axes of the plot, an array if several classes are drawn.
    figure_ : matplotlib Figure
        The figure that contains them.

    See Also
    --------
    Explanation.plot : The contributions to one decision.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import TokenImportanceDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifier().fit(X, y)
    >>> display = TokenImportanceDisplay.from_estimator(model, X, k=5)
    >>> [len(ax.patches) for ax in display.ax_]
    [5, 5]
    """

    ax_: Any
    figure_: Any

    def __init__(self, *, importance: pd.DataFrame) -> None:
        self.importance = importance

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, target: Any = None, k: int = 10, ax: Any = None
    ) -> Self:
        """Draw the most important tokens of a fitted model.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier whose decisions are sums over tokens, as for :func:`explain`.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts
            Documents, the input of the estimator.
        target : label, default=None
            The class to draw. By default all classes are drawn.
        k : int, default=10
            Maximum number of bars for each class.
        ax : matplotlib Axes or array of Axes, default=None
            The axes to draw on, one for each class. By default a new figure is created.

        Returns
        -------
        display : TokenImportanceDisplay
            The display, after drawing.
        """
        display = cls(importance=token_importance(estimator, X))
        return display.plot(ax, target=target, k=k)

    def plot(self, ax: Any = None, *, target: Any = None, k: int = 10) -> Self:
        """Draw the most important tokens of one class or of all classes.

        Parameters
        ----------
        ax, target, k
            As in :meth:`from_estimator`.

        Returns
        -------
        display : TokenImportanceDisplay
            The display, after drawing.
        """
        # 1) the tokens of each class
        labels = self.importance.columns.tolist()
        if target is not None:
            labels = [labels[position(target, labels)]]
        tokens = []
        end = 0.0
        for label in labels:
            of_class = important_tokens(self.importance, label, k)
            tokens.append(of_class)
            end = max([end, *of_class])
        # 2) the axes, on the same scale for all classes
        axes = _new_axes(len(labels), k) if ax is None else np.ravel(ax)
        self.ax_ = axes if len(labels) > 1 else axes[0]
        self.figure_ = axes[0].figure
        for panel, label, of_class in zip(axes, labels, tokens, strict=True):
            self._draw_class(panel, label, of_class)
            panel.set_xlim(0, 1.05 * end or 1.0)
        return self

    def _draw_class(self, ax: Any, label: Any, tokens: pd.Series[float]) -> None:
        """Draw the most important tokens of one class."""
        # 1) the bars; of two classes, the first has the colour of what speaks against the second
        classes = self.importance.columns.tolist()
        color = FOR
        if len(classes) == 2 and label == classes[0]:
            color = AGAINST
        slots = np.arange(len(tokens))
        ax.barh(slots, tokens, color=color, height=0.72)
        # 2) their names, and the axes
        names = [shown(token) for token in tokens.index]
        ax.set_yticks(slots, names, parse_math=False, fontsize=9)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(len(tokens), 3) - 0.4, -0.6)
        few_ticks(ax.xaxis, 4)
        title = shown(label if isinstance(label, str) else class_name(label), 32)
        set_labels(ax, title, "effect on decisions (std. dev.)")


def _new_axes(n_axes: int, n_bars: int) -> Any:
    """Return the axes of a new figure, at most four in a row, (n_axes,)."""
    import matplotlib.pyplot as plt

    n_rows = math.ceil(n_axes / 4)
    n_columns = math.ceil(n_axes / n_rows)
    width = 4.0 * n_columns
    height = (1.1 + 0.23 * max(n_bars, 3)) * n_rows
    figure = plt.figure(figsize=(width, height), layout="constrained")
    axes = [figure.add_subplot(n_rows, n_columns, number + 1) for number in range(n_axes)]
    return np.array(axes, dtype=object)


def set_labels(ax: Any, title: str, across: str) -> None:
    """Set title and label, never parsed as mathematics, and remove half of the frame."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)
    ax.set_xlabel(across, parse_math=False)


def shown(name: Any, limit: int = 28) -> str:
    """Return a name with visible white space, at most `limit` characters long."""
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    text = token_text(text) or "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3  # n-grams often differ only at their ends
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def few_ticks(axis: Any, at_most: int) -> None:
    """Limit the number of an axis's ticks, so that their labels do not overlap."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10]))
