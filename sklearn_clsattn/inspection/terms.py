"""The terms of decisions, as all kinds of models have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._types import Array, Numbers


@dataclass(frozen=True, eq=False)
class Terms:
    """What the tokens of documents add to the decisions, or have as their effect on them."""

    indptr: Numbers  # (n_documents + 1,): the tokens of a document are indptr[i]:indptr[i + 1]
    tokens: NDArray[np.object_]  # (n_entries,)
    weights: Array
    contributions: Array  # (n_entries, n_outputs)
    values: Array | None = None  # what a unit of weight, or of attention, adds
    attention: Array | None = None  # (n_entries,)
    own_contributions: Array | None = None  # without character n-grams
    vector_contributions: Array | None = None
    cls_attention: Array | None = None  # (n_documents,)


class ByToken(NamedTuple):
    """Documents by tokens: a token adds its value times its loading, such as its attention."""

    loadings: sp.csr_array  # (n_documents, n_tokens)
    values: Array  # (n_tokens, n_outputs)
    names: NDArray[np.object_]  # (n_tokens,)


class Decision(Protocol):
    """How a fitted model decides: decisions that are the intercept plus the sum of their terms."""

    @property
    def intercept(self) -> Array:
        """The intercepts, (n_outputs,)."""

    def read(self, documents: Any) -> Any:
        """Return documents as the classifier reads them."""

    def decisions(self, read: Any) -> Array:
        """Return the decisions for documents that were read, (n_documents, n_outputs)."""

    def probabilities(self, read: Any, decisions: Array) -> Array | None:
        """Return the probabilities of classes, or of labels, if the classifier has them."""

    def terms(self, read: Any) -> Terms:
        """Return the terms of these decisions."""


class TokenDecision(Decision, Protocol):
    """The decision of a single classifier, in which each token has one value."""

    def by_token(self, read: Any) -> ByToken:
        """Return documents by tokens."""
