"""A model of texts: its decisions for edited texts, and where it reads its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._types import Array
from .class_pairs import Targets
from .predictor import Predictor
from .terms import Decision
from .token_positions import LocatedText, locate, locate_words
from .word_effects import WordEffects


@dataclass(frozen=True, eq=False)
class TextModel:
    """A fitted estimator of texts, and how it decides for the explained classes."""

    predictor: Predictor
    decision: Decision | WordEffects
    targets: Targets
    first_step: Any  # which reads the texts

    def decisions(self, texts: list[str]) -> Array:
        """Return the decisions for the explained classes, (n_texts, n_targets)."""
        documents = self.decision.read(self.predictor.container(texts))
        return self.targets.select(self.decision.decisions(documents))

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens."""
        if isinstance(self.decision, WordEffects):
            return locate_words(text)
        return locate(self.first_step, text, tokens)
