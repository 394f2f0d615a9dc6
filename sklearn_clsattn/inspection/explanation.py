"""Explanations: the terms of decisions, as data, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from .minimal.answers import counterfactuals, sufficient_sets
from .minimal.minimal_sets import MinimalSets
from .pages import render
from .terminal import render_text
from .terms import DecisionTerms
from .view import views

# The maximum number of documents in a notebook's cell.
_SHOWN_IN_NOTEBOOK = 10
LARGEST_PAGE = 1_000_000
"""Characters of the texts on one page."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(DecisionTerms):
    """Exact explanations of predictions: what every token of every document adds to the decision.

    Made by :func:`~sklearn_clsattn.inspection.explain`. The tokens of all documents are
    concatenated, those of document i at ``indptr[i]:indptr[i + 1]``: `explanation[i]`, slices,
    masks and index arrays give explanations of fewer documents, and so does iteration. For every
    document, contributions (with those of the others, where `top` was given) plus intercept are
    the decision, and the attention shares sum to 1 with that of ``<cls>``, except in an empty
    document without ``<cls>``, where nothing has attention.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes of the classifier.
    targets : ndarray of shape (n_targets,)
        The classes that are explained: for two classes one of them, the decision being its
        log-odds; for more, all or one.
    intercept : ndarray of shape (n_targets,)
        The intercepts of these decisions.
    index : ndarray of shape (n_documents,)
        The documents' positions among those that were explained.
    indptr : ndarray of shape (n_documents + 1,)
        Where the tokens of each document start.
    columns : ndarray of shape (n_entries,)
        The tokens' columns in the classifier's matrix.
    tokens : ndarray of shape (n_entries,)
        Their names.
    counts : ndarray of shape (n_entries,)
        The counts, or weights, in the classifier's input.
    attention : ndarray of shape (n_entries,)
        Shares of the document's attention.
    values : ndarray of shape (n_entries, n_targets)
        What a unit of attention on the token adds to the decision; with two layers, with what
        the token attends to (NaN where its attention is 0).
    contributions : ndarray of shape (n_entries, n_targets)
        What the token adds to the decision: attention times value.
    decision_without : ndarray of shape (n_entries, n_targets), or None
        The decision if the token's count were 0 and all other counts the same. None where it was
        not computed (see :func:`~sklearn_clsattn.inspection.explain`).
    cls_attention : ndarray of shape (n_documents,)
        Share of attention that ``<cls>`` keeps. Its value, and so its contribution, is 0.
    others_count : ndarray of shape (n_documents,)
        Number of further tokens of the document, which `top` left out.
    others_attention : ndarray of shape (n_documents,)
        Their attention shares together.
    others_contributions : ndarray of shape (n_documents, n_targets)
        Their contributions together.
    decision : ndarray of shape (n_documents, n_targets)
        The decision values.
    probability : ndarray of shape (n_documents, n_targets)
        Probabilities of the classes explained.
    predicted : ndarray of shape (n_documents,)
        Predicted classes.
    predicted_probability : ndarray of shape (n_documents,)
        Their probabilities.
    true : ndarray of shape (n_documents,), or None
        True classes, where they were given.
    texts : tuple of length n_documents
        For each document the texts that its tokens come from, a tuple of
        :class:`DocumentText`; empty where a matrix was explained.
    model : object or None
        The model behind, from which counterfactuals are computed, and which is pickled with the
        explanation; None with two layers of attention, which have none.

    See Also
    --------
    explain : Explain the predictions of a fitted classifier.

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

    def counterfactual(
        self,
        change: Literal["tokens", "words", "add"] = "tokens",
        *,
        to: Any = None,
        probability: float | None = None,
        time_limit: float = 10.0,
    ) -> MinimalSets:
        r"""Return the smallest change of each document that changes its prediction, proved.

        Parameters
        ----------
        change : {"tokens", "words", "add"}, default="tokens"
            What is changed. "tokens": tokens of the bag are removed, each with all its occurrences
            and none of the others. "words": words of the text are removed wherever they stand,
            with every n-gram that has a part of them. "add": tokens of the vocabulary, each once.
        to : label, default=None
            The class to reach; None for any other.
        probability : float, default=None
            For two classes, the probability of the explained class (``targets[0]``) to be crossed
            instead of 0.5, from the side where the document is.
        time_limit : float, default=10.0
            Seconds for one integer programme, of which a document has one or, with words and
            several classes, one for each class.

        Returns
        -------
        sets : MinimalSets
            A set for each document, with ``statement``, ``to_frame()``, ``to_text()`` and
            ``to_html()``. It changes the prediction by more than rounding, and no set smaller than
            its `at_least` does.

        Raises
        ------
        ValueError
            If the model has two layers of attention, if tokens were left out by `top`, if only one
            of several classes was explained, or if the places of words are needed and not known.

        See Also
        --------
        sufficient : The fewest tokens that guarantee the prediction.

        Notes
        -----
        The sign of a decision is linear in which tokens are present: with attention shares q, that
        of ``<cls>`` :math:`q_0`, values b and the intercept :math:`\beta`, a document that keeps
        the tokens S has the sign of

        .. math:: q_0 \beta + \sum_{s \in S} q_s (b_s + \beta).

        So the fewest tokens are those with the largest terms, found by sorting, and for more
        than two classes the best over the rivals. A class given by `to` among several has several
        conditions at once, and words share n-grams: both are integer programmes
        (:func:`scipy.optimize.milp`), whose bound is `at_least` where the time was too short. With
        "add", several conditions are searched greedily from the second token on, with a bound.

        Steps before the classifier, such as normalisation or the weights that a
        :class:`~sklearn_clsattn.text.ContextVectorizer` gives to places, are not repeated for the
        changed document.

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
        'Without the token "terrific", it is bad (84.3%).'
        """
        return counterfactuals(self, change, to, probability, time_limit)

    def sufficient(
        self,
        *,
        probability: float | None = None,
        smallest: bool = True,
        time_limit: float = 10.0,
    ) -> MinimalSets:
        r"""Return the fewest tokens of each document that guarantee its prediction, proved.

        Whatever becomes of the other tokens, removed or kept, in whole or in part, the prediction
        stays. It is an abductive explanation [1]_, or an anchor that always holds.

        Parameters
        ----------
        probability : float, default=None
            For two classes, the probability of the explained class (``targets[0]``) on whose side
            the document shall stay, instead of 0.5.
        smallest : bool, default=True
            For more than two classes, whether to look for the smallest set by an integer
            programme. False returns a set of which no token can be left out, which takes no search.
        time_limit : float, default=10.0
            Seconds for the integer programme of one document.

        Returns
        -------
        sets : MinimalSets
            A set for each document. `margin` is the guaranteed lead, the lowest there can be.

        Raises
        ------
        ValueError
            If the model has two layers of attention, if tokens were left out by `top`, or if only
            one of several classes was explained.

        See Also
        --------
        counterfactual : The fewest tokens whose removal changes the prediction.

        Notes
        -----
        In the linear form of :meth:`counterfactual` the worst of the other tokens stay and the best
        go. So for two classes the fewest tokens are those with the largest positive terms. New
        tokens are not considered.

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
        return sufficient_sets(self, probability, smallest, time_limit)

    def to_frame(self, rows: Literal["tokens", "documents"] = "tokens") -> pd.DataFrame:
        """Return the explanation as a data frame.

        Parameters
        ----------
        rows : {"tokens", "documents"}, default="tokens"
            "tokens": a row for each document, target and term of the decision. The column `kind`
            says what the term is: "token", "others" (what `top` left out, together), "cls" or
            "intercept". The contributions of a document and target sum to its decision, and the
            attention shares to 1. "documents": a row for each document and target.

        Returns
        -------
        frame : DataFrame
            With what does not apply left NaN.

        Raises
        ------
        ValueError
            If `rows` is neither.
        """
        if rows == "documents":
            return self._documents_frame()
        if rows != "tokens":
            raise ValueError(f"rows must be 'tokens' or 'documents', got {rows!r}")
        every = np.arange(len(self))
        of_entries, with_others = np.repeat(every, np.diff(self.indptr)), self.others_count > 0
        without = self.decision_without
        parts = []
        for k, target in enumerate(self.targets.tolist()):
            tokens = {
                "count": self.counts,
                "attention": self.attention,
                "value": self.values[:, k],
                "contribution": self.contributions[:, k],
                "decision_without": np.nan if without is None else without[:, k],
            }
            others = {
                "attention": self.others_attention[with_others],
                "contribution": self.others_contributions[with_others, k],
            }
            cls = {"attention": self.cls_attention, "value": 0.0, "contribution": 0.0}
            for kind, documents, token, numbers in (
                ("token", of_entries, self.tokens, tokens),
                ("others", every[with_others], "<others>", others),
                ("cls", every, "<cls>", cls),
                ("intercept", every, "<intercept>", {"contribution": self.intercept[k]}),
            ):
                of = {"document": self.index[documents], "target": [target] * len(documents)}
                row = {"_at": documents, **of, "token": token, "kind": kind, **numbers}
                parts.append(pd.DataFrame(row))
        # pandas warns of empty parts.
        frame = pd.concat([part for part in parts if len(part)] or parts[:1])
        frame = frame.sort_values("_at", kind="stable", ignore_index=True)
        names = ["document", "target", "token", "kind", *tokens]
        return frame.reindex(columns=names[:-1] if without is None else names)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as nested dictionaries and lists of plain Python values.

        Returns
        -------
        explanation : dict
            With `classes`, `targets`, `intercept` and `documents`. Lists named in the plural,
            such as a token's `contributions`, have an entry for each target. It can be written
            as JSON, where the labels can.
        """
        sides: list[Any] = [None] * len(self) if self.true is None else self.true.tolist()
        return {
            "classes": self.classes.tolist(),
            "targets": self.targets.tolist(),
            "intercept": self.intercept.tolist(),
            "documents": [
                {
                    "document": int(self.index[i]),
                    "predicted": predicted,
                    "predicted_probability": float(self.predicted_probability[i]),
                    "true": sides[i],
                    "decisions": self.decision[i].tolist(),
                    "probabilities": self.probability[i].tolist(),
                    "texts": [{"name": part.name, "text": part.text} for part in self.texts[i]],
                    "tokens": [self._token(entry) for entry in range(*self.indptr[i : i + 2])],
                    "cls": {
                        "attention": float(self.cls_attention[i]),
                        "contributions": [0.0] * len(self.targets),
                    },
                    "others": {
                        "count": int(self.others_count[i]),
                        "attention": float(self.others_attention[i]),
                        "contributions": self.others_contributions[i].tolist(),
                    },
                }
                for i, predicted in enumerate(self.predicted.tolist())
            ],
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
            The class to show; None for the predicted class of each document where all are
            explained.
        top : int, default=8
            How many tokens for and against to list. Character n-grams of a ContextVectorizer are
            listed together by the word that they are in.
        color : bool, default=None
            Whether to use colours; None to use them where standard output is a terminal that
            has them. Without, the strongest words are marked [+so] and [-so].
        width : int, default=None
            Columns to use; None for those of the terminal.

        Returns
        -------
        text : str
            The text, with ANSI codes where colours are used.

        Raises
        ------
        TypeError
            If `top` is no integer.
        ValueError
            If the class was not explained, or `top` or `width` is too small.
        """
        return render_text(self, target=target, top=top, color=color, width=width)

    def to_html(self, *, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return the explanation as HTML that needs no scripts and no network.

        Parameters
        ----------
        target : label, default=None
            The class to show; None for the predicted class of each document where all are
            explained.
        top : int, default=8
            How many tokens for and against to list. Character n-grams of a ContextVectorizer are
            listed together by the word that they are in.
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.

        Returns
        -------
        html : str
            To be written in UTF-8.

        Raises
        ------
        TypeError
            If `top` is no integer.
        ValueError
            If the class was not explained, `top` is negative, or the texts have more than
            1,000,000 characters together: a page has some 13 times as many.
        """
        return self._html(len(self), target=target, top=top, fragment=fragment)

    def _repr_html_(self) -> str:
        return self._html(_SHOWN_IN_NOTEBOOK, target=None, top=8, fragment=True)

    def _html(self, n_shown: int, *, target: Any, top: int, fragment: bool) -> str:
        check_scalar(top, "top", Integral, min_val=0)
        shown = self[:n_shown]
        size = sum(len(part.text) for texts in shown.texts for part in texts) if shown.texts else 0
        if size > LARGEST_PAGE:
            raise ValueError(
                f"The texts to show have {size:,} characters, and a page takes {LARGEST_PAGE:,}: "
                "show fewer documents, or explain the parts of long ones by themselves."
            )
        return render(
            "explanation.html",
            title=repr(self)[1:-1],
            views=views(shown, target, top),
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
        )

    def _documents_frame(self) -> pd.DataFrame:
        n = len(self.targets)
        columns: dict[str, Any] = {
            "document": np.repeat(self.index, n),
            "target": np.tile(self.targets, len(self)),
            "decision": self.decision.ravel(),
            "intercept": np.tile(self.intercept, len(self)),
            "contribution": self.decision_terms().ravel(),
            "probability": self.probability.ravel(),
            "predicted": np.repeat(self.predicted, n),
            "predicted_probability": np.repeat(self.predicted_probability, n),
            "cls_attention": np.repeat(self.cls_attention, n),
            "tokens": np.repeat(np.diff(self.indptr) + self.others_count, n),
        }
        if self.true is not None:
            columns["true"] = np.repeat(self.true, n)
        return pd.DataFrame(columns)

    def _token(self, entry: int) -> dict[str, Any]:
        without = self.decision_without
        return {
            "token": str(self.tokens[entry]),
            "column": int(self.columns[entry]),
            "count": float(self.counts[entry]),
            "attention": float(self.attention[entry]),
            # JSON has no NaN.
            "values": [None if value != value else value for value in self.values[entry].tolist()],
            "contributions": self.contributions[entry].tolist(),
            "decisions_without": None if without is None else without[entry].tolist(),
        }
