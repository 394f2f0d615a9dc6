"""Decisions as sums of contributions: the data of explanations, and two classes compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.fitted import FittedAttention
from .._types import Array
from .edited_text import EditableDocument, Span, TextModel

Positions = NDArray[np.intp]

# What the first axis of a field of `DecisionTerms` is, for `__getitem__`. An entry is a token of a
# document.
_SHARED = {"axis": None}  # by all documents
_PER_DOCUMENT = {"axis": "document"}
_PER_ENTRY = {"axis": "entry"}
_NEAR = 0.25  # least cosine between the vectors of two tokens that are called near


@dataclass(frozen=True, eq=False)
class DocumentText:
    """A text of a document, and the positions of the tokens in it; None where they are unknown."""

    name: str | None  # where a document has several texts
    text: str
    # (n_words, 2): start and stop of each word that the vectorizer read.
    words: NDArray[np.int32] | None
    # (n_occurrences, 3): first word, number of words, and the token's index in the document. A
    # token with several columns has several indices, and an occurrence a row for each of them.
    occurrences: NDArray[np.int32] | None
    # (n_occurrences,): the share of the token's weight, and so of its attention and contributions:
    # those of a token sum to 1. Equal unless the vectorizer weights occurrences.
    shares: Array | None
    # Index of this text in `EditableDocument.texts`; None if it was changed before the vectorizer.
    editable_index: int | None = None

    def token_spans(self, indices: Positions) -> list[list[Span]]:
        """Return the spans of each token's words, for tokens given by indices in the document."""
        if self.words is None or self.occurrences is None:
            return [[] for _ in indices]
        order = np.argsort(self.occurrences[:, 2], kind="stable")
        first, length, token_index = self.occurrences[order].T
        spans_of_tokens = []
        for index in indices:
            low, high = np.searchsorted(token_index, [index, index + 1])
            spans: set[Span] = set()
            for at in range(low, high):
                words = self.words[first[at] : first[at] + length[at]]
                spans.update(map(tuple, words.tolist()))
            spans_of_tokens.append(sorted(spans))
        return spans_of_tokens


@dataclass(frozen=True, eq=False, repr=False)
class Likeness:
    """The tokens that have vectors, and their values without the vector's part."""

    names: NDArray[np.object_]  # (n_vectors,)
    vectors: NDArray[np.float32]  # (n_vectors, d), of length 1
    values_without_vector: Array  # (n_vectors, n_targets)

    def near(self, name: str, direction: Array, k: int = 3) -> list[str]:
        """Return the `k` nearest tokens whose values, without vectors, favour the same class.

        `direction`, (n_targets,), is 1 for the class shown and -1 for its rival, times the sign of
        the vector's contribution. Only tokens with ``values_without_vector @ direction > 0`` count.
        """
        positions = np.flatnonzero(self.names == name)
        if not len(positions):
            return []
        token = positions[0]
        is_in_direction = self.values_without_vector @ direction > 0
        cosines = (self.vectors @ self.vectors[token]) * is_in_direction
        cosines[token] = 0.0
        nearest = np.argsort(-cosines)[:k]
        near = nearest[cosines[nearest] > _NEAR]
        return list(map(str, self.names[near]))


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedModel:
    """A model of one layer of attention, for the classes that are explained."""

    names: NDArray[np.object_]  # (n_tokens,), the tokens of the vocabulary
    fitted: FittedAttention  # scores (n_tokens,) and values (n_tokens, n_outputs)
    outputs: Positions  # (n_targets,), the outputs for the explained classes
    # -1 if the first of two classes is explained, as the model's output is for the second; else 1.
    sign: float
    likeness: Likeness | None = None  # if tokens have vectors

    @property
    def values(self) -> Array:
        """The values of all tokens for the explained classes, (n_tokens, n_targets)."""
        return self.sign * self.fitted.values[:, self.outputs]

    def token_weights(self, entries: Array) -> Array:
        """Return the weights of entries, of the same shape: counts, damped if the model damps."""
        return np.asarray(self.fitted.token_weights(entries), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionTerms:
    """The data of an :class:`~sklearn_clsattn.inspection.Explanation`, which describes the fields.

    The tokens of all documents are concatenated.
    """

    classes: NDArray[Any] = field(metadata=_SHARED)  # (n_classes,)
    targets: NDArray[Any] = field(metadata=_SHARED)  # (n_targets,)
    intercept: Array = field(metadata=_SHARED)  # (n_targets,)
    index: Positions = field(metadata=_PER_DOCUMENT)  # (n_documents,)
    indptr: Positions = field(metadata=_SHARED)  # (n_documents + 1,)
    # (n_entries,)
    columns: Positions = field(metadata=_PER_ENTRY)
    tokens: NDArray[np.object_] = field(metadata=_PER_ENTRY)
    weights: Array = field(metadata=_PER_ENTRY)
    attention: Array = field(metadata=_PER_ENTRY)
    # (n_entries, n_targets)
    values: Array = field(metadata=_PER_ENTRY)
    contributions: Array = field(metadata=_PER_ENTRY)
    own_contributions: Array | None = field(metadata=_PER_ENTRY)  # without character n-grams
    vector_contributions: Array | None = field(metadata=_PER_ENTRY)
    decision_without_count: Array | None = field(metadata=_PER_ENTRY)
    cls_attention: Array = field(metadata=_PER_DOCUMENT)  # (n_documents,)
    # (n_documents, n_targets)
    decision: Array = field(metadata=_PER_DOCUMENT)
    probability: Array = field(metadata=_PER_DOCUMENT)
    # (n_documents,)
    predicted: NDArray[Any] = field(metadata=_PER_DOCUMENT)
    predicted_probability: Array = field(metadata=_PER_DOCUMENT)
    true: NDArray[Any] | None = field(metadata=_PER_DOCUMENT)
    texts: tuple[tuple[DocumentText, ...], ...] = field(metadata=_PER_DOCUMENT)
    model: ExplainedModel | None = field(metadata=_SHARED)
    # (n_documents,), the documents as they can be edited, None where they cannot.
    documents: tuple[EditableDocument | None, ...] = field(metadata=_PER_DOCUMENT)
    text_model: TextModel | None = field(metadata=_SHARED)

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Self:
        if isinstance(key, bool | np.bool_ | tuple):
            raise TypeError(
                "index an explanation by one integer, slice, mask or sequence of integers, "
                f"got {key!r}"
            )
        if isinstance(key, list) and not key:
            key = slice(0)
        chosen = np.atleast_1d(np.arange(len(self))[key])
        lengths = np.diff(self.indptr)[chosen]
        indptr = np.append(0, np.cumsum(lengths)).astype(self.indptr.dtype)
        # An entry's old position is the new one plus the shift of its document's start.
        shifts = self.indptr[chosen] - indptr[:-1]
        entries = np.arange(indptr[-1]) + np.repeat(shifts, lengths)
        parts: dict[str, Any] = {"indptr": indptr}
        for part in fields(self):
            old = getattr(self, part.name)
            axis = part.metadata["axis"]
            if old is None or axis is None:
                continue
            if axis == "entry":
                parts[part.name] = old[entries]
            elif isinstance(old, tuple):
                parts[part.name] = tuple(old[i] for i in chosen)
            else:
                parts[part.name] = old[chosen]
        return replace(self, **parts)

    @property
    def has_decision_without(self) -> bool:
        """Whether decisions without single tokens are known, or can be predicted."""
        return self.decision_without_count is not None or self.text_model is not None

    @cached_property
    def decision_without(self) -> Array | None:
        """The decisions without each token, (n_entries, n_targets), as `Explanation` says."""
        if not self.has_decision_without:
            return None
        decisions = [np.empty((0, len(self.targets)))]
        for document in self:
            every_token = np.arange(len(document.tokens))
            decisions.append(document.predict_without(every_token))
        return np.concatenate(decisions)

    def predict_without(self, indices: Positions) -> Array:
        """Return the decisions for a single document without some of its tokens, one at a time.

        Parameters
        ----------
        indices : ndarray of shape (n_indices,)
            Indices of tokens in `tokens`.

        Returns
        -------
        decisions : ndarray of shape (n_indices, n_targets)
            NaN for a token of a text whose position is unknown.
        """
        assert len(self) == 1
        if self.decision_without_count is not None:
            return self.decision_without_count[indices]
        decisions = np.full((len(indices), len(self.targets)), np.nan)
        document = self.documents[0]
        if document is None or self.text_model is None:
            return decisions
        # 1) The document without each token.
        places = []  # in `indices`, of the tokens that can be deleted
        versions = []
        for shown in self.texts[0]:
            if shown.editable_index is None:
                continue
            # A token is in one text, that of its vectorizer.
            for place, spans in enumerate(shown.token_spans(indices)):
                if spans:
                    places.append(place)
                    versions.append(document.without_spans(shown.editable_index, spans))
        if not versions:
            return decisions
        # 2) Its predictions.
        predicted = self.text_model.decisions(document.as_input(versions))
        decisions[places] = self._of_targets(predicted) + 0.0  # avoids negative zeros
        return decisions

    def _of_targets(self, decisions: Array) -> Array:
        """Return the decisions for the explained classes, (n, n_targets), of (n, n_classes)."""
        if len(self.classes) > 2:
            return decisions[:, np.isin(self.classes, self.targets)]
        # Of two classes, column 0 is 0, and column 1 the log-odds of the second class.
        log_odds = decisions[:, [1]]
        is_second = self.targets.tolist()[0] == self.classes.tolist()[1]
        return log_odds if is_second else -log_odds


def pairs(explanation: DecisionTerms, target: Any) -> tuple[Positions, Positions]:
    """Return the positions among `targets` of every document's class and its rival, -1 for none.

    By default, this is the predicted class against the true one if they differ, else against the
    runner-up. A target that was not predicted is compared with the predicted class.
    """
    labels = explanation.targets.tolist()
    n_documents = len(explanation)
    if target is not None and (np.ndim(target) or target not in labels):
        raise ValueError(
            f"target must be None or one of the explained classes {labels}, got {target!r}"
        )
    if len(labels) == 1:
        return np.zeros(n_documents, dtype=np.intp), np.full(n_documents, -1)
    predicted = _positions(explanation.predicted, labels)
    rivals = _rivals(explanation, predicted)
    if target is None:
        return predicted, rivals
    chosen = np.full(n_documents, labels.index(target))
    return chosen, np.where(chosen != predicted, predicted, rivals)


def _rivals(explanation: DecisionTerms, predicted: Positions) -> Positions:
    """Return the position of each document's true class if not predicted, else the runner-up's."""
    others = explanation.decision.copy()
    others[np.arange(len(explanation)), predicted] = -np.inf
    runners_up = others.argmax(axis=1)
    if explanation.true is None:
        return runners_up
    true = _positions(explanation.true, explanation.targets.tolist())
    return np.where((true >= 0) & (true != predicted), true, runners_up)


def _positions(classes: NDArray[Any], labels: list[Any]) -> Positions:
    """Return the positions of classes (n,) among labels, -1 for a class that is not there."""
    position = {label: at for at, label in enumerate(labels)}
    return np.array([position.get(label, -1) for label in classes.tolist()], np.intp)


def difference(by_class: Array, k: Any, j: Any) -> Array:
    """Return ``by_class[:, k] - by_class[:, j]``, (n,), or ``by_class[:, k]`` where j is -1.

    Both k and j are numbers, or arrays (n,) with one for each row.
    """
    rows = np.arange(len(by_class))
    subtracted = np.where(j < 0, 0.0, by_class[rows, j])  # -1 reads the last column, unused
    return by_class[rows, k] - subtracted
