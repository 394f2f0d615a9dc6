"""Scores, values and importance of all tokens of a fitted model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, check_scalar
from sklearn.utils.validation import column_or_1d

from ..._validation import codes_of
from ...comparison import token_effects, values_by_class
from ...importance import class_totals, posterior_difference
from ..feature_origins import without_name_warnings
from . import _plotting
from ._inputs import Array, documents_with, named_classifier, token_matrix
from ._plotting import AGAINST, FOR

_MANY_POINTS = 500  # more are drawn small, transparent and rasterized
_N_BINS = 20  # whose means are drawn
_MIN_POINTS = 5  # of a bin whose mean is drawn: with fewer it is too uncertain
_MAX_NAMES = 7  # on each side of the scatter plots


@dataclass(kw_only=True, eq=False, repr=False)
class TokenImportanceDisplay:
    """Attention scores, values and importance of all tokens.

    There are two plots. ``kind="scatter"`` is the figure of the paper [1]_: attention scores and
    token values against the difference of the classes' posterior probabilities, with means in
    bins. ``kind="bars"`` has the most important tokens of each class.

    Parameters
    ----------
    token_names : ndarray of shape (n_tokens,)
        Names of the tokens.
    attention_scores : ndarray of shape (n_tokens,)
        Attention scores of the tokens.
    token_values : ndarray of shape (n_classes, n_tokens)
        Values of the tokens: positive where a token is evidence for the class.
    importance : ndarray of shape (n_classes, n_tokens)
        Importance of the tokens for the classes.
    importance_label : str
        What this importance is, for the axis.
    classes : ndarray of shape (n_classes,)
        Class labels.
    documents : ndarray of shape (n_tokens,), default=None
        Number of documents that have each token.
    posterior_difference : ndarray of shape (n_classes, n_tokens), default=None
        P(class | token) less the (mean) probability of the other classes. Needed by "scatter".

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        The axes drawn on; an array where there are several.
    figure_ : matplotlib Figure
        The figure that they are in.

    References
    ----------
    .. [1] D. Wu, A. Shevchenko, S. Oymak, M. Mondelli (2025). Attention with Trained
       Embeddings Provably Selects Important Tokens. NeurIPS 2025, arXiv:2505.17282.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import TokenImportanceDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifier().fit(X, y)
    >>> display = TokenImportanceDisplay.from_estimator(model, X, y)
    >>> [ax.get_ylabel() for ax in display.ax_]
    ['attention score', 'token value for class 1']
    >>> plt.close(display.figure_)
    """

    token_names: NDArray[Any]
    attention_scores: Array
    token_values: Array
    importance: Array
    importance_label: str
    classes: NDArray[Any]
    documents: NDArray[np.intp] | None = None
    posterior_difference: Array | None = None

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
            Documents, as the estimator takes them. Needed by "scatter"; without them "bars" are
            drawn from the model alone.
        y : array-like of shape (n_documents,), default=None
            Their class labels. Needed by "scatter".
        kind : {"scatter", "bars"}, default="scatter"
            What to draw.
        target : label or list of labels, default=None
            The classes to draw. By default all; "scatter" with two classes, where one plot
            would mirror the other, draws the second.
        min_count : int, default=10
            Tokens in fewer of the documents X are left out, where X is given.
        k : int, default=10
            Maximum number of bars for each class.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw: two axes a class for "scatter", one a class for "bars". By default a
            new figure is made.

        Returns
        -------
        display : TokenImportanceDisplay
            The display, drawn.

        Notes
        -----
        A token's importance for a class is its effect on decisions on X: the standard deviation
        over documents of its contribution for the class (less the mean over classes), with its
        sign. Without X or contributions it is the signed frequency, ``token_importance_``.

        Posterior probabilities are those of an occurrence of the token, with classes of equal
        total weight, so that a token equally frequent in all classes has difference 0.
        """
        _plotting.import_pyplot()  # before anything is computed
        if kind == "scatter" and (X is None or y is None):
            raise ValueError(
                'kind="scatter" needs documents X and their labels y: pass both, or draw '
                'kind="bars".'
            )
        check_scalar(min_count, "min_count", Integral, min_val=1)
        classifier, names = named_classifier(estimator)
        _class_positions(target, classifier.classes_)  # raises errors before anything is computed
        difference = documents = None
        frequent: Any = slice(None)
        if X is not None:
            X = token_matrix(estimator, X)
            documents = documents_with(X)
            frequent = np.flatnonzero(documents >= min_count)
            if not len(frequent):
                raise ValueError(
                    f"No token is in {min_count} documents of X or more (the most frequent is in "
                    f"{int(documents.max(initial=0))}): lower min_count, or pass more documents."
                )
            documents = documents[frequent]
            if y is not None:
                difference = _posterior_difference(X, y, classifier.classes_)[:, frequent]
        label, importance = _importance(classifier, X)
        return cls(
            token_names=names[frequent],
            attention_scores=classifier.attention_scores_[frequent],
            token_values=values_by_class(classifier.token_values_)[:, frequent],
            importance=values_by_class(importance)[:, frequent],
            importance_label=label,
            classes=classifier.classes_,
            documents=documents,
            posterior_difference=difference,
        ).plot(ax, kind=kind, target=target, k=k)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        target: Any = None,
        k: int = 10,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax, kind, target, k
            As in :meth:`from_estimator`.

        Returns
        -------
        self : TokenImportanceDisplay
            The display.
        """
        check_scalar(k, "k", Integral, min_val=1)
        positions = _class_positions(target, self.classes)
        if positions is None:
            positions = list(range(len(self.classes)))
            if kind == "scatter" and len(positions) == 2:
                positions = [1]
        if kind == "bars":
            axes = self._draw_bars(ax, positions, k)
        elif kind == "scatter" and self.posterior_difference is not None:
            axes = self._draw_scatter(ax, positions, self.posterior_difference)
        else:
            raise ValueError(
                'kind must be "bars" or, where documents and labels are known, "scatter", got '
                f"{kind!r}."
            )
        _plotting.store_axes(self, axes)
        return self

    def _draw_scatter(self, ax: Any, positions: list[int], differences: Array) -> list[Any]:
        """Draw scores and values over posterior differences, two axes a class."""
        axes = _plotting.axes_for(ax, 2 * len(positions), 2, (5.6, 4.2))
        for position, left, right in zip(positions, axes[::2], axes[1::2], strict=True):
            label = _plotting.shown(self.classes[position], 16)
            name = _plotting.class_name(self.classes[position])
            across = f"P({label} | token) less the mean of the other classes"
            if len(self.classes) == 2:
                other = _plotting.shown(self.classes[1 - position], 16)
                across = f"P({label} | token) − P({other} | token)"
            values, difference = self.token_values[position], differences[position]
            named = _tokens_to_name(self.importance[position], difference)
            for panel, title, numbers, up in (
                (left, "Attention scores", self.attention_scores, "attention score"),
                (right, "Token values", values, f"token value for {name}"),
            ):
                _draw_points(panel, difference, numbers, np.asarray(self.documents))
                any_means = _draw_means(panel, difference, numbers)
                _plotting.draw_names(panel, difference, numbers, self.token_names, named)
                title = title if len(positions) == 1 else f"{name}: {title.lower()}"
                _plotting.set_title(panel, title)
                panel.set_xlabel(across, parse_math=False)
                panel.set_ylabel(up, parse_math=False)
            if any_means:  # values rise with the difference, so that this corner is empty
                right.legend(loc="lower right", fontsize=8, frameon=False)
        return axes

    def _draw_bars(self, ax: Any, positions: list[int], k: int) -> list[Any]:
        """Draw the `k` most important tokens of each class, one axes a class."""
        best = []
        for position in positions:
            order = np.argsort(-self.importance[position], kind="stable")[:k]
            best.append(order[self.importance[position][order] > 0])
        names = [[_plotting.shown(name) for name in self.token_names[tokens]] for tokens in best]
        widest = max((len(name) for of_class in names for name in of_class), default=0)
        size = (2.7 + 0.075 * widest, 1.1 + 0.23 * max(3, *map(len, best)))
        n_rows = -(-len(positions) // 4)
        axes = _plotting.axes_for(ax, len(positions), -(-len(positions) // n_rows), size)
        largest = max(float(self.importance[position].max(initial=0.0)) for position in positions)
        for panel, position, tokens, shown in zip(axes, positions, best, names, strict=True):
            _plotting.set_title(panel, _plotting.class_name(self.classes[position], 32))
            if not len(tokens):
                _plotting.write_instead(panel, "no token is evidence for it")
                continue
            color = AGAINST if len(self.classes) == 2 and position == 0 else FOR
            _plotting.named_bars(panel, shown, self.importance[position][tokens], color)
            panel.set_xlim(0, 1.05 * largest)  # the same for all classes
            _plotting.few_ticks(panel.xaxis, 4)
            panel.set_xlabel(self.importance_label)
        return axes


def _class_positions(target: Any, classes: NDArray[Any]) -> list[int] | None:
    """Return the positions in `classes` of one label or of a list of them; None for None."""
    if target is None:
        return None
    many = isinstance(target, list | tuple) or getattr(target, "ndim", 0) == 1
    labels, known = list(target) if many else [target], classes.tolist()
    if not labels:
        raise ValueError("target must be a class or a list of classes, got an empty list.")
    for label in labels:
        if label not in known:
            raise ValueError(f"target must be one of the classes {known}, got {label!r}.")
    return [known.index(label) for label in labels]


def _posterior_difference(X: Any, y: ArrayLike, classes: NDArray[Any]) -> Array:
    """Return posterior differences (n_classes, n_tokens) at equal class weights."""
    labels = column_or_1d(y)
    check_consistent_length(X, labels)
    codes = codes_of(labels, classes)
    sizes = np.bincount(codes[codes >= 0], minlength=len(classes))
    if (codes < 0).any() or not sizes.all():
        raise ValueError(
            f"y must hold labels of the classes {classes.tolist()}, and each of them, got "
            f"{np.unique(labels).tolist()}."
        )
    weights = (len(codes) / (len(classes) * sizes))[codes]
    return values_by_class(posterior_difference(class_totals(X, codes, len(classes), weights)))


def _importance(classifier: Any, X: Any) -> tuple[str, Array]:
    """Return what importance is, and its values (n_tokens,) or (n_classes, n_tokens)."""
    if X is not None:
        with suppress(ValueError), without_name_warnings():  # with an MLP, of no contributions
            return "effect on decisions (std. dev.)", token_effects(classifier, X)
    return "signed frequency", classifier.token_importance_


def _draw_points(ax: Any, x: Array, y: Array, documents: NDArray[np.intp]) -> None:
    """Draw tokens as points, those of more documents larger."""
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
    ax.plot([x.min(), x.max()], [0, 0], color=_plotting.text_color(), linewidth=0.6, zorder=0)


def _draw_means(ax: Any, x: Array, y: Array) -> bool:
    """Draw means in bins, connected where bins are neighbours; return whether there are any."""
    bins = binned_means(x, y, _N_BINS)
    ax.errorbar(
        bins["centre"].to_numpy(),
        bins["mean"].to_numpy(),
        yerr=bins["deviation"].to_numpy(),
        color=_plotting.text_color(),
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
    # Not scipy.stats.binned_statistic, which refuses x that differ by rounding alone.
    points = pd.Series(y).groupby(np.digitize(x, edges[1:-1]))
    bins = pd.DataFrame(
        {"mean": points.mean(), "deviation": points.std(ddof=0), "count": points.size()}
    )
    bins = bins[bins["count"] >= min_points].reindex(range(n_bins))
    return bins.assign(centre=(edges[1:] + edges[:-1]) / 2)


def _tokens_to_name(importance: Array, difference: Array) -> list[NDArray[np.intp]]:
    """Return the most important tokens of negative and of positive differences."""
    chosen = []
    for sign in (-1, 1):
        tokens = np.flatnonzero((np.sign(importance) == sign) & (sign * difference > 0))
        order = np.argsort(-np.abs(importance[tokens]), kind="stable")
        chosen.append(tokens[order[:_MAX_NAMES]])
    return chosen
