"""What an explanation is: plain data, which other files of this room format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .removal import row_sums

Array = NDArray[np.float64]

# As many documents as a notebook's cell shows.
_SHOWN_IN_NOTEBOOK = 10


@dataclass(frozen=True, eq=False)
class DocumentText:
    """A text of a document, and where the tokens stand in it.

    Parameters
    ----------
    name : str or None
        What the text is called, where a document has several.
    text : str
        The text.
    words : ndarray of shape (n_words, 2), or None
        Where each word that the vectorizer read starts and stops in the text; None where the
        tokens cannot be found in it, as with a tokenizer of one's own.
    occurrences : ndarray of shape (n_occurrences, 3), or None
        For each place where a token of the model stands: its first word, its number of words
        (more than 1 for an n-gram), and which of the document's tokens it is; -1 for one that
        `top` left to the others.

    Examples
    --------
    >>> from sklearn_clsattn.inspection import DocumentText
    >>> DocumentText(None, "a film", None, None).text
    'a film'
    """

    name: str | None
    text: str
    words: NDArray[np.int32] | None
    occurrences: NDArray[np.int32] | None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Predictions written out: what every token of every document adds to the decision.

    Made by :func:`~sklearn_clsattn.inspection.explain`. The tokens of all documents stand one
    after the other, those of document i at ``indptr[i]:indptr[i + 1]``: `explanation[i]`,
    slices, masks and index arrays give explanations of fewer documents, and so does iteration.
    For every document, contributions (with those of the others, where `top` was given) plus
    intercept are the decision, and the attention shares sum to 1 with that of ``<cls>``; only
    in an empty document without ``<cls>`` nothing has attention.

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
        The documents' places among those that were explained.
    indptr : ndarray of shape (n_documents + 1,)
        Where the tokens of each document start.
    columns : ndarray of shape (n_entries,)
        The tokens' columns in the classifier's matrix.
    tokens : ndarray of shape (n_entries,)
        Their names.
    counts : ndarray of shape (n_entries,)
        The counts, or weights, that the classifier was given.
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
        How many more tokens the document has, which `top` left out.
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

    classes: NDArray[Any]
    targets: NDArray[Any]
    intercept: Array
    index: NDArray[np.intp]
    indptr: NDArray[np.intp]
    columns: NDArray[np.intp]
    tokens: NDArray[np.object_]
    counts: Array
    attention: Array
    values: Array
    contributions: Array
    decision_without: Array | None
    cls_attention: Array
    others_count: NDArray[np.intp]
    others_attention: Array
    others_contributions: Array
    decision: Array
    probability: Array
    predicted: NDArray[Any]
    predicted_probability: Array
    true: NDArray[Any] | None
    texts: tuple[tuple[DocumentText, ...], ...]

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Explanation:
        if isinstance(key, bool | np.bool_ | tuple):
            raise TypeError(
                "an explanation is indexed by one integer, slice, mask or sequence of integers, "
                f"got {key!r}"
            )
        if isinstance(key, list) and not key:
            key = slice(0)
        chosen = np.atleast_1d(np.arange(len(self))[key])
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.zeros(len(chosen) + 1, dtype=self.indptr.dtype)
        np.cumsum(lengths, out=indptr[1:])
        # Places in the old arrays: the new ones, moved by how far each document moved.
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], lengths)
        parts: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _PER_ENTRY:
                value = None if value is None else value[entries]
            elif field.name in _PER_DOCUMENT:
                value = None if value is None else value[chosen]
            parts[field.name] = value
        parts["indptr"] = indptr
        parts["texts"] = tuple(self.texts[i] for i in chosen)
        return Explanation(**parts)

    def __repr__(self) -> str:
        count = f"{len(self):,} document{'' if len(self) == 1 else 's'}"
        if len(self.targets) > 1:
            return f"<Explanation of {count}: what speaks for each of {len(self.targets)} classes>"
        return f"<Explanation of {count}: what speaks for {self.targets.tolist()[0]!r}>"

    def frame(self, rows: Literal["tokens", "documents"] = "tokens") -> pd.DataFrame:
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
        with_others = np.flatnonzero(self.others_count)
        parts = []
        for k, target in enumerate(self.targets.tolist()):
            terms = pd.DataFrame(
                {
                    "document": np.repeat(self.index, np.diff(self.indptr)),
                    "token": self.tokens,
                    "kind": "token",
                    "count": self.counts,
                    "attention": self.attention,
                    "value": self.values[:, k],
                    "contribution": self.contributions[:, k],
                    "_at": np.repeat(np.arange(len(self)), np.diff(self.indptr)),
                }
            )
            if self.decision_without is not None:
                terms["decision_without"] = self.decision_without[:, k]
            others = pd.DataFrame(
                {
                    "document": self.index[with_others],
                    "token": "<others>",
                    "kind": "others",
                    "attention": self.others_attention[with_others],
                    "contribution": self.others_contributions[with_others, k],
                    "_at": with_others,
                }
            )
            cls = pd.DataFrame(
                {
                    "document": self.index,
                    "token": "<cls>",
                    "kind": "cls",
                    "attention": self.cls_attention,
                    "value": 0.0,
                    "contribution": 0.0,
                    "_at": np.arange(len(self)),
                }
            )
            intercept = pd.DataFrame(
                {
                    "document": self.index,
                    "token": "<intercept>",
                    "kind": "intercept",
                    "contribution": self.intercept[k],
                    "_at": np.arange(len(self)),
                }
            )
            filled = [part for part in (terms, others, cls, intercept) if len(part)]
            together = pd.concat(filled or [terms])
            together.insert(1, "target", [target] * len(together))
            parts.append(together)
        frame = pd.concat(parts, ignore_index=True)
        frame = frame.sort_values("_at", kind="stable", ignore_index=True)
        names = ["document", "target", "token", "kind", "count", "attention", "value"]
        names += ["contribution"]
        names += ["decision_without"] if self.decision_without is not None else []
        return frame.reindex(columns=names)

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

    def text(
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

        Raises
        ------
        ValueError
            If the class was not explained, or `top` or `width` is too small.
        """
        from .rendering.text import render_text

        return render_text(self, target=target, top=top, color=color, width=width)

    def html(self, *, target: Any = None, top: int = 8, fragment: bool = False) -> str:
        """Return the explanation as HTML that needs no scripts and no network.

        Parameters
        ----------
        target : label, default=None
            The class to show; None for the predicted class of each document where all are
            explained.
        top : int, default=8
            How many tokens for and against to list.
        fragment : bool, default=False
            Whether to return an element to put into a page, rather than a page.

        Returns
        -------
        html : str
            To be written in UTF-8.

        Raises
        ------
        ValueError
            If the class was not explained, or `top` is negative.
        """
        from .rendering.html import render_html

        return render_html(self, target=target, top=top, fragment=fragment)

    def _repr_html_(self) -> str:
        from .rendering.html import render_html

        return render_html(
            self, target=None, top=8, fragment=True, max_documents=_SHOWN_IN_NOTEBOOK
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

    def decision_terms(self) -> Array:
        """Return the sums of all contributions: the decisions less the intercepts.

        Returns
        -------
        sums : ndarray of shape (n_documents, n_targets)
            Added up from the contributions, those of the others included.
        """
        documents = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        return row_sums(self.contributions, documents, len(self)) + self.others_contributions

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


_PER_ENTRY = {
    "columns",
    "tokens",
    "counts",
    "attention",
    "values",
    "contributions",
    "decision_without",
}
_PER_DOCUMENT = {
    "index",
    "cls_attention",
    "others_count",
    "others_attention",
    "others_contributions",
    "decision",
    "probability",
    "predicted",
    "predicted_probability",
    "true",
}
