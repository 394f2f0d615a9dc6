"""The effects of words on any classifier of texts: what changes when a word is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from ..text._tokens import checked_texts
from .edited_text import EditableText
from .predictor import Predictor
from .terms import Terms
from .token_positions import LocatedText, locate_words

_AT_ONCE = 1_000  # edited texts that the estimator is asked for


@dataclass(frozen=True, eq=False)
class WordEffects:
    """An estimator whose decisions are not sums: it is asked for each text without each word."""

    predictor: Predictor
    intercept: None = None

    def read(self, documents: Any) -> list[str]:
        """Return documents as a list of texts."""
        return list(checked_texts(documents))

    def decisions(self, read: list[str]) -> Array:
        """Return the numbers on which words have effects, (n_texts, n_outputs).

        Of two classes it is the probability of the second, less a half; without probabilities, it
        is the decision.
        """
        parts = []
        for start in range(0, max(len(read), 1), _AT_ONCE):
            documents = self.predictor.container(read[start : start + _AT_ONCE])
            scores, probabilities = self.predictor.scores(documents)
            by_class = scores if probabilities is None else probabilities
            if by_class.shape[1] > 2:
                parts.append(by_class)
            elif probabilities is None:
                parts.append(by_class[:, [1]] - by_class[:, [0]])
            else:
                parts.append(by_class[:, [1]] - 0.5)
        return np.concatenate(parts)

    def terms(self, read: list[str]) -> Terms:
        """Return the effects of the words of texts, in the order of their first occurrences."""
        # 1) Each text, and each without one of its words.
        versions = []
        names = []
        counts = []
        lengths = []
        for text in read:
            editable = EditableText(text)
            versions.append(text)
            for number, word in enumerate(editable.words):
                versions.append(editable.without([number]))
                names.append(word.name)
                counts.append(len(word.spans))
            lengths.append(len(editable.words))
        # 2) The differences of their decisions.
        n_words = np.array(lengths, dtype=np.intp)
        wholes = np.cumsum(n_words + 1) - n_words - 1
        is_edited = np.ones(len(versions), dtype=bool)
        is_edited[wholes] = False
        decisions = self.decisions(versions)
        effects = np.repeat(decisions[wholes], n_words, axis=0) - decisions[is_edited]
        return Terms(
            indptr=np.append(0, np.cumsum(n_words)),
            tokens=np.array(names, dtype=object),
            weights=np.array(counts, dtype=np.float64),
            contributions=effects,
        )

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its words, which are the tokens."""
        return locate_words(text)
