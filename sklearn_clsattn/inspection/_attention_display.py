"""Where the model looks in one document, and what each token adds to the decision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from . import _plotting
from ._plotting import AGAINST, FOR, NEUTRAL, Array

_CLS, _INTERCEPT = "<cls>", "intercept"


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
            return None if numbers is None else _plotting.per_token(numbers, n_tokens, name)

        self.attention = _plotting.per_token(attention, n_tokens, "attention")
        total = self.attention.sum() + (cls_share or 0.0)
        if self.attention.min(initial=0.0) < 0 or total > 1 + 1e-9:
            raise ValueError(
                "attention must be shares of one document, not negative and with cls_share at "
                f"most 1 in all, got {self.attention.min(initial=0.0):.6g} to "
                f"{self.attention.max(initial=0.0):.6g} and {total:.6g} in all."
            )
        self.contributions = checked(contributions, "contributions")
        self.token_names = _plotting.names_or_indices(token_names, n_tokens)
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
        _plotting.import_pyplot()  # before anything is computed
        classifier = _plotting.classifier_of(estimator)
        classes = classifier.classes_
        place = _one_place(target, classes)
        row = _plotting.token_matrix(estimator, _as_one_row(estimator, document))
        if row.shape[0] != 1:
            raise ValueError(f"Expected one document, got {row.shape[0]}.")
        with _plotting.names_checked():
            probabilities = classifier.predict_proba(row)[0]
            attention = classifier.attention(row)
            terms = _terms(classifier, row)
        if place is None:
            place = 1 if len(classes) == 2 else int(probabilities.argmax())
        # What stands in the matrix as 0 is not in the document.
        present = np.flatnonzero(row.data > 0)
        tokens = row.indices[present]
        shares = attention.data[present]
        contributions, intercept = _for_class(terms, classifier.intercept_, place)
        return cls(
            shares,
            None if contributions is None else contributions[present],
            token_names=_plotting.token_names_of(estimator)[tokens],
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
        rows = self._rows(_plotting.at_least_one(top, "top"))
        n_panels = 1 if self.contributions is None else 2
        names = [
            name if own else f"{_plotting.shown(name)}{self._times(count)}"
            for name, count, own in zip(rows["token"], rows["count"], rows["own"], strict=True)
        ]
        widest = max(map(len, names))
        size = (3.9 + 0.06 * widest, 1.1 + 0.25 * max(len(rows), 3))
        axes = _plotting.axes_for(ax, n_panels, n_panels, size)
        self._draw_attention(axes[0], names, rows)
        if n_panels == 2:
            self._draw_contributions(axes[1], names, rows)
            if _side_by_side(*axes):
                axes[1].tick_params(axis="y", labelleft=False)
        self.ax_ = _plotting.as_drawn(axes)
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
        rows = self._rows(max(len(self.attention), 1))
        columns = {"token": rows["token"]}
        if self.counts is not None:
            columns["count"] = rows["count"]
        columns["attention"] = rows["attention"]
        if self.contributions is not None:
            columns["contribution"] = rows["contribution"]
        return pd.DataFrame(columns)

    def _order(self) -> NDArray[np.intp]:
        if self.contributions is None:
            return np.argsort(-self.attention, kind="stable")
        return np.lexsort((-self.attention, -np.abs(self.contributions)))

    def _rows(self, top: int) -> pd.DataFrame:
        """Return what is drawn, row by row; `own` marks rows that are no tokens."""
        order = self._order()
        if len(order) == top + 1:
            top += 1  # "1 more token" would take the place of the token
        single, rest = order[:top], order[top:]
        n_tokens = len(order)
        counts = np.full(n_tokens, np.nan) if self.counts is None else self.counts
        terms = np.zeros(n_tokens) if self.contributions is None else self.contributions
        rows: list[tuple[Any, ...]] = [
            (self.token_names[s], counts[s], self.attention[s], terms[s], False) for s in single
        ]
        if len(rest):
            name = f"{len(rest):,} more tokens"
            rows.append((name, np.nan, self.attention[rest].sum(), terms[rest].sum(), True))
        if self.cls_share is not None:
            rows.append((_CLS, np.nan, self.cls_share, 0.0, True))
        if self.contributions is not None:
            rows.append((_INTERCEPT, np.nan, np.nan, self.intercept, True))
        columns = ["token", "count", "attention", "contribution", "own"]
        return pd.DataFrame(rows, columns=columns)

    def _times(self, count: float) -> str:
        return f" ×{count:.3g}" if count > 1 and float(count).is_integer() else ""

    def _draw_attention(self, ax: Any, names: list[str], rows: pd.DataFrame) -> None:
        _plotting.tidy(ax, "Attention" if len(self.attention) else "Attention: no known token")
        shares = 100 * rows["attention"].to_numpy(dtype=np.float64)
        notes = ["" if np.isnan(share) else f"{share:.1f} %" for share in shares]
        _plotting.named_bars(ax, names, np.nan_to_num(shares), NEUTRAL, notes)
        _plotting.apart(ax, rows["own"].to_numpy(dtype=bool))
        ax.set_xlim(0, 1.22 * max(np.nan_to_num(shares).max(initial=0.0), 1e-9))
        ax.set_xlabel("share of attention (%)")
        if self.contributions is None and self.target is not None:
            ax.set_title(
                f"Attention (P({_plotting.shown(self.target, 20)}) = {self.probability:.3f})",
                loc="left",
                fontsize="medium",
                parse_math=False,
            )

    def _draw_contributions(self, ax: Any, names: list[str], rows: pd.DataFrame) -> None:
        terms = rows["contribution"].to_numpy(dtype=np.float64)
        known = self.target is not None
        label = _plotting.shown(self.target, 20) if known else None
        name = _plotting.class_name(self.target, 16) if known else None
        assert self.decision is not None
        title = f"Contributions: decision {_plotting.signed(self.decision)}"
        if label is not None and self.probability is not None:
            title += f",\nP({label})" if len(label) > 8 else f", P({label})"
            title += f" = {self.probability:.3f}"
        _plotting.tidy(ax, title)
        colours = np.where(terms < 0, AGAINST, FOR)
        notes = [_plotting.signed(term) for term in terms]
        _plotting.named_bars(ax, names, terms, colours.tolist(), notes)
        _plotting.apart(ax, rows["own"].to_numpy(dtype=bool))
        ax.spines["left"].set_visible(False)  # the line that bars stand on is the one at 0
        _plotting.few_ticks(ax.xaxis, 6)
        ax.axvline(0, color=_plotting.ink(), linewidth=0.8, zorder=3)
        low, high = min(terms.min(initial=0.0), 0.0), max(terms.max(initial=0.0), 0.0)
        width = max(high - low, 1e-9)
        ax.set_xlim(low - (0.17 if low < 0 else 0.03) * width, high + 0.17 * width)
        if label is None:
            across = "contribution to the decision"
        elif self.other is None:
            across = f"contribution to the decision for {name}"
        else:
            across = f"← {_plotting.class_name(self.other, 16)}   contribution   {name} →"
        ax.set_xlabel(across, parse_math=False)


def _one_place(target: Any, classes: NDArray[Any]) -> int | None:
    """Return the place of one label in `classes`; None for None."""
    places = _plotting.places_of(target, classes)
    if places is None:
        return None
    if len(places) != 1:
        raise ValueError(f"target must be one class, got {target!r}.")
    return places[0]


def _as_one_row(estimator: Any, document: Any) -> Any:
    """Return one document in the form in which the estimator takes several."""
    if isinstance(document, str):
        return [document]
    if sp.issparse(document) or hasattr(document, "iloc"):
        return document
    if _plotting.classifier_of(estimator) is estimator:
        row = np.asarray(document)
        return row[None, :] if row.ndim == 1 and row.dtype.kind in "biuf" else document
    return document


def _terms(classifier: Any, row: Any) -> list[Array] | None:
    """Return contributions for every output; None where the decision is no sum over tokens."""
    try:
        terms = classifier.contributions(row)
    except ValueError:
        return None  # With an MLP. The row itself has been checked before.
    return [term.data for term in terms] if isinstance(terms, list) else [terms.data]


def _for_class(
    terms: list[Array] | None, intercept: Array, place: int
) -> tuple[Array | None, float]:
    """Return the contributions to the decision for the class at `place`, and its intercept."""
    if terms is None:
        return None, 0.0
    if len(terms) > 1:
        return terms[place], float(intercept[place])
    sign = 1.0 if place == 1 else -1.0
    return sign * terms[0] + 0.0, sign * float(intercept[0]) + 0.0


def _side_by_side(one: Any, other: Any) -> bool:
    """Whether rows of the one go on in the other, so that names need to be written only once."""
    return bool(abs(one.get_position().y0 - other.get_position().y0) < 1e-6)
