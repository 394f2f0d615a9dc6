"""The effects of words on any classifier of texts: what changes when a word is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Array
from .edited_text import EditableText
from .predictor import Predictor
from .terms import Terms


@dataclass(frozen=True, eq=False)
class WordEffects:
    """A classifier whose decisions are no sums: it is asked for each text without each word."""

    predictor: Predictor
    intercept: None = None

    def read(self, documents: Any) -> list[str]:
        """Return documents as a list of texts."""
        return list(documents)

    def decisions(self, texts: list[str]) -> Array:
        """Return what a word has an effect on, (n_texts, n_outputs).

        Of two classes it is the probability of the second, less a half; without probabilities, it
        is the decision.
        """
        predictions = self.predictor.predict_texts(texts)
        by_class = predictions.probabilities
        if by_class is None:
            by_class = predictions.scores
        if by_class.shape[1] > 2:
            return by_class
        if predictions.probabilities is None:
            return by_class[:, [1]] - by_class[:, [0]]
        return by_class[:, [1]] - 0.5

    def terms(self, texts: list[str]) -> Terms:
        """Return the effects of the words of texts, in the order of their first occurrences."""
        # 1) Each text, and each without one of its words.
        versions = []
        names = []
        counts = []
        lengths = []
        for text in texts:
            editable = EditableText(text)
            versions.append(text)
            for number, word in enumerate(editable.words):
                versions.append(editable.without([number]))
                names.append(word.name)
                counts.append(len(word.spans))
            lengths.append(len(editable.words))
        # 2) The differences of their decisions.
        decisions = self.decisions(versions)
        ends = np.cumsum(np.array(lengths) + 1)
        wholes = ends - np.array(lengths) - 1
        is_whole = np.zeros(len(versions), dtype=bool)
        is_whole[wholes] = True
        effects = np.repeat(decisions[wholes], lengths, axis=0) - decisions[~is_whole]
        return Terms(
            indptr=np.append(0, np.cumsum(lengths)).astype(np.intp),
            tokens=np.array(names, dtype=object),
            weights=np.array(counts, dtype=np.float64),
            contributions=effects,
        )
