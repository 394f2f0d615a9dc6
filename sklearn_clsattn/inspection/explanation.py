"""Explanations: the terms of decisions, as data, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from ._explanation_page import explanation_html
from .formatting import shortened
from .minimal_sets import MinimalSets, minimal_sets
from .pages import framed
from .terminal import render_text
from .terms import DecisionTerms, difference, pairs
from .view import views

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_HEIGHT = 340  # about that of a document in a notebook, in pixels; the frame fits itself


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(DecisionTerms):
    """Exact explanations of predictions: what each token of each document adds to the decision.

    The tokens of all documents are concatenated. Use `explanation[i]`, slices, masks, index arrays
    or iteration to get explanations of fewer documents. For each document, contributions plus
    intercept equal the decision, and the attention shares, including that of ``<cls>``, sum to 1
    (except in an empty document without ``<cls>``, where nothing has attention).

    Attributes
    ----------
    classes, targets : ndarray of shape (n_classes,), (n_targets,)
        The classes of the classifier, and the explained classes: one of two classes (its decision
        is the log-odds), or all or one of more classes.
    intercept : ndarray of shape (n_targets,)
        The intercepts of these decisions.
    index : ndarray of shape (n_documents,)
        The positions of the documents in the input of `explain`.
    indptr : ndarray of shape (n_documents + 1,)
        The tokens of document i are those at ``indptr[i]:indptr[i + 1]``.
    columns, tokens, weights, attention : ndarray of shape (n_entries,)
        The tokens' columns in the classifier's matrix, their names, their weights in the document
        (such as counts), and their shares of its attention. With a
        :class:`~sklearn_clsattn.text.ContextVectorizer` with characters, tokens are words and word
        n-grams, each together with its character n-grams, and `columns` are their numbers.
    values : ndarray of shape (n_entries, n_targets)
        What a unit of attention on the token adds to the decision. With two layers, this includes
        the tokens that it attends to (NaN if its attention is 0).
    contributions : ndarray of shape (n_entries, n_targets)
        What the token adds to the decision: attention times value.
    own_contributions : ndarray of shape (n_entries, n_targets), or None
        If tokens have character n-grams, what a token adds without these, which add the rest of
        `contributions`; NaN for a word that is not in the vocabulary, which is counted only by its
        characters.
    vector_contributions : ndarray of shape (n_entries, n_targets), or None
        If tokens have vectors, the part of a token's contribution that comes from its vector. It
        overlaps with `own_contributions`: the two do not add up to `contributions`.
    cls_attention : ndarray of shape (n_documents,)
        Share of attention that ``<cls>`` keeps. Its value, and so its contribution, is 0.
    decision, probability : ndarray of shape (n_documents, n_targets)
        The decision values and probabilities of the explained classes.
    predicted, predicted_probability, true : ndarray of shape (n_documents,)
        Predicted classes, their probabilities, and the true classes (None if not given).
    texts : tuple of length n_documents
        For each document, a tuple of its texts, each with `name`, `text`, and the positions of
        tokens: `words`, `occurrences` and `shares`. Empty if a matrix was explained.
    decision_without_count : ndarray of shape (n_entries, n_targets), or None
        For a matrix, the decision if the token's weight were 0; None for texts, and with two layers
        of attention.
    decision_without : ndarray of shape (n_entries, n_targets), or None
        For texts, the decision for the text without the token, that is, without all words of all
        its occurrences; it is predicted when it is first asked for, and NaN for tokens without a
        position in the text. For a matrix, `decision_without_count`.
    model : object or None
        The model with one layer of attention, from which minimal sets of tokens are computed.
    documents, text_model
        For texts, the documents as they can be edited, and the estimator that predicts them.

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

    def __repr__(self) -> str:
        count = f"{len(self):,} document{'' if len(self) == 1 else 's'}"
        if len(self.targets) > 1:
            return f"<Explanation of {count}: evidence for each of {len(self.targets)} classes>"
        return f"<Explanation of {count}: evidence for {self.targets.tolist()[0]!r}>"

    __str__ = shortened

    def counterfactual(
        self,
        unit: Literal["tokens", "words"] = "tokens",
        *,
        to: Any = None,
        time_limit: float = 10.0,
    ) -> MinimalSets:
        """Return the fewest words or counts of each document whose removal changes its prediction.

        Parameters
        ----------
        unit : {"tokens", "words"}, default="tokens"
            With "words", words are deleted from the text, each with all its occurrences, and the
            edited text is predicted: ``model.predict_proba([answer.edited_text])`` is what the
            answer says. With "tokens", counts of the bag that the classifier reads are set to 0:
            the steps before it are not repeated.
        to : label, default=None
            The class to reach; by default any other class.
        time_limit : float, default=10.0
            Seconds for one document. Sets of words are the smallest that were found until then;
            for tokens, it limits the integer program that compares more than two classes.

        Returns
        -------
        sets : MinimalSets
            One set per document, with ``statement``, ``to_frame()``, ``to_text()`` and
            ``to_html()``. A set changes the prediction by more than rounding. Sets smaller than
            its `at_least` do not: for words, all of them were tried, and for tokens it is proved.
            If the time suffices, no word of a set of words can be put back.

        Notes
        -----
        Words are searched by predicting edited texts. All single words are tried, and all larger
        sets, size by size, while these are at most 2,000. Otherwise the most effective words are
        removed greedily, words that are not needed are put back, and exchanges of words are tried.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
        >>> labels = ["good", "bad", "good", "bad"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
        >>> explanation = explain(model, ["Terrific, but long"])
        >>> sets = explanation.counterfactual("words")
        >>> sets.statement(0)
        'Remove "Terrific" and the prediction becomes bad (69.2%).'
        >>> sets[0].edited_text
        ', but long'
        >>> explanation.counterfactual().statement(0)
        'Set the count of "terrific" to 0 and the prediction becomes bad (69.2%).'
        """
        return minimal_sets(self, unit, to, time_limit, is_kept=False)

    def sufficient(
        self, unit: Literal["tokens", "words"] = "tokens", *, time_limit: float = 10.0
    ) -> MinimalSets:
        """Return the fewest words, or counts, of each document that keep its prediction.

        Parameters
        ----------
        unit : {"tokens", "words"}, default="tokens"
            With "words", the text reduced to these words has the same prediction: it was predicted.
            With "tokens", these counts guarantee the prediction, even if the other counts are
            reduced or set to 0. This is an abductive explanation [1]_, or an anchor that always
            holds. New tokens are not considered.
        time_limit : float, default=10.0
            Seconds for one document, as in :meth:`counterfactual`.

        Returns
        -------
        sets : MinimalSets
            One set per document. With "tokens", its `margin` is the lowest possible margin, which
            is guaranteed.

        References
        ----------
        .. [1] J. Marques-Silva, T. Gerspacher, M. C. Cooper, A. Ignatiev, N. Narodytska (2020).
           Explaining Naive Bayes and Other Linear Classifiers with Polynomial Time and Delay.
           Advances in Neural Information Processing Systems 33.

        Examples
        --------
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> X = [[2, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 2, 0, 1]]
        >>> model = ClsAttentionClassifier().fit(X, ["good", "good", "bad", "bad"])
        >>> sets = explain(model, X).sufficient()
        >>> sets[0].tokens, bool(sets[0].margin > 0)
        (('x0',), True)
        """
        return minimal_sets(self, unit, None, time_limit, is_kept=True)

    def to_frame(self, *, target: Any = None) -> pd.DataFrame:
        """Return the explanation as a data frame, one row per term of a document's decision.

        With more than two classes, two are compared: each number is that of `target` minus that of
        `against`, and the decision is the log-odds of one against the other.

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
            vocabulary). There is `vector_contribution` if tokens have vectors, and `against` if
            classes are compared. Values that do not apply are NaN.
        """
        k, j = pairs(self, target)
        n = len(self)
        documents = np.arange(n)
        # 1) A row per token, then one per document for <cls>, and one for the intercept.
        rows = np.concatenate([np.repeat(documents, np.diff(self.indptr)), documents, documents])
        tokens = [*self.tokens.tolist(), *["<cls>"] * n, *["<intercept>"] * n]
        labels = np.array([*self.targets.tolist(), None], dtype=object)
        nan = np.full(n, np.nan)
        zeros = np.zeros_like(self.decision)
        unknown = np.full_like(self.decision, np.nan)

        def compared(token_values: Any, cls_values: Any, intercept_values: Any) -> Any:
            """Return the differences between the two classes, (n_rows,)."""
            by_class = np.concatenate([token_values, cls_values, intercept_values])
            return difference(by_class, k[rows], j[rows])

        # 2) The columns, and those that not every explanation has.
        columns = {
            "document": self.index[rows],
            "target": labels[k[rows]].tolist(),
            "against": labels[j[rows]].tolist(),
            "token": pd.Series(tokens, dtype=object),  # a token may have lone surrogates
            "kind": np.repeat(["token", "cls", "intercept"], [len(self.tokens), n, n]),
            "weight": np.concatenate([self.weights, nan, nan]),
            "attention": np.concatenate([self.attention, self.cls_attention, nan]),
            "value": compared(self.values, zeros, unknown),
            "contribution": compared(self.contributions, zeros, zeros + self.intercept),
        }
        if len(self.targets) == 1:
            del columns["against"]
        for name, token_values in (
            ("own_contribution", self.own_contributions),
            ("vector_contribution", self.vector_contributions),
            ("decision_without", self.decision_without),
        ):
            if token_values is not None:
                columns[name] = compared(token_values, unknown, unknown)
        # 3) The rows of each document together.
        by_document = np.argsort(rows, kind="stable")
        return pd.DataFrame(columns).iloc[by_document].reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as nested dictionaries and lists of plain Python values.

        Returns
        -------
        explanation : dict
            With `classes`, `targets`, `intercept` and `documents`. Lists with plural names, such as
            a token's `contributions`, have one entry per target. It can be written as JSON if the
            labels can.
        """
        return {
            "classes": self.classes.tolist(),
            "targets": self.targets.tolist(),
            "intercept": self.intercept.tolist(),
            "documents": [one._document() for one in self],
        }

    def _document(self) -> dict[str, Any]:
        """Return the first document as plain values."""
        # 1) The tokens, column by column, then one by one.
        nothing = [None] * len(self.tokens)
        columns = {
            "token": list(map(str, self.tokens)),
            "column": self.columns.tolist(),
            "weight": self.weights.tolist(),
            "attention": self.attention.tolist(),
            "values": _without_nan(self.values),
            "contributions": self.contributions.tolist(),
            "own_contributions": nothing,
            "decisions_without": nothing,
        }
        if self.own_contributions is not None:
            columns["own_contributions"] = _without_nan(self.own_contributions)
        if self.decision_without is not None:
            columns["decisions_without"] = _without_nan(self.decision_without)
        if self.vector_contributions is not None:
            columns["vector_contributions"] = self.vector_contributions.tolist()
        tokens = []
        for row in zip(*columns.values(), strict=True):
            tokens.append(dict(zip(columns, row, strict=True)))
        # 2) The document.
        return {
            "document": int(self.index[0]),
            "predicted": self.predicted.tolist()[0],
            "predicted_probability": float(self.predicted_probability[0]),
            "true": None if self.true is None else self.true.tolist()[0],
            "decisions": self.decision[0].tolist(),
            "probabilities": self.probability[0].tolist(),
            "texts": [{"name": text.name, "text": text.text} for text in self.texts[0]],
            "tokens": tokens,
            "cls": {
                "attention": float(self.cls_attention[0]),
                "contributions": [0.0] * len(self.targets),
            },
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

        First come a sentence on the strongest tokens, the text, and the fewest words (for a matrix,
        counts) whose removal changes the prediction, as in :meth:`counterfactual`; then, as
        details, the decision as a sum and its terms in tables. Words to remove are searched in at
        most 20 documents of at most 2,000 words each.

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
        from ._waterfall import draw_waterfall

        check_scalar(max_display, "max_display", Integral, min_val=1)
        if len(self) != 1:
            raise ValueError(
                f"plot draws the decision of one document, got {len(self)}: choose one, such as "
                "explanation[0].plot()"
            )
        (view,) = views(self, target, 0, with_effects=False)
        return draw_waterfall(view, max_display, ax)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown), repr(self), 60 + _HEIGHT * n_shown)

    def _html(self, n_shown: int, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return a page, or a part of one, of the first documents."""
        check_scalar(top, "top", Integral, min_val=0)
        return explanation_html(self, n_shown, target, top, fragment)


def _without_nan(numbers: Any) -> list[list[float | None]]:
    """Return a matrix as lists, with None for NaN, which JSON does not have."""
    known: Any = np.where(np.isnan(numbers), None, numbers)
    lists: list[list[float | None]] = known.tolist()
    return lists
