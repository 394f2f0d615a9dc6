"""How much a word counts by its position, and by the word before it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from ...text import ContextVectorizer
from . import _plotting
from ._inputs import Array
from ._plotting import AGAINST, FOR, NEUTRAL

# Ticks of multipliers, those first that are wanted most.
_TICKS = (1, 0.5, 2, 0.1, 10, 0.2, 5, 0.7, 1.4, 0.33, 3, 0.85, 1.2, 0.95, 1.05, 0.98, 1.02)


@dataclass(kw_only=True, eq=False, repr=False)
class ContextDisplay:
    """How much a word counts by where it stands and what stands before it.

    There are three plots of multipliers: by the position from the start of the document, one line
    for single words, one for pairs and so on; by the position from the end; and, for the words
    before that matter most, of what follows them. An occurrence's multiplier is the product of its
    three. They compare occurrences within a document, whose total weight stays the same: only
    their ratios count. Positions at which nothing was learned are left out.

    Parameters
    ----------
    start_scores, end_scores : ndarray of shape (n_orders, n_cells)
        Scores by the number of words and by the position from the start and from the end: cell k
        has the positions from 2^k to 2^(k + 1) - 1, the first being 1, the last cell all beyond.
        The multiplier is the exponential of half the score.
    previous_words : ndarray of shape (n_previous,)
        Words that stand before others.
    previous_word_scores : ndarray of shape (n_previous,)
        Scores of what follows them.
    min_n : int, default=1
        Number of words that the first row of scores is of.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The three axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn.inspection import ContextDisplay
    >>> from sklearn_clsattn.text import ContextVectorizer
    >>> texts = ["a good film", "good fun", "a bad film", "a dull, bad plot"] * 10
    >>> vectorizer = ContextVectorizer().fit(texts, ["pos", "pos", "neg", "neg"] * 10)
    >>> display = ContextDisplay.from_estimator(vectorizer)
    >>> [ax.get_title(loc="left") for ax in display.ax_]
    ['Position from the start', 'Position from the end', 'After these words']
    >>> plt.close(display.figure_)
    """

    start_scores: Array
    end_scores: Array
    previous_words: NDArray[Any]
    previous_word_scores: Array
    min_n: int = 1

    @classmethod
    def from_estimator(cls, estimator: Any, *, k: int = 8, ax: Any = None) -> Self:
        """Draw what a fitted vectorizer has learned.

        Parameters
        ----------
        estimator : ContextVectorizer, or Pipeline or search
            A fitted vectorizer, or a fitted Pipeline that has one of its steps, or a fitted search
            over such Pipelines.
        k : int, default=8
            Maximum number of words before that raise, and that lower, what follows them.
        ax : array of three matplotlib Axes, default=None
            Where to draw; by default a new figure is made.

        Returns
        -------
        display : ContextDisplay
            The display, drawn.
        """
        _plotting.import_pyplot()  # before anything is computed
        vectorizer = _vectorizer_of(estimator)
        check_is_fitted(vectorizer)
        if not vectorizer.context:
            raise ValueError(
                "The vectorizer has context=False: it has learned nothing of positions."
            )
        return cls(
            start_scores=vectorizer.start_scores_,
            end_scores=vectorizer.end_scores_,
            previous_words=vectorizer.previous_words_,
            previous_word_scores=vectorizer.previous_word_scores_,
            min_n=vectorizer.ngram_range[0],
        ).plot(ax, k=k)

    def plot(self, ax: Any = None, *, k: int = 8) -> Self:
        """Draw.

        Parameters
        ----------
        ax, k
            As in :meth:`from_estimator`.

        Returns
        -------
        self : ContextDisplay
            The display.
        """
        check_scalar(k, "k", Integral, min_val=1)
        axes = _plotting.axes_for(ax, 3, 3, (4.3, 4.2))
        both = np.concatenate([self.start_scores, self.end_scores], axis=1) / 2
        margin = 0.05 * max(float(np.ptp(both)), 0.05)
        for one, scores, side in zip(
            axes[:2], (self.start_scores, self.end_scores), ("start", "end"), strict=True
        ):
            self._draw_positions(one, scores, side)
            one.set_ylim(both.min() - margin, both.max() + margin)
            _multiplier_axis(one, "y", both.min(), both.max())
        axes[0].legend(frameon=False, fontsize=8)
        self._draw_words(axes[2], k)
        _plotting.store_axes(self, axes)
        return self

    def _draw_positions(self, ax: Any, scores: Any, side: str) -> None:
        """Draw the multipliers of one side, a line for every number of words."""
        _plotting.set_title(ax, f"Position from the {side}")
        cells = np.arange(scores.shape[1])
        for row, of_order in enumerate(scores):
            n_words = row + self.min_n
            ax.plot(
                cells,
                np.where(of_order == 0, np.nan, of_order / 2),
                color=(FOR, AGAINST, NEUTRAL)[row % 3],
                marker="os^"[row % 3],
                markersize=4,
                linewidth=1.4,
                label={1: "single words", 2: "pairs of words"}.get(n_words, f"{n_words} words"),
            )
        learned = np.flatnonzero((scores != 0).any(axis=0))
        cells = cells[: learned.max(initial=0) + 1]
        names = [str(2**cell) for cell in cells.tolist()]
        if len(cells) == scores.shape[1] > 1:
            names[-1] += "+"
        ax.set_xticks(cells, names)
        ax.set_xlabel(f"first word, counted from the {side}")
        ax.set_ylabel("multiplier")
        ax.axhline(0, color=_plotting.text_color(), linewidth=0.6, zorder=0)

    def _draw_words(self, ax: Any, k: int) -> None:
        """Draw the multipliers after the words that raise and lower most what follows them."""
        _plotting.set_title(ax, "After these words")
        order = np.argsort(-self.previous_word_scores, kind="stable")
        ordered = self.previous_word_scores[order] / 2
        raised, lowered = order[ordered > 0][:k], order[ordered < 0][-k:]
        shown = np.concatenate([raised, lowered])
        if not len(shown):
            _plotting.write_instead(ax, "no word before has an influence")
            return
        lengths = self.previous_word_scores[shown] / 2
        _plotting.named_bars(
            ax,
            [f"{_plotting.shown(word, 18)} …" for word in self.previous_words[shown]],
            lengths,
            [FOR] * len(raised) + [NEUTRAL] * len(lowered),
            [f"{np.exp(length):.2f}" for length in lengths],
            min_slots=10,
        )
        ax.axvline(0, color=_plotting.text_color(), linewidth=0.6)
        width = 0.2 * max(float(np.ptp([*lengths, 0.0])), 0.05)  # space for the numbers
        ax.set_xlim(min(lengths.min(), 0) - width, max(lengths.max(), 0) + width)
        _multiplier_axis(ax, "x", *ax.get_xlim())
        ax.set_xlabel("multiplier of what follows")


def _multiplier_axis(ax: Any, axis: str, low: float, high: float) -> None:
    """Name ticks of an axis of logarithms, from `low` to `high`, by their multipliers."""
    gap = (high - low) / 8
    ticks: list[float] = []
    for tick in _TICKS:
        inside = low - gap / 2 <= np.log(tick) <= high + gap / 2
        if inside and all(abs(np.log(tick / other)) >= gap for other in ticks):
            ticks.append(tick)
    getattr(ax, f"set_{axis}ticks")(np.log(ticks), [f"{tick:g}" for tick in ticks])


def _vectorizer_of(estimator: Any) -> ContextVectorizer:
    """Return the ContextVectorizer that an estimator is or has for a step."""
    model = getattr(estimator, "best_estimator_", estimator)
    for step in [model, *(one for _, one in getattr(model, "steps", ()))]:
        if isinstance(step, ContextVectorizer):
            return step
    raise TypeError(
        "Expected a ContextVectorizer, or a Pipeline (or fitted search over such) that has one for "
        f"a step, got {type(estimator).__name__}."
    )
