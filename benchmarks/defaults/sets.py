"""The documents that defaults are chosen on: splits of training files, never test files.

A set is a file NAME.csv.gz with the columns text, label and part, without the rows whose part is
"test", or the training file of the reviews.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import REVIEWS, Texts, labelled_texts, read_set
from sklearn_clsattn.datasets import make_token_classification
from sklearn_clsattn.text import TokenVectorizer

SIZES = (500, 2_000, 8_000, None)
FEW = (30, 100, 300)


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
    """Return a reader for each set, small files first; generated sets without folders."""
    files = sorted(
        explore.glob("*.csv.gz") if explore else (), key=lambda file: file.stat().st_size
    )
    readers: dict[str, Callable[[], Texts]] = {
        file.name.removesuffix(".csv.gz"): partial(read_training, file) for file in files
    }
    for name, spec in REVIEWS.items() if reviews else ():
        if (reviews / f"{spec.stem}_train.csv.gz").is_file():
            readers[name] = partial(labelled_texts, spec, reviews, "train")
    readers = readers or {"two": partial(_generated, 2), "three": partial(_generated, 3)}
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
    texts, y, test = read_set(file)
    return texts[~test], y[~test]


def _generated(n_classes: int) -> Texts:
    """Return small generated texts for a trial."""
    texts, y = make_token_classification(
        240, n_classes=n_classes, document_length=30, as_text=True, random_state=0
    )
    return np.array(texts, dtype=object), y
