"""What the place of a word does: how much it counts by position, and after which words."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted

from ...text import ContextVectorizer
from . import _plotting
from ._inputs import checked_array, object_array
from ._plotting import AGAINST, FOR, NEUTRAL

# Ticks of multipliers, those first that are wanted most.
_TICKS = (1, 0.5, 2, 0.1, 10, 0.2, 5, 0.7, 1.4, 0.33, 3, 0.85, 1.2, 0.95, 1.05, 0.98, 1.02)


class ContextDisplay:
    """How much a word counts by where it stands and what stands before it.

    There are three plots of multipliers: by the position from the start of the document, one line
    for single words, one for pairs and so on; by the position from the end; and, for the words
    before that matter most, of what follows them. An occurrence's multiplier is the product of its
    three. They compare occurrences within a document, whose total weight stays the same: only
    their ratios count. Positions at which nothing was learned are left out.

    Make it with :meth:`from_estimator` or :meth:`from_arrays`.

    Parameters
    ----------
    start_scores, end_scores : array-like of shape (n_orders, n_cells)
        Scores by the number of words and by the position from the start and from the end: cell k
        has the positions from 2^k to 2^(k + 1) - 1, the first being 1, the last cell all beyond.
        The multiplier is the exponential of half the score.
    previous_words : sequence of str of length n_previous
        Words that stand before others.
    previous_word_scores : array-like of shape (n_previous,)
        Scores of what follows them.
    min_n : int, default=1
        Number of words that the first row of scores is of.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        The three axes drawn on.
    figure_ : matplotlib Figure
        The figure that they are in.

    See Also
    --------
    sklearn_clsattn.text.ContextVectorizer : What is drawn.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn_clsattn.inspection import ContextDisplay
    >>> display = ContextDisplay.from_arrays(
    ...     [[0.2, 0.1, -0.3]], [[0.9, 0.5, -0.2]], ["not", "so"], [-0.3, 0.45]
    ... )
    >>> display.to_frame("words").round(2)
      previous_word  score  multiplier
    0            so   0.45        1.25
    1           not  -0.30        0.86
    >>> plt.close(display.figure_)
    """

    def __init__(
        self,
        start_scores: ArrayLike,
        end_scores: ArrayLike,
        previous_words: Any = (),
        previous_word_scores: ArrayLike = (),
        *,
        min_n: int = 1,
    ) -> None:
        shape = np.shape(start_scores)
        if len(shape) != 2 or not shape[0] * shape[1]:
            raise ValueError(
                f"start_scores must have shape (n_orders, n_cells), neither 0, got {shape}."
            )
        n_previous = np.size(previous_word_scores)
        self.start_scores = checked_array(start_scores, "start_scores", shape)
        self.end_scores = checked_array(end_scores, "end_scores", shape)
        self.previous_words = object_array(previous_words, "previous_words", n_previous)
        self.previous_word_scores = checked_array(
            previous_word_scores, "previous_word_scores", (n_previous,)
        )
        self.min_n = min_n

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

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If there is no ContextVectorizer, if `ax` is no axes, or if `k` is no integer.
        ValueError
            If the vectorizer has ``context=False``, or if `k` is not positive.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.

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
        _plotting.import_pyplot()  # before anything is computed
        vectorizer = _vectorizer_of(estimator)
        check_is_fitted(vectorizer)
        if not vectorizer.context:
            raise ValueError("The vectorizer has context=False: it has learned nothing of places.")
        return cls.from_arrays(
            vectorizer.start_scores_,
            vectorizer.end_scores_,
            vectorizer.previous_words_,
            vectorizer.previous_word_scores_,
            min_n=vectorizer.ngram_range[0],
            k=k,
            ax=ax,
        )

    @classmethod
    def from_arrays(
        cls,
        start_scores: ArrayLike,
        end_scores: ArrayLike,
        previous_words: Any = (),
        previous_word_scores: ArrayLike = (),
        *,
        min_n: int = 1,
        k: int = 8,
        ax: Any = None,
    ) -> Self:
        """Draw given scores.

        Parameters
        ----------
        start_scores, end_scores, previous_words, previous_word_scores, min_n
            As in :class:`ContextDisplay`.
        k, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        display : ContextDisplay
            The display, drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the arrays disagree in shape or are not finite.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from sklearn_clsattn.inspection import ContextDisplay
        >>> display = ContextDisplay.from_arrays([[0.2, -0.3]], [[0.9, -0.2]])
        >>> plt.close(display.figure_)
        """
        display = cls(start_scores, end_scores, previous_words, previous_word_scores, min_n=min_n)
        return display.plot(ax, k=k)

    def plot(self, ax: Any = None, *, k: int = 8) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of three matplotlib Axes, default=None
            Where to draw; by default a new figure is made.
        k : int, default=8
            Maximum number of words before that raise, and that lower, what follows them.

        Returns
        -------
        self : ContextDisplay
            The display.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If a parameter has the wrong type or is out of its range.
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

    def to_frame(self, of: Literal["positions", "words"] = "positions") -> pd.DataFrame:
        """Return the numbers that are drawn.

        Parameters
        ----------
        of : {"positions", "words"}, default="positions"
            Whether to return one row for every number of words, side and cell of positions, or one
            row a word before, highest score first.

        Returns
        -------
        frame : DataFrame
            With columns n_words, counted_from, first_position, score and multiplier; or
            previous_word, score and multiplier.

        Raises
        ------
        ValueError
            If `of` is neither.
        """
        if of == "words":
            order = np.argsort(-self.previous_word_scores, kind="stable")
            scores = self.previous_word_scores[order]
            columns: dict[str, Any] = {"previous_word": self.previous_words[order]}
        elif of == "positions":
            tables = np.stack([self.start_scores, self.end_scores], axis=1)
            order, side, cell = np.indices(tables.shape).reshape(3, -1)
            scores = tables.ravel()
            columns = {
                "n_words": order + self.min_n,
                "counted_from": np.array(["start", "end"], dtype=object)[side],
                "first_position": 2**cell,
            }
        else:
            raise ValueError(f'of must be "positions" or "words", got {of!r}.')
        return pd.DataFrame({**columns, "score": scores, "multiplier": np.exp(scores / 2)})

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
        seen = np.flatnonzero((scores != 0).any(axis=0))
        cells = cells[: seen.max(initial=0) + 1]
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
    found = getattr(estimator, "best_estimator_", estimator)
    for step in [found, *(one for _, one in getattr(found, "steps", ()))]:
        if isinstance(step, ContextVectorizer):
            return step
    raise TypeError(
        "Expected a ContextVectorizer, or a Pipeline (or fitted search over such) that has one for "
        f"a step, got {type(estimator).__name__}."
    )
