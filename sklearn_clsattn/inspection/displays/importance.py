"""What a model makes of every token: its scores and values, and the tokens that matter most."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..concentration import documents_with
from . import plotting
from .drawn_model import drawn_model
from .importance_drawing import draw_bars, draw_scatter
from .inputs import Array, at_least_one, names_or_indices, per_class, per_token, places_of
from .token_statistics import labelled_posterior_difference, named_importance

_IMPORTANCES = ("effect", "signed_frequency", "value")
_KINDS = ("scatter", "bars")


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
            return per_class(numbers, n_classes, n_tokens, name)

        self.attention_scores = per_token(attention_scores, n_tokens, "attention_scores")
        self.token_values = per_class(token_values, n_classes, n_tokens, "token_values")
        self.token_names = names_or_indices(token_names, n_tokens)
        self.posterior_difference = rows(posterior_difference, "posterior_difference")
        self.importance = rows(importance, "importance")
        self.importance_name = importance_name
        self.documents = None
        if documents is not None:
            self.documents = per_token(documents, n_tokens, "documents")

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
        plotting.import_pyplot()  # before anything is computed
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
        model = drawn_model(estimator)
        classifier, names = model.classifier, model.token_names
        places_of(target, classifier.classes_)  # before anything is computed, too
        difference = documents = None
        kept: Any = slice(None)
        if X is not None:
            X = model.token_matrix(X)
            documents = documents_with(X)
            kept = np.flatnonzero(documents >= at_least_one(min_count, "min_count"))
            if not len(kept):
                raise ValueError(
                    f"No token is in {min_count} documents of X or more (the most frequent is in "
                    f"{int(documents.max(initial=0))}): lower min_count, or pass more documents."
                )
            documents = documents[kept]
            if y is not None:
                difference = labelled_posterior_difference(X, y, classifier.classes_)[..., kept]
        name, numbers = named_importance(classifier, X, importance)
        return cls(
            classifier.attention_scores_[kept],
            classifier.token_values_[..., kept],
            classes=classifier.classes_,
            token_names=names[kept],
            posterior_difference=difference,
            importance=numbers[..., kept],
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
        places = places_of(target, self.classes)
        if kind == "scatter":
            if self.posterior_difference is None:
                raise ValueError(
                    'kind="scatter" needs posterior_difference: make the display from documents '
                    "and their labels."
                )
            n_bins = at_least_one(n_bins, "n_bins")
            axes = draw_scatter(self, ax, self._one_or_all(places), n_bins)
        else:
            if self.importance is None:
                raise ValueError('kind="bars" needs importance, one number a token and class.')
            every = range(len(self.classes)) if places is None else places
            axes = draw_bars(self, ax, list(every), at_least_one(k, "k"))
        self.ax_ = plotting.as_drawn(axes)
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
        for place in self._one_or_all(places_of(target, self.classes)):
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


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise ValueError(f"kind must be one of {_KINDS}, got {kind!r}.")
