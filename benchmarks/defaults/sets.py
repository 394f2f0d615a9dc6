"""The documents that defaults are chosen on: repeated splits of training files, never test files.

A set is a file NAME.csv.gz with the columns text, label and part, of which rows whose part is
"test" are dropped on reading, or the training file of the reviews. A split draws a quarter of a
set at random as its test documents; of the others, the first 500, 2,000, 8,000 or all are trained
on, as words and bigrams of at least two documents. Where 30, 100 or 300 are trained on, no more
than 1,000 are tested on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from benchmarks.problems import Spec, Texts, labelled_texts
from sklearn_clsattn.datasets import make_token_classification

SIZES = (500, 2_000, 8_000, None)
FEW = (30, 100, 300)
N_SPLITS = 5
_DOCUMENTS_PER_CLASS = 25
_FEW_PER_CLASS, _MOST_TESTS = 5, 1_000

REVIEWS = {
    "imdb": Spec("imdb", "", "imdb"),
    "polarity": Spec("polarity", "", "yelp_stars", labels="polarity"),
    "stars": Spec("stars", "", "yelp_stars"),
}


@dataclass(frozen=True)
class Split:
    """Training and test documents of one split, as counts.

    Labels are codes 0..K-1 of the training documents' classes; test documents of other classes are
    dropped. `size` is None where all training documents are there. Texts are kept for less than
    500 documents, with which counts are of words in one document or more.
    """

    set: str
    seed: int
    size: int | None
    X_train: sp.csr_matrix
    y_train: NDArray[np.intp]
    X_test: sp.csr_matrix
    y_test: NDArray[np.intp]
    texts_train: NDArray[np.object_] | None = None
    texts_test: NDArray[np.object_] | None = None

    @property
    def n_classes(self) -> int:
        """How many classes the training documents have."""
        return int(self.y_train.max()) + 1

    @property
    def work(self) -> int:
        """What a fit's time grows with: non-zeros times outputs."""
        return int(self.X_train.nnz) * (1 if self.n_classes == 2 else self.n_classes)

    @property
    def n_splits(self) -> int:
        """How many splits of this set and size are worth their time."""
        return N_SPLITS if self.work < 20_000_000 else 2


Source = Callable[[], Texts]
Key = tuple[str, int, int | None]


def sources(explore: Path | None, reviews: Path | None) -> dict[str, Source]:
    """Return what reads each set there is, small files first; generated ones without folders."""
    found: dict[str, tuple[Path, Source]] = {}
    for file in explore.glob("*.csv.gz") if explore is not None else ():
        found[file.name.removesuffix(".csv.gz")] = file, partial(read_training, file)
    for name, spec in REVIEWS.items() if reviews is not None else ():
        file = reviews / f"{spec.stem}_train.csv.gz"
        if file.is_file():
            found[name] = file, partial(labelled_texts, spec, reviews, "train")
    if not found:
        return {"two": partial(_generated, 2), "three": partial(_generated, 3)}
    ordered = sorted(found.items(), key=lambda item: item[1][0].stat().st_size)
    return {name: source for name, (_, source) in ordered}


def splits(
    found: dict[str, Source],
    cache: Path,
    *,
    seeds: int = N_SPLITS,
    sizes: Sequence[int | None] = SIZES,
) -> Iterator[tuple[Key, Callable[[], Split | None]]]:
    """Yield what makes every split and its key: set, seed and size; seed by seed, size by size.

    None is made where a size leaves too few documents a class, is about all that there is, or where
    the split is large and its seed one too many.
    """
    make = joblib.Memory(cache, verbose=0).cache(_split, ignore=["source"])
    readers = {name: lru_cache(maxsize=1)(source) for name, source in found.items()}
    for seed in range(seeds):
        for size in sizes:
            for name, source in readers.items():
                yield (name, seed, size), partial(_kept, make, source, name, seed, size)


def _kept(
    make: Callable[..., Split | None], source: Source, name: str, seed: int, size: int | None
) -> Split | None:
    if seed > 0:
        first = make(source, name, 0, size)
        if first is None or seed >= first.n_splits:
            return None
    return make(source, name, seed, size)


def _split(source: Source, name: str, seed: int, size: int | None) -> Split | None:
    texts, labels = source()
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = np.split(order, [int(0.75 * len(order))])
    n_classes = len(np.unique(labels))
    few = size in FEW
    least = (_FEW_PER_CLASS if few else _DOCUMENTS_PER_CLASS) * n_classes
    if size is not None and not least <= size < 0.8 * len(train):
        return None
    train = train[:size]
    test = test[:_MOST_TESTS] if few else test
    vectorizer = CountVectorizer(ngram_range=(1, 2), min_df=1 if few else 2)
    X = vectorizer.fit_transform(texts[train])
    classes, codes = np.unique(labels[train], return_inverse=True)
    test = test[np.isin(labels[test], classes)]
    return Split(
        name,
        seed,
        size,
        X,
        codes,
        vectorizer.transform(texts[test]),
        np.searchsorted(classes, labels[test]),
        *((texts[train], texts[test]) if few else ()),
    )


def read_training(file: Path) -> Texts:
    """Return texts and labels of a set, without those that are for testing."""
    frame = pd.read_csv(file, keep_default_na=False, dtype={"label": str})
    frame = frame[frame["part"] != "test"]
    return frame["text"].to_numpy(dtype=object), frame["label"].to_numpy(dtype=str)


def _generated(n_classes: int) -> Texts:
    X, y = make_token_classification(
        240, n_classes=n_classes, n_irrelevant=60, document_length=30, random_state=0
    )
    words = np.array([f"w{token}" for token in range(X.shape[1])])
    counts = X.toarray().astype(int)
    texts = [" ".join(np.repeat(words, row)) for row in counts]
    return np.array(texts, dtype=object), y
