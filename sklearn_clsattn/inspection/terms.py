"""Decisions as sums of terms: the arrays of an explanation, and their indexing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.fitted import FittedModel
from .removal import row_sums

Array = NDArray[np.float64]

# Fields that are indexed by entry, and those that are not indexed by entry or document.
_PER_ENTRY = {"columns", "tokens", "counts", "attention", "values"}
_PER_ENTRY |= {"contributions", "decision_without"}
_OTHERWISE = {"classes", "targets", "intercept", "indptr", "texts", "model", "threshold"}


@dataclass(frozen=True, eq=False)
class DocumentText:
    """A text of a document, and the positions of the tokens in it.

    Parameters
    ----------
    name : str or None
        Name of the text, where a document has several.
    text : str
        The text.
    words : ndarray of shape (n_words, 2), or None
        Where each word that the vectorizer read starts and stops in the text, then the places of
        character n-grams; None where the positions are unknown, as with a custom tokenizer.
    occurrences : ndarray of shape (n_occurrences, 3), or None
        For each occurrence of a token of the model: its first word, its number of words (more
        than 1 for an n-gram; 0 for a character n-gram, whose place is a row of `words`), and the
        number of the token in the document; -1 for one that `top` left out.
    shares : ndarray of shape (n_occurrences,), or None
        The occurrence's share of its token's count, and so of its attention and contributions:
        those of a token sum to 1. They are equal unless the vectorizer weights occurrences, as
        :class:`~sklearn_clsattn.text.ContextVectorizer` does; 0 for tokens that `top` left out.

    Examples
    --------
    >>> from sklearn_clsattn.inspection import DocumentText
    >>> DocumentText(None, "a film", None, None, None).text
    'a film'
    """

    name: str | None
    text: str
    words: NDArray[np.int32] | None
    occurrences: NDArray[np.int32] | None
    shares: Array | None


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedModel:
    """A model of one layer of attention, for the classes that are explained."""

    names: NDArray[np.object_]  # (n_tokens,), the tokens of the vocabulary
    fitted: FittedModel  # scores (n_tokens,) and values (n_tokens, n_outputs)
    outputs: NDArray[np.intp]  # (n_targets,), those explained
    scale: float  # of their values: -1 for the first of two classes, and what a calibration does

    @property
    def values(self) -> Array:
        """The values of all tokens for the explained classes, (n_tokens, n_targets)."""
        return self.scale * self.fitted.values[:, self.outputs]

    def token_weights(self, entries: Array) -> Array:
        """Return what counts weigh before the scores, of the same shape: damped where they are."""
        damp = getattr(self.fitted, "token_weights", None)
        return entries if damp is None else np.asarray(damp(entries), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionTerms:
    """The data of an :class:`~sklearn_clsattn.inspection.Explanation`, which documents it."""

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
    model: ExplainedModel | None
    threshold: float = 0.0

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
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
        # Positions in the old arrays are the new ones, shifted by document.
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], lengths)
        parts: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and name not in _OTHERWISE:
                value = value[entries if name in _PER_ENTRY else chosen]
            parts[name] = value
        parts["indptr"] = indptr
        parts["texts"] = tuple(self.texts[i] for i in chosen)
        return type(self)(**parts)

    def decision_terms(self) -> Array:
        """Return the sums of all contributions: the decisions less the intercepts.

        Returns
        -------
        sums : ndarray of shape (n_documents, n_targets)
            Computed from the contributions, those of the others included.
        """
        documents = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        return row_sums(self.contributions, documents, len(self)) + self.others_contributions
