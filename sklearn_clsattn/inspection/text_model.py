"""A model of texts: its decisions for edited texts, and where it reads its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._types import Array
from .predictor import Predictor
from .shown_classes import ShownClasses
from .terms import Explained
from .token_positions import LocatedText


@dataclass(frozen=True, eq=False)
class TextModel:
    """A fitted estimator of texts, and how it decides for the explained classes."""

    predictor: Predictor
    explained: Explained
    shown: ShownClasses

    def decisions(self, texts: list[str]) -> Array:
        """Return the decisions for the explained classes, (n_texts, n_targets)."""
        read = self.explained.read(self.predictor.container(texts))
        return self.shown.select(self.explained.decisions(read))

    def locate(self, text: str, tokens: Sequence[str]) -> LocatedText:
        """Return a text with the places of its tokens."""
        return self.explained.locate(text, tokens)
