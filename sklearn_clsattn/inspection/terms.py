"""Decisions as sums of contributions: the data of explanations, and two classes compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.fitted import FittedAttention
from .._types import Array
from .edited_text import EditableDocument, Span, TextModel, delete_spans

Positions = NDArray[np.intp]

# Fields that are indexed by entry, and those that are not indexed by entry or document.
_PER_ENTRY = {
    "columns",
    "tokens",
    "weights",
    "attention",
    "values",
    "contributions",
    "own_contributions",
    "vector_contributions",
    "decision_without_count",
}
_TUPLES = {"texts", "documents"}  # of one entry a document
_OTHERWISE = {"classes", "targets", "intercept", "indptr", "model", "text_model"} | _TUPLES
_NEAR = 0.25  # least cosine between the vectors of two tokens that are called near


@dataclass(frozen=True, eq=False)
class DocumentText:
    """A text of a document, and the positions of the tokens in it; None where they are unknown."""

    name: str | None  # where a document has several texts
    text: str
    # (n_words, 2): start and stop of each word that the vectorizer read.
    words: NDArray[np.int32] | None
    # (n_occurrences, 3): first word, number of words, and the token's number in the document.
    occurrences: NDArray[np.int32] | None
    # (n_occurrences,): the share of the token's weight, and so of its attention and contributions:
    # those of a token sum to 1. Equal unless the vectorizer weights occurrences.
    shares: Array | None
    # The number of the same text among those of the editable document; None if steps before the
    # vectorizer changed it.
    field: int | None = None

    def token_spans(self, tokens: Positions) -> list[list[Span]]:
        """Return the spans of the words of each of some tokens, given by their numbers."""
        if self.words is None or self.occurrences is None:
            return [[] for _ in tokens]
        order = np.argsort(self.occurrences[:, 2], kind="stable")
        first, length, token = self.occurrences[order].T
        spans_of_tokens = []
        for number in tokens:
            low, high = np.searchsorted(token, [number, number + 1])
            spans: set[Span] = set()
            for at in range(low, high):
                words = self.words[first[at] : first[at] + length[at]]
                spans.update(map(tuple, words.tolist()))
            spans_of_tokens.append(sorted(spans))
        return spans_of_tokens


@dataclass(frozen=True, eq=False, repr=False)
class Likeness:
    """Vectors of tokens, (n_vectors, d), their names, and what else is in these tokens' values.

    `own`, (n_vectors, n_targets), is what labelled documents say of a token itself.
    """

    names: NDArray[np.object_]
    vectors: NDArray[np.float32]
    own: Array

    def near(self, name: str, direction: Array, k: int = 3) -> list[str]:
        """Return the tokens nearest to one that say the same themselves, most alike first.

        `direction`, (n_targets,), makes of the targets the decision, with the sign of the vector's
        contribution.
        """
        positions = np.flatnonzero(self.names == name)
        if not len(positions):
            return []
        token = positions[0]
        says_the_same = self.own @ direction > 0
        cosines = (self.vectors @ self.vectors[token]) * says_the_same
        cosines[token] = 0.0
        nearest = np.argsort(-cosines)[:k]
        return [str(self.names[other]) for other in nearest if cosines[other] > _NEAR]


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedModel:
    """A model of one layer of attention, for the classes that are explained."""

    names: NDArray[np.object_]  # (n_tokens,), the tokens of the vocabulary
    fitted: FittedAttention  # scores (n_tokens,) and values (n_tokens, n_outputs)
    outputs: Positions  # (n_targets,), those explained
    sign: float  # of their values: -1 for the first of two classes
    likeness: Likeness | None = None  # where tokens have vectors

    @property
    def values(self) -> Array:
        """The values of all tokens for the explained classes, (n_tokens, n_targets)."""
        return self.sign * self.fitted.values[:, self.outputs]

    def token_weights(self, entries: Array) -> Array:
        """Return what entries weigh before the scores, of the same shape: damped where they are."""
        return np.asarray(self.fitted.token_weights(entries), dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionTerms:
    """The data of an :class:`~sklearn_clsattn.inspection.Explanation`, which documents it."""

    classes: NDArray[Any]
    targets: NDArray[Any]
    intercept: Array
    index: Positions
    indptr: Positions
    columns: Positions
    tokens: NDArray[np.object_]
    weights: Array
    attention: Array
    values: Array
    contributions: Array
    own_contributions: Array | None
    vector_contributions: Array | None
    decision_without_count: Array | None
    cls_attention: Array
    decision: Array
    probability: Array
    predicted: NDArray[Any]
    predicted_probability: Array
    true: NDArray[Any] | None
    texts: tuple[tuple[DocumentText, ...], ...]
    model: ExplainedModel | None
    documents: tuple[EditableDocument | None, ...]
    text_model: TextModel | None

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
        # Positions in the old arrays are the new ones, shifted by document.
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], lengths)
        parts: dict[str, Any] = {"indptr": indptr}
        for name in _TUPLES:
            parts[name] = tuple(getattr(self, name)[i] for i in chosen)
        for name in {field.name for field in fields(self)} - _OTHERWISE:
            if (numbers := getattr(self, name)) is not None:
                parts[name] = numbers[entries if name in _PER_ENTRY else chosen]
        return replace(self, **parts)

    @property
    def has_without(self) -> bool:
        """Whether decisions without single tokens are known, or can be predicted."""
        return self.decision_without_count is not None or self.text_model is not None

    @cached_property
    def decision_without(self) -> Array | None:
        """The decisions without each token, (n_entries, n_targets), as `Explanation` says."""
        if not self.has_without:
            return None
        decisions = [np.empty((0, len(self.targets)))]
        for document in self:
            every_token = np.arange(len(document.tokens))
            decisions.append(document.predict_without(every_token))
        return np.concatenate(decisions)

    def predict_without(self, tokens: Positions) -> Array:
        """Return the first document's decisions without each of some tokens, given by number.

        Their shape is (len(tokens), n_targets). They are NaN for a token of a text whose position
        is unknown.
        """
        if self.decision_without_count is not None:
            return self.decision_without_count[tokens]
        decisions = np.full((len(tokens), len(self.targets)), np.nan)
        document = self.documents[0]
        model = self.text_model
        if document is None or model is None:
            return decisions
        # 1) The words of all occurrences of each token, in each text of the document.
        spans: dict[int, dict[int, set[Span]]] = defaultdict(lambda: defaultdict(set))
        for shown in self.texts[0]:
            if shown.field is None:
                continue
            for at, token_spans in enumerate(shown.token_spans(tokens)):
                if token_spans:
                    spans[at][shown.field].update(token_spans)
        if not spans:
            return decisions
        # 2) The document without them, and its prediction.
        versions = []
        for deleted in spans.values():
            texts = [
                delete_spans(text, sorted(deleted.get(number, ())))
                for number, text in enumerate(document.texts)
            ]
            versions.append(tuple(texts))
        predicted = model.decisions(document.as_input(versions))
        if len(self.classes) == 2:
            sign = 1.0 if self.targets.tolist()[0] == self.classes.tolist()[1] else -1.0
            explained = sign * predicted[:, [1]]
        else:
            explained = predicted[:, np.isin(self.classes, self.targets)]
        decisions[list(spans)] = explained + 0.0  # avoids negative zeros
        return decisions


def pairs(explanation: DecisionTerms, target: Any) -> tuple[Positions, Positions]:
    """Return the positions among `targets` of every document's class and its rival, -1 for none.

    By default the predicted class and the true one where it is known and another, else the
    runner-up; a class that was not predicted is shown against the one that was.
    """
    labels = explanation.targets.tolist()
    n_documents = len(explanation)
    if target is not None and (np.ndim(target) or target not in labels):
        raise ValueError(
            f"target must be None or one of the explained classes {labels}, got {target!r}"
        )
    if len(labels) == 1:
        return np.zeros(n_documents, dtype=np.intp), np.full(n_documents, -1)
    position = {label: at for at, label in enumerate(labels)}
    predicted_labels = explanation.predicted.tolist()
    predicted = np.array([position[label] for label in predicted_labels], np.intp)
    # 1) The rival: the true class, or the runner-up.
    others = explanation.decision.copy()
    others[np.arange(n_documents), predicted] = -np.inf
    rivals = others.argmax(axis=1)
    if explanation.true is not None:
        true_labels = explanation.true.tolist()
        true = np.array([position.get(label, -1) for label in true_labels], np.intp)
        rivals = np.where((true >= 0) & (true != predicted), true, rivals)
    # 2) The class that is shown.
    if target is None:
        return predicted, rivals
    shown = np.full(n_documents, position[target])
    return shown, np.where(shown != predicted, predicted, rivals)


def difference(by_class: Array, k: Any, j: Any) -> Array:
    """Return column k less column j unless -1 of (n, n_targets), for numbers or (n,) of them."""
    rows = np.arange(len(by_class))
    subtracted = np.where(j < 0, 0.0, by_class[rows, j])
    return by_class[rows, k] - subtracted
