"""The texts and labels of benchmarks, and splits of training texts to choose defaults on.

Three sets are reviews: "imdb", "polarity" (of Yelp) and "stars". Two are generated requests:
"topic" and "mood". All others are files NAME.csv.gz with the columns text, label and part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sklearn_clsattn.datasets import load_requests
from sklearn_clsattn.text import TokenVectorizer

REVIEWS = {"imdb": "imdb", "polarity": "yelp_stars", "stars": "yelp_stars"}  # set and file
REQUESTS = "topic", "mood"
# Words with their contractions, words of one letter included.
WORDS = r"(?u)\b\w+(?:'\w+)?\b"
# Training texts of a split: numbers of them, None for all; fewer have fewer of each class.
SIZES = (500, 2_000, 8_000, None)
FEW = (30, 100, 300)

Texts = tuple[NDArray[Any], NDArray[Any]]  # and their labels


class Problem(NamedTuple):
    """Texts, or counts of their words, and labels: for training and for testing."""

    X_train: Any
    y_train: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]


def load(
    name: str,
    reviews: Path | str | None = None,
    explore: Path | str | None = None,
    n_rows: int | None = None,
) -> Problem:
    """Return the texts of a set; of each half at most `n_rows`, drawn at random."""
    if name in REVIEWS:
        folder = Path(reviews or ".")
        halves = [read_reviews(name, folder, part) for part in ("train", "test")]
    elif name in REQUESTS:
        texts, y = load_requests(target=name, return_X_y=True)
        halves = _split(texts, y, np.zeros(len(y), dtype=bool))
    else:
        halves = _split(*_read_set(Path(explore or ".") / f"{name}.csv.gz"))
    train, test = (_some(*half, n_rows) for half in halves)
    return Problem(*train, *test)


def read_reviews(name: str, folder: Path, part: str) -> Texts:
    """Return the texts and labels of one half, "train" or "test", of a set of reviews."""
    table = pd.read_csv(folder / f"{REVIEWS[name]}_{part}.csv.gz", keep_default_na=False)
    texts = table["text"].to_numpy(dtype=object)
    y = table["label"].to_numpy()
    if name == "polarity":
        clear = y != 3
        texts = texts[clear]
        y = (y[clear] > 3).astype(np.int64)
    return texts, y


def _read_set(file: Path) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return texts, labels, and which are for testing, of a file."""
    frame = pd.read_csv(file, keep_default_na=False, dtype={"label": str})
    texts = frame["text"].to_numpy(dtype=object)
    y = frame["label"].to_numpy(dtype=str)
    return texts, y, (frame["part"] == "test").to_numpy()


def _split(texts: NDArray[Any], y: NDArray[Any], test: NDArray[np.bool_]) -> list[Texts]:
    """Return both halves of texts; a quarter, drawn at random, is for testing if nothing is."""
    if not test.any():
        test = np.random.default_rng(0).random(len(test)) < 0.25
    return [(texts[half], y[half]) for half in (~test, test)]


def _some(texts: NDArray[Any], y: NDArray[Any], n_rows: int | None) -> Texts:
    """Return some texts at random: files may be sorted by label."""
    if n_rows is None or n_rows >= len(y):
        return texts, y
    rows = np.sort(np.random.default_rng(0).choice(len(y), n_rows, replace=False))
    return texts[rows], y[rows]


@dataclass(frozen=True)
class Split:
    """Training and test texts of one split, with labels 0..K-1; `size` None is all of them."""

    set: str
    seed: int
    size: int | None
    texts_train: NDArray[np.object_]
    y_train: NDArray[np.intp]
    texts_test: NDArray[np.object_]
    y_test: NDArray[np.intp]

    @cached_property
    def counts(self) -> tuple[Any, Any]:
        """Counts of words and bigrams, of training and of test documents."""
        min_df = 1 if self.size in FEW else 2
        vectorizer = TokenVectorizer(ngram_range=(1, 2), min_df=min_df)
        return vectorizer.fit_transform(self.texts_train), vectorizer.transform(self.texts_test)

    @property
    def work(self) -> int:
        """What the time of a fit grows with: non-zeros times outputs."""
        n_classes = int(self.y_train.max()) + 1
        return int(self.counts[0].nnz) * (1 if n_classes == 2 else n_classes)


def sources(explore: Path | None, reviews: Path | None) -> dict[str, Callable[[], Texts]]:
    """Return a reader of training texts for each set, small files first.

    Without folders texts are generated.
    """
    readers: dict[str, Callable[[], Texts]] = {}
    files = explore.glob("*.csv.gz") if explore else ()
    for file in sorted(files, key=lambda file: file.stat().st_size):
        readers[file.name.removesuffix(".csv.gz")] = partial(read_training, file)
    for name in REVIEWS if reviews else ():
        readers[name] = partial(read_reviews, name, reviews, "train")
    readers = readers or {name: partial(_some_requests, name) for name in REQUESTS}
    return {name: cache(read) for name, read in readers.items()}


def splits(
    readers: dict[str, Callable[[], Texts]],
    *,
    seeds: int,
    sizes: Sequence[int | None] = SIZES,
    skip: Callable[[tuple[Any, ...]], bool] = lambda key: False,
) -> Iterator[Split]:
    """Yield the splits, seed by seed, except those whose (set, seed, size) is skipped.

    A quarter of a set is drawn at random for testing (at most 1,000 documents for few training
    documents); the first `size` of the others are for training. A size must leave 25 documents a
    class (5 if they are few), and be less than four fifths of all.
    """
    for seed, (name, read), size in product(range(seeds), readers.items(), sizes):
        if skip((name, seed, size)):
            continue
        texts, labels = read()
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = np.split(order, [int(0.75 * len(order))])
        fewest = (5 if size in FEW else 25) * len(np.unique(labels))
        if size is not None and not fewest <= size < 0.8 * len(train):
            continue
        train = train[:size]
        test = test[: 1_000 if size in FEW else None]
        classes, codes = np.unique(labels[train], return_inverse=True)
        test = test[np.isin(labels[test], classes)]
        y_test = np.searchsorted(classes, labels[test])
        yield Split(name, seed, size, texts[train], codes, texts[test], y_test)


def read_training(file: Path) -> Texts:
    """Return texts and labels of a set, without those for testing."""
    texts, y, test = _read_set(file)
    return texts[~test], y[~test]


def _some_requests(target: Any) -> Texts:
    """Return few generated texts for a trial."""
    texts, y = load_requests(target=target, return_X_y=True)
    return texts[:240], y[:240]
