"""What a model makes of every token: its scores and values, and the tokens that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils.validation import column_or_1d

from ..importance import class_totals, posterior_difference
from . import _plotting
from ._plotting import AGAINST, FOR, Array

_IMPORTANCES = ("effect", "signed_frequency", "value")
_KINDS = ("scatter", "bars")
_MIN_TOKENS = 5  # of a bin whose mean is drawn: that of fewer is chance


class TokenImportanceDisplay:
    """What the model makes of every token, over what the documents say of it.

    Two pictures. ``kind="scatter"`` is the figure of the paper [1]_: attention scores and token
    values against the difference of the classes' posterior probabilities, with means over bins.
    ``kind="bars"`` has the most important tokens of each class, with their names.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    attention_scores : array-like of shape (n_tokens,)
        Attention scores of the tokens.

    token_values : array-like of shape (n_tokens,) or (n_classes, n_tokens)
        Values of the tokens: for two classes positive where a token speaks for the second, for
        more one row a class.

    classes : array-like of shape (n_classes,)
        Class labels.

    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their indices.

    posterior_difference : array-like of the shape of token_values, default=None
        P(class | token) less the (mean) probability of the other classes. Needed by "scatter".

    importance : array-like of the shape of token_values, default=None
        How important tokens are for the classes. Needed by "bars"; "scatter" names the tokens
        where it is largest.

    importance_name : str, default="importance"
        What this importance is, for the axis.

    documents : array-like of shape (n_tokens,), default=None
        In how many documents each token is; "scatter" draws frequent tokens larger.

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
        importance: ArrayLike | None = None,
        importance_name: str = "importance",
        documents: ArrayLike | None = None,
    ) -> None:
        n_tokens, self.classes = np.size(attention_scores), np.asarray(classes)
        n_classes = self.classes.size
        if self.classes.ndim != 1 or n_classes < 2:
            raise ValueError(f"classes must be two labels or more, got {self.classes.tolist()}.")

        def rows(numbers: ArrayLike | None, name: str) -> Array | None:
            if numbers is None:
                return None
            return _plotting.per_class(numbers, n_classes, n_tokens, name)

        self.attention_scores = _plotting.per_token(attention_scores, n_tokens, "attention_scores")
        self.token_values = _plotting.per_class(token_values, n_classes, n_tokens, "token_values")
        self.token_names = _plotting.names_or_indices(token_names, n_tokens)
        self.posterior_difference = rows(posterior_difference, "posterior_difference")
        self.importance = rows(importance, "importance")
        self.importance_name = importance_name
        self.documents = (
            None if documents is None else _plotting.per_token(documents, n_tokens, "documents")
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
        target: Any = None,
        importance: Literal["effect", "signed_frequency", "value"] | None = None,
        min_count: int = 10,
        k: int = 10,
        n_bins: int = 20,
        ax: Any = None,
    ) -> Self:
        """Draw what a fitted model makes of its tokens.

        Parameters
        ----------
        estimator : ClsAttentionClassifier or Pipeline
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
            The classes to draw. By default all; "scatter" with two classes, where one picture
            would mirror the other, draws the second.

        importance : {"effect", "signed_frequency", "value"}, default=None
            What makes a token important:

            - "effect": how far it moves decisions on X: the standard deviation over documents of
              its contribution for the class (less the mean over classes), with its sign;
            - "signed_frequency": ``token_importance_``, from the training documents;
            - "value": ``token_values_``, what it adds per unit of attention.

            By default "effect" where there are X and contributions, else "signed_frequency".

        min_count : int, default=10
            Tokens in fewer of the documents X are left out, where X is given.

        k : int, default=10
            Number of bars for each class, at most.

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
            If the estimator is no attention classifier, or `ax` no axes.
        ValueError
            If X and y do not fit the estimator or each other, if "scatter" misses them, if no
            token is in `min_count` documents, or if a parameter is out of its range.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

        Notes
        -----
        Posterior probabilities are those of an occurrence of the token, with classes of equal
        total weight, so that a token that says nothing stands at 0.

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
        _check_kind(kind)
        if importance is not None and importance not in _IMPORTANCES:
            raise ValueError(f"importance must be one of {_IMPORTANCES}, got {importance!r}.")
        if kind == "scatter" and (X is None or y is None):
            raise ValueError(
                'kind="scatter" needs documents X and their labels y: pass both, or draw '
                'kind="bars".'
            )
        if importance == "effect" and X is None:
            raise ValueError('importance="effect" needs documents X.')
        classifier = _plotting.classifier_of(estimator)
        _plotting.places_of(target, classifier.classes_)  # before anything is computed, too
        names = _plotting.token_names_of(estimator)
        n_classes = len(classifier.classes_)
        difference = documents = None
        kept: Any = slice(None)
        if X is not None:
            X = _plotting.token_matrix(estimator, X)
            documents = class_totals(X, np.zeros(X.shape[0], int), 1, kind="presence")[0]
            kept = np.flatnonzero(documents >= _plotting.at_least_one(min_count, "min_count"))
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
            token_names=names[kept],
            posterior_difference=difference,
            importance=_plotting.per_class(numbers, n_classes, len(names), name)[:, kept],
            importance_name=name,
            documents=documents,
        ).plot(ax, kind=kind, target=target, k=k, n_bins=n_bins)

    @classmethod
    def from_arrays(
        cls,
        attention_scores: ArrayLike,
        token_values: ArrayLike,
        *,
        classes: ArrayLike,
        token_names: Any = None,
        posterior_difference: ArrayLike | None = None,
        importance: ArrayLike | None = None,
        importance_name: str = "importance",
        documents: ArrayLike | None = None,
        kind: Literal["scatter", "bars"] = "scatter",
        target: Any = None,
        k: int = 10,
        n_bins: int = 20,
        ax: Any = None,
    ) -> Self:
        """Draw arrays that are known already.

        Parameters
        ----------
        attention_scores, token_values, classes, token_names, posterior_difference, importance, \
                importance_name, documents
            As in :class:`TokenImportanceDisplay`.

        kind, target, k, n_bins, ax
            As in :meth:`from_estimator`.

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
        return cls(
            attention_scores,
            token_values,
            classes=classes,
            token_names=token_names,
            posterior_difference=posterior_difference,
            importance=importance,
            importance_name=importance_name,
            documents=documents,
        ).plot(ax, kind=kind, target=target, k=k, n_bins=n_bins)

    def plot(
        self,
        ax: Any = None,
        *,
        kind: Literal["scatter", "bars"] = "scatter",
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

        kind : {"scatter", "bars"}, default="scatter"
            What to draw.

        target : label or list of labels, default=None
            The classes to draw. By default all; "scatter" with two classes draws the second.

        k : int, default=10
            Number of bars for each class, at most.

        n_bins : int, default=20
            Number of bins for "scatter".

        Returns
        -------
        self : TokenImportanceDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If what `kind` needs is missing, or if a parameter is out of its range.
        """
        _check_kind(kind)
        places = _plotting.places_of(target, self.classes)
        if kind == "scatter":
            axes = self._scatter(ax, places, _plotting.at_least_one(n_bins, "n_bins"))
        else:
            axes = self._bars(ax, places, _plotting.at_least_one(k, "k"))
        self.ax_ = _plotting.as_drawn(axes)
        self.figure_ = axes[0].figure
        return self

    def frame(self, target: Any = None) -> pd.DataFrame:
        """Return the numbers behind the pictures.

        Parameters
        ----------
        target : label or list of labels, default=None
            The classes to return. By default all, and of two the second, which says everything.

        Returns
        -------
        frame : DataFrame
            One row a class and token, with columns token, class, attention_score, token_value,
            and those of documents, posterior_difference and importance that are known.
        """
        parts = []
        for place in self._one_or_all(_plotting.places_of(target, self.classes)):
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
            if self.importance is not None:
                columns["importance"] = self.importance[place]
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def _one_or_all(self, places: list[int] | None) -> list[int]:
        if places is not None:
            return places
        return [1] if len(self.classes) == 2 else list(range(len(self.classes)))

    def _scatter(self, ax: Any, places: list[int] | None, n_bins: int) -> list[Any]:
        if self.posterior_difference is None:
            raise ValueError(
                'kind="scatter" needs posterior_difference: make the display from documents and '
                "their labels."
            )
        places = self._one_or_all(places)
        axes = _plotting.axes_for(ax, 2 * len(places), 2, (5.6, 4.2))
        for row, place in enumerate(places):
            label = _plotting.shown(self.classes[place], 16)
            name = _plotting.class_name(self.classes[place])
            if len(self.classes) == 2:
                other = _plotting.shown(self.classes[1 - place], 16)
                across = f"P({label} | token) − P({other} | token)"
            else:
                across = f"P({label} | token) less the mean of the other classes"
            named = self._named(place)
            for panel, (title, numbers, up) in zip(
                axes[2 * row : 2 * row + 2],
                (
                    ("Where the model looks", self.attention_scores, "attention score"),
                    ("What it makes of it", self.token_values[place], f"token value for {name}"),
                ),
                strict=True,
            ):
                bins = self._points(panel, self.posterior_difference[place], numbers, named, n_bins)
                _plotting.tidy(
                    panel, title if len(places) == 1 else f"{name}: {title[0].lower()}{title[1:]}"
                )
                panel.set_xlabel(across, parse_math=False)
                panel.set_ylabel(up, parse_math=False)
            if len(bins.means):  # where a value rises with the difference nothing stands
                axes[2 * row + 1].legend(loc="lower right", fontsize=8, frameon=False)
        return axes

    def _points(
        self, ax: Any, x: Array, y: Array, named: list[NDArray[np.intp]], n_bins: int
    ) -> BinnedMeans:
        """Draw tokens as points, names beside them, means over bins on top."""
        sizes: Any = 9.0
        if self.documents is not None:
            least = max(self.documents.min(initial=np.inf), 1)
            sizes = 6 + 5 * np.log10(np.maximum(self.documents, 1) / least)
        crowded = len(x) > 500
        ax.scatter(
            x,
            y,
            s=sizes if crowded else 2.5 * sizes,
            c=np.where(x < 0, AGAINST, FOR),
            alpha=0.3 if crowded else 0.6,
            linewidths=0,
            rasterized=crowded,
        )
        ax.plot([x.min(), x.max()], [0, 0], color=_plotting.ink(), linewidth=0.6, zorder=0)
        bins = binned_means(x, y, n_bins)
        ax.errorbar(
            bins.centres,
            bins.means,
            yerr=bins.deviations,
            color=_plotting.ink(),
            linewidth=1.4,
            elinewidth=0.7,
            marker="o",
            markersize=3.5,
            zorder=4,
            label=f"mean and standard\ndeviation in {n_bins} bins",
        )
        _write_names(ax, x, y, self.token_names, named)
        return bins

    def _named(self, place: int, n_names: int = 7) -> list[NDArray[np.intp]]:
        """Return the tokens to name against the class and for it, the most important ones."""
        if self.importance is None:
            rank = np.abs(self.token_values[place])
            side = np.sign(self.token_values[place])
        else:
            rank, side = np.abs(self.importance[place]), np.sign(self.importance[place])
        assert self.posterior_difference is not None
        difference = self.posterior_difference[place]
        chosen = []
        for sign in (-1, 1):
            # A token on the other side of 0 would need a line across the picture.
            own = np.flatnonzero((side == sign) & (sign * difference > 0))
            chosen.append(own[np.argsort(-rank[own], kind="stable")[:n_names]])
        return chosen

    def _bars(self, ax: Any, places: list[int] | None, k: int) -> list[Any]:
        if self.importance is None:
            raise ValueError('kind="bars" needs importance, one number a token and class.')
        places = list(range(len(self.classes))) if places is None else places
        n_rows = -(-len(places) // 4)
        best = []
        for place in places:
            order = np.argsort(-self.importance[place], kind="stable")[:k]
            best.append(order[self.importance[place][order] > 0])
        longest = max((len(tokens) for tokens in best), default=0)
        names = [[_plotting.shown(name) for name in self.token_names[tokens]] for tokens in best]
        widest = max((len(name) for of_class in names for name in of_class), default=0)
        size = (2.7 + 0.075 * widest, 1.1 + 0.23 * max(longest, 3))
        axes = _plotting.axes_for(ax, len(places), -(-len(places) // n_rows), size)
        reach = max(
            (
                float(self.importance[place][tokens[0]])
                for place, tokens in zip(places, best, strict=True)
                if len(tokens)
            ),
            default=1.0,
        )
        for panel, place, tokens, shown in zip(axes, places, best, names, strict=True):
            _plotting.tidy(panel, _plotting.class_name(self.classes[place], 32))
            if not len(tokens):
                _plotting.say_nothing(panel, "no token speaks for it")
                continue
            colour = AGAINST if len(self.classes) == 2 and place == 0 else FOR
            _plotting.named_bars(panel, shown, self.importance[place][tokens], colour)
            # One scale, so that bars can be compared from class to class.
            panel.set_xlim(0, 1.05 * reach)
            _plotting.few_ticks(panel.xaxis, 4)
            panel.set_xlabel(_AXIS.get(self.importance_name, self.importance_name))
        return axes


_AXIS = {
    "effect": "effect on decisions (std. dev.)",
    "signed_frequency": "signed frequency",
    "value": "token value",
}


@dataclass(frozen=True)
class BinnedMeans:
    """Points along one axis, grouped; only bins that have enough points, from left to right.

    Attributes
    ----------
    centres, means, deviations : ndarray of shape (n_bins,)
        Middle of the bin, mean and standard deviation of what its points have.

    counts : ndarray of shape (n_bins,)
        Numbers of points.
    """

    centres: Array
    means: Array
    deviations: Array
    counts: NDArray[np.intp]


def binned_means(
    x: ArrayLike, y: ArrayLike, n_bins: int = 20, min_tokens: int = _MIN_TOKENS
) -> BinnedMeans:
    """Group points into `n_bins` bins of equal width, from the smallest x to the largest.

    A point on the border of two bins is in the right one. Bins of fewer than `min_tokens` points
    are left out; there may be none left.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    edges = np.linspace(x.min(), x.max(), n_bins + 1)
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, n_bins - 1)
    counts = np.bincount(which, minlength=n_bins)
    kept = counts >= max(min_tokens, 1)
    divisors = np.maximum(counts, 1)
    means = np.bincount(which, y, n_bins) / divisors
    variances = np.bincount(which, (y - means[which]) ** 2, n_bins) / divisors
    centres = (edges[1:] + edges[:-1]) / 2
    return BinnedMeans(centres[kept], means[kept], np.sqrt(variances[kept]), counts[kept])


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, got {kind!r}.")


def _posterior_difference(X: Any, y: ArrayLike, classes: NDArray[Any]) -> Array:
    labels = column_or_1d(y)
    if len(labels) != X.shape[0]:
        raise ValueError(
            f"X and y must have as many documents, got {X.shape[0]} and {len(labels)}."
        )
    known = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.intp)
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
    """Return which importance is meant, and the numbers."""
    if importance == "value":
        return importance, classifier.token_values_
    if importance == "effect" or (importance is None and X is not None):
        try:
            with _plotting.names_checked():
                return "effect", _effect(classifier.contributions(X))
        except ValueError:
            # With an MLP there are no contributions. X itself has been checked before.
            if importance is not None:
                raise
    return "signed_frequency", classifier.token_importance_


def _effect(contributions: Any) -> Array:
    """Return each token's standard deviation of contributions, with the sign of their sum."""
    terms = contributions if isinstance(contributions, list) else [contributions]
    mean = sum(term.data for term in terms) / len(terms) if len(terms) > 1 else 0.0
    n_documents, n_tokens = terms[0].shape
    effects = np.empty((len(terms), n_tokens))
    for effect, term in zip(effects, terms, strict=True):
        data = term.data - mean
        means = np.bincount(term.indices, data, n_tokens) / n_documents
        squares = np.bincount(term.indices, data**2, n_tokens) / n_documents
        # Rounding must not make a variance negative.
        effect[:] = np.sign(means) * np.sqrt(np.maximum(squares - means**2, 0.0))
    return effects[0] if len(terms) == 1 else effects


def _write_names(
    ax: Any, x: Array, y: Array, names: NDArray[Any], tokens: list[NDArray[np.intp]]
) -> None:
    """Write names in the margins, `tokens[0]` left and `tokens[1]` right, with lines to them."""
    if not any(len(of_side) for of_side in tokens):
        return
    low, high = ax.get_ylim()
    left, right = float(x.min()), float(x.max())
    width = max(right - left, 1e-9)
    _plotting.few_ticks(ax.xaxis, 5)
    ax.set_xlim(left - 0.02 * width, right + 0.02 * width)
    ticks = ax.get_xticks()  # only where there are tokens; the margins are for names
    ticks = ticks[(ticks >= ax.get_xlim()[0]) & (ticks <= ax.get_xlim()[1])]
    texts = [[_plotting.shown(names[token], 18) for token in of_side] for of_side in tokens]
    for side, of_side in zip((-1, 1), tokens, strict=True):
        of_side = of_side[np.argsort(y[of_side], kind="stable")]
        edge = 0.03 * (high - low)
        heights = spread(y[of_side], 2.1 * edge, low + edge, high - edge)
        beside = right + 0.06 * width if side > 0 else left - 0.06 * width
        for token, height in zip(of_side, heights, strict=True):
            ax.annotate(
                _plotting.shown(names[token], 18),
                (x[token], y[token]),
                xytext=(beside, height),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize=8,
                color=FOR if side > 0 else AGAINST,
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
    margins = [0.1 + 0.027 * max(map(len, of_side), default=0) for of_side in texts]
    ax.set_xlim(left - margins[0] * width, right + margins[1] * width)
    ax.set_ylim(low, high)
    ax.set_xticks(ticks)


def spread(wanted: ArrayLike, gap: float, low: float, high: float) -> Array:
    """Return ascending heights near the `wanted` ones, at least `gap` apart, within the range.

    Where they cannot all have their gap, they get what there is.
    """
    heights = np.sort(np.asarray(wanted, dtype=np.float64))
    if len(heights) < 2:
        return heights.clip(low, high)
    gap = min(gap, (high - low) / (len(heights) - 1))
    steps = gap * np.arange(len(heights))
    heights = isotonic_regression(heights - steps) + steps
    heights = np.minimum(heights, high - steps[::-1])
    return np.maximum(heights, low + steps)
