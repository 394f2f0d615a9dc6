"""Scores, values and importance of all tokens of a fitted model."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_scalar
from sklearn.utils.validation import column_or_1d

from ..._validation import codes_of
from ...comparison import token_effects
from ...importance import class_totals, posterior_difference
from ..concentration import documents_with
from ..removal import without_name_warnings
from . import _plotting
from ._inputs import Array, checked_array, checked_rows, drawn_model, names_or_indices, places_of
from ._plotting import AGAINST, FOR

_KINDS = ("scatter", "bars")
_AXES = ("posterior_difference", "signed_frequency")
_AXIS_LABELS = {
    "effect": "effect on decisions (std. dev.)",
    "signed_frequency": "signed frequency",
    "value": "token value",
}
_MANY_POINTS = 500  # more are drawn small, transparent and rasterized
_MIN_POINTS = 5  # of a bin whose mean is drawn: with fewer it is too uncertain
_MAX_NAMES = 7  # on each side of the scatter plots


class TokenImportanceDisplay:
    """Attention scores, values and importance of all tokens.

    There are two plots. ``kind="scatter"`` is the figure of the paper [1]_: attention scores and
    token values against the difference of the classes' posterior probabilities, or against signed
    frequency alpha, with means in bins. ``kind="bars"`` has the most important tokens of each
    class.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    attention_scores : array-like of shape (n_tokens,)
        Attention scores of the tokens.
    token_values : array-like of shape (n_tokens,) or (n_classes, n_tokens)
        Values of the tokens: for two classes positive where a token is evidence for the second,
        for more one row a class.
    classes : array-like of shape (n_classes,)
        Class labels.
    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their indices.
    posterior_difference : array-like of the shape of token_values, default=None
        P(class | token) less the (mean) probability of the other classes. Needed by "scatter".
    signed_frequency : array-like of the shape of token_values, default=None
        alpha. Needed by "scatter" against it.
    importance : array-like of the shape of token_values, default=None
        Importance of the tokens for the classes. Needed by "bars"; "scatter" names the tokens
        where it is largest.
    importance_name : str, default="importance"
        Name of this importance, for the axis.
    documents : array-like of shape (n_tokens,), default=None
        Number of documents that have each token; "scatter" draws frequent tokens larger.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        The axes drawn on; an array where there are several.
    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    SelectionDisplay : Which tokens the softmax selects.
    AttentionDisplay : Attention and contributions in one document.

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

    def __init__(
        self,
        attention_scores: ArrayLike,
        token_values: ArrayLike,
        *,
        classes: ArrayLike,
        token_names: Any = None,
        posterior_difference: ArrayLike | None = None,
        signed_frequency: ArrayLike | None = None,
        importance: ArrayLike | None = None,
        importance_name: str = "importance",
        documents: ArrayLike | None = None,
    ) -> None:
        self.classes = np.asarray(classes)
        if self.classes.ndim != 1 or self.classes.size < 2:
            raise ValueError(f"classes must be two labels or more, got {self.classes.tolist()}.")
        n_tokens, shape = np.size(attention_scores), (self.classes.size, np.size(attention_scores))
        self.attention_scores = checked_array(attention_scores, "attention_scores", (n_tokens,))
        self.token_values = checked_rows(token_values, "token_values", *shape)
        self.token_names = names_or_indices(token_names, n_tokens)
        self.posterior_difference = checked_rows(
            posterior_difference, "posterior_difference", *shape
        )
        self.signed_frequency = checked_rows(signed_frequency, "signed_frequency", *shape)
        self.importance = checked_rows(importance, "importance", *shape)
        self.importance_name = importance_name
        self.documents = checked_array(documents, "documents", (n_tokens,))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        x: Literal["posterior_difference", "signed_frequency"] = "posterior_difference",
        target: Any = None,
        importance: Literal["effect", "signed_frequency", "value"] | None = None,
        min_count: int = 10,
        k: int = 10,
        n_bins: int = 20,
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
        x : {"posterior_difference", "signed_frequency"}, default="posterior_difference"
            What "scatter" has across: how one-sided a token is, or alpha, which is also large
            where a token is frequent, with bins of equally many tokens, as most are near 0.
        target : label or list of labels, default=None
            The classes to draw. By default all; "scatter" with two classes, where one plot
            would mirror the other, draws the second.
        importance : {"effect", "signed_frequency", "value"}, default=None
            What makes a token important:

            - "effect": how much it changes decisions on X: the standard deviation over documents
              of its contribution for the class (less the mean over classes), with its sign;
            - "signed_frequency": ``token_importance_``, from the training documents;
            - "value": ``token_values_``, its contribution per unit of attention.

            By default "effect" where there are X and contributions, else "signed_frequency".
        min_count : int, default=10
            Tokens in fewer of the documents X are left out, where X is given.
        k : int, default=10
            Maximum number of bars for each class.
        n_bins : int, default=20
            Number of bins of equal width for "scatter", from the smallest difference to the
            largest. Only bins of at least 5 tokens are drawn.
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw: two axes a class for "scatter", one a class for "bars". By default a
            new figure is made.

        Returns
        -------
        display : TokenImportanceDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no attention classifier, if `ax` is no axes, or if a number is no
            integer.
        ValueError
            If X and y do not fit the estimator or each other, if "scatter" misses them, if no
            token is in `min_count` documents, or if a parameter is out of its range.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

        Notes
        -----
        Posterior probabilities are those of an occurrence of the token, with classes of equal
        total weight, so that a token equally frequent in all classes has difference 0.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import TokenImportanceDisplay
        >>> texts = ["a good film", "good fun", "a bad film", "a dull, bad plot"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
        >>> model = model.fit(texts, ["pos", "pos", "neg", "neg"])
        >>> display = TokenImportanceDisplay.from_estimator(
        ...     model, texts, kind="bars", k=1, min_count=1
        ... )
        >>> [ax.get_yticklabels()[0].get_text() for ax in display.ax_]
        ['bad', 'good']
        >>> plt.close(display.figure_)
        """
        _plotting.import_pyplot()  # before anything is computed
        _check_option(kind, "kind", _KINDS)
        _check_option(importance, "importance", (None, *_AXIS_LABELS))
        _check_option(x, "x", _AXES)
        if kind == "scatter" and (X is None or y is None):
            raise ValueError(
                'kind="scatter" needs documents X and their labels y: pass both, or draw '
                'kind="bars".'
            )
        if importance == "effect" and X is None:
            raise ValueError('importance="effect" needs documents X.')
        check_scalar(min_count, "min_count", Integral, min_val=1)
        model = drawn_model(estimator)
        classifier = model.classifier
        places_of(target, classifier.classes_)  # raises errors before anything is computed
        difference = documents = None
        kept: Any = slice(None)
        if X is not None:
            X = model.token_matrix(X)
            documents = documents_with(X)
            kept = np.flatnonzero(documents >= min_count)
            if not len(kept):
                raise ValueError(
                    f"No token is in {min_count} documents of X or more (the most frequent is in "
                    f"{int(documents.max(initial=0))}): lower min_count, or pass more documents."
                )
            documents = documents[kept]
            if y is not None:
                difference = _posterior_difference(X, y, classifier.classes_)[..., kept]
        name, numbers = _importance(classifier, X, importance)
        return cls(
            classifier.attention_scores_[kept],
            classifier.token_values_[..., kept],
            classes=classifier.classes_,
            token_names=model.token_names[kept],
            posterior_difference=difference,
            signed_frequency=classifier.token_importance_[..., kept],
            importance=numbers[..., kept],
            importance_name=name,
            documents=documents,
        ).plot(ax, kind=kind, x=x, target=target, k=k, n_bins=n_bins)

    @classmethod
    def from_arrays(
        cls,
        attention_scores: ArrayLike,
        token_values: ArrayLike,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        x: Literal["posterior_difference", "signed_frequency"] = "posterior_difference",
        target: Any = None,
        k: int = 10,
        n_bins: int = 20,
        ax: Any = None,
        **arrays: Any,
    ) -> Self:
        """Draw given arrays.

        Parameters
        ----------
        attention_scores, token_values
            As in :class:`TokenImportanceDisplay`.
        kind, x, target, k, n_bins, ax
            As in :meth:`from_estimator`.
        **arrays
            The other parameters of :class:`TokenImportanceDisplay`.

        Returns
        -------
        display : TokenImportanceDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the arrays disagree in shape or are not finite, or if what `kind` needs is missing.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn.inspection import TokenImportanceDisplay
        >>> display = TokenImportanceDisplay.from_arrays(
        ...     [0.4, -1.0, 0.3],
        ...     [-2.0, 0.1, 1.5],
        ...     classes=["neg", "pos"],
        ...     token_names=["bad", "the", "good"],
        ...     posterior_difference=[-0.9, 0.0, 0.8],
        ... )
        >>> plt.close(display.figure_)
        """
        display = cls(attention_scores, token_values, **arrays)
        return display.plot(ax, kind=kind, x=x, target=target, k=k, n_bins=n_bins)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        x: Literal["posterior_difference", "signed_frequency"] = "posterior_difference",
        target: Any = None,
        k: int = 10,
        n_bins: int = 20,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array of Axes, default=None
            Where to draw: two axes a class for "scatter", one a class for "bars". By default a
            new figure is made.
        kind, x, target, k, n_bins
            As in :meth:`from_estimator`.

        Returns
        -------
        self : TokenImportanceDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If what `kind` needs is missing, or if a parameter has the wrong type or is out of its
            range.
        """
        _check_option(kind, "kind", _KINDS)
        _check_option(x, "x", _AXES)
        check_scalar(k, "k", Integral, min_val=1)
        check_scalar(n_bins, "n_bins", Integral, min_val=1)
        if kind == "scatter":
            if getattr(self, x) is None:
                raise ValueError(
                    f'kind="scatter" needs {x}: make the display from documents and their labels.'
                )
            axes = self._draw_scatter(ax, x, self._one_or_all(target), n_bins)
        else:
            if self.importance is None:
                raise ValueError('kind="bars" needs importance, one number a token and class.')
            places = places_of(target, self.classes)
            axes = self._draw_bars(ax, places or list(range(len(self.classes))), k)
        _plotting.store_axes(self, axes)
        return self

    def to_frame(self, target: Any = None) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Parameters
        ----------
        target : label or list of labels, default=None
            The classes to return. By default all, and of two the second: the numbers of the first
            are the same with the opposite sign.

        Returns
        -------
        frame : DataFrame
            One row a class and token, with columns token, class, attention_score, token_value,
            and those of documents, posterior_difference, signed_frequency and importance that are
            known.
        """
        parts = []
        for place in self._one_or_all(target):
            columns: dict[str, Any] = {
                "token": self.token_names,
                "class": np.repeat(self.classes[place : place + 1], len(self.token_names)),
            }
            if self.documents is not None:
                columns["documents"] = self.documents.astype(np.int64)
            columns["attention_score"] = self.attention_scores
            columns["token_value"] = self.token_values[place]
            if self.posterior_difference is not None:
                columns["posterior_difference"] = self.posterior_difference[place]
            if self.signed_frequency is not None:
                columns["signed_frequency"] = self.signed_frequency[place]
            if self.importance is not None:
                columns["importance"] = self.importance[place]
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def _one_or_all(self, target: Any) -> list[int]:
        places = places_of(target, self.classes)
        if places is not None:
            return places
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def _draw_scatter(self, ax: Any, x: str, places: list[int], n_bins: int) -> list[Any]:
        """Draw scores and values of tokens over what is across, two axes a class."""
        axes = _plotting.axes_for(ax, 2 * len(places), 2, (5.6, 4.2))
        for row, place in enumerate(places):
            label = _plotting.shown(self.classes[place], 16)
            name = _plotting.class_name(self.classes[place])
            across = f"P({label} | token) less the mean of the other classes"
            if len(self.classes) == 2:
                other = _plotting.shown(self.classes[1 - place], 16)
                across = f"P({label} | token) − P({other} | token)"
            if x == "signed_frequency":
                across = f"signed frequency alpha for {name}"
            values, difference = self.token_values[place], getattr(self, x)[place]
            importance = values if self.importance is None else self.importance[place]
            named = _tokens_to_name(importance, difference)
            left, right = axes[2 * row : 2 * row + 2]
            for panel, title, numbers, up in (
                (left, "Attention scores", self.attention_scores, "attention score"),
                (right, "Token values", values, f"token value for {name}"),
            ):
                _draw_points(panel, difference, numbers, self.documents)
                any_means = _draw_means(
                    panel, difference, numbers, n_bins, full=x == "signed_frequency"
                )
                _draw_names(panel, difference, numbers, self.token_names, named)
                title = title if len(places) == 1 else f"{name}: {title.lower()}"
                _plotting.set_title(panel, title)
                panel.set_xlabel(across, parse_math=False)
                panel.set_ylabel(up, parse_math=False)
            if any_means:  # values rise with the difference, so that this corner is empty
                right.legend(loc="lower right", fontsize=8, frameon=False)
        return axes

    def _draw_bars(self, ax: Any, places: list[int], k: int) -> list[Any]:
        """Draw the `k` most important tokens of each class, one axes a class."""
        best = []
        for place in places:
            order = np.argsort(-self.importance[place], kind="stable")[:k]
            best.append(order[self.importance[place][order] > 0])
        names = [[_plotting.shown(name) for name in self.token_names[tokens]] for tokens in best]
        widest = max((len(name) for of_class in names for name in of_class), default=0)
        size = (2.7 + 0.075 * widest, 1.1 + 0.23 * max(3, *map(len, best)))
        n_rows = -(-len(places) // 4)
        axes = _plotting.axes_for(ax, len(places), -(-len(places) // n_rows), size)
        largest = max(float(self.importance[place].max(initial=0.0)) for place in places)
        for panel, place, tokens, shown in zip(axes, places, best, names, strict=True):
            _plotting.set_title(panel, _plotting.class_name(self.classes[place], 32))
            if not len(tokens):
                _plotting.write_instead(panel, "no token is evidence for it")
                continue
            color = AGAINST if len(self.classes) == 2 and place == 0 else FOR
            _plotting.named_bars(panel, shown, self.importance[place][tokens], color)
            panel.set_xlim(0, 1.05 * largest)  # the same for all classes
            _plotting.few_ticks(panel.xaxis, 4)
            panel.set_xlabel(_AXIS_LABELS.get(self.importance_name, self.importance_name))
        return axes


def _check_option(option: Any, name: str, options: tuple[Any, ...]) -> None:
    if option not in options:
        raise ValueError(f"{name} must be one of {options}, got {option!r}.")


def _posterior_difference(X: Any, y: ArrayLike, classes: NDArray[Any]) -> Array:
    """Return posterior differences, of the shape of token values, at equal class weights."""
    labels = column_or_1d(y)
    if len(labels) != X.shape[0]:
        raise ValueError(
            f"X and y must have as many documents, got {X.shape[0]} and {len(labels)}."
        )
    codes = codes_of(labels, classes)
    if (codes < 0).any():
        raise ValueError(
            f"y must hold labels of the classes {classes.tolist()}, got "
            f"{labels.tolist()[int(np.argmax(codes < 0))]!r}."
        )
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"y must hold every class, but no document is of {classes[sizes == 0].tolist()}: "
            "posterior probabilities would be 0."
        )
    weights = (len(codes) / (len(classes) * sizes))[codes]
    return posterior_difference(class_totals(X, codes, len(classes), weights))


def _importance(classifier: Any, X: Any, importance: str | None) -> tuple[str, Array]:
    """Return the name and values, (n_tokens,) or (n_classes, n_tokens), of an importance."""
    if importance == "value":
        return importance, classifier.token_values_
    if importance == "effect" or (importance is None and X is not None):
        try:
            with without_name_warnings():
                return "effect", token_effects(classifier, X)
        except ValueError:
            # With an MLP there are no contributions; X itself is valid.
            if importance is not None:
                raise
    return "signed_frequency", classifier.token_importance_


def _draw_points(ax: Any, x: Array, y: Array, documents: Array | None) -> None:
    """Draw tokens as points, frequent ones larger."""
    sizes: Any = 9.0
    if documents is not None:
        least = max(documents.min(initial=np.inf), 1)
        sizes = 6 + 5 * np.log10(np.maximum(documents, 1) / least)
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


def _draw_means(ax: Any, x: Array, y: Array, n_bins: int, *, full: bool) -> bool:
    """Draw means in bins, connected where bins are neighbours; return whether there are any."""
    bins = _binned(x, y, n_bins, full=full)
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
        label=f"mean and standard\ndeviation in {n_bins} bins",
    )
    return bool(bins["mean"].notna().any())


def _binned(
    x: Array, y: Array, n_bins: int, min_points: int = _MIN_POINTS, *, full: bool = False
) -> pd.DataFrame:
    """Return centre, mean, deviation and count of `n_bins` bins, NaN with too few points.

    They are of equal width, or of about equally many points (`full`).
    """
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    if full:
        edges = np.quantile(x, np.linspace(0, 1, n_bins + 1))
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
        own = np.flatnonzero((np.sign(importance) == sign) & (sign * difference > 0))
        chosen.append(own[np.argsort(-np.abs(importance[own]), kind="stable")[:_MAX_NAMES]])
    return chosen


def _spread(wanted: ArrayLike, gap: float, low: float, high: float) -> Array:
    """Return ascending heights from `low` to `high`, near the wanted ones and `gap` apart."""
    heights = np.sort(np.asarray(wanted, dtype=np.float64))
    if len(heights) < 2:
        return heights.clip(low, high)
    gap = min(gap, (high - low) / (len(heights) - 1))
    steps = gap * np.arange(len(heights))
    heights = isotonic_regression(heights - steps) + steps
    heights = np.minimum(heights, high - steps[::-1])
    return np.maximum(heights, low + steps)


def _draw_names(
    ax: Any, x: Array, y: Array, names: NDArray[Any], tokens: list[NDArray[np.intp]]
) -> None:
    """Write names in the margins, `tokens[0]` left and `tokens[1]` right, with lines to points."""
    every = np.concatenate(tokens)
    if not len(every):
        return
    low, high = ax.get_ylim()
    left, right = float(x.min()), float(x.max())
    width = max(right - left, 1e-9)
    _plotting.few_ticks(ax.xaxis, 5)
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    ticks = ax.get_xticks()  # only where there are tokens; the margins are for names
    ticks = ticks[(ticks >= ax.get_xlim()[0]) & (ticks <= ax.get_xlim()[1])]
    circles = {"facecolors": "none", "edgecolors": _plotting.text_color(), "linewidths": 0.7}
    ax.scatter(x[every], y[every], s=14, zorder=5, **circles)  # where the lines end
    edge = 0.03 * (high - low)
    limits = []
    for side, color, end, of_side in zip(
        (-1, 1), (AGAINST, FOR), (left, right), tokens, strict=True
    ):
        of_side = of_side[np.argsort(y[of_side], kind="stable")]
        texts = [_plotting.shown(name, 18) for name in names[of_side]]
        heights = _spread(y[of_side], 2.1 * edge, low + edge, high - edge)
        for token, text, height in zip(of_side, texts, heights, strict=True):
            ax.annotate(
                text,
                (x[token], y[token]),
                xytext=(end + side * 0.06 * width, height),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=8,
                color=color,
                arrowprops={
                    "arrowstyle": "-",
                    "color": _plotting.NEUTRAL,
                    "linewidth": 0.5,
                    "relpos": (0 if side > 0 else 1, 0.5),
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                parse_math=False,
            )
        margin = 0.1 + 0.03 * max(map(len, texts), default=0)
        limits.append(end + side * margin * width)
    ax.set_xlim(*limits)
    ax.set_ylim(low, high)
    ax.set_xticks(ticks)
