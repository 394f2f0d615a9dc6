"""The data of the experiments: reviews as counts of words, or generated stand-ins.

Ours, since the paper does not say: the tokenizer (words with their contractions), the vocabulary
(the most frequent words, as many as the paper's vocabulary has, each
in at least five training documents), polarity of Yelp stars
(1 and 2 against 4 and 5, the middle left out), and the four classes (1, 2, 4 and 5 stars).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

from benchmarks import problems
from benchmarks.problems import WORDS, Spec
from sklearn_clsattn.datasets import load_reviews

from . import shapes

MIN_DOCUMENTS = 5
N_TOKENS = {"IMDB": 7766, "Yelp": 5424, "Yelp stars": 5424}  # as many as the paper's vocabulary has
_WORDS = {"min_df": MIN_DOCUMENTS, "token_pattern": WORDS}
_GENERATED = {"n_irrelevant": 3000, "n_relevant_per_class": 300, "document_length": 80}
_TINY = {"n_irrelevant": 120, "n_relevant_per_class": 30, "document_length": 40}
_DELTAS = {"delta": (0.02, 0.48)}
STAR_NAMES = ("1 star", "2 stars", "4 stars", "5 stars")
_STARS = {"n_classes": 5, "delta": (0.05, 0.75)}

REAL = {
    "IMDB": problems.REAL[0],
    "Yelp": Spec("yelp_words", "Yelp, polarity", "yelp_stars", "polarity", _WORDS),
    "Yelp stars": Spec("yelp_stars_words", "Yelp, stars", "yelp_stars", vectorizer=_WORDS),
}
GENERATED = {
    "IMDB": Spec("like_imdb", "generated", generated={**_GENERATED, **_DELTAS}),
    "Yelp": Spec(
        "like_yelp",
        "generated, unequal",
        generated={**_GENERATED, **_DELTAS, "weights": [0.34, 0.66]},
    ),
    "Yelp stars": Spec("like_stars", "generated stars", generated={**_GENERATED, **_STARS}),
}
GENERATED_ROWS, TINY_ROWS = 6000, 500


@dataclass(frozen=True)
class Settings:
    """What all experiments are told.

    Attributes
    ----------
    reviews : Path or None
        Folder of the review files; None where they are absent: documents are generated.

    images : Path
        Where pictures go.

    fast : bool
        Tiny generated data and few iterations, for tests.

    cache : Path
        Where matrices are kept.

    n_seeds : int
        Random starts of every statement; one in a fast run.

    own : Path or None
        A file of texts and labels, in place of the reviews.

    tables : bool
        Whether what a picture draws is written beside it as CSV.
    """

    reviews: Path | None
    images: Path
    fast: bool = False
    cache: Path = problems.CACHE
    n_seeds: int = 5
    own: Path | None = None
    tables: bool = False

    @property
    def seeds(self) -> range:
        """The seeds of every statement."""
        return range(self.pick(self.n_seeds, 1))

    @property
    def corpora(self) -> tuple[str, ...]:
        """Names of the data of two classes."""
        return ("IMDB", "Yelp") if self.own is None else (self.own.name,)

    @property
    def stars(self) -> str:
        """Name of the data of more than two classes."""
        return "Yelp stars" if self.own is None else self.own.name

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
    class_names: tuple[str, ...] = ()

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

    @cached_property
    def alpha(self) -> shapes.Array:
        """Signed frequency of the frequent tokens, classes of equal weight."""
        return shapes.token_alpha(self.X, self.y, self.n_classes)[..., self.frequent]

    @property
    def words(self) -> str:
        """The corpus in a line of a table."""
        return (
            f"{self.name}: {self.X.shape[0]:,} training documents, {self.X_test.shape[0]:,} test "
            f"documents, {self.X.shape[1]:,} tokens"
        )


@lru_cache(maxsize=4)
def load(name: str, settings: Settings) -> Corpus:
    """Return "IMDB", "Yelp" (polarity) or "Yelp stars" (four classes), its stand-in, or one's own.

    Documents without a token of the vocabulary are left out: without ``<cls>`` attending to
    itself, the paper's model has no output for them.
    """
    if settings.own is not None:
        return _own(settings.own)
    if settings.reviews is not None and not settings.fast:
        problem = problems.load(REAL[name], settings.reviews, cache=settings.cache)
        label = name
    else:
        spec, rows = GENERATED[name], GENERATED_ROWS
        if settings.fast:
            tiny = {**spec.generated, **_TINY}
            spec, rows = replace(spec, name=f"tiny_{spec.name}", generated=tiny), TINY_ROWS
        problem = problems.load(spec, None, n_rows=rows, cache=settings.cache)
        label = f"generated ({name})"
    halves = [(problem.X_train, problem.y_train), (problem.X_test, problem.y_test)]
    if name == "Yelp stars":
        halves = [_four_classes(*half) for half in halves]
    (X, y), (X_test, y_test) = halves
    names = STAR_NAMES if name == "Yelp stars" else ()
    corpus = _trimmed(label, X, y, X_test, y_test)
    return replace(most_frequent(corpus, N_TOKENS[name]), class_names=names)


def _own(path: Path) -> Corpus:
    """Return one's own texts, a fifth of them, drawn at random in each class, for testing."""
    texts, labels = load_reviews(path, return_X_y=True)
    classes, y = np.unique(labels, return_inverse=True)
    halves = train_test_split(texts, y, test_size=0.2, stratify=y, random_state=0)
    vectorizer = CountVectorizer(**_WORDS).fit(halves[0])
    X, X_test = (vectorizer.transform(half).astype(np.float32) for half in halves[:2])
    corpus = _trimmed(path.name, X, halves[2], X_test, halves[3])
    return replace(corpus, class_names=tuple(str(each) for each in classes))


@lru_cache(maxsize=4)
def subset(corpus: Corpus, n_train: int, n_test: int, seed: int = 0) -> Corpus:
    """Return random documents of a corpus, with the words of its training half."""
    rng = np.random.default_rng(seed)
    train, test = (
        np.sort(rng.permutation(n)[:size])
        for n, size in ((corpus.X.shape[0], n_train), (corpus.X_test.shape[0], n_test))
    )
    return _trimmed(
        corpus.name, corpus.X[train], corpus.y[train], corpus.X_test[test], corpus.y_test[test]
    )


@lru_cache(maxsize=4)
def most_frequent(corpus: Corpus, n_tokens: int) -> Corpus:
    """Return a corpus with only its `n_tokens` most frequent tokens."""
    counts = corpus.X.T @ np.ones(corpus.X.shape[0])
    kept = np.sort(np.argsort(-counts, kind="stable")[:n_tokens])
    return _trimmed(corpus.name, corpus.X[:, kept], corpus.y, corpus.X_test[:, kept], corpus.y_test)


def _four_classes(X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[np.int64]]:
    """Drop the middle of five classes and number the others from 0."""
    classes, codes = np.unique(y, return_inverse=True)
    middle = len(classes) // 2
    kept = np.flatnonzero(codes != middle)
    return X[kept], (codes[kept] - (codes[kept] > middle)).astype(np.int64)


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
