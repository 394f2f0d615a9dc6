"""Important tokens, by how far they move decisions, and plots: of these, and of one decision.

Blue supports a class, orange opposes it; colour-blind readers and grey print can tell them apart.
Everything else uses the colours of the user's matplotlib style, so dark backgrounds work as well.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.sparsefuncs import mean_variance_axis

from .decision_sums import know_the_same_classes, member_sum
from .formatting import MINUS, class_name, percent, signed, token_text
from .inner_classifiers import Member, has_several_labels, members_of
from .shown_classes import position
from .view import View

_FOR = "#0072B2"
_AGAINST = "#D55E00"
_NEUTRAL = "#8C8C8C"
_RAREST = 1000  # documents, of which a token must be in one
# Of the plot of a decision.
_INCHES = 5.2  # the width of a new figure, without names
_PER_CHARACTER = 0.075  # inches of a name
_MARGIN = 0.16  # of the width of all bars, on either side, for numbers
_ROOM = 1.0  # bars' heights, above and below, for the names of decision and intercept


def token_importance(estimator: Any, documents: Any) -> pd.DataFrame:
    """Return the importance of each token of documents for each class, (n_tokens, n_classes).

    It is the token's value for the class, less its mean over the classes (unless documents may have
    several labels), times the standard deviation over the documents of its attention, or of its
    weight in a linear classifier. Words and their character n-grams are one token. Tokens in fewer
    than one of 1,000 documents are left out.
    """
    members = members_of(estimator).members
    frames = []
    for member in members:
        frames.append(member.share * _importance_for_member(member, documents))
    importance = frames[0]
    if len(frames) > 1:
        if not know_the_same_classes(members):
            raise TypeError("the classifiers inside know different classes: there is no average")
        importance = pd.concat(frames).groupby(level=0, sort=False).sum()
    return importance.set_axis(list(estimator.classes_), axis=1)


def _importance_for_member(member: Member, documents: Any) -> pd.DataFrame:
    """Return the importance for a classifier inside an estimator, (n_tokens, n_classes)."""
    decision_sum = member_sum(member)
    classifier = member.classifier
    if decision_sum is None:
        raise TypeError(
            f"the decisions of {type(classifier).__name__} are not a sum over tokens, which have "
            "no values"
        )
    loadings, values, tokens = decision_sum.by_token(decision_sum.read(documents))
    # 1) the tokens' values for each class
    if values.shape[1] < len(classifier.classes_):  # of the second of two classes
        values = np.hstack([-values, values])
    elif not has_several_labels(classifier):
        values = values - values.mean(axis=1, keepdims=True)
    # 2) the variation of their loadings
    _, variances = mean_variance_axis(loadings, axis=0)
    importance = values * np.sqrt(variances)[:, None]
    # 3) without the rarest, whose importance is that in a document or two
    n_documents = np.bincount(loadings.indices, minlength=len(tokens))
    is_shown = _RAREST * n_documents >= loadings.shape[0]
    # As objects: pandas' own type of texts has no lone surrogates.
    return pd.DataFrame(importance[is_shown], index=pd.Index(tokens[is_shown], dtype=object))


def important_tokens(importance: pd.DataFrame, label: Any, k: int) -> pd.Series[float]:
    """Return the `k` tokens of the largest positive importance for a class, with it."""
    of_class = importance[label].sort_values(ascending=False, kind="stable").head(k)
    return of_class[of_class > 0]


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
        color = _FOR
        if len(classes) == 2 and label == classes[0]:
            color = _AGAINST
        slots = np.arange(len(tokens))
        ax.barh(slots, tokens, color=color, height=0.72)
        # 2) their names, and the axes
        names = [_shown(token) for token in tokens.index]
        ax.set_yticks(slots, names, parse_math=False, fontsize=9)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(len(tokens), 3) - 0.4, -0.6)
        _few_ticks(ax.xaxis, 4)
        title = _shown(label if isinstance(label, str) else class_name(label), 32)
        _set_labels(ax, title, "effect on decisions (std. dev.)")


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


def draw_waterfall(view: View, max_display: int, ax: Any) -> Any:
    """Draw a document's contributions as bars, the strongest on top; return the axes."""
    import matplotlib.pyplot as plt

    # 1) The bars' names and lengths, and where they start, from the intercept upwards.
    names, lengths = _bars(view, max_display)
    widths = np.array(lengths)
    stops = view.start + np.cumsum(widths[::-1])[::-1]
    starts = stops - widths
    # 2) The bars, joined by lines, with their numbers.
    if ax is None:
        width = _INCHES + _PER_CHARACTER * max(map(len, names), default=0)
        height = 1.5 + 0.27 * max(len(names), 3)
        ax = plt.figure(figsize=(width, height), layout="constrained").add_subplot()
    slots = np.arange(len(names))
    colors = np.where(widths > 0, _FOR, _AGAINST).tolist()
    bars = ax.barh(slots, widths, left=starts, color=colors, height=0.72, linewidth=0, zorder=2)
    joints = np.append(stops, view.start)
    below = np.append(slots, len(names))
    ax.vlines(joints, below - 1, below, color=_NEUTRAL, linewidth=0.7, zorder=1)
    ax.bar_label(bars, [signed(length, MINUS) for length in lengths], padding=3, fontsize=8)
    # 3) Where the bars start and end, and 0, where two classes are level.
    ends = [view.start, view.end, *starts, *stops]
    if view.is_binary:
        ends.append(0.0)
        ax.axvline(0.0, color=_NEUTRAL, linewidth=0.7, linestyle=":", zorder=0)
    margin = _MARGIN * ((max(ends) - min(ends)) or 1.0)
    ax.set_xlim(min(ends) - margin, max(ends) + margin)
    ax.set_ylim(len(names) - 0.4 + _ROOM, -0.6 - _ROOM)
    _write_end(ax, view.end, -1.05, f"decision {signed(view.end, MINUS)}")
    _write_end(ax, view.start, len(names) + 0.05, f"intercept {signed(view.start, MINUS)}")
    # 4) The names.
    ax.set_yticks(slots, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    _few_ticks(ax.xaxis, 6)
    title = f"Document {view.number}: predicted {_shown(view.predicted_name, 20)}"
    if view.probability is not None:
        title += f" ({percent(view.probability)})"
    _set_labels(ax, title, _axis_label(view))
    return ax


def _bars(view: View, max_display: int) -> tuple[list[str], list[float]]:
    """Return the names and contributions of the strongest tokens, and of all others together."""
    strongest = sorted(view.tokens, key=lambda token: -abs(token.contribution))
    n_named = len(strongest) if len(strongest) <= max_display else max_display - 1
    names = []
    lengths = []
    for token in strongest[:n_named]:
        names.append(_shown(token.name))
        lengths.append(token.contribution)
    others = strongest[n_named:]
    if others:
        ending = "" if len(others) == 1 else "s"
        names.append(f"{len(others):,} other token{ending}")
        lengths.append(sum(token.contribution for token in others))
    return names, lengths


def _write_end(ax: Any, value: float, slot: float, words: str) -> None:
    """Write words at a value, inside of the axes."""
    # 1) On which side of the value there is space.
    low, high = ax.get_xlim()
    share = (value - low) / (high - low)
    alignment = "center"
    offset = 0
    if share < 0.25:
        alignment = "left"
        offset = 3
    elif share > 0.75:
        alignment = "right"
        offset = -3
    # 2) The words.
    ax.annotate(
        words,
        (value, slot),
        xytext=(offset, 0),
        textcoords="offset points",
        ha=alignment,
        va="center",
        fontsize=9,
        parse_math=False,
    )


def _axis_label(view: View) -> str:
    """Return the name of a view's decision, for its axis."""
    if view.other is not None:
        measure = "log-odds" if view.has_attention else "decision"
        return f"{measure} of {_shown(view.target, 20)} against {_shown(view.other, 20)}"
    return f"decision for {_shown(view.target, 32)}"


def _set_labels(ax: Any, title: str, across: str) -> None:
    """Set title and label, never parsed as mathematics, and remove half of the frame."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)
    ax.set_xlabel(across, parse_math=False)


def _shown(name: Any, limit: int = 28) -> str:
    """Return a name with visible white space, at most `limit` characters long."""
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    text = token_text(text) or "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3  # n-grams often differ only at their ends
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def _few_ticks(axis: Any, at_most: int) -> None:
    """Limit the number of an axis's ticks, so that their labels do not overlap."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10]))
