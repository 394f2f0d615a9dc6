"""Explanations: the terms of decisions, as data, as text and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from .comparing import Positions, difference, pairs
from .interactive import page_data, page_script
from .minimal.answers import counterfactuals, sufficient_sets
from .minimal.minimal_sets import MinimalSets
from .page_space import listed_tokens, overview, spaces
from .pages import framed, render
from .terminal import render_text
from .terms import DecisionTerms
from .view import views

# The maximum number of documents in a notebook's cell.
_SHOWN_IN_NOTEBOOK = 10
_HEIGHT = 340  # about that of a document in a notebook, in pixels; the frame fits itself


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
    threshold : float, default=0.0
        The decision of two classes from which on the first of `targets` is predicted; 0 unless the
        classifier has a threshold of its own.

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
        'Without the token "terrific", it is bad (69.2%).'
        """
        return counterfactuals(self, change, to, probability, time_limit)

    def sufficient(
        self, *, probability: float | None = None, smallest: bool = True, time_limit: float = 10.0
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

    def to_frame(
        self,
        rows: Literal["tokens", "documents"] = "tokens",
        *,
        target: Any = None,
        against: Any = None,
        every_class: bool = False,
    ) -> pd.DataFrame:
        """Return the explanation as a data frame.

        Of more than two classes, two are compared by default: every number is that of `target`
        less that of `against`, and the decision is the log-odds of one against the other.

        Parameters
        ----------
        rows : {"tokens", "documents"}, default="tokens"
            "tokens": a row for each term of each document's decision. The column `kind`
            says what the term is: "token", "others" (what `top` left out, together), "cls" or
            "intercept". Contributions sum to the decision, and attention shares to 1.
            "documents": a row for each document.
        target : label, default=None
            The class to show; None for the predicted class of each document.
        against : label, default=None
            The class that it is compared with. None for the true class where it is known and not
            the predicted one, else the class with the next highest decision; for a `target` that
            was not predicted, the class that was.
        every_class : bool, default=False
            Whether to return the rows of every class explained, instead of a comparison.

        Returns
        -------
        frame : DataFrame
            With what does not apply left NaN, and the column `against` where classes are
            compared.

        Raises
        ------
        ValueError
            If `rows` is neither, or a class was not explained.
        """
        if rows not in ("tokens", "documents"):
            raise ValueError(f"rows must be 'tokens' or 'documents', got {rows!r}")
        make = self._document_part if rows == "documents" else self._token_part
        frame = pd.concat(
            [make(k, j) for k, j in self._decisions(target, against, every_class)]
        ).sort_values("_at", kind="stable", ignore_index=True)
        left_out = ["_at"]
        if every_class or len(self.targets) == 1:
            left_out.append("against")
        if rows == "tokens" and self.decision_without is None:
            left_out.append("decision_without")
        return frame.drop(columns=left_out)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as nested dictionaries and lists of plain Python values.

        Returns
        -------
        explanation : dict
            With `classes`, `targets`, `intercept`, `threshold` and `documents`. Lists named in the
            plural, such as a token's `contributions`, have an entry for each target. It can be
            written as JSON, where the labels can.
        """
        sides: list[Any] = [None] * len(self) if self.true is None else self.true.tolist()
        return {
            "classes": self.classes.tolist(),
            "targets": self.targets.tolist(),
            "intercept": self.intercept.tolist(),
            "threshold": self.threshold,
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
        against: Any = None,
        every_class: bool = False,
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
        against : label, default=None
            Of more than two classes, the one that it is compared with; None as in
            :meth:`to_frame`.
        every_class : bool, default=False
            Whether to list what the strongest tokens add to every class, side by side, instead of
            those for and against.
        top : int, default=8
            How many tokens for and against to list. Character n-grams are listed together by the
            word that they are in.
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
            If a class was not explained, or `top` or `width` is too small.
        """
        shown = {"target": target, "against": against, "every_class": every_class}
        return render_text(self, **shown, top=top, color=color, width=width)

    def to_html(
        self,
        *,
        target: Any = None,
        against: Any = None,
        every_class: bool = False,
        top: int = 8,
        fragment: bool = False,
        interactive: bool = False,
        model: Any = None,
        max_tokens: int | None = None,
    ) -> str:
        """Return the explanation as HTML that needs no network, and no scripts.

        More than 20 documents are folded to a line each, and of long texts the parts that matter
        most come first; of many documents, the page has nothing else.

        Parameters
        ----------
        target, against, every_class, top
            As in :meth:`to_text`.
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.
        interactive : bool, default=False
            Whether the page has a script of its own, by which one chooses the class, links words
            and rows, filters, sorts and compares documents, switches between light and dark, and
            saves explanations as SVG and JSON. It loads nothing, and the page's policy allows no
            other script; without scripts, the page is the same as ever. With scripts, decisions
            without a token, and tokens that have no place in a text, are not shown.
        model : Pipeline, default=None
            With `interactive`, the model as :func:`~sklearn_clsattn.saving.to_json` takes it: the
            page then has a box in which to write a text and see its decision at once.
        max_tokens : int, default=None
            How many tokens of `model` the page has, the strongest; ``None`` for all.

        Returns
        -------
        html : str
            To be written in UTF-8.

        Raises
        ------
        TypeError
            If `top` is no integer.
        ValueError
            If a class was not explained, if `top` is negative, if `interactive` comes with
            `fragment`, `against`, `every_class` or a classifier with a threshold of its own, or if
            `model` has other classes or cannot be carried over.
        """
        if model is not None and not interactive:
            raise ValueError("model is for interactive pages: pass interactive=True as well")
        if model is None and max_tokens is not None:
            raise ValueError("max_tokens is of model: pass the model as well")
        if model is not None and list(model.classes_) != self.classes.tolist():
            raise ValueError("model has other classes than the explanation: pass its own model")
        if interactive and self.threshold:
            raise ValueError(
                "in an interactive page predictions change at 0, and this classifier has a "
                "threshold of its own: pass interactive=False"
            )
        if fragment and interactive:
            raise ValueError("a script needs a page of its own: interactive=True, fragment=False")
        if interactive and (against is not None or every_class):
            raise ValueError(
                "an interactive page compares the classes that its reader chooses: "
                "pass neither against nor every_class"
            )
        script = page_script() if interactive else None
        data = page_data(self, target, top, model, max_tokens) if interactive else None
        return self._html(
            len(self),
            target=target,
            against=against,
            every_class=every_class,
            top=top,
            fragment=fragment,
            script=script,
            data=data,
        )

    def _repr_html_(self) -> str:
        n_shown = min(len(self), _SHOWN_IN_NOTEBOOK)
        return framed(self._html(n_shown), repr(self), 60 + _HEIGHT * n_shown)

    def _html(
        self,
        n_shown: int,
        *,
        fragment: bool = False,
        target: Any = None,
        against: Any = None,
        every_class: bool = False,
        top: int = 8,
        script: Any = None,
        data: Any = None,
    ) -> str:
        check_scalar(top, "top", Integral, min_val=0)
        n_listed = listed_tokens(n_shown, top)
        shown = views(self[:n_shown], target, n_listed, against, every_class)
        return render(
            "explanation.html",
            title=repr(self)[1:-1],
            views=shown,
            spaces=spaces(shown),
            overview=overview(shown),
            more=max(len(self) - n_shown, 0),
            fragment=fragment,
            script=script,
            data=data,
        )

    def _decisions(
        self, target: Any, against: Any, every_class: bool
    ) -> list[tuple[Positions, Positions]]:
        """Return the positions of every document's class and rival, once or for every class."""
        shown = pairs(self, target, against)
        if not every_class:
            return [shown]
        none = np.full(len(self), -1)
        return [(np.full(len(self), k), none) for k in range(len(self.targets))]

    def _token_part(self, k: Positions, j: Positions) -> pd.DataFrame:
        """Return a row for each term of each document's decision, documents in `_at`."""
        every, with_others = np.arange(len(self)), np.flatnonzero(self.others_count)
        of_entries, without = np.repeat(every, np.diff(self.indptr)), self.decision_without

        def of(by_class: Any, documents: Positions) -> Any:
            return difference(by_class, k[documents], j[documents])

        tokens = {
            "token": self.tokens,
            "kind": "token",
            "count": self.counts,
            "attention": self.attention,
            "value": of(self.values, of_entries),
            "contribution": of(self.contributions, of_entries),
            "decision_without": np.nan if without is None else of(without, of_entries),
        }
        others = {
            "token": "<others>",
            "kind": "others",
            "attention": self.others_attention[with_others],
            "contribution": of(self.others_contributions[with_others], with_others),
        }
        cls = {"token": "<cls>", "kind": "cls", "attention": self.cls_attention}
        intercept = np.broadcast_to(self.intercept, self.decision.shape)
        last = {"token": "<intercept>", "kind": "intercept", "contribution": of(intercept, every)}
        parts = [
            pd.DataFrame({**self._labels(documents, k, j), **columns})
            for documents, columns in (
                (of_entries, tokens),
                (with_others, others),
                (every, {**cls, "value": 0.0, "contribution": 0.0}),
                (every, last),
            )
        ]
        # pandas warns of empty parts.
        frame = pd.concat([part for part in parts if len(part)] or parts[:1])
        return frame.reindex(columns=list(parts[0]))

    def _document_part(self, k: Positions, j: Positions) -> pd.DataFrame:
        """Return a row for each document, which are in `_at`."""
        columns: dict[str, Any] = {
            **self._labels(np.arange(len(self)), k, j),
            "decision": difference(self.decision, k, j),
            "intercept": difference(np.broadcast_to(self.intercept, self.decision.shape), k, j),
            "contribution": difference(self.decision_terms(), k, j),
            "probability": self.probability[np.arange(len(self)), k],
            "predicted": self.predicted,
            "predicted_probability": self.predicted_probability,
            "cls_attention": self.cls_attention,
            "tokens": np.diff(self.indptr) + self.others_count,
        }
        if self.true is not None:
            columns["true"] = self.true
        return pd.DataFrame(columns)

    def _labels(self, documents: Positions, k: Positions, j: Positions) -> dict[str, Any]:
        """Return the columns that say which documents, and which decisions of theirs, rows are."""
        labels = [*self.targets.tolist(), None]
        return {
            "_at": documents,
            "document": self.index[documents],
            "target": [labels[at] for at in k[documents].tolist()],
            "against": [labels[at] for at in j[documents].tolist()],
        }

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
