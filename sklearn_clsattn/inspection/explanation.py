"""Explanations: the terms of decisions, as data, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from .formatting import shortened
from .minimal.sets import MinimalSets, minimal_sets
from .pages import MAX_IN_FULL, TOKENS_OF_MANY, framed, overview, render, spaces
from .terminal import render_text
from .terms import DecisionTerms, difference, pairs
from .view import views

_SHOWN_IN_NOTEBOOK = 10  # documents at most
_HEIGHT = 340  # about that of a document in a notebook, in pixels; the frame fits itself


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(DecisionTerms):
    """Exact explanations of predictions: what every token of every document adds to the decision.

    The tokens of all documents are concatenated. `explanation[i]`, slices, masks and index arrays
    give explanations of fewer documents, and so does iteration. For every document, contributions
    plus intercept are the decision, and the attention shares sum to 1 with that of ``<cls>``,
    except in an empty document without ``<cls>``, where nothing has attention.

    Attributes
    ----------
    classes, targets : ndarray of shape (n_classes,), (n_targets,)
        The classes of the classifier, and those that are explained: of two classes one, the
        decision being its log-odds; of more, all or one.
    intercept : ndarray of shape (n_targets,)
        The intercepts of these decisions.
    index : ndarray of shape (n_documents,)
        The documents' positions among those that were explained.
    indptr : ndarray of shape (n_documents + 1,)
        The tokens of document i are those at ``indptr[i]:indptr[i + 1]``.
    columns, tokens, weights, attention : ndarray of shape (n_entries,)
        The tokens' columns in the classifier's matrix, their names, their weights in the document,
        such as counts, and their shares of its attention. Of a
        :class:`~sklearn_clsattn.text.ContextVectorizer` with characters, tokens are words and
        n-grams of words, each with its character n-grams, and `columns` their numbers.
    values : ndarray of shape (n_entries, n_targets)
        What a unit of attention on the token adds to the decision; with two layers, with what
        the token attends to (NaN where its attention is 0).
    contributions : ndarray of shape (n_entries, n_targets)
        What the token adds to the decision: attention times value.
    own_contributions : ndarray of shape (n_entries, n_targets), or None
        Where tokens have character n-grams, what a token adds without these; NaN for a word that
        is not in the vocabulary, which counts by its characters alone.
    vector_contributions : ndarray of shape (n_entries, n_targets), or None
        Where tokens have vectors, what of a token's contribution these add.
    decision_without : ndarray of shape (n_entries, n_targets), or None
        The decision if the token's weight were 0; None with two layers of attention.
    cls_attention : ndarray of shape (n_documents,)
        Share of attention that ``<cls>`` keeps. Its value, and so its contribution, is 0.
    decision, probability : ndarray of shape (n_documents, n_targets)
        The decision values, and the probabilities of the classes explained.
    predicted, predicted_probability, true : ndarray of shape (n_documents,)
        Predicted classes, their probabilities, and the true classes, None where not given.
    texts : tuple of length n_documents
        For each document a tuple of its texts, each with `name`, `text`, and the positions of
        tokens: `words`, `occurrences` and `shares`; empty where a matrix was explained.
    model : object or None
        The model of one layer of attention, from which counterfactuals are computed.

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
    <Explanation of 2 documents: what speaks for 'good'>
    >>> fun = explanation[1]
    >>> fun.tokens.tolist(), fun.predicted.tolist()
    (['fun'], ['good'])
    >>> bool(abs(fun.contributions.sum() + fun.intercept[0] - fun.decision[0, 0]) < 1e-12)
    True
    """

    def __repr__(self) -> str:
        count = f"{len(self):,} document{'' if len(self) == 1 else 's'}"
        if len(self.targets) > 1:
            return f"<Explanation of {count}: what speaks for each of {len(self.targets)} classes>"
        return f"<Explanation of {count}: what speaks for {self.targets.tolist()[0]!r}>"

    __str__ = shortened

    def counterfactual(
        self,
        change: Literal["tokens", "words", "add"] = "tokens",
        *,
        to: Any = None,
        time_limit: float = 10.0,
    ) -> MinimalSets:
        """Return the smallest change of each document that changes its prediction, proved.

        It is found by sorting, or by an integer program where words share n-grams or several
        conditions hold at once. Steps before the classifier are not repeated for the changed
        document. With two layers of attention there is no such answer.

        Parameters
        ----------
        change : {"tokens", "words", "add"}, default="tokens"
            What is changed. "tokens": tokens of the bag are removed, each with all its occurrences
            and none of the others. "words": words of the text are removed wherever they stand,
            with every n-gram that has a part of them. "add": tokens of the vocabulary, each once.
        to : label, default=None
            The class to reach; None for any other.
        time_limit : float, default=10.0
            Seconds for one integer program, of which a document has one or, with words and
            several classes, one for each class.

        Returns
        -------
        sets : MinimalSets
            A set for each document, with ``statement``, ``to_frame()``, ``to_text()`` and
            ``to_html()``. It changes the prediction by more than rounding, and no set smaller than
            its `at_least` does.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn_clsattn import ClsAttentionClassifier
        >>> from sklearn_clsattn.inspection import explain
        >>> texts = ["a terrific film", "a boring film", "terrific fun", "long and boring"]
        >>> labels = ["good", "bad", "good", "bad"]
        >>> model = make_pipeline(CountVectorizer(), ClsAttentionClassifier()).fit(texts, labels)
        >>> sets = explain(model, ["terrific but long"]).counterfactual()
        >>> sets.statement(0)
        'Without the token "terrific", it is bad (69.2%).'
        """
        return minimal_sets(self, change, to, time_limit)

    def sufficient(self, *, time_limit: float = 10.0) -> MinimalSets:
        """Return the fewest tokens of each document that guarantee its prediction, proved.

        Whatever becomes of the other tokens, removed or kept, in whole or in part, the prediction
        stays: it is an abductive explanation [1]_, or an anchor that always holds. New tokens are
        not considered.

        Parameters
        ----------
        time_limit : float, default=10.0
            Seconds for the integer program of one document of more than two classes. Without an
            answer in time, the set is one of which no token can be left out.

        Returns
        -------
        sets : MinimalSets
            A set for each document. `margin` is the guaranteed one, the lowest there can be.

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
        return minimal_sets(self, time_limit=time_limit, is_kept=True)

    def to_frame(self, *, target: Any = None) -> pd.DataFrame:
        """Return the explanation as a data frame, a row for each term of a document's decision.

        Of more than two classes, two are compared: every number is that of `target` less that of
        `against`, and the decision is the log-odds of one against the other.

        Parameters
        ----------
        target : label, default=None
            The class to show; None for the predicted class of each document. It is compared with
            the true class where that is known and not the predicted one, else with the class with
            the next highest decision; a `target` that was not predicted, with the class that was.

        Returns
        -------
        frame : DataFrame
            The column `kind` says what a term is: "token", "cls" or "intercept". A document's
            contributions sum to its decision, and its attention shares to 1. `own_contribution` is
            there where words have character n-grams: the contribution without these, NaN for a
            word that is not in the vocabulary; `vector_contribution` where tokens have vectors.
            What does not apply is NaN; the column `against` is there where classes are compared.
        """
        k, j = pairs(self, target)
        n, every, nan = len(self), np.arange(len(self)), np.full(len(self), np.nan)
        zero, unknown = np.zeros_like(self.decision), np.full_like(self.decision, np.nan)
        rows = np.concatenate([np.repeat(every, np.diff(self.indptr)), every, every])
        labels = [*self.targets.tolist(), None]

        def compared(of_tokens: Any, of_cls: Any, of_intercept: Any) -> Any:
            return difference(np.concatenate([of_tokens, of_cls, of_intercept]), k[rows], j[rows])

        columns = {
            "document": self.index[rows],
            "target": [labels[at] for at in k[rows].tolist()],
            "against": [labels[at] for at in j[rows].tolist()],
            "token": np.concatenate([self.tokens, ["<cls>"] * n, ["<intercept>"] * n]),
            "kind": np.repeat(["token", "cls", "intercept"], [len(self.tokens), n, n]),
            "weight": np.concatenate([self.weights, nan, nan]),
            "attention": np.concatenate([self.attention, self.cls_attention, nan]),
            "value": compared(self.values, zero, unknown),
            "contribution": compared(self.contributions, zero, zero + self.intercept),
        }
        for name, known in (
            ("own_contribution", self.own_contributions),
            ("vector_contribution", self.vector_contributions),
            ("decision_without", self.decision_without),
        ):
            if known is not None:
                columns[name] = compared(known, unknown, unknown)
        if len(self.targets) == 1:
            del columns["against"]
        order = np.argsort(rows, kind="stable")
        return pd.DataFrame(columns).iloc[order].reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as nested dictionaries and lists of plain Python values.

        Returns
        -------
        explanation : dict
            With `classes`, `targets`, `intercept` and `documents`. Lists named in the plural, such
            as a token's `contributions`, have an entry for each target. It can be written as JSON,
            where the labels can.
        """
        return {
            "classes": self.classes.tolist(),
            "targets": self.targets.tolist(),
            "intercept": self.intercept.tolist(),
            "documents": [one._document() for one in self],
        }

    def _document(self) -> dict[str, Any]:
        """Return the first document as plain values."""
        without, own = self.decision_without, self.own_contributions
        nothing = [None] * len(self.tokens)
        tokens = {
            "token": map(str, self.tokens),
            "column": self.columns.tolist(),
            "weight": self.weights.tolist(),
            "attention": self.attention.tolist(),
            "values": _without_nan(self.values),
            "contributions": self.contributions.tolist(),
            "own_contributions": nothing if own is None else _without_nan(own),
            "decisions_without": nothing if without is None else without.tolist(),
        }
        if self.vector_contributions is not None:
            tokens["vector_contributions"] = self.vector_contributions.tolist()
        return {
            "document": int(self.index[0]),
            "predicted": self.predicted.tolist()[0],
            "predicted_probability": float(self.predicted_probability[0]),
            "true": None if self.true is None else self.true.tolist()[0],
            "decisions": self.decision[0].tolist(),
            "probabilities": self.probability[0].tolist(),
            "texts": [{"name": text.name, "text": text.text} for text in self.texts[0]],
            "tokens": [
                dict(zip(tokens, row, strict=True)) for row in zip(*tokens.values(), strict=True)
            ],
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

        Parameters
        ----------
        target : label, default=None
            The class to show, compared as in :meth:`to_frame`; None for the predicted class of
            each document where all are explained.
        top : int, default=8
            How many tokens for and against to list.
        color : bool, default=None
            Whether to use colours; None to use them where standard output is a terminal that
            has them. Without, the strongest words are marked [+so] and [-so].
        width : int, default=None
            Columns to use; None for those of the terminal.

        Returns
        -------
        text : str
            The text, with ANSI codes where colours are used.
        """
        return render_text(self, target, top, color, width)

    def to_html(self, *, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return the explanation as HTML that needs no network, and no scripts.

        More than 20 documents are folded to a line each, and of long texts the parts that matter
        most come first; of many documents, the page has nothing else.

        Parameters
        ----------
        target, top
            As in :meth:`to_text`.
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.

        Returns
        -------
        html : str
            To be written in UTF-8.
        """
        return self._html(len(self), target, top, fragment)

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown), repr(self), 60 + _HEIGHT * n_shown)

    def _html(self, n_shown: int, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return a page, or a part of one, of the first documents."""
        check_scalar(top, "top", Integral, min_val=0)
        if n_shown > MAX_IN_FULL:
            top = min(top, max(1, TOKENS_OF_MANY // (2 * n_shown)))
        shown = views(self[:n_shown], target, top)
        return render(
            "explanation.html",
            title=repr(self)[1:-1],
            views=shown,
            spaces=spaces(shown),
            overview=overview(shown),
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )


def _without_nan(numbers: Any) -> list[list[float | None]]:
    """Return a matrix as lists, with None for NaN, which JSON does not have."""
    return [[None if x != x else x for x in row] for row in numbers.tolist()]
