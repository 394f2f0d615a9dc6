"""The data of the experiments: reviews as counts of words, or small generated stand-ins.

Ours, since the paper does not say: the tokenizer (words with their contractions), the vocabulary
(the most frequent words, as many as the paper's vocabulary has, each in at least five training
documents), polarity of Yelp stars (1 and 2 against 4 and 5), and the four classes (1, 2, 4 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.problems import WORDS, read_reviews
from sklearn_clsattn.datasets import make_token_classification

from . import shapes

MIN_DOCUMENTS = 5
SETS = {"IMDB": "imdb", "Yelp": "polarity", "Yelp stars": "stars"}
N_TOKENS = {"IMDB": 7766, "Yelp": 5424, "Yelp stars": 5424}  # as many as the paper's vocabulary has
STAR_NAMES = ("1 star", "2 stars", "4 stars", "5 stars")
TINY = {"n_irrelevant": 120, "n_relevant_per_class": 30, "document_length": 40}


@dataclass(frozen=True)
class Settings:
    """What all experiments are told."""

    reviews: Path | None  # folder of the review files; None in a fast run on generated documents
    images: Path  # where pictures go
    n_seeds: int = 5  # random starts of every statement; one in a fast run

    @property
    def fast(self) -> bool:
        """Whether tiny generated data and few iterations are used."""
        return self.reviews is None

    @property
    def seeds(self) -> range:
        """The seeds of every statement."""
        return range(self.pick(self.n_seeds, 1))

    def pick(self, full: Any, fast: Any) -> Any:
        """Return `full`, or `fast` in a fast run."""
        return fast if self.fast else full


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as counts, class codes, and the tokens' statistics in the training documents."""

    name: str
    X: Any
    y: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    @cached_property
    def frequent(self) -> NDArray[np.int64]:
        """Tokens that are drawn and binned."""
        return shapes.frequent_tokens(self.X)

    @cached_property
    def posterior(self) -> shapes.Array:
        """Difference of posteriors of the frequent tokens, (n,) or (n_classes, n)."""
        difference = shapes.token_posterior_difference(self.X, self.y, self.n_classes)
        return difference[..., self.frequent]


@lru_cache(maxsize=4)
def load(name: str, settings: Settings) -> Corpus:
    """Return "IMDB", "Yelp" (polarity) or "Yelp stars" (four classes), or a stand-in.

    Documents without a token of the vocabulary are left out: without ``<cls>`` attending to
    itself, the paper's model has no output for them.
    """
    if settings.reviews is None:
        n_classes, delta = (5, (0.05, 0.75)) if name == "Yelp stars" else (2, (0.02, 0.48))
        X, y = make_token_classification(
            1000, n_classes=n_classes, relevant_share=0.1, delta=delta, random_state=0, **TINY
        )
        halves = [(X[:500], y[:500]), (X[500:], y[500:])]
    else:
        texts = [read_reviews(SETS[name], settings.reviews, part) for part in ("train", "test")]
        vectorizer = CountVectorizer(min_df=MIN_DOCUMENTS, token_pattern=WORDS)
        vectorizer.fit(texts[0][0])
        halves = [(vectorizer.transform(half), y) for half, y in texts]
    if name == "Yelp stars":
        halves = [_four_classes(*half) for half in halves]
    corpus = _trimmed(name, *halves[0], *halves[1])
    counts = corpus.X.T @ np.ones(corpus.X.shape[0])
    kept = np.sort(np.argsort(-counts, kind="stable")[: N_TOKENS[name]])
    return _trimmed(name, corpus.X[:, kept], corpus.y, corpus.X_test[:, kept], corpus.y_test)


@lru_cache(maxsize=4)
def subset(corpus: Corpus, n_train: int, n_test: int) -> Corpus:
    """Return random documents of a corpus, with the words of its training half."""
    rng = np.random.default_rng(0)
    train, test = (
        np.sort(rng.permutation(n)[:size])
        for n, size in ((corpus.X.shape[0], n_train), (corpus.X_test.shape[0], n_test))
    )
    return _trimmed(
        corpus.name, corpus.X[train], corpus.y[train], corpus.X_test[test], corpus.y_test[test]
    )


def _four_classes(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[np.int64]]:
    """Drop the middle of five classes and number the others from 0."""
    classes, codes = np.unique(y, return_inverse=True)
    middle = len(classes) // 2
    kept = np.flatnonzero(codes != middle)
    return X[kept], codes[kept] - (codes[kept] > middle)


def _trimmed(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Corpus:
    """Keep words of enough training documents, and documents that have any."""
    kept = np.flatnonzero(X.getnnz(axis=0) >= MIN_DOCUMENTS)
    X, X_test = X[:, kept], X_test[:, kept]
    rows, rows_test = (np.flatnonzero(half.getnnz(axis=1) > 0) for half in (X, X_test))
    return Corpus(
        name,
        X[rows],
        np.asarray(y[rows], dtype=np.int64),
        X_test[rows_test],
        np.asarray(y_test[rows_test], dtype=np.int64),
    )
