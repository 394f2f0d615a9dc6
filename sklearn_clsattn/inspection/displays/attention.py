"""Attention and contributions of the tokens of one document."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from .._explain import explain
from ..explanation import Explanation
from ..formatting import MINUS, aligned, signed
from . import _plotting
from ._inputs import Array
from ._plotting import AGAINST, FOR, NEUTRAL


@dataclass(eq=False, repr=False)
class AttentionDisplay:
    """Attention and contributions of the tokens of one document.

    The left plot has the share of attention of each token and of ``<cls>``, which sum to 1. The
    right one has each token's contribution to the decision for a class; with the intercept they
    sum to the decision exactly. Tokens are ordered by the size of their contributions; those that
    are not drawn individually are drawn together.

    Parameters
    ----------
    explanation : Explanation
        What :func:`~sklearn_clsattn.inspection.explain` returns for one document. Of several
        classes that it explains, the predicted one is drawn.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The two axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

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
    >>> display.explanation.tokens.tolist()
    ['bad', 'film', 'good', 'plot']
    >>> plt.close(display.figure_)
    """

    explanation: Explanation

    @classmethod
    def from_estimator(
        cls, estimator: Any, document: Any, *, target: Any = None, top: int = 15, ax: Any = None
    ) -> Self:
        """Draw attention and contributions of a fitted model in one document.

        Parameters
        ----------
        estimator : classifier of this package, or Pipeline
            A fitted model, as :func:`~sklearn_clsattn.inspection.explain` takes it.
        document : str, or {array-like, sparse matrix, data frame} of shape (1, n_tokens), or a \
                list of one text
            One document, as the estimator takes it.
        target : label, default=None
            The class to draw contributions for. By default the second of two classes, and of more
            the predicted one.
        top : int, default=15
            Maximum number of tokens to draw individually.
        ax : array of two matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : AttentionDisplay
            The display, drawn.
        """
        _plotting.import_pyplot()  # before anything is computed
        documents = [document] if isinstance(document, str) else document
        explanation = explain(estimator, documents, target=target, places=False)
        return cls(explanation).plot(ax, top=top)

    def plot(self, ax: Any = None, *, top: int = 15) -> Self:
        """Draw.

        Parameters
        ----------
        ax, top
            As in :meth:`from_estimator`.

        Returns
        -------
        self : AttentionDisplay
            The display.
        """
        if len(self.explanation) != 1:
            raise ValueError(f"Expected one document, got {len(self.explanation)}.")
        rows = self._rows(check_scalar(top, "top", Integral, min_val=1))
        names, special = rows["name"].tolist(), rows["special"].tolist()
        size = (3.9 + 0.06 * max(map(len, names)), 1.1 + 0.25 * max(len(rows), 3))
        axes = _plotting.axes_for(ax, 2, 2, size)
        self._draw_attention(axes[0], names, rows["attention"].to_numpy())
        self._draw_contributions(axes[1], names, rows["contribution"].to_numpy())
        for panel in axes:
            for label, is_special in zip(panel.get_yticklabels(), special, strict=True):
                label.set_style("italic" if is_special else "normal")
        if abs(axes[0].get_position().y0 - axes[1].get_position().y0) < 1e-6:
            axes[1].tick_params(axis="y", labelleft=False)  # names are beside the left bars
        _plotting.store_axes(self, axes)
        return self

    def _shown_class(self) -> int:
        """Return the position, among the explained classes, of the one that is drawn."""
        targets = self.explanation.targets.tolist()
        return targets.index(self.explanation.predicted.tolist()[0]) if len(targets) > 1 else 0

    def _rows(self, top: int) -> pd.DataFrame:
        """Return the `top` tokens as they are drawn, and `special` rows for all else."""
        one, k = self.explanation, self._shown_class()
        tokens = pd.DataFrame(
            {
                "name": pd.Series([*map(_name, one.tokens, one.counts)], dtype=object),
                "attention": one.attention,
                "contribution": one.contributions[:, k],
                "special": False,
            }
        )
        order = np.lexsort((-tokens["attention"], -tokens["contribution"].abs()))
        if len(tokens) == top + 1:
            top += 1  # a row "1 more token" is as long as that token's row
        rest, others = tokens.iloc[order[top:]], []
        if n_rest := len(rest):
            attention = rest["attention"].sum()
            contribution = rest["contribution"].sum()
            others.append((f"{n_rest:,} more tokens", attention, contribution, True))
        if one.cls_attention[0]:
            others.append(("<cls>", one.cls_attention[0], 0.0, True))
        others.append(("intercept", np.nan, one.intercept[k], True))
        return pd.concat([tokens.iloc[order[:top]], pd.DataFrame(others, columns=tokens.columns)])

    def _draw_attention(self, ax: Any, names: list[str], attention: Array) -> None:
        is_empty = not len(self.explanation.tokens)
        title = "Attention: no known token" if is_empty else "Attention"
        _plotting.set_title(ax, title)
        shares = np.nan_to_num(100 * attention)
        notes = ["" if np.isnan(share) else f"{100 * share:.1f} %" for share in attention]
        _plotting.named_bars(ax, names, shares, NEUTRAL, notes)
        ax.set_xlim(0, 1.22 * max(shares.max(initial=0.0), 1e-9))
        _plotting.no_ticks_above_100(ax.xaxis)
        ax.set_xlabel("share of attention (%)")

    def _draw_contributions(self, ax: Any, names: list[str], terms: Array) -> None:
        one, k = self.explanation, self._shown_class()
        target = one.targets.tolist()[k]
        label = _plotting.shown(target, 20)
        comma = ",\n" if len(label) > 8 else ", "
        title = f"Contributions: decision {signed(one.decision[0, k], MINUS)}{comma}"
        title += f"P({label}) = {one.probability[0, k]:.3f}"
        _plotting.set_title(ax, title)
        notes = aligned(terms.tolist(), MINUS)
        notes = [note if term else "0" for term, note in zip(terms, notes, strict=True)]
        _plotting.named_bars(ax, names, terms, np.where(terms < 0, AGAINST, FOR).tolist(), notes)
        ax.spines["left"].set_visible(False)  # bars start from the line at 0
        _plotting.few_ticks(ax.xaxis, 6)
        ax.axvline(0, color=_plotting.text_color(), linewidth=0.8, zorder=3)
        low, high = terms.min(initial=0.0), terms.max(initial=0.0)
        width = max(high - low, 1e-9)
        ax.set_xlim(low - (0.17 if low < 0 else 0.03) * width, high + 0.17 * width)
        name = _plotting.class_name(target, 16)
        across = f"contribution to the decision for {name}"
        if len(one.classes) == 2:
            (other,) = set(one.classes.tolist()) - {target}
            across = f"← {_plotting.class_name(other, 16)}   contribution   {name} →"
        ax.set_xlabel(across, parse_math=False)


def _name(token: str, count: float) -> str:
    several = count > 1 and float(count).is_integer()
    return _plotting.shown(token) + (f" ×{count:.3g}" if several else "")
