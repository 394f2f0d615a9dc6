"""Which tokens the softmax selects, how often, and how concentrated attention is."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import _plotting
from ._plotting import AGAINST, FOR, Array


class SelectionDisplay:
    """Which tokens attention selects, how often, and how concentrated it is.

    Three pictures. The first has the tokens that most often have the highest attention score of
    their document. The second is a histogram, over documents, of the entropy of attention: 0
    where one token has it all, log(n) where n tokens have the same. The third is the share of
    attention that the 1, 2, 3, ... most attended tokens of a document have together. The last two
    stand beside what they would be if all attention scores were equal: attention in proportion
    to counts.

    Entropy and shares are those of attention among the tokens of the document, divided by their
    sum: what ``<cls>`` keeps for itself is counted apart. Documents without tokens have neither.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    selection_counts : array-like of shape (n_tokens,)
        In how many documents each token is selected.

    documents : array-like of shape (n_tokens,)
        In how many documents it is.

    entropy : array-like of shape (n_documents,)
        Entropy of attention in nats; NaN for documents without tokens.

    top_shares : array-like of shape (n_documents, n_top)
        Share of attention of the 1, 2, ..., n_top most attended tokens together; NaN for
        documents without tokens.

    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their indices.

    token_classes : array-like of shape (n_tokens,), default=None
        The class that each token's value speaks for, None where it speaks for none.

    classes : array-like of shape (n_classes,), default=None
        Class labels. The bars of two classes have two colours.

    cls_share : array-like of shape (n_documents,), default=None
        Share of attention that ``<cls>`` keeps.

    even_entropy : array-like of shape (n_documents,), default=None
        What `entropy` would be if all attention scores were equal.

    even_top_shares : array-like of shape (n_documents, n_top), default=None
        What `top_shares` would be.

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
    >>> concentrated = display.frame("documents")
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

        def checked(numbers: ArrayLike | None, name: str, expected: tuple[int, ...]) -> Any:
            if numbers is None:
                return None
            array = np.asarray(numbers, dtype=np.float64)
            if array.shape != expected:
                raise ValueError(f"{name} must have shape {expected}, got {array.shape}.")
            return array

        self.selection_counts = _plotting.per_token(selection_counts, n_tokens, "selection_counts")
        self.documents = _plotting.per_token(documents, n_tokens, "documents")
        self.entropy = checked(entropy, "entropy", (n_documents,))
        self.top_shares = checked(top_shares, "top_shares", shape)
        self.token_names = _plotting.names_or_indices(token_names, n_tokens)
        self.token_classes = token_classes
        if token_classes is not None:
            self.token_classes = np.empty(n_tokens, dtype=object)
            if len(token_classes) != n_tokens:
                raise ValueError(
                    f"token_classes must be {n_tokens} labels, one a token, "
                    f"got {len(token_classes)}."
                )
            self.token_classes[:] = list(token_classes)
        self.classes = None if classes is None else np.asarray(classes)
        self.cls_share = checked(cls_share, "cls_share", (n_documents,))
        self.even_entropy = checked(even_entropy, "even_entropy", (n_documents,))
        self.even_top_shares = checked(even_top_shares, "even_top_shares", shape)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, k: int = 15, n_top: int = 10, ax: Any = None
    ) -> Self:
        """Draw what a fitted model selects in documents.

        Parameters
        ----------
        estimator : ClsAttentionClassifier or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.

        X : {array-like, sparse matrix, data frame} of shape (n_documents, n_tokens), or texts
            Documents, as the estimator takes them.

        k : int, default=15
            Number of selected tokens to draw, at most.

        n_top : int, default=10
            Up to how many of a document's most attended tokens to add up.

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
            If the estimator is no attention classifier, or `ax` no axes.
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
        >>> display.frame()[["token", "selected", "documents", "speaks_for"]].head(2)
          token  selected  documents speaks_for
        0   bad         2          2        neg
        1  good         2          2        pos
        >>> plt.close(display.figure_)
        """
        _plotting.import_pyplot()  # before anything is computed
        classifier = _plotting.classifier_of(estimator)
        counts = _plotting.token_matrix(estimator, X)
        with _plotting.names_checked():
            attention, selected = classifier.attention(counts), classifier.select_tokens(counts)
        return cls.from_arrays(
            attention,
            selected,
            counts,
            token_names=_plotting.token_names_of(estimator),
            token_classes=_spoken_for(classifier),
            classes=classifier.classes_,
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
        """Draw what is selected, given attention and selection.

        Parameters
        ----------
        attention : {array-like, sparse matrix} of shape (n_documents, n_tokens)
            Attention weights; a row sums to 1 less the share of ``<cls>``.

        selected : {array-like, sparse matrix} of shape (n_documents, n_tokens)
            True where a token has the highest attention score of its document.

        counts : {array-like, sparse matrix} of shape (n_documents, n_tokens), default=None
            Token counts or weights, for what attention would be with equal scores. Without them a
            document has the tokens that it attends to.

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
        >>> display.frame("documents").round(3)
           entropy  top_1_share  top_2_share  top_3_share  cls_share
        0    0.693         0.50          1.0          1.0        0.0
        1    0.562         0.75          1.0          1.0        0.2
        >>> plt.close(display.figure_)
        """
        k, n_top = _plotting.at_least_one(k, "k"), _plotting.at_least_one(n_top, "n_top")
        weights = _rows(attention, "attention")
        chosen = _rows(selected, "selected", weights.shape)
        shown = None if counts is None else _rows(counts, "counts", weights.shape)
        totals = np.asarray(weights @ np.ones(weights.shape[1]))
        if totals.max(initial=0.0) > 1 + 1e-9:
            raise ValueError(
                f"attention must sum to at most 1 in every document, got {totals.max():.6g}."
            )
        n_top = min(n_top, weights.shape[1])
        entropy, top_shares = concentration(weights, n_top)
        even_entropy, even_shares = (None, None) if shown is None else concentration(shown, n_top)
        return cls(
            _column_counts(chosen),
            _column_counts(weights if shown is None else shown),
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
            Number of selected tokens to draw, at most.

        Returns
        -------
        self : SelectionDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If no document has a token, or if a parameter is out of its range.
        """
        k = _plotting.at_least_one(k, "k")
        filled = ~np.isnan(self.entropy)
        if not filled.any():
            raise ValueError(
                f"None of the {len(filled)} documents has a token that the model knows: there is "
                "no attention to draw."
            )
        axes = _plotting.axes_for(ax, 3, 3, (4.3, 4.4))
        self._draw_tokens(axes[0], k, int(filled.sum()))
        self._draw_entropy(axes[1], filled)
        self._draw_shares(axes[2], filled)
        self.ax_ = _plotting.as_drawn(axes)
        self.figure_ = axes[0].figure
        return self

    def frame(self, of: Literal["tokens", "documents"] = "tokens") -> pd.DataFrame:
        """Return the numbers behind the pictures.

        Parameters
        ----------
        of : {"tokens", "documents"}, default="tokens"
            What a row is.

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

    def _draw_tokens(self, ax: Any, k: int, n_documents: int) -> None:
        tokens = self._most_selected()[:k]
        selected = 100 * self.selection_counts[tokens] / n_documents
        present = 100 * self.documents[tokens] / n_documents
        _plotting.tidy(ax, "Tokens selected most often")
        if not len(tokens):
            _plotting.say_nothing(ax, "no token is selected")
            return
        labels = [None] * len(tokens) if self.token_classes is None else self.token_classes[tokens]
        first = (
            self.classes.tolist()[:1] if self.classes is not None and len(self.classes) == 2 else []
        )
        colours = [AGAINST if label in first else FOR for label in labels]
        ends = np.maximum(selected, present)
        notes = [
            f"{share:.{1 if share < 9.95 else 0}f} %"
            + ("" if label is None else f" · {_plotting.class_name(label, 14)}")
            for share, label in zip(selected, labels, strict=True)
        ]
        names = [_plotting.shown(name, 24) for name in self.token_names[tokens]]
        ax.barh(np.arange(len(tokens)), present, color=colours, height=0.72, alpha=0.25, zorder=1)
        _plotting.named_bars(ax, names, selected, colours, notes, reach=ends, room=10)
        # The notes need room, more of it where they have a class.
        ax.set_xlim(0, ends.max() * (1.25 if self.token_classes is None else 1.6))
        ax.set_xlabel("% of documents: selected (dark), present (light)")

    def _draw_entropy(self, ax: Any, filled: NDArray[np.bool_]) -> None:
        _plotting.tidy(ax, "How attention is spread")
        drawn = [self.entropy[filled]]
        if self.even_entropy is not None:
            drawn.append(self.even_entropy[filled])
        both = np.concatenate(drawn).clip(min=0.0)
        low, high = both.min(), both.max()
        if high - low < 1e-6:  # all alike: a bar, not a line
            low, high = max(low - 0.5, 0.0), high + 0.5
        edges = np.linspace(low, high, 31)
        for numbers, name, style in zip(
            drawn,
            ("attention", "if all scores were equal"),
            (
                {"color": FOR, "alpha": 0.75},
                {"histtype": "step", "color": _plotting.ink(), "linestyle": "--"},
            ),
            strict=False,
        ):
            middle = float(np.median(numbers))
            label = (
                f"{name}: median {middle:.2f},\nas if evenly over {_plain(np.exp(middle))} tokens"
            )
            ax.hist(numbers.clip(low, high), bins=edges, label=label, **style)
        _plotting.few_ticks(ax.yaxis, 6, whole=True)
        ax.set_ylim(top=ax.get_ylim()[1] * 1.4)  # room for the legend
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        ax.set_xlabel("entropy of attention in a document (nats)")
        ax.set_ylabel("documents")

    def _draw_shares(self, ax: Any, filled: NDArray[np.bool_]) -> None:
        _plotting.tidy(ax, "What the top tokens have of it")
        places = np.arange(1, self.top_shares.shape[1] + 1)
        shares = 100 * self.top_shares[filled]
        low, high = np.percentile(shares, [10, 90], axis=0)
        ax.fill_between(places, low, high, color=FOR, alpha=0.2, linewidth=0)
        ax.plot(places, shares.mean(axis=0), color=FOR, marker="o", markersize=4)
        label = "attention: mean, and\n10 % to 90 % of documents"
        ax.plot([], [], color=FOR, marker="o", markersize=4, label=label)
        if self.even_top_shares is not None:
            ax.plot(
                places,
                100 * self.even_top_shares[filled].mean(axis=0),
                color=_plotting.ink(),
                linestyle="--",
                label="if all scores were equal: mean",
            )
        if self.cls_share is not None and self.cls_share.any():
            kept = 100 * self.cls_share[filled].mean()
            ax.plot([], [], " ", label=f"(<cls> keeps {kept:.3g} % on average)")
        highest = float(np.concatenate([line.get_ydata() for line in ax.lines[:1]] + [high]).max())
        _plotting.few_ticks(ax.yaxis, 6)
        ax.set_ylim(0, 1.45 * highest)  # room for the legend
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 100])
        ax.set_ylim(0, 1.45 * highest)
        ax.set_xticks(places if len(places) <= 12 else places[:: -(-len(places) // 10)])
        ax.legend(loc="upper left", fontsize=8, frameon=False)
        ax.set_xlabel("number of most attended tokens")
        ax.set_ylabel("% of the attention among tokens")


def concentration(weights: sp.csr_array, n_top: int) -> tuple[Array, Array]:
    """Return the entropy of each row, divided by its sum, and the shares of its largest entries.

    Parameters
    ----------
    weights : csr_array of shape (n_documents, n_tokens)
        Non-negative, each entry stored once.

    n_top : int
        Up to how many of the largest entries are added up.

    Returns
    -------
    entropy : ndarray of shape (n_documents,)
        In nats; NaN for rows that sum to 0.

    top_shares : ndarray of shape (n_documents, n_top)
        Of the 1, 2, ..., n_top largest entries together; NaN for rows that sum to 0.
    """
    n_documents = weights.shape[0]
    documents = np.repeat(np.arange(n_documents), np.diff(weights.indptr))
    data = weights.data.astype(np.float64)
    totals = np.bincount(documents, data, n_documents)
    shares = np.divide(data, totals[documents], out=np.zeros_like(data), where=data > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    # Of no entries at all, bincount returns integers.
    entropy = np.abs(np.bincount(documents, -shares * logs, n_documents)).astype(np.float64)
    order = np.lexsort((-shares, documents))
    # Rows are in order already, so that an entry's rank is its distance from its row's start.
    rank = np.arange(len(order)) - weights.indptr[documents]
    leading = rank < n_top
    top = np.zeros((n_documents, n_top))
    top[documents[leading], rank[leading]] = shares[order[leading]]
    top = np.minimum(np.cumsum(top, axis=1), 1.0)
    empty = totals == 0
    entropy[empty] = np.nan
    top[empty] = np.nan
    return entropy, top


def _rows(array: Any, name: str, shape: tuple[int, ...] | None = None) -> sp.csr_array:
    """Return a non-negative matrix as CSR, every entry stored once; `array` is unchanged."""
    rows = sp.csr_array(array if sp.issparse(array) else np.atleast_2d(np.asarray(array)))
    if shape is not None and rows.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, as attention has, got {rows.shape}.")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if len(rows.data) and not (rows.data.min() >= 0 and np.isfinite(rows.data).all()):
        raise ValueError(f"{name} must be finite and not negative.")
    return rows


def _column_counts(rows: sp.csr_array) -> NDArray[np.intp]:
    """Return how many positive entries each column has."""
    return np.bincount(rows.indices[rows.data > 0], minlength=rows.shape[1])


def _spoken_for(classifier: Any) -> NDArray[np.object_] | None:
    """Return the class that each token's value speaks for; None where values do not say."""
    if classifier.mlp:  # even the sign of a value says nothing then
        return None
    values = classifier.token_values_
    if values.ndim == 1:
        values = np.stack([-values, values])
    labels = np.array(classifier.classes_.tolist(), dtype=object)[values.argmax(axis=0)]
    labels[np.ptp(values, axis=0) == 0] = None
    return labels


def _plain(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:,.0f}"
