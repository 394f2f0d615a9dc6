"""Which tokens the softmax selects, how often, and how concentrated attention is."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.utils import check_scalar

from ..._base import fitted_attention
from ...comparison import values_by_class
from . import _plotting
from ._inputs import Array, documents_with, named_classifier, token_matrix
from ._plotting import AGAINST, FOR


@dataclass(kw_only=True, eq=False, repr=False)
class SelectionDisplay:
    """Which tokens attention selects, how often, and how concentrated it is.

    There are three plots. The first has the tokens that most often have the highest attention
    score of their document. The second is a histogram, over documents, of the entropy of
    attention: 0 where one token has all of it, log(n) where n tokens have equal shares. The third
    is the share of attention that the 1, 2, 3, ... most attended tokens of a document have
    together. The last two are compared with attention in proportion to counts, as it would be if
    all attention scores were equal.

    Entropy and shares are those of attention among the tokens of the document, divided by their
    sum; the share of ``<cls>`` is reported separately. Documents without tokens have neither.

    Parameters
    ----------
    tokens : DataFrame
        A row a token that is selected in some document, most often selected first, with columns
        `token`, `selected` and `documents` (the numbers of documents in which it is selected, and
        in which it is), and `label`, the class with the highest of its values or None.
    entropy, even_entropy : ndarray of shape (n_documents,)
        Entropy of attention in nats, and what it would be if all attention scores were equal; NaN
        for documents without tokens.
    top_shares, even_top_shares : ndarray of shape (n_documents, n_top)
        Share of attention of the 1, 2, ..., n_top most attended tokens together, and what it would
        be if all scores were equal; NaN for documents without tokens.
    cls_share : ndarray of shape (n_documents,)
        Share of attention of ``<cls>``.
    classes : ndarray of shape (n_classes,)
        Class labels. The bars of two classes have two colours.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The three axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import SelectionDisplay
    >>> texts = ["a good film", "good fun", "a bad film", "a dull, bad plot"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    >>> model = model.fit(texts, ["pos", "pos", "neg", "neg"])
    >>> display = SelectionDisplay.from_estimator(model, texts)
    >>> display.tokens.head(2)
      token  selected  documents label
    0   bad         2          2   neg
    1  good         2          2   pos
    >>> plt.close(display.figure_)
    """

    tokens: pd.DataFrame
    entropy: Array
    even_entropy: Array
    top_shares: Array
    even_top_shares: Array
    cls_share: Array
    classes: NDArray[Any]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, k: int = 15, n_top: int = 10, ax: Any = None
    ) -> Self:
        """Draw what a fitted model selects in documents.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.
        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts
            Documents, as the estimator takes them.
        k : int, default=15
            Maximum number of selected tokens to draw.
        n_top : int, default=10
            Maximum number of a document's most attended tokens to add up.
        ax : array of three matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : SelectionDisplay
            The display, drawn.
        """
        _plotting.import_pyplot()  # before anything is computed
        check_scalar(n_top, "n_top", Integral, min_val=1)
        classifier, names = named_classifier(estimator)
        fitted, classes = fitted_attention(classifier), classifier.classes_
        X = token_matrix(estimator, X)
        attention, n_top = sp.csr_array(fitted.attention(X)), min(n_top, X.shape[1])
        selected = documents_with(fitted.selected(X))
        entropy, top_shares = concentration(attention, n_top)
        even_entropy, even_top_shares = concentration(X, n_top)
        cls_share = np.maximum(1.0 - np.asarray(attention @ np.ones(X.shape[1])), 0.0)
        labels = np.full(X.shape[1], None, dtype=object)
        if not fitted.mlp:
            values = values_by_class(classifier.token_values_)
            differ = np.ptp(values, axis=0) > 0
            labels[differ] = np.array(classes.tolist(), dtype=object)[values.argmax(axis=0)[differ]]
        order = np.argsort(-selected, kind="stable")[: np.count_nonzero(selected)]
        tokens = {
            "token": pd.Series(names[order], dtype=object),
            "selected": selected[order],
            "documents": documents_with(X)[order],
            "label": pd.Series(labels[order], dtype=object),
        }
        return cls(
            tokens=pd.DataFrame(tokens),
            entropy=entropy,
            even_entropy=even_entropy,
            top_shares=top_shares,
            even_top_shares=even_top_shares,
            cls_share=cls_share if fitted.cls_weight else np.zeros(X.shape[0]),
            classes=classes,
        ).plot(ax, k=k)

    def plot(self, ax: Any = None, *, k: int = 15) -> Self:
        """Draw.

        Parameters
        ----------
        ax, k
            As in :meth:`from_estimator`.

        Returns
        -------
        self : SelectionDisplay
            The display.
        """
        check_scalar(k, "k", Integral, min_val=1)
        filled = ~np.isnan(self.entropy)
        if not filled.any():
            raise ValueError(
                f"None of the {len(filled)} documents has a token that the model knows: there is "
                "no attention to draw."
            )
        axes = _plotting.axes_for(ax, 3, 3, (4.3, 4.4))
        self._draw_selected(axes[0], self.tokens[:k], int(filled.sum()))
        self._draw_entropy(axes[1], filled)
        self._draw_top_shares(axes[2], filled)
        _plotting.store_axes(self, axes)
        return self

    def _draw_selected(self, ax: Any, tokens: pd.DataFrame, n_documents: int) -> None:
        """Draw how often tokens are selected, as shares of the documents that have tokens."""
        _plotting.set_title(ax, "Tokens selected most often")
        selected = 100 * tokens["selected"].to_numpy() / n_documents
        present = 100 * tokens["documents"].to_numpy() / n_documents
        first = self.classes.tolist()[:1] if len(self.classes) == 2 else []
        colors = [AGAINST if label in first else FOR for label in tokens["label"]]
        notes = [
            f"{share:.{1 if share < 9.95 else 0}f} %"
            + ("" if label is None else f" · {_plotting.class_name(label, 14)}")
            for share, label in zip(selected, tokens["label"], strict=True)
        ]
        names = [_plotting.shown(name, 24) for name in tokens["token"]]
        ends = np.maximum(selected, present)
        ax.barh(np.arange(len(tokens)), present, color=colors, height=0.72, alpha=0.25, zorder=1)
        _plotting.named_bars(ax, names, selected, colors, notes, notes_at=ends, min_slots=10)
        ax.set_xlim(0, 1.6 * ends.max())  # space for the notes
        ax.set_xlabel("% of documents: selected (dark), present (light)")

    def _draw_entropy(self, ax: Any, filled: NDArray[np.bool_]) -> None:
        """Draw a histogram of entropy over the documents that have tokens, those `filled`."""
        _plotting.set_title(ax, "Entropy of attention")
        drawn = [self.entropy[filled], self.even_entropy[filled]]
        low, high = max(np.min(drawn), 0.0), np.max(drawn)
        if high - low < 1e-6:  # all equal: a bar, not a line
            low, high = max(low - 0.5, 0.0), high + 0.5
        names = ("attention", "if all scores were equal")
        styles: tuple[dict[str, Any], ...] = (
            {"color": FOR, "alpha": 0.75},
            {"histtype": "step", "color": _plotting.text_color(), "linestyle": "--"},
        )
        for numbers, name, style in zip(drawn, names, styles, strict=True):
            median = float(np.median(numbers))
            n_even = np.exp(median)
            even = f"{n_even:.1f}" if n_even < 9.95 else f"{n_even:,.0f}"
            label = f"{name}: median {median:.2f},\nas if evenly over {even} tokens"
            bins = np.linspace(low, high, 31)
            ax.hist(numbers.clip(low, high), bins=bins, label=label, **style)
        _plotting.few_ticks(ax.yaxis, 6, integer=True)
        ax.set_ylim(top=ax.get_ylim()[1] * 1.4)  # space for the legend
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        ax.set_xlabel("entropy of attention in a document (nats)")
        ax.set_ylabel("documents")

    def _draw_top_shares(self, ax: Any, filled: NDArray[np.bool_]) -> None:
        """Draw the shares of the top tokens over the documents that have tokens."""
        _plotting.set_title(ax, "Attention of the top tokens")
        n_tokens = np.arange(1, self.top_shares.shape[1] + 1)
        shares, even_shares = 100 * self.top_shares[filled], 100 * self.even_top_shares[filled]
        low, high = np.percentile(shares, [10, 90], axis=0)
        means = shares.mean(axis=0)
        ax.fill_between(n_tokens, low, high, color=FOR, alpha=0.2, linewidth=0)
        label = "attention: mean, and\n10 % to 90 % of documents"
        ax.plot(n_tokens, means, color=FOR, marker="o", markersize=4, label=label)
        label = "if all scores were equal: mean"
        style = {"color": _plotting.text_color(), "linestyle": "--", "label": label}
        ax.plot(n_tokens, even_shares.mean(axis=0), **style)
        if self.cls_share.any():
            of_cls = 100 * self.cls_share[filled].mean()
            ax.plot([], [], " ", label=f"(<cls> has {of_cls:.3g} % on average)")
        _plotting.few_ticks(ax.yaxis, 6)
        ax.set_ylim(0, 1.45 * max(means.max(), high.max()))  # space for the legend
        _plotting.no_ticks_above_100(ax.yaxis)
        step = 1 if len(n_tokens) <= 12 else -(-len(n_tokens) // 10)
        ax.set_xticks(n_tokens[::step])
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        ax.set_xlabel("number of most attended tokens")
        ax.set_ylabel("% of the attention among tokens")


def concentration(weights: sp.csr_array, n_top: int) -> tuple[Array, Array]:
    """Return each row's entropy in nats and its largest entries' cumulative shares, (n, n_top)."""
    n_documents = weights.shape[0]
    documents = np.repeat(np.arange(n_documents), np.diff(weights.indptr))
    totals = np.bincount(documents, weights.data, n_documents)
    shares = np.divide(
        weights.data, totals[documents], where=weights.data > 0, out=0.0 * weights.data
    )
    # Without entries, bincount returns integers.
    entropy = np.abs(np.bincount(documents, entr(shares), n_documents)).astype(np.float64)
    order = np.lexsort((-shares, documents))
    # Rows are in order, so that an entry's rank is its distance from the start of its row.
    rank = np.arange(len(order)) - weights.indptr[documents]
    leading = rank < n_top
    top = np.zeros((n_documents, n_top))
    top[documents[leading], rank[leading]] = shares[order[leading]]
    top = np.minimum(np.cumsum(top, axis=1), 1.0)
    entropy[totals == 0], top[totals == 0] = np.nan, np.nan
    return entropy, top
