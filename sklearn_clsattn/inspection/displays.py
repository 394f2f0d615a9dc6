"""Plots of fitted models: importance of tokens, and selection.

Blue supports a class, orange opposes it; colour-blind readers and grey print can tell them apart.
Everything else uses the colours of the user's matplotlib style, so dark backgrounds work as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import cleandoc, signature
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr
from sklearn.isotonic import isotonic_regression
from sklearn.preprocessing import normalize
from sklearn.utils import check_consistent_length, check_scalar
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import column_or_1d

from .._types import Array
from .._validation import encode_labels
from ..importance import class_totals, posterior_difference
from .formatting import token_text
from .important_tokens import documents_with, named_classifier, read_documents, values_by_class

FOR, AGAINST, NEUTRAL = "#0072B2", "#D55E00", "#8C8C8C"

_MANY_POINTS = 500  # more are drawn small, transparent and rasterized
_N_BINS = 20  # for the means
_MIN_POINTS = 5  # in a bin: with fewer, the mean is too uncertain to draw
_MAX_NAMES = 7  # on each side of the scatter plots
_LINE = {"arrowstyle": "-", "color": NEUTRAL, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0}

_ATTRIBUTES = """
Attributes
----------
ax_ : matplotlib Axes or ndarray of Axes
    The axes of the plot; an array if there are several.
figure_ : matplotlib Figure
    The figure that contains them.
"""
_AX = """ax : matplotlib Axes or array of Axes, default=None
    The axes to draw on, as many as a new figure would have. By default a new figure is created.
"""
_OPTIONS = """
Parameters
----------
{}
    As in :meth:`from_estimator`.
"""
_RETURNS = """
Returns
-------
display : {}
    The display, after drawing.
"""


class Display:
    """Base of the displays: creates their axes and completes their docstrings."""

    ax_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        plot = cls.__dict__["plot"]
        from_estimator = cls.__dict__["from_estimator"].__func__
        _, *options = signature(plot).parameters
        returns = _RETURNS.format(cls.__name__)
        _extend_docstring(cls, _ATTRIBUTES)
        _extend_docstring(from_estimator, _AX + returns)
        _extend_docstring(plot, _OPTIONS.format(", ".join(options)) + returns)

    def _axes(self, ax: Any, n_panels: int, n_columns: int, size: tuple[float, float]) -> list[Any]:
        """Return the given axes, or those of a new figure with panels of `size` inches."""
        plt = import_pyplot()
        if ax is None:
            n_rows = -(-n_panels // n_columns)
            figsize = size[0] * n_columns, size[1] * n_rows
            figure = plt.figure(figsize=figsize, layout="constrained")
            ax = []
            for number in range(1, n_panels + 1):
                ax.append(figure.add_subplot(n_rows, n_columns, number))
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != n_panels:
            raise ValueError(f"ax must be {n_panels} axes, one for each plot, got {len(axes)}")
        self.ax_ = axes[0] if n_panels == 1 else axes
        self.figure_ = axes[0].figure
        return axes.tolist()


def _extend_docstring(documented: Any, sections: str) -> None:
    """Add sections to the docstring of a class or function."""
    documented.__doc__ = f"{cleandoc(documented.__doc__ or '')}\n{sections}"


def import_pyplot() -> Any:
    """Return ``matplotlib.pyplot``; the error says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which is in the optional extra 'plot': "
            "pip install 'sklearn-clsattn[plot]'"
        ) from error
    return plt


def text_color() -> Any:
    """Return the colour of text in the user's style."""
    return import_pyplot().rcParams["text.color"]


def set_labels(ax: Any, title: str, across: str = "", up: str = "") -> None:
    """Set title and labels, never parsed as mathematics, and remove half of the frame."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title(title, loc="left", fontsize="medium", parse_math=False)
    ax.set_xlabel(across, parse_math=False)
    ax.set_ylabel(up, parse_math=False)


def shown(name: Any, limit: int = 28) -> str:
    """Return a name with visible white space, at most `limit` characters long."""
    text = str(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    text = token_text(text) or "(empty)"
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3  # n-grams often differ only at their ends
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def class_name(label: Any, limit: int = 20) -> str:
    """Return a class label as text; a number alone would not be recognised as a class."""
    return shown(label if isinstance(label, str) else f"class {label}", limit)


def few_ticks(axis: Any, at_most: int, *, integer: bool = False) -> None:
    """Limit the number of an axis's ticks, so that their labels do not overlap."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(at_most, steps=[1, 2, 2.5, 5, 10], integer=integer))


def named_bars(
    ax: Any,
    names: list[str],
    lengths: Array,
    colors: Any,
    *,
    notes: Sequence[str] = (),
    notes_at: ArrayLike = (),
    min_slots: int = 3,
) -> None:
    """Draw at least `min_slots` bars from top to bottom, with names, and notes at `notes_at`."""
    slots = np.arange(len(lengths))
    ax.barh(slots, lengths, color=colors, height=0.72, linewidth=0, zorder=2)
    ax.set_yticks(slots, names, parse_math=False, fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(lengths), min_slots) - 0.4, -0.6)
    for slot, (note, end) in enumerate(zip(notes, np.asarray(notes_at), strict=True)):
        ax.annotate(
            note,
            (end, slot),
            xytext=(3, 0),
            textcoords="offset points",
            ha="left",
            va="center_baseline",
            fontsize=8,
            parse_math=False,
        )


def write_instead(ax: Any, message: str) -> None:
    """Write a message in empty axes."""
    ax.set(xticks=[], yticks=[])
    ax.text(0.5, 0.5, message, ha="center", va="center", transform=ax.transAxes, parse_math=False)


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> Array:
    """Return ascending heights from `low` to `high`, near `wanted` and `gap` apart."""
    heights = np.sort(np.asarray(wanted, dtype=np.float64))
    if len(heights) < 2:
        return heights.clip(low, high)
    gap = min(gap, (high - low) / (len(heights) - 1))
    steps = gap * np.arange(len(heights))
    heights = isotonic_regression(heights - steps) + steps
    return np.maximum(np.minimum(heights, high - steps[::-1]), low + steps)


def draw_names(
    ax: Any, x: Array, y: Array, names: NDArray[Any], tokens: list[NDArray[np.intp]]
) -> None:
    """Write names in the margins, `tokens[0]` left and `tokens[1]` right, with lines to points."""
    named = np.concatenate(tokens)
    if not len(named):
        return
    # 1) The axis ends at the tokens, and its ticks; the margins are for names.
    low, high = ax.get_ylim()
    left = float(x.min())
    right = float(x.max())
    width = max(right - left, 1e-9)
    few_ticks(ax.xaxis, 5)
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    first, last = ax.get_xlim()
    ticks = ax.get_xticks()
    ticks = ticks[(ticks >= first) & (ticks <= last)]
    # 2) Circles around the points, where the lines end.
    circles = {"facecolors": "none", "edgecolors": text_color(), "linewidths": 0.7}
    ax.scatter(x[named], y[named], s=14, zorder=5, **circles)
    # 3) The names on either side.
    limits = []
    for is_right, color, end, chosen in (
        (False, AGAINST, left, tokens[0]),
        (True, FOR, right, tokens[1]),
    ):
        side = 1 if is_right else -1
        chosen = chosen[np.argsort(y[chosen], kind="stable")]
        texts = [shown(name, 18) for name in names[chosen]]
        edge = 0.03 * (high - low)
        heights = spread(y[chosen], 2.1 * edge, low + edge, high - edge)
        for token, text, height in zip(chosen, texts, heights, strict=True):
            ax.annotate(
                text,
                (x[token], y[token]),
                xytext=(end + side * 0.06 * width, height),
                ha="left" if is_right else "right",
                va="center",
                fontsize=8,
                color=color,
                arrowprops={**_LINE, "relpos": (0 if is_right else 1, 0.5)},
                parse_math=False,
            )
        margin = 0.1 + 0.03 * max(map(len, texts), default=0)
        limits.append(end + side * margin * width)
    ax.set(xlim=limits, ylim=(low, high), xticks=ticks)


@dataclass(kw_only=True, eq=False, repr=False)
class TokenImportanceDisplay(Display):
    """Attention scores, values and importance of all tokens.

    There are two kinds of plots. ``kind="scatter"`` is the figure of the paper [1]_: attention
    scores and token values against the difference of the classes' posterior probabilities, with
    means in bins, in two plots per class. ``kind="bars"`` shows the most important tokens, in one
    plot per class.

    A token's importance for a class is its effect on the decisions for X: the standard deviation
    over documents of its contribution to the class (minus the mean over classes), with its sign.
    Without X it is the signed frequency, ``token_importance_``. Words that have character n-grams
    (:class:`~sklearn_clsattn.text.ContextVectorizer`) are drawn together with these.

    Posterior probabilities are computed with equal total weights of the classes, so that a token
    that is equally frequent in all classes has difference 0.

    Parameters
    ----------
    tokens : dict of label to DataFrame
        For each class, one row per token, with columns `token`, `attention_score`, `value` and
        `importance` for the class. With X also `documents` (the number that contain it); with y
        also `posterior_difference` (P(class | token) minus the mean probability of the others).
    importance_label : str
        The axis label for the importance.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import TokenImportanceDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifier().fit(X, y)
    >>> display = TokenImportanceDisplay.from_estimator(model, X, y)
    >>> [ax.get_ylabel() for ax in display.ax_]
    ['attention score', 'token value for class 1']
    """

    tokens: dict[Any, pd.DataFrame]
    importance_label: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        target: Any = None,
        min_count: int = 10,
        k: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw scores, values or importance of a fitted model's tokens.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts, \
                default=None
            Documents, the input of the estimator. "scatter" needs them; without them, "bars" uses
            only the model.
        y : array-like of shape (n_documents,), default=None
            Their class labels. "scatter" needs them.
        kind : {"scatter", "bars"}, default="scatter"
            The kind of plot.
        target : label, default=None
            The class to draw. By default all classes; for two classes, "scatter" draws only the
            second, because the other plot would be its mirror image.
        min_count : int, default=10
            If X is given, tokens in fewer of its documents are not drawn.
        k : int, default=10
            Maximum number of bars for each class.
        """
        if kind == "scatter" and (X is None or y is None):
            raise ValueError(
                'kind="scatter" needs documents X and their labels y: pass both, or draw '
                'kind="bars".'
            )
        check_scalar(min_count, "min_count", Integral, min_val=1)
        classifier, names = named_classifier(estimator)
        if kind == "scatter" and classifier.multilabel_:
            raise ValueError('kind="scatter" does not support several labels: use kind="bars".')
        # 1) The columns of all tokens, (n_tokens,), or (n_classes, n_tokens).
        if X is None:
            importance_label = "signed frequency"
            is_drawn = np.ones(len(names), dtype=bool)
            columns = {
                "token": names,
                "attention_score": classifier.attention_scores_,
                "value": values_by_class(classifier.token_values_),
                "importance": values_by_class(classifier.token_importance_),
            }
        else:
            importance_label = "effect on decisions (std. dev.)"
            read = read_documents(estimator, X)
            counts = documents_with(read.X)
            is_drawn = counts >= min_count
            if not is_drawn.any():
                raise ValueError(
                    f"No token occurs in at least {min_count} documents of X (the most frequent "
                    f"occurs in {counts.max(initial=0)}): lower min_count or pass more documents."
                )
            columns = {
                "token": read.names,
                "attention_score": read.fitted.scores,
                "documents": counts,
                "value": read.values,
                "importance": read.effects,
            }
            if y is not None:
                differences = _posterior_difference(read.X, y, classifier.classes_)
                columns["posterior_difference"] = differences
        # 2) A table for each class.
        tokens = {}
        for row, label in enumerate(classifier.classes_.tolist()):
            columns_of_class = {}
            for name, numbers in columns.items():
                columns_of_class[name] = numbers[row] if numbers.ndim > 1 else numbers
            tokens[label] = pd.DataFrame(columns_of_class)[is_drawn]
        display = cls(tokens=tokens, importance_label=importance_label)
        return display.plot(ax, kind=kind, target=target, k=k)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        target: Any = None,
        k: int = 10,
    ) -> Self:
        """Draw one kind of plot for some classes."""
        check_scalar(k, "k", Integral, min_val=1)
        classes = list(self.tokens)
        if target is not None and target not in classes:
            raise ValueError(f"target must be one of the classes {classes}, got {target!r}.")
        labels = classes if target is None else [target]
        if kind == "bars":
            self._draw_bars(ax, labels, k)
        elif kind == "scatter" and "posterior_difference" in self.tokens[classes[0]]:
            # For two classes, the plot of the first would be the mirror image of the second's.
            is_mirrored = target is None and len(classes) == 2
            self._draw_scatter(ax, classes[1:] if is_mirrored else labels)
        else:
            raise ValueError(
                'kind must be "bars" or, where documents and labels are known, "scatter", got '
                f"{kind!r}."
            )
        return self

    def _draw_scatter(self, ax: Any, labels: list[Any]) -> None:
        """Draw scores and values over posterior differences, two axes per class."""
        axes = self._axes(ax, 2 * len(labels), 2, (5.6, 4.2))
        for label, left, right in zip(labels, axes[::2], axes[1::2], strict=True):
            name = class_name(label)
            across = self._difference_label(label)
            columns = {key: column.to_numpy() for key, column in self.tokens[label].items()}
            named = _most_important(columns["importance"], columns["posterior_difference"])
            for panel, title, column, up in (
                (left, "Attention scores", "attention_score", "attention score"),
                (right, "Token values", "value", f"token value for {name}"),
            ):
                x = columns["posterior_difference"]
                y = columns[column]
                has_means = _draw_tokens(panel, x, y, columns["documents"])
                draw_names(panel, x, y, columns["token"], named)
                if len(labels) > 1:
                    title = f"{name}: {title.lower()}"
                set_labels(panel, title, across, up)
            if has_means:  # values rise with the difference, so this corner is empty
                right.legend(loc="lower right", fontsize=8, frameon=False)

    def _difference_label(self, label: Any) -> str:
        """Return the name of a class's posterior difference, for an axis."""
        others = [other for other in self.tokens if other != label]
        across = f"P({shown(label, 16)} | token)"
        if len(others) == 1:  # the other one of two classes
            return f"{across} − P({shown(others[0], 16)} | token)"
        return f"{across} less the mean of the other classes"

    def _draw_bars(self, ax: Any, labels: list[Any], k: int) -> None:
        """Draw the `k` most important tokens of each class, one axes per class."""
        # 1) The tokens.
        lengths: list[Array] = []
        names: list[list[str]] = []
        most = 3  # bars of a class, of which three have space at least
        widest = 0  # characters of a name
        for label in labels:
            tokens = self.tokens[label].sort_values("importance", ascending=False, kind="stable")
            best = tokens[tokens["importance"] > 0].head(k)
            class_names = list(map(shown, best["token"]))
            lengths.append(best["importance"].to_numpy())
            names.append(class_names)
            most = max(most, len(class_names))
            widest = max([widest, *map(len, class_names)])
        # 2) The axes, as large as the longest name and the most bars need.
        size = (2.7 + 0.075 * widest, 1.1 + 0.23 * most)
        n_rows = -(-len(labels) // 4)
        n_columns = -(-len(labels) // n_rows)
        axes = self._axes(ax, len(labels), n_columns, size)
        # 3) The bars.
        first = next(iter(self.tokens))
        for panel, label, bars, bar_names in zip(axes, labels, lengths, names, strict=True):
            set_labels(panel, class_name(label, 32), self.importance_label if bar_names else "")
            if not bar_names:
                write_instead(panel, "no token is evidence for it")
                continue
            color = AGAINST if len(self.tokens) == 2 and label == first else FOR
            named_bars(panel, bar_names, bars, color)
            panel.set_xlim(0, 1.05 * np.concatenate(lengths).max())  # the same for all classes
            few_ticks(panel.xaxis, 4)


def _most_important(importance: Array, difference: Array) -> list[NDArray[np.intp]]:
    """Return the most important tokens of negative and of positive differences."""
    named = []
    for sign in (-1, 1):
        agree = np.flatnonzero((sign * importance > 0) & (sign * difference > 0))
        order = np.argsort(-np.abs(importance[agree]), kind="stable")
        named.append(agree[order[:_MAX_NAMES]])
    return named


def _posterior_difference(X: Any, y: ArrayLike, classes: NDArray[Any]) -> Array:
    """Return posterior differences (n_classes, n_tokens) at equal class weights."""
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    present = np.unique(labels).tolist()
    if present != classes.tolist():
        raise ValueError(f"y must contain labels of all classes {classes.tolist()}, got {present}.")
    codes = encode_labels(labels, classes)
    weights = compute_sample_weight("balanced", labels)
    totals = class_totals(X, codes, len(classes), weights)
    return values_by_class(posterior_difference(totals))


def _draw_tokens(ax: Any, x: Array, y: Array, documents: NDArray[np.intp]) -> bool:
    """Draw points, larger for more documents, and means in bins; return whether there are any."""
    sizes = 6 + 5 * np.log10(documents / documents.min())
    many = len(x) > _MANY_POINTS
    ax.scatter(
        x,
        y,
        s=sizes if many else 2.5 * sizes,
        c=np.where(x < 0, AGAINST, FOR),
        alpha=0.3 if many else 0.6,
        linewidths=0,
        rasterized=many,
    )
    ax.plot([x.min(), x.max()], [0, 0], color=text_color(), linewidth=0.6, zorder=0)
    bins = binned_means(x, y, _N_BINS)
    ax.errorbar(
        bins["centre"].to_numpy(),
        bins["mean"].to_numpy(),
        bins["deviation"].to_numpy(),
        color=text_color(),
        linewidth=1.4,
        elinewidth=0.7,
        marker="o",
        markersize=3.5,
        zorder=4,
        label=f"mean and standard\ndeviation in {_N_BINS} bins",
    )
    return bool(bins["mean"].notna().any())


def binned_means(x: Array, y: Array, n_bins: int, min_points: int = _MIN_POINTS) -> pd.DataFrame:
    """Return centre, mean, deviation, count of bins of equal width, NaN with too few points."""
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    # Not scipy.stats.binned_statistic, which fails if x differs only by rounding.
    points = pd.Series(y).groupby(np.digitize(x, edges[1:-1]))
    columns = {"mean": points.mean(), "deviation": points.std(ddof=0), "count": points.size()}
    bins = pd.DataFrame(columns).query("count >= @min_points").reindex(range(n_bins))
    return bins.assign(centre=(edges[1:] + edges[:-1]) / 2)


@dataclass(kw_only=True, eq=False, repr=False)
class SelectionDisplay(Display):
    """Which tokens attention selects, how often, and how concentrated attention is.

    There are two plots. The first shows the tokens that most often have the highest attention score
    in their document. The second is a histogram, over documents, of the entropy of attention: 0 if
    one token has all of it, log(n) if n tokens have equal shares. It is compared with the entropy
    that attention would have if all attention scores were equal.

    The entropy is computed from the attention on the tokens of the document, normalised to sum 1;
    the share of ``<cls>`` is reported separately. Documents without tokens are ignored.

    Parameters
    ----------
    tokens : DataFrame
        One row per token that is selected in some document, most often selected first, with columns
        `token`, `selected` and `documents` (the numbers of documents in which it is selected and
        in which it occurs), and `label`, the class with the highest value or None.
    entropy : tuple of two ndarrays of shape (n_documents,)
        Entropy of attention in nats, and the entropy if all attention scores were equal.
    cls_share : float
        Mean share of attention of ``<cls>``.
    classes : ndarray of shape (n_classes,)
        Class labels. The bars of two classes have two colours.

    Examples
    --------
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import SelectionDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> display = SelectionDisplay.from_estimator(ClsAttentionClassifier().fit(X, y), X)
    >>> display.tokens.columns.tolist()
    ['token', 'selected', 'documents', 'label']
    """

    tokens: pd.DataFrame
    entropy: tuple[Array, Array]
    cls_share: float
    classes: NDArray[Any]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, k: int = 15, ax: Any = None) -> Self:
        """Draw the tokens that a fitted model selects in documents.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts
            Documents, the input of the estimator.
        k : int, default=15
            Maximum number of selected tokens to draw.
        """
        read = read_documents(estimator, X)
        classes = read.classifier.classes_
        # 1) The documents with tokens.
        attention = read.fitted.attention(read.X)
        token_attention = np.asarray(attention @ np.ones(read.X.shape[1]))
        is_filled = token_attention > 0
        if not is_filled.any():
            raise ValueError(
                f"None of the {len(is_filled)} documents contains a token that the model knows: "
                "pass documents like those of the fit."
            )
        cls_share = 0.0
        if read.fitted.cls_weight:
            cls_share = float(np.maximum(1.0 - token_attention[is_filled], 0.0).mean())
        # 2) The selected tokens, and the class with the highest value of each.
        labels = np.full(read.X.shape[1], None, dtype=object)
        if not read.fitted.mlp:
            has_best = np.ptp(read.values, axis=0) > 0
            best = read.values.argmax(axis=0)
            labels[has_best] = np.array(classes.tolist(), dtype=object)[best[has_best]]
        selected = read.selection_counts
        by_count = np.argsort(-selected, kind="stable")
        order = by_count[: np.count_nonzero(selected)]
        tokens = {
            "token": pd.Series(read.names[order], dtype=object),
            "selected": selected[order],
            "documents": documents_with(read.X)[order],
            "label": pd.Series(labels[order], dtype=object),
        }
        display = cls(
            tokens=pd.DataFrame(tokens),
            entropy=(entropies(attention[is_filled]), entropies(read.X[is_filled])),
            cls_share=cls_share,
            classes=classes,
        )
        return display.plot(ax, k=k)

    def plot(self, ax: Any = None, *, k: int = 15) -> Self:
        """Draw both plots."""
        check_scalar(k, "k", Integral, min_val=1)
        axes = self._axes(ax, 2, 2, (4.3, 4.4))
        self._draw_selected(axes[0], self.tokens[:k])
        self._draw_entropy(axes[1])
        return self

    def _draw_selected(self, ax: Any, tokens: pd.DataFrame) -> None:
        """Draw how often tokens are selected, as shares of the non-empty documents."""
        across = "% of documents: selected (dark), present (light)"
        set_labels(ax, "Tokens selected most often", across)
        numbers = tokens[["selected", "documents"]].to_numpy()
        selected, present = 100 * numbers.T / len(self.entropy[0])
        first = self.classes.tolist()[:1] if len(self.classes) == 2 else []
        colors = []
        notes = []
        for share, label in zip(selected, tokens["label"], strict=True):
            colors.append(AGAINST if label in first else FOR)
            note = f"{share:.1f} %" if share < 9.95 else f"{share:.0f} %"
            if label is not None:
                note += f" · {class_name(label, 14)}"
            notes.append(note)
        names = [shown(name, 24) for name in tokens["token"]]
        ends = np.maximum(selected, present)
        ax.barh(np.arange(len(tokens)), present, color=colors, height=0.72, alpha=0.25, zorder=1)
        named_bars(ax, names, selected, colors, notes=notes, notes_at=ends, min_slots=10)
        ax.set_xlim(0, 1.6 * ends.max())  # space for the notes

    def _draw_entropy(self, ax: Any) -> None:
        """Draw a histogram of entropy over documents."""
        across = "entropy of attention in a document (nats)"
        set_labels(ax, "Entropy of attention", across, "documents")
        low = max(np.min(self.entropy), 0.0)
        high = np.max(self.entropy)
        if high - low < 1e-6:  # all equal: a bar, not a line
            low = max(low - 0.5, 0.0)
            high = high + 0.5
        even_style = {"histtype": "step", "color": text_color(), "linestyle": "--"}
        for numbers, name, style in (
            (self.entropy[0], "attention", {"color": FOR, "alpha": 0.75}),
            (self.entropy[1], "if all scores were equal", even_style),
        ):
            median = np.median(numbers)
            n_tokens = np.exp(median)  # of the same entropy, if attention were even
            text = f"{n_tokens:.1f}" if n_tokens < 9.95 else f"{n_tokens:,.0f}"
            label = f"{name}: median {median:.2f},\nas if evenly over {text} tokens"
            ax.hist(numbers.clip(low, high), bins=np.linspace(low, high, 31), label=label, **style)
        if self.cls_share:
            ax.plot([], [], " ", label=f"(<cls> has {100 * self.cls_share:.3g} % on average)")
        few_ticks(ax.yaxis, 6, integer=True)
        ax.set_ylim(top=ax.get_ylim()[1] * 1.45)  # space for the legend
        ax.legend(loc="upper left", fontsize=8, frameon=False)


def entropies(weights: sp.csr_array) -> Array:
    """Return the entropy of each row's entries as shares of their sum, (n_documents,), in nats."""
    shares = normalize(weights, norm="l1").tocoo()
    return np.abs(np.bincount(shares.row, entr(shares.data), shares.shape[0]))
