"""fastText on words, punctuation and bigrams, with the values of its tutorial on classification.

Its default, 5 epochs at a rate of .1, is for larger data. It reads its training documents from a
file, which is written inside the timing. On several threads its result is not deterministic.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.competitors.base import Competitor

PACKAGE = "fasttext"

_TOKENS = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class FastTextClassifier(ClassifierMixin, BaseEstimator):
    """fastText with scikit-learn's methods, on a sequence of texts."""

    def __init__(
        self, *, lr: float = 1.0, epoch: int = 25, word_ngrams: int = 2, bucket: int = 2_000_000
    ) -> None:
        self.lr = lr
        self.epoch = epoch
        self.word_ngrams = word_ngrams
        self.bucket = bucket

    def fit(self, texts: Sequence[str], y: ArrayLike) -> FastTextClassifier:
        """Write the texts to a file and train on it."""
        import fasttext

        self.classes_, codes = np.unique(y, return_inverse=True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.txt"
            with file.open("w", encoding="utf-8") as stream:
                for code, line in zip(codes, lines(texts), strict=True):
                    stream.write(f"__label__{code} {line}\n")
            self.model_ = fasttext.train_supervised(
                input=str(file),
                lr=self.lr,
                epoch=self.epoch,
                wordNgrams=self.word_ngrams,
                bucket=self.bucket,
                thread=joblib.cpu_count(),
                verbose=0,
            )
        return self

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the probability of every class, (n_texts, n_classes); of no tokens, all alike."""
        probabilities = np.full((len(texts), len(self.classes_)), 1e-12)
        for row, line in zip(probabilities, lines(texts), strict=True):
            # Not `self.model_.predict`, which fails with NumPy 2 on one text and, on a list, gives
            # one class's probability for all.
            for share, label in self.model_.f.predict(f"{line}\n", len(row), 0.0, "strict"):
                row[int(label.removeprefix("__label__"))] += share
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return the most probable class of every text."""
        return self.classes_[self.predict_proba(texts).argmax(axis=1)]


def lines(texts: Sequence[str]) -> list[str]:
    """Return every text as lower-case tokens with a space between them, on one line."""
    return [" ".join(_TOKENS.findall(text.lower())) for text in texts]


def competitor(vectorizer: dict[str, Any]) -> Competitor:
    def make(value: float | None, n_classes: int) -> Any:
        return FastTextClassifier()

    return Competitor("fasttext", "fastText, bigrams, 25 epochs", make)
