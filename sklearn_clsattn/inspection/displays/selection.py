"""Which tokens the softmax selects, how often, and how concentrated attention is."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ..concentration import concentration, documents_with
from . import plotting
from .drawn_model import drawn_model, names_checked
from .inputs import (
    at_least_one,
    labels_of_tokens,
    names_or_indices,
    of_shape,
    per_token,
    rows_of_documents,
)
from .selection_drawing import draw_entropy, draw_selected, draw_shares
from .token_statistics import classes_spoken_for


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

        self.selection_counts = per_token(selection_counts, n_tokens, "selection_counts")
        self.documents = per_token(documents, n_tokens, "documents")
        self.entropy = of_shape(entropy, "entropy", (n_documents,))
        self.top_shares = of_shape(top_shares, "top_shares", shape)
        self.token_names = names_or_indices(token_names, n_tokens)
        self.token_classes = labels_of_tokens(token_classes, n_tokens)
        self.classes = None if classes is None else np.asarray(classes)
        self.cls_share = of_shape(cls_share, "cls_share", (n_documents,))
        self.even_entropy = of_shape(even_entropy, "even_entropy", (n_documents,))
        self.even_top_shares = of_shape(even_top_shares, "even_top_shares", shape)

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
        plotting.import_pyplot()  # before anything is computed
        model = drawn_model(estimator)
        counts = model.token_matrix(X)
        with names_checked():
            attention = model.classifier.attention(counts)
            selected = model.classifier.select_tokens(counts)
        return cls.from_arrays(
            attention,
            selected,
            counts,
            token_names=model.token_names,
            token_classes=classes_spoken_for(model.classifier),
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
        k, n_top = at_least_one(k, "k"), at_least_one(n_top, "n_top")
        weights = rows_of_documents(attention, "attention")
        chosen = rows_of_documents(selected, "selected", weights.shape)
        shown = None
        if counts is not None:
            shown = rows_of_documents(counts, "counts", weights.shape)
        totals = np.asarray(weights @ np.ones(weights.shape[1]))
        if totals.max(initial=0.0) > 1 + 1e-9:
            raise ValueError(
                f"attention must sum to at most 1 in every document, got {totals.max():.6g}."
            )
        n_top = min(n_top, weights.shape[1])
        entropy, top_shares = concentration(weights, n_top)
        even_entropy, even_shares = (None, None) if shown is None else concentration(shown, n_top)
        return cls(
            documents_with(chosen),
            documents_with(weights if shown is None else shown),
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
        k = at_least_one(k, "k")
        filled = ~np.isnan(self.entropy)
        if not filled.any():
            raise ValueError(
                f"None of the {len(filled)} documents has a token that the model knows: there is "
                "no attention to draw."
            )
        axes = plotting.axes_for(ax, 3, 3, (4.3, 4.4))
        draw_selected(self, axes[0], self._most_selected()[:k], int(filled.sum()))
        draw_entropy(self, axes[1], filled)
        draw_shares(self, axes[2], filled)
        self.ax_ = plotting.as_drawn(axes)
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
