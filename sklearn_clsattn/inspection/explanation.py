"""Explanations: the terms of decisions, as data, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from .._types import Array, Numbers
from .decision_sums import Likeness
from .displays import draw_waterfall
from .edited_text import EditableText, delete_spans
from .formatting import shortened
from .minimal_sets import MinimalSet, MinimalSets, WordQuestion
from .pages import explanation_html, framed
from .predictor import TextModel
from .shown_classes import class_pairs, difference, position
from .terminal import render_text
from .token_positions import LocatedText
from .view import views

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_HEIGHT = 340  # about that of a document in a notebook, in pixels; the frame fits itself

# Fields with a row for each document, and with a row for each token of each document.
_BY_DOCUMENT = ["index", "cls_attention", "decision", "probability", "predicted"]
_BY_DOCUMENT += ["predicted_probability", "true"]
_BY_ENTRY = ["tokens", "weights", "attention", "values", "contributions"]
_BY_ENTRY += ["own_contributions", "vector_contributions"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Explanations of predictions: what each token of each document adds to the decision.

    The tokens of all documents are concatenated. Use `explanation[i]`, slices, masks, index arrays
    or iteration to get explanations of fewer documents. For each document, contributions plus
    intercept equal the decision, and the attention shares, including that of ``<cls>``, sum to 1
    (except in an empty document without ``<cls>``, where nothing has attention).

    Where decisions are no sums (`is_sum` is False), tokens are the words of the texts, and a
    contribution is the *effect* of a word: the decision less that for the text without the word.

    Attributes
    ----------
    classes, targets : ndarray of shape (n_classes,), (n_targets,)
        The classes of the classifier, and the explained classes: one of two classes (its decision
        is the log-odds), or all or one of more classes.
    intercept : ndarray of shape (n_targets,), or None
        The intercepts of these decisions; None if they are no sums.
    index : ndarray of shape (n_documents,)
        The positions of the documents in the input of `explain`.
    indptr : ndarray of shape (n_documents + 1,)
        The tokens of document i are those at ``indptr[i]:indptr[i + 1]``.
    tokens, weights, attention : ndarray of shape (n_entries,)
        The tokens' names, their weights in the document (such as counts), and their shares of its
        attention (None for other models than this package's). With a
        :class:`~sklearn_clsattn.text.ContextVectorizer` with characters, tokens
        are words and word n-grams, each together with its character n-grams.
    values : ndarray of shape (n_entries, n_targets), or None
        What a unit of attention on the token adds to the decision. With two layers, this includes
        the tokens that it attends to (NaN if its attention is 0). Of linear classifiers,
        coefficients; None for averages and where there is no sum.
    contributions : ndarray of shape (n_entries, n_targets)
        What the token adds to the decision: attention times value, or weight times coefficient.
    own_contributions : ndarray of shape (n_entries, n_targets), or None
        If tokens have character n-grams, what a token adds without these, which add the rest of
        `contributions`; NaN for a word that is not in the vocabulary, which is counted only by its
        characters.
    vector_contributions : ndarray of shape (n_entries, n_targets), or None
        If tokens have vectors, the part of a token's contribution that comes from its vector. It
        overlaps with `own_contributions`: the two do not add up to `contributions`.
    cls_attention : ndarray of shape (n_documents,), or None
        Share of attention that ``<cls>`` keeps. Its value, and so its contribution, is 0.
    decision, probability : ndarray of shape (n_documents, n_targets)
        The decision values and probabilities of the explained classes. Where there is no sum, the
        decision is the probability, of two classes less a half. `probability` is None for
        estimators without ``predict_proba``.
    predicted, predicted_probability, true : ndarray of shape (n_documents,)
        Predicted classes, their probabilities, and the true classes (None if not given).
    texts : tuple of str, of length n_documents, or None
        The documents, if they are texts.
    text_model, likeness : object or None
        What predicts edited texts, if the documents are texts, and the vectors of tokens, if they
        have vectors.
    inside : str
        Whose decisions are explained, if the estimator predicts with other probabilities or
        thresholds, or is an average, such as a calibrated classifier.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_clsattn import ClsAttentionClassifier
    >>> from sklearn_clsattn.inspection import explain
    >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
    >>> labels = ["good", "bad", "good", "bad"]
    >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
    >>> explanation = explain(model, ["a terrific but boring film", "fun"])
    >>> explanation
    <Explanation of 2 documents: evidence for 'good'>
    >>> fun = explanation[1]
    >>> fun.tokens.tolist(), fun.predicted.tolist()
    (['fun'], ['good'])
    >>> bool(abs(fun.contributions.sum() + fun.intercept[0] - fun.decision[0, 0]) < 1e-12)
    True
    """

    classes: NDArray[Any]
    targets: NDArray[Any]
    intercept: Array | None
    index: Numbers
    indptr: Numbers
    tokens: NDArray[np.object_]
    weights: Array
    attention: Array | None
    values: Array | None
    contributions: Array
    own_contributions: Array | None
    vector_contributions: Array | None
    cls_attention: Array | None
    decision: Array
    probability: Array | None
    predicted: NDArray[Any]
    predicted_probability: Array | None
    true: NDArray[Any] | None
    texts: tuple[str, ...] | None
    text_model: TextModel | None
    likeness: Likeness | None
    inside: str = ""

    @property
    def is_sum(self) -> bool:
        """Whether the decisions are sums of the contributions, which else are effects of words."""
        return self.intercept is not None

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, list) and not key:
            key = slice(0)
        chosen = np.atleast_1d(np.arange(len(self))[key])
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.append(0, np.cumsum(lengths)).astype(self.indptr.dtype)
        # An entry's old position is the new one plus the shift of its document's start.
        shifts = self.indptr[chosen] - indptr[:-1]
        entries = np.arange(indptr[-1]) + np.repeat(shifts, lengths)
        parts: dict[str, Any] = {"indptr": indptr}
        for names, rows in ((_BY_DOCUMENT, chosen), (_BY_ENTRY, entries)):
            for name in names:
                field = getattr(self, name)
                parts[name] = None if field is None else field[rows]
        if self.texts is not None:
            parts["texts"] = tuple(self.texts[i] for i in chosen)
        return replace(self, **parts)

    def __repr__(self) -> str:
        count = f"{len(self):,} document{'' if len(self) == 1 else 's'}"
        if len(self.targets) > 1:
            return f"<Explanation of {count}: evidence for each of {len(self.targets)} classes>"
        return f"<Explanation of {count}: evidence for {self.targets.tolist()[0]!r}>"

    __str__ = shortened

    @cached_property
    def located_text(self) -> LocatedText | None:
        """The text of a single document, with the positions of its tokens; None for a matrix."""
        if self.texts is None or self.text_model is None:
            return None
        (text,) = self.texts
        return self.text_model.explained.locate(text, self.tokens.tolist())

    @cached_property
    def decision_without(self) -> Array | None:
        """The decisions for the texts without each token, (n_entries, n_targets), if any.

        A token is deleted with all words of all its occurrences, and the text is predicted again,
        when this is first asked for. NaN for tokens without a position in the text.
        """
        if self.texts is None:
            return None
        if not self.is_sum:
            rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
            return self.decision[rows] - self.contributions
        decisions = [np.empty((0, len(self.targets)))]
        for document in self:
            every_token = np.arange(len(document.tokens))
            decisions.append(document.predict_without(every_token))
        return np.concatenate(decisions)

    def predict_without(self, tokens: Numbers) -> Array:
        """Return the decisions for a single text without some of its tokens, one at a time.

        Parameters
        ----------
        tokens : ndarray of shape (n,)
            Positions in `tokens`.

        Returns
        -------
        decisions : ndarray of shape (n, n_targets)
            NaN for a token without a position in the text.
        """
        decisions = np.full((len(tokens), len(self.targets)), np.nan)
        located = self.located_text
        if located is None or self.text_model is None:
            return decisions
        spans = located.token_spans()
        is_placed = np.array([token in spans for token in tokens.tolist()], dtype=bool)
        edited = [delete_spans(located.text, spans[token]) for token in tokens[is_placed].tolist()]
        if edited:
            decisions[is_placed] = self.text_model.decisions(edited)
        return decisions

    def counterfactual(self, *, to: Any = None, time_limit: float = 10.0) -> MinimalSets:
        """Return the fewest words of each text whose removal changes its prediction.

        Words are deleted from the text, each with all its occurrences, and the edited text is
        predicted: ``model.predict_proba([answer.edited_text])`` is what the answer says.

        Parameters
        ----------
        to : label, default=None
            The class to reach; by default any other class.
        time_limit : float, default=10.0
            Seconds for one text. The sets are the smallest that were found until then.

        Returns
        -------
        sets : MinimalSets
            One set per text, with ``statement``, ``to_frame()``, ``to_text()`` and ``to_html()``.
            Sets smaller than its `at_least` do not change the prediction: all of them were tried.
            If the time suffices, no word of a set can be put back.

        Notes
        -----
        Words are searched by predicting edited texts. All single words are tried, unless a text is
        very long, and all larger sets, size by size, while these are at most 2,000. Otherwise the
        most effective words are removed greedily, words that are not needed are put back, and
        exchanges of words are tried.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
        >>> labels = ["good", "bad", "good", "bad"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
        >>> sets = explain(model, ["Terrific, but long"]).counterfactual()
        >>> sets.statement(0)
        'Remove "Terrific" and the prediction becomes bad (80.8%).'
        >>> sets[0].edited_text
        ', but long'
        """
        number = None if to is None else position(to, self.classes.tolist(), "to")
        return self._minimal_sets(number, time_limit, is_kept=False)

    def sufficient(self, *, time_limit: float = 10.0) -> MinimalSets:
        """Return the fewest words of each text that alone keep its prediction.

        The text reduced to these words has the same prediction: it was predicted.

        Parameters
        ----------
        time_limit : float, default=10.0
            Seconds for one text, as in :meth:`counterfactual`.

        Returns
        -------
        sets : MinimalSets
            One set per text.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
        >>> labels = ["good", "bad", "good", "bad"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
        >>> explain(model, ["Terrific, but long"]).sufficient()[0].edited_text
        'Terrific'
        """
        return self._minimal_sets(None, time_limit, is_kept=True)

    def _minimal_sets(self, to: int | None, time_limit: float, is_kept: bool) -> MinimalSets:
        """Return the minimal sets of all texts; `to` is the number of the class to reach."""
        check_scalar(time_limit, "time_limit", Real, min_val=0, include_boundaries="neither")
        if self.texts is None:
            raise ValueError(
                "words are removed from texts, and none were explained: pass texts, and the whole "
                "Pipeline, to explain"
            )
        sets = tuple(one._minimal_set(to, time_limit, is_kept) for one in self)
        return MinimalSets(sets, is_kept, self.classes, self.targets)

    def _minimal_set(self, to: int | None, time_limit: float, is_kept: bool) -> MinimalSet:
        """Return the minimal set of a single text."""
        assert self.texts is not None
        assert self.text_model is not None
        labels = self.classes.tolist()
        present = labels.index(self.predicted.tolist()[0])
        text = EditableText(self.texts[0])
        suspicion = self._suspicion(text, present)
        predictor = self.text_model.predictor
        question = WordQuestion(text, predictor, present, to, is_kept, suspicion)
        return question.answer(int(self.index[0]), labels, time_limit)

    def _suspicion(self, text: EditableText, present: int) -> Array:
        """Return the part of each word of a single text in the lead of its class, (n_words,).

        A word has the contributions of the tokens that begin in it.
        """
        # 1) What each token adds to the lead.
        if len(self.targets) == 1:
            is_present = self.targets.tolist()[0] == self.classes.tolist()[present]
            lead = self.contributions[:, 0] if is_present else -self.contributions[:, 0]
        else:
            others = self.decision[0].copy()
            others[present] = -np.inf
            lead = difference(self.contributions, present, others.argmax())
        # 2) The sums over the tokens that begin in each word.
        located = self.located_text
        assert located is not None
        added = np.zeros(len(located.text) + 1)  # by the tokens that begin before each character
        for token, first_word, _, share in located.occurrences:
            start, _ = located.words[first_word]
            added[start + 1] += share * lead[token]
        sums = np.cumsum(added)
        suspicion = np.zeros(len(text.words))
        for number, word in enumerate(text.words):
            suspicion[number] = sum(sums[stop] - sums[start] for start, stop in word.spans)
        return suspicion

    def to_frame(self, *, target: Any = None) -> pd.DataFrame:
        """Return the explanation as a data frame, one row per term of a document's decision.

        With more than two classes, two are compared: each number is that of `target` minus that of
        `against`, and so is the decision (with this package's models, the log-odds of one against
        the other).

        Parameters
        ----------
        target : label, default=None
            The class to show; by default the predicted class of each document. It is compared with
            the true class, if that is known and different, and otherwise with the class with the
            next highest decision. A `target` that was not predicted is compared with the one that
            was.

        Returns
        -------
        frame : DataFrame
            The column `kind` is "token", "cls" or "intercept". A document's contributions sum to
            its decision, and its attention shares to 1. If words have character n-grams,
            `own_contribution` is the contribution without these (NaN for a word that is not in the
            vocabulary). There is `vector_contribution` if tokens have vectors, `decision_without`
            for texts, and `against` if classes are compared. Values that do not apply are NaN.
            Other models than this package's have no `attention`. Where decisions are no sums, all
            rows are tokens, which have an `effect` instead of `value` and `contribution`.
        """
        k, j = class_pairs(self, target)
        documents = np.arange(len(self))
        rows = np.repeat(documents, np.diff(self.indptr))
        # 1) A row per token.
        first = k[rows]
        second = j[rows]
        columns: dict[str, Any] = {
            "row": rows,
            "token": pd.Series(self.tokens, dtype=object),  # a token may have lone surrogates
            "kind": "token",
            "weight": self.weights,
        }
        if self.attention is not None:
            columns["attention"] = self.attention
        for name, by_class in (
            ("value", self.values),
            ("contribution" if self.is_sum else "effect", self.contributions),
            ("own_contribution", self.own_contributions),
            ("vector_contribution", self.vector_contributions),
            ("decision_without", self.decision_without),
        ):
            if by_class is not None:
                columns[name] = difference(by_class, first, second)
        parts = [pd.DataFrame(columns)]
        # 2) A row per document for <cls>, and one for the intercept.
        if self.cls_attention is not None:
            columns = {"row": documents, "token": "<cls>", "kind": "cls"}
            columns |= {"attention": self.cls_attention, "value": 0.0, "contribution": 0.0}
            parts.append(pd.DataFrame(columns))
        if self.intercept is not None:
            added = difference(self.intercept + np.zeros_like(self.decision), k, j)
            columns = {"row": documents, "token": "<intercept>", "kind": "intercept"}
            parts.append(pd.DataFrame(columns | {"contribution": added}))
        frame = pd.concat(parts).sort_values("row", kind="stable", ignore_index=True)
        # 3) The documents and classes.
        labels = np.array([*self.targets.tolist(), None], dtype=object)
        of_document = frame.pop("row").to_numpy()
        frame.insert(0, "document", self.index[of_document])
        frame.insert(1, "target", labels[k[of_document]].tolist())
        if len(self.targets) > 1:
            frame.insert(2, "against", labels[j[of_document]].tolist())
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as nested dictionaries and lists of plain Python values.

        Returns
        -------
        explanation : dict
            With `classes`, `targets`, `intercept` and `documents`. Lists with plural names, such as
            a token's `contributions`, have one entry per target. What an explanation does not
            have is None. It can be written as JSON if the labels can.
        """
        return {
            "classes": self.classes.tolist(),
            "targets": self.targets.tolist(),
            "intercept": None if self.intercept is None else self.intercept.tolist(),
            "documents": [one._document() for one in self],
        }

    def _document(self) -> dict[str, Any]:
        """Return the only document as plain values."""
        # 1) The tokens, column by column, then one by one.
        nothing = [None] * len(self.tokens)
        columns = {
            "token": list(map(str, self.tokens)),
            "weight": self.weights.tolist(),
            "attention": nothing if self.attention is None else self.attention.tolist(),
        }
        for name, by_class in (
            ("values", self.values),
            ("contributions", self.contributions),
            ("own_contributions", self.own_contributions),
            ("decisions_without", self.decision_without),
            ("vector_contributions", self.vector_contributions),
        ):
            columns[name] = nothing if by_class is None else _without_nan(by_class)
        tokens = []
        for row in zip(*columns.values(), strict=True):
            tokens.append(dict(zip(columns, row, strict=True)))
        # 2) <cls>, if there is one.
        cls = None
        if self.cls_attention is not None:
            attention = float(self.cls_attention[0])
            cls = {"attention": attention, "contributions": [0.0] * len(self.targets)}
        # 3) The document.
        return {
            "document": int(self.index[0]),
            "predicted": self.predicted.tolist()[0],
            "predicted_probability": _first_row(self.predicted_probability),
            "true": _first_row(self.true),
            "decisions": self.decision[0].tolist(),
            "probabilities": _first_row(self.probability),
            "text": None if self.texts is None else self.texts[0],
            "tokens": tokens,
            "cls": cls,
        }

    def to_text(
        self,
        *,
        target: Any = None,
        top: int = 8,
        color: bool | None = None,
        width: int | None = None,
    ) -> str:
        """Return the explanation as text for a terminal.

        First come a sentence on the strongest tokens, the text, and the fewest words whose removal
        changes the prediction, as in :meth:`counterfactual`; then, as details, the decision as a
        sum and its terms in tables. Words to remove are searched if there are at most 20 texts, in
        those of at most 2,000 words.

        Parameters
        ----------
        target : label, default=None
            The class to show, compared as in :meth:`to_frame`; by default the predicted class of
            each document if all are explained.
        top : int, default=8
            Number of tokens to list for each of the two sides. Of texts of more than 20,000
            characters, only the passages that matter most are shown.
        color : bool, default=None
            Whether to use colours; by default if standard output is a terminal with colours.
            Without colours, the strongest words are marked [+so] and [-so].
        width : int, default=None
            Number of columns; by default that of the terminal.

        Returns
        -------
        text : str
            The text, with ANSI codes if colours are used.
        """
        return render_text(self, target, top, color, width)

    def to_html(self, *, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return the explanation as HTML without scripts that needs no network.

        The order is that of :meth:`to_text`; the details, which unfold, also have the text shaded
        by attention. More than 20 documents are collapsed to one line each. Long texts start with
        their most important passages; with many documents, the page shows only these.

        Parameters
        ----------
        target, top
            As in :meth:`to_text`.
        fragment : bool, default=False
            Whether to return an element for another page instead of a complete page.

        Returns
        -------
        html : str
            The HTML; write it as UTF-8.
        """
        return self._html(len(self), target, top, fragment)

    def plot(self, *, target: Any = None, max_display: int = 10, ax: Any = None) -> Any:
        """Draw the decision of one document as bars, from the intercept to the decision.

        Each bar is the contribution of a token, as in ``shap.plots.waterfall``. They start at the
        intercept, below, and end at the decision, above, with the strongest tokens on top. Blue
        bars favour the class shown, orange bars the other one. The widths of the bars and the
        intercept add up to the decision.

        Parameters
        ----------
        target : label, default=None
            The class to show, compared with another as in :meth:`to_frame`.
        max_display : int, default=10
            Maximum number of bars. If there are more tokens, the last bar is the sum of all others.
        ax : matplotlib Axes, default=None
            The axes to draw on. By default a new figure is created.

        Returns
        -------
        ax : matplotlib Axes
            The axes of the plot.

        Raises
        ------
        ValueError
            If the explanation is of no or several documents: choose one, ``explanation[0].plot()``.
            If decisions are no sums.
        ImportError
            If matplotlib is not installed.

        See Also
        --------
        TokenImportanceDisplay : The most important tokens over many documents.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
        >>> labels = ["good", "bad", "good", "bad"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
        >>> ax = explain(model, ["a terrific but long film"]).plot()
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['terrific', 'long', 'film']
        """
        check_scalar(max_display, "max_display", Integral, min_val=1)
        if not self.is_sum:
            raise ValueError(
                "plot draws a decision that is a sum, and this one is not: see to_html()"
            )
        if len(self) != 1:
            raise ValueError(
                f"plot draws the decision of one document, got {len(self)}: choose one, such as "
                "explanation[0].plot()"
            )
        (view,) = views(self, target, 0, with_decision_without=False)
        return draw_waterfall(view, max_display, ax)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown), repr(self), 60 + _HEIGHT * n_shown)

    def _html(self, n_shown: int, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return a page, or a part of one, of the first documents."""
        check_scalar(top, "top", Integral, min_val=0)
        return explanation_html(self, n_shown, target, top, fragment)


def _first_row(values: Any) -> Any:
    """Return the first row of an array as plain values, None of None."""
    return None if values is None else values.tolist()[0]


def _without_nan(numbers: Any) -> list[list[float | None]]:
    """Return a matrix as lists, with None for NaN, which JSON does not have."""
    known: Any = np.where(np.isnan(numbers), None, numbers)
    lists: list[list[float | None]] = known.tolist()
    return lists
