"""Which tokens the softmax selects, how often, and how concentrated attention is."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_scalar

from ...comparison._token_effects import values_by_class
from ..concentration import concentration, documents_with
from ..removal import without_name_warnings
from . import _plotting
from ._inputs import checked_array, document_rows, drawn_model, names_or_indices, object_array
from ._plotting import AGAINST, FOR


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

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    selection_counts : array-like of shape (n_tokens,)
        Number of documents in which each token is selected.
    documents : array-like of shape (n_tokens,)
        Number of documents that have the token.
    entropy : array-like of shape (n_documents,)
        Entropy of attention in nats; NaN for documents without tokens.
    top_shares : array-like of shape (n_documents, n_top)
        Share of attention of the 1, 2, ..., n_top most attended tokens together; NaN for
        documents without tokens.
    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their indices.
    token_classes : array-like of shape (n_tokens,), default=None
        The class that each token's value is evidence for, or None.
    classes : array-like of shape (n_classes,), default=None
        Class labels. The bars of two classes have two colours.
    cls_share : array-like of shape (n_documents,), default=None
        Share of attention of ``<cls>``.
    even_entropy : array-like of shape (n_documents,), default=None
        `entropy` if all attention scores were equal.
    even_top_shares : array-like of shape (n_documents, n_top), default=None
        `top_shares` if all attention scores were equal.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The three axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    TokenImportanceDisplay : Scores and values of all tokens.
    AttentionDisplay : Attention and contributions in one document.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.datasets import make_token_classification
    >>> from sklearn_clsattn.inspection import SelectionDisplay
    >>> X, y = make_token_classification(300, random_state=0)
    >>> model = ClsAttentionClassifier().fit(X, y)
    >>> display = SelectionDisplay.from_estimator(model, X)
    >>> concentrated = display.to_frame("documents")
    >>> bool((concentrated["entropy"] < concentrated["even_entropy"]).mean() > 0.9)
    True
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        selection_counts: ArrayLike,
        documents: ArrayLike,
        entropy: ArrayLike,
        top_shares: ArrayLike,
        *,
        token_names: Any = None,
        token_classes: Any = None,
        classes: ArrayLike | None = None,
        cls_share: ArrayLike | None = None,
        even_entropy: ArrayLike | None = None,
        even_top_shares: ArrayLike | None = None,
    ) -> None:
        n_tokens, n_documents = np.size(selection_counts), np.size(entropy)
        shape = np.shape(top_shares)
        if len(shape) != 2 or shape[0] != n_documents or not shape[1]:
            raise ValueError(
                f"top_shares must have shape ({n_documents}, n_top), one row a document, "
                f"got {shape}."
            )

        def of_documents(numbers: Any, name: str) -> Any:
            return checked_array(numbers, name, (n_documents,), finite=False)

        self.selection_counts = checked_array(selection_counts, "selection_counts", (n_tokens,))
        self.documents = checked_array(documents, "documents", (n_tokens,))
        self.entropy = of_documents(entropy, "entropy")
        self.top_shares = checked_array(top_shares, "top_shares", shape, finite=False)
        self.token_names = names_or_indices(token_names, n_tokens)
        self.token_classes = None
        if token_classes is not None:
            self.token_classes = object_array(token_classes, "token_classes", n_tokens)
        self.classes = None if classes is None else np.asarray(classes)
        self.cls_share = of_documents(cls_share, "cls_share")
        self.even_entropy = of_documents(even_entropy, "even_entropy")
        self.even_top_shares = checked_array(
            even_top_shares, "even_top_shares", shape, finite=False
        )

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

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no attention classifier, if `ax` is no axes, or if a number is no
            integer.
        ValueError
            If X does not fit the estimator, if no document has a token, or if a parameter is out
            of its range.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

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
        >>> display.to_frame()[["token", "selected", "documents", "speaks_for"]].head(2)
          token  selected  documents speaks_for
        0   bad         2          2        neg
        1  good         2          2        pos
        >>> plt.close(display.figure_)
        """
        _plotting.import_pyplot()  # before anything is computed
        model = drawn_model(estimator)
        counts = model.token_matrix(X)
        with without_name_warnings():
            attention = model.classifier.attention(counts)
            selected = model.classifier.select_tokens(counts)
        return cls.from_arrays(
            attention,
            selected,
            counts,
            token_names=model.token_names,
            token_classes=_classes_of_values(model.classifier),
            classes=model.classifier.classes_,
            k=k,
            n_top=n_top,
            ax=ax,
        )

    @classmethod
    def from_arrays(
        cls,
        attention: Any,
        selected: Any,
        counts: Any = None,
        *,
        token_names: Any = None,
        token_classes: Any = None,
        classes: ArrayLike | None = None,
        k: int = 15,
        n_top: int = 10,
        ax: Any = None,
    ) -> Self:
        """Draw given attention and selection.

        Parameters
        ----------
        attention : {array-like, sparse matrix} of shape (n_documents, n_tokens)
            Attention weights; a row sums to 1 less the share of ``<cls>``.
        selected : {array-like, sparse matrix} of shape (n_documents, n_tokens)
            True where a token has the highest attention score of its document.
        counts : {array-like, sparse matrix} of shape (n_documents, n_tokens), default=None
            Token counts or weights, to compare with attention at equal scores. Without them a
            document has the tokens with positive attention.
        token_names, token_classes, classes
            As in :class:`SelectionDisplay`.
        k, n_top, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        display : SelectionDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the arrays disagree in shape, if attention is negative, NaN, or more than 1 in a
            document, or if no document has a token.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn.inspection import SelectionDisplay
        >>> display = SelectionDisplay.from_arrays(
        ...     [[0.5, 0.5, 0.0], [0.0, 0.2, 0.6]], [[True, True, False], [False, False, True]]
        ... )
        >>> display.to_frame("documents").round(3)
           entropy  top_1_share  top_2_share  top_3_share  cls_share
        0    0.693         0.50          1.0          1.0        0.0
        1    0.562         0.75          1.0          1.0        0.2
        >>> plt.close(display.figure_)
        """
        check_scalar(n_top, "n_top", Integral, min_val=1)
        weights = document_rows(attention, "attention")
        chosen = document_rows(selected, "selected", weights.shape)
        present, even_entropy, even_shares = weights, None, None
        totals = np.asarray(weights @ np.ones(weights.shape[1]))
        if totals.max(initial=0.0) > 1 + 1e-9:
            raise ValueError(
                f"attention must sum to at most 1 in every document, got {totals.max():.6g}."
            )
        n_top = min(n_top, weights.shape[1])
        entropy, top_shares = concentration(weights, n_top)
        if counts is not None:
            present = document_rows(counts, "counts", weights.shape)
            even_entropy, even_shares = concentration(present, n_top)
        return cls(
            documents_with(chosen),
            documents_with(present),
            entropy,
            top_shares,
            token_names=token_names,
            token_classes=token_classes,
            classes=classes,
            cls_share=np.maximum(1.0 - totals, 0.0),
            even_entropy=even_entropy,
            even_top_shares=even_shares,
        ).plot(ax, k=k)

    def plot(self, ax: Any = None, *, k: int = 15) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of three matplotlib Axes, default=None
            Where to draw; by default a new figure is made.
        k : int, default=15
            Maximum number of selected tokens to draw.

        Returns
        -------
        self : SelectionDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If no document has a token, or if a parameter has the wrong type or is out of its
            range.
        """
        check_scalar(k, "k", Integral, min_val=1)
        filled = ~np.isnan(self.entropy)
        if not filled.any():
            raise ValueError(
                f"None of the {len(filled)} documents has a token that the model knows: there is "
                "no attention to draw."
            )
        axes = _plotting.axes_for(ax, 3, 3, (4.3, 4.4))
        self._draw_selected(axes[0], self._most_selected()[:k], int(filled.sum()))
        self._draw_entropy(axes[1], filled)
        self._draw_top_shares(axes[2], filled)
        _plotting.store_axes(self, axes)
        return self

    def to_frame(self, of: Literal["tokens", "documents"] = "tokens") -> pd.DataFrame:
        """Return the numbers that are drawn.

        Parameters
        ----------
        of : {"tokens", "documents"}, default="tokens"
            Whether to return one row a token or one row a document.

        Returns
        -------
        frame : DataFrame
            For tokens those that are selected somewhere, most often selected first, with columns
            token, selected, documents, share_of_its_documents and, where known, speaks_for. For
            documents entropy, top_1_share, ... and, where known, even_entropy,
            even_top_1_share, ... and cls_share.

        Raises
        ------
        ValueError
            If `of` is neither.
        """
        if of == "tokens":
            order = self._most_selected()
            columns: dict[str, Any] = {
                "token": self.token_names[order],
                "selected": self.selection_counts[order].astype(np.int64),
                "documents": self.documents[order].astype(np.int64),
                "share_of_its_documents": self.selection_counts[order] / self.documents[order],
            }
            if self.token_classes is not None:
                columns["speaks_for"] = self.token_classes[order]
            return pd.DataFrame(columns)
        if of != "documents":
            raise ValueError(f'of must be "tokens" or "documents", got {of!r}.')
        columns = {}
        for prefix, entropy, shares in (
            ("", self.entropy, self.top_shares),
            ("even_", self.even_entropy, self.even_top_shares),
        ):
            if entropy is not None:
                columns[f"{prefix}entropy"] = entropy
            if shares is not None:
                for place, column in enumerate(shares.T, start=1):
                    columns[f"{prefix}top_{place}_share"] = column
        if self.cls_share is not None:
            columns["cls_share"] = self.cls_share
        return pd.DataFrame(columns)

    def _most_selected(self) -> NDArray[np.intp]:
        order = np.argsort(-self.selection_counts, kind="stable")
        return order[: np.count_nonzero(self.selection_counts)]

    def _draw_selected(self, ax: Any, tokens: NDArray[np.intp], n_documents: int) -> None:
        """Draw how often tokens are selected, as shares of the documents that have tokens."""
        _plotting.set_title(ax, "Tokens selected most often")
        if not len(tokens):
            _plotting.write_instead(ax, "no token is selected")
            return
        selected = 100 * self.selection_counts[tokens] / n_documents
        present = 100 * self.documents[tokens] / n_documents
        known, classes = self.token_classes, self.classes
        labels = [None] * len(tokens) if known is None else known[tokens]
        first = classes.tolist()[:1] if classes is not None and len(classes) == 2 else []
        colors = [AGAINST if label in first else FOR for label in labels]
        notes = [
            f"{share:.{1 if share < 9.95 else 0}f} %"
            + ("" if label is None else f" · {_plotting.class_name(label, 14)}")
            for share, label in zip(selected, labels, strict=True)
        ]
        names = [_plotting.shown(name, 24) for name in self.token_names[tokens]]
        ends = np.maximum(selected, present)
        ax.barh(np.arange(len(tokens)), present, color=colors, height=0.72, alpha=0.25, zorder=1)
        _plotting.named_bars(ax, names, selected, colors, notes, notes_at=ends, min_slots=10)
        ax.set_xlim(0, ends.max() * (1.25 if known is None else 1.6))  # space for the notes
        ax.set_xlabel("% of documents: selected (dark), present (light)")

    def _draw_entropy(self, ax: Any, filled: NDArray[np.bool_]) -> None:
        """Draw a histogram of entropy over the documents that have tokens, those `filled`."""
        _plotting.set_title(ax, "Entropy of attention")
        drawn = [self.entropy[filled]]
        if self.even_entropy is not None:
            drawn.append(self.even_entropy[filled])
        both = np.concatenate(drawn).clip(min=0.0)
        low, high = both.min(), both.max()
        if high - low < 1e-6:  # all equal: a bar, not a line
            low, high = max(low - 0.5, 0.0), high + 0.5
        names = ("attention", "if all scores were equal")
        styles: tuple[dict[str, Any], ...] = (
            {"color": FOR, "alpha": 0.75},
            {"histtype": "step", "color": _plotting.text_color(), "linestyle": "--"},
        )
        for numbers, name, style in zip(drawn, names, styles, strict=False):
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
        shares = 100 * self.top_shares[filled]
        low, high = np.percentile(shares, [10, 90], axis=0)
        means = shares.mean(axis=0)
        ax.fill_between(n_tokens, low, high, color=FOR, alpha=0.2, linewidth=0)
        label = "attention: mean, and\n10 % to 90 % of documents"
        ax.plot(n_tokens, means, color=FOR, marker="o", markersize=4, label=label)
        if self.even_top_shares is not None:
            ax.plot(
                n_tokens,
                100 * self.even_top_shares[filled].mean(axis=0),
                color=_plotting.text_color(),
                linestyle="--",
                label="if all scores were equal: mean",
            )
        if self.cls_share is not None and self.cls_share.any():
            kept = 100 * self.cls_share[filled].mean()
            ax.plot([], [], " ", label=f"(<cls> has {kept:.3g} % on average)")
        _plotting.few_ticks(ax.yaxis, 6)
        ax.set_ylim(0, 1.45 * max(means.max(), high.max()))  # space for the legend
        _plotting.no_ticks_above_100(ax.yaxis)
        step = 1 if len(n_tokens) <= 12 else -(-len(n_tokens) // 10)
        ax.set_xticks(n_tokens[::step])
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        ax.set_xlabel("number of most attended tokens")
        ax.set_ylabel("% of the attention among tokens")


def _classes_of_values(classifier: Any) -> NDArray[np.object_] | None:
    """Return the class (n_tokens,) with each token's highest value, or None with an MLP."""
    if classifier._model().mlp:
        return None
    values = values_by_class(classifier.token_values_)
    labels = np.array(classifier.classes_.tolist(), dtype=object)[values.argmax(axis=0)]
    labels[np.ptp(values, axis=0) == 0] = None
    return labels
