"""Where the model looks in one document, and what each token adds to the decision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike

from . import plotting
from .attention_drawing import draw_document
from .document_terms import document_terms, table_of_terms
from .drawn_model import drawn_model
from .inputs import Array, at_least_one, names_or_indices, one_place_of, per_token


class AttentionDisplay:
    """Attention and contributions of the tokens of one document.

    The left picture has the share of attention of each token and of ``<cls>``, which add up to 1.
    The right one has what each token adds to the decision for a class; with the intercept they
    add up to the decision exactly. Tokens are ordered by how far they move the decision; those
    that are not drawn one by one are drawn together. Models with an MLP have no contributions:
    for them only attention is drawn.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    attention : array-like of shape (n_tokens,)
        Share of attention of each token of the document.

    contributions : array-like of shape (n_tokens,), default=None
        What each adds to the decision for `target`; by default only attention is drawn.

    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their numbers.

    counts : array-like of shape (n_tokens,), default=None
        How often each stands in the document.

    cls_share : float, default=None
        Share of attention of ``<cls>``; None for a model without it.

    intercept : float, default=0.0
        What is added to the contributions.

    target : label, default=None
        The class that contributions speak for.

    other : label, default=None
        The class that they speak against, where there are two.

    probability : float, default=None
        Probability of `target`.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes, or Axes
        The two axes drawn on, or the one where only attention is drawn.

    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    TokenImportanceDisplay : Scores and values of all tokens.
    SelectionDisplay : Which tokens are selected in many documents.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import AttentionDisplay
    >>> texts = ["a good film", "good fun", "a bad film", "a dull, bad plot"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier())
    >>> model = model.fit(texts, ["pos", "pos", "neg", "neg"])
    >>> display = AttentionDisplay.from_estimator(model, "good film, bad plot")
    >>> frame = display.frame()
    >>> bool(abs(frame["attention"].sum() - 1) < 1e-12)
    True
    >>> decision = model.decision_function(["good film, bad plot"])[0]
    >>> bool(abs(frame["contribution"].sum() - decision) < 1e-12)
    True
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        attention: ArrayLike,
        contributions: ArrayLike | None = None,
        *,
        token_names: Any = None,
        counts: ArrayLike | None = None,
        cls_share: float | None = None,
        intercept: float = 0.0,
        target: Any = None,
        other: Any = None,
        probability: float | None = None,
    ) -> None:
        n_tokens = np.size(attention)

        def checked(numbers: ArrayLike | None, name: str) -> Array | None:
            return None if numbers is None else per_token(numbers, n_tokens, name)

        self.attention = per_token(attention, n_tokens, "attention")
        total = self.attention.sum() + (cls_share or 0.0)
        if self.attention.min(initial=0.0) < 0 or total > 1 + 1e-9:
            raise ValueError(
                "attention must be shares of one document, not negative and with cls_share at "
                f"most 1 in all, got {self.attention.min(initial=0.0):.6g} to "
                f"{self.attention.max(initial=0.0):.6g} and {total:.6g} in all."
            )
        self.contributions = checked(contributions, "contributions")
        self.token_names = names_or_indices(token_names, n_tokens)
        self.counts = checked(counts, "counts")
        self.cls_share = cls_share
        self.intercept = float(intercept)
        self.target = target
        self.other = other
        self.probability = probability

    @property
    def decision(self) -> float | None:
        """Contributions and intercept added up; None without contributions."""
        if self.contributions is None:
            return None
        return float(self.contributions.sum() + self.intercept)

    @classmethod
    def from_estimator(
        cls, estimator: Any, document: Any, *, target: Any = None, top: int = 15, ax: Any = None
    ) -> Self:
        """Draw one document as a fitted model sees it.

        Parameters
        ----------
        estimator : ClsAttentionClassifier or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.

        document : str, or {array-like, sparse matrix, data frame} of shape (1, n_tokens) or \
                (n_tokens,), or a list of one text
            One document, as the estimator takes it.

        target : label, default=None
            The class to draw contributions for. By default the second of two classes, the one
            that positive decisions speak for, and of more the predicted one.

        top : int, default=15
            How many tokens to draw one by one, at most.

        ax : array of two matplotlib Axes, default=None
            Where to draw; one Axes for a model with an MLP. By default a new figure is made.

        Returns
        -------
        display : AttentionDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no attention classifier, or `ax` no axes.
        ValueError
            If the document does not fit the estimator, if there are several, if `target` is no
            class of the model, or if a parameter is out of its range.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

        Notes
        -----
        A document without a token that the model knows has an answer as well: all attention is
        that of ``<cls>``, and the decision is the intercept.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.datasets import make_token_classification
        >>> from sklearn_clsattn.inspection import AttentionDisplay
        >>> X, y = make_token_classification(200, n_classes=3, random_state=0)
        >>> model = ClsAttentionClassifier().fit(X, y)
        >>> display = AttentionDisplay.from_estimator(model, X[[0]], target=2)
        >>> round(display.decision, 6) == round(float(model.decision_function(X[[0]])[0, 2]), 6)
        True
        >>> plt.close(display.figure_)
        """
        plotting.import_pyplot()  # before anything is computed
        model = drawn_model(estimator)
        classes = model.classifier.classes_
        place = one_place_of(target, classes)
        bare = model.classifier is estimator
        row = model.token_matrix(_as_rows(document, bare=bare))
        if row.shape[0] != 1:
            raise ValueError(f"Expected one document, got {row.shape[0]}.")
        terms = document_terms(model.classifier, row, place)
        return cls(
            terms.attention,
            terms.contributions,
            token_names=model.token_names[terms.tokens],
            counts=terms.counts,
            cls_share=terms.cls_share,
            intercept=terms.intercept,
            target=classes[terms.place],
            other=classes[1 - terms.place] if len(classes) == 2 else None,
            probability=terms.probability,
        ).plot(ax, top=top)

    @classmethod
    def from_arrays(
        cls,
        attention: ArrayLike,
        contributions: ArrayLike | None = None,
        *,
        token_names: Any = None,
        counts: ArrayLike | None = None,
        cls_share: float | None = None,
        intercept: float = 0.0,
        target: Any = None,
        other: Any = None,
        probability: float | None = None,
        top: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw arrays that are known already.

        Parameters
        ----------
        attention, contributions, token_names, counts, cls_share, intercept, target, other, \
                probability
            As in :class:`AttentionDisplay`.

        top, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        display : AttentionDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the arrays disagree in shape or are not finite, or if attention is no share.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn.inspection import AttentionDisplay
        >>> display = AttentionDisplay.from_arrays(
        ...     [0.6, 0.1], [1.2, 0.0], token_names=["good", "the"], cls_share=0.3, target="pos"
        ... )
        >>> display.frame()
               token  attention  contribution
        0       good        0.6           1.2
        1        the        0.1           0.0
        2      <cls>        0.3           0.0
        3  intercept        NaN           0.0
        >>> plt.close(display.figure_)
        """
        return cls(
            attention,
            contributions,
            token_names=token_names,
            counts=counts,
            cls_share=cls_share,
            intercept=intercept,
            target=target,
            other=other,
            probability=probability,
        ).plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 15) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of two matplotlib Axes, default=None
            Where to draw; one Axes where there are no contributions. By default a new figure is
            made.

        top : int, default=15
            How many tokens to draw one by one, at most.

        Returns
        -------
        self : AttentionDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a parameter is out of its range.
        """
        axes = draw_document(self, ax, self._table(at_least_one(top, "top")))
        self.ax_ = plotting.as_drawn(axes)
        self.figure_ = axes[0].figure
        return self

    def frame(self) -> pd.DataFrame:
        """Return the numbers behind the pictures.

        Returns
        -------
        frame : DataFrame
            One row a token, in the order of the picture, then ``<cls>`` and the intercept, with
            columns token, attention and, where known, count and contribution. The contributions
            add up to the decision.
        """
        table = self._table(max(len(self.attention), 1))
        columns = ["token", "count", "attention", "contribution"]
        if self.counts is None:
            columns.remove("count")
        if self.contributions is None:
            columns.remove("contribution")
        return table[columns]

    def _table(self, top: int) -> pd.DataFrame:
        return table_of_terms(
            self.token_names,
            self.counts,
            self.attention,
            self.contributions,
            cls_share=self.cls_share,
            intercept=self.intercept,
            top=top,
        )


def _as_rows(document: Any, *, bare: bool) -> Any:
    """Return one document in the form in which a classifier, `bare` or not, takes several."""
    if isinstance(document, str):
        return [document]
    if bare and not (sp.issparse(document) or hasattr(document, "iloc")):
        row = np.asarray(document)
        return row[None, :] if row.ndim == 1 and row.dtype.kind in "biuf" else document
    return document
