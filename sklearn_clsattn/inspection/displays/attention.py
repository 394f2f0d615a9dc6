"""Attention and contributions of the tokens of one document."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar

from ..formatting import MINUS, aligned, signed
from ..removal import without_name_warnings
from . import _plotting
from ._inputs import Array, checked_array, drawn_model, names_or_indices, places_of
from ._plotting import AGAINST, FOR, NEUTRAL


class AttentionDisplay:
    """Attention and contributions of the tokens of one document.

    The left plot has the share of attention of each token and of ``<cls>``, which sum to 1. The
    right one has each token's contribution to the decision for a class; with the intercept they
    sum to the decision exactly. Tokens are ordered by the size of their contributions; those that
    are not drawn individually are drawn together. Models with an MLP have no contributions: for
    them only attention is drawn.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    attention : array-like of shape (n_tokens,)
        Share of attention of each token of the document.
    contributions : array-like of shape (n_tokens,), default=None
        Contribution of each to the decision for `target`; by default only attention is drawn.
    token_names : sequence of str of length n_tokens, default=None
        Names of the tokens; by default their indices.
    counts : array-like of shape (n_tokens,), default=None
        Number of occurrences of each in the document.
    cls_share : float, default=None
        Share of attention of ``<cls>``; None for a model without it.
    intercept : float, default=0.0
        Intercept of the decision.
    target : label, default=None
        The class that positive contributions are for.
    other : label, default=None
        The class that negative ones are for, where there are two.
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
    >>> frame = display.to_frame()
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
        shape = (np.size(attention),)
        self.attention: Array = checked_array(attention, "attention", shape)
        total, least = self.attention.sum() + (cls_share or 0.0), self.attention.min(initial=0.0)
        if least < 0 or total > 1 + 1e-9:
            raise ValueError(
                "attention must be shares of one document, not negative and with cls_share at "
                f"most 1 in all, got {least:.6g} to {self.attention.max(initial=0.0):.6g} and "
                f"{total:.6g} in all."
            )
        self.contributions: Array | None = checked_array(contributions, "contributions", shape)
        self.token_names = names_or_indices(token_names, *shape)
        self.counts: Array | None = checked_array(counts, "counts", shape)
        self.cls_share = cls_share
        self.intercept = float(intercept)
        self.target = target
        self.other = other
        self.probability = probability

    @property
    def decision(self) -> float | None:
        """Sum of contributions and intercept; None without contributions."""
        if self.contributions is None:
            return None
        return float(self.contributions.sum() + self.intercept)

    @classmethod
    def from_estimator(
        cls, estimator: Any, document: Any, *, target: Any = None, top: int = 15, ax: Any = None
    ) -> Self:
        """Draw attention and contributions of a fitted model in one document.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted classifier, or a fitted Pipeline that ends in one.
        document : str, or {array-like, sparse matrix, data frame} of shape (1, n_tokens) or \
                (n_tokens,), or a list of one text
            One document, as the estimator takes it.
        target : label, default=None
            The class to draw contributions for. By default the second of two classes, the one
            that positive decisions are for, and of more the predicted one.
        top : int, default=15
            Maximum number of tokens to draw individually.
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
            If the estimator is no attention classifier, if `ax` is no axes, or if `top` is no
            integer.
        ValueError
            If the document does not fit the estimator, if there are several, if `target` is no
            class of the model, or if a parameter is out of its range.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

        Notes
        -----
        In a document without known tokens all attention is that of ``<cls>``, and the decision is
        the intercept.

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
        _plotting.import_pyplot()  # before anything is computed
        model = drawn_model(estimator)
        classifier, classes = model.classifier, model.classifier.classes_
        places = places_of(target, classes)
        if places is not None and len(places) != 1:
            raise ValueError(f"target must be one class, got {target!r}.")
        row = model.token_matrix(_as_rows(document, bare=classifier is estimator))
        if row.shape[0] != 1:
            raise ValueError(f"Expected one document, got {row.shape[0]}.")
        with without_name_warnings():
            probabilities = classifier.predict_proba(row)[0]
            attention = classifier.attention(row).data
            if places is not None:
                place = places[0]
            else:
                place = 1 if len(classes) == 2 else int(probabilities.argmax())
            contributions, intercept = _contributions(classifier, row, place)
        present = row.data > 0
        shares = attention[present]
        return cls(
            shares,
            None if contributions is None else contributions[present],
            token_names=model.token_names[row.indices[present]],
            counts=row.data[present],
            cls_share=max(1.0 - shares.sum(), 0.0) if classifier.cls_weight_ > 0 else None,
            intercept=intercept,
            target=classes[place],
            other=classes[1 - place] if len(classes) == 2 else None,
            probability=float(probabilities[place]),
        ).plot(ax, top=top)

    @classmethod
    def from_arrays(
        cls,
        attention: ArrayLike,
        contributions: ArrayLike | None = None,
        *,
        top: int = 15,
        ax: Any = None,
        **arrays: Any,
    ) -> Self:
        """Draw given arrays.

        Parameters
        ----------
        attention, contributions
            As in :class:`AttentionDisplay`.
        top, ax
            As in :meth:`from_estimator`.
        **arrays
            The other parameters of :class:`AttentionDisplay`.

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
        >>> display.to_frame()
               token  attention  contribution
        0       good        0.6           1.2
        1        the        0.1           0.0
        2      <cls>        0.3           0.0
        3  intercept        NaN           0.0
        >>> plt.close(display.figure_)
        """
        return cls(attention, contributions, **arrays).plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 15) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of two matplotlib Axes, default=None
            Where to draw; one Axes where there are no contributions. By default a new figure is
            made.
        top : int, default=15
            Maximum number of tokens to draw individually.

        Returns
        -------
        self : AttentionDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If a parameter has the wrong type or is out of its range.
        """
        table = self._table(check_scalar(top, "top", Integral, min_val=1))
        names = [
            name if special else f"{_plotting.shown(name)}{_times(count)}"
            for name, count, special in zip(
                table["token"], table["count"], table["special"], strict=True
            )
        ]
        n_panels = 1 if self.contributions is None else 2
        size = (3.9 + 0.06 * max(map(len, names), default=0), 1.1 + 0.25 * max(len(table), 3))
        axes = _plotting.axes_for(ax, n_panels, n_panels, size)
        self._draw_attention(axes[0], names, table["attention"].to_numpy(dtype=np.float64))
        if n_panels == 2:
            self._draw_contributions(axes[1], names, table["contribution"].to_numpy())
        for panel in axes:
            for label, special in zip(panel.get_yticklabels(), table["special"], strict=True):
                label.set_style("italic" if special else "normal")
        if abs(axes[0].get_position().y0 - axes[-1].get_position().y0) < 1e-6:
            for panel in axes[1:]:
                panel.tick_params(axis="y", labelleft=False)  # names are beside the left bars
        _plotting.store_axes(self, axes)
        return self

    def to_frame(self) -> pd.DataFrame:
        """Return the numbers that are drawn.

        Returns
        -------
        frame : DataFrame
            One row a token, in the order of the plot, then ``<cls>`` and the intercept, with
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
        """Return the `top` tokens, and `special` rows for all else."""
        n_tokens = len(self.attention)
        terms = np.zeros(n_tokens) if self.contributions is None else self.contributions
        order = np.lexsort((-self.attention, -np.abs(terms)))
        if n_tokens == top + 1:
            top += 1  # a row "1 more token" is as long as that token's row
        first, rest = order[:top], order[top:]
        counts = np.full(n_tokens, np.nan) if self.counts is None else self.counts
        rows: list[tuple[Any, ...]] = [
            (self.token_names[s], counts[s], self.attention[s], terms[s], False) for s in first
        ]
        if len(rest):
            name = f"{len(rest):,} more tokens"
            rows.append((name, np.nan, self.attention[rest].sum(), terms[rest].sum(), True))
        if self.cls_share is not None:
            rows.append(("<cls>", np.nan, self.cls_share, 0.0, True))
        if self.contributions is not None:
            rows.append(("intercept", np.nan, np.nan, self.intercept, True))
        columns = ["token", "count", "attention", "contribution", "special"]
        return pd.DataFrame(rows, columns=columns)

    def _draw_attention(self, ax: Any, names: list[str], attention: Array) -> None:
        title = "Attention" if len(self.attention) else "Attention: no known token"
        if self.contributions is None and self.target is not None and self.probability is not None:
            title = f"Attention (P({_plotting.shown(self.target, 20)}) = {self.probability:.3f})"
        _plotting.set_title(ax, title)
        shares = np.nan_to_num(100 * attention)
        notes = ["" if np.isnan(share) else f"{100 * share:.1f} %" for share in attention]
        _plotting.named_bars(ax, names, shares, NEUTRAL, notes)
        ax.set_xlim(0, 1.22 * max(shares.max(initial=0.0), 1e-9))
        _plotting.no_ticks_above_100(ax.xaxis)
        ax.set_xlabel("share of attention (%)")

    def _draw_contributions(self, ax: Any, names: list[str], terms: Array) -> None:
        assert self.decision is not None
        title = f"Contributions: decision {signed(self.decision, MINUS)}"
        if self.target is not None and self.probability is not None:
            label = _plotting.shown(self.target, 20)
            title += f",\nP({label})" if len(label) > 8 else f", P({label})"
            title += f" = {self.probability:.3f}"
        _plotting.set_title(ax, title)
        colors = np.where(terms < 0, AGAINST, FOR)
        notes = aligned(terms.tolist(), MINUS)
        notes = [note if term else "0" for term, note in zip(terms, notes, strict=True)]
        _plotting.named_bars(ax, names, terms, colors.tolist(), notes)
        ax.spines["left"].set_visible(False)  # bars start from the line at 0
        _plotting.few_ticks(ax.xaxis, 6)
        ax.axvline(0, color=_plotting.text_color(), linewidth=0.8, zorder=3)
        low, high = terms.min(initial=0.0), terms.max(initial=0.0)
        width = max(high - low, 1e-9)
        ax.set_xlim(low - (0.17 if low < 0 else 0.03) * width, high + 0.17 * width)
        across = "contribution to the decision"
        if self.target is not None:
            name = _plotting.class_name(self.target, 16)
            across += f" for {name}"
            if self.other is not None:
                other = _plotting.class_name(self.other, 16)
                across = f"← {other}   contribution   {name} →"
        ax.set_xlabel(across, parse_math=False)


def _contributions(classifier: Any, row: sp.csr_array, place: int) -> tuple[Array | None, float]:
    """Return contributions (n_entries,) to the decision for a class, and its intercept."""
    try:
        terms = classifier.contributions(row)
    except ValueError:  # with an MLP; the row itself is valid
        return None, 0.0
    if isinstance(terms, list):
        return terms[place].data, float(classifier.intercept_[place])
    sign = 1.0 if place == 1 else -1.0
    return sign * terms.data + 0.0, sign * float(classifier.intercept_[0]) + 0.0


def _as_rows(document: Any, *, bare: bool) -> Any:
    """Return one document as input of several for a classifier (`bare`) or a Pipeline."""
    if isinstance(document, str):
        return [document]
    if bare and not (sp.issparse(document) or hasattr(document, "iloc")):
        row = np.asarray(document)
        return row[None, :] if row.ndim == 1 and row.dtype.kind in "biuf" else document
    return document


def _times(count: float) -> str:
    return f" ×{count:.3g}" if count > 1 and float(count).is_integer() else ""
